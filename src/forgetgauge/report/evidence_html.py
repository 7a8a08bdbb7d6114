"""Evidence from one model as one HTML file: the verdict first, then the numbers, then what they rest on.

It loads nothing, runs nothing, and the same evidence gives the same bytes; every name is escaped.
"""

from __future__ import annotations

from forgetgauge.report.html import template
from forgetgauge.report.meaning import meaning
from forgetgauge.report.one_model import chance
from forgetgauge.results.one_model import RESTS_ON, ModelResult, OneModelResult, TestResult
from forgetgauge.wording import counted

UNITS = {"points": "point", "groups": "group", "pairs": "pair"}
"""What one unit of each kind of draw is."""
LIMITS = (
    "Not distinguishable is not deleted: a stronger attacker, or more points, may see more.",
    "It is about this model and this draw. Another training, or other points, may end otherwise; how a method does "
    "over splits and trainings is measured by Q, which this is not.",
    "p is valid for one look. Whoever tests again after every attempt to unlearn has to count the attempts.",
)
"""What a test of one model does not say."""


def render_evidence_page(found: OneModelResult) -> str:
    """The whole page."""
    return template("evidence.html.j2").render(
        found=found,
        models=[(name, model, _tests(model)) for name, model in found.models.items()],
        meaning=meaning,
        chance=chance,
        drawn=drawn(found),
        rests_on=[(sentence, found.stated.get(name, False)) for name, sentence in RESTS_ON.items()],
        limits=LIMITS,
    )


def drawn(found: OneModelResult) -> str:
    """`100 points forgotten, 100 kept unseen`; of matched pairs, one point of each."""
    units = counted(found.n_forget, UNITS.get(found.kind, "unit"))
    if found.kind == "pairs":
        return f"{units}, one point of each forgotten and the other kept unseen"
    return f"{units} forgotten, {found.n_forget} kept unseen"


def _tests(model: ModelResult) -> list[tuple[str, TestResult]]:
    """The one least like chance first."""
    return sorted(model.tests.items(), key=lambda one: one[1].log10_p)
