"""SWAP against random splits at a suite's scale: `forgetgauge.experiments`, in the store that the tables share.

It is the game of Table 1 at η = 1 with more pairs, so it trains only the pairs which that table did not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from forgetgauge.experiments.by_split import split_advantages
from forgetgauge.experiments.page import render_figure, render_page
from forgetgauge.experiments.record import SwapVsRandom
from forgetgauge.experiments.swap_vs_random import NAME, compare
from forgetgauge.reproduce.folder import add_sitting, remember_games, table_folder
from forgetgauge.reproduce.origin import commit
from forgetgauge.reproduce.playing import plan_suite
from forgetgauge.reproduce.record import Sitting
from forgetgauge.reproduce.scales import SCALES, swap_game
from forgetgauge.reproduce.suites import Column, Suite
from forgetgauge.run.campaign import Campaign, ExecutorName, play
from forgetgauge.run.scheduler import Ending, Progress


def play_splitting(
    scale: str,
    out: Path,
    *,
    executor: ExecutorName = "inline",
    device: str = "auto",
    time_limit_s: float | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
    command: str = "",
) -> tuple[Ending, Campaign, SwapVsRandom | None]:
    """None where jobs are missing, because the time was up or some failed."""
    start = time.monotonic()
    column = Column("all", swap_game(SCALES[scale]), "digits" if SCALES[scale].embedded else "resnet")
    campaign = plan_suite(Suite(NAME, "", "repetitions", (column,), "quality", scale, ())).campaign
    remember_games(out, NAME, campaign)
    folder = table_folder(out, NAME)
    ending, result = play(campaign, folder, executor=executor, device=device, time_limit_s=time_limit_s, tell=tell)
    device = (result or campaign.resolved).environment["device"]
    sitting = Sitting(command, commit(), device, round(time.monotonic() - start, 1), ending.n_run)
    add_sitting(folder, NAME, sitting)
    if result is None or ending.failed:
        return ending, campaign, None
    (graph,) = campaign.graphs
    found = compare(split_advantages(graph, folder), graph.game, result)
    texts = {"json": found.to_json(), "svg": render_figure(found), "html": render_page(found)}
    for ending_of_name, text in texts.items():
        folder.write_text(out / NAME / f"{NAME}.{ending_of_name}", text)
    return ending, campaign, found
