"""By which rule the strengths were chosen that are marked on the curves, and what they cost in the game."""

from __future__ import annotations

from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.suites.frontier import Frontiers
from forgetgauge.suites.paper import PRINTED

_EARLIER = (
    "by an earlier rule: the strongest of all that were tried and kept the price there (today the search stops at the "
    "first value that does not, decision 0043)"
)
_TODAY = "by the rule of today: the strongest before the first that did not keep the price (decision 0043)"


def marked_words(found: Frontiers) -> str:
    """Two sentences on the marked strengths; empty where they are defaults."""
    if not found.tuned:
        return ""
    how = _EARLIER if found.rule < PRICE_RULE else _TODAY
    return (
        f"The marked strengths were chosen on shadow models, {how}. In the game they cost, in points of accuracy below "
        f"the less accurate of Retrain and None: {', '.join(_cost(found, method) for method in found.curves)}."
    )


def _cost(found: Frontiers, method: str) -> str:
    """`SSD 1.8`; of what lacks pairs nothing is known."""
    curve = found.curves[method]
    point = next(p for value, p in zip(curve.values, curve.points, strict=True) if value == curve.chosen)
    ends = [end.accuracy for end in (found.none, found.retrain) if end.accuracy is not None]
    if point.accuracy is None or not ends:
        pairs = f" ({point.pairs} of {found.none.pairs} pairs)" if point.pairs < found.none.pairs else ""
        return f"{PRINTED[method]} unknown{pairs}"
    lost = f"{100 * (min(ends) - point.accuracy):.1f}".replace("-0.0", "0.0").replace("-", "−")
    return f"{PRINTED[method]} {lost}"
