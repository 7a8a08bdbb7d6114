"""Who plays against an audit file: the catalogue's adversaries on its logits, its own score, its own decisions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import (
    Adversary,
    Attack,
    Calibration,
    Need,
    Panel,
    Role,
    TargetContext,
    answers_of,
)
from forgetgauge.attack.signals import NEGATIVE_LOSS
from forgetgauge.attack.threshold import class_thresholds
from forgetgauge.auditing.outputs import OWN_SCORES, AuditFile, ShadowRows, sign_of
from forgetgauge.errors import UserError
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.direction import Lean, membership_lean
from forgetgauge.plan.draws import draw_showing
from forgetgauge.plan.spec import RunSpec
from forgetgauge.tasks.classification import CLASSIFICATION

OWN_DECISIONS = "own decisions"
WHITE_BOX = "it looks at the weights of the model, and an audit file holds outputs alone"
LACKING = {
    Need.REFERENCES: "it compares models that were trained on a point with models that were not: add the logits of "
    "reference models on the points under audit, with reference_member",
    Need.OUTSIDERS: "it compares the model with others that were not trained on the point: add the logits of such "
    "reference models on the points under audit, and a shadow block of two models or more on the same points",
    Need.BACKGROUND: "it also asks the model about points outside F and T that it never saw, for which an audit file "
    "has no columns; a test of one model (--draw or --requests) does without them",
    Need.UNLEARNED: "it is fitted on models that went through the same unlearning method, which an audit file does not "
    "hold",
    Need.GRADIENT_NORM: WHITE_BOX,
    Need.LANDSCAPE: WHITE_BOX,
    Need.RELEARNED: WHITE_BOX,
    Need.AUGMENTED: "it asks the model about altered copies of each point, and an audit file holds the outputs for the "
    "points alone",
}
"""What keeps an adversary from playing against a file that lacks what it asks for."""


@dataclass(frozen=True)
class FittedAdversary:
    """A fitted adversary that is asked about rows of the file, all of one model."""

    decide: Callable[[Ints], npt.NDArray[np.bool_]]
    """A(m, x) = 1 for each row."""
    margin: Callable[[Ints], npt.NDArray[np.float64]] | None
    """How far each is above its threshold; None of decisions without a score."""
    shadows: Lean | None = None
    """Which way the margins point on the shadow models; None of decisions."""
    of_others: tuple[npt.NDArray[np.bool_], ...] = ()
    """What it decides of each shadow model on points that this was not trained on; nothing where it does not see these
    alone."""
    notes: tuple[str, ...] = ()
    """What was learnt about it that its reader must know."""


@dataclass(frozen=True)
class Adversaries:
    """The declared class of adversaries, not yet fitted."""

    file: AuditFile
    catalogue: Mapping[str, Adversary]

    @property
    def names(self) -> list[str]:
        """In the order of the result."""
        own = [f"own {name}" for name in self.file.outputs.scores]
        return [*self.catalogue, *own, *([OWN_DECISIONS] if self.file.outputs.decision is not None else [])]

    def without(self, names: Collection[str]) -> Adversaries:
        """The same class of adversaries without those of the catalogue that have these names."""
        return Adversaries(self.file, {name: one for name, one in self.catalogue.items() if name not in names})

    def fitted_for(self, method: str) -> list[FittedAdversary]:
        """All of them, fitted on the shadow rows that serve a method."""
        outputs, shadows = self.file.outputs, self.file.shadows
        found: list[FittedAdversary] = []
        rows = _rows_for(self.file, shadows, method) if shadows is not None else np.arange(0)
        if self.catalogue:
            assert shadows is not None
            panel = _panel(shadows, rows)
            notes = self._check_members(panel, method)
            references, n_classes = self.file.references, self.file.n_classes
            has_logits = references is not None and references.logits is not None
            context = references.context(n_classes) if references and has_logits else TargetContext(n_classes)
            found += [self._fitted(one, one.fit(panel, context), panel, notes) for one in self.catalogue.values()]
        found += [self._own_score(name, rows) for name in OWN_SCORES if name in outputs.scores]
        if outputs.decision is not None:
            found.append(FittedAdversary(outputs.decision.__getitem__, None))
        return found

    def _check_members(self, panel: Panel, method: str) -> tuple[str, ...]:
        """Published attacks take the more confident points for members: shadow models that deny it are refused, and
        of those that are silent about it that is noted."""
        signals, member = panel.rows
        lean = membership_lean(NEGATIVE_LOSS(signals), member, signals.labels, _points(panel))
        if lean.sign < 0:
            raise UserError(
                f"{self.file.source}: the shadow models are less confident on their training points than on others "
                f"(AUC {lean.auc:.3f}{_whose(self.file.shadows, method)}); is shadow_member reversed? It is true where "
                "the shadow model was trained on the point"
            )
        if lean.sign > 0:
            return ()
        return (
            f"The shadow block{_whose(self.file.shadows, method)} does not tell training points from others ("
            f"confidence on the label: AUC {lean.auc:.3f}), so thresholds fitted on it rest on chance: a Q near 1 says "
            "little.",
        )

    def _fitted(self, adversary: Adversary, attack: Attack, panel: Panel, notes: tuple[str, ...]) -> FittedAdversary:
        outputs, references = self.file.outputs, self.file.references
        at = None if references is None else references.places(outputs.point)
        of_others: tuple[Bools, ...] = ()
        if adversary.needs:  # it knows the points under audit one by one, and nothing of those of shadow models
            lean = _lean_left_out(getattr(attack, "calibration", ()))
        else:
            shown, member = panel.rows
            said, margins = answers_of(attack, shown, draw_showing(_points(panel)))
            lean = membership_lean(margins, member, shown.labels, _points(panel))
            of_others = tuple(said[(panel.row_model == model) & ~member] for model in range(panel.n_models))

        def answers(rows: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
            seen = outputs.signals(rows, None if at is None else at[rows])
            return answers_of(attack, seen, draw_showing(outputs.point[rows]))

        return FittedAdversary(lambda rows: answers(rows)[0], lambda rows: answers(rows)[1], lean, of_others, notes)

    def _own_score(self, name: str, fitted_on: Ints) -> FittedAdversary:
        """With the sign that the shadow models give it, the same for all classes; F and T have no say in it."""
        outputs, shadows = self.file.outputs, self.file.shadows
        assert shadows is not None
        labels, member = shadows.label[fitted_on], shadows.member[fitted_on]
        shown = shadows.scores[name][fitted_on]
        lean = membership_lean(shown, member, labels, _points_of_rows(shadows, fitted_on))
        expected = sign_of(name)
        sign = lean.sign or expected
        score = sign * outputs.scores[name]
        thresholds = class_thresholds(sign * shown, labels, member, self.file.n_classes)

        def margin(rows: Ints) -> npt.NDArray[np.float64]:
            return score[rows] - thresholds[outputs.label[rows]]

        oriented = Lean(0.5 + sign * (lean.auc - 0.5), sign * lean.z)
        says, models = sign * shown >= thresholds[labels], shadows.model[fitted_on]
        of_others = tuple(says[(models == model) & ~member] for model in np.unique(models))
        notes = _on_direction(name, lean, expected)
        return FittedAdversary(lambda rows: margin(rows) >= 0, margin, oriented, of_others, notes)


def adversaries_of(file: AuditFile, names: Sequence[str] | None) -> Adversaries:
    """The adversaries named, or those a run declares by default as far as a shadow block suffices to fit them."""
    if file.outputs.logits is None:
        if names:
            raise UserError(f"{file.source}: it has no logits, so '{names[0]}' has nothing to look at")
        return Adversaries(file, {})
    if names is None:
        every = {name: _load(name, params) for name, params in RunSpec().adversaries.items()}
        return Adversaries(file, {name: one for name, one in every.items() if _why_not(one, file) is None})
    for name in names:
        reason = _why_not(_load(name), file)
        if reason:
            raise UserError(f"{file.source}: adversary '{name}' cannot play here: {reason}")
    return Adversaries(file, {name: _load(name) for name in names})


def _load(name: str, params: Mapping[str, Any] = MappingProxyType({})) -> Any:
    thing = plugins.adversaries.load(params.get("method", name))
    given = {key: value for key, value in params.items() if key != "method"}
    return thing(**given) if isinstance(thing, type) else thing


def _why_not(adversary: Adversary, file: AuditFile) -> str | None:
    """Why it cannot be fitted on what the file holds, in words; None where it can."""
    lacking = sorted(adversary.needs - _held(file))
    if lacking:
        return LACKING[lacking[0]]
    unread = sorted(getattr(adversary, "reads", frozenset()) - set(CLASSIFICATION.signals))
    if unread:
        return f"it reads the signal '{unread[0]}', which logits of classes do not give"
    return WHITE_BOX if adversary.access is Access.WHITE_BOX else None


def _held(file: AuditFile) -> set[Need]:
    """What the reference models of a file are good for; a threshold for outsiders comes of shadow models left out."""
    references, shadows = file.references, file.shadows
    if references is None or references.logits is None or shadows is None:
        return set()
    alike = [models_alike(shadows, shadows.of_method(method)) for method in np.unique(file.outputs.method).tolist()]
    can_leave_out = references.is_outside and all(models is not None and len(models) > 1 for models in alike)
    held = {Need.REFERENCES: references.sees_points, Need.OUTSIDERS: can_leave_out}
    return {need for need, is_held in held.items() if is_held}


def _lean_left_out(calibration: Calibration) -> Lean | None:
    """Which way the margins of shadow models point that were judged by the others; None of attacks that have none."""
    if not calibration:
        return None
    members, others = (np.concatenate(side) for side in zip(*calibration, strict=True))
    member = np.arange(len(members) + len(others)) < len(members)
    return membership_lean(np.concatenate([members, others]), member, np.zeros(len(member), dtype=np.int64))


def _rows_for(file: AuditFile, shadows: ShadowRows, method: str) -> Ints:
    rows = shadows.of_method(method)
    member = shadows.member[rows]
    if member.all() or not member.any():
        kind = "points outside training" if member.any() else "training points"
        raise UserError(
            f"{file.source}: the shadow block{_whose(shadows, method)} has no {kind}; thresholds need both sorts"
        )
    return rows


def _whose(shadows: ShadowRows | None, method: str) -> str:
    return "" if shadows is None or shadows.method is None else f" for method '{method}'"


def _on_direction(name: str, lean: Lean, expected: int) -> tuple[str, ...]:
    """What is said of an own score's direction; nothing of one that is as its name has it."""
    if lean.sign == 0:
        usual = "larger" if expected > 0 else "smaller"
        return (
            f"own {name}: the shadow block does not tell training points from others (AUC {lean.auc:.3f}), so it gives "
            f"the {name} no direction; {usual} values were taken for those of training points.",
        )
    if lean.sign == expected:
        return ()
    way, other = ("larger", "smaller") if lean.sign > 0 else ("smaller", "larger")
    hint = (
        "A loss is smaller there as a rule: is shadow_member reversed?"
        if name == "loss"
        else f"If {other} ones should be, shadow_member is reversed."
    )
    return (
        f"own {name}: {way} values were taken for those of training points, as the shadow block has them (AUC "
        f"{lean.auc:.3f}). {hint}",
    )


