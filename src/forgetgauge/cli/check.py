"""The commands `check`, a gate for pipelines, and `verify`, which computes a result again."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import AllowCode, one_by_one, say
from forgetgauge.errors import UserError
from forgetgauge.files import refuse_other_kind, write_whole, writing
from forgetgauge.plugins.catalogue import CodeNamed, no_code


def check(
    result: Annotated[Path, typer.Argument(help="A result.json or evidence.json, or the folder that has one.")],
    min_q: Annotated[float | None, typer.Option(help="Q must be at least this.")] = None,
    at_chance: Annotated[bool, typer.Option("--at-chance", help="Attackers must do no better than chance.")] = False,
    bounded: Annotated[
        bool, typer.Option("--bounded", help="Judge Q by the interval that holds for pairs of any distribution.")
    ] = False,
    margin: Annotated[
        float | None, typer.Option(help="With --at-chance: this advantage still counts as chance; 0.05 without it.")
    ] = None,
    max_accuracy_loss: Annotated[
        float | None, typer.Option(help="How much accuracy may be lost against Retrain and None: 0.01 is a point.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(callback=one_by_one, help="Judge this method alone; may be repeated.")
    ] = None,
    adversaries: Annotated[
        list[str] | None,
        typer.Option("--adversaries", callback=one_by_one, help="Adversaries that must have taken part: a,b,c."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A warning, or a statement that nobody made, is inconclusive.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Also write the findings here, as JUnit XML.")] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Also of a result that carries no decisions to compute it from again.")
    ] = False,
) -> None:
    """Hold a stored result to conditions. Exit code 0: they hold; 1: one does not; 3: inconclusive; 2: not judged."""
    from forgetgauge.report.table import align
    from forgetgauge.results import gate
    from forgetgauge.results.reading import at_its_word, read_either
    from forgetgauge.results.record import Result

    refuse_other_kind(junit, ".xml")
    if margin is not None and not at_chance:
        raise UserError("check: --margin says what still counts as chance: give --at-chance as well")
    path, stored = read_either(result, verified=not unverified)
    chance = (0.05 if margin is None else margin) if at_chance else None
    asked = gate.Conditions(min_q, chance, max_accuracy_loss, tuple(method or ()), tuple(adversaries or ()), bounded)
    with at_its_word(path):
        if isinstance(stored, Result):
            findings = gate.check_result(stored, asked, str(path))
        else:
            findings = gate.check_evidence(stored, asked, str(path))
        warned = gate.warnings_in(stored, asked.methods)
        findings += [gate.Finding("", "nothing speaks against it", "inconclusive", line) for line in warned if strict]
        verdict, on = gate.overall(findings), gate.basis(stored)
    if junit is not None:
        write_whole(junit, gate.junit(findings, str(path)))
    rows = [["method", "asked", "", "found"], *([f.method, f.condition, f.state, f.evidence] for f in findings)]
    say(f"{verdict}\n\n{align(rows)}\n\n{on}")
    for line in warned:
        say(f"warning: {line}", err=True)
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        _append(Path(os.environ["GITHUB_STEP_SUMMARY"]), gate.summary(findings, str(path), on))
        for found in findings:
            if found.state != "holds":
                kind = "error" if found.state == "does not hold" else "warning"
                say(f"::{kind} title=forgetgauge::{found.method}: {found.condition} {found.state}; {found.evidence}")
    raise typer.Exit(gate.EXIT_CODES[verdict])


def verify(
    path: Annotated[Path, typer.Argument(help="A result.json, a run folder, or a file that export made.")],
    source: Annotated[
        str, typer.Option("--from", help="decisions, or signals: then adversaries are fitted and asked once more.")
    ] = "decisions",
    allow_code: AllowCode = False,
) -> None:
    """Compute a result again from its decisions. Exit code 0: all is as stored; 1: something differs."""
    from forgetgauge.run.verify import verify as verified

    try:
        with nullcontext() if allow_code else no_code():
            found = verified(path, source)
    except CodeNamed as error:
        raise UserError(f"{path}: {error}; --allow-code does so, if you trust who wrote it") from None
    for line in found.problems:
        say(line)
    if found.problems:
        raise typer.Exit(1)
    whole = f"{found.n_artefacts} artefacts are whole, " if found.n_artefacts else ""
    asked = ", and attackers who were asked once more decided the same" if source == "signals" else ""
    asked += f"; not computed again: {found.not_again}" if found.not_again else ""
    say(f"verified: {whole}{found.n_values} values computed again are as stored{asked}")


def _append(path: Path, text: str) -> None:
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(text)
