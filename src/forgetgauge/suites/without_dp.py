"""The recipes that were tried for Table 3's column without privacy, in a loop of their own: what they took.

`benchmarks/without_dp.py` trains them and writes the record; the notes under Table 3 say what came of it.
"""

from __future__ import annotations

from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.files import read_json
from forgetgauge.records import validated
from forgetgauge.suites.device_time import Spent

FILE = "without_dp.json"
RECIPES = "recipes without privacy, one training each"
"""What the page's table of times calls them."""


def spent_on_recipes(path: Path) -> Spent | None:
    """What they took; None where nobody wrote it down."""
    record = read_json(path)
    if not isinstance(record, dict):
        raise UserError(f"{path}: no record of recipes: it is no table")
    if "seconds" not in record:
        return None
    return Spent(
        RECIPES, "", validated(path, str, record.get("device", "unknown")), validated(path, float, record["seconds"])
    )
