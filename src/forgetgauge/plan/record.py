"""Games as plain JSON and back: what `run.json` holds, so that a run can be scored and reported without its sources."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from forgetgauge.plan.graph import Game, Method, Opponent
from forgetgauge.plan.jobs import Named


def game_to_json(game: Game) -> dict[str, Any]:
    """Plain JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(game)))
    return plain


def game_from_json(record: dict[str, Any]) -> Game:
    """The game again."""
    nested = {
        "data": _named(record["data"]),
        "learner": _named(record["learner"]),
        "methods": {name: _method(method) for name, method in record["methods"].items()},
        "adversaries": {name: _opponent(opponent) for name, opponent in record["adversaries"].items()},
        "queries": tuple(record["queries"]),
    }
    return Game(**{**record, **nested})


def _named(record: dict[str, Any]) -> Named:
    return Named(**{**record, "not_covered": tuple(record.get("not_covered", ()))})


def _method(record: dict[str, Any]) -> Method:
    learner = _named(record["learner"]) if record["learner"] else None
    return Method(**{**record, "unlearner": _named(record["unlearner"]), "learner": learner})


def _opponent(record: dict[str, Any]) -> Opponent:
    return Opponent(_named(record["adversary"]), tuple(record["needs"]), tuple(record["columns"]))
