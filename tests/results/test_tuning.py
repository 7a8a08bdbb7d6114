"""What a strength costs, and which one a price allows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from forgetgauge.errors import UserError
from forgetgauge.plan.graph import RETRAINED, UNTREATED
from forgetgauge.plan.strength import Strength, Tuning, between
from forgetgauge.results.price import holds, stepped_back, strongest_kept
from forgetgauge.results.record import TriedStrength
from forgetgauge.results.tuning import (
    best_strength,
    loss_and_bound,
    next_tuning,
    price_warnings,
    strength_warnings,
    tried_strengths,
    tuning_result,
    worth_playing,
)

TRIED = Strength("lr", 1e-3, 1.0).values(4)


def view_of(utilities, price=0.01, chosen=None):
    """A game whose shadow models have these utilities, by strength."""
    tuning = Tuning(Strength("lr", 1e-3, 1.0), 4, TRIED, chosen=chosen)
    costs = {("m", which, at): f"{at} {which}" for at, own in utilities.items() for which in range(len(own))}
    facts = {
        f"{at} {which}": {"utility": {} if value is None else {"unseen": value}}
        for at, own in utilities.items()
        for which, value in enumerate(own)
    }
    n_models = len(next(iter(utilities.values())))
    game = SimpleNamespace(
        methods={"m": SimpleNamespace(tuning=tuning)}, price=SimpleNamespace(price=price, shadows=n_models), level=0.95
    )
    run = SimpleNamespace(has=facts.__contains__, facts=facts.__getitem__, state=SimpleNamespace(failed={}))
    jobs = {key: SimpleNamespace(inputs={}) for key in facts}
    return SimpleNamespace(game=game, graph=SimpleNamespace(costs=costs, jobs=jobs), run=run)


def around(value):
    return [value - 0.001, value, value + 0.001, value]


def utilities(*of_each, retrained=0.90, untreated=0.92):
    return {UNTREATED: around(untreated), RETRAINED: around(retrained), **dict(zip(TRIED, of_each, strict=True))}


def test_the_bound_is_students_one_sided_one():
    rng = np.random.default_rng(0)
    usual, own = rng.normal(0.9, 0.02, 8), rng.normal(0.88, 0.02, 8)
    loss, bound = loss_and_bound({UNTREATED: usual.tolist()}, own.tolist(), 0.95)
    lost = usual - own
    assert loss == pytest.approx(lost.mean())
    assert bound == pytest.approx(lost.mean() + stats.t.ppf(0.95, 7) * stats.sem(lost))


def test_the_bound_holds_as_often_as_it_says():
    rng = np.random.default_rng(1)
    lost = rng.normal(0.01, 0.005, (4000, 8))
    holds = [loss_and_bound({RETRAINED: [0.0] * 8}, (-own).tolist(), 0.95)[1] >= 0.01 for own in lost]
    assert np.mean(holds) == pytest.approx(0.95, abs=0.011)  # three standard errors


@pytest.mark.parametrize(("lower", "kept"), [(0.0, 0.91), (0.005, 0.955)])
def test_of_two_bounds_the_smaller_holds_nearly_as_often(lower, kept):
    """How often a strength whose cost is just beyond the price is not taken, where retrained models are `lower` than
    untreated ones: with both alike each of two bounds may err."""
    rng, price, missed = np.random.default_rng(2), 0.01, []
    for _ in range(4000):
        untreated, retrained = rng.normal(0.9, 0.01, 4), rng.normal(0.9 - lower, 0.01, 4)
        own = untreated - lower - price + rng.normal(0, 0.003, 4)  # the training is the same, the treatment differs
        missed.append(loss_and_bound({UNTREATED: untreated, RETRAINED: retrained}, own, 0.95)[1] >= price)
    assert np.mean(missed) == pytest.approx(kept, abs=0.014)  # three standard errors


def test_what_changes_nothing_holds_though_retrained_models_differ_by_chance():
    """Twice a table was played at the weakest strengths because four retrained models were too few to tell."""
    by_chance = [0.91, 0.87, 0.93, 0.85]
    costs = {UNTREATED: [0.90] * 4, RETRAINED: by_chance} | dict.fromkeys(TRIED, [0.90] * 4) | {TRIED[3]: [0.85] * 4}
    against, tried = tried_strengths(view_of(costs), "m")
    assert (against, tried[0].loss, tried[0].bound) == (RETRAINED, pytest.approx(-0.01), pytest.approx(0.0))
    assert best_strength(view_of(costs), "m") == TRIED[2]


def test_a_model_is_judged_where_the_table_judges_it_on_the_test_set_where_there_is_one():
    view = view_of(utilities(*[around(0.92)] * 4))
    facts = view.run.facts
    low = {TRIED[0]: 0.5}
    view.run.facts = lambda key: {
        "utility": {**facts(key)["utility"], "test": low.get(TRIED[0]) if key.startswith(f"{TRIED[0]} ") else 0.9}
    }
    _, tried = tried_strengths(view, "m")
    assert [one.loss for one in tried] == pytest.approx([0.4, 0, 0, 0])


def test_the_strongest_that_holds_is_chosen_counted_from_the_lower_of_the_two():
    costs = utilities(around(0.92), around(0.895), around(0.893), around(0.85))
    assert best_strength(view_of(costs), "m") == TRIED[2]  # 0.7 points below retrained models, 2.7 below untreated ones
    assert tried_strengths(view_of(costs), "m")[0] == RETRAINED
    turned = utilities(around(0.92), around(0.895), around(0.893), around(0.85), retrained=0.95)
    assert tried_strengths(view_of(turned), "m")[0] == UNTREATED
    assert best_strength(view_of(turned), "m") == TRIED[0]


def test_a_mean_within_the_price_whose_models_are_too_few_to_say_so_does_not_hold():
    wide = [0.893 + shift for shift in (-0.03, 0.03, -0.03, 0.03)]
    costs = utilities(around(0.92), around(0.893), wide, around(0.5))
    assert best_strength(view_of(costs), "m") == TRIED[1]


def test_the_search_ends_at_the_first_strength_that_does_not_hold():
    """Stronger ones that hold again stand beyond models that are ruined, or hold by luck: one of many may."""
    again = utilities(around(0.92), around(0.8), around(0.92), around(0.92))
    assert best_strength(view_of(again), "m") == TRIED[0]


def test_many_values_beyond_the_price_are_no_more_likely_to_be_taken_than_one():
    """Of five values just beyond it the strongest that held was taken in 14 % of cases."""
    rng, costs, taken = np.random.default_rng(3), (0.0, 0.002, 0.004, *[0.0105] * 5), {"first": 0, "any": 0}
    for _ in range(600):
        untreated = rng.normal(0.9, 0.01, 4)
        sides = {RETRAINED: [0.95] * 4, UNTREATED: untreated.tolist()}
        own = [(untreated - cost - rng.normal(0, 0.3 * cost, 4)).tolist() for cost in costs]
        tried = [TriedStrength(at, *loss_and_bound(sides, each, 0.95)) for at, each in enumerate(own)]
        best = strongest_kept(tried, 0.01)
        taken["first"] += best is not None and best.value > 2
        taken["any"] += any(holds(one, 0.01) for one in tried[3:])
    assert taken["first"] / 600 < 0.05 + 3 * 0.009
    assert taken["any"] / 600 > 0.1


def test_a_strength_at_which_a_model_diverges_or_is_missing_does_not_hold():
    diverged = [0.92, 0.92, None, 0.92]
    assert best_strength(view_of(utilities(around(0.92), diverged, around(0.92), diverged)), "m") == TRIED[0]
    failed = view_of(utilities(*[around(0.92)] * 4))
    failed.run.has = lambda key: key != f"{TRIED[1]} 1"
    assert best_strength(failed, "m") == TRIED[3]  # what was not tried does not end the search
    assert [one.diverged for one in tried_strengths(failed, "m")[1]] == [False] * 4
    assert best_strength(view_of(utilities(diverged, diverged, diverged, diverged)), "m") is None
    missing = view_of(utilities(*[around(0.92)] * 4))
    missing.run.has = lambda key: not key.startswith("1.0 ")
    assert best_strength(missing, "m") == TRIED[2]


@pytest.mark.parametrize("which", [RETRAINED, UNTREATED])
def test_with_nothing_to_count_from_no_strength_is_chosen_not_even_the_weakest(which):
    diverged = view_of({**utilities(*[around(0.92)] * 4), which: [0.92, 0.92, None, 0.92]})
    with pytest.raises(UserError, match=r"cannot be chosen: .* NaN or infinite values"):
        best_strength(diverged, "m")
    failed = view_of(utilities(*[around(0.92)] * 4))
    failed.run.has, failed.run.state.failed = lambda key: key != f"{which} 2", {f"{which} 2": "it broke"}
    with pytest.raises(UserError, match=r"cannot be chosen: .* failed \(it broke\)"):
        best_strength(failed, "m")


def test_where_the_weakest_failed_and_none_is_known_to_hold_none_is_chosen():
    """What was not measured is not too costly: the weakest is played only where it was tried."""
    failed = view_of(utilities(*[around(0.5)] * 4))
    failed.run.has, failed.run.state.failed = lambda key: key != f"{TRIED[0]} 1", {f"{TRIED[0]} 1": "the process died"}
    with pytest.raises(UserError, match=r"failed at its weakest, lr = 0.001 \(the process died\)"):
        best_strength(failed, "m")
    stronger = view_of(utilities(*[around(0.5)] * 4))
    stronger.run.has = lambda key: key != f"{TRIED[3]} 1"
    assert best_strength(stronger, "m") is None  # the weakest was tried, and costs too much
    enough = view_of(utilities(around(0.92), around(0.92), around(0.5), around(0.5)))
    enough.run.has = lambda key: key != f"{TRIED[0]} 1"
    assert best_strength(enough, "m") == TRIED[1]


def test_a_price_that_is_most_of_what_a_model_is_worth_is_warned_of():
    low = utilities(*[around(0.015)] * 4, retrained=0.014, untreated=0.016)
    view = view_of(low, chosen=TRIED[3])
    view.game.utility_name = "token probability"
    (said,) = price_warnings(view)
    assert said.startswith("The price, 0.01, is more than half of what the models of m are worth at all (token prob")
    fine = view_of(utilities(*[around(0.92)] * 4), chosen=TRIED[3])
    assert price_warnings(fine) == price_warnings(view_of(low)) == []  # while it is looked for nothing is said


def said(*of_each, chosen=TRIED[3], price=0.01):
    return strength_warnings(view_of(utilities(*of_each), chosen=chosen, price=price))


DIVERGED = [None] * 4


def test_a_strength_that_does_nothing_or_works_the_other_way_round_is_told_of():
    assert said(around(0.92), around(0.91), around(0.9), around(0.895)) == []
    (nothing,) = said(*[around(0.92)] * 4)
    assert nothing.startswith("m: no value of its strength (lr = 0.001 to 1) changed what its models cost")
    (reversed_,) = said(around(0.8), around(0.85), around(0.895), around(0.92), chosen=TRIED[0])
    assert "weakest value of its strength (0.001) costs 10.0 points and the strongest (1) -2.0" in reversed_
    assert said(*[around(0.92)] * 4, chosen=None) == []  # while it is looked for


def test_a_strength_beyond_which_models_diverge_did_change_them():
    assert said(around(0.92), around(0.92), DIVERGED, DIVERGED, chosen=TRIED[0]) == []


def test_one_that_changes_all_models_alike_is_not_too_weak():
    (alike,) = said(*[around(0.85)] * 4, chosen=TRIED[0])
    assert "changed its models alike, which cost 5.0 points: the parameter seems to have no effect" in alike


@pytest.mark.parametrize(
    ("of_each", "what"),
    [
        ([around(0.1)] * 4, "cost at least 80.0 points: its range"),
        ([around(0.7), around(0.7), around(0.7), around(0.6)], "cost at least 20.0 points: its range"),
        ([around(0.7), DIVERGED, DIVERGED, DIVERGED], "cost at least 20.0 points or gave no numbers: its range"),
        ([DIVERGED] * 4, "which gave no numbers: its range"),
    ],
)
def test_one_that_ruins_its_models_at_every_value_is_told_so(of_each, what):
    (line,) = said(*of_each, chosen=TRIED[0])
    assert line.startswith("m: every value of its strength (lr = 0.001 to 1) ruined its shadow models")
    assert what in line


def test_one_that_keeps_the_price_beyond_a_ruined_range_is_named_and_not_taken():
    (line,) = said(around(0.92), around(0.5), around(0.92), around(0.3), chosen=TRIED[0])
    assert line.startswith("m: lr = 0.1 keeps the price as well, but weaker values cost more or gave no numbers")
    (line,) = said(around(0.92), DIVERGED, around(0.92), around(0.92), chosen=TRIED[0])[:1]
    assert line.startswith("m: lr = 1 keeps the price as well")
    by_chance = [0.893 + shift for shift in (-0.03, 0.03, -0.03, 0.03)]
    assert said(around(0.92), by_chance, around(0.895), around(0.8), chosen=TRIED[0]) == []


def test_the_weakest_beside_one_that_diverged_is_told_of():
    (line,) = said(around(0.92), DIVERGED, DIVERGED, DIVERGED, chosen=TRIED[0])
    assert "models of the game may do so at this one" in line


def test_beside_a_value_that_diverged_the_one_before_is_taken():
    """On CIFAR-10 three of twelve originals diverged at NegGrad's strength, which had held for four shadow models."""
    view = view_of(utilities(around(0.92), around(0.92), DIVERGED, DIVERGED))
    tuning = replace(view.game.methods["m"].tuning, round=2)
    view.game.methods["m"].tuning = tuning
    further = next_tuning(view, "m")
    assert (further.chosen, further.round) == (None, 3)
    (step,) = set(further.tried) - set(TRIED)
    assert step == between(TRIED[0], TRIED[1], 2, ends=False)[-1]  # a step of the second round
    costs = utilities(around(0.92), around(0.92), DIVERGED, DIVERGED)
    view = view_of({**costs, step: around(0.92)})
    view.game.methods["m"].tuning = further
    chosen = next_tuning(view, "m")
    assert chosen.chosen == step
    view.game.methods["m"].tuning = chosen
    found = tuning_result(view, "m")
    assert found.holds
    assert stepped_back(found)
    assert strength_warnings(view) == []


