"""Adv_s of every single split of a finished run: what `assemble` sums up over pairs, before it is summed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.arrays import Floats
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.graph import SIDES, Cell, Graph
from forgetgauge.results.views import GameView, RunView
from forgetgauge.store.runfolder import RunFolder


@dataclass(frozen=True)
class SplitAdvantages:
    """The splits of a run, and what each adversary gained on each."""

    pairs: list[SwapPair]
    weights: Floats
    """P_D over D."""
    by_method: dict[str, Floats]
    """Method -> signed (pairs, sides, adversaries), averaged over seeds."""


def split_advantages(graph: Graph, folder: RunFolder) -> SplitAdvantages:
    """From the stored decisions; every job of the game must be done."""
    game, played = graph.game, GameView(graph, RunView(folder))

    def gained(method: str, pair: int, side: int, adversary: str) -> float:
        in_forget, weight = played.points_of(pair)
        keys = [graph.cells[Cell(method, pair, side, seed)].decide[adversary] for seed in range(game.seeds)]
        says_forget = np.mean([played.run.look_up(key).arrays["says_forget"] for key in keys], axis=0)
        return signed_advantage(says_forget, in_forget if side == 0 else ~in_forget, weight)

    return SplitAdvantages(
        [played.pair(pair) for pair in range(game.pairs)],
        played.weight,
        {
            method: np.array(
                [[[gained(method, p, side, a) for a in game.adversaries] for side in SIDES] for p in range(game.pairs)]
            )
            for method in game.methods
        },
    )
