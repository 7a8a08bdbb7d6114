"""The learner, the unlearner or the adversary that a job names, made with the parameters it gives."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary
from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import Job
from forgetgauge.plugins.catalogue import Catalogue, code_of

if TYPE_CHECKING:
    from forgetgauge.learn.learner import Learner


def make_learner(job: Job) -> Learner:
    """The learner a job names."""
    _check_initial_state(job.params["learner"])
    learner: Learner = _make(plugins.learners, job.params["learner"])
    return learner


def _check_initial_state(identity: Mapping[str, Any]) -> None:
    """A module of the user's that is made on import must come out with the same weights in every process."""
    name = identity["params"].get("model")
    if not (isinstance(name, str) and ":" in name):
        return
    thing = plugins.models.load(name)
    is_made = hasattr(thing, "state_dict") and not isinstance(thing, type)
    if is_made and _digest_of_model(name, thing) not in identity["code"]:
        raise UserError(
            f"model '{name}' has other weights than when the run was planned: make it under a seed of its own, or name "
            "a class or a function that makes it"
        )


@functools.lru_cache(maxsize=8)
def _digest_of_model(name: str, made: object) -> str:
    """Of a module that stays as it was made: taking its digest for every job would take long."""
    return code_of(plugins.models, name)


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
    return thing(**identity["params"]) if isinstance(thing, type) else thing
