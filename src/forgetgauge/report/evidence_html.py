"""Evidence from one model as one HTML file: the verdict first, then the numbers, then what they rest on.

It loads nothing, runs nothing, and the same evidence gives the same bytes; every name is escaped.
"""

from __future__ import annotations

from forgetgauge.report.html import template, with_digest
from forgetgauge.report.meaning import meaning
from forgetgauge.report.one_model import AS_IT_HAS_TO_BE, chance, looked_for, not_said
from forgetgauge.results.one_model import (
    DRAWN,
    LEAST_ALIKE,
    ModelResult,
    OneModelResult,
    TestResult,
    controls,
    rests_on,
    unstated,
    warnings_on,
)
from forgetgauge.results.verdict import NOT_EVALUABLE, STILL_VISIBLE
from forgetgauge.wording import counted

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
