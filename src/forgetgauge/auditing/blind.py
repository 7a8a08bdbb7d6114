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
from forgetgauge.auditing.outputs import AuditFile
from forgetgauge.auditing.reference_scores import own_scores, unseeing_scores
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Bools, Floats, Ints
from forgetgauge.game.blind import correlation_floor
from forgetgauge.game.direction import mid_ranks
from forgetgauge.game.one_model import ModelTest, ranks_test
from forgetgauge.results.one_model import FOREST, HALF, LINEAR, REFERENCES, BlindResult, judged_blind

ENOUGH = 40
"""Points of T from which it can be told whether features say anything of a model's scores."""
FEWEST = 4
"""Points of F, and of T, below which no half of them can teach a classifier anything."""


def blind_test(
    file: AuditFile, rows: Sequence[Ints], in_forget: Bools, readings: Mapping[str, Reading], level: float
) -> BlindResult:
    """Of the points of each model's rows, in one order for all, which says nothing of F.

    What the models under audit say is not looked at, but for whether reference models resemble them at T.
    """
    tests: dict[str, ModelTest] = {}
    n_columns = 0
    if file.features is not None:
        columns = _columns(file, rows[0])
        n_columns = columns.shape[1]
        if min(in_forget.sum(), (~in_forget).sum()) >= FEWEST:
            halves = _halves(file.outputs.point[rows[0]], in_forget)
            for name in (LINEAR, FOREST):
                found = _fitted_tests(name, columns, in_forget, halves)
                tests |= {f"{name}{HALF}{i}": one for i, one in enumerate(found, 1)}
    scores = unseeing_scores(file, rows[0], readings)
    for name, score in scores.items():
        if (score == score[0]).all():
            raise UserError(
                f"{file.source}: reference models say the same of all points ({name}), so they tell nothing of F and T"
            )
        tests[f"{REFERENCES}: {name}"] = ranks_test(score, in_forget)
    alike = _alike(file, rows, ~in_forget, scores, readings, 1 - level) if scores else None
    n_forget = int(in_forget.sum())
    return judged_blind(tests, n_columns, alike, n_forget, len(in_forget) - n_forget, level)


def what_features_miss(
    file: AuditFile, rows: Sequence[Ints], in_forget: Bools, readings: Mapping[str, Reading], level: float
) -> list[str]:
    """A line on each model of whose scores at T the features tell nothing: that F and T look alike then says nothing of
    whether the model finds F as hard as T by itself.

    Where reference models resemble the models, they say it. Scores at T alone are predicted, on each half of T by what
    was fitted on the other; of F a model may remember what no feature tells. In 150 simulated games of 150 points and
    five columns that were noise the line was missing in 15 %; it was said in 31, 1 and 0 % where one column told of the
    scores with a correlation of 0.29, 0.45 and 0.71.
    """
    unseen = np.flatnonzero(~in_forget)
    if file.features is None or len(unseen) < ENOUGH or unseeing_scores(file, rows[0], readings):
        return []
    columns = _columns(file, rows[0])[unseen]
    half = _halves(file.outputs.point[rows[0]], in_forget)[unseen]
    lines = []
    for of_model in rows:
        scores = {name: score[unseen] for name, score in own_scores(file, of_model, readings).items()}
        scores = {name: score for name, score in scores.items() if np.isfinite(score).all()}
        tail = (1 - level) / max(1, 2 * len(scores))
        shown = [
            correlation_floor(_predicted(columns, score, half, forest), score, tail)
            for score in scores.values()
            for forest in (False, True)
        ]
        if shown and max(shown) <= 0:
            method = str(file.outputs.method[of_model[0]])
            lines.append(
                f"{method}: the features are not shown to tell anything of which points of T the model finds hard, so "
                "that F and T look alike in them does not show that the model would find them equally hard: add what "
                "F was chosen by, or the outputs of models that saw neither (reference rows)."
            )
    return lines


def _predicted(columns: Floats, score: Floats, half: Bools, forest: bool) -> Floats:
    """(n,) what each half of the points teaches of the other's ranks."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge

    ranks, found = mid_ranks(score), np.empty(len(score))
    for fitted_on in (half, ~half):
        model = RandomForestRegressor(50, min_samples_leaf=5, random_state=0) if forest else Ridge(10.0)
        found[~fitted_on] = model.fit(columns[fitted_on], ranks[fitted_on]).predict(columns[~fitted_on])
        found[~fitted_on] -= ranks[fitted_on].mean()  # the half with the larger mean must not look explained by it
    return found


def _alike(
    file: AuditFile,
    rows: Sequence[Ints],
    unseen: Bools,
    scores: Mapping[str, Floats],
    readings: Mapping[str, Reading],
    tail: float,
) -> float:
    """The least, over scores and models under audit, that reference models are shown to resemble them at T.

    At T alone: of F a model may remember what no reference model knows.
    """
    return min(
        correlation_floor(score[unseen], own_scores(file, of_model, readings)[name][unseen], tail)
        for of_model in rows
        for name, score in scores.items()
    )


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
