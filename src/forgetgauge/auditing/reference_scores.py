"""Reference models at each point: which of them are refused, and scores of the audited model against the others.

Refused are those that know F, those that are the model under audit, and reversed ones: whoever is compared with such a
model looks as if it remembered, or as if it had forgotten, whatever it does.

The scores need no threshold: LiRA and RMIA as their papers have them, and difficulty calibration (Watson et al. 2022),
the model's score less the mean of the reference models'. RMIA's score counts the unseen points that a point's ratio
beats, which orders the points as the ratio itself does; tests by ranks see the order alone, so the ratio is the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Role
from forgetgauge.attack.lira import ENOUGH_MODELS, ONLINE, OneSidedAttack, pooled_spread, spreads
from forgetgauge.attack.reference import mean_where, panel_values
from forgetgauge.attack.rmia import log_ratio, offline_probability, online_probability
from forgetgauge.attack.signals import CONFIDENCE, NEGATIVE_LOSS, STATISTIC, Reading
from forgetgauge.auditing.outputs import AuditFile, sign_of
from forgetgauge.auditing.references import References
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Bools, Floats, Ints, group_means
from forgetgauge.game.likeness import is_one_model
from forgetgauge.game.one_model import ModelTest, ranks_test

UNFITTED_A = 0.3
"""RMIA's a, its guess of how far models that saw a point are above others: no model is here to fit it on."""
FOLLOWS_F = 1e-3
"""What reference models that ignore which points are in F do at this chance is not put down to chance."""

MOST_TWINS = 64
"""Reference models, each of which is compared with all before it; of more, the first so many."""


# -- scores ------------------------------------------------------------------------------------------------------------


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


# -- which are refused -------------------------------------------------------------------------------------------------


def refuse_followers(file: AuditFile, rows: Ints, in_forget: Bools, group: Ints | None = None) -> None:
    """Reference models whose training followed which points, or groups of points, are in F would tell every score."""
    references = file.references
    if references is None or not references.sees_points:
        return
    times = references.member.sum(axis=0)[references.places(file.outputs.point[rows])].astype(np.float64)
    if group is not None:
        times, in_forget = group_means(times, group), group_means(in_forget, group) > 0
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


def refuse_copies(file: AuditFile, method: str, rows: Ints) -> None:
    """A reference model that is the model under audit, or another reference model, shows nothing: what is left of a
    comparison is rounding."""
    references = file.references
    if references is None:
        return
    at, names = references.places(file.outputs.point[rows]), references.models.tolist()
    said: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {
        name: (file.outputs.scores[name][rows], own[:, at]) for name, own in references.scores.items()
    }
    if references.logits is not None and file.outputs.logits is not None:
        said["logits"] = file.outputs.logits[rows], references.logits[:, at]
    for what, (mine, theirs) in said.items():
        for place, name in enumerate(names):
            if not _is_fine(theirs[place]):
                continue
            if is_one_model(mine, theirs[place]):
                raise UserError(
                    f"{file.source}: reference model {name} is '{method}' itself: the same {what}; where "
                    "training has no chance in it, train reference models on other random parts of R"
                )
            earlier = range(place) if place < MOST_TWINS else ()
            twin = next((i for i in earlier if is_one_model(theirs[i], theirs[place])), None)
            if twin is not None:
                twins = f"{names[twin]} and {name}"
                raise UserError(f"{file.source}: reference models {twins} are one model: the same {what}")


def _is_fine(values: Floats) -> bool:
    """Whether hardly any two points have the same outputs: those of coarse ones may agree by chance."""
    return len(np.unique(values, axis=0)) > 0.9 * len(values)


def refuse_reversed(file: AuditFile, group: Ints | None = None) -> None:
    """A reference model to which points that it was trained on are less familiar than the others.

    Where groups were drawn, `group` is that of each of the references' points: the records of a person are easy or hard
    together, so those that a model was trained on count as one by their mean, and so do those that it was not.
    """
    references = file.references
    if references is None or not references.sees_points:
        return
    scores = {name: sign_of(name) * own for name, own in references.scores.items()}
    if references.logits is not None:
        scores["logits"] = panel_values(references.panel(), NEGATIVE_LOSS)
    for own in scores.values():
        for model, member, score in zip(references.models.tolist(), references.member, own, strict=True):
            if not 0 < member.sum() < len(member) or np.ptp(score) == 0:
                continue
            if group is not None:
                _, part = np.unique(2 * group + member, return_inverse=True)
                score, member = group_means(score, part), group_means(member, part) > 0
            test = ranks_test(score, member)
            if test.advantage < 0 and test.log_p <= np.log(FOLLOWS_F / len(references.models)):
                raise UserError(
                    f"{file.source}: to reference model {model} points that it was trained on are less familiar than "
                    "others: is reference_member (reference-in, reference-out) reversed?"
                )
