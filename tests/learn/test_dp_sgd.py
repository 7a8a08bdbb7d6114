"""DP-SGD: opacus' loop, the side-by-side engine against it, the accountant, and what is refused."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chi2, norm
from torch import nn

from forgetgauge.data.digits import load_digits
from forgetgauge.errors import UserError
from forgetgauge.learn import dp_sgd
from forgetgauge.learn.dp_sgd import DpSgd, noise_multiplier, poisson_batches, spent_epsilon
from forgetgauge.learn.dp_tuning import tune_clip_norm
from forgetgauge.learn.stacked.ghost import GhostStack, check_ghost
from forgetgauge.learn.stacked.members import reason_against
from forgetgauge.models.building import build_model
from forgetgauge.models.head import head_of
from forgetgauge.models.transfer import pour_weights, weights_of
from forgetgauge.plan.runfile import complete_params
from forgetgauge.streams import Streams
from forgetgauge.unlearn.neg_grad import NegGrad
from forgetgauge.unlearn.unlearner import Context

pytestmark = pytest.mark.skipif(importlib.util.find_spec("opacus") is None, reason="the extra [dp] is not installed")

SMALL = {"norm": "group", "width": 4}
RECIPE = DpSgd(
    model="small-cnn", model_params=SMALL, optimiser="sgd", lr=0.2, epochs=2, batch_size=32, physical_batch_size=24,
    clip_norm=0.5, target_epsilon=8.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    return load_digits().points


def _sets(digits, sizes):
    return [digits.subset(np.random.default_rng(i).permutation(len(digits))[:size]) for i, size in enumerate(sizes)]


def _streams(n):
    return [Streams(f"dp {i}") for i in range(n)]


def _distance(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("optimiser", ["sgd", "rmsprop"])
def test_side_by_side_equals_opacus_with_the_same_batches_and_noise(digits, optimiser):
    recipe = replace(RECIPE, optimiser=optimiser, lr=0.2 if optimiser == "sgd" else 0.01)
    sets, streams = _sets(digits, [200, 150, 200]), _streams(3)
    together = recipe.fit_many(sets, streams)
    for points, stream, model in zip(sets, streams, together, strict=True):
        assert _distance(recipe.fit(points, stream), model) < 1e-5


def test_members_side_by_side_may_differ_in_labels_and_by_a_few_points(digits):
    """200 and 205 points are seven batches of 32: the same q, steps and σ, but ⌊q n⌋ = 28 and 29."""
    taught = [replace(digits, whole_labels=(digits.whole_labels + k) % 10) for k in range(3)]
    sets, streams = _sets(digits, [200, 205, 200]), _streams(3)
    sets = [whole.subset(points.index) for whole, points in zip(taught, sets, strict=True)]
    with mock.patch.object(DpSgd, "_fit_stacked", autospec=True, side_effect=DpSgd._fit_stacked) as spy:
        together = RECIPE.fit_many(sets, streams)
    assert [len(call.args[1]) for call in spy.call_args_list] == [3]
    for points, stream, model in zip(sets, streams, together, strict=True):
        alone = RECIPE.fit(points, stream)
        assert _distance(alone, model) < 1e-5
        assert RECIPE.facts_of(alone) == RECIPE.facts_of(model)
    with_true_labels = RECIPE.fit_many([digits.subset(points.index) for points in sets], streams)
    assert _distance(with_true_labels[1], together[1]) > 1e-3


def test_without_a_promise_side_by_side_equals_the_plain_loop(digits):
    recipe = replace(RECIPE, target_epsilon="inf")
    sets, streams = _sets(digits, [200, 200]), _streams(2)
    for points, stream, model in zip(sets, streams, recipe.fit_many(sets, streams), strict=True):
        assert _distance(recipe.fit(points, stream), model) < 1e-5


def test_physical_batches_change_nothing(digits):
    sets, streams = _sets(digits, [150]), _streams(1)
    whole, parts = (replace(RECIPE, physical_batch_size=size) for size in (1000, 7))
    assert _distance(whole.fit_many(sets, streams)[0], parts.fit_many(sets, streams)[0]) < 1e-5
    assert _distance(whole.fit(sets[0], streams[0]), parts.fit(sets[0], streams[0])) < 1e-5


@pytest.mark.parametrize("engine", ["opacus", "ghost"])
def test_no_noise_and_a_huge_clip_norm_are_summed_sgd(digits, monkeypatch, engine):
    monkeypatch.setattr(dp_sgd, "noise_multiplier", lambda *_: 0.0)
    monkeypatch.setattr(dp_sgd, "spent_epsilon", lambda *_: 0.0)
    recipe = replace(RECIPE, clip_norm=1e6, lr=0.01)
    points, streams = _sets(digits, [150])[0], _streams(1)[0]
    budget = recipe.budget(len(points))
    expected = recipe.build(points, streams.seed("init"))
    descent = torch.optim.SGD(expected.parameters(), lr=0.01 / budget.expected_batch_size)
    for batch in poisson_batches(points, budget, streams):
        at = torch.from_numpy(batch)
        descent.zero_grad()
        F.cross_entropy(expected(points.inputs_at(at)), points.whole_labels[at], reduction="sum").backward()
        descent.step()
    got = recipe.fit(points, streams) if engine == "opacus" else recipe.fit_many([points], [streams])[0]
    assert _distance(got, expected) < 1e-5


ARCHITECTURES = [
    ("small-cnn", {"norm": "group"}, (1, 8, 8)),
    ("small-cnn", {"norm": "none"}, (1, 8, 8)),
    ("mlp", {}, (1, 8, 8)),
    ("linear", {}, (1, 8, 8)),
    ("resnet20", {"norm": "group"}, (3, 16, 16)),
    ("resnet18", {"norm": "group", "stem": "imagenet"}, (3, 32, 32)),
]


# What stands behind a group norm decides how its gradient lies in memory.
BEHIND = {
    "flatten": [nn.Flatten(), nn.Linear(96, 10)],
    "tanh": [nn.Tanh(), nn.Flatten(), nn.Linear(96, 10)],
    "average": [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 10)],
    "another norm": [nn.GroupNorm(2, 6), nn.Flatten(), nn.Linear(96, 10)],
}


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("before", [[nn.Conv2d(6, 6, 3, padding=1)], []], ids=["convolution", "nothing"])
def test_so_it_is_whatever_stands_around_a_group_norm(before, behind):
    torch.manual_seed(0)
    models = [nn.Sequential(*copy.deepcopy([*before, nn.GroupNorm(3, 6), *BEHIND[behind]])).double() for _ in range(2)]
    for parameter in (parameter for model in models for parameter in model.parameters()):
        nn.init.normal_(parameter)
    check_sums(models, (6, 4, 4))


@pytest.mark.parametrize(("name", "params", "shape"), ARCHITECTURES)
def test_norms_and_clipped_sums_equal_those_of_a_loop_over_examples(name, params, shape):
    check_sums([build_model(name, params, shape, 10, seed).double() for seed in (1, 2)], shape)


def check_sums(models, shape):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, *shape, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 10, (2, 3), generator=generator)
    own = torch.tensor([[True, True, True], [True, True, False]])
    stack = GhostStack(models)
    total = stack.zeros()
    norms = stack.add_clipped(total, x, y, own, 2.0)
    for k, model in enumerate(models):
        expected = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
        for i in range(3):
            loss = F.cross_entropy(model(x[k, i : i + 1]), y[k, i : i + 1])
            each = torch.autograd.grad(loss, list(model.parameters()))
            norm = torch.stack([g.norm() for g in each]).norm()
            torch.testing.assert_close(norms[k, i], norm, rtol=1e-9, atol=0)
            for into, gradient in zip(expected.values(), each, strict=True):
                into += own[k, i] * gradient * (2.0 / (norm + 1e-6)).clamp(max=1.0)
        for name, gradient in expected.items():
            torch.testing.assert_close(total[name][k], gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("n", "batch_size", "expected"),
    [(22_727, 512, (0.416, 0.289, 0.182)), (22_727, 128, (0.365, 0.267, 0.176)), (50_000, 512, (0.385, 0.276, 0.178))],
)
def test_noise_multipliers_are_those_of_the_fact_sheet(n, batch_size, expected):
    got = [DpSgd(target_epsilon=e, batch_size=batch_size).budget(n).noise_multiplier for e in (50.0, 150.0, 600.0)]
    np.testing.assert_allclose(got, expected, atol=0.001)


@pytest.mark.parametrize("target", [0.5, 8.0, 50.0])
def test_what_is_spent_is_the_target_and_never_more(digits, target):
    recipe = replace(RECIPE, target_epsilon=target)
    points, streams = _sets(digits, [150])[0], _streams(1)[0]
    for model in (recipe.fit(points, streams), recipe.fit_many([points], [streams])[0]):
        facts = recipe.facts_of(model)
        assert target - 0.01 <= facts["spent_epsilon"] <= target
        assert facts["target_epsilon"] == target
        assert facts["noise_multiplier"] == recipe.budget(150).noise_multiplier


def test_a_budget_below_what_the_accountant_can_tell_is_refused():
    with pytest.raises(UserError, match=r"target_epsilon = 0.05 .* too small"):
        replace(RECIPE, target_epsilon=0.05).budget(150)


def test_more_noise_spends_less_and_more_steps_spend_more():
    spent = [spent_epsilon(sigma, 0.02, 900, 1e-5) for sigma in (0.4, 0.6, 1.0, 2.0)]
    assert spent == sorted(spent, reverse=True)
    assert spent_epsilon(1.0, 0.02, 900, 1e-5) < spent_epsilon(1.0, 0.02, 1000, 1e-5)
    assert noise_multiplier(1.0, 1e-5, 0.02, 900) > noise_multiplier(8.0, 1e-5, 0.02, 900)


def test_the_noise_has_the_deviation_that_the_accountant_was_told(digits):
    """A rate of 1 and a gradient of nearly nothing (a tiny clip norm in units of noise): a step is noise alone."""
    recipe = replace(RECIPE, lr=1.0, epochs=1, batch_size=1000, clip_norm=1e-3, target_epsilon=0.5)
    points, budget = _sets(digits, [40])[0], recipe.budget(40)
    assert budget.n_steps == 1
    moved = []
    for streams in _streams(8):
        start = recipe.build(points, streams.seed("init"))
        made = recipe.fit_many([points], [streams])[0]
        moved += [(b - a).flatten() for a, b in zip(start.parameters(), made.parameters(), strict=True)]
    deviation = torch.cat(moved).std().item() * budget.expected_batch_size
    assert deviation == pytest.approx(budget.noise_multiplier * 1e-3, rel=0.05)


@pytest.mark.parametrize("engine", ["opacus", "ghost"])
def test_a_step_moves_by_the_clip_norm_over_the_expected_batch_at_most_whichever_point_has_no_gradient(
    digits, monkeypatch, engine
):
    """Zero-out neighbours, enumerated: every batch of five points, and the same batch without any one of them."""
    monkeypatch.setattr(dp_sgd, "noise_multiplier", lambda *_: 0.0)
    monkeypatch.setattr(dp_sgd, "spent_epsilon", lambda *_: 0.0)
    recipe = replace(RECIPE, model="linear", model_params={}, lr=1.0, epochs=1, batch_size=5, clip_norm=0.5)
    points, streams = _sets(digits, [5])[0], Streams("zero-out")
    budget = recipe.budget(len(points))
    start = torch.cat([p.flatten() for p in recipe.build(points, streams.seed("init")).parameters()])
    released = {}
    for drawn in itertools.product([False, True], repeat=5):
        batch = points.index[np.array(drawn)]
        monkeypatch.setattr(dp_sgd, "poisson_batches", lambda *_, batch=batch: iter([batch]))
        made = recipe.fit(points, streams) if engine == "opacus" else recipe.fit_many([points], [streams])[0]
        released[drawn] = start - torch.cat([p.detach().flatten() for p in made.parameters()])
    moved = [
        (release - released[(*drawn[:i], False, *drawn[i + 1 :])]).norm().item()
        for drawn, release in released.items()
        for i in range(5)
        if drawn[i]
    ]
    assert len(moved) == 5 * 2**4
    most = recipe.clip_norm / budget.expected_batch_size
    assert max(moved) == pytest.approx(most, rel=1e-4)  # attained: the first gradients are longer than 0.5
    assert max(moved) <= most * (1 + 1e-5)


@pytest.mark.parametrize(("sigma", "rate"), [(0.416, 1 / 45), (1.0, 0.1), (2.0, 0.5), (0.7, 1.0)])
def test_the_spent_epsilon_covers_a_step_in_both_directions_by_integration(sigma, rate):
    """∫ (p − e^ε p')₊ of one point's gradient there (with chance q) and not there: the accountant's ε, from scratch."""
    x = np.linspace(-40 * sigma, 1 + 40 * sigma, 2_000_001)
    absent = norm.pdf(x, 0, sigma)
    present = (1 - rate) * absent + rate * norm.pdf(x, 1, sigma)
    epsilon = spent_epsilon(sigma, rate, 1, 1e-5)
    for one, other in ((present, absent), (absent, present)):
        assert np.trapezoid(np.maximum(one - np.exp(epsilon) * other, 0), x) <= 1e-5


def test_a_point_fewer_is_not_covered_because_it_changes_the_width_of_the_noise():
    """⌊q n⌋ is 505 and 504; noise alone, no data, on 11 million weights, tells them apart beyond the ε spent."""
    recipe, n_weights = DpSgd(target_epsilon=50.0), 11_181_642
    more, fewer = recipe.budget(22_725), recipe.budget(22_724)
    assert (more.expected_batch_size, fewer.expected_batch_size) == (505, 504)
    assert replace(more, expected_batch_size=504) == fewer
    df, ratio = n_weights * more.n_steps, (505 / 504) ** 2  # of the two variances; the sum of squares is χ²
    cut = (
        2 * (50.0 + df / 2 * np.log(ratio)) / (1 - 1 / ratio)
    )  # from here on the wider density is e^50 times the other
    leaked = chi2.sf(cut / ratio, df) - np.exp(50.0) * chi2.sf(cut, df)
    assert leaked > 0.99  # δ at ε = 50, where 1e-5 is claimed
    assert recipe.budget(22_529).n_steps > recipe.budget(22_528).n_steps  # and at a multiple of 512 the steps change


def test_poisson_batches_hold_each_point_with_the_same_chance_and_vary_in_size(digits):
    points = _sets(digits, [150])[0]
    budget = replace(RECIPE.budget(150), n_steps=2000)
    batches = list(poisson_batches(points, budget, Streams("poisson")))
    counts = np.bincount(np.concatenate(batches), minlength=len(digits))[points.index]
    expected = 2000 * budget.sample_rate
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    assert len({len(batch) for batch in batches}) > 5


def test_batches_may_be_empty(digits):
    recipe = replace(RECIPE, batch_size=1)
    points, streams = _sets(digits, [5])[0], _streams(2)[1]
    sizes = [len(batch) for batch in poisson_batches(points, recipe.budget(5), streams)]
    assert 0 in sizes
    assert _distance(recipe.fit(points, streams), recipe.fit_many([points], [streams])[0]) < 1e-4
    plain = replace(recipe, target_epsilon="inf")
    assert _distance(plain.fit(points, streams), plain.fit_many([points], [streams])[0]) < 1e-4


def test_the_same_streams_give_the_same_model_and_others_another(digits):
    points = _sets(digits, [150])[0]
    torch.manual_seed(1)
    first = RECIPE.fit_many([points], [Streams("a")])[0]
    torch.manual_seed(2)
    assert _distance(first, RECIPE.fit_many([points], [Streams("a")])[0]) == 0
    assert _distance(first, RECIPE.fit_many([points], [Streams("b")])[0]) > 1e-3


def test_the_budget_survives_storing_and_an_unlearner(digits):
    points = _sets(digits, [150])[0]
    model = RECIPE.fit_many([points], [Streams("a")])[0]
    again = RECIPE.build(points, 0)
    pour_weights(again, weights_of(model))
    assert RECIPE.facts_of(again) == RECIPE.facts_of(model)
    forget, retain = points.subset(points.index[:50]), points.subset(points.index[50:])
    unlearned = NegGrad(epochs=1).unlearn(model, retain, forget, Context(RECIPE, Streams("u")))
    assert RECIPE.facts_of(unlearned) == RECIPE.facts_of(model)
    assert head_of(model) is model.head


def test_without_a_promise_no_epsilon_is_told(digits):
    points, recipe = _sets(digits, [60])[0], replace(RECIPE, target_epsilon="inf", epochs=1)
    assert recipe.facts_of(recipe.fit_many([points], [Streams("a")])[0]) == {"noise_multiplier": 0.0}


def test_infinity_is_a_word_in_run_files():
    assert complete_params("learner", DpSgd, {"target_epsilon": "inf"})["target_epsilon"] == "inf"
    assert complete_params("learner", DpSgd, {"target_epsilon": 8})["target_epsilon"] == 8.0
    assert DpSgd(target_epsilon=float("inf")) == DpSgd(target_epsilon="inf")
    with pytest.raises(UserError, match="greater than 0"):
        complete_params("learner", DpSgd, {"target_epsilon": 0.0})
    with pytest.raises(UserError, match="accountant"):
        complete_params("learner", DpSgd, {"accountant": "prv"})


def test_batch_norm_is_refused_with_what_to_write_instead(digits):
    with pytest.raises(UserError, match=r'has batch norm.* norm = "group"'):
        replace(RECIPE, model_params={"norm": "batch"}).build(digits, 0)


def test_without_opacus_the_extra_is_named(digits, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'forgetgauge\[dp\]'"):
        RECIPE.build(digits, 0)


class _Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = x.flatten(1)
        return self.head(self.layer(self.layer(x)))


def _tied():
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10))
    model[2].weight = model[1].weight
    return model


