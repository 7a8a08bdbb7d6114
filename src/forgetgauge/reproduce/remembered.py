"""A column that was played on another machine: its game is in DIR/run.json, so its data are not needed here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forgetgauge.plan.graph import Game, build_graph
from forgetgauge.plan.jobs import Named
from forgetgauge.plan.presets import expand_preset
from forgetgauge.plan.record import game_from_json
from forgetgauge.reproduce.suites import Column
from forgetgauge.run.packing import jobs_to_do
from forgetgauge.run.tasks import Resolved, Sources
from forgetgauge.store.runfolder import RunFolder


def remembered(out: Path, name: str, column: Column) -> Resolved | None:
    """The column's game as another machine resolved it, where all its signals and decisions are in the folder."""
    folder = RunFolder(out)
    if not folder.run_file.exists():
        return None
    run = folder.read_run()
    records = [record for record in run["games"] if record.get("value") == f"{name}: {column.label}"]
    for game in map(game_from_json, records):
        if is_of(game, column) and not jobs_to_do(build_graph(game).jobs, folder.open_ledger().state):
            return Resolved([game], None, True, Sources({game.data_digest: game.data}), run["environment"])
    return None


def is_of(game: Game, column: Column) -> bool:
    """Whether the game is what the column says, as far as that can be told without resolving it."""
    raw = column.raw
    learner = {key: value for key, value in expand_preset(raw["learner"]).items() if key != "name"}
    data, rules = raw["data"], raw["game"]
    asked = (data["name"], data["fraction"], rules["alpha"], rules["pairs"], rules["seeds"], raw["seed"])
    return (
        (game.data.name, game.fraction, game.alpha, game.pairs, game.seeds, game.seed) == asked
        and game.n_shadows == raw["shadows"]["count"]
        and set(game.adversaries) == set(raw["adversaries"])
        and set(game.methods) == set(raw["unlearners"])
        and all(_is_method(game.methods[name].unlearner, name, given) for name, given in raw["unlearners"].items())
        and _has(game.learner.params, learner)
        and _has(game.data.params, data.get("params", {}))
    )


def _is_method(unlearner: Named, name: str, given: Mapping[str, Any]) -> bool:
    """Whether it is the method that is asked for, with every knob that is given: old knobs enter no new table."""
    knobs = {key: value for key, value in given.items() if key not in ("method", "learner")}
    return unlearner.name == given.get("method", name) and _has(unlearner.params, knobs)


def _has(params: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(params.get(key) == value for key, value in given.items())
