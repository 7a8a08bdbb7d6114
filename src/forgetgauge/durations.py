"""Durations as people type them."""

from __future__ import annotations

import re

from forgetgauge.errors import UserError


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `8m`, `2h` or a bare number of seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not match:
        raise UserError(f"--time-limit {text}: write a number and s, m or h, e.g. 8m")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
