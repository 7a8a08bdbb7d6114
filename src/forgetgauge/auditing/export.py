"""From a finished run to an audit file: what one's own export should look like, and a check that an audit is a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from forgetgauge import plugins
from forgetgauge.attack.adversary import Role
from forgetgauge.auditing.formats import WRITERS
from forgetgauge.auditing.outputs import Array
from forgetgauge.errors import UserError
from forgetgauge.plan.draws import POINT
from forgetgauge.plan.game import game_from_json
from forgetgauge.plan.graph import SHADOW_HALF, SIDES, TARGET_HALF, Cell, Graph, build_graph
from forgetgauge.plan.jobs import SignalsJob
from forgetgauge.plan.subjects import Shadow
from forgetgauge.results.views import GameView, RunView
from forgetgauge.store.runfolder import RunFolder


def write_audit_file(
    run_folder: Path | str, path: Path | str, *, game: int = 0, model: tuple[str, int, int] | None = None
) -> None:
    """Write what a run's unlearned models and shadow models say to a `.npz` or `.csv` file: logits, or where labels are
    no classes the loss, and whose each record is where persons, or other groups, were drawn.

    A pair of which a job failed is left out, as in the run's result. `game` chooses one game of a sweep. `model`
    (method, pair, side) chooses one of the unlearned models for `audit --requests`; the shadow models that were asked
    about its points are then its reference models, for they saw none of them.
    """
    run_folder, path = Path(run_folder), Path(path)
    if path.suffix.lower() not in WRITERS:
        raise UserError(f"{path}: an audit file is one of {', '.join(sorted(WRITERS))}")
    folder = RunFolder(run_folder)
    games = folder.read_run()["games"]
    if not 0 <= game < len(games):
        raise UserError(f"{run_folder}: no game {game}; it has {len(games)}")
    chosen = game_from_json(games[game])
    if chosen.by != POINT and chosen.n_classes > 1:
        raise UserError(
            f"{run_folder}: an audit of logits takes points as drawn one by one, but this game draws groups"
        )
    exporter = _Exporter(build_graph(chosen), folder)
    columns = exporter.columns() if model is None else exporter.of_one(*model)
    WRITERS[path.suffix.lower()](path, columns)


class _Exporter:
    """One game's signals as columns."""

    def __init__(self, graph: Graph, folder: RunFolder) -> None:
        self.graph, self.game, self.folder, self.run = graph, graph.game, folder, RunView(folder)
        self.view, self.task = GameView(graph, self.run), plugins.tasks.load(graph.game.task)

    def columns(self) -> dict[str, Array]:
        blocks = [
            block
            for pair in range(self.game.pairs)
            for method in self.game.methods
            for block in self._blocks(method, pair)
        ]
        if not blocks:
            raise UserError(f"{self.folder.path}: no pair was completed, so there is nothing to export")
        shared = {"share_retrain": np.array(True)} if self.game.share_retrain else {}
        return _concatenated(blocks) | shared | {f"shadow_{name}": column for name, column in self._shadows().items()}

    def of_one(self, method: str, pair: int, side: int) -> dict[str, Array]:
        """One unlearned model, of the first seed, and the shadow models on its points."""
        cell = Cell(method, pair, side, 0)
        if cell not in self.graph.cells or not self.run.has(self.graph.cells[cell].signals):
            raise UserError(f"{self.folder.path}: it has no model of {method}, pair {pair}, side {side}")
        drawn = self.view.pair(pair)
        columns = {
            "point": drawn.points,
            "set": np.where(drawn.in_forget if side == 0 else ~drawn.in_forget, "forget", "unseen"),
            **self._said(self.run.look_up(self.graph.cells[cell].signals).arrays),
        }
        models = self._shadow_models(method, TARGET_HALF)
        references = [
            {"model": np.full(len(drawn.points), which), "point": drawn.points, **self._said_at(key, drawn.points)}
            for which, key in models.items()
        ]
        if not references:
            return columns
        return columns | {f"reference_{name}": column for name, column in _concatenated(references).items()}

    def _said(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """What a model says of points, and whose they are."""
        if self.task.has_classes:
            return {"label": arrays["labels"], "logits": arrays["outputs"]}
        loss = self.task.signals["loss"](arrays["outputs"], arrays["labels"])
        return {"loss": loss, **({"person": arrays["group"]} if "group" in arrays else {})}

    def _said_at(self, key: str, points: Array) -> dict[str, Array]:
        """What a model that was asked about all of D says of some of its points."""
        said = self._said(self.run.look_up(key).arrays)
        return {name: said[name][points] for name in ("logits", "loss") if name in said}

    def _blocks(self, method: str, pair: int) -> list[dict[str, Array]]:
        cells = [Cell(method, pair, side, seed) for side in SIDES for seed in range(self.game.seeds)]
        if not all(self.run.has(self.graph.cells[cell].signals) for cell in cells):
            return []
        drawn = self.view.pair(pair)
        weight = self.run.read(self.graph.initialise).arrays["weight"][drawn.points]
        blocks = []
        for cell in cells:
            seen = self.run.look_up(self.graph.cells[cell].signals).arrays
            n = len(drawn.points)
            in_forget = drawn.in_forget if cell.side == 0 else ~drawn.in_forget
            blocks.append(
                {
                    "method": np.full(n, method),
                    "pair": np.full(n, pair),
                    "side": np.full(n, cell.side),
                    "seed": np.full(n, cell.seed),
                    "point": drawn.points,
                    "set": np.where(in_forget, "forget", "unseen"),
                    "weight": weight,
                    **self._said(seen),
                }
            )
        return blocks

    def _shadows(self) -> dict[str, Array]:
        """One block for all methods, or one for each where a method brought a learner of its own."""
        if all(self.game.learner_of(method) == self.game.learner for method in self.game.methods):
            return self._shadow_block(next(iter(self.game.methods)))
        blocks = {method: self._shadow_block(method) for method in self.game.methods}
        return _concatenated(
            [{**block, "method": np.full(len(block["member"]), method)} for method, block in blocks.items()]
        )

    def _shadow_block(self, method: str) -> dict[str, Array]:
        models = self._shadow_models(method, SHADOW_HALF)
        if not models or not all(self.run.has(key) for key in models.values()):
            raise UserError(f"{self.folder.path}: it has no shadow models for {method}: finish the run first")
        seen = [(which, self.run.look_up(key).arrays) for which, key in models.items()]
        return _concatenated(
            [
                {
                    "model": np.full(len(arrays["role"]), which),
                    "member": arrays["role"] == Role.IN,
                    **self._said(arrays),
                }
                for which, arrays in seen
            ]
        )

    def _shadow_models(self, method: str, look_at: str) -> dict[int, str]:
        """Which -> key of its signals there; where an adversary asked for white-box columns, it was asked twice."""
        learner = self.game.learner_of(method).identity
        found = {
            job.subject.which: key
            for key, job in self.graph.jobs.items()
            if isinstance(job, SignalsJob)
            and isinstance(job.subject, Shadow)
            and job.subject.forget is None
            and (job.look_at, job.learner.identity) == (look_at, learner)
        }
        return dict(sorted(found.items()))


def _concatenated(blocks: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
