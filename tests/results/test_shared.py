"""Results set against each other: differences on shared pairs against those of one run, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import forgetgauge
from forgetgauge.errors import NotComparable
from forgetgauge.game.advantage import outcome_of_decisions
from forgetgauge.game.comparison import compare
from forgetgauge.report.comparison import difference_rows
from forgetgauge.results.decisions import pack_decisions, unpack_decisions
from forgetgauge.results.shared import reasons_against, shared_differences
from tests.report.test_html import ADVERSARIES, game, leaking, method, result

DRAW = {"data_digest": "d" * 64, "n_points": 400, "seed": 3, "fraction": 1.0, "alpha": 0.5}


def outcomes(leaks, *, n_pairs=6, k=20):
    """Pair -> outcome; F and T depend on the pair alone, decisions on how much leaks to each adversary."""
    found = {}
    for pair in range(n_pairs):
        side = np.random.default_rng([7, pair]).permutation(np.repeat([True, False], k))
        rng = np.random.default_rng([pair, *(int(100 * leak) for leak in leaks)])
        chance = 0.3 + np.stack([side, ~side])[:, None, :, None] * np.asarray(leaks)  # (2, 1, 2k, adversaries)
        said = rng.random(chance.shape) < chance
        found[pair] = outcome_of_decisions(said[0], said[1], side, np.ones(2 * k))
    return found


def played(methods, *, adversaries=ADVERSARIES, **spec):
    """A result that carries decisions, with made-up numbers."""
    whole = game({name: method(0.9) for name in methods}, **{**DRAW, **spec})
    return result(dataclasses.replace(whole, decisions=pack_decisions(methods, adversaries)))


def test_the_same_method_in_two_results_differs_as_two_methods_of_one_run_do():
    weak, strong = outcomes((0.1, 0.05)), outcomes((0.4, 0.5))
    (found,) = shared_differences([("a", played({"mine": strong})), ("b", played({"mine": weak}))])
    wanted = compare(list(weak.values()), list(strong.values()), 0.95)
    assert found.difference == pytest.approx(wanted.difference)
    assert found.interval == pytest.approx((wanted.interval.low, wanted.interval.high))
    assert (found.method, found.first, found.second, found.n_pairs, found.better) == ("mine", "a", "b", 6, "b")
    (turned,) = shared_differences([("b", played({"mine": weak})), ("a", played({"mine": strong}))])
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.better == "b"


def test_answers_that_are_the_same_in_both_results_are_not_called_unsettled():
    """As of Retrain and None where only a third method is new: their models are the same ones."""
    retrain, one, other = outcomes((0.0, 0.0)), outcomes((0.3, 0.1)), outcomes((0.3, 0.12))
    found = shared_differences([("a", played({"r": retrain, "x": one})), ("b", played({"r": retrain, "x": other}))])
    assert [each.outcome for each in found] == ["the same in both", "not settled"]
    assert [row[-1] for row in difference_rows(found).cells] == [each.outcome for each in found]


def test_the_order_of_adversaries_and_of_methods_does_not_matter():
    one, other = outcomes((0.1, 0.3)), outcomes((0.4, 0.0))
    turned = {
        pair: outcome_of_decisions(*found.decisions[..., ::-1], found.in_forget, found.weight)
        for pair, found in other.items()
    }
    plain = shared_differences([("a", played({"x": one})), ("b", played({"x": other}))])
    mixed = shared_differences([("a", played({"x": one})), ("b", played({"x": turned}, adversaries=ADVERSARIES[::-1]))])
    assert plain == mixed


def test_only_pairs_and_methods_that_both_have_count():
    more, fewer = outcomes((0.1, 0.3), n_pairs=8), outcomes((0.2, 0.2), n_pairs=5)
    (found,) = shared_differences([("a", played({"x": more, "only": more})), ("b", played({"x": fewer}))])
    assert (found.method, found.n_pairs) == ("x", 5)


@pytest.mark.parametrize("other", [{"seed": 4}, {"alpha": 0.4}, {"fraction": 0.5}])
def test_pairs_that_were_drawn_otherwise_are_not_shared(other):
    one, again = (played({"x": outcomes((0.1, 0.3))}, **how) for how in ({}, other))
    assert shared_differences([("a", one), ("b", again)]) == []


def test_an_audit_says_nothing_about_its_points_so_that_it_shares_no_pair():
    audit = played({"x": outcomes((0.1, 0.3))})
    spec = {key: value for key, value in audit.games[0].spec.items() if key not in DRAW}
    audit = dataclasses.replace(audit, games=[dataclasses.replace(audit.games[0], spec=spec)])
    found = forgetgauge.compare({"a": audit, "b": dataclasses.replace(audit)})
    assert found.differences == []
    assert any("an audit says nothing about which points" in line for line in found.remarks)


def test_three_results_are_compared_two_by_two():
    each = [(name, played({"x": outcomes((0.1 * i, 0.2))})) for i, name in enumerate("abc")]
    assert [(one.first, one.second) for one in shared_differences(each)] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_every_difference_is_covered_as_often_as_it_says():
    rng, misses = np.random.default_rng(0), 0
    for _ in range(60):
        both = []
        for leak in (0.1, 0.35):
            found = {}
            for pair in range(6):
                side = np.random.default_rng([9, pair]).permutation(np.repeat([True, False], 30))
                said = rng.random((2, 1, 60, 1)) < 0.3 + leak * np.stack([side, ~side])[:, None, :, None]
                found[pair] = outcome_of_decisions(said[0], said[1], side, np.ones(60))
            both.append(played({"x": found}, adversaries=["one"]))
        ((low, high),) = (one.interval for one in shared_differences([("a", both[0]), ("b", both[1])]))
        misses += not low <= -0.25 <= high
    assert misses <= 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_forget": 50}, "not the same forgotten points: a 299; b 50"),
        ({"n_retain": 50}, "not the same retained points: a 300; b 50"),
        ({"level": 0.9}, "not the same level: a 0.95; b 0.9"),
        ({"sensitivity": {"kind": "by-class", "weights": {"3": 5.0}}}, "not the same sensitivity"),
        ({"adversaries": {"entropy": {}}}, "not the same adversaries"),
    ],
)
def test_results_of_different_games_are_refused_with_the_reason(change, said):
    reasons = reasons_against([("a", result()), ("b", result(game(**change)))])
    assert any(line.startswith(said) for line in reasons)
    with pytest.raises(NotComparable) as error:
        forgetgauge.compare({"a": result(), "b": result(game(**change))})
    assert any(said in line for line in error.value.reasons)


def test_every_reason_is_a_line_of_its_own():
    other = result(game(n_forget=50, level=0.9), digests={"data": "other"})
    found = reasons_against([("a", result()), ("b", other)])
    assert [line.split(":")[0] for line in found] == [
        "not the same data", "not the same forgotten points", "not the same level",
    ]  # fmt: skip


def test_an_adversary_with_other_parameters_is_another():
    one, other = game(), game()
    other.spec["adversaries"]["entropy"]["adversary"]["params"] = {"k": 4}
    assert any(
        "settings of adversaries" in line for line in reasons_against([("a", result(one)), ("b", result(other))])
    )


def test_another_model_or_price_is_a_remark_and_no_reason():
    one, other = game(), game()
    other.spec["learner"] = {"name": "minibatch", "params": {"lr": 0.1, "model": "resnet"}, "code": ""}
    found = forgetgauge.compare({"a": result(one), "b": result(other)})
    assert any(line.startswith("not the same model: a small-cnn; b resnet") for line in found.remarks)


def test_decisions_with_columns_are_unpacked_as_before():
    packed = played({"x": outcomes((0.1, 0.3))}).games[0].decisions
    assert packed.columns == {}
    assert set(unpack_decisions(packed)) == {"x"}
    assert leaking().games[0].decisions is None
