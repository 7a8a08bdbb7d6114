"""Evidence from one model, in a terminal and as one HTML file: the verdict first, then the numbers, then what they rest
on.

The page loads nothing, runs nothing, and the same evidence gives the same bytes; every name is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping

from forgetgauge.game.one_model import RANKS
from forgetgauge.report.html import template, with_digest
from forgetgauge.report.meaning import meaning
from forgetgauge.report.table import align
from forgetgauge.results.one_model import (
    DRAWN,
    LEAST_ALIKE,
    BlindResult,
    ModelResult,
    OneModelResult,
    TestResult,
    controls,
    no_control,
    rests_on,
    seen_by,
    unstated,
    warnings_on,
)
from forgetgauge.results.verdict import NOT_EVALUABLE, STILL_VISIBLE
from forgetgauge.wording import bound, chance, counted, listed, plain, signed

UNITS = {"points": "point", "groups": "group", "pairs": "pair"}
"""What one unit of each kind of draw is."""
LIMITS = (
    "Not distinguishable is not deleted: a stronger attacker, or more points, may see more.",
    "It is about this model and these points. Another training, or other points, may end otherwise; how a method does "
    "over splits and trainings is measured by Q, which this is not.",
    "p is valid for one look. Whoever tests again after every attempt to unlearn has to count the attempts.",
)
"""What a test of one model does not say."""
LIMIT_OF_REQUESTS = (
    "The forgotten points were not drawn at random: p is valid only if they are like the unseen ones in every respect "
    "but the training, which is argued and not shown. Therefore no ε is stated either."
)

AS_IT_HAS_TO_BE = "the model from before the deletion has to be"
"""What is said of a control that is visible."""


def render_evidence(found: OneModelResult) -> str:
    """The verdict on each model first, then its numbers, then what they rest on."""
    blocks = []
    for name, model in found.models.items():
        what = f"{name}: {model.verdict}"
        if model.reason:
            what += f". {model.reason}"
        elif model.verdict != STILL_VISIBLE:
            what += f" ({seen_by(model)})"
        elif name in controls(found):
            what += f", as {AS_IT_HAS_TO_BE}"
        blocks += [what, _table(model.tests), _numbers(model, found)]
    blocks += [] if found.blind is None else _blind(found.blind, found.level)
    blocks.append(_origin(found))
    lacking = unstated(found)
    if lacking:
        blocks.append("It rests on what nobody has stated yet: " + "; ".join(lacking) + ".")
    blocks += not_said(found)
    return "\n\n".join([*blocks, *(f"warning: {line}" for line in warnings_on(found))])


def not_said(found: OneModelResult) -> list[str]:
    """What the verdicts leave open, in sentences."""
    return [line for line in (no_control(found), by_chance(found)) if line]


def by_chance(found: OneModelResult) -> str:
    """That p allows for the choice among a model's own tests alone, where several models were tested."""
    n_models = len(found.models) - len(controls(found))
    if n_models < 2:
        return ""
    share = 1 - found.level
    return (
        f"Each of these {n_models} models is tested by itself: p allows for the choice among its own tests, not among "
        f"the models. Of {n_models} that know nothing of F, at most {share * n_models:.3g} would be "
        "called still visible by chance on average; to judge all of them at once, multiply the smallest p by their "
        "number."
    )


def _table(tests: Mapping[str, TestResult], who: str = "adversary") -> str:
    rows = [[who, "advantage", "p", "right answers"]]
    rows += [
        [name, signed(test.advantage), chance(test.log10_p), f"{test.n_right} of {test.n_asked}"]
        for name, test in sorted(tests.items(), key=lambda one: one[1].log10_p)
    ]
    return align(rows)


def _numbers(model: ModelResult, found: OneModelResult) -> str:
    """p, and the bound of ε where the model can be judged."""
    line = ""
    if any(test.by == RANKS for test in model.tests.values()):
        unit, score = ("group", "mean score") if found.kind == "groups" else ("point", "score")
        line = f"Of every {unit} of F and every {unit} of T it is asked which has the larger {score}. "
    line += f"Corrected for the choice among {counted(len(model.tests), 'test')}: p = {chance(model.log10_p)}"
    line += "" if found.origin == DRAWN else ", if F and T are exchangeable"
    if model.verdict == NOT_EVALUABLE:
        return f"{line}. It is no evidence here."
    if model.epsilon is None:
        return f"{line}."
    line += (
        f". With {100 * found.level:g} % confidence a certified removal of all of F together has "
        f"ε ≥ {bound(model.epsilon)} (δ = {found.delta:g})"
    )
    if model.point_epsilon is not None:
        line += f", of each point alone ε ≥ {bound(model.point_epsilon)}"
    return line + "."


