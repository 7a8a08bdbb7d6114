"""Scores of the audited model against reference models at each point, for tests that need no threshold.

LiRA and RMIA as their papers have them, and difficulty calibration (Watson et al. 2022): the model's score less the
mean of the reference models'. RMIA's score counts the unseen points that a point's ratio beats, which orders the points
as the ratio itself does; tests by ranks see the order alone, so the ratio is the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from forgetgauge.attack.adversary import Role
from forgetgauge.attack.lira import ENOUGH_MODELS, ONLINE, OneSidedAttack, pooled_spread, spreads
from forgetgauge.attack.reference import mean_where, panel_values
from forgetgauge.attack.rmia import log_ratio, offline_probability, online_probability
from forgetgauge.attack.signals import CONFIDENCE, NEGATIVE_LOSS, STATISTIC, Reading
from forgetgauge.auditing.outputs import AuditFile
from forgetgauge.auditing.references import References
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Bools, Floats, Ints
from forgetgauge.game.one_model import ModelTest, ranks_test

UNFITTED_A = 0.3
"""RMIA's a, its guess of how far models that saw a point are above others: no model is here to fit it on."""
FOLLOWS_F = 1e-3
"""Reference models that were trained on F more often than on T, at this chance, did not ignore which is which."""


def reference_scores(file: AuditFile, rows: Ints) -> dict[str, Floats]:
    """Name -> (n,) of some rows of one model, larger is more member-like; none where there are no reference models."""
    references = file.references
    if references is None:
        return {}
    at = references.places(file.outputs.point[rows])
    found: dict[str, Floats] = {}
    if references.logits is not None:
        found |= _of_logits(file, references, rows, at)
    if references.is_outside:
        found |= {
            f"calibrated own {name}": _sign(name)
            * (file.outputs.scores[name][rows] - unseeing_mean(references, own)[at])
            for name, own in references.scores.items()
        }
    return found


def _of_logits(file: AuditFile, references: References, rows: Ints, at: Ints) -> dict[str, Floats]:
    seen = file.outputs.signals(rows, at)
    panel = references.panel()
    confidence = panel_values(panel, CONFIDENCE)
    found: dict[str, Floats] = {}
    if references.is_outside:
        out = panel.role == Role.OUT
        statistic = panel_values(panel, STATISTIC)
        spread = spreads(statistic, out, pooled_spread(statistic, out) or 1.0, ENOUGH_MODELS)
        found["lira-offline"] = OneSidedAttack(mean_where(statistic, out)[0], spread, np.array(0.0)).score(seen)
        elsewhere = offline_probability(mean_where(confidence, out)[0], UNFITTED_A)
        found["rmia-offline"] = log_ratio(CONFIDENCE(seen), elsewhere[at])
        found["calibrated loss"] = NEGATIVE_LOSS(seen) - _mean_reading(references, NEGATIVE_LOSS)[at]
    if references.sees_points:
        found["lira-online"] = ONLINE.fit(panel, references.context(file.n_classes)).score(seen)
        found["rmia-online"] = log_ratio(CONFIDENCE(seen), online_probability(confidence, panel.role)[at])
    return found


def unseeing_scores(file: AuditFile, rows: Ints, readings: Mapping[str, Reading]) -> dict[str, Floats]:
    """Name -> (n,) what models that did not see a point say of it, on average; none where there are no such models."""
    references = file.references
    if references is None or not references.is_outside:
        return {}
    at = references.places(file.outputs.point[rows])
    found: dict[str, Floats] = {}
    if references.logits is not None:
        found |= {name: _mean_reading(references, reading)[at] for name, reading in readings.items()}
    return found | {
        f"own {name}": _sign(name) * unseeing_mean(references, own)[at] for name, own in references.scores.items()
    }


def own_scores(file: AuditFile, rows: Ints, readings: Mapping[str, Reading]) -> dict[str, Floats]:
    """The same of the model under audit: name -> (n,) what it says of the points itself."""
    outputs, found = file.outputs, dict[str, Floats]()
    if outputs.logits is not None:
        seen = outputs.signals(rows)
        found |= {name: reading(seen) for name, reading in readings.items()}
    return found | {f"own {name}": _sign(name) * own[rows] for name, own in outputs.scores.items()}


def unseeing_mean(references: References, values: Floats) -> Floats:
    """(n_points,) over the models that were not trained on the point."""
    return mean_where(values, ~references.member)[0]


def refuse_followers(file: AuditFile, rows: Ints, in_forget: Bools, group: Ints | None = None) -> None:
    """Reference models whose training followed which points, or groups of points, are in F would tell every score."""
    references = file.references
    if references is None or not references.sees_points:
        return
    times = references.member.sum(axis=0)[references.places(file.outputs.point[rows])].astype(np.float64)
    if group is not None:
        sizes = np.bincount(group)
        times, in_forget = np.bincount(group, times) / sizes, np.bincount(group, in_forget) > 0
    if ranks_test(times, in_forget).log_p <= np.log(FOLLOWS_F):
        more = "more" if times[in_forget].mean() > times[~in_forget].mean() else "less"
        raise UserError(
            f"{file.source}: reference models were trained on points of F {more} often than on points of T; they must "
            "ignore which points are in F, or their outputs tell it"
        )


def refuse_knowing(file: AuditFile, rows: Ints, test: Callable[[Floats], ModelTest]) -> None:
    """A reference model that tells F, which was drawn at random, from T by itself was trained on it, whatever is said
    of it: compared with it, any model's answers would tell F."""
    references = file.references
    if references is None:
        return
    at = references.places(file.outputs.point[rows])
    said = dict(references.scores)
    if references.logits is not None:
        said["loss of the logits"] = panel_values(references.panel(), NEGATIVE_LOSS)
    limit = np.log(FOLLOWS_F / max(1, sum(len(scores) for scores in said.values())))
    for scores in said.values():
        for model, score in zip(references.models.tolist(), scores, strict=True):
            if np.ptp(score[at]) > 0 and test(score[at]).log_p <= limit:
                raise UserError(
                    f"{file.source}: reference model {model} tells points of F from points of T by itself: it was "
                    "trained on F, or on T, as the original model was, or was made from one that was; leave it out"
                )


def _mean_reading(references: References, reading: Reading) -> Floats:
    return unseeing_mean(references, panel_values(references.panel(), reading))


def _sign(name: str) -> int:
    return -1 if name == "loss" else 1
