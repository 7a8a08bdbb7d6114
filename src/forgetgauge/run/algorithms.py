"""The learner, the unlearner or the adversary that was chosen by name, made with its parameters."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary
from forgetgauge.plan.jobs import Named
from forgetgauge.plugins.catalogue import Catalogue

if TYPE_CHECKING:
    from forgetgauge.learn.learner import Learner


def make_learner(chosen: Named) -> Learner:
    """A learner."""
    learner: Learner = _make(plugins.learners, chosen)
    return learner


def make_unlearner(chosen: Named) -> Any:
    """An unlearner; a plain function of the user's is wrapped."""
    from forgetgauge.unlearn.own import as_unlearner

    return as_unlearner(plugins.unlearners.load(chosen.name), dict(chosen.params))


def make_adversary(chosen: Named) -> Adversary:
    """An adversary."""
    adversary: Adversary = _make(plugins.adversaries, chosen)
    return adversary


def _make(catalogue: Catalogue, chosen: Named) -> Any:
    thing = catalogue.load(chosen.name)
    return thing(**copy.deepcopy(dict(chosen.params))) if isinstance(thing, type) else thing
