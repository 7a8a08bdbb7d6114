"""A gate: whether a stored result holds what is asked of it. It judges the ends of intervals, never the points.

A condition *holds* where the whole interval meets it, *does not hold* where the whole interval misses it, and is
*inconclusive* between the two. Few pairs are wide intervals; but the interval of Q that is shown takes pairs as roughly
normal, and where a method fails in a few of its models, the pairs that were played may all have worked: then too little
evidence passes (docs/checking-a-result.md). ``bounded`` asks the interval that holds for pairs of any distribution. A
result that cannot be judged at all (failed jobs, too few pairs, adversaries missing that were asked for) is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.plan.strength import AT
from forgetgauge.results.one_model import (
    CONTROL_SEEN,
    OneModelResult,
    controls,
    names_of_tests,
    no_control,
    seen_by,
    silent_controls,
    unstated,
    warnings_on,
)
from forgetgauge.results.price import is_within
from forgetgauge.results.record import GameResult, MethodResult, Result, lacks_pairs, role_of
from forgetgauge.results.resolution import COARSE
from forgetgauge.results.utility import has_seen_unseen, loss_interval, points, yardsticks
from forgetgauge.results.verdict import (
    CONTROLS_HOLD,
    LIKE_RETRAIN,
    NOT_EVALUABLE,
    STILL_VISIBLE,
    controls_that_fail,
    no_controls,
    reservations,
    without_resolution,
)
from forgetgauge.wording import counted, listed, outward, plain

State = Literal["holds", "does not hold", "inconclusive"]


@dataclass(frozen=True)
class Conditions:
    """What is asked of every method that is judged; None is not asked."""

    min_quality: float | None = None
    """Q is at least this."""
    chance_margin: float | None = None
    """The largest advantage is at most this: attackers do no better than guessing, up to the margin."""
    max_utility_loss: float | None = None
    """So much less accurate than the lower of Retrain and None at most, by the rule that a price is kept by."""
    methods: Sequence[str] = ()
    """The methods that are judged; without names, all but the references."""
    adversaries: Sequence[str] = ()
    """The adversaries that must have played."""
    bounded: bool = False
    """Q is judged by the interval that holds for pairs of any distribution."""


@dataclass(frozen=True)
class Finding:
    """One condition on one method."""

    method: str
    condition: str
    state: State
    evidence: str


def check_evidence(found: OneModelResult, conditions: Conditions, source: str) -> list[Finding]:
    """What --at-chance comes to for one model, or each of several; UserError where one cannot be judged.

    It does not hold where the model is still visible, and holds where an advantage above the margin would have been
    seen (with a power of 80 %). A model from before the deletion is judged only where it is named: beside others it is
    the control, without which being seen nothing holds of them.
    """
    _check_ranges(conditions)
    margin = conditions.chance_margin
    if margin is None or conditions.bounded or {conditions.min_quality, conditions.max_utility_loss} != {None}:
        known = [model.resolution for model in found.models.values()]
        seen = [one for one in known if one is not None and one <= COARSE]  # what is coarser holds at no margin
        least = f", with --margin {math.ceil(1000 * max(seen)) / 1000:g} (less is inconclusive)" if seen else ""
        raise UserError(
            f"{source}: evidence from one model has no Q and no price: --at-chance is what can be asked{least}"
        )
    played = {name for model in found.models.values() for name in model.tests}
    if absent := [name for name in conditions.adversaries if name not in played]:
        raise UserError(f"{source}: {listed(absent)} did not take part; audit it with them")
    findings, before, silent = [], controls(found), silent_controls(found)
    for name in conditions.methods or [name for name in found.models if name not in before]:
        if name not in found.models:
            raise UserError(f"{source}: {unknown_name('model', name, found.models)}")
        model = found.models[name]
        if model.verdict == NOT_EVALUABLE:
            raise UserError(f"{source}: {name} is not evaluable, so it is not judged")
        is_seen = model.verdict == STILL_VISIBLE
        is_fine = model.verdict == LIKE_RETRAIN and model.resolution is not None and model.resolution <= margin
        state = _state(is_fine and (name in before or not silent), is_seen)
        what = f"attackers do at most {margin:g} better than chance"
        findings.append(Finding(name, what, state, f"{without_resolution(model.verdict)}; {seen_by(model)}"))
    judged = {finding.method for finding in findings}
    for name in [] if judged <= set(before) else before:
        verdict = found.models[name].verdict
        state = _state(verdict == STILL_VISIBLE, False)
        findings.append(Finding(name, CONTROL_SEEN, state, without_resolution(verdict)))
    return findings


def check_result(result: Result, conditions: Conditions, source: str) -> list[Finding]:
    """What each condition comes to; UserError where the result cannot be judged."""
    _check_ranges(conditions)
    if conditions.min_quality is None and conditions.chance_margin is None and conditions.max_utility_loss is None:
        raise UserError("check: nothing is asked: give --min-q, --at-chance or --max-accuracy-loss")
    if conditions.bounded and conditions.min_quality is None and conditions.chance_margin is None:
        raise UserError("check: --bounded is for Q, of which nothing is asked: give --min-q or --at-chance as well")
    if result.failures:
        raise UserError(f"{source}: {counted(len(result.failures), 'job')} failed, so it is not judged")
    return [found for game in result.games for found in _check_game(game, result.sweep, conditions, source)]


def _check_ranges(conditions: Conditions) -> None:
    for name, value, least, most in (
        ("--min-q", conditions.min_quality, 0, 1),
        ("--margin", conditions.chance_margin, 0, 1),
        ("--max-accuracy-loss", conditions.max_utility_loss, 0, 1),
    ):
        if value is not None and not least <= value <= most:
            raise UserError(f"check: {name} {value:g} is not between {least} and {most}")
        if value == 1 and name != "--min-q":
            raise UserError(f"check: {name} 1 asks nothing, since no more than 1 is possible: give less than 1")


def _check_game(game: GameResult, sweep: str | None, asked: Conditions, source: str) -> list[Finding]:
    where = f"{source}, {sweep} = {game.value}" if sweep is not None else source
    absent = [name for name in asked.adversaries if name not in game.spec.get("adversaries", {})]
    if absent:
        raise UserError(f"{where}: {listed(absent)} did not take part, so every Q may be too high; run it with them")
    tested = [name for name in game.methods if role_of(game, name) == "tested"]
    names = [_called(game, name) for name in asked.methods] or tested
    for name in names:
        if name not in game.methods:
            raise UserError(f"{where}: {unknown_name('method', name, game.methods)}")
    if not names:
        raise UserError(f"{where}: there is no method to judge besides Retrain and None; name one with --method")
    found = []
    for name in names:
        method = game.methods[name]
        if lacks_pairs(game, method) or method.n_pairs < MIN_PAIRS or method.interval is None:
            raise UserError(
                f"{where}: {name} has {counted(method.n_pairs, 'pair')}, but it is judged only if all were completed, "
                f"there are at least {MIN_PAIRS}, and an adversary told any points apart"
            )
        label = name if sweep is None else f"{name} at {sweep} = {game.value}"
        found += _findings(game, label, name, method, asked)
    asks_q = asked.min_quality is not None or asked.chance_margin is not None
    if asks_q and any(role_of(game, name) == "tested" for name in names):
        at = "" if sweep is None else f" at {sweep} = {game.value}"
        found += [
            Finding(f"{name}{at}", CONTROLS_HOLD, "inconclusive", line)
            for name, line in controls_that_fail(game).items()
        ]
    return found


def _findings(game: GameResult, label: str, name: str, method: MethodResult, asked: Conditions) -> list[Finding]:
    interval = method.bounded_interval if asked.bounded else method.interval
    if interval is None:
        raise UserError(f"check: no interval for pairs of any distribution is known of {name}: leave out --bounded")
    low, high = interval
    is_bounded = asked.bounded or game.spec.get("interval") == "bounded"
    by = "for pairs of any distribution" if is_bounded else "if pairs are roughly normal"
    evidence = f"Q is in {outward(interval)} {by}"
    found = []
    if (gain := has_seen_unseen(game).get(name)) is not None:  # whatever its Q is, it says nothing
        why = f"it is more accurate on T than Retrain and None by {points(gain)}, so it has probably seen T"
        return [Finding(label, "Q says something of forgetting", "inconclusive", why)]
    but = _too_high(method)  # then nothing holds of it
    if asked.min_quality is not None:
        state = _state(low >= asked.min_quality and not but, high < asked.min_quality)
        found.append(Finding(label, f"Q ≥ {asked.min_quality:g}", state, evidence + but))
    if asked.chance_margin is not None:
        least = 1 - asked.chance_margin
        state = _state(low >= least - 1e-12 and not but, high < least - 1e-12)
        what = f"attackers do at most {asked.chance_margin:g} better than chance"
        found.append(Finding(label, what, state, f"their advantage is in {outward((1 - high, 1 - low))} {by}{but}"))
    if asked.max_utility_loss is not None:
        lost = loss_interval(game, name)
        if lost is None:
            raise UserError(f"check: what {name} lost in {game.utility_name} is not known: it needs Retrain or None")
        most = asked.max_utility_loss
        state = _state(is_within(lost[1], most), not is_within(lost[0], most))
        what = f"at most {most:g} of {game.utility_name} lost"
        evidence = f"below the lower of {yardsticks(game)} by {outward(lost)}, each end a bound by itself"
        found.append(Finding(label, what, state, evidence))
    return found


def _too_high(method: MethodResult) -> str:
    """Why Q is, where it is."""
    if not method.missed:
        return ""
    return f"; but the scores of {listed(method.missed)} tell forgotten points from unseen ones, and thresholds miss it"


def _state(holds: bool, fails: bool) -> State:
    return "holds" if holds else "does not hold" if fails else "inconclusive"


def overall(findings: Sequence[Finding]) -> State:
    """Of all together: one that does not hold decides, then one that is inconclusive."""
    states = {found.state for found in findings}
    return next(state for state in ("does not hold", "inconclusive", "holds") if state in states)


EXIT_CODES: dict[State, int] = {"holds": 0, "does not hold": 1, "inconclusive": 3}


def warnings_in(result: Result | OneModelResult, methods: Sequence[str] = ()) -> list[str]:
    """What speaks against a result, whatever it says: its warnings, who lost accuracy, a control that is not there, and
    of one model what nobody has stated. Where `methods` are named, what is about other tested methods alone is not
    among it."""
    if isinstance(result, OneModelResult):
        lacking = [line] if (line := no_control(result)) else []
        return [*warnings_on(result), *lacking, *(f"nobody has stated: {sentence}" for sentence in unstated(result))]
    return [
        line
        for game in result.games
        for line in (*reservations(game), *no_controls(game))
        if not methods or _concerns(line, game, [_called(game, name) for name in methods])
    ]


def _concerns(line: str, game: GameResult, methods: Sequence[str]) -> bool:
    """Whether a warning says something of these methods, of a reference, or of no method in particular."""
    named = [name for name in game.methods if re.search(rf"(?<![\w@.-]){re.escape(name)}(?![\w@-]|\.\w)", line)]
    others = [name for name in named if role_of(game, name) == "tested" and name not in methods]
    return len(others) < len(named) or not named


def _called(game: GameResult, name: str) -> str:
    """A method's own name; a point of a frontier may be named by its number, however that is written."""
    of, at, value = name.rpartition(AT)
    if name in game.methods or not at:
        return name
    points = {other: other.rpartition(AT) for other in game.methods}
    return next((other for other, (own, _, its) in points.items() if own == of and _is_number(its, value)), name)


