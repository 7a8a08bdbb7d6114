from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forgetgauge.plan.draws import draw_halves, draw_reference, draw_shadow, draw_swap_pair, half_sizes
from forgetgauge.plan.game import Game, Method, PlannedAdversary, game_from_json, game_to_json
from forgetgauge.plan.graph import Cell, build_graph
from forgetgauge.plan.jobs import Named
from forgetgauge.store.objects import decode, encode

GAME = Game(
    data=Named("digits"),
    data_digest="d" * 64,
    n_points=100,
    n_classes=10,
    seed=0,
    fraction=1.0,
    alpha=0.5,
    pairs=3,
    seeds=2,
    level=0.95,
    delta=1e-5,
    share_retrain=False,
    sensitivity={"kind": "uniform"},
    learner=Named("minibatch", {"epochs": 1}),
    n_shadows=2,
    n_references=3,
    methods={
        "retrain": Method(Named("retrain"), uses_original=False, stacked=True),
        "none": Method(Named("none")),
    },
    adversaries={"confidence": PlannedAdversary(Named("confidence")), "entropy": PlannedAdversary(Named("entropy"))},
    model_bytes=10,
)


def keys(game: Game) -> set[str]:
    return set(build_graph(game).jobs)


def count(game: Game, kind: str) -> int:
    return sum(job.kind == kind for job in build_graph(game).jobs.values())


def test_originals_are_trained_once_for_all_methods_and_shadows_once_for_all_pairs():
    sides_seeds = 3 * 2 * 2
    assert count(GAME, "train") == sides_seeds + 2
    assert count(GAME, "unlearn") == 2 * sides_seeds
    assert count(GAME, "signals") == 2 * sides_seeds + 2
    assert count(GAME, "fit") == 2
    assert count(GAME, "decide") == 2 * 2 * sides_seeds
    assert count(GAME, "initialise") == 1


def test_jobs_stand_after_what_they_read():
    seen = set()
    for key, job in build_graph(GAME).jobs.items():
        assert set(job.inputs.values()) <= seen
        seen.add(key)


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": 4},
        {"seeds": 3},
        {"methods": {**GAME.methods, "neg-grad": Method(Named("neg-grad", {"lr": 0.1}))}},
        {"adversaries": {**GAME.adversaries, "correctness": PlannedAdversary(Named("correctness"))}},
        {
            "adversaries": {
                **GAME.adversaries,
                "x": PlannedAdversary(Named("x"), ("background", "outsiders", "references")),
            }
        },
        {"adversaries": {**GAME.adversaries, "x": PlannedAdversary(Named("x"), ("references", "unlearned"))}},
        {
            "adversaries": {
                **GAME.adversaries,
                "x": PlannedAdversary(Named("x"), ("gradient-norm",), ("gradient-norm",)),
            }
        },
        {"methods": {**GAME.methods, "own": Method(Named("own"), learner=Named("sisa"))}},
    ],
)
def test_adding_a_pair_a_seed_a_method_or_an_adversary_changes_no_existing_key(change):
    assert keys(GAME) < keys(replace(GAME, **change))


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"seed": 1}, set()),
        ({"data_digest": "e" * 64}, set()),
        ({"learner": Named("minibatch", {"epochs": 2})}, {"initialise"}),
        ({"alpha": 0.25}, {"initialise"}),
        ({"sensitivity": {"kind": "by-class", "weights": {}}}, {"train", "unlearn", "signals", "fit", "decide"}),
        ({"n_shadows": 3}, {"initialise", "train", "unlearn", "signals"}),
    ],
)
def test_a_change_reaches_exactly_the_jobs_whose_outcome_it_decides(change, kept):
    before, after = build_graph(GAME).jobs, build_graph(replace(GAME, **change)).jobs
    assert {before[key].kind for key in before.keys() & after.keys()} == kept
    for kind in kept:
        assert {k for k in before if before[k].kind == kind} <= set(after)


def test_retrain_starts_from_no_original_and_differs_between_sides():
    graph = build_graph(GAME)
    sides = [graph.cells[Cell("retrain", 0, side, 0)].unlearn for side in (0, 1)]
    assert sides[0] != sides[1]
    assert all(not graph.jobs[key].inputs for key in sides)


