"""An ensemble: a logistic regression over the margins of several adversaries, fitted on the reference models.

Attacks call different points members. Each reference model in turn stands in for the target: what it was trained on is
known, and adversaries that lean on reference models are fitted to the others. A margin m becomes m / (|m| + its
median size), which keeps its sign and its order and lets no attack shout. F and T have no part in it: reference models
are drawn without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from forgetgauge import plugins
from forgetgauge.attack.adversary import (
    WHITE_BOX_COLUMNS,
    Adversary,
    Arrays,
    Attack,
    Calibration,
    Need,
    Panel,
    Role,
    TargetContext,
)
from forgetgauge.attack.adversary import margin_of as finite_margin
from forgetgauge.attack.reference import needed
from forgetgauge.attack.shadow_model import fit_classifier
from forgetgauge.attack.signals import Signals
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.plan.parameters import declared
from forgetgauge.probing import attribute

MEMBERS = (
    *("correctness", "confidence", "entropy", "modified-entropy", "loss"),
    *("shadow", "lira-online", "lira-offline"),
)
"""The default class as far as a reference model can stand in for a target: rmia-offline asks for points of the shadow
half that the model never saw, and reference models saw half of them."""


@dataclass(frozen=True)
class EnsembleAttack(Attack):
    """The log-odds that a classifier gives to the margins of fitted attacks."""

    attacks: Mapping[str, Attack]
    size: Floats
    """(n_attacks,) the median size of each attack's margins."""
    centre: Floats
    """(n_attacks,), as the next two."""
    scale: Floats
    weight: Floats
    intercept: Floats
    """()."""
    calibration: Calibration = ()
    """Margins of the reference models, to none of which an attack was fitted."""

    def score(self, signals: Signals) -> Floats:
        """(n,) log-odds of being a member."""
        return self.combined(np.stack([finite_margin(attack, signals) for attack in self.attacks.values()], axis=1))

    def combined(self, margins: Floats) -> Floats:
        """(n,) log-odds, of (n, n_attacks) margins."""
        standardised = (bounded(margins, self.size) - self.centre) / self.scale
        result: Floats = (standardised * self.weight).sum(axis=1) + self.intercept
        return result

    def margin(self, signals: Signals) -> Floats:
        """(n,) the score: its threshold is 0."""
        return self.score(signals)

    def arrays(self) -> Arrays:
        """What each attack learned, and the classifier."""
        members = {f"{name}: {key}": part for name, one in self.attacks.items() for key, part in one.arrays().items()}
        own = {"size": self.size, "centre": self.centre, "scale": self.scale, "weight": self.weight}
        return {**members, **own, "intercept": self.intercept}


@dataclass(frozen=True)
class Ensemble:
    """Before it has seen anything."""

    of: tuple[str, ...] = declared(MEMBERS, "the adversaries whose margins it reads")

    def __post_init__(self) -> None:
        """Refuse adversaries that a reference model cannot stand in for a target with."""
        object.__setattr__(self, "of", tuple(self.of))
        if len(self.of) < 2 or len(set(self.of)) < len(self.of):
            raise ValueError(f"of = {list(self.of)} does not name two or more different adversaries")
        for name, one in self.adversaries.items():
            if isinstance(one, Ensemble) or one.needs & {Need.BACKGROUND, Need.UNLEARNED, Need.RELEARNED}:
                raise ValueError(f"of: '{name}' cannot be used: no reference model can stand in for its target")

    @cached_property
    def adversaries(self) -> dict[str, Adversary]:
        """By name."""
        return {name: plugins.adversaries.load(name) for name in self.of}

    @property
    def needs(self) -> frozenset[Need]:
        """All that its members ask for, and reference models to be fitted on."""
        return frozenset({Need.REFERENCES}).union(*(one.needs for one in self.adversaries.values()))

    @property
    def access(self) -> Access:
        """White box if a member is."""
        return Access.WHITE_BOX if self.needs & {*WHITE_BOX_COLUMNS} else Access.BLACK_BOX

    @property
    def reads(self) -> frozenset[str]:
        """All that its members read."""
        return frozenset().union(*(getattr(one, "reads", frozenset()) for one in self.adversaries.values()))

    @property
    def least_left_out(self) -> int:
        """The most that a member asks for."""
        return max(int(attribute(one, "least_left_out", 0)) for one in self.adversaries.values())

    def fit(self, shadows: Panel, target: TargetContext) -> EnsembleAttack:
        """A classifier of the margins at each reference model, which no attack was fitted to."""
        references = needed(target.references, "reference models on D")
        if references.n_models < 2:
            raise ValueError("leaving one reference model out needs two or more reference models")
        attacks = {name: one.fit(shadows, target) for name, one in self.adversaries.items()}
        by_model = [self._margins(which, attacks, shadows, target) for which in range(references.n_models)]
        used = references.role != Role.NEITHER
        margins = np.concatenate([own[of] for own, of in zip(by_model, used, strict=True)])
        size = np.median(np.abs(margins), axis=0)
        size = np.where(size > 0, size, 1.0)
        fitted = fit_classifier(bounded(margins, size), references.role[used] == Role.IN)
        attack = EnsembleAttack(attacks, size, *fitted[:3], np.array(fitted[3]))
        log_odds = [(attack.combined(own), role) for own, role in zip(by_model, references.role, strict=True)]
        return replace(
            attack, calibration=tuple((own[role == Role.IN], own[role == Role.OUT]) for own, role in log_odds)
        )

    def _margins(self, which: int, attacks: Mapping[str, Attack], shadows: Panel, target: TargetContext) -> Floats:
        """(n_points of D, n_members) with one reference model in the place of the target."""
        references = needed(target.references, "reference models on D")
        signals = replace(references.model(which), points=np.arange(references.role.shape[1]))
        others = replace(target, references=_without(references, which))
        columns = []
        for name, one in self.adversaries.items():
            attack = one.fit(shadows, others) if Need.REFERENCES in one.needs else attacks[name]
            columns.append(finite_margin(attack, signals))
        return np.stack(columns, axis=1)

    def load(self, arrays: Arrays) -> EnsembleAttack:
        """The attack again."""
        attacks = {}
        for name, one in self.adversaries.items():
            own = {key.removeprefix(f"{name}: "): part for key, part in arrays.items() if key.startswith(f"{name}: ")}
            attacks[name] = one.load(own)
        size, centre, scale, weight = (arrays[name] for name in ("size", "centre", "scale", "weight"))
        return EnsembleAttack(attacks, size, centre, scale, weight, arrays["intercept"])


def bounded(margins: Floats, size: Floats) -> Floats:
    """(n, n_attacks) m / (|m| + size), between −1 and 1."""
    result: Floats = margins / (np.abs(margins) + size)
    return result


def _without(panel: Panel, which: int) -> Panel:
    """The other models."""
    others = np.arange(panel.n_models) != which
    columns = {name: column[others] for name, column in panel.columns.items()}
    return replace(panel, outputs=panel.outputs[others], role=panel.role[others], columns=columns)


ENSEMBLE = Ensemble()
