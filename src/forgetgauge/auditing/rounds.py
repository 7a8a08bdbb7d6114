"""From rows to rounds of the game: one for each method and pair. What breaks the game is refused, with the reason.

The game needs both sides of each split, |F| = |T|, and the same points on both sides with F and T exchanged. Without
any of these the paired difference of a point does not exist, and what is left is the difference between two groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from forgetgauge.auditing.outputs import Array, AuditFile
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Ints


@dataclass(frozen=True)
class Round:
    """The models of one method on one pair."""

    pair: Any
    """Its id."""
    rows: Ints
    """(2 sides, n_seeds, 2k) rows of the file, F of side 0 first and then its T, each in the order of point ids."""
    in_forget: npt.NDArray[np.bool_]
    """(2k,) of side 0."""
    weight: npt.NDArray[np.float64]
    """(2k,)."""


@dataclass(frozen=True)
class _Split:
    """F and T of side 0, as sorted codes of points."""

    forget: Ints
    unseen: Ints

    def swapped(self) -> _Split:
        return _Split(self.unseen, self.forget)

    @property
    def points(self) -> Ints:
        return np.concatenate([self.forget, self.unseen])


def rounds_of(file: AuditFile) -> dict[str, list[Round]]:
    """Method -> its rounds, in the order of pair ids."""
    return _Arranger(file).rounds()


class _Arranger:
    """Finds the rows of each model and compares the splits they speak of."""

    def __init__(self, file: AuditFile) -> None:
        self.source, self.outputs = file.source, file.outputs
        self.names, self.codes = np.unique(self.outputs.point, return_inverse=True)
        self.splits: dict[Any, _Split] = {}

    def rounds(self) -> dict[str, list[Round]]:
        self._check_one_value_per_point("label", self.outputs.label)
        self._check_one_value_per_point("weight", self.outputs.weight)
        found: dict[str, list[Round]] = {}
        for method in self.outputs.methods:
            rows = np.flatnonzero(self.outputs.method == method)
            for pair in np.unique(self.outputs.pair[rows]).tolist():
                mine = rows[self.outputs.pair[rows] == pair]
                found.setdefault(method, []).append(self._round(f"{method}, pair {pair}", pair, mine))
        self._check_pairs_differ()
        return found

    def _round(self, place: str, pair: Any, rows: Ints) -> Round:
        by_side = [rows[self.outputs.side[rows] == side] for side in (0, 1)]
        for side, mine in enumerate(by_side):
            if len(mine) == 0:
                self._refuse(f"{place}: side {side} is missing; the game is played on a split and on its swap")
        seeds = [np.unique(self.outputs.seed[mine]) for mine in by_side]
        lacking = np.setxor1d(seeds[0], seeds[1])
        if len(lacking) > 0:
            side = 1 if lacking[0] in seeds[0] else 0
            self._refuse(f"{place}: side {side} has no seed {lacking[0]}, but the other side has")
        arranged = [
            [self._model(f"{place}, side {side}", pair, side, seed, by_side[side]) for seed in seeds[side].tolist()]
            for side in (0, 1)
        ]
        split = self.splits[pair]
        k, weight = len(split.forget), self.outputs.weight[arranged[0][0]]
        if not (weight[:k].sum() > 0 and weight[k:].sum() > 0):
            self._refuse(f"{place}: the forget or the unseen set has no weight at all")
        return Round(pair, np.array(arranged), np.repeat([True, False], k), weight)

    def _model(self, place: str, pair: Any, side: int, seed: Any, rows: Ints) -> Ints:
        """(2k,) the rows of one model in the order of the pair's points."""
        rows = rows[self.outputs.seed[rows] == seed]
        rows = rows[np.argsort(self.codes[rows], kind="stable")]
        codes, in_forget = self.codes[rows], self.outputs.in_forget[rows]
        again = np.flatnonzero(codes[1:] == codes[:-1])
        if len(again) > 0:
            self._refuse(f"{place}: point {self.names[codes[again[0]]]} appears more than once")
        split = _Split(codes[in_forget], codes[~in_forget])
        if len(split.forget) != len(split.unseen):
            self._refuse(
                f"{place}: {len(split.forget)} points to forget but {len(split.unseen)} unseen; |F| = |T| is needed"
            )
        expected = self.splits.setdefault(pair, split if side == 0 else split.swapped())
        self._compare(place, split, expected if side == 0 else expected.swapped(), swapped=side == 1)
        return rows[np.searchsorted(codes, expected.points)]

    def _compare(self, place: str, split: _Split, expected: _Split, *, swapped: bool) -> None:
        missing = np.setdiff1d(expected.points, split.points)
        if len(missing) > 0:
            self._refuse(f"{place}: point {self.names[missing[0]]} is missing; both sides show the same points")
        further = np.setdiff1d(split.points, expected.points)
        if len(further) > 0:
            self._refuse(f"{place}: point {self.names[further[0]]} is in no other part of this pair")
        astray = np.setdiff1d(split.forget, expected.forget)
        if len(astray) > 0:
            what = (
                "the sides are not swaps of each other" if swapped else "a pair is one split, for all seeds and methods"
            )
            self._refuse(f"{place}: {what}: point {self.names[astray[0]]} is in the wrong set")

    def _check_one_value_per_point(self, what: str, values: Array) -> None:
        first = np.zeros(len(self.names), dtype=values.dtype)
        first[self.codes] = values
        differs = np.flatnonzero(first[self.codes] != values)
        if len(differs) > 0:
            self._refuse(f"point {self.outputs.point[differs[0]]} has more than one {what}")

    def _check_pairs_differ(self) -> None:
        """Pairs are taken as independent draws: one split under two names would make intervals too narrow."""
        known: dict[tuple[bytes, ...], Any] = {}
        for pair, split in self.splits.items():
            halves = tuple(sorted((split.forget.tobytes(), split.unseen.tobytes())))
            if halves in known:
                self._refuse(
                    f"pairs {known[halves]} and {pair} are the same split; more trainings on it are seeds of one pair"
                )
            known[halves] = pair

    def _refuse(self, what: str) -> NoReturn:
        raise UserError(f"{self.source}: {what}")


def seeds_of(rounds: Mapping[str, list[Round]]) -> int:
    """The largest number of trainings per side."""
    return max(int(found.rows.shape[1]) for its in rounds.values() for found in its)


def pairs_of(rounds: Mapping[str, list[Round]]) -> set[Any]:
    """The ids of all pairs; not every method need have played all of them."""
    return {found.pair for its in rounds.values() for found in its}


def sizes_of(rounds: Mapping[str, list[Round]]) -> set[int]:
    """All values of |F| = |T|."""
    return {len(found.in_forget) // 2 for its in rounds.values() for found in its}
