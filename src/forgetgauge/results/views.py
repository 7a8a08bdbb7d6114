"""The one reader of a run, finished or not: `RunView` of its store, `GameView` of one of its games."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.game.advantage import Grouped, PairOutcome, outcome_of_decisions, outcome_of_differences
from forgetgauge.game.arrays import Bools, Floats
from forgetgauge.game.direction import Lean, membership_lean, rank_differences
from forgetgauge.game.parts import CLASS, Codes, coded
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.draws import GROUP, POINT
from forgetgauge.plan.graph import SIDES, Cell, Graph
from forgetgauge.results.margin_warnings import MarginEvidence, is_copy, is_fine
from forgetgauge.store.content import Expected, is_content
from forgetgauge.store.objects import Artefact, CorruptArtefact
from forgetgauge.store.runfolder import RunFolder


class RunView:
    """What a run's jobs have made so far; each artefact is checked against its digest when it is read."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder, self.state = folder, folder.open_ledger().state
        self.expected: dict[str, Expected] = {}
        """Job key -> what is known of its artefact, which is held to it when it is read."""
        self._artefacts: dict[str, Artefact] = {}
        self._facts: dict[str, dict[str, Any]] = {}

    def has(self, key: str) -> bool:
        """Whether the job is done and its artefact is there."""
        return self.state.is_available(key)

    def read(self, key: str) -> Artefact:
        """An artefact, read once and kept."""
        if key not in self._artefacts:
            self._artefacts[key] = self.look_up(key)
        return self._artefacts[key]

    def look_up(self, key: str) -> Artefact:
        """Read, and not kept: for logits, which are large and needed once. CorruptArtefact where no job made it."""
        if key not in self.state.done:
            raise CorruptArtefact(key)
        found = self.folder.objects.read(key, self.state.done[key].receipt.sha256)
        if key in self.expected and not is_content(self.expected[key], found):
            raise CorruptArtefact(key)
        return found

    def facts(self, key: str) -> dict[str, Any]:
        """What an artefact says besides its arrays, read once; the arrays are not kept."""
        if key not in self._facts:
            self._facts[key] = self.look_up(key).facts
        return self._facts[key]


def expected_of(graph: Graph) -> dict[str, Expected]:
    """Job key -> what its artefact must hold to be of any use."""
    n_points = 2 * graph.game.sizes[1] if graph.game.by == POINT else None  # groups have as many points as they have
    found = {key: Expected(job.makes) for key, job in graph.jobs.items()}
    found |= {key: Expected("signals", None, True) for key in graph.confused.values()}
    for cell in graph.cells.values():
        found[cell.signals] = Expected("signals", n_points, True)
        found |= {key: Expected("decide", n_points) for key in cell.decide.values()}
    return found


