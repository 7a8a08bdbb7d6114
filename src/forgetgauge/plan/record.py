"""Games as plain JSON and back: what `run.json` holds, so that a run can be scored and reported without its sources."""

from __future__ import annotations

import dataclasses
from typing import Any

from forgetgauge.plan.graph import Game, Method, Named


def game_to_json(game: Game) -> dict[str, Any]:
    """Plain JSON."""
    return dataclasses.asdict(game)


def game_from_json(record: dict[str, Any]) -> Game:
    """The game again."""
    nested = {
        "data": Named(**record["data"]),
        "learner": Named(**record["learner"]),
        "methods": {
            name: Method(**{**method, "unlearner": Named(**method["unlearner"])})
            for name, method in record["methods"].items()
        },
        "adversaries": {name: Named(**adversary) for name, adversary in record["adversaries"].items()},
    }
    return Game(**{**record, **nested})
