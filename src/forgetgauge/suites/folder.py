"""One folder per scale: the models of all tables lie in one store, each table's result in a folder of its own.

DIR/objects, ledger.jsonl     shared: a model that two tables need is trained once
DIR/run.json                  the games of all tables, for `status`, `export` and `import`
DIR/table1/                   run.json, result.json, report.html, comparison.json, table.txt, sittings.jsonl
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.record import Sitting


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


def add_sitting(folder: RunFolder, name: str, sitting: Sitting) -> list[Sitting]:
    """All sittings of a table, this one last; one that found nothing to do is not kept beside those that did."""
    path = folder.path / name / "sittings.jsonl"
    before = read_sittings(path)
    if before and sitting.n_jobs == 0:
        return before
    every = [*before, sitting]
    folder.write_text(path, "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in every))
    return every


def read_sittings(path: Path) -> list[Sitting]:
    """Those on record."""
    if not path.exists():
        return []
    try:
        return [Sitting(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise UserError(f"{path}: damaged: {error}") from None
