"""What methods cost a language model in perplexity, beside Q: for the terminal, the report and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forgetgauge.report.settings import ACCURACIES
from forgetgauge.results.record import GameResult, MethodResult, by_quality, lacks_pairs, role_of

PARTS = tuple(part for part in ACCURACIES if part != "forget")
"""Where a price is paid: on F a model should be the worse for it."""
EXPLAINED = (
    "Perplexity: e to the mean loss of a counted token, averaged over models; 1 at best. What a method costs is told "
    "on unseen records, as a multiple of what Retrain and None have there."
)


@dataclass(frozen=True)
class PerplexityTable:
    """A row for each method, highest Q first."""

    heads: list[str]
    rows: list[list[str]]


def perplexities(method: MethodResult) -> dict[str, float]:
    """Part of the data -> a language model's perplexity there; nothing of other models."""
    return {part: found for part in PARTS if (found := method.facts.get(f"perplexity, {part}")) is not None}


def perplexity_table(game: GameResult) -> PerplexityTable | None:
    """Of each part that was measured, and how many times as large it is on unseen records; None of other tasks."""
    known = {name: perplexities(method) for name, method in game.methods.items()}
    parts = [part for part in PARTS if any(part in found for found in known.values())]
    if not parts:
        return None
    usual = {
        role: found["unseen"]
        for name, found in known.items()
        if (role := role_of(game, name)) != "tested" and "unseen" in found and not lacks_pairs(game, game.methods[name])
    }
    ends = [role for role in ("retrain", "none") if role in usual]
    rows = [
        [
            name,
            "–" if method.quality is None else f"{method.quality:.3f}",
            *(_figure(known[name], part) for part in parts),
            *("–" if lacks_pairs(game, method) else _times(known[name], usual[role]) for role in ends),
        ]
        for name, method in by_quality(game.methods)
    ]
    heads = [f"perplexity {part}" for part in parts] + [f"unseen, times {role.capitalize()}’s" for role in ends]
    return PerplexityTable(["method", "Q", *heads], rows)


def _figure(known: Mapping[str, float], part: str) -> str:
    """Of ruined models it has many digits, of which three say something."""
    if part not in known:
        return "–"
    return f"{known[part]:.2f}" if known[part] < 10_000 else f"{known[part]:.3g}"


def _times(known: Mapping[str, float], usual: float) -> str:
    return f"{known['unseen'] / usual:.2f}" if "unseen" in known else "–"
