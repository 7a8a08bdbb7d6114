"""Whether a result says what the decisions in it say: every number that follows from them is computed again.

The rest, such as accuracies and seconds, does not follow from decisions; that it was not changed is what the digest of
the file says, which also whoever changes a file on purpose can compute.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.files import is_sealed
from forgetgauge.game.one_model import PAIRS, TOP
from forgetgauge.records import read_record
from forgetgauge.results import game as games
from forgetgauge.results.one_model import REQUESTS, OneModelResult, blind_again, counted_again, judged_again
from forgetgauge.results.record import Result, read_result

CHANGED = "was changed after it was written: its bytes do not fit its own SHA-256"
SHOWN = 10
"""So many differences are named, the others counted."""


@dataclass(frozen=True)
class Verified:
    """What was checked, and what is wrong, in words; nothing where all is as it should be."""

    n_artefacts: int
    n_values: int
    problems: tuple[str, ...]
    not_again: str = ""
    """What could not be computed again, in words."""


def verify_result(path: Path) -> Verified:
    """A `result.json` by itself: its digest, and what its own decisions say."""
    if not path.exists():
        raise UserError(f"{path}: no such file; has the run finished?")
    try:
        result = read_result(path, sealed=False)
    except UserError as error:
        return Verified(0, 0, (str(error),))
    sealed = is_sealed(path.read_bytes())
    if sealed and not _has_decisions(result):
        raise UserError(f"{path}: carries no decisions to compute it from again; its run folder or export may")
    changed = [] if sealed else [f"{path.name} {CHANGED}"]
    n_values, differing = differences(result, computed_again(result)) if _has_decisions(result) else (0, [])
    return Verified(0, n_values, (*changed, *differing))


def verify_evidence(path: Path) -> Verified:
    """Evidence from one model: its digest, and what follows from its tests. The outputs it is of are not in it: whoever
    has them, and the draw, can do the audit again."""
    try:
        found = read_record(path, OneModelResult, sealed=False)
    except UserError as error:
        return Verified(0, 0, (str(error),))
    changed = [] if is_sealed(path.read_bytes()) else [f"{path.name} {CHANGED}"]
    n_values, problems = evidence_differences(found)
    lacking = "how many answers of each attacker were right, and their p but for pairs and the top scores"
    lines = (*changed, *(f"{path.name}, {line}" for line in problems))
    return Verified(0, n_values, lines, f"{lacking}: these need the file of outputs and the draw")


def refuse_unverified_evidence(path: Path) -> OneModelResult:
    """The evidence in a file, unless it does not say what the tests in it say."""
    found = read_record(path, OneModelResult)
    _, problems = evidence_differences(found)
    if problems:
        raise UserError(f"{path}: does not say what its tests say: {problems[0]}")
    return found


def evidence_differences(found: OneModelResult) -> tuple[int, list[str]]:
    """(how many values follow from the tests, which of them are others, in words)."""
    is_requested = found.origin == REQUESTS
    if is_requested != (found.blind is not None) or is_requested != (found.n_unseen is not None):
        return 0, ["blind: requests have a test without the model and a number of unseen points, a draw has neither"]
    if not is_requested and not found.seed:
        return 0, ["seed: a draw has one"]
    untested = [name for name, model in found.models.items() if not model.tests]
    if untested or not found.models:
        return 0, [f"models{f'/{untested[0]}' if untested else ''}: without a test there is nothing to judge"]
    compared: list[tuple[str, Any, Any]] = []
    try:
        compared += _parts("blind", found.blind, blind_again(found))
        for name, model in found.models.items():
            compared += _parts(f"models/{name}", model, judged_again(found, name))
            for key, test in model.tests.items():
                if test.by in (PAIRS, TOP):
                    compared += _parts(f"models/{name}/tests/{key}", test, counted_again(test, found))
    except (ValueError, KeyError, ArithmeticError) as error:
        return 0, [f"what it carries cannot be judged: {error}"]
    return len(compared), [
        f"{place}: {_shown(stored)}, but by its tests it is {_shown(again)}"
        for place, stored, again in compared
        if not _same(stored, again)
    ]


def _parts(place: str, stored: Any, again: Any) -> list[tuple[str, Any, Any]]:
    """(place, stored, computed again) of the fields that follow from the others."""
    if stored is None:
        return []
    given = ("tests", "utility", "n_columns", "alike")
    names = [field.name for field in fields(stored) if field.name not in given]
    return [(f"{place}/{name}", getattr(stored, name), getattr(again, name)) for name in names]


def refuse_unverified(path: Path, *, needs_decisions: bool = True) -> Result:
    """The result in a file, unless it does not say what the decisions in it say, or carries none and needs them."""
    result = read_result(path)
    if not _has_decisions(result):
        if needs_decisions:
            raise UserError(f"{path}: carries no decisions to compute it from again; --unverified takes it at its word")
        return result
    refuse_differing(path, result)
    return result


def refuse_differing(path: Path, result: Result) -> None:
    """UserError where a result that carries its decisions does not say what they say; `path` is where it is from."""
    _, problems = differences(result, computed_again(result))
    if problems:
        raise UserError(f"{path}: does not say what its decisions say: {problems[0]}")


def _has_decisions(result: Result) -> bool:
    return bool(result.games) and all(game.decisions is not None for game in result.games)


def computed_again(result: Result) -> Result | str:
    """From the decisions that it carries; why not, where they are not to be used."""
    try:
        return replace(result, games=[games.judged_again(game) for game in result.games])
    except Exception as error:  # a stranger's spec may hold anything
        return f"what the result carries cannot be judged: {error}"


def differences(stored: Result, again: Result | str, exempt: Collection[str] = ()) -> tuple[int, list[str]]:
    """(how many values were compared, which differ, in words); places in `exempt` are not compared."""
    if isinstance(again, str):
        return 0, [again]
    has, found = (
        {place: value for place, value in leaves(json.loads(one.to_json())) if place not in (*exempt, "sha256")}
        for one in (stored, again)
    )
    places = [place for place in found | has if not _same(found.get(place, _ABSENT), has.get(place, _ABSENT))]
    problems = [
        f"result.json, {place}: {_shown(has.get(place, _ABSENT))}, but computed again it is "
        f"{_shown(found.get(place, _ABSENT))}"
        for place in places[:SHOWN]
    ]
    if len(places) > SHOWN:
        problems.append(f"and {len(places) - SHOWN} more values")
    return len(found), problems


_ABSENT = object()


def _same(one: Any, other: Any) -> bool:
    """Equal; of numbers, up to the order in which a processor adds, and 0 is 0.0."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other)):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)
    return type(one) is type(other) and bool(one == other)


def _shown(value: Any) -> str:
    text = "absent" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:80]}…"


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word, by where it stands; an empty list or table counts as one."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inside:
        yield place, value
    for key, part in inside:
        yield from leaves(part, f"{place}/{key}" if place else str(key))
