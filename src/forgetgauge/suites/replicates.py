"""How far Q moves with the random seed alone: replicates are several trainings and unlearnings of the same split.

`result.json` has the mean over replicates, as the paper's tables do. The decisions about each are in the store, so Q of
each is computed from there: of the game of Table 1 on two pairs, or of any finished run of three replicates or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.errors import UserError
from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.arrays import Floats
from forgetgauge.game.quality import quality_by_pair
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.graph import SIDES, Cell, Graph
from forgetgauge.records import Record
from forgetgauge.report.table import align
from forgetgauge.results.views import GameView, RunView
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.invocation import Invoked, play_single
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.records import read_strictly
from forgetgauge.suites.tables import SCALES, replicates_game
from forgetgauge.wording import counted, plain

NAME = "replicates"
FILE = "replicates.json"
LEAST = 3
"""Replicates; the spread of two says nothing."""


@dataclass(frozen=True)
class SplitAdvantages:
    """The splits of a run, and what each adversary gained on each."""

    pairs: list[SwapPair]
    weights: Floats
    """P_D over D."""
    by_method: dict[str, Floats]
    """Method -> signed (pairs, replicates, sides, adversaries)."""


def split_advantages(graph: Graph, folder: RunFolder) -> SplitAdvantages:
    """From the stored decisions; methods of which some are missing are left out."""
    game, run = graph.game, RunView(folder)
    finished = GameView(graph, run)
    cells = {
        method: [
            [[graph.cells[Cell(method, pair, side, seed)].decide for side in SIDES] for seed in range(game.seeds)]
            for pair in range(game.pairs)
        ]
        for method in game.methods
    }
    whole = [
        method
        for method, pairs in cells.items()
        if all(run.has(side[name]) for pair in pairs for seed in pair for side in seed for name in side)
    ]
    if not whole or not run.has(graph.initialise):
        raise UserError(f"{folder.path}: no method has all its decisions: finish the run first")

    def gained(key: str, pair: int, side: int) -> float:
        in_forget, weight = finished.points_of(pair)
        says_forget = run.look_up(key).arrays["says_forget"]
        return signed_advantage(says_forget, in_forget if side == 0 else ~in_forget, weight)

    by_method = {
        method: np.array(
            [
                [[[gained(side[a], p, i) for a in game.adversaries] for i, side in enumerate(seed)] for seed in pair]
                for p, pair in enumerate(cells[method])
            ]
        )
        for method in whole
    }
    return SplitAdvantages([finished.pair(pair) for pair in range(game.pairs)], finished.weight, by_method)


@dataclass(frozen=True)
class Replicates(Record):
    """Q of every training of a split."""

    data: str
    model: str
    alpha: float
    adversaries: list[str]
    quality: dict[str, list[list[float]]]
    """Method -> pair -> Q of each replicate, as the paper computes it from two models."""
    schema: int = 1

    @property
    def n_replicates(self) -> int:
        """How many trainings each split has."""
        return len(next(iter(self.quality.values()))[0])

    @property
    def n_pairs(self) -> int:
        """How many swap pairs there are."""
        return len(next(iter(self.quality.values())))

    @property
    def n_freedom(self) -> int:
        """Degrees of freedom of a deviation: how much the record says."""
        return self.n_pairs * (self.n_replicates - 1)

    def deviation(self, method: str) -> float:
        """Over replicates, inside pairs: √ of the mean variance."""
        return float(np.sqrt(np.var(self.quality[method], axis=1, ddof=1).mean()))


def read_replicates(path: Path) -> Replicates:
    """A validated record, or one line on what is wrong with the file."""
    found = read_strictly(path, Replicates)
    counts = {tuple(len(values) for values in pairs) for pairs in found.quality.values()}
    if len(counts) != 1 or len(set(next(iter(counts)))) != 1:
        raise UserError(f"{path}: quality: not as many pairs and replicates for every method")
    return found


def play_replicates(scale: str, out: Path, **how: Any) -> tuple[Invoked, Replicates | None]:
    """None where jobs are missing, because the time was up or some failed; `how` is what `play_single` takes."""
    invoked = play_single(NAME, replicates_game(SCALES[scale]), scale, out, **how)
    if invoked.result is None or invoked.ending.failed:
        return invoked, None
    found = replicates_of(invoked.campaign.graphs[0], invoked.folder)
    invoked.folder.write_text(out / NAME / FILE, found.to_json())
    invoked.folder.write_text(out / NAME / "table.txt", replicates_text(found) + "\n")
    return invoked, found


def replicates_of_run(path: Path) -> Replicates:
    """The replicates of a finished run; `replicates.json` is left in its folder."""
    folder = RunFolder(path)
    graph, *others = Campaign.read(folder).graphs
    if others:
        raise UserError(f"{path}: a sweep of {1 + len(others)} games; replicates are of one")
    if graph.game.seeds < LEAST:
        has = counted(graph.game.seeds, "replicate")
        raise UserError(f"{path}: {has} of a split, but their spread takes at least {LEAST} (game.seeds)")
    found = replicates_of(graph, folder)
    folder.write_text(path / FILE, found.to_json())
    return found


def replicates_of(graph: Graph, folder: RunFolder) -> Replicates:
    """From the stored decisions; methods of which some are missing are left out."""
    game = graph.game
    quality = {
        method: [quality_by_pair(pair).tolist() for pair in by_split.mean(axis=2)]
        for method, by_split in split_advantages(graph, folder).by_method.items()
    }
    model = str(game.learner.params.get("model", game.learner.name))
    return Replicates(game.data.name, model, game.alpha, list(game.adversaries), quality)


def replicates_text(found: Replicates) -> str:
    """Q of every replicate, for a terminal."""
    pairs = [f"pair {i}, Q of each replicate" for i in range(found.n_pairs)]
    rows = [["method", "deviation over replicates", *pairs]]
    for method, each in found.quality.items():
        listed = [" ".join(plain(value) for value in values) for values in each]
        rows.append([PRINTED.get(method, method), plain(found.deviation(method)), *listed])
    return f"Q over {found.n_replicates} replicates: {found.data}, {found.model}, α = {found.alpha}.\n\n{align(rows)}"
