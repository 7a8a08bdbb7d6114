"""Numbers that learners and methods tell about their models (a privacy budget spent, say), per method and game."""

from __future__ import annotations

from dataclasses import dataclass

from forgetgauge.results.record import Result
from forgetgauge.results.roles import by_quality
from forgetgauge.wording import setting

EXPLAINED = (
    "Averages over a method’s models, as the learner and the method tell them. What a learner tells (spent_epsilon, "
    "say) is of the training that made the model: an unlearning method’s own steps are in no accountant’s book."
)


@dataclass(frozen=True)
class FactTable:
    """What was told; a dash where nothing was."""

    heads: list[str]
    rows: list[list[str]]


def told_facts(result: Result) -> FactTable | None:
    """One column per fact, in the order in which they are first met; None where no method tells any."""
    told = [(game.value, name, method.facts) for game in result.games for name, method in by_quality(game.methods)]
    columns = list(dict.fromkeys(fact for _, _, facts in told for fact in facts))
    if not columns:
        return None
    where = [] if result.sweep is None else [result.sweep]
    rows = [
        [*([setting(value)] if where else []), name, *(_shown(facts.get(column)) for column in columns)]
        for value, name, facts in told
        if facts
    ]
    return FactTable([*where, "method", *columns], rows)


def _shown(value: float | None) -> str:
    """At most three decimals, or three digits that say something where the number is small; a mean of 0.6 is 0.6."""
    if value is None:
        return "–"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.1 else f"{value:.3g}"
