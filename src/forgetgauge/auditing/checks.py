"""What is wrong with a file whose rows make a game: sides and pairs that are copies, points that are, labels with gaps.

A copied side shows a difference of 0 on every point, Q = 1 whatever the method; copies of pairs and of points make
evidence look like more than it is. Outputs are compared only where they are fine enough to be a fingerprint: two models
agree by chance on decisions, not on logits. What agrees bit by bit is refused; what agrees up to rounding is warned of,
because models that hardly differ, such as convex ones on many points, may do so too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from forgetgauge.auditing.adversaries import models_alike
from forgetgauge.auditing.outputs import Array, AuditFile
from forgetgauge.auditing.rounds import Round
from forgetgauge.data.data_warnings import COPIES, fingerprints, label_gaps
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.direction import rarer_than
from forgetgauge.game.likeness import NEARLY_ALL, ROUNDING, is_one_model, nearly_same
from forgetgauge.game.one_model import log_hypergeometric
from forgetgauge.results.margin_warnings import FALSE_ALARM
from forgetgauge.results.record import reference_named
from forgetgauge.results.utility import is_chance
from forgetgauge.tasks.classification import predicted
from forgetgauge.wording import listed

FINE = 0.5
"""Outputs are a fingerprint of a model where at least this share of its points has outputs of its own."""
BY_CHANCE = 0.02
"""About so large a share of a model's points may look like another one by chance, where outputs are compared."""
FAR_CLOSER = 0.01
"""Copies differ by less than this share of the distance to the next other point."""
LARGEST_GROUP = 8
"""More points than this with the same outputs are points on which models are saturated, not copies of one input."""
SAME_AGAIN = 0.9
"""Where inputs are copies, at least this share of the couples that look alike to one model look alike to all."""
NEAR_COPY, COMMON = 0.75, 0.1
"""Two pairs are near copies if at least this share of their common points is divided alike, and so many are common."""
FAR_BELOW = 0.1
"""Shadow models may classify points they never saw so much better than models under test: recipes differ."""
UNLIKE = 0.05
"""Shares of answers that are so close do not make shadow models unlike those under test."""
SURELY_UNLIKE = 0.15
"""Nor do these, where thresholds find a part of what a score tells, as they do of methods that leave a part."""
PER_CLASS = 30
"""With so many points per class that occurs, a class that does not occur is not just rare."""


