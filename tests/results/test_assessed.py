"""From the game's arithmetic to the records of a result."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.results.assessed import (
    assessed_fields,
    noise_floor_of,
    optimism_warnings,
    with_shared_retrain,
    worst_pair,
)
from forgetgauge.results.record import WorstPairResult, read_result
from tests.game.simulation import assess, make_world, simulate_pairs

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def assessed():
    rng = np.random.default_rng(0)
    worlds = {"retrain": 0.0, "ours": 0.5, "theirs": 1.0}
    return {
        name: assess(simulate_pairs(make_world(memory, (0.0, 0.5)), 5, 1, rng), rng, n_relabellings=100)
        for name, memory in worlds.items()
    }


def floor(found, value):
    return replace(found, noise=replace(found.noise, q95=value))


def test_the_noise_floor_is_that_of_a_blind_method_else_the_largest_of_all(assessed):
    values = {"retrain": 0.02, "ours": 0.01, "theirs": 0.03}
    found = {name: floor(assessed[name], value) for name, value in values.items()}
    assert noise_floor_of(found, ["retrain"], 5).method == "retrain"
    assert noise_floor_of(found, ["retrain", "ours"], 5).method == "retrain"
    assert noise_floor_of(found, [], 5).method == "theirs"
    assert noise_floor_of({name: found[name] for name in ("ours", "theirs")}, ["retrain"], 5).q95 == 0.03


def test_a_model_shared_by_both_sides_says_nothing_about_chance(assessed):
    shared = {"retrain": floor(assessed["retrain"], 0.0), "ours": floor(assessed["ours"], 0.01)}
    assert noise_floor_of(shared, ["retrain"], 5).method == "ours"
    assert noise_floor_of({"retrain": shared["retrain"]}, ["retrain"], 5) is None
    assert noise_floor_of({}, [], 5) is None


def test_chance_is_that_of_methods_with_all_pairs_where_there_are_any(assessed):
    rng = np.random.default_rng(1)
    blind = assess(simulate_pairs(make_world(0.0, (0.0, 0.5)), 1, 1, rng), rng, n_relabellings=100)
    found = {"retrain": floor(blind, 0.3), "ours": floor(assessed["ours"], 0.01), "theirs": floor(blind, 0.4)}
    assert noise_floor_of(found, ["retrain"], 5).q95 == 0.01
    assert noise_floor_of({name: found[name] for name in ("retrain", "theirs")}, [], 5).method == "theirs"


def test_few_forgotten_points_are_warned_of_where_an_adversary_is_chosen():
    (line,) = optimism_warnings(5, 8, 8)
    assert line.startswith("Q may be shown too high by up to 0.11: with 5 forgotten points and 8 pairs")
    assert optimism_warnings(5, 8, 1) == optimism_warnings(100, 8, 8) == []


def test_the_worst_pair_is_where_an_adversary_saw_most():
    by_pair = np.array([[0.1, 0.0], [0.0, -0.4], [0.4 - 1e-15, 0.2]])
    assert worst_pair(by_pair, ["a", "b"], 0.3) == WorstPairResult(pytest.approx(0.6), 1, "b", 0.3)


def test_the_worst_pair_has_the_floor_of_single_pairs(assessed):
    found = assessed["ours"]
    fields = assessed_fields(found, ["a", "b"])
    assert fields["worst_pair"].quality == pytest.approx(1 - np.abs(found.by_pair).max())
    assert fields["worst_pair"].noise_floor == found.noise.pair_q95 > found.noise.q95
    assert set(assessed_fields(None, [])) <= set(fields)


@pytest.mark.parametrize("known", [True, False])
def test_a_retrain_that_both_sides_share_is_certain(known):
    """In a run's result the spec says which methods know nothing of F; in an audit's the name does."""
    stored = read_result(RESULTS / "certified-digits" / "result.json").games[0]
    assert stored.methods["retrain"].bounded_interval != (1.0, 1.0)
    spec = {**stored.spec, "share_retrain": True}
    if not known:
        del spec["methods"]
    found = with_shared_retrain(replace(stored, spec=spec)).methods
    assert found["retrain"].interval == found["retrain"].bounded_interval == (1.0, 1.0)
    assert {one.interval for one in found["retrain"].by_adversary.values()} == {(0.0, 0.0)}
    assert found["none"] == stored.methods["none"]
