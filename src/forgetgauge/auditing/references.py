"""What reference models say of the very points under audit: models like the one under audit, that saw none of them, or
some of them whatever set these are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Panel, Role, TargetContext
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Bools, Floats, Ints

REFERENCE = (
    "reference_model",
    "reference_point",
    "reference_member",
    "reference_logits",
    "reference_score",
    "reference_loss",
)


@dataclass(frozen=True)
class References:
    """Models and points: every model shows every point once."""

    models: npt.NDArray[np.str_]
    """(n_models,) their names, in ascending order."""
    points: npt.NDArray[np.str_]
    """(n_points,) their ids, in ascending order."""
    labels: Ints
    """(n_points,)."""
    member: Bools
    """(n_models, n_points) whether the model was trained on the point."""
    logits: npt.NDArray[np.float32] | None
    """(n_models, n_points, n_classes)."""
    scores: Mapping[str, Floats]
    """Those of the file's own scores that reference models have too, each (n_models, n_points)."""

    @property
    def sees_points(self) -> bool:
        """Whether some model was trained on some of the points, and some model was not."""
        return bool(self.member.any() and not self.member.all())

    @property
    def is_outside(self) -> bool:
        """Whether every point has a model that was not trained on it."""
        return bool((~self.member).any(axis=0).all())

    def places(self, point: npt.NDArray[Any]) -> Ints:
        """Where these points stand among the references' points."""
        return np.searchsorted(self.points, point.astype(str)).astype(np.int64)

    def panel(self) -> Panel:
        """The logits, as adversaries are fitted on them."""
        assert self.logits is not None
        role = np.where(self.member, Role.IN, Role.OUT).astype(np.int8)
        return Panel(self.logits, self.labels, role)

    def context(self, n_classes: int) -> TargetContext:
        """What adversaries may know of the points under audit; those who saw a point are no outsiders to it."""
        panel = self.panel()
        return TargetContext(n_classes, references=panel, outsiders=panel)


def arranged(
    source: str,
    columns: Mapping[str, npt.NDArray[Any]],
    point: npt.NDArray[Any],
    label: Ints,
) -> References:
    """The rows of reference models as models and points.

    `columns` are `model`, `point`, `member`, and those of `logits`, `score`, `loss` that there are; `point` and `label`
    are of the rows under audit.
    """
    names, first = np.unique(point.astype(str), return_index=True)
    shown, models = columns["point"].astype(str), columns["model"].astype(str)
    unknown = np.setdiff1d(shown, names)
    if len(unknown):
        raise UserError(f"{source}: reference_point has '{unknown[0]}', which is no point under audit")
    ids, which = np.unique(models, return_inverse=True)
    place = which * len(names) + np.searchsorted(names, shown)
    counts = np.bincount(place, minlength=len(ids) * len(names))
    if (counts != 1).any():
        model, at = divmod(int(np.flatnonzero(counts != 1)[0]), len(names))
        what = "lacks" if counts[model * len(names) + at] == 0 else "has more than once"
        raise UserError(
            f"{source}: reference model {ids[model]} {what} the point {names[at]}; every reference model must show "
            "every point under audit once"
        )
    order = np.argsort(place)

    def table(name: str) -> npt.NDArray[Any]:
        column = columns[name][order]
        return column.reshape(len(ids), len(names), *column.shape[1:])

    return References(
        models=ids,
        points=names,
        labels=label[first],
        member=table("member"),
        logits=table("logits") if "logits" in columns else None,
        scores={name: table(name) for name in ("score", "loss") if name in columns},
    )
