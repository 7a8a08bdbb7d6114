"""From a finished run to an audit file: what one's own export should look like, and a check that an audit is a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from forgetgauge.attack.adversary import Role
from forgetgauge.auditing.formats import WRITERS
from forgetgauge.auditing.outputs import Array
from forgetgauge.errors import UserError
from forgetgauge.plan.draws import swap_pair_of
from forgetgauge.plan.game import game_from_json
from forgetgauge.plan.graph import SHADOW_HALF, SIDES, Cell, Graph, build_graph
from forgetgauge.plan.jobs import SignalsJob
from forgetgauge.plan.subjects import Shadow
from forgetgauge.results.views import RunView, expected_of
from forgetgauge.store.objects import Artefact
from forgetgauge.store.runfolder import RunFolder


def write_audit_file(run_folder: Path | str, path: Path | str, *, game: int = 0) -> None:
    """Write the logits of a run's unlearned models and shadow models to a `.npz` or `.csv` file.

    A pair of which a job failed is left out, as in the run's result. `game` chooses one game of a sweep.
    """
    run_folder, path = Path(run_folder), Path(path)
    if path.suffix.lower() not in WRITERS:
        raise UserError(f"{path}: an audit file is one of {', '.join(sorted(WRITERS))}")
    folder = RunFolder(run_folder)
    games = folder.read_run()["games"]
    if not 0 <= game < len(games):
        raise UserError(f"{run_folder}: no game {game}; it has {len(games)}")
    chosen = game_from_json(games[game])
    if chosen.n_classes < 2:
        raise UserError(f"{run_folder}: an audit file holds logits, which models of the task {chosen.task} do not give")
    columns = _Exporter(build_graph(chosen), folder).columns()
    WRITERS[path.suffix.lower()](path, columns)


class _Exporter:
    """One game's signals as columns."""

    def __init__(self, graph: Graph, folder: RunFolder) -> None:
        self.graph, self.game, self.folder, self.run = graph, graph.game, folder, RunView(folder)
        self.run.expected |= expected_of(graph)

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

    def _blocks(self, method: str, pair: int) -> list[dict[str, Array]]:
        cells = [Cell(method, pair, side, seed) for side in SIDES for seed in range(self.game.seeds)]
        if not all(self.run.has(self.graph.cells[cell].signals) for cell in cells):
            return []
        drawn = swap_pair_of(self.game, pair)
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
                    "label": seen["labels"],
                    "weight": weight,
                    "logits": seen["outputs"],
                }
            )
        return blocks

    def _shadows(self) -> dict[str, Array]:
        """One block for all methods, or one for each where a method brought a learner of its own."""
        if all(self.game.learner_of(method) == self.game.learner for method in self.game.methods):
            return self._shadow_block(next(iter(self.game.methods)))
        blocks = {method: self._shadow_block(method) for method in self.game.methods}
        return _concatenated(
            [{**block, "method": np.full(len(block["label"]), method)} for method, block in blocks.items()]
        )

    def _shadow_block(self, method: str) -> dict[str, Array]:
        learner = self.game.learner_of(method).identity
        models = {  # by model: where an adversary asked for white-box columns, it was asked twice
            job.subject.which: key
            for key, job in self.graph.jobs.items()
            if isinstance(job, SignalsJob)
            and isinstance(job.subject, Shadow)
            and job.subject.forget is None
            and (job.look_at, job.learner.identity) == (SHADOW_HALF, learner)
        }
        if not models or not all(self.run.has(key) for key in models.values()):
            raise UserError(f"{self.folder.path}: it has no shadow models for {method}: finish the run first")
        return _concatenated([_shadow_columns(which, self.run.look_up(key)) for which, key in sorted(models.items())])


def _shadow_columns(which: int, artefact: Artefact) -> dict[str, Array]:
    seen = artefact.arrays
    return {
        "model": np.full(len(seen["labels"]), which),
        "label": seen["labels"],
        "member": seen["role"] == Role.IN,
        "logits": seen["outputs"],
    }


def _concatenated(blocks: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
