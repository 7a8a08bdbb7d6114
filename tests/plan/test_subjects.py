"""What every subject is called in keys, and which points it meets."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from forgetgauge.plan.graph import build_graph
from forgetgauge.plan.jobs import ModelJob, SignalsJob
from forgetgauge.plan.subjects import Confused, Halves, Helper, Reference, Shadow, Target
from tests.plan.test_graph import GAME
from tests.plan.test_keys import EVERY_NEED

HALVES = Halves("d", 3, 0.5)
WHERE = {"data": "d", "seed": 3, "fraction": 0.5}
N = 403
LABELS = np.arange(N) % 4
TARGET, SHADOW = HALVES.draw(N)
SUBJECTS = [
    Target(HALVES, 0.25, 1, 0, 2),
    Target(HALVES, 0.25, 1, 1),
    Shadow(HALVES, 60, 4),
    Shadow(HALVES, 60, 4, 20),
    Reference(HALVES, 60, 4),
    Reference(HALVES, 60, 4, 20),
    Confused(HALVES, 60, 4, (1, 2), 0),
]


def named(subject) -> str:
    return "-".join(map(str, subject.identity.values()))


@pytest.mark.parametrize(
    ("subject", "identity"),
    [
        (Target(HALVES, 0.25, 1, 0), {"role": "target", "alpha": 0.25, "pair": 1, "side": 0}),
        (Target(HALVES, 0.25, 1, 0, 2), {"role": "target", "alpha": 0.25, "pair": 1, "side": 0, "replicate": 2}),
        (Shadow(HALVES, 60, 4), {"role": "shadow", "size": 60, "which": 4}),
        (Reference(HALVES, 60, 4, 20), {"role": "reference", "size": 60, "which": 4, "forget": 20}),
        (
            Confused(HALVES, 60, 4, (1, 2), 0),
            {
                "role": "confused",
                "size": 60,
                "which": 4,
                "labels": {"exchanged": [1, 2], "which": 4},
                "replicate": 0,
            },
        ),
    ],
)
def test_an_identity_keeps_its_spelling(subject, identity):
    assert subject.identity == {**WHERE, **identity}


@pytest.mark.parametrize("subject", SUBJECTS, ids=named)
def test_a_subject_cannot_be_changed(subject):
    with pytest.raises(FrozenInstanceError):
        subject.halves = Halves("e", 0, 1.0)


@pytest.mark.parametrize("subject", SUBJECTS, ids=named)
def test_no_point_is_in_two_of_the_sets_a_subject_meets(subject):
    sets = subject.point_sets(TARGET, SHADOW, LABELS)
    met = np.concatenate([sets.retain, sets.forget, sets.unseen])
    assert len(np.unique(met)) == len(met)
    np.testing.assert_array_equal(sets.training, np.concatenate([sets.retain, sets.forget]))
    assert not np.isin(sets.elsewhere, sets.training).any()
    assert len(sets.elsewhere) > 0


@pytest.mark.parametrize("subject", SUBJECTS, ids=named)
def test_the_sets_are_of_the_halves_that_the_subject_may_know(subject):
    sets = subject.point_sets(TARGET, SHADOW, LABELS)
    pools = {"target": TARGET, "shadow": SHADOW, "reference": np.concatenate([TARGET, SHADOW]), "confused": TARGET}
    assert set(np.concatenate([sets.training, sets.unseen])) == set(pools[subject.role])
    half_of_validation = TARGET if subject.role == "shadow" else SHADOW
    assert set(sets.elsewhere) == set(half_of_validation) - set(sets.training)


def test_the_sides_of_a_pair_exchange_forget_and_unseen_set_whatever_the_replicate():
    first, second = (Target(HALVES, 0.25, 1, side, side).point_sets(TARGET, SHADOW, LABELS) for side in (0, 1))
    assert (set(first.forget), set(first.unseen)) == (set(second.unseen), set(second.forget))
    assert set(first.retain) == set(second.retain)


@pytest.mark.parametrize("helper", [Shadow(HALVES, 60, 4), Reference(HALVES, 60, 4)], ids=named)
def test_what_a_helper_is_told_to_forget_is_of_what_it_was_trained_on(helper):
    trained = helper.point_sets(TARGET, SHADOW, LABELS)
    unlearned = replace(helper, forget=20).point_sets(TARGET, SHADOW, LABELS)
    assert (len(trained.training), len(trained.forget), len(unlearned.forget)) == (60, 0, 20)
    assert set(unlearned.training) == set(trained.training)


def test_a_confused_model_forgets_half_of_the_exchanged_classes():
    confused = Confused(HALVES, 60, 4, (1, 2))
    sets = confused.point_sets(TARGET, SHADOW, LABELS)
    assert confused.exchanged == (1, 2)
    for label in (1, 2):
        assert np.sum(LABELS[sets.forget] == label) == np.sum(LABELS[sets.training] == label) // 2
    assert set(LABELS[sets.forget]) == {1, 2}


def test_every_job_about_a_model_names_its_subject_and_only_signals_forget_the_replicate():
    jobs = build_graph(replace(GAME, adversaries=EVERY_NEED, metrics={"ic": [0, 1]})).jobs.values()
    about = [job for job in jobs if isinstance(job, ModelJob)]
    assert {job.kind for job in about} == {"train", "unlearn", "signals"}
    assert {type(job.subject) for job in about} == {Target, Shadow, Reference, Confused}
    for job in about:
        assert job.subject.identity.items() <= job.params.items()
        if not isinstance(job.subject, Helper):
            assert (job.subject.replicate is None) == isinstance(job, SignalsJob)