def refuse_copied_sides(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> None:
    """One model's outputs on both sides of a pair, unless the file says that Retrain's are shared."""
    for method, its in rounds.items():
        if _is_shared(file, method):
            continue
        for played in its:
            sides = [[_outputs(file, rows) for rows in side] for side in played.rows]
            if any(_fine(one) and _same(one, other) for one in sides[0] for other in sides[1]):
                hint = (
                    "; where one retrained model serves both sides, say so with share_retrain = true"
                    if reference_named(method) == "retrain"
                    else "; share_retrain is said of the method called 'retrain': call it so, if this is Retrain"
                    if file.share_retrain and not any(_is_shared(file, name) for name in rounds)
                    else "; a split and its swap need a model each"
                )
                raise UserError(
                    f"{file.source}: {method}, pair {played.pair}: the outputs of side 1 are a copy of those of side 0"
                    f"{hint}"
                )


def _is_shared(file: AuditFile, method: str) -> bool:
    """Whether one retrained model stands on both sides, as the file says; Retrain is known by its name."""
    return file.share_retrain and reference_named(method) == "retrain"


def file_warnings(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """What cannot be refused, in sentences."""
    return [
        *file.notes,
        *_label_gaps(file),
        *_sides_that_agree(file, rounds),
        *_sides_of_one_model(file, rounds),
        *_copies_of_points(file, rounds),
        *_copies_of_pairs(file, rounds),
        *_renamed_pairs(file, rounds),
    ]


# -- fingerprints ----------------------------------------------------------------------------------------------------


def _outputs(file: AuditFile, rows: Ints) -> npt.NDArray[np.float64]:
    """(n, columns) all that the file holds of a model on these rows."""
    outputs = file.outputs
    columns: list[Array] = [] if outputs.logits is None else list(outputs.logits[rows].T)
    columns += [score[rows] for score in outputs.scores.values()]
    if outputs.decision is not None:
        columns.append(outputs.decision[rows])
    return np.column_stack(columns).astype(np.float64)


def _shadow_outputs(file: AuditFile, rows: Ints) -> npt.NDArray[np.float64]:
    """(n, columns) the same of shadow rows, with their labels."""
    shadows = file.shadows
    assert shadows is not None
    columns: list[Array] = [shadows.label[rows], *([] if shadows.logits is None else shadows.logits[rows].T)]
    return np.column_stack([*columns, *(score[rows] for score in shadows.scores.values())]).astype(np.float64)


def _kinds(outputs: npt.NDArray[np.float64]) -> Ints:
    """(n,) 0, 1, …: equal numbers for equal rows."""
    return np.asarray(np.unique(fingerprints(outputs), return_inverse=True)[1], dtype=np.int64)


def _kinds_up_to_rounding(outputs: npt.NDArray[np.float64]) -> Ints:
    """(n,) equal numbers for rows that are the same up to rounding, and for few others.

    The more points there are, and the fewer columns, the closer lie two of them by chance: the tolerance is smaller.
    And copies lie far closer to each other than to their neighbours, unlike points that a model is equally sure of.
    """
    spread = _spreads(outputs)
    columns = outputs[:, spread > 0] / spread[spread > 0]
    if columns.shape[1] == 0:
        return np.zeros(len(outputs), dtype=np.int64)
    tolerance = min(ROUNDING, (BY_CHANCE / len(outputs)) ** (1 / columns.shape[1]))
    order = np.argsort(_mixed(columns), kind="stable")
    gaps = np.abs(np.diff(columns[order], axis=0)).max(axis=1)
    ends = np.concatenate([[-1], np.flatnonzero(gaps > tolerance), [len(gaps)]])  # a group lies between two of them
    outer = np.concatenate([[np.inf], gaps, [np.inf]])[ends + 1]
    nearest = np.repeat(np.minimum(outer[:-1], outer[1:]), np.diff(ends))[:-1]  # of the group that a gap begins in
    kinds = np.empty(len(outputs), dtype=np.int64)
    kinds[order] = np.concatenate([[0], np.cumsum((gaps > tolerance) | (gaps > FAR_CLOSER * nearest))])
    return kinds


def _spreads(outputs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(columns,) standard deviations; of a column with numbers so large that they have none, how far its middle half
    reaches."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = outputs.std(axis=0)
        low, high = np.quantile(outputs, (0.25, 0.75), axis=0)
        return np.asarray(np.where(np.isfinite(spread), spread, np.minimum(high - low, 1e150)), dtype=np.float64)


def _mixed(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(n,) a random combination of columns: rows that are nearly the same get nearly the same number."""
    mixed: npt.NDArray[np.float64] = columns @ np.random.default_rng(0).uniform(0.5, 1.5, columns.shape[1])
    return mixed


def _fine(outputs: npt.NDArray[np.float64]) -> bool:
    return int(_kinds(outputs).max()) + 1 > max(2, FINE * len(outputs))


def _same(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> bool:
    """Whether two models' outputs are the same on nearly all points, or on all of them in another order."""
    one, other = fingerprints(first), fingerprints(second)
    return bool(np.mean(one == other) >= NEARLY_ALL) or np.array_equal(np.sort(one), np.sort(other))


# -- sides and points ------------------------------------------------------------------------------------------------


def _sides_that_agree(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """Coarse outputs, such as decisions, may agree by chance on some pairs; that they do on all is said."""
    found = []
    for method, its in rounds.items():
        if _is_shared(file, method):
            continue
        sides = [[np.stack([_outputs(file, rows) for rows in side]) for side in played.rows] for played in its]
        agree = all(np.array_equal(first, second) for first, second in sides)
        varied = any(_kinds(model).any() for first, _ in sides for model in first)
        if agree and varied:
            found.append(
                f"{method}: both sides have the same outputs on every point of every pair. If one side is a copy of "
                "the other, or the outputs do not depend on the model, Q = 1 says nothing about the method."
            )
    return found


def _sides_of_one_model(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """Fine outputs that agree up to rounding, on all points or nearly all: one model evaluated twice, it seems."""
    found = []
    for method, its in rounds.items():
        if _is_shared(file, method):
            continue
        pairs = []
        for played in its:
            sides = [[_outputs(file, rows) for rows in side] for side in played.rows]
            if any(_fine(one) and is_one_model(one, other) for one in sides[0] for other in sides[1]):
                pairs.append(str(played.pair))
        if pairs:
            found.append(
                f"{method}: on pair{'s' * (len(pairs) > 1)} {listed(pairs)}, the outputs of both sides are the same up "
                "to rounding. If one model was evaluated twice, Q = 1 says nothing about the method; a split and its "
                "swap need a model each."
            )
    return found


def _copies_of_points(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """Points under different names whose outputs are the same to two models: one input, several times in the data."""
    outputs, what = file.outputs, "the same inputs are in the data more than once"
    harm = "What one copy is made to forget another may keep, so Q is untrue: remove the copies."
    if outputs.logits is None and not outputs.scores:
        return []
    for method, its in rounds.items():
        if _is_shared(file, method):
            continue
        for played in its:
            points, labels = outputs.point[played.rows[0, 0]], outputs.label[played.rows[0, 0]]
            alike = _copies([np.column_stack([labels, _outputs(file, side[0])]) for side in played.rows])
            if len(alike) > 0:
                return [
                    f"{len(alike)} of {len(points)} points of pair {played.pair} have outputs that another point has, "
                    f"too, on both sides ({method}), {points[alike[0]]} for example: {what}. {harm}"
                ]
    models = None if file.shadows is None else models_alike(file.shadows, file.shadows.of_method(next(iter(rounds))))
    if models is None or len(models) < 2:
        return []
    alike = _copies([_shadow_outputs(file, rows) for rows in models[:2]])
    if len(alike) == 0:
        return []
    return [
        f"{len(alike)} of {len(models[0])} points of the shadow models have outputs that another one has, too, under "
        f"two models, number {models[0][alike[0]] + 1} of their rows for example: {what}, and perhaps in yours. {harm}"
    ]


def _copies(views: Sequence[npt.NDArray[np.float64]]) -> Ints:
    """Which points have a copy, as two models' outputs of them say; none where a few may be alike by chance."""
    each = [_kinds_up_to_rounding(view) for view in views]
    both = _kinds(np.column_stack(each).astype(np.float64))
    n_same = np.bincount(both)[both]  # (n,) how many points look like this one to both
    unsaturated = n_same <= LARGEST_GROUP
    found = np.flatnonzero((n_same > 1) & unsaturated)
    n_couples = _n_couples(both[unsaturated])
    same_again = all(n_couples >= SAME_AGAIN * _n_couples(kinds[unsaturated]) for kinds in each)
    return found if same_again and len(found) >= max(LARGEST_GROUP, COPIES * len(both)) else found[:0]


def _n_couples(kinds: Ints) -> int:
    """How many couples of points are of one kind."""
    counts = np.bincount(kinds)
    return int((counts * (counts - 1) // 2).sum())


def _label_gaps(file: AuditFile) -> list[str]:
    labels = [file.outputs.label, *([] if file.shadows is None else [file.shadows.label])]
    n_rows = sum(map(len, labels))
    present = np.unique(np.concatenate(labels))
    if n_rows < PER_CLASS * len(present):
        return []
    return label_gaps(present, "label")


def accuracy_warnings(file: AuditFile, accuracy: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Models that classify unseen points as by chance, or far worse than shadow models do points that these never saw:
    outputs whose rows were mixed up, all or some, look like this. `accuracy` is method -> set of points -> its share.

    Where shadow models know their training points, but nothing of others either, it is the data that are so. Where a
    reference classifies as shadow models do, what another method loses is damage, and told of as such.
    """
    known = {method: its["unseen"] for method, its in accuracy.items() if "unseen" in its}
    below = {method: shares for method in known if (shares := _far_above(file, method, len(known))) is not None}
    is_damage = any(reference_named(method) is not None and method not in below for method in known)
    found = []
    for method, own in known.items():
        if is_chance(own, file.n_classes):
            found += _guessing(file, method, own)
        elif method in below and (reference_named(method) is not None or not is_damage):
            found.append(
                f"{method}: of the unseen points {below[method][0]:.0%} are classified rightly, but "
                f"{below[method][1]:.0%} of those "
                "that shadow models never saw: do all outputs belong to the points beside them? Models that were "
                "damaged, or trained on less than the shadow models, look like this as well, and show less."
            )
    return found


def _guessing(file: AuditFile, method: str, unseen: float) -> list[str]:
    shares = _right_of_shadows(file, method)
    guessed = [is_chance(share, file.n_classes) for share in shares]
    if guessed == [False, True]:
        return []
    beside = "" if not shares or guessed[-1] else f" (of those that shadow models never saw {shares[-1]:.0%})"
    return [
        f"{method}: of the unseen points {unseen:.0%} are classified rightly, no better than by chance{beside}: do "
        "outputs and labels belong to the points beside them?"
    ]


def _right_of_shadows(file: AuditFile, method: str) -> list[float]:
    """The accuracy of shadow models on their training points, and on others; on those of the two that there are."""
    if file.shadows is None or file.shadows.logits is None:
        return []
    rows = file.shadows.of_method(method)
    right, member = predicted(file.shadows.logits[rows]) == file.shadows.label[rows], file.shadows.member[rows]
    return [float(right[its].mean()) for its in (member, ~member) if its.any()]


def _far_above(file: AuditFile, method: str, n_methods: int) -> tuple[float, float] | None:
    """(A method's accuracy on T, that of shadow models on points they never saw), of the side where it is far below,
    by more than chance, models of one kind and recipes explain; points count once, whoever was asked about them."""
    outputs, shadows = file.outputs, file.shadows
    if shadows is None or shadows.logits is None or outputs.logits is None:
        return None
    rows = shadows.of_method(method)
    others = rows[~shadows.member[rows]]
    if not len(others):
        return None
    models, by_shadows = models_alike(shadows, rows), predicted(shadows.logits[others]) == shadows.label[others]
    n_others = len(others) if models is None else int((~shadows.member[np.stack(models)]).any(axis=0).sum())
    usual, found = float(by_shadows.mean()), []
    mine = np.flatnonzero((outputs.method == method) & ~outputs.in_forget)
    sides = np.unique(outputs.side[mine])
    for side in sides:
        at = mine[outputs.side[mine] == side]
        right, which = predicted(outputs.logits[at]) == outputs.label[at], np.zeros(len(at), dtype=np.int64)
        for column in (outputs.pair, outputs.seed):
            values, code = np.unique(column[at], return_inverse=True)
            which = which * len(values) + code
        own, tail = float(right.mean()), FALSE_ALARM / (n_methods * len(sides))
        middle, n = (usual + own) / 2, min(n_others, len(np.unique(outputs.point[at])))
        by_points = rarer_than(tail) * math.sqrt(2 * middle * (1 - middle) / n)
        by_models = _between_models(_split_by(which, right), _split_by(shadows.model[others], by_shadows), tail=tail)
        if usual - own > max(FAR_BELOW, math.hypot(by_points, by_models)):
            found.append((own, usual))
    return min(found, default=None)


def _split_by(which: Array, values: Bools) -> list[Bools]:
    """The values of each model."""
    return [values[which == one] for one in np.unique(which)]


def unlike_shadows(of_others: Sequence[Bools], of_unseen: Sequence[Bools], *, by_model: bool = False) -> bool:
    """Whether an adversary's answers about points that shadow models never saw are not those about T; one array for
    each model, of shadow models none where it does not see these alone.

    Points of T are in several pairs and seeds, so they count as no more than the shadow models' points. With `by_model`
    the difference must also be more than models of one kind differ by, as far as their answers show.
    """
    if not sum(map(len, of_others)):
        return False
    first, second = (float(np.concatenate(says).mean()) for says in (of_others, of_unseen))
    n = min(sum(map(len, says)) for says in (of_others, of_unseen))
    middle = (first + second) / 2
    limit = rarer_than(FALSE_ALARM / 2) * math.sqrt(2 * middle * (1 - middle) / n)
    if by_model:
        limit = max(math.hypot(limit, _between_models(of_others, of_unseen)), SURELY_UNLIKE)
    return abs(first - second) > max(UNLIKE, limit)


def _between_models(*kinds: Sequence[Bools], tail: float = FALSE_ALARM) -> float:
    """How far the mean answers of two kinds of models may lie apart by the models that were drawn, beside the points:
    Student's, from how much more the models of a kind differ than their points alone would have them."""
    told = [[says for says in models if len(says)] for models in kinds]
    freedom = sum(len(each) - 1 for each in told)
    if freedom < 1:
        return math.inf
    by_points = by_all = 0.0
    for each in told:
        share = np.array([says.mean() for says in each])
        by_all += float(((share - share.mean()) ** 2).sum())
        by_points += (len(each) - 1) * float(np.mean([share.mean() * (1 - share.mean()) / len(says) for says in each]))
    spread = math.sqrt(max(0.0, by_all - by_points) / freedom)
    return float(stdtrit(freedom, 1 - tail / 2)) * spread * math.sqrt(sum(1 / len(each) for each in told))


# -- pairs -----------------------------------------------------------------------------------------------------------


def _copies_of_pairs(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """Pairs whose common points are divided into F and T alike, far beyond what independent draws give."""
    every: dict[Any, Round] = {played.pair: played for its in rounds.values() for played in its}
    points = [file.outputs.point[played.rows[0, 0]] for played in every.values()]
    codes = np.unique(np.concatenate(points), return_inverse=True)[1]
    side = np.zeros((len(every), int(codes.max()) + 1), dtype=np.float32)
    for row, (own, played) in enumerate(zip(_split_like(codes, points), every.values(), strict=True)):
        side[row, own] = np.where(played.in_forget, 1, -1)
    names = list(every)
    found = [
        f"pairs {names[first]} and {names[second]} ({alike} of {common} common points)"
        for first, second, alike, common in near_copies(side)
    ]
    if not found:
        return []
    return [
        f"Near copies: {'; '.join(found[:5])}{'; …' if len(found) > 5 else ''} divide their points into forget and "
        "unseen alike. Intervals take pairs for independent draws and are too narrow here; more trainings on one split "
        "are seeds of one pair."
    ]


def _renamed_pairs(file: AuditFile, rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """Models of different pairs with the same outputs: one pair under two names, its points renamed as well."""
    found: dict[tuple[str, str], None] = {}
    spread = _spreads(_outputs(file, np.arange(len(file.outputs))))
    scale = np.where(spread > 0, spread, 1)
    for its in rounds.values():
        models = [
            (str(played.pair), np.sort(_mixed(outputs / scale)))
            for played in its
            for outputs in (_outputs(file, rows) for side in played.rows for rows in side)
            if _fine(outputs)
        ]
        middles = np.array([np.median(outputs) for _, outputs in models])
        for which, (pair, outputs) in enumerate(models):
            with np.errstate(over="ignore"):  # of what is as large as numbers are
                alike = np.abs(middles[:which] - middles[which]) <= ROUNDING * outputs.std()
            others = (models[other] for other in np.flatnonzero(alike).tolist())
            first = next((name for name, theirs in others if name != pair and _all_same(theirs, outputs)), None)
            if first is not None:
                found[first, pair] = None
    return [
        f"Pairs {first} and {second} have models with the same outputs under different names of points. Intervals take "
        "pairs for independent draws and are too narrow here."
        for first, second in found
    ]


def _all_same(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> bool:
    return len(first) == len(second) and bool(nearly_same(first, second).all())


def _split_like(codes: Ints, parts: Sequence[Array]) -> list[Ints]:
    return np.split(codes, np.cumsum([len(part) for part in parts])[:-1])


def near_copies(side: npt.NDArray[np.float32]) -> list[tuple[int, int, int, int]]:
    """(first pair, second pair, points divided alike, common points) of pairs that no independent draws would give.

    ``side`` (n_pairs, n_points) is 1 for points in F, −1 in T, 0 elsewhere; two pairs that are swaps of each other are
    divided alike, too.
    """
    taken, in_forget = np.abs(side), (side > 0).astype(np.float32)
    common, balance = taken @ taken.T, side @ side.T
    mine, both = in_forget @ taken.T, in_forget @ in_forget.T  # F of the row among common points; F of both
    sizes, n_couples = taken.sum(axis=1), math.comb(len(side), 2)
    found = []
    for i, j in combinations(range(len(side)), 2):
        n, alike = int(common[i, j]), int(common[i, j] + abs(balance[i, j])) // 2
        if n < max(2, COMMON * min(sizes[i], sizes[j])) or alike < NEAR_COPY * n:
            continue
        if n_couples * _chance(int(both[i, j]), n, int(mine[i, j]), int(mine[j, i])) < FALSE_ALARM:
            found.append((i, j, alike, n))
    return found


def _chance(both: int, n: int, first: int, second: int) -> float:
    """Two-sided: the chance that ``first`` and ``second`` of n points, drawn independently, share as few or as many."""
    least = max(0, first + second - n)
    chances = np.exp(log_hypergeometric(n, first, second))
    return min(1.0, 2 * float(min(chances[: both - least + 1].sum(), chances[both - least :].sum())))
