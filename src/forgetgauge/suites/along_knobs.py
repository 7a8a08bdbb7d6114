"""Q along the knob: four methods at several strengths, on the models of Table 1 at η = 1, which are not trained again.

The knobs of the tables were chosen by accuracy on the shadow half, before any Q was known. What another choice would
have shown is the reader's question, not a way to choose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forgetgauge.report.table import align
from forgetgauge.results.record import GameResult, MethodResult, Result
from forgetgauge.results.utility import unseen_part
from forgetgauge.suites.knob_record import FILE, KnobCurve, KnobCurves, Measured
from forgetgauge.suites.knobs import FAMILIES, along, chosen_value, remark, variant_name
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.record import Ours, Sitting
from forgetgauge.suites.scales import SCALES, image_family, knob_game
from forgetgauge.suites.single import Played, play_single
from forgetgauge.wording import bracket, plain, seconds

NAME = "knobs"


def play_knobs(scale: str, out: Path, **how: Any) -> tuple[Played, KnobCurves | None]:
    """None where the time was up; `how` is what `play_single` takes."""
    played = play_single(NAME, knob_game(SCALES[scale]), scale, out, **how)
    if played.result is None:
        return played, None
    found = curves_of(played.result, scale, played.sittings)
    played.folder.write_text(out / NAME / FILE, found.to_json())
    played.folder.write_text(out / NAME / "table.txt", knob_text(found) + "\n")
    return played, found


def curves_of(result: Result, scale: str, sittings: Sequence[Sitting]) -> KnobCurves:
    """From the result of the game of `knob_game`."""
    (game,), size = result.games, SCALES[scale]
    family = image_family(size)
    looked_at = unseen_part(game.methods["none"].accuracy) or "unseen"
    curves = {
        method: KnobCurve(
            knob=grid.knob,
            chosen=chosen_value(family, method),
            values=list(grid.values),
            points=[_measured(game, variant_name(method, value), looked_at) for value in grid.values],
        )
        for method, grid in along(family).items()
    }
    return KnobCurves(
        scale=scale,
        tuned=bool(FAMILIES[family].tuned_on),
        curves=curves,
        none=_measured(game, "none", looked_at),
        retrain=_measured(game, "retrain", looked_at),
        accuracy_on=looked_at,
        basis=game.interval_basis,
        notes=[note for note in (*size.notes_for(size.pairs), size.stand_in("cifar10"), remark(family)) if note],
        sittings=list(sittings),
        work_s=result.total_seconds,
        environment=dict(result.environment),
        digests=dict(result.digests),
        failures=_failures(result),
    )


def _measured(game: GameResult, name: str, looked_at: str) -> Measured:
    found: MethodResult = game.methods[name]
    if found.quality_plugin is None or found.n_pairs < game.methods["none"].n_pairs:
        return Measured(None, None, found.n_pairs)
    return Measured(Ours(found.quality_plugin, found.interval), found.accuracy.get(looked_at), found.n_pairs)


def _failures(result: Result) -> list[str]:
    """One line for all models of a method that failed alike."""
    alike = Counter((re.sub(r", pair .*", "", failure.job), failure.error) for failure in result.failures)
    return [f"{n} × {job}: {error}" for (job, error), n in alike.items()]


def knob_rows(found: KnobCurves) -> list[list[str]]:
    """Head and one row for each value, weakest first; the two yardsticks on top."""
    mark = "chosen" if found.tuned else "default"
    rows = [["method", "knob", "Q", f"accuracy ({found.accuracy_on})", ""]]
    for name, point in (("retrain", found.retrain), ("none", found.none)):
        rows.append([PRINTED[name], "–", *_cells(point), ""])
    for method, curve in found.curves.items():
        for value, point in zip(curve.values, curve.points, strict=True):
            which = mark if value == curve.chosen else ""
            if point.pairs < found.none.pairs:
                which = f"{which} only {point.pairs} of {found.none.pairs} pairs".strip()
            rows.append([PRINTED[method], f"{curve.knob} = {value:g}", *_cells(point), which])
    return rows


def _cells(point: Measured) -> list[str]:
    quality = "–"
    if point.quality is not None:
        interval = point.quality.interval
        quality = plain(point.quality.value) + ("" if interval is None else f" {bracket(interval)}")
    return [quality, "–" if point.accuracy is None else plain(point.accuracy)]


def knob_remarks(found: KnobCurves) -> list[str]:
    """What must be known of the table: one line each."""
    lines = [*found.notes, *(f"Failed: {failure}." for failure in found.failures)]
    if found.basis:
        lines.append(f"Intervals: {found.basis}.")
    devices = dict.fromkeys(sitting.device for sitting in found.sittings)
    commits = dict.fromkeys(sitting.commit for sitting in found.sittings)
    commands = dict.fromkeys(f"`{sitting.command}`" for sitting in found.sittings if sitting.command)
    time = seconds(sum(sitting.wall_s for sitting in found.sittings))
    where = [f"on {' and '.join(devices)}", f"commit {', '.join(commits)}", *commands] if found.sittings else []
    return [*lines, "; ".join([f"Time: {time}, the models of Table 1 not counted where they were there", *where]) + "."]


def knob_text(found: KnobCurves) -> str:
    """For a terminal."""
    heading = f"Q along the knob, {found.scale} scale. Weakest values first."
    return "\n".join([heading, "", align(knob_rows(found)), "", *knob_remarks(found)])
