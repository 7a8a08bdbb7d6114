"""Q against the number of queries of an adversary, as the report shows it."""

from __future__ import annotations

from dataclasses import dataclass

from forgetgauge.report.picture import Estimate, Overview, magnitude, overview
from forgetgauge.results.record import AdversaryResult, GameResult, MethodResult, by_quality


@dataclass(frozen=True)
class Strongest:
    """The adversary of largest |advantage| at some number of queries."""

    adversary: str
    quality: float
    """1 − its |advantage|: a plug-in maximum."""
    interval: tuple[float, float] | None
    """Interval of 1 − that adversary's |advantage|, the choice among adversaries not counted."""


@dataclass(frozen=True)
class StrongView:
    """Q against the number of queries."""

    queries: list[int]
    rows: list[tuple[str, list[Strongest | None]]]
    picture: Overview | None
    """None where there is one number of queries only."""

    @property
    def has_intervals(self) -> bool:
        """Whether pairs were enough for any."""
        return any(cell is not None and cell.interval is not None for _, cells in self.rows for cell in cells)


def strong_view(game: GameResult) -> StrongView | None:
    """None where no adversary had several queries."""
    queries = sorted({strong.queries for found in played_by_all(game) for strong in found.strong})
    if not queries:
        return None
    rows = [(name, [_strongest(method, q) for q in queries]) for name, method in by_quality(game.methods)]
    curves = {name: [_estimate_of(found) for found in way] for name, way in rows}
    return StrongView(queries, rows, overview(queries, curves, logarithmic=True) if len(queries) > 1 else None)


def _strongest(method: MethodResult, queries: int) -> Strongest | None:
    played = [
        (name, strong)
        for name, found in method.by_adversary.items()
        for strong in found.strong
        if strong.queries == queries
    ]
    if not played:
        return None
    name, strong = max(played, key=lambda item: abs(item[1].advantage))
    return Strongest(name, 1 - abs(strong.advantage), magnitude(strong.interval) if strong.interval else None)


def _estimate_of(found: Strongest | None) -> Estimate | None:
    return None if found is None else (found.quality, *(found.interval or (found.quality, found.quality)))


def played_by_all(game: GameResult) -> list[AdversaryResult]:
    """What every adversary achieved against every method."""
    return [found for method in game.methods.values() for found in method.by_adversary.values()]
