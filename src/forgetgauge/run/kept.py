"""What `run.json` keeps, read back: checked as a run file is, since it may be somebody else's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from forgetgauge.errors import UserError
from forgetgauge.plan.game import Game, game_from_json, too_many_jobs
from forgetgauge.plan.parameters import Range
from forgetgauge.plan.spec import PARAMETERS
from forgetgauge.plan.strength import ROUNDS
from forgetgauge.records import validated
from forgetgauge.store.runfolder import RunFolder

MOST_POINTS = 10**8
"""Most points of a data set, all of which are drawn from at once."""


@dataclass(frozen=True)
class Kept:
    """The whole of `run.json` beside what says that it is one."""

    __pydantic_config__: ClassVar[Any] = {"strict": True, "allow_inf_nan": False}

    games: list[dict[str, Any]]
    keep_weights: bool
    environment: dict[str, str]
    sweep: str | None = None
    source: str = ""
    scored: list[str] = field(default_factory=list)
    job_seconds: float | None = None


def read_kept(folder: RunFolder) -> tuple[Kept, list[Game]]:
    """(what was asked for, its games), or one line that names what is wrong."""
    run = folder.read_run()
    kept = validated(folder.run_file, Kept, run, "run")
    games = []
    for number, record in enumerate(kept.games):
        validated(folder.run_file, Game, record, f"games.{number}")
        try:
            game = game_from_json(record)
            problem = _problem(game)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"damaged: {type(error).__name__}: {error}"
        if problem:
            raise UserError(f"{folder.run_file}: games.{number}: {problem}")
        games.append(game)
    if not games:
        raise UserError(f"{folder.run_file}: games: there is none")
    return kept, games


def _problem(game: Game) -> str:
    """What no run file could have asked for; empty where all is as it should be."""
    for parameter in PARAMETERS.values():
        name, within = parameter.in_game, parameter.within
        if name is None or within is None or (value := getattr(game, name, None)) is None:
            continue
        odd = [one for one in (value if isinstance(value, tuple) else [value]) if one not in within]
        if odd:
            return f"{name} = {odd[0]!r} is not {within}"
    if not 1 <= game.n_points <= MOST_POINTS:
        return f"n_points = {game.n_points} is not between 1 and {MOST_POINTS:,}"
    return too_many_jobs(game.pairs, game.seeds, len(game.methods), len(game.adversaries)) or _odd_strength(game)


def _odd_strength(game: Game) -> str:
    """What no run chose or was asked to; empty where all is as it should be."""
    price, points, shadows = (PARAMETERS[f"tuning.{name}"].within for name in ("price", "points", "shadows"))
    asked: list[tuple[str, float, Range | None]] = [
        (f"frontier {key}", value, points) for key, value in (game.frontier or {}).items() if key == "points"
    ]
    if game.frontier is not None and not asked:
        return "frontier has no points"
    if game.price is not None:
        asked += [("price", game.price.price, price), ("shadows", game.price.shadows, shadows)]
    for name, method in game.methods.items():
        if method.tuning is not None:
            if game.price is None:
                return f"methods.{name}: a strength is chosen, but there is no price"
            asked += [
                (f"methods.{name}.tuning.points", method.tuning.points, points),
                (f"methods.{name}.tuning.round", method.tuning.round, Range(least=1, most=ROUNDS)),
                (f"methods.{name}.tuning.tried", len(method.tuning.tried), Range(least=1, most=ROUNDS * 100)),
            ]
        elif method.variant is not None and method.variant.value is None:
            return f"methods.{name}.variant: at which strength is not said"
    odd = [f"{name} = {value} is not {within}" for name, value, within in asked if within and value not in within]
    return odd[0] if odd else ""
