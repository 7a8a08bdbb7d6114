"""Running one game that is no table of the paper, in the store that the tables share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from forgetgauge.report.html import render_report
from forgetgauge.reproduce.folder import add_sitting, remember_games, table_folder
from forgetgauge.reproduce.origin import commit
from forgetgauge.reproduce.playing import plan_suite
from forgetgauge.reproduce.record import Sitting
from forgetgauge.reproduce.scales import SCALES, Raw, image_family
from forgetgauge.reproduce.suites import Column, Suite
from forgetgauge.results.record import Result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import DEFAULTS, RunOptions
from forgetgauge.run.scheduler import Ending
from forgetgauge.store.runfolder import RunFolder


@dataclass(frozen=True)
class Played:
    """What came of a sitting."""

    ending: Ending
    campaign: Campaign
    folder: RunFolder
    result: Result | None
    """None where jobs are missing because the time was up."""
    sittings: list[Sitting]


def play_single(
    name: str,
    raw: Raw,
    scale: str,
    out: Path,
    *,
    options: RunOptions = DEFAULTS,
    command: str = "",
) -> Played:
    """Do what is missing of a game on images; `OUT/NAME` has its result and report."""
    start = time.monotonic()
    column = Column("all", raw, image_family(SCALES[scale]))
    campaign = plan_suite(Suite(name, "", "", (column,), "quality", scale, ()), out=out).campaign
    remember_games(out, name, campaign)
    folder = table_folder(out, name)
    ending, result = play(campaign, folder, options)
    made_on = (result or campaign.resolved).environment["device"]
    sitting = Sitting(command, commit(), made_on, round(time.monotonic() - start, 1), ending.n_run)
    sittings = add_sitting(folder, name, sitting)
    if result is not None:
        folder.write_text(folder.report, render_report(result))
    return Played(ending, campaign, folder, result, sittings)
