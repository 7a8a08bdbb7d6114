"""Scores of the audited model against reference models at each point, for tests that need no threshold.

LiRA and RMIA as their papers have them, and difficulty calibration (Watson et al. 2022): the model's score less the
mean of the reference models'. RMIA's score counts the unseen points that a point's ratio beats, which orders the points
as the ratio itself does; tests by ranks see the order alone, so the ratio is the score.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from forgetgauge.attack.adversary import Role
from forgetgauge.attack.lira import ENOUGH_MODELS, ONLINE, OneSidedAttack, pooled_spread, spreads
from forgetgauge.attack.reference import mean_where, panel_values
from forgetgauge.attack.rmia import log_ratio, offline_probability, online_probability
from forgetgauge.attack.signals import CONFIDENCE, NEGATIVE_LOSS, STATISTIC, Reading
from forgetgauge.auditing.outputs import AuditFile, sign_of
from forgetgauge.auditing.references import References
from forgetgauge.game.arrays import Floats, Ints

UNFITTED_A = 0.3
"""RMIA's a, its guess of how far models that saw a point are above others: no model is here to fit it on."""


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
            f"calibrated own {name}": sign_of(name)
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
        f"own {name}": sign_of(name) * unseeing_mean(references, own)[at] for name, own in references.scores.items()
    }


def own_scores(file: AuditFile, rows: Ints, readings: Mapping[str, Reading]) -> dict[str, Floats]:
    """The same of the model under audit: name -> (n,) what it says of the points itself."""
    outputs, found = file.outputs, dict[str, Floats]()
    if outputs.logits is not None:
        seen = outputs.signals(rows)
        found |= {name: reading(seen) for name, reading in readings.items()}
    return found | {f"own {name}": sign_of(name) * own[rows] for name, own in outputs.scores.items()}


def unseeing_mean(references: References, values: Floats) -> Floats:
    """(n_points,) over the models that were not trained on the point."""
    return mean_where(values, ~references.member)[0]


def _mean_reading(references: References, reading: Reading) -> Floats:
    return unseeing_mean(references, panel_values(references.panel(), reading))
