"""What a job can have made, and everything near it that no job makes."""

from __future__ import annotations

import numpy as np
import pytest

from forgetgauge.store.content import Expected, is_content
from forgetgauge.store.objects import Artefact

WAY = {"engine": "stack", "device": "cpu", "width": 4}
FACTS = {
    "utility": {"test": 0.5},
    "stated": {"epsilon": 1},
    "n_gradients": 3,
    "ran": WAY,
    "original_ran": WAY,
    "doubts": ["one"],
}
MADE = {
    "initialise": {"weight": np.array([0.0, 1, 2]), "target": np.arange(3), "labels": np.arange(3)},
    "signals": {"outputs": np.zeros((3, 2)), "labels": np.zeros(3), "points": np.arange(3), "role": np.arange(3)},
    "decide": {"says_forget": np.ones(3, dtype=bool), "margin": np.zeros(3)},
    "fit": {
        "shadow margin": np.zeros(3),
        "shadow member": np.ones(3, dtype=bool),
        "shadow model": np.arange(3),
        "other": np.zeros((2, 2)),
    },
    "train": {"layer.weight": np.zeros((2, 2)), "points": np.zeros(())},
}


@pytest.mark.parametrize("kind", MADE)
def test_what_a_job_makes_is_taken(kind):
    for facts in ({}, FACTS, {**FACTS, "ran": None, "original_ran": {}}):
        assert is_content(Expected(kind), Artefact(MADE[kind], facts)) is True
    assert is_content(Expected(kind, 3, True), Artefact(MADE[kind], FACTS)) is True


@pytest.mark.parametrize("kind", ["initialise", "signals", "decide", "fit"])
def test_arrays_that_are_missing_or_of_other_numbers_or_points_are_refused(kind):
    named = [name for name in MADE[kind] if name != "other"]
    assert is_content(Expected(kind, 4), Artefact(MADE[kind], {})) is False
    for name in named:
        array = MADE[kind][name]
        odd = [array[:2], array[:0], array[0], array.astype(complex), array.astype("U1")]
        odd += [array[:, None]] if name != "outputs" else []
        odd += [np.full_like(array, np.nan)] if array.dtype.kind == "f" else [array.astype(np.float64) + np.nan]
        odd += [array.astype(bool)] if array.dtype.kind != "b" else [array.astype(int)]
        for changed in odd:
            assert is_content(Expected(kind), Artefact({**MADE[kind], name: changed}, {})) is False
        rest = {other: value for other, value in MADE[kind].items() if other != name}
        assert is_content(Expected(kind), Artefact(rest, {})) is (name in ("points", "role"))
    if kind == "initialise":
        negative = {**MADE[kind], "weight": np.array([-1.0, 1, 1])}
        assert is_content(Expected(kind), Artefact(negative, {})) is False


@pytest.mark.parametrize(("kind", "name"), [("initialise", "weight"), ("decide", "margin"), ("fit", "shadow margin")])
def test_weights_and_margins_are_finite(kind, name):
    assert is_content(Expected(kind), Artefact({**MADE[kind], name: np.full(3, np.inf)}, {})) is False


def test_a_fit_without_shadow_models_holds_what_it_likes():
    assert is_content(Expected("fit", 3), Artefact({"other": np.zeros((2, 2))}, {})) is True


@pytest.mark.parametrize(
    "change",
    [
        {"utility": [0.5]}, {"utility": {"test": "0.5"}}, {"stated": None}, {"stated": {"a": float("inf")}},
        {"stated": {"a": 10**400}}, {"n_gradients": None}, {"n_gradients": float("nan")}, {"ran": [1]},
        {"ran": {**WAY, "width": 1.5}}, {"ran": {**WAY, "engine": 1}}, {"original_ran": {**WAY, "device": None}},
        {"doubts": "one"}, {"doubts": [1]},
    ],
)  # fmt: skip
def test_facts_that_no_job_states_are_refused(change):
    assert is_content(Expected("train"), Artefact({}, {**FACTS, **change})) is False


def test_a_model_whose_utility_is_asked_for_says_what_it_cost():
    for missing in ("utility", "n_gradients"):
        facts = {name: value for name, value in FACTS.items() if name != missing}
        assert is_content(Expected("train", None, True), Artefact({}, facts)) is False
        assert is_content(Expected("train"), Artefact({}, facts)) is True
    for utility in ({}, {"retain": 0.5}):  # R² is not defined on sets of one label
        assert is_content(Expected("train", None, True), Artefact({}, {**FACTS, "utility": utility})) is True
