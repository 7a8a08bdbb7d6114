"""Which methods of a game are references: Retrain, the ideal, and None, which unlearns nothing."""

from __future__ import annotations

from forgetgauge.report.result import GameResult


def role_of(game: GameResult, method: str) -> str:
    """`retrain`, `none` or `tested`, by the unlearner's own name, which the method's id may hide."""
    unlearner = game.spec.get("methods", {}).get(method, {}).get("unlearner", {}).get("name", method)
    return unlearner if unlearner in ("retrain", "none") else "tested"
