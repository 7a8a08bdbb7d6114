"""Adversaries are fitted to the signals of shadow models, then decide about a target's. No torch is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import Calibration, Panel, Role, TargetContext, answers_of, calibration_of
from forgetgauge.attack.by_group import calibrated_by_group, margins_by_group
from forgetgauge.attack.signals import Signals
from forgetgauge.plan.draws import draw_showing
from forgetgauge.plan.jobs import DRAW, DecideJob, FitJob
from forgetgauge.run.algorithms import make_adversary
from forgetgauge.store.objects import Artefact
from forgetgauge.streams import Streams
from forgetgauge.tasks.task import Task

GROUP_THRESHOLD = "group threshold"
"""Beside what an attack keeps: above which the mean margin of a group makes it a forgotten one."""


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
