"""One marker for each method, the same in every picture of a page, told apart by form and by colour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forgetgauge.results.record import Result, by_quality, role_of

CIRCLE, SQUARE, DIAMOND, UP, DOWN, PLUS, CROSS, RING = range(8)
"""The marks by number, in the order in which the template draws them."""
_FORMS = (CIRCLE, UP, DOWN, PLUS, CROSS, RING)
_COLOURS = ("c0", "c1", "c3", "c4", "c5", "c6")


@dataclass(frozen=True)
class Marker:
    """How a method is drawn."""

    form: int
    colour: str
    """A class of the style sheet."""
    dashed: bool = False


REFERENCES = {"retrain": Marker(DIAMOND, "retrain"), "none": Marker(SQUARE, "none")}


def markers_of(result: Result) -> dict[str, Marker]:
    """Of every method: Retrain is a diamond, None a square, the others as they come, highest Q first."""
    roles = {name: role_of(game, name) for game in result.games for name, _ in by_quality(game.methods)}
    tested = tested_markers(name for name, role in roles.items() if role == "tested")
    return {name: REFERENCES.get(role) or tested[name] for name, role in roles.items()}


def tested_markers(names: Iterable[str]) -> dict[str, Marker]:
    """Forms and colours go round at different paces: 36 methods differ."""
    return {
        name: Marker(_FORMS[i % len(_FORMS)], _COLOURS[(i + i // len(_FORMS)) % len(_COLOURS)], i >= len(_FORMS))
        for i, name in enumerate(names)
    }
