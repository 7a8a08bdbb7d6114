"""The paper's toy example, exactly: six points, three unlearners, one attack, all 20 splits. No training.

Every point has a score, what is forgotten keeps a bump (0 for Retrain, then more), and the attack says “forgotten” from
the cut on. The SWAP advantage is the same for all splits; the plain accuracy of the attack depends on the split.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.splits import Split, SwapPair
from forgetgauge.report.table import align
from forgetgauge.suites.paper import text_values


@dataclass(frozen=True)
class ToyRow:
    """What one unlearner of the toy example gives."""

    name: str
    advantages: tuple[Fraction, ...]
    """SWAP advantage of each split; all equal is the claim."""
    accuracies: Mapping[str, Fraction]
    """Points that are forgotten, by their letters -> accuracy of the attack."""
    claimed: Fraction
    """The paper's SWAP advantage."""

    @property
    def holds(self) -> bool:
        """Whether every split gives what the paper says."""
        return set(self.advantages) == {self.claimed}


def toy() -> list[ToyRow]:
    """The three unlearners of the paper on every split of its six points."""
    example = text_values()["toy_example"]
    points, cut = {name: _tenths(score) for name, score in example["points"].items()}, _tenths(example["threshold"])
    scores = np.array(list(points.values()), dtype=np.int64)
    splits = [_split(forget, len(points)) for forget in combinations(range(len(points)), len(points) // 2)]
    rows = []
    for name, bump in example["bump"].items():
        found = [_advantage(SwapPair(split), scores, _tenths(bump), cut) for split in splits]
        right = {_letters(split, points): _accuracy(split, scores, _tenths(bump), cut) for split in splits}
        rows.append(ToyRow(name, tuple(found), right, Fraction(example["swap_advantage"][name])))
    return rows


def toy_table(rows: Sequence[ToyRow]) -> str:
    """Rows as text, with the paper's claim and the two splits it looks at."""
    splits = len(rows[0].advantages)
    accuracy = ["MIA accuracy, F = ABC", "F = DEF", "over splits"]
    head = ["unlearner", f"SWAP advantage, all {splits} splits", "paper", "Q", *accuracy]
    table = [head]
    for row in rows:
        found = sorted(set(row.advantages))
        accuracies = row.accuracies.values()
        table.append(
            [
                row.name,
                ", ".join(map(str, found)),
                str(row.claimed),
                str(1 - max(map(abs, found))),
                *(str(row.accuracies[forget]) for forget in ("ABC", "DEF")),
                f"{min(accuracies)} to {max(accuracies)}",
            ]
        )
    return align(table)


def _tenths(score: float) -> int:
    """Exact: in floating point 0.4 + 0.1 may miss 0.5."""
    return round(10 * score)


def _split(forget: tuple[int, ...], n: int) -> Split:
    unseen = [point for point in range(n) if point not in forget]
    return Split(np.array([], dtype=np.int64), np.array(forget), np.array(unseen))


def _says_forget(split: Split, scores: Ints, bump: int, cut: int) -> Bools:
    return np.asarray(scores + bump * np.isin(np.arange(len(scores)), split.forget) >= cut)


def _advantage(pair: SwapPair, scores: Ints, bump: int, cut: int) -> Fraction:
    gains = 0
    for side in pair.sides:
        says_forget = _says_forget(side, scores, bump, cut)
        gains += int(says_forget[side.forget].sum()) - int(says_forget[side.unseen].sum())
    return Fraction(gains, len(pair.points))


def _accuracy(split: Split, scores: Ints, bump: int, cut: int) -> Fraction:
    right = _says_forget(split, scores, bump, cut) == np.isin(np.arange(len(scores)), split.forget)
    return Fraction(int(right.sum()), len(scores))


def _letters(split: Split, points: Mapping[str, int]) -> str:
    return "".join(name for i, name in enumerate(points) if i in split.forget)


def toy_record(rows: Sequence[ToyRow]) -> str:
    """All of it as JSON; fractions as text, so that they stay exact."""
    record = {
        row.name: {
            "holds": row.holds,
            "paper": str(row.claimed),
            "swap_advantages": [str(value) for value in row.advantages],
            "mia_accuracy": {forget: str(value) for forget, value in row.accuracies.items()},
        }
        for row in rows
    }
    return json.dumps(record, indent=1) + "\n"