class GameView:
    """One game of a run: its pairs, its sensitivity, what was decided. A job that failed has no artefact."""

    def __init__(self, graph: Graph, run: RunView) -> None:
        self.graph, self.game, self.run = graph, graph.game, run
        run.expected |= expected_of(graph)
        decided = [(name, key) for jobs in graph.cells.values() for name, key in jobs.decide.items()]
        works = {name for name, key in decided if run.has(key)}
        self.adversaries = [name for name in self.game.adversaries if name in works]
        """Those that could be fitted: one that fails everywhere is named among the failures and left out of Q."""
        self._leans: dict[str, Lean] = {}
        self._pairs: dict[int, SwapPair] = {}
        self._points: dict[int, tuple[Bools, Floats]] = {}

    @cached_property
    def weight(self) -> Floats:
        """(|D|,) P_D."""
        weight: Floats = self.run.read(self.graph.initialise).arrays["weight"]
        return weight

    @cached_property
    def columns(self) -> dict[str, tuple[list[str], Codes]]:
        """Column -> (its different values, which of them each point of D has); none where groups are shown whole, whose
        points may differ in them."""
        if self.game.oracle == GROUP or not self.run.has(self.graph.initialise):
            return {}
        stored = self.run.read(self.graph.initialise)
        arrays, named = stored.arrays, stored.facts.get("columns", {})
        found: dict[str, tuple[list[str], Codes]] = {}
        if self.game.n_classes > 1 and (classes := coded(arrays["labels"])) is not None:
            found[CLASS] = classes
        found |= {column: (names, arrays[f"column {column}"]) for column, names in named.items()}
        return found

    @property
    def data_warnings(self) -> list[str]:
        """What was warned of in the data set."""
        if not self.run.has(self.graph.initialise):
            return []
        return list(self.run.read(self.graph.initialise).facts.get("doubts", []))

    def pair(self, pair: int) -> SwapPair:
        """A swap pair, as it was drawn."""
        if pair not in self._pairs:
            groups = self._of_points("group") if self.game.by == GROUP else None
            among = self._of_points("hardest").astype(np.bool_) if self.game.hardest < 1 else None
            self._pairs[pair] = self.game.swap_pair(pair, groups, among)
        return self._pairs[pair]

    def _of_points(self, name: str) -> npt.NDArray[Any]:
        """(|D|,) what the first job found of each point."""
        arrays = self.run.read(self.graph.initialise).arrays
        if name not in arrays:
            raise CorruptArtefact(self.graph.initialise)
        return arrays[name]

    def points_of(self, pair: int) -> tuple[Bools, Floats]:
        """(n_points,) each, for the pair's points: whether in F of the first side, and P_D."""
        if pair not in self._points:
            drawn = self.pair(pair)
            if len(self.weight) <= drawn.points.max():
                raise CorruptArtefact(self.graph.initialise)
            self._points[pair] = drawn.in_forget, self.weight[drawn.points]
        return self._points[pair]

    @cached_property
    def outcomes(self) -> dict[str, dict[int, PairOutcome]]:
        """Method -> pair -> paired differences over seeds and adversaries; a pair of which a job failed is left out."""
        each = {
            method: {pair: self._outcome(method, pair) for pair in range(self.game.pairs)}
            for method in self.game.methods
        }
        return {
            method: {pair: outcome for pair, outcome in found.items() if outcome is not None}
            for method, found in each.items()
        }

    def _outcome(self, method: str, pair: int) -> PairOutcome | None:
        decisions = self.decisions(method, pair)
        if decisions is None:
            return None
        in_forget, weight, groups = *self.points_of(pair), self.pair(pair).groups
        if groups is not None and self.game.oracle == GROUP:  # one answer for a group: it is what a point is elsewhere
            grouped = Grouped.of(groups, in_forget, weight)
            first, second = decisions[:, :, np.unique(groups, return_index=True)[1]]
            return outcome_of_decisions(first, second, *grouped.of_groups)
        return outcome_of_decisions(decisions[0], decisions[1], in_forget, weight, groups)

    def decisions(self, method: str, pair: int) -> Bools | None:
        """(sides, seeds, points, adversaries); None where a job failed."""
        sides = []
        for side in SIDES:
            cells = [self.graph.cells[Cell(method, pair, side, seed)] for seed in range(self.game.seeds)]
            keys = [[cell.decide[name] for name in self.adversaries] for cell in cells]
            if not self.adversaries or not all(self.run.has(key) for seed in keys for key in seed):
                return None
            sides.append([np.stack([self.run.read(k).arrays["says_forget"] for k in seed], axis=1) for seed in keys])
        return np.asarray(sides)

    def evidence(self, method: str) -> MarginEvidence:
        """What warnings about a method rest on."""
        outcomes = self.outcomes[method]
        margins = {
            pair: [np.stack(self.margins(method, name, pair), axis=1) for name in self.adversaries] for pair in outcomes
        }  # of each pair and adversary (sides, seeds, points)
        copies = {pair: [is_copy(*both) for both in each] for pair, each in margins.items()}
        fine = {pair: [is_fine(first) for first, _ in each] for pair, each in margins.items()}
        copied = [pair for pair, own in copies.items() if any(own) and own == fine[pair]]
        blind = [
            name for name, own in zip(self.adversaries, zip(*copies.values(), strict=True), strict=True) if all(own)
        ]
        shared = self.game.share_retrain and not self.game.methods[method].uses_original
        return MarginEvidence(
            self.adversaries,
            list(outcomes),
            list(outcomes.values()),
            [
                outcome_of_differences(
                    np.stack([rank_differences(*both) for both in each], axis=1),
                    *self.points_of(pair),
                    self.pair(pair).groups,
                )
                for pair, each in margins.items()
            ],
            [self._lean(method, name) for name in self.adversaries],
            [] if shared else copied,
            [] if shared or copied else blind,
        )

    def _lean(self, method: str, adversary: str) -> Lean | None:
        """Which way an adversary's margins point on its shadow models."""
        key = self.graph.fits[method, adversary]
        arrays = self.run.read(key).arrays
        if key not in self._leans and "shadow margin" in arrays:
            margin, member = arrays["shadow margin"], arrays["shadow member"].astype(np.bool_)
            self._leans[key] = membership_lean(margin, member, np.zeros(len(margin), dtype=np.int64))
        return self._leans.get(key)

    def margins(self, method: str, adversary: str, pair: int) -> list[tuple[Floats, Floats]]:
        """Of each seed: (margins of the first side's model, of the second's), over the pair's points."""
        return [
            (
                self.run.read(self.graph.cells[Cell(method, pair, 0, seed)].decide[adversary]).arrays["margin"],
                self.run.read(self.graph.cells[Cell(method, pair, 1, seed)].decide[adversary]).arrays["margin"],
            )
            for seed in range(self.game.seeds)
        ]
