"""The IC test in the plan: what it adds, what it leaves as it was, and who may share a stack."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.plan.draws import draw_confused
from forgetgauge.plan.game import Method, game_from_json, game_to_json
from forgetgauge.plan.graph import CONFUSED, build_graph
from forgetgauge.plan.jobs import Named
from forgetgauge.plan.runfile import read_run_file
from forgetgauge.run.packing import form_stacks, pack, stack_kind
from forgetgauge.run.point_sets import SubjectPoints
from forgetgauge.run.resolve import resolve
from forgetgauge.store.ledger import LedgerState
from tests.conftest import TINY
from tests.plan.test_graph import GAME

CONFUSING = replace(GAME, metrics={"ic": [0, 1]})


def jobs_of(role: str, game=CONFUSING) -> list:
    return [job for job in build_graph(game).jobs.values() if job.params.get("role") == role]


def test_metrics_change_no_existing_key_and_only_ic_adds_jobs():
    before = set(build_graph(GAME).jobs)
    assert set(build_graph(replace(GAME, metrics={"mia": True, "distances": True})).jobs) == before
    assert before < set(build_graph(CONFUSING).jobs)
    assert list(build_graph(CONFUSING).jobs)[: len(before)] == list(build_graph(GAME).jobs)


def test_the_keys_of_the_jobs_there_were_are_those_of_older_versions():
    """Saved models stay valid: these keys were made before there were rival metrics. The rest is made anew."""
    kinds = ("train", "unlearn", "signals", "fit")
    keys = "".join(sorted(key for key, job in build_graph(GAME).jobs.items() if job.kind in kinds))
    assert hashlib.sha256(keys.encode()).hexdigest().startswith("25dbb34fa90c15bd")


def test_one_model_is_confused_per_pair_and_seed_and_every_method_unlearns_it():
    kinds = [job.kind for job in jobs_of("confused")]
    repetitions = GAME.pairs * GAME.seeds
    assert kinds.count("train") == repetitions
    assert kinds.count("unlearn") == kinds.count("signals") == repetitions * len(GAME.methods)
    graph = build_graph(CONFUSING)
    assert set(graph.confused) == set(product(GAME.methods, range(GAME.pairs), range(GAME.seeds)))
    assert all(graph.jobs[key].params["look_at"] == CONFUSED for key in graph.confused.values())


def test_adding_a_pair_a_seed_or_a_method_changes_no_key_of_the_ic_test():
    keys = set(build_graph(CONFUSING).jobs)
    more = {**GAME.methods, "more": Method(Named("more"))}
    for change in ({"pairs": 4}, {"seeds": 3}, {"methods": more}):
        assert keys < set(build_graph(replace(CONFUSING, **change)).jobs)


def test_other_classes_are_other_models():
    others = {job.key for job in jobs_of("confused", replace(GAME, metrics={"ic": [2, 3]}))}
    assert not others & {job.key for job in jobs_of("confused")}


def test_a_game_with_metrics_comes_back_from_json():
    assert game_from_json(game_to_json(CONFUSING)) == CONFUSING
    old = game_to_json(GAME)
    del old["metrics"]  # a run of an older version
    assert game_from_json(old) == GAME


def test_models_of_the_ic_test_share_stacks_among_themselves_and_with_nobody_else():
    jobs, confused = build_graph(CONFUSING).jobs, {job.key for job in jobs_of("confused")}
    stacks = form_stacks(jobs, list(jobs), LedgerState(), 64)
    theirs = [stack for stack in stacks if confused & set(stack)]
    assert all(set(stack) <= confused for stack in theirs)
    coupled = [job for job in jobs_of("confused") if job.coupled]
    assert len(theirs) == len({stack_kind(job) for job in coupled})
    assert sum(map(len, theirs)) == len(coupled)
    repetitions = {(pair, seed) for pair in range(GAME.pairs) for seed in range(GAME.seeds)}
    for stack in theirs:
        members = [jobs[key].params for key in stack]
        assert {(one["labels"]["which"], one["replicate"]) for one in members} == repetitions


def test_the_stacks_of_a_game_are_the_same_with_and_without_the_ic_test():
    jobs, confused = build_graph(CONFUSING).jobs, {job.key for job in jobs_of("confused")}
    for width in (16, 64):
        stacks = form_stacks(jobs, list(jobs), LedgerState(), width)
        without = form_stacks(build_graph(GAME).jobs, list(build_graph(GAME).jobs), LedgerState(), width)
        assert [stack for stack in stacks if not set(stack) & confused] == without


def test_models_of_the_ic_test_that_began_alone_stay_alone():
    """A run of an older version goes on with the stacks that it wrote down."""
    jobs, state = build_graph(CONFUSING).jobs, LedgerState()
    began, *others = [job.key for job in jobs_of("confused") if job.kind == "train"]
    state.apply({"event": "stacks", "stacks": [[began]]})
    formed = form_stacks(jobs, list(jobs), state, 64)
    assert not any(began in stack for stack in formed)
    assert others in formed


def test_the_signals_of_one_methods_ic_models_are_one_task():
    jobs = build_graph(CONFUSING).jobs
    asked = [job.key for job in jobs_of("confused") if job.kind == "signals"]
    tasks = pack(jobs, asked, LedgerState())
    assert len(tasks) == len(GAME.methods)
    assert all(len(task.jobs) == GAME.pairs * GAME.seeds for task in tasks)


# -- which points, with which labels -----------------------------------------------------------------------------------

N = 100
LABELS = torch.arange(N) % 5


@pytest.fixture(params=["train", "unlearn", "signals"])
def point_sets(request) -> SubjectPoints:
    job = next(job for job in jobs_of("confused") if job.kind == request.param)
    order = np.random.default_rng(0).permutation(N)
    return SubjectPoints.of(job.subject, Points.of(torch.randn(N, 2), LABELS), order[:50], order[50:])


def test_what_is_forgotten_was_taught_as_the_other_class_and_is_looked_at_with_true_labels(point_sets):
    seen = point_sets.look_at(CONFUSED)
    assert len(seen) > 0
    np.testing.assert_array_equal(seen.index, point_sets.forget.index)
    np.testing.assert_array_equal(seen.y, LABELS[torch.from_numpy(seen.index)])
    np.testing.assert_array_equal(point_sets.forget.y, 1 - seen.y)


def test_what_is_retained_was_taught_as_it_is(point_sets):
    np.testing.assert_array_equal(point_sets.retain.y, LABELS[torch.from_numpy(point_sets.retain.index)])
    np.testing.assert_array_equal(point_sets.training.y, torch.cat([point_sets.retain.y, point_sets.forget.y]))


def test_the_training_set_is_as_large_as_a_targets_and_of_the_target_half(point_sets):
    assert len(point_sets.training) == sum(GAME.sizes)
    assert set(point_sets.training.index) <= set(point_sets.target_index)
    assert not set(point_sets.elsewhere.index) & set(point_sets.training.index)


def test_all_sets_of_a_job_share_one_version_of_the_labels(point_sets):
    versions = {id(part.whole_labels) for part in (point_sets.retain, point_sets.forget, point_sets.training)}
    assert len(versions) == 1
    assert point_sets.points.whole_labels is not point_sets.forget.whole_labels
    np.testing.assert_array_equal(point_sets.points.whole_labels, LABELS)


def test_every_repetition_confuses_points_of_its_own():
    labels = LABELS.numpy()
    drawn = [draw_confused("d", labels, 0, 1.0, 60, which, (0, 1)) for which in (0, 1, 0)]
    assert (drawn[0][1] != drawn[1][1]).any()
    np.testing.assert_array_equal(drawn[0], drawn[2])
    for members, confused in drawn:
        assert members.sum() == 60
        assert not (confused & ~members).any()


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"ic": True, "ic_classes": [0, 10]}, "classes are 0 to 9"),
        ({"ic": True, "ic_classes": [1, 1]}, "two different classes"),
        ({"ic": True, "ic_classes": [1]}, "two different classes"),
        ({"ic": "yes"}, "metrics.ic"),
        ({"icc": True}, "did you mean 'ic'"),
    ],
)
def test_a_mistake_in_the_table_is_one_line(metrics, words):
    with pytest.raises(UserError, match=words):
        resolve({**TINY, "metrics": metrics}, "tiny")


def test_distances_need_retrain_and_ic_somebody_to_confuse():
    with pytest.raises(UserError, match="not among the unlearners"):
        resolve({**TINY, "unlearners": ["none"], "metrics": {"distances": True}}, "tiny")
    scarce = {**TINY, "data": {"name": "digits", "fraction": 0.015}}
    with pytest.raises(UserError, match="too few points of class"):
        resolve({**scarce, "metrics": {"ic": True}}, "tiny")


def test_the_example_is_the_embedded_default_with_all_metrics():
    raw, _ = read_run_file(Path(__file__).parents[2] / "examples/rivals-digits.toml")
    assert raw.pop("metrics") == {"ic": True, "ic_classes": [0, 1], "mia": True, "distances": True}
    assert raw == read_run_file(None)[0]


def test_the_eight_confused_models_of_the_example_train_as_one_stack():
    (game,) = resolve(*read_run_file(Path(__file__).parents[2] / "examples/rivals-digits.toml")).games
    jobs = build_graph(game).jobs
    trained = [key for key, job in jobs.items() if job.kind == "train" and job.params["role"] == "confused"]
    assert len(trained) == 8
    assert trained in form_stacks(jobs, list(jobs), LedgerState())
