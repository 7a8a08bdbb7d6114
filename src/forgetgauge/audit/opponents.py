"""Who plays against an audit file: the catalogue's adversaries on its logits, its own score, its own decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Attack, Panel, Role, TargetContext, answers_of
from forgetgauge.attack.threshold import class_thresholds
from forgetgauge.audit.outputs import AuditFile, ShadowRows
from forgetgauge.errors import UserError
from forgetgauge.game.adversary import Access
from forgetgauge.plan.draws import draw_showing
from forgetgauge.plan.spec import RunSpec

OWN_SCORE, OWN_DECISIONS = "own score", "own decisions"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Player:
    """A fitted adversary that is asked about rows of the file, all of one model."""

    decide: Callable[[Ints], npt.NDArray[np.bool_]]
    """A(m, x) = 1 for each row."""
    margin: Callable[[Ints], npt.NDArray[np.float64]] | None
    """How far each is above its threshold; None of decisions without a score."""


@dataclass(frozen=True)
class Opponents:
    """The declared class of adversaries, not yet fitted."""

    file: AuditFile
    catalogue: Mapping[str, Adversary]

    @property
    def names(self) -> list[str]:
        """In the order of the result."""
        own = [(OWN_SCORE, self.file.outputs.score), (OWN_DECISIONS, self.file.outputs.decision)]
        return [*self.catalogue, *(name for name, column in own if column is not None)]

    def against(self, method: str) -> list[Player]:
        """All of them, fitted on the shadow rows that serve a method."""
        outputs, shadows = self.file.outputs, self.file.shadows
        found: list[Player] = []
        rows = _rows_for(self.file, shadows, method) if shadows is not None else np.arange(0)
        if self.catalogue:
            assert shadows is not None
            panel = _panel(shadows, rows)
            context = TargetContext(self.file.n_classes)
            found += [self._player(adversary.fit(panel, context)) for adversary in self.catalogue.values()]
        if outputs.score is not None:
            found.append(self._own_score(rows))
        if outputs.decision is not None:
            found.append(Player(outputs.decision.__getitem__, None))
        return found

    def _player(self, attack: Attack) -> Player:
        outputs = self.file.outputs

        def answers(rows: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
            return answers_of(attack, outputs.signals(rows), draw_showing(outputs.point[rows]))

        return Player(lambda rows: answers(rows)[0], lambda rows: answers(rows)[1])

    def _own_score(self, fitted_on: Ints) -> Player:
        outputs, shadows = self.file.outputs, self.file.shadows
        assert shadows is not None
        assert shadows.score is not None
        score = outputs.score
        assert score is not None
        labels, member = shadows.label[fitted_on], shadows.member[fitted_on]
        thresholds = class_thresholds(shadows.score[fitted_on], labels, member, self.file.n_classes)

        def margin(rows: Ints) -> npt.NDArray[np.float64]:
            return score[rows] - thresholds[outputs.label[rows]]

        return Player(lambda rows: margin(rows) >= 0, margin)


def opponents_of(file: AuditFile, names: Sequence[str] | None) -> Opponents:
    """The adversaries named, or those a run declares by default as far as a shadow block suffices to fit them."""
    if file.outputs.logits is None:
        if names:
            raise UserError(f"{file.source}: it has no logits, so '{names[0]}' has nothing to look at")
        return Opponents(file, {})
    if names is None:
        every = {name: _load(name, params) for name, params in RunSpec().adversaries.items()}
        return Opponents(file, {name: one for name, one in every.items() if _why_not(one) is None})
    for name in names:
        reason = _why_not(_load(name))
        if reason:
            raise UserError(f"{file.source}: adversary '{name}' needs {reason}, which an audit file does not hold")
    return Opponents(file, {name: _load(name) for name in names})


def _load(name: str, params: Mapping[str, Any] = MappingProxyType({})) -> Any:
    thing = plugins.adversaries.load(params.get("method", name))
    given = {key: value for key, value in params.items() if key != "method"}
    return thing(**given) if isinstance(thing, type) else thing


def _why_not(adversary: Adversary) -> str | None:
    if adversary.needs:
        return " and ".join(sorted(str(need) for need in adversary.needs))
    return "the weights" if adversary.access is Access.WHITE_BOX else None


def _rows_for(file: AuditFile, shadows: ShadowRows, method: str) -> Ints:
    rows = shadows.of_method(method)
    member = shadows.member[rows]
    if member.all() or not member.any():
        kind = "points outside training" if member.any() else "training points"
        whose = "" if shadows.method is None else f" for method '{method}'"
        raise UserError(f"{file.source}: the shadow block{whose} has no {kind}; thresholds need both sorts")
    return rows


def _panel(shadows: ShadowRows, rows: Ints) -> Panel:
    """Models that show the same labels in the same order show the same points; otherwise each row is a point."""
    assert shadows.logits is not None
    models = [rows[shadows.model[rows] == model] for model in dict.fromkeys(shadows.model[rows].tolist())]
    alike = all(np.array_equal(shadows.label[mine], shadows.label[models[0]]) for mine in models)
    index = np.stack(models) if alike else rows[None]
    role = np.where(shadows.member[index], Role.IN, Role.OUT).astype(np.int8)
    return Panel(shadows.logits[index], shadows.label[index[0]], role)
