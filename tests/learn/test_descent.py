import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.learn.descent import Steps, batch_positions, batches_per_epoch, check_steps, descend, rate_factor

QUICK = settings(max_examples=50, deadline=None)
SIZES = {"n": st.integers(1, 80), "batch_size": st.integers(1, 40), "epochs": st.integers(0, 4)}


@QUICK
@given(**SIZES, seed=st.integers(0, 2**32))
def test_every_epoch_is_a_permutation_in_batches_whose_sizes_differ_by_at_most_one(n, batch_size, epochs, seed):
    batches = list(batch_positions(n, batch_size, epochs, np.random.default_rng(seed)))
    per_epoch = math.ceil(n / batch_size)
    assert batches_per_epoch(n, batch_size) == per_epoch
    assert len(batches) == epochs * per_epoch
    for epoch in range(epochs):
        of_epoch = batches[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(np.concatenate(of_epoch)) == list(range(n))
        sizes = [len(batch) for batch in of_epoch]
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1


def test_epochs_have_orders_of_their_own_and_the_same_generator_gives_the_same_orders():
    one, again = (list(batch_positions(40, 40, 3, np.random.default_rng(5))) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert len({tuple(batch) for batch in one}) == 3


@QUICK
@given(n=st.integers(1, 60), batch_size=st.integers(1, 40), epochs=st.integers(1, 3), seed=st.integers(0, 2**32))
def test_a_longer_training_begins_like_a_shorter_one(n, batch_size, epochs, seed):
    short = list(batch_positions(n, batch_size, epochs, np.random.default_rng(seed)))
    long = list(batch_positions(n, batch_size, epochs + 1, np.random.default_rng(seed)))
    assert all(np.array_equal(a, b) for a, b in zip(short, long, strict=False))


@QUICK
@given(n_steps=st.integers(1, 500))
def test_the_cosine_begins_at_one_is_a_half_midway_falls_and_would_end_at_zero(n_steps):
    factors = [rate_factor("cosine", step, n_steps) for step in range(n_steps + 1)]
    assert factors[0] == 1.0
    assert factors[-1] == pytest.approx(0, abs=1e-12)
    assert rate_factor("cosine", n_steps, 2 * n_steps) == pytest.approx(0.5)
    assert all(a > b for a, b in itertools.pairwise(factors))


@QUICK
@given(n_steps=st.integers(1, 60))
def test_the_cosine_is_torchs(n_steps):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=n_steps)
    for step in range(n_steps):
        assert rate_factor("cosine", step, n_steps) == pytest.approx(scheduler.get_last_lr()[0], abs=1e-9)
        optimiser.step()
        scheduler.step()


def test_steps_divide_the_rate_by_ten_at_each_milestone_as_multi_step_does_at_epochs_100_and_150_of_200():
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimiser, [100, 150], gamma=0.1)
    for epoch in range(200):
        for step in range(7 * epoch, 7 * (epoch + 1)):
            factor = rate_factor("steps", step, 7 * 200, (0.5, 0.75))
            assert factor == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimiser.step()
        scheduler.step()


def test_steps_without_milestones_and_constant_leave_the_rate_alone():
    assert {rate_factor(schedule, step, 9) for schedule in ("steps", "constant") for step in range(9)} == {1.0}


def test_a_milestone_falls_on_the_step_it_names():
    late = [(p, n) for n in (20, 50, 100, 200) for p in range(1, 100) if p * n % 100 == 0
            and rate_factor("steps", p * n // 100, n, (p / 100,)) != pytest.approx(0.1)]  # fmt: skip
    assert late == []


def test_the_line_falls_from_one_and_would_end_at_zero():
    assert [rate_factor("linear", step, 4) for step in range(5)] == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_a_warm_up_rises_in_even_steps_and_the_schedule_spans_the_rest():
    """Of 10 steps 4 rise, by a fifth each; the remaining six fall along the whole line."""
    steps = Steps(lr=2.0, schedule="linear", warmup=0.4)
    rising, falling = [0.4, 0.8, 1.2, 1.6], [2.0 * (1 - step / 6) for step in range(6)]
    assert [steps.rate(step, 10) for step in range(10)] == pytest.approx(rising + falling)


@QUICK
@given(
    n_steps=st.integers(1, 200),
    warmup=st.floats(0, 0.99),
    schedule=st.sampled_from(["constant", "cosine", "steps", "linear"]),
)
def test_the_rate_rises_then_follows_its_schedule_and_is_positive_throughout(n_steps, warmup, schedule):
    steps = Steps(lr=0.3, schedule=schedule, milestones=(0.5,), warmup=warmup)
    rates = [steps.rate(step, n_steps) for step in range(n_steps)]
    rising = round(warmup * n_steps)
    assert min(rates) > 0
    assert max(rates) <= 0.3
    assert all(a < b for a, b in itertools.pairwise(rates[: rising + 1]))
    assert all(a >= b for a, b in itertools.pairwise(rates[rising:]))
    rest = Steps(lr=0.3, schedule=schedule, milestones=(0.5,))
    assert rates[rising:] == [rest.rate(step, n_steps - rising) for step in range(n_steps - rising)]


@pytest.mark.parametrize("bad", [{"lr": -0.1}, {"epochs": -1}, {"batch_size": 0}])
def test_settings_no_descent_can_have_are_refused(bad):
    with pytest.raises(ValueError, match="must not be negative"):
        check_steps(**({"lr": 0.1, "epochs": 1, "batch_size": 1} | bad))


def test_zero_epochs_and_a_rate_of_zero_are_allowed():
    check_steps(lr=0, epochs=0, batch_size=1)


def test_descending_a_quadratic_is_the_recursion_on_paper():
    """SGD with momentum m, decay d: v ← m v + (θ − c) + d θ; θ ← θ − η v."""
    theta = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=torch.float64)
    batches = [np.array([0, 1]), np.array([2, 3]), np.array([1, 2])]
    descend(
        lambda at: 0.5 * ((theta - targets[at]) ** 2).mean(),
        [theta], batches, Steps(lr=0.1, momentum=0.5, weight_decay=0.2), n_steps=3,
    )  # fmt: skip
    expected, velocity = 3.0, 0.0
    for centre in (0.5, 3.5, 1.5):
        velocity = 0.5 * velocity + (expected - centre) + 0.2 * expected
        expected -= 0.1 * velocity
    assert theta.item() == pytest.approx(expected, abs=1e-12)
