"""Whether a method's models are alike in accuracy: a pair whose models did not learn has nothing to show to anyone.

Q is an average over pairs, so one such pair raises it, and no average of accuracies tells.
"""

from __future__ import annotations

from forgetgauge.report.result import GameResult
from forgetgauge.report.wording import plain

APART = 0.1
"""Ten points between pairs: trainings of one recipe differ by a point or two."""


def uneven_accuracy(game: GameResult) -> str | None:
    """`Accuracy differs from pair to pair: none 0.100 to 0.520 (test).` None where all pairs are alike."""
    told = []
    for name, method in game.methods.items():
        where = next((part for part in ("test", "unseen") if part in method.accuracy_by_pair), None)
        if where is None:
            continue
        found = method.accuracy_by_pair[where]
        if max(found) - min(found) > APART:
            told.append(f"{name} {plain(min(found))} to {plain(max(found))} ({where})")
    if not told:
        return None
    return f"Accuracy differs from pair to pair: {', '.join(told)}. What was not learnt cannot be forgotten."