def test_a_shared_retrain_is_one_job_for_both_sides():
    graph = build_graph(replace(GAME, share_retrain=True))
    assert graph.cells[Cell("retrain", 0, 0, 0)].unlearn == graph.cells[Cell("retrain", 0, 1, 0)].unlearn
    assert graph.cells[Cell("none", 0, 0, 0)].unlearn != graph.cells[Cell("none", 0, 1, 0)].unlearn


def test_a_game_comes_back_from_json():
    assert game_from_json(decode(encode({}, game_to_json(GAME))).facts) == GAME


def test_halves_are_disjoint_and_a_smaller_fraction_keeps_a_part_of_a_larger_one():
    target, shadow = draw_halves("d", 101, 0, 1.0)
    assert sorted([*target, *shadow]) == list(range(101))
    small_target, small_shadow = draw_halves("d", 101, 0, 0.3)
    assert set(small_target) < set(target)
    assert set(small_shadow) < set(shadow)
    assert (len(small_target), len(small_shadow)) == half_sizes(101, 0.3) == (15, 15)


def test_draws_are_named_by_all_they_depend_on():
    pairs = [draw_swap_pair("d", 90, seed, 1.0, 0.5, pair).points for seed in (0, 1) for pair in (0, 1)]
    assert len({tuple(points) for points in pairs}) == 4
    np.testing.assert_array_equal(pairs[0], draw_swap_pair("d", 90, 0, 1.0, 0.5, 0).points)
    members = [draw_shadow("d", 50, 0, 1.0, 20, which, forget=5) for which in (0, 1)]
    assert [(m.sum(), f.sum(), (m & f).sum()) for m, f in members] == [(20, 5, 5)] * 2
    assert (members[0][0] != members[1][0]).any()
    np.testing.assert_array_equal(draw_shadow("d", 50, 0, 1.0, 20, 0)[0], members[0][0])


def test_a_reference_model_knows_half_of_its_points_from_each_half_and_forgets_points_of_the_target_half():
    for which in range(5):
        members, forgotten = draw_reference("d", (40, 41), 0, 1.0, 31, which, forget=20)
        assert (members[:40].sum(), members[40:].sum()) == (16, 15)
        assert (forgotten & ~members).sum() == 0
        assert (forgotten[:40].sum(), forgotten[40:].sum()) == (16, 0)  # no more than there are


def jobs_of(game: Game, kind: str) -> list[dict]:
    return [dict(job.params) for job in build_graph(game).jobs.values() if job.kind == kind]


def test_an_unlearning_aware_adversary_is_fitted_once_per_method_and_its_shadows_pass_through_the_method():
    aware = replace(GAME, adversaries={"x": PlannedAdversary(Named("x"), ("references", "unlearned"))})
    assert count(aware, "fit") == len(GAME.methods)
    unlearned = [params for params in jobs_of(aware, "unlearn") if params["role"] != "target"]
    assert len(unlearned) == len(GAME.methods) * (GAME.n_shadows + GAME.n_references)
    assert {params["forget"] for params in unlearned} == {GAME.sizes[1]}


def test_background_signals_are_taken_only_for_those_who_ask():
    asked = replace(GAME, adversaries={**GAME.adversaries, "x": PlannedAdversary(Named("x"), ("background",))})
    graph = build_graph(asked)
    readers = [job for job in graph.jobs.values() if job.kind == "decide" and "background" in job.inputs]
    assert {job.params["adversary"]["name"] for job in readers} == {"x"}
    assert all(graph.jobs[job.inputs["background"]].params["look_at"] == "shadow half" for job in readers)


def test_a_method_with_its_own_learner_has_its_own_originals_and_shadows():
    own = replace(GAME, methods={**GAME.methods, "own": Method(Named("own"), learner=Named("sisa"))})
    learners = [params["learner"]["name"] for params in jobs_of(own, "train")]
    assert learners.count("sisa") == learners.count("minibatch") == 3 * 2 * 2 + GAME.n_shadows
    assert count(own, "fit") == 2 * count(GAME, "fit")


def test_swap_pairs_put_every_point_equally_often_into_the_forget_set():
    counts = np.zeros(30)
    n_draws = 3000
    for pair in range(n_draws):
        counts[draw_swap_pair("d", 30, 0, 1.0, 0.5, pair).split.forget] += 1
    expected = n_draws / 3
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected * 2 / 3)
