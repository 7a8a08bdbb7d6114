"""The learner, the unlearner or the adversary that a job names, made with the parameters it gives."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary
from forgetgauge.plan.jobs import Job
from forgetgauge.plugins.catalogue import Catalogue

if TYPE_CHECKING:
    from forgetgauge.learn.learner import Learner


def make_learner(job: Job) -> Learner:
    """The learner a job names."""
    learner: Learner = _make(plugins.learners, job.params["learner"])
    return learner


def make_unlearner(job: Job) -> Any:
    """The unlearner a job names; a plain function of the user's is wrapped."""
    from forgetgauge.unlearn.own import as_unlearner

    identity = job.params["unlearner"]
    return as_unlearner(plugins.unlearners.load(identity["name"]), identity["params"])


def make_adversary(job: Job) -> Adversary:
    """The adversary a job names."""
    adversary: Adversary = _make(plugins.adversaries, job.params["adversary"])
    return adversary


def _make(catalogue: Catalogue, identity: Mapping[str, Any]) -> Any:
    thing = catalogue.load(identity["name"])
    return thing(**copy.deepcopy(dict(identity["params"]))) if isinstance(thing, type) else thing