def _blind(blind: BlindResult, level: float) -> list[str]:
    """Whether F and T were told apart without the model."""
    if blind.log10_p is None:
        what = "too few points to teach a classifier" if blind.by else "no features and no reference models in the file"
        return [f"Without the model: F and T could not be compared ({what})."]
    said = "they can be told apart" if blind.told_apart else "no difference was found"
    columns = f" ({counted(blind.n_columns, 'column')})" if blind.n_columns else ""
    looked = listed([f"{name}{columns}" if name == "raw points" else f"the outputs of {name}" for name in blind.by])
    line = (
        f"Without the model, F and T were compared by {looked}: {said} (p = {chance(blind.log10_p)}, corrected for "
        f"{counted(len(blind.tests), 'test')})."
    )
    if not blind.told_apart and blind.missed < 1:
        line += (
            f" With {100 * level:g} % confidence they differ by an advantage of at most {plain(blind.missed)} by "
            f"themselves, {looked_for(blind)}; what the model shows must exceed it."
        )
    if blind.alike is not None and blind.alike <= LEAST_ALIKE:
        line += (
            " Reference models do not count for what may have been missed: at T their rank correlation with the model "
            f"is not shown to be above {plain(LEAST_ALIKE)}."
        )
    return [line, _table(blind.tests, "without the model")]


def looked_for(blind: BlindResult) -> str:
    """Which differences between F and T are covered by the limit of what was missed."""
    if blind.alike is not None and blind.alike > LEAST_ALIKE:
        return "as far as reference models show it"
    return "if that is a linear shift of normal columns or what a random forest finds"


def _origin(found: OneModelResult) -> str:
    if found.origin != DRAWN:
        return (
            f"Evidence from one model, not Q: F is {counted(found.n_forget, 'point')} whose deletion was asked for, "
            f"T {counted(found.n_unseen or 0, 'point')} that no training saw. F was not drawn at random: that F and T "
            "are exchangeable is argued, not drawn, and p is valid only if it is true; no ε is stated."
        )
    drawn = counted(found.n_forget, "group" if found.kind == "groups" else "point")
    drawn += {"points": "", "groups": " of points", "pairs": ", one of each matched pair,"}[found.kind]
    whose = "the tester's own, so that nobody else can know that it was not repeated" if found.own_draw else "from "
    whose += "" if found.own_draw else found.seed_from
    shown = "" if found.list_shown else " Without --points nobody can know whether all drawn points are tested."
    if not found.committed_first:
        shown += " That the list was committed to before the seed was known is not shown."
    return (
        f"Evidence from one model, not Q: F is {drawn} drawn at random from a list whose SHA-256 is "
        f"{found.commitment[:16]}…; the seed is {whose}.{shown} p is exact for a model that knows nothing of the draw."
    )


# -- as one HTML file --------------------------------------------------------------------------------------------------


def render_evidence_page(found: OneModelResult) -> str:
    """The whole page. Its last line is the digest of the others."""
    lacking = unstated(found)
    page = template("evidence.html.j2").render(
        found=found,
        models=[(name, model, _tests(model)) for name, model in found.models.items()],
        meaning=meaning,
        has_to_be=[name for name in controls(found) if found.models[name].verdict == STILL_VISIBLE],
        as_it_has_to_be=AS_IT_HAS_TO_BE,
        chance=chance,
        looked_for=looked_for,
        least_alike=LEAST_ALIKE,
        drawn=drawn(found),
        was_drawn=was_drawn(found),
        is_evaluable=lambda model: model.verdict != NOT_EVALUABLE,
        rests_on=[(sentence, sentence not in lacking) for sentence in rests_on(found.origin).values()],
        limits=limits(found),
        warnings=warnings_on(found),
    )
    return with_digest(page)


def was_drawn(found: OneModelResult) -> bool:
    """Whether F was drawn at random, and not asked for by those whom it is about."""
    return found.origin == DRAWN


def limits(found: OneModelResult) -> list[str]:
    """What the test does not say."""
    return [*LIMITS, *(() if was_drawn(found) else (LIMIT_OF_REQUESTS,)), *not_said(found)]


def drawn(found: OneModelResult) -> str:
    """`100 points forgotten, 100 kept unseen`; of matched pairs, one point of each; of requests, those that came."""
    units = counted(found.n_forget, UNITS.get(found.kind, "unit"))
    if not was_drawn(found):
        return f"{units} whose deletion was asked for, not drawn at random"
    if found.kind == "pairs":
        return f"{units}, one point of each forgotten and the other kept unseen"
    return f"{units} forgotten, {found.n_forget} kept unseen"


def _tests(model: ModelResult) -> list[tuple[str, TestResult]]:
    """The one least like chance first."""
    return sorted(model.tests.items(), key=lambda one: one[1].log10_p)
