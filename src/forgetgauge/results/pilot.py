"""After a pilot: how many pairs a game takes for an interval as narrow as was asked for."""

from __future__ import annotations

import numpy as np

from forgetgauge.game.adaptive import pairs_needed
from forgetgauge.plan.graph import Graph
from forgetgauge.results.played import Played
from forgetgauge.store.runfolder import RunFolder


def pairs_wanted(graph: Graph, folder: RunFolder) -> int:
    """How many pairs the game's `until` takes, judged by the pilot of all methods that completed it."""
    game, until = graph.game, graph.game.until
    assert until is not None
    played = Played(graph, folder, folder.open_ledger().state)
    pilots = [[found.advantage for found in outcomes.values()] for outcomes in played.outcomes.values()]
    wanted = [
        pairs_needed(np.asarray(pilot), until["half_width"], game.level, int(until["max_pairs"])).n_pairs
        for pilot in pilots
        if len(pilot) == game.pairs
    ]
    return max(wanted, default=game.pairs)
