"""The methods of Table 1 at several strengths, played on its models at η = 1, which are not trained again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from forgetgauge.report.strengths import along
from forgetgauge.report.table import failed_alike
from forgetgauge.results.record import Result
from forgetgauge.results.utility import unseen_part
from forgetgauge.suites.frontier import FILE, NAME, Frontier, Frontiers, measured_at
from forgetgauge.suites.frontier_words import frontier_text
from forgetgauge.suites.invocation import Invoked, play_single
from forgetgauge.suites.records import Invocation
from forgetgauge.suites.strengths import remark
from forgetgauge.suites.tables import SCALES, frontier_game


def play_frontiers(scale: str, out: Path, **how: Any) -> tuple[Invoked, Frontiers | None]:
    """None where the time was up; `how` is what `play_single` takes."""
    invoked = play_single(NAME, frontier_game(SCALES[scale]), scale, out, frontier=SCALES[scale].strengths, **how)
    if invoked.result is None:
        return invoked, None
    found = frontiers_of(invoked.result, scale, invoked.invocations)
    invoked.folder.write_text(out / NAME / FILE, found.to_json())
    invoked.folder.write_text(out / NAME / "table.txt", frontier_text(found) + "\n")
    return invoked, found


def frontiers_of(result: Result, scale: str, invocations: Sequence[Invocation]) -> Frontiers:
    """From the result of the game of `frontier_game`."""
    (game,), size = result.games, SCALES[scale]
    looked_at = unseen_part(game.methods["none"].utility) or "unseen"
    notes = (*size.notes_for([frontier_game(size)]), size.stand_in("cifar10"), remark(size.tuning_shadows))
    curves = {}
    for method, curve in along(game).items():
        chosen = next(at.value for at in curve if at.remark)
        points = [measured_at(game, at.method, looked_at) for at in curve]
        curves[method] = Frontier(curve[0].parameter, chosen, [at.value for at in curve], points)
    return Frontiers(
        scale=scale,
        tuned=True,
        curves=curves,
        none=measured_at(game, game.methods["none"], looked_at),
        retrain=measured_at(game, game.methods["retrain"], looked_at),
        accuracy_on=looked_at,
        basis=game.interval_basis,
        notes=[note for note in notes if note],
        invocations=list(invocations),
        work_s=result.total_seconds,
        environment=dict(result.environment),
        digests=dict(result.digests),
        failures=_failures(result),
        rule=(game.spec.get("price") or {}).get("rule", 1),
    )


def _failures(result: Result) -> list[str]:
    """One line for all models of a method that failed alike."""
    alike = failed_alike([(failure.job, failure.error) for failure in result.failures])
    return [f"{len(jobs)} × {what}: {error}" for what, error, jobs in alike]
