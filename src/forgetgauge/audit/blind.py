"""Can F and T be told apart without the model under audit? Where F was not drawn at random, this is asked first.

Classifiers are fitted on the raw points of one half of F and T, and tested on the other half, each way round; what
reference models that saw neither say of the points is tested as it is. Each test is exact where F and T are
exchangeable, and their choice is corrected for. Then: how far could F and T differ without having been seen?
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from forgetgauge.attack.signals import Reading
from forgetgauge.audit.outputs import AuditFile
from forgetgauge.audit.reference_scores import unseeing_scores
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Bools, Floats, Ints
from forgetgauge.game.blind import advantage_limits, best_linear_advantage, n_answers_of_ranks
from forgetgauge.game.direction import mid_ranks
from forgetgauge.game.one_model import ModelTest, ranks_test
from forgetgauge.results.one_model import BlindResult, judged_blind

FEWEST = 4
"""Points of F, and of T, below which no half of them can teach a classifier anything."""
LINEAR, FOREST = "logistic regression", "random forest"


def blind_test(
    file: AuditFile, rows: Ints, in_forget: Bools, readings: Mapping[str, Reading], level: float
) -> BlindResult:
    """Of the points of one model's rows, in an order that says nothing of F; what the model says is not looked at."""
    tests: dict[str, ModelTest] = {}
    n_columns, missed = 0, 1.0
    if file.features is not None:
        columns = _columns(file, rows)
        n_columns = columns.shape[1]
        if min(in_forget.sum(), (~in_forget).sum()) >= FEWEST:
            halves = _halves(file.outputs.point[rows], in_forget)
            by_name = {name: list(_fitted_tests(name, columns, in_forget, halves)) for name in (LINEAR, FOREST)}
            tests |= {f"{name}, half {i}": one for name, its in by_name.items() for i, one in enumerate(its, 1)}
            missed = _missed_by_classifiers(by_name, n_columns, halves, in_forget, 1 - level)
    scores = unseeing_scores(file, rows, readings)
    if scores:
        of_references = {f"reference models: {name}": ranks_test(score, in_forget) for name, score in scores.items()}
        n_answers = n_answers_of_ranks(int(in_forget.sum()), int((~in_forget).sum()))
        missed = max(advantage_limits(abs(one.advantage), n_answers, 1 - level)[1] for one in of_references.values())
        tests |= of_references
    by = ["raw points"] * (file.features is not None) + ["reference models"] * bool(scores)
    return judged_blind(tests, by, n_columns, missed, level)


def _columns(file: AuditFile, rows: Ints) -> Floats:
    """(n, columns) the raw points and classes, each column as normal scores of its ranks: no outlier has a say."""
    assert file.features is not None
    features = file.features[rows]
    label = file.outputs.label[rows]
    classes = np.unique(label)
    if (features == features[:1]).all():
        raise UserError(f"{file.source}: the features are the same for all points, so they tell nothing of F and T")
    given = np.column_stack([features, *((label == one).astype(np.float64) for one in classes[1:])])
    given = given[:, (given != given[:1]).any(axis=0)]
    scores = np.column_stack([ndtri((mid_ranks(column) - 0.5) / len(rows)) for column in given.T])
    result: Floats = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return result


def digests_of(point: np.ndarray[Any, Any], what: str = "") -> np.ndarray[Any, Any]:
    """(n,) SHA-256 of each id: an order that says nothing of what the ids may tell, one for each `what`."""
    return np.array([hashlib.sha256(f"{what}{name}".encode()).hexdigest() for name in point.tolist()])


def _halves(point: np.ndarray[Any, Any], in_forget: Bools) -> Bools:
    """(n,) who is in the first half: of F and of T, those with the smaller SHA-256 of the id, which nobody chose.

    It is not the SHA-256 by which ties fall: the two halves of F and of T do not end at the same one.
    """
    digests = digests_of(point, "half ")
    first: Bools = np.zeros(len(point), dtype=np.bool_)
    for side in (np.flatnonzero(in_forget), np.flatnonzero(~in_forget)):
        first[side[np.argsort(digests[side])[: len(side) // 2]]] = True
    return first


def _fitted_tests(name: str, columns: Floats, in_forget: Bools, first: Bools) -> Iterator[ModelTest]:
    """Fitted on one half and tested on the other, each way round."""
    for fitted_on in (first, ~first):
        found = _classifier(name).fit(columns[fitted_on], in_forget[fitted_on])
        scores = found.predict_proba(columns[~fitted_on])[:, 1]
        ranks = np.argsort(np.argsort(scores, kind="stable"))  # ties fall by the order of the rows: one law for all
        yield ranks_test(ranks.astype(np.float64), in_forget[~fitted_on])


def _classifier(name: str) -> Any:
    if name == LINEAR:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=0.1, max_iter=1000)
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=2, random_state=0)


def _missed_by_classifiers(
    by_name: Mapping[str, Sequence[ModelTest]], n_columns: int, first: Bools, in_forget: Bools, tail: float
) -> float:
    """The upper limit of the advantage that F and T have by themselves.

    The two ways round depend on each other, so they count as one half; a mean below 0 is chance, and counts as 0. What
    is learnt from few points is less than there is: the linear classifier's limit is carried over to the best one's.
    """
    sizes = [(int((half & in_forget).sum()), int((half & ~in_forget).sum())) for half in (first, ~first)]
    smaller = (min(n for n, _ in sizes), min(n for _, n in sizes))
    found = {name: max(0.0, float(np.mean([one.advantage for one in its]))) for name, its in by_name.items()}
    limits = {name: advantage_limits(one, n_answers_of_ranks(*smaller), tail)[1] for name, one in found.items()}
    return max(best_linear_advantage(limits[LINEAR], n_columns, *smaller), limits[FOREST])