@pytest.mark.parametrize(
    ("model", "reason", "shape"),
    [
        (_Twice(), "not known|used twice", (64,)),
        (_tied(), "shared", (64,)),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(inplace=True), nn.Linear(8, 10)), "in place", (64,)),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.LayerNorm(8), nn.Linear(8, 10)), "LayerNorm", (64,)),
        (nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten(), nn.Linear(16, 10)), "groups", (2, 4, 4)),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Dropout(0.5), nn.Linear(8, 10)), "Dropout", (64,)),
        (nn.Sequential(nn.Linear(8, 4), nn.Flatten(), nn.Linear(32, 10)), "more than one vector", (8, 8)),
    ],
)
def test_what_would_give_wrong_norms_is_left_to_opacus(model, reason, shape):
    assert re.search(reason, reason_against(check_ghost, model, torch.zeros(1, *shape)))


def test_an_architecture_unknown_to_the_engine_is_trained_one_by_one(digits, monkeypatch):
    def with_layer_norm(input_shape, n_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, n_classes))

    from forgetgauge import plugins

    recipe = replace(RECIPE, model=plugins.models.bind(with_layer_norm), model_params={})
    sets, streams = _sets(digits, [150, 150]), _streams(2)
    assert recipe.engine(sets).name == "opacus"
    made = recipe.fit_many(sets, streams)
    assert all(_distance(recipe.fit(p, s), m) == 0 for p, s, m in zip(sets, streams, made, strict=True))


def test_the_clip_norm_is_the_one_of_highest_accuracy_on_unseen_shadow_points():
    recipe = replace(RECIPE, optimiser="sgd", lr=0.5, epochs=4, target_epsilon=50.0)
    tuned = tune_clip_norm(recipe, [1.0, 1e-4], alpha=0.5, n_models=2)
    assert [trial.clip_norm for trial in tuned.trials] == [1e-4, 1.0]
    assert tuned.chosen == 1.0
    assert tuned.trials[1].accuracy > tuned.trials[0].accuracy >= tuned.trials[0].worst


def test_a_hidden_attribute_of_opacus_stays_on_no_model(digits):
    model = RECIPE.fit(_sets(digits, [150])[0], Streams("a"))
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())
    assert all(getattr(p, "grad_sample", None) is None and p.grad is None for p in model.parameters())
