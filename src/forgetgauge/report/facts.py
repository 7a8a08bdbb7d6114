"""Numbers that learners and methods state about their models, per method and game: a table, and a line on budgets.

A method that starts from the original has the original's ε, whatever it did to the model since: its own steps are in no
accountant's book. So of a budget there are two numbers, that of the originals and that of models trained anew on R.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from forgetgauge.results.record import GameResult, Result
from forgetgauge.results.roles import by_quality, role_of
from forgetgauge.wording import plain, setting

EXPLAINED = (
    "Averages over a method’s models, as the learner and the method tell them. What a learner tells (spent_epsilon, "
    "say) is of the training that made the model: an unlearning method’s own steps are in no accountant’s book."
)


@dataclass(frozen=True)
class FactTable:
    """What was stated; a dash where nothing was."""

    heads: list[str]
    rows: list[list[str]]


def facts_table(result: Result) -> FactTable | None:
    """One column per fact, in the order in which they are first met; None where no method states any."""
    stated = [(game.value, name, method.facts) for game in result.games for name, method in by_quality(game.methods)]
    columns = list(dict.fromkeys(fact for _, _, facts in stated for fact in facts))
    if not columns:
        return None
    where = [] if result.sweep is None else [result.sweep]
    rows = [
        [*([setting(value)] if where else []), name, *(_shown(facts.get(column)) for column in columns)]
        for value, name, facts in stated
        if facts
    ]
    return FactTable([*where, "method", *columns], rows)


def _shown(value: float | None) -> str:
    """At most three decimals, or three digits that say something where the number is small; a mean of 0.6 is 0.6."""
    if value is None:
        return "–"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.1 else f"{value:.3g}"


SPENT, TARGET, NOISE = "spent_epsilon", "target_epsilon", "noise_multiplier"
"""Facts of a learner that keeps such a book (`learn/dp_sgd.py`)."""


def spent_budget(game: GameResult) -> str | None:
    """`Spent ε of a model: 7.993 original, 7.992 retrained; target 8.` None where no learner tells of a budget."""
    told: dict[str, Mapping[str, float]] = {}
    for whose, facts in _tellers(game):
        told.setdefault(whose, facts)
    if not told:
        return None
    spent = ", ".join(f"{_amount(facts)} {whose}" for whose, facts in sorted(told.items()))
    targets = dict.fromkeys(f"{facts[TARGET]:.4g}" for facts in told.values() if TARGET in facts)
    return f"Spent ε of a model: {spent}{'; target ' + ', '.join(targets) if targets else ''}."


def _tellers(game: GameResult) -> Iterator[tuple[str, Mapping[str, float]]]:
    """(`original` or `retrained`, facts) of each method that tells of a budget."""
    for name, method in game.methods.items():
        if SPENT in method.facts or method.facts.get(NOISE) == 0:
            yield ("original" if _starts_from_original(game, name) else "retrained"), method.facts


def _starts_from_original(game: GameResult, method: str) -> bool:
    retrains = role_of(game, method) == "retrain"
    return bool(game.spec.get("methods", {}).get(method, {}).get("uses_original", not retrains))


def _amount(facts: Mapping[str, float]) -> str:
    """Without noise there is no bound."""
    return plain(facts[SPENT]) if SPENT in facts else "∞"
