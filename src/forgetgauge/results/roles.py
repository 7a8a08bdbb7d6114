"""Which methods of a game are references (Retrain, None), which of them lack pairs, and in which order they stand."""

from __future__ import annotations

from forgetgauge.results.record import GameResult, MethodResult


def role_of(game: GameResult, method: str) -> str:
    """`retrain`, `none` or `tested`, by the unlearner's own name, which the method's id may hide."""
    unlearner = game.spec.get("methods", {}).get(method, {}).get("unlearner", {}).get("name", method)
    return unlearner if unlearner in ("retrain", "none") else "tested"


def lacks_pairs(game: GameResult, method: MethodResult) -> bool:
    """Whether pairs of the game are missing: such a Q is of other splits than the others', and carries no verdict."""
    return method.n_pairs < int(game.spec.get("pairs", method.n_pairs))


def by_quality(methods: dict[str, MethodResult]) -> list[tuple[str, MethodResult]]:
    """Highest Q first, then by the plug-in (many are at 1); then methods that lack pairs, then those without a Q."""
    n_pairs = max((method.n_pairs for method in methods.values()), default=0)

    def order(item: tuple[str, MethodResult]) -> tuple[bool, bool, float, float, str]:
        name, method = item
        quality, plugin = (round(value or 0, 12) for value in (method.quality, method.quality_plugin))
        return method.quality is None, method.n_pairs < n_pairs, -quality, -plugin, name

    return sorted(methods.items(), key=order)


def pairs_behind(game: GameResult, method: MethodResult) -> str:
    """`8`, or `1 of 6`."""
    return f"{method.n_pairs} of {game.spec['pairs']}" if lacks_pairs(game, method) else str(method.n_pairs)
