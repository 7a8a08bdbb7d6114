"""Which methods of a game are references (Retrain, the ideal; None, which unlearns nothing), and which lack pairs."""

from __future__ import annotations

from forgetgauge.report.result import GameResult, MethodResult


def role_of(game: GameResult, method: str) -> str:
    """`retrain`, `none` or `tested`, by the unlearner's own name, which the method's id may hide."""
    unlearner = game.spec.get("methods", {}).get(method, {}).get("unlearner", {}).get("name", method)
    return unlearner if unlearner in ("retrain", "none") else "tested"


def lacks_pairs(game: GameResult, method: MethodResult) -> bool:
    """Whether pairs of the game are missing: such a Q is of other splits than the others', and carries no verdict."""
    return method.n_pairs < int(game.spec.get("pairs", method.n_pairs))
