"""Choice by name: the catalogues of unlearners, adversaries, learners, models, data sets, tasks and executors.

A catalogue knows names and one-line facts; the code behind a name is imported when it is first used, so listing and
`--help` stay instant. A name of the form `module:attribute` is the user's own code, imported from the Python path.
"""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Catalogue
from forgetgauge.plugins.shipped import DATA, EXECUTORS, LEARNERS, MODELS, TASKS, UNLEARNERS
from forgetgauge.plugins.shipped_adversaries import ADVERSARIES

unlearners = Catalogue("unlearner", UNLEARNERS)
adversaries = Catalogue("adversary", ADVERSARIES)
learners = Catalogue("learner", LEARNERS)
models = Catalogue("model", MODELS)
data = Catalogue("data set", DATA)
tasks = Catalogue("task", TASKS)
executors = Catalogue("executor", EXECUTORS)
"""Called with the folder of artefacts, `Sources` and a device; named on the command line, never in a run file."""

CATALOGUES = {
    "unlearners": unlearners,
    "adversaries": adversaries,
    "learners": learners,
    "models": models,
    "data": data,
    "tasks": tasks,
    "executors": executors,
}