def models_alike(shadows: ShadowRows, rows: Ints) -> list[Ints] | None:
    """The rows of each shadow model, where all show the same labels in the same order, and hence the same points."""
    models = [rows[shadows.model[rows] == model] for model in dict.fromkeys(shadows.model[rows].tolist())]
    alike = all(np.array_equal(shadows.label[mine], shadows.label[models[0]]) for mine in models)
    return models if alike else None


def _panel(shadows: ShadowRows, rows: Ints) -> Panel:
    """Models that show the same points side by side; otherwise each row is a point."""
    assert shadows.logits is not None
    models = models_alike(shadows, rows)
    index = rows[None] if models is None else np.stack(models)
    role = np.where(shadows.member[index], Role.IN, Role.OUT).astype(np.int8)
    return Panel(shadows.logits[index], shadows.label[index[0]], role)


def _points(panel: Panel) -> Ints:
    """Which point each of a panel's rows is of."""
    return np.tile(np.arange(panel.role.shape[1]), panel.n_models)


def _points_of_rows(shadows: ShadowRows, rows: Ints) -> Ints:
    """Which point each of these rows is of, the rows being in the file's own order."""
    models = models_alike(shadows, rows)
    points = np.arange(len(rows))
    for mine in models or ():
        points[np.searchsorted(rows, mine)] = np.arange(len(mine))
    return points
