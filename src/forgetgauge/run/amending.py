"""A run folder that is used again: what it holds is continued or added to, and never replaced without a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.plan.graph import Game, PlannedAdversary, game_from_json
from forgetgauge.plan.jobs import Named
from forgetgauge.run.resolve import resolve_adversary
from forgetgauge.store.runfolder import RunFolder

GROWS = frozenset({"methods", "adversaries", "pairs", "queries", "oracle_draws", "until", "metrics", "model_bytes"})
"""What may be added to a game without another result being lost."""


@dataclass(frozen=True)
class Amended:
    """The games to play in a folder, and what the user is told about what it held before."""

    games: list[Game]
    scored: list[str]
    """Adversaries that `score` added, which a run keeps."""
    notes: list[str]
    replaces: bool = False
    """Whether a result that the folder holds will not be part of the new one: it is to be set aside."""


def amended(folder: RunFolder, games: Sequence[Game], scored: Sequence[str], source: str) -> Amended:
    """Compare what is asked for with what the folder holds; UserError where that is the run of another file.

    An earlier result that the new one would not contain is kept beside it.
    """
    if not folder.run_file.exists() or not source:
        return Amended(list(games), list(scored), [])
    run = folder.read_run()
    before, known = [game_from_json(record) for record in run["games"]], run.get("source", "")
    recorded = {name: before[0].adversaries[name] for name in run.get("scored", ()) if name in before[0].adversaries}
    named = {name for game in games for name in game.adversaries}  # what the run file says of one goes first
    kept = {name: _resolved_anew(name, adversary) for name, adversary in recorded.items() if name not in named}
    games = [replace(game, adversaries={**game.adversaries, **kept}) for game in games]
    notes = [f"also attacked by {', '.join(kept)}, which score added to this folder"] if kept else []
    replaces = not all(any(_contains(game, old) for game in games) for old in before)
    if replaces and known and known != source:
        raise UserError(f"{folder.path}: holds the run of {known}; give {source} a folder of its own (--out)")
    return Amended(games, list(dict.fromkeys([*kept, *scored])), notes, replaces)


def _resolved_anew(name: str, adversary: PlannedAdversary) -> PlannedAdversary:
    """An adversary with the code that it has now."""
    how = adversary.adversary
    stated = {"version": how.version} if how.version else {}
    return resolve_adversary(name, {**how.params, **stated, **({} if how.name == name else {"method": how.name})})


def _contains(game: Game, old: Game) -> bool:
    """Whether every number of the old game is one of this game as well, but for edits of the user's own code."""
    game, old = _without_code(game), _without_code(old)
    fixed = [field.name for field in fields(Game) if field.name not in GROWS]
    as_many = game.pairs >= old.pairs or game.until is not None  # whose pairs are counted after the pilot
    chosen = _within(old.methods, game.methods) and _within(old.adversaries, game.adversaries)
    return as_many and chosen and all(getattr(game, name) == getattr(old, name) for name in fixed)


def _without_code(game: Game) -> Game:
    def plain(named: Named) -> Named:
        return replace(named, code="", version="", not_covered=())

    methods = {
        name: replace(one, unlearner=plain(one.unlearner), learner=plain(one.learner) if one.learner else None)
        for name, one in game.methods.items()
    }
    adversaries = {name: replace(one, adversary=plain(one.adversary)) for name, one in game.adversaries.items()}
    return replace(game, data=plain(game.data), learner=plain(game.learner), methods=methods, adversaries=adversaries)


def _within(part: Any, whole: Any) -> bool:
    return all(whole.get(name) == value for name, value in part.items())


def set_aside(folder: RunFolder) -> list[str]:
    """Copy the result to the first free name, where there is one; what the user is told of it."""
    if not folder.result.exists():
        return []
    content = folder.result.read_text("utf-8")
    number = next(n for n in range(1, 1_000_000) if not (folder.path / f"result-{n}.json").exists())
    folder.write_text(folder.path / f"result-{number}.json", content)
    return [f"the settings changed; the result before that is kept as result-{number}.json"]
