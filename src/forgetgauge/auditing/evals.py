"""From the per-sample scores that open-unlearning's evaluations leave to an audit file.

Its `TOFU_EVAL.json` and `MUSE_EVAL.json` are tables of metrics. An attack (`mia_loss`, `mia_min_k`, `mia_zlib`, …) has
the tables `forget` and `holdout`, and each of these `value_by_index`: the sample's index -> `{"score": …}`, which is
signed like a loss, smaller for training data. Nothing else of the file is read. The evaluation of a retrained model
(its `retain_logs`) is that of a reference model: it saw neither set.

These sets were published, not drawn by a coin, so the file is one of requests (`audit --requests`): whether they differ
by themselves is tested first, by the retrained models, and without them nothing can be said.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.auditing.formats import WRITERS
from forgetgauge.auditing.outputs import Array
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import read_json

ATTACK = "mia_"
"""How the names of attacks begin."""
SETS = {"forget": "forget", "holdout": "unseen"}
"""Its names of F and T -> ours."""

Scores = dict[str, dict[str, float]]
"""`forget` and `holdout` -> index -> score."""


def write_from_evals(
    evaluation: str | Path,
    out: str | Path,
    *,
    metric: str = "mia_loss",
    retrained: Sequence[str | Path] = (),
    per_person: int | None = None,
) -> int:
    """Write the scores of an attack as an audit file of one model, `.csv` or `.npz`; how many samples it has.

    `retrained` are evaluations of models that were trained without F and without the hold-out set; `per_person` samples
    that follow each other by their index are of one person (of TOFU, 20 of an author).
    """
    path = Path(out)
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise UserError(f"{path}: an audit file is one of {', '.join(sorted(WRITERS))}")
    if per_person is not None and per_person < 1:
        raise UserError(f"per_person = {per_person} is not at least 1")
    scores = read_scores(Path(evaluation), metric)
    columns = _columns(scores)
    if per_person is not None:
        columns["person"] = _persons(scores, per_person, str(evaluation))
    references = [_reference(Path(one), metric, scores, which) for which, one in enumerate(retrained)]
    if references:
        joined = {name: np.concatenate([one[name] for one in references]) for name in references[0]}
        columns |= {f"reference_{name}": column for name, column in joined.items()}
    write(path, columns)
    return len(columns["point"])


def read_scores(path: Path, metric: str) -> Scores:
    """What an attack of an evaluation says of every sample of F and of the hold-out set."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise UserError(f"{path}: it is no table of metrics, as an evaluation of open-unlearning is")
    attacks = [name for name, table in found.items() if name.startswith(ATTACK) and isinstance(table, dict)]
    if not attacks:
        raise UserError(f"{path}: it has no attack (a metric mia_…) with scores of forget and holdout samples")
    if metric not in attacks:
        raise UserError(f"{path}: {unknown_name('attack', metric, attacks)}")
    return {name: _by_index(path, metric, name, found[metric].get(name)) for name in SETS}


def _by_index(path: Path, metric: str, name: str, table: Any) -> dict[str, float]:
    samples = table.get("value_by_index") if isinstance(table, dict) else None
    if not isinstance(samples, dict) or not samples:
        raise UserError(f"{path}: {metric} has no {name}.value_by_index; the aggregate alone says nothing of samples")
    scores = {}
    for index, value in samples.items():
        score = value.get("score") if isinstance(value, dict) else value
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise UserError(f"{path}: {metric}, {name}: sample {index} has no score that is a number")
        scores[index] = float(score)
    return scores


def _columns(scores: Scores) -> dict[str, Array]:
    return {
        "point": np.array([f"{name} {index}" for name, each in scores.items() for index in each]),
        "set": np.array([SETS[name] for name, each in scores.items() for _ in each]),
        "loss": np.array([score for each in scores.values() for score in each.values()]),
    }


def _persons(scores: Scores, per_person: int, source: str) -> Array:
    persons = []
    for name, each in scores.items():
        for index in each:
            if not index.isdecimal() or len(index) > 18 or index != str(int(index)):  # "07" is 7 again
                raise UserError(
                    f"{source}: sample {index[:40]} of {name} has no whole number for an index, so nobody's"
                )
            persons.append(f"{name} {int(index) // per_person}")
    sizes = Counter(persons)
    odd = next((person for person, n in sizes.items() if n != max(sizes.values())), None)
    if odd is not None:
        raise UserError(
            f"{source}: by {per_person} samples a person, person {odd} has {sizes[odd]} and others "
            f"{max(sizes.values())}: another number is right, or samples are missing"
        )
    return np.array(persons)


def _reference(path: Path, metric: str, scores: Scores, which: int) -> Mapping[str, Array]:
    """The columns of a reference model: how a retrained model scores the same samples."""
    own = read_scores(path, metric)
    if own == scores:
        raise UserError(f"{path}: it is the evaluation that is tested; that of a retrained model has other scores")
    for name, each in scores.items():
        odd = sorted(set(each) ^ set(own[name]))
        if odd:
            raise UserError(f"{path}: sample {odd[0]} of {name} is in one of the evaluations alone")
    columns = _columns({name: {index: own[name][index] for index in each} for name, each in scores.items()})
    return {"model": np.full(len(columns["point"]), which), "point": columns["point"], "loss": columns["loss"]}
