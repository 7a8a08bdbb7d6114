"""How far Q moves with the random seed alone: the same split, trained and unlearned again.

`result.json` has the mean over seeds, as the paper's tables do. The decisions of every seed are in the store, so Q of
each is computed from there: of the game of Table 1 on two pairs, or of any finished run of three seeds or more.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from forgetgauge.errors import UserError
from forgetgauge.game.advantage import swap_advantage
from forgetgauge.game.quality import quality_plugin
from forgetgauge.plan.draws import swap_pair_of
from forgetgauge.plan.graph import SIDES, Cell, Graph
from forgetgauge.report.table import align
from forgetgauge.reproduce.claim import counted
from forgetgauge.reproduce.paper import PRINTED
from forgetgauge.reproduce.reading import read_strictly
from forgetgauge.reproduce.scales import SCALES, seeds_game
from forgetgauge.reproduce.single import Played, play_single
from forgetgauge.results.views import RunView
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.wording import plain

NAME = "seeds"
SCHEMA = 1
FILE = "seeds.json"
LEAST = 3
"""Seeds; the spread of two says nothing."""


@dataclass(frozen=True)
class SeedSpread:
    """Q of every training of a split."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}
    data: str
    model: str
    alpha: float
    adversaries: list[str]
    quality: dict[str, list[list[float]]]
    """Method -> pair -> Q of each seed, by the paper's estimator."""
    schema: int = SCHEMA

    @property
    def n_seeds(self) -> int:
        """Trainings of each split."""
        return len(next(iter(self.quality.values()))[0])

    @property
    def n_pairs(self) -> int:
        """Splits."""
        return len(next(iter(self.quality.values())))

    @property
    def n_freedom(self) -> int:
        """Degrees of freedom of a deviation: how much the record says."""
        return self.n_pairs * (self.n_seeds - 1)

    def deviation(self, method: str) -> float:
        """Over seeds, inside pairs: √ of the mean variance."""
        return float(np.sqrt(np.var(self.quality[method], axis=1, ddof=1).mean()))

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_seeds(path: Path) -> SeedSpread:
    """A validated record, or one line on what is wrong with the file."""
    found = read_strictly(path, SeedSpread)
    shapes = {np.shape(pairs) for pairs in found.quality.values()} if _is_even(found) else set()
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise UserError(f"{path}: quality: not as many pairs and seeds for every method")
    return found


def _is_even(found: SeedSpread) -> bool:
    return all(len({len(seeds) for seeds in pairs}) == 1 for pairs in found.quality.values())


def play_seeds(scale: str, out: Path, **how: Any) -> tuple[Played, SeedSpread | None]:
    """None where jobs are missing, because the time was up or some failed; `how` is what `play_single` takes."""
    played = play_single(NAME, seeds_game(SCALES[scale]), scale, out, **how)
    if played.result is None or played.ending.failed:
        return played, None
    found = spread_over_seeds(played.campaign.graphs[0], played.folder)
    played.folder.write_text(out / NAME / FILE, found.to_json())
    played.folder.write_text(out / NAME / "table.txt", seed_text(found) + "\n")
    return played, found


def seeds_of_run(path: Path) -> SeedSpread:
    """Of a finished run; `seeds.json` is left in its folder."""
    folder = RunFolder(path)
    graph = Campaign.read(folder).graphs[0]
    if graph.game.seeds < LEAST:
        has = counted(graph.game.seeds, "seed")
        raise UserError(f"{path}: {has} a split, but the spread over seeds takes at least {LEAST}")
    found = spread_over_seeds(graph, folder)
    folder.write_text(path / FILE, found.to_json())
    return found


def spread_over_seeds(graph: Graph, folder: RunFolder) -> SeedSpread:
    """From the stored decisions; methods of which some are missing are left out."""
    game, run = graph.game, RunView(folder)
    decided = {method: _keys(graph, method) for method in game.methods}
    whole = {m: keys for m, keys in decided.items() if all(run.has(k) for k in keys.values())}
    if not whole or not run.has(graph.initialise):
        raise UserError(f"{folder.path}: no method has all its decisions: finish the run first")

    def read(key: str, name: str) -> Any:
        return run.look_up(key).arrays[name]

    weights = read(graph.initialise, "weight")
    quality: dict[str, list[list[float]]] = {method: [] for method in whole}
    for pair in range(game.pairs):
        drawn = swap_pair_of(game, pair)
        for method, keys in whole.items():
            by_seed, weight = [], weights[drawn.points]
            for seed in range(game.seeds):
                said = [[read(keys[pair, seed, side, name], "says_forget") for side in SIDES] for name in _names(graph)]
                by_seed.append(
                    quality_plugin(np.array([swap_advantage(one, two, drawn.in_forget, weight) for one, two in said]))
                )
            quality[method].append(by_seed)
    model = str(game.learner.params.get("model", game.learner.name))
    return SeedSpread(game.data.name, model, game.alpha, _names(graph), quality)


def _names(graph: Graph) -> list[str]:
    return list(graph.game.adversaries)


def _keys(graph: Graph, method: str) -> dict[tuple[int, int, int, str], str]:
    """(pair, seed, side, adversary) -> key of its decisions."""
    return {
        (pair, seed, side, name): graph.cells[Cell(method, pair, side, seed)].decide[name]
        for pair in range(graph.game.pairs)
        for seed in range(graph.game.seeds)
        for side in SIDES
        for name in _names(graph)
    }


def seed_text(found: SeedSpread) -> str:
    """For a terminal."""
    rows = [["method", "deviation over seeds", *(f"pair {i}, Q of each seed" for i in range(found.n_pairs))]]
    for method, pairs in found.quality.items():
        listed = [" ".join(plain(value) for value in seeds) for seeds in pairs]
        rows.append([PRINTED.get(method, method), plain(found.deviation(method)), *listed])
    return f"Q over {found.n_seeds} seeds: {found.data}, {found.model}, α = {found.alpha}.\n\n{align(rows)}"
