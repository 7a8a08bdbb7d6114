"""Numbers and lists as people write them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

NARROW, JOINED = "\u202f", "\u00a0"
"""Spaces at which no line breaks."""


def visible(text: str) -> str:
    """Text of others as it may be printed: what would move a terminal's cursor or turn the order of letters is spelled
    out, `\\x1b`."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_text(text: str) -> bool:
    """Whether it can be written down: a lone half of a character, which is what a byte that is not UTF-8 becomes on a
    command line, cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""All control characters but the tab and the end of a line, and those that turn the direction of writing."""


def plain(value: float) -> str:
    """A number with three decimals."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """Three decimals with a sign, except for what rounds to zero."""
    text = f"{value:+.3f}".replace("-", "−")
    return "0.000" if text[1:] == "0.000" else text


def bracket(interval: tuple[float, float]) -> str:
    """[low, high], on one line."""
    return f"[{plain(interval[0])},{JOINED}{plain(interval[1])}]"


def outward(interval: tuple[float, float]) -> str:
    """The same, its ends rounded outwards: beside a limit, what is shown never says more than is known."""
    low, high = math.floor(1000 * interval[0] + 1e-9) / 1000, math.ceil(1000 * interval[1] - 1e-9) / 1000
    return bracket((low, high))


def signed_bracket(interval: tuple[float, float]) -> str:
    """An interval whose ends have signs."""
    return f"[{signed(interval[0])},{JOINED}{signed(interval[1])}]"


INTERVALS = {"student": "pairs taken as roughly normal", "bounded": "for pairs of any distribution"}
"""What the interval of Q takes for granted, by its name in a run file."""


def interval_basis(basis: str | None, kind: str) -> str:
    """`over pairs (pairs taken as roughly normal)`, `given these models`."""
    return f"{basis} ({INTERVALS[kind]})" if basis == "over pairs" else basis or ""


def intervals_are_for(basis: str, kind: str) -> str:
    """What the intervals are for, as a sentence."""
    if basis != "over pairs":
        return "Intervals are for these models only: another split or training may differ by more."
    holds = "assuming that pairs are roughly normal" if kind == "student" else "whatever the distribution of pairs"
    return f"Intervals are for new splits and trainings, {holds}."


def bound(value: float | None) -> str:
    """A lower bound: two decimals, rounded down, so that what is shown holds too; a dash where there is none."""
    return "–" if value is None else f"{math.floor(100 * value + 1e-9) / 100:.2f}"


def p_value(value: float) -> str:
    """A p-value: two decimals from 0.1 on, below that one significant digit."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}" if value >= 0.0001 else "< 0.0001"


def chance(log10_p: float) -> str:
    """`0.042`, `4e-7`: a small p is rounded up, so that what is shown holds too."""
    if log10_p > -3:
        return plain(10**log10_p)
    exponent = int(log10_p // 1)
    digit = -int((1e-9 - 10 ** (log10_p - exponent)) // 1)
    return f"{digit}e{exponent}" if digit < 10 else f"1e{exponent + 1}"


def tau_text(value: float | None) -> str:
    """A correlation with two decimals; a dash where there is none."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in percent, with one decimal."""
    return f"{100 * share:.1f}{NARROW}%"


def count(value: float) -> str:
    """A whole number with thin spaces at the thousands."""
    return f"{value:,.0f}".replace(",", NARROW)


def seconds(value: float) -> str:
    """Seconds with two significant digits; whole seconds from 10 on."""
    return f"{count(value) if value >= 10 else f'{value:.2g}'}{NARROW}s"


def setting(value: Any) -> str:
    """A parameter as it stands in a run file, near enough; a mapping as `key = value` pairs."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {setting(inner)}" for key, inner in value.items()) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def capital(text: str) -> str:
    """With its first letter large."""
    return text[:1].upper() + text[1:]


def shortened(text: str, most: int) -> str:
    """At most so many letters, the last of them an ellipsis where there are more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(n: int, noun: str) -> str:
    """A number with its noun: `1 pair`, `3 pairs`."""
    return f"{n} {noun}{'s' * (n != 1)}"
