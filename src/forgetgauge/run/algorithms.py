"""The learner, the unlearner or the adversary that was chosen by name, made with its parameters.

Where it is the user's own code: what stands for it in keys, which jobs run it, and whether a worker has the same code.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary
from forgetgauge.attack.parameters import adjusted
from forgetgauge.code import Code
from forgetgauge.data.checkpoints import checkpoint_files
from forgetgauge.errors import UserError
from forgetgauge.plan.game import Game
from forgetgauge.plan.jobs import USES_TORCH, Job, ModelJob, Named, code_key
from forgetgauge.plugins.catalogue import Catalogue, code_behind

if TYPE_CHECKING:
    from forgetgauge.learn.learner import Learner


def make_learner(chosen: Named) -> Learner:
    """The learner of this name, with its parameters."""
    learner: Learner = _make(plugins.learners, chosen)
    return learner


def make_unlearner(chosen: Named) -> Any:
    """An unlearner; a plain function of the user's is wrapped."""
    from forgetgauge.unlearn.own import as_unlearner

    return as_unlearner(plugins.unlearners.load(chosen.name), dict(chosen.params))


def strength_in_stack(chosen: Named) -> str:
    """The parameter in which members of a stack of the method may differ, which its entry names; empty without one."""
    entry = plugins.unlearners.entries.get(chosen.name)
    return entry.differs_in if entry is not None and entry.differs_in in chosen.params else ""


def make_adversary(chosen: Named) -> Adversary:
    """The adversary of this name, with its parameters."""
    thing = plugins.adversaries.load(chosen.name)
    is_class = isinstance(thing, type)
    adversary: Adversary = _make(plugins.adversaries, chosen) if is_class else adjusted(thing, chosen.params)
    return adversary


def _make(catalogue: Catalogue, chosen: Named) -> Any:
    thing = catalogue.load(chosen.name)
    return thing(**copy.deepcopy(dict(chosen.params))) if isinstance(thing, type) else thing


# -- the user's own code -----------------------------------------------------------------------------------------------

CATALOGUES = {"learner": plugins.learners, "unlearner": plugins.unlearners, "adversary": plugins.adversaries}
"""By the key under which jobs name them."""


def code_of_choice(catalogue: Catalogue, name: str, params: Mapping[str, Any]) -> Code:
    """What stands in keys for a choice by name: its code where that is the user's own, its model's, its checkpoints."""
    chosen = [(catalogue, name)]
    if catalogue is plugins.learners and isinstance(params.get("model"), str):
        chosen.append((plugins.models, params["model"]))
    return code_behind(chosen, params, checkpoint_files(params))


def is_own(job: Job) -> bool:
    """Whether a job runs a learner, an unlearner or an adversary of the user's."""
    return any(named.name not in CATALOGUES[what].entries for what, named in job.choices)


def trains_own_models(learner: Named) -> bool:
    """Whether a learner or its model is the user's."""
    return learner.name not in plugins.learners.entries or learner.model not in ("", *plugins.models.entries)


def makes_own_models(job: ModelJob) -> bool:
    """Whether a learner, a model or an unlearner of the user's has a hand in the models that a job makes."""
    return is_own(job) or trains_own_models(job.learner)


def own_code_of(games: list[Game]) -> dict[str, Named]:
    """All that has a digest of code, by its place in a job, its name and its code: whatever its parameters are."""
    chosen = [(what, named) for game in games for what, _, named in game.choices if named.code]
    return {code_key(what, named): named for what, named in chosen}


class CodeCheck:
    """Whether the code that a worker process imports is the code that the run was planned with.

    All of it is looked at before the first of it runs: running code may change its own globals.
    """

    def __init__(self, planned: Mapping[str, Named]) -> None:
        self._planned = dict(planned)
        self._changed: dict[str, str] = {}
        self._looked: set[bool] = set()

    def check(self, job: Job) -> None:
        """UserError where the job would run other code than its key names."""
        uses_torch = job.kind in USES_TORCH
        if uses_torch not in self._looked:
            self._looked.add(uses_torch)
            for key, named in self._planned.items():
                what = key.partition(" ")[0]
                if (what != "adversary") == uses_torch:
                    self._look(key, what, named)
        for what, named in job.choices:
            if (key := code_key(what, named)) in self._changed:
                raise UserError(self._changed[key])

    def _look(self, key: str, what: str, named: Named) -> None:
        try:
            same = code_of_choice(CATALOGUES[what], named.name, named.params).digest == named.code
        except UserError as error:
            self._changed[key] = str(error)
            return
        if not same:
            self._changed[key] = (
                f"{what} '{named.name}' (or its model) is not the same in a worker process as when the run was "
                "planned: it was edited meanwhile, a global of its module was set in this program alone (then use "
                "executor inline), a file that a parameter names was written to (then call that parameter output), or "
                "it draws random numbers when it is imported (then name what makes it instead)"
            )