def test_the_evidence_is_in_the_result():
    costs = utilities(around(0.92), around(0.895), around(0.893), [None] * 4)
    found = tuning_result(view_of(costs, chosen=TRIED[2]), "m")
    assert (found.parameter, found.chosen, found.holds, found.against) == ("lr", TRIED[2], True, RETRAINED)
    assert [one.value for one in found.tried] == list(TRIED)
    assert found.tried[1].loss == pytest.approx(0.005)
    assert (found.tried[3].loss, found.tried[3].bound) == (None, None)
    beyond = utilities(*[around(0.5)] * 4)
    assert tuning_result(view_of(beyond, chosen=TRIED[0]), "m").holds is False
    assert tuning_result(view_of(costs), "m") is None  # while it is looked for


def test_worth_playing_is_what_changes_a_model_and_does_not_ruin_it():
    def worth(*of_each, price=0.01):
        return worth_playing(view_of(utilities(*of_each), price=price), "m")

    assert worth(around(0.92), around(0.92), around(0.88), around(0.5)) == [(TRIED[1], TRIED[2])]
    assert worth(*[around(0.92)] * 4) == [(TRIED[2], TRIED[3])]
    ruined = around(0.5)
    assert worth(around(0.92), ruined, around(0.91), around(0.91)) == [(TRIED[0], TRIED[0]), (TRIED[2], TRIED[3])]
    assert worth(ruined, around(0.85), around(0.9), around(0.92)) == [(TRIED[1], TRIED[3])]
    assert worth(around(0.92), ruined, ruined, ruined) == [(TRIED[0], TRIED[0]), (TRIED[1], TRIED[1])]
    assert worth(*[[None] * 4] * 4) == [(TRIED[0], TRIED[0]), (TRIED[3], TRIED[3])]


def test_the_weak_end_of_a_curve_does_not_hang_on_the_price():
    costs = utilities(around(0.92), around(0.9), around(0.88), around(0.87))
    assert worth_playing(view_of(costs, price=0.5), "m") == [(TRIED[0], TRIED[3])]
