"""Adversaries are fitted to the signals of shadow models, then decide about a target's. No torch is loaded.

Any adversary can be asked about a whole group: it decides on the mean margin of the group's points, against a threshold
that best tells the groups that shadow models were trained on from those they were not. An attack that judges shadow
models at some of the points only (where others leave them out) has it from random handfuls of these margins, as large
as a group; one that keeps none is a likelihood ratio, whose threshold is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import Calibration, Panel, Role, TargetContext, answers_of, calibration_of
from forgetgauge.attack.signals import Signals
from forgetgauge.game.arrays import Floats, Ints, group_means
from forgetgauge.game.strong import strong_threshold
from forgetgauge.plan.draws import draw_showing
from forgetgauge.plan.jobs import DRAW, DecideJob, FitJob
from forgetgauge.run.algorithms import make_adversary
from forgetgauge.store.objects import Artefact
from forgetgauge.streams import Streams
from forgetgauge.tasks.task import Task

GROUP_THRESHOLD = "group threshold"
"""Beside what an attack keeps: above which the mean margin of a group makes it a forgotten one."""
N_PLAYS = 2000
"""Handfuls of margins of each shadow model."""


def fit(job: FitJob, inputs: Mapping[str, Artefact]) -> Artefact:
    """The attack that the job's adversary makes of the panels it is shown."""
    task = plugins.tasks.load(job.task)
    panels = {name: panel_of(name, inputs, task) for name in ("shadow", "reference", "outsider")}
    shadows = panels["shadow"]
    assert shadows is not None
    if DRAW in inputs:
        shadows = replace(shadows, role=_at_hardest(shadows.role, inputs[DRAW].arrays["shadow hardest"]))
    adversary = make_adversary(job.adversary)
    attack = adversary.fit(shadows, TargetContext(job.n_classes, panels["reference"], panels["outsider"]))
    calibration, further = calibration_of(adversary, attack, shadows), dict[str, npt.NDArray[Any]]()
    if job.by_group:
        rng = Streams(job.key).generator("group threshold")
        threshold, calibration = calibrated_by_group(calibration, shadows, inputs["shadow-0"].arrays["group"], rng)
        further[GROUP_THRESHOLD] = np.array([threshold])
    return Artefact({**attack.arrays(), **_calibration_arrays(calibration), **further}, {})


def decide(job: DecideJob, inputs: Mapping[str, Artefact]) -> Artefact:
    """What a fitted attack says about the points of a pair; it is shown them in an order that says nothing."""
    attack = make_adversary(job.adversary).load(inputs["fit"].arrays)
    task = plugins.tasks.load(job.task)
    background = _signals_of(inputs["background"], task) if "background" in inputs else None
    signals = _signals_of(inputs["signals"], task, background)
    assert signals.points is not None
    says_forget, margin = answers_of(attack, signals, draw_showing(signals.points))
    if job.by_group:
        threshold = float(inputs["fit"].arrays[GROUP_THRESHOLD][0])
        margin = margins_by_group(margin, inputs["signals"].arrays["group"], threshold)
        says_forget = margin >= 0
    return Artefact({"says_forget": says_forget, "margin": margin}, {})


def _at_hardest(role: npt.NDArray[np.int8], hardest: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
    """(models, points): where F and T are of the hardest points, an adversary learns at points that are as hard."""
    return np.where(hardest, role, np.int8(Role.NEITHER))


def panel_of(name: str, inputs: Mapping[str, Artefact], task: Task) -> Panel | None:
    """The panel of the artefacts `name-0`, `name-1`, …"""
    models = [inputs[f"{name}-{i}"].arrays for i in range(len(inputs)) if f"{name}-{i}" in inputs]
    if not models:
        return None
    columns = [key for key in models[0] if key.startswith("column ")]
    return Panel(
        np.stack([arrays["outputs"] for arrays in models]),
        models[0]["labels"],
        np.stack([arrays["role"] for arrays in models]),
        {key.removeprefix("column "): np.stack([arrays[key] for arrays in models]) for key in columns},
        task,
    )


def _signals_of(artefact: Artefact, task: Task, background: Signals | None = None) -> Signals:
    arrays = artefact.arrays
    columns = {key.removeprefix("column "): arrays[key] for key in arrays if key.startswith("column ")}
    return Signals(arrays["outputs"], arrays["labels"], arrays.get("points"), background, columns, task)


def _calibration_arrays(calibration: Calibration) -> dict[str, npt.NDArray[Any]]:
    """Margins of all shadow models one after another, with whose they are; empty where there are none."""
    if not calibration:
        return {}
    sides = [
        (margins, member, which)
        for which, both in enumerate(calibration)
        for margins, member in zip(both, (1, 0), strict=True)
    ]
    return {
        "shadow margin": np.concatenate([margins for margins, _, _ in sides]),
        "shadow member": np.concatenate([np.full(len(margins), bool(member)) for margins, member, _ in sides]),
        "shadow model": np.concatenate([np.full(len(margins), which) for margins, _, which in sides]),
    }


# -- groups ------------------------------------------------------------------------------------------------------------


def means_of_groups(margin: Floats, group: Ints) -> Floats:
    """(n_groups,) the mean margin of each group, in the order of their names."""
    return group_means(margin, np.unique(group, return_inverse=True)[1])


def margins_by_group(margin: Floats, group: Ints, threshold: float) -> Floats:
    """(n,) how far the mean margin of each point's group is above the threshold."""
    place = np.unique(group, return_inverse=True)[1]
    return means_of_groups(margin, group)[place] - threshold


def calibrated_by_group(
    calibration: Calibration, shadows: Panel, group: Ints, rng: np.random.Generator
) -> tuple[float, Calibration]:
    """(the threshold of group means, how far these are above it for each shadow model; empty where it is not known).

    `calibration` holds margins of points, `group` names the group of each of the shadows' points, (n_points,).
    """
    if not calibration:
        return 0.0, ()
    rows = [(group[role == Role.IN], group[role == Role.OUT]) for role in shadows.role]
    if all(len(m) == len(i) and len(o) == len(n) for (m, o), (i, n) in zip(calibration, rows, strict=True)):
        means = [
            (means_of_groups(m, i), means_of_groups(o, n)) for (m, o), (i, n) in zip(calibration, rows, strict=True)
        ]
        threshold = _threshold(means, 1, rng)
        return threshold, tuple((own - threshold, other - threshold) for own, other in means)
    size = round(float(np.median(np.unique(group, return_counts=True)[1])))
    return _threshold(list(calibration), size, rng), ()


def _threshold(models: list[tuple[Floats, Floats]], n_queries: int, rng: np.random.Generator) -> float:
    members, others = ([side for side in sides if len(side)] for sides in zip(*models, strict=True))
    return strong_threshold(members, others, n_queries, N_PLAYS, rng)
