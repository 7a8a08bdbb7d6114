"""The privacy budget that a game's models spent, as one line to stand under its table.

A method that starts from the original has the original's ε, whatever it did to the model since: its own steps are in no
accountant's book. So there are two numbers to tell, that of the originals and that of models trained anew on R.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forgetgauge.results.record import GameResult
from forgetgauge.results.roles import role_of
from forgetgauge.wording import plain

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