def _is_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def basis(result: Result | OneModelResult) -> str:
    """Against whom and on how much: one line for each game."""
    if isinstance(result, OneModelResult):
        players = list(dict.fromkeys(name for model in result.models.values() for name in model.tests))
        of_f = counted(result.n_forget, result.kind.rstrip("s"))
        return f"one model, {of_f} of F; tests {names_of_tests(players)}; visible where p ≤ {1 - result.level:.3g}"
    lines = []
    for game in result.games:
        floor = "" if game.noise_floor is None else f"; by chance alone Q ≥ {plain(1 - game.noise_floor.q95)}"
        players = list(game.spec.get("adversaries", {}))
        lines.append(
            f"{'' if result.sweep is None else f'{result.sweep} = {game.value}: '}"
            f"{counted(int(game.spec.get('pairs', 0)), 'swap pair')}; adversaries {listed(players)}{floor}"
        )
    return "\n".join(lines)


def junit(findings: Sequence[Finding], source: str) -> str:
    """JUnit's XML: what does not hold is a failure, what is inconclusive an error."""
    cases = []
    for found in findings:
        inside = {
            "holds": "",
            "does not hold": f"<failure message={quoteattr(found.evidence)}/>",
            "inconclusive": f'<error type="inconclusive" message={quoteattr(found.evidence)}/>',
        }[found.state]
        cases.append(
            f"<testcase classname={quoteattr(found.method)} name={quoteattr(found.condition)}>{inside}</testcase>"
        )
    n_failed = sum(found.state == "does not hold" for found in findings)
    n_errors = sum(found.state == "inconclusive" for found in findings)
    head = f'<testsuite name={quoteattr(f"forgetgauge check {source}")} tests="{len(findings)}" failures="{n_failed}"'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head} errors="{n_errors}">\n' + "\n".join(cases) + "\n</testsuite>\n"
    )


def summary(findings: Sequence[Finding], source: str, on: str) -> str:
    """Markdown, for a page that lists what a pipeline found."""
    rows = "\n".join(f"| {f.method} | {f.condition} | **{f.state}** | {f.evidence} |" for f in findings)
    head = f"### {escape(source)}: {overall(findings)}\n\n| method | asked | | found |\n|---|---|---|---|"
    return f"{head}\n{rows}\n\n{on}\n"
