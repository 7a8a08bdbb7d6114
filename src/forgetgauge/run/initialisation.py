"""The initialization phase: the target half, its labels, and the sensitivity P_D over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.data.doubts import doubts_of
from forgetgauge.game import sensitivity
from forgetgauge.plan.jobs import InitialiseJob
from forgetgauge.run.assignments import Sources
from forgetgauge.run.holdings import Holdings
from forgetgauge.store.objects import Artefact


def initialise(job: InitialiseJob, holdings: Holdings) -> Artefact:
    """What every later phase of a game shares."""
    target, _shadow = holdings.drawn(job.halves)
    dataset = holdings.dataset(job.halves)
    labels = dataset.points.host_labels[target]
    weight = sensitivity_weights(job.sensitivity, labels, target, holdings.sources)
    return Artefact({"target": target, "labels": labels, "weight": weight}, {"doubts": doubts_of(dataset)})


def sensitivity_weights(
    how: Mapping[str, Any], labels: npt.NDArray[np.int64], target: npt.NDArray[np.int64], sources: Sources
) -> npt.NDArray[np.float64]:
    """(|D|,) P_D, normalised over the target half."""
    if how["kind"] == "by-class":
        return sensitivity.by_class(labels, {int(label): weight for label, weight in how["weights"].items()})
    if how["kind"] == "file":
        return sensitivity.checked(np.asarray(sources.weights[how["digest"]])[target], len(target))
    return sensitivity.uniform(len(target))
