"""One folder per scale: the models of all tables lie in one store, each table's result in a folder of its own.

DIR/objects, ledger.jsonl     shared: a model that two tables need is trained once
DIR/run.json                  the games of all tables, for `status`, `export` and `import`
DIR/table1/                   run.json, result.json, report.html, comparison.json, table.txt, invocations.jsonl
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.plan.graph import Game, Named, build_graph
from forgetgauge.plan.presets import expand_preset
from forgetgauge.plan.record import game_from_json
from forgetgauge.run.campaign import Campaign
from forgetgauge.run.packing import jobs_to_do
from forgetgauge.run.tasks import Resolved, Sources
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.records import Invocation
from forgetgauge.suites.tables import Column
from forgetgauge.version import VERSION


def table_folder(out: Path, name: str) -> RunFolder:
    """The shared store, with the run file and the result of one table."""
    folder = RunFolder(out)
    folder.run_file, folder.result = out / name / "run.json", out / name / "result.json"
    folder.report = out / name / "report.html"
    return folder


def remember_games(out: Path, name: str, campaign: Campaign) -> None:
    """Add a table's games to those of the folder; a column that was planned before is replaced.

    `export` packs the signals of the games in DIR/run.json, so all tables must be in it.
    """
    folder = RunFolder(out)
    folder.create()
    before = folder.read_run()["games"] if folder.run_file.exists() else []
    run = campaign.to_json()
    ours = {f"{name}: {game['value']}": game for game in run["games"]}
    kept = [game for game in before if game.get("value") not in ours]
    games = [*kept, *({**game, "value": label} for label, game in ours.items())]
    folder.write_run({**run, "games": games, "sweep": "table"})


def add_invocation(
    folder: RunFolder, name: str, command: str, device: str, wall_s: float, n_jobs: int
) -> list[Invocation]:
    """All invocations of a table, this one last; one that found nothing to do is not kept beside those that did."""
    path = folder.path / name / "invocations.jsonl"
    before = read_invocations(path)
    if before and n_jobs == 0:
        return before
    every = [*before, Invocation(command, commit(), device, round(wall_s, 1), n_jobs)]
    folder.write_text(path, "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in every))
    return every


def read_invocations(path: Path) -> list[Invocation]:
    """Those on record."""
    if not path.exists():
        return []
    try:
        return [Invocation(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise UserError(f"{path}: damaged: {error}") from None


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
    """Whether it is the method that is asked for, with every parameter that is given: old ones enter no new table."""
    params = {key: value for key, value in given.items() if key not in ("method", "learner")}
    return unlearner.name == given.get("method", name) and _has(unlearner.params, params)


def _has(params: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return all(params.get(key) == value for key, value in given.items())


VARIABLE = "FORGETGAUGE_COMMIT"
"""Names the commit where the code was copied without its repository, to another machine say."""


def commit() -> str:
    """`fcf398c1`, with `+` where the package's files were changed since; the version where there is no repository."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    here = Path(__file__).parents[1]
    hashed = _git(here, "rev-parse", "--short=8", "HEAD")
    if not hashed or not _git(here, "ls-files", "--", "__init__.py"):  # a repository, but not of this package
        return f"version {VERSION}"
    return hashed + ("+" if _git(here, "status", "--porcelain", "--", ".") else "")


def command() -> str:
    """What was typed, near enough to type it again."""
    return shlex.join(["forgetgauge", *sys.argv[1:]])


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
