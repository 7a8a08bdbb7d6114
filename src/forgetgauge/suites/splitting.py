"""SWAP against random splits at a suite's scale: `forgetgauge.suites`, in the store that the tables share.

It is the game of Table 1 at η = 1 with more pairs, so it trains only the pairs which that table did not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forgetgauge.suites.by_split import split_advantages
from forgetgauge.suites.scales import SCALES, swap_game
from forgetgauge.suites.single import Played, play_single
from forgetgauge.suites.splits_page import render_figure, render_page
from forgetgauge.suites.splits_record import SwapVsRandom
from forgetgauge.suites.swap_vs_random import NAME, compare


def play_splitting(scale: str, out: Path, **how: Any) -> tuple[Played, SwapVsRandom | None]:
    """None where jobs are missing, because the time was up or some failed; `how` is what `play_single` takes."""
    played = play_single(NAME, swap_game(SCALES[scale]), scale, out, **how)
    if played.result is None or played.ending.failed:
        return played, None
    (graph,) = played.campaign.graphs
    found = compare(split_advantages(graph, played.folder), graph.game, played.result)
    texts = {"json": found.to_json(), "svg": render_figure(found), "html": render_page(found)}
    for ending_of_name, text in texts.items():
        played.folder.write_text(out / NAME / f"{NAME}.{ending_of_name}", text)
    return played, found
