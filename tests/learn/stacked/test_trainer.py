"""Many members descending together against torch's own optimisers, one model at a time in float64."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.data.dataset import Points, Scaling
from forgetgauge.learn.augment import draw_moves
from forgetgauge.learn.descent import Steps
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.stacked import trainer
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.learn.stacked.trainer import (
    Batch,
    Feed,
    batches_of,
    descend_together,
    logits_together,
    squares_together,
)
from tests.learn.test_augment import pad_crop_flip

from .stacks import MODELS, N_CLASSES, apart, build, in_float64, own_gradient

CNN = "small-cnn, batch norm"
BATCH = 6
N_STEPS = (9, 4, 7)
"""Of three members."""


@pytest.fixture
def points():
    generator = torch.Generator().manual_seed(3)
    return Points.of(
        torch.randn(40, *MODELS[CNN][1], generator=generator), torch.randint(0, N_CLASSES, (40,), generator=generator)
    )


def batches(member, n_steps, within=range(40)):
    """Of sizes 2 … 6, member by member another set."""
    rng = np.random.default_rng(member)
    sizes = [2 + (step + member) % (BATCH - 1) for step in range(n_steps)]
    return [rng.choice(np.array(within), size=size, replace=False) for size in sizes]


def feeds_of(points, all_batches, labels=None):
    """The points' labels, or others batch by batch."""
    return [
        Feed(
            batches_of(points, mine) if labels is None else map(Batch, mine, labels[k]),
            len(mine),
            np.random.default_rng(100 + k),
        )
        for k, mine in enumerate(all_batches)
    ]


def descended(points, steps, all_batches, name=CNN, labels=None, **how):
    """(models, stack) after descending as one."""
    stack = TracedStack(build(name, len(all_batches)))
    descend_together(stack, points, feeds_of(points, all_batches, labels), steps, batch_size=BATCH, **how)
    return stack.members([len(mine) for mine in all_batches]), stack


def alone(model, points, steps, rates, mine, *, labels=None, train=True, sign=1.0, inputs=None, after=None):
    """The loop of any tutorial, in float64."""
    model = in_float64(model).train(train)
    kind = {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adamw": torch.optim.AdamW}[steps.optimiser]
    momentum = {} if steps.optimiser == "adamw" else {"momentum": steps.momentum}
    optimiser = kind(model.parameters(), lr=1.0, weight_decay=steps.weight_decay, **momentum)
    for step, (rate, at) in enumerate(zip(rates, mine, strict=True)):
        optimiser.param_groups[0]["lr"] = rate
        x = points.inputs_at(torch.from_numpy(at)) if inputs is None else inputs(at)
        y = points.whole_labels[at] if labels is None else torch.from_numpy(labels[step])
        optimiser.zero_grad()
        (sign * F.cross_entropy(model(x.double()), y)).backward()
        optimiser.step()
        if after is not None:
            after(model, optimiser)
    return model


def assert_close(found, expected, tolerance=2e-5):
    a, b = found.state_dict(), expected.state_dict()
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(
            a[name].double(), b[name].double(), rtol=1e-4, atol=tolerance, msg=lambda m, name=name: f"{name}: {m}"
        )


def same_bits(one, other):
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def rates_of(factor, lr):
    return lambda n: [lr * factor(step, n) for step in range(n)]


RECIPES = {
    "plain": (Steps(0.1), rates_of(lambda s, n: 1, 0.1)),
    "momentum and decay": (Steps(0.05, momentum=0.9, weight_decay=0.01), rates_of(lambda s, n: 1, 0.05)),
    "cosine": (
        Steps(0.1, momentum=0.5, schedule="cosine"),
        rates_of(lambda s, n: (1 + math.cos(math.pi * s / n)) / 2, 0.1),
    ),
    "linear": (Steps(0.1, schedule="linear"), rates_of(lambda s, n: (n - s) / n, 0.1)),
    "steps": (
        Steps(0.1, schedule="steps", milestones=(0.25, 0.5)),
        rates_of(lambda s, n: 1 if s < n / 4 else 0.1 if s < n / 2 else 0.01, 0.1),
    ),
    "warm-up": (
        Steps(0.1, momentum=0.5, warmup=1 / 3),  # 3, 1 and 2 of the members' 9, 4 and 7 steps
        rates_of(lambda s, n: ({9: [1 / 4, 2 / 4, 3 / 4], 4: [1 / 2], 7: [1 / 3, 2 / 3]}[n] + 9 * [1])[s], 0.1),
    ),
    "rmsprop": (Steps(0.001, optimiser="rmsprop"), rates_of(lambda s, n: 1, 0.001)),
    "rmsprop, momentum and decay": (
        Steps(0.001, optimiser="rmsprop", momentum=0.5, weight_decay=0.01),
        rates_of(lambda s, n: 1, 0.001),
    ),
    "adamw": (Steps(0.01, optimiser="adamw", weight_decay=0.1), rates_of(lambda s, n: 1, 0.01)),
    "adamw, cosine": (
        Steps(0.01, optimiser="adamw", schedule="cosine"),
        rates_of(lambda s, n: (1 + math.cos(math.pi * s / n)) / 2, 0.01),
    ),
}


# -- Each member goes its own way --------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_member_descends_as_it_would_alone(points, recipe):
    steps, rates = RECIPES[recipe]
    all_batches = [batches(k, n) for k, n in enumerate(N_STEPS)]
    together, _ = descended(points, steps, all_batches)
    for found, model, mine in zip(together, build(CNN, 3), all_batches, strict=True):
        assert_close(found, alone(model, points, steps, rates(len(mine)), mine))


@pytest.mark.parametrize("name", ["small-cnn, group norm", "small-cnn, no norm", "mlp"])
def test_other_architectures_descend_alike(name):
    generator = torch.Generator().manual_seed(3)
    points = Points.of(
        torch.randn(40, *MODELS[name][1], generator=generator), torch.randint(0, N_CLASSES, (40,), generator=generator)
    )
    steps, rates = RECIPES["momentum and decay"]
    all_batches = [batches(k, n) for k, n in enumerate(N_STEPS)]
    together, _ = descended(points, steps, all_batches, name)
    for found, model, mine in zip(together, build(name, 3), all_batches, strict=True):
        assert_close(found, alone(model, points, steps, rates(len(mine)), mine))


@pytest.mark.parametrize("how", [{"sign": -1.0}, {"train": False}, {"train": False, "sign": -1.0}])
def test_ascent_and_statistics_held_still(points, how):
    steps = Steps(0.02, momentum=0.9, weight_decay=0.01)
    all_batches = [batches(k, n) for k, n in enumerate(N_STEPS)]
    together, stack = descended(points, steps, all_batches, **how)
    for found, model, mine in zip(together, build(CNN, 3), all_batches, strict=True):
        expected = alone(model, points, steps, [0.02] * len(mine), mine, **how)
        parts = zip(found.parameters(), expected.parameters(), strict=True)
        assert all(torch.allclose(a.double(), b, rtol=1e-4, atol=2e-5) for a, b in parts)
        for norm in stack.statistics:
            now, then = found.get_submodule(norm), model.get_submodule(norm)
            held = torch.equal(now.running_mean, then.running_mean) and torch.equal(now.running_var, then.running_var)
            assert held is not how.get("train", True)


def test_labels_of_a_batch_are_learnt_in_place_of_the_true_ones(points):
    steps, all_batches = Steps(0.1), [batches(k, n) for k, n in enumerate(N_STEPS)]
    labels = [[(points.y.numpy()[at] + 1) % N_CLASSES for at in mine] for mine in all_batches]
    together, _ = descended(points, steps, all_batches, labels=labels)
    for found, model, mine, wrong in zip(together, build(CNN, 3), all_batches, labels, strict=True):
        assert_close(found, alone(model, points, steps, [0.1] * len(mine), mine, labels=wrong))


def test_a_correction_after_each_step_is_that_of_the_model_alone(points):
    """A mask: every second weight goes back to where it began, and its velocity to 0."""
    steps = Steps(0.05, momentum=0.9, weight_decay=0.01)
    all_batches = [batches(k, n) for k, n in enumerate(N_STEPS)]
    models = build(CNN, 3)
    stack = TracedStack(copy.deepcopy(models))
    masks = [{name: torch.arange(p.numel()).view(p.shape) % 2 == k % 2 for name, p in model.named_parameters()}
             for k, model in enumerate(models)]  # fmt: skip
    held, began = stack.rows_of(masks).bool(), stack.weights.clone()

    def restore(weights, velocity):
        weights.copy_(torch.where(held, began, weights))
        velocity.masked_fill_(held, 0)

    descend_together(stack, points, feeds_of(points, all_batches), steps, batch_size=BATCH, after_step=restore)
    together = stack.members([len(mine) for mine in all_batches])
    for found, model, mask, mine in zip(together, models, masks, all_batches, strict=True):
        start = {name: p.detach().double() for name, p in model.named_parameters()}

        @torch.no_grad()
        def by_hand(alone, optimiser, start=start, mask=mask):
            for name, p in alone.named_parameters():
                p[mask[name]] = start[name][mask[name]]
                optimiser.state[p]["momentum_buffer"][mask[name]] = 0

        assert_close(found, alone(model, points, steps, [0.05] * len(mine), mine, after=by_hand))


def test_moved_images_come_from_each_members_own_stream():
    """Bytes, scaled after the move: what comes in from outside is black."""
    rng = np.random.default_rng(0)
    pixels = torch.from_numpy(rng.integers(1, 256, (40, 1, 8, 8), dtype=np.uint8))
    points = Points.of(pixels, torch.from_numpy(rng.integers(0, N_CLASSES, 40)), Scaling((0.4,), (0.25,)))
    steps, all_batches = Steps(0.1), [batches(k, n) for k, n in enumerate(N_STEPS)]
    together, _ = descended(points, steps, all_batches, augment="flip-crop")
    for k, (found, model, mine) in enumerate(zip(together, build(CNN, 3), all_batches, strict=True)):
        draws = np.random.default_rng(100 + k)

        def inputs(at, draws=draws):
            moves = draw_moves(len(at), draws)
            images = [pad_crop_flip(pixels[one], *move) for one, move in zip(at, moves, strict=True)]
            return (torch.stack(images).double() / 255 - 0.4) / 0.25

        assert_close(found, alone(model, points, steps, [0.1] * len(mine), mine, inputs=inputs))


# -- Nobody disturbs anybody -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "steps",
    [
        Steps(0.05, momentum=0.9, weight_decay=0.01),
        Steps(0.001, momentum=0.9, optimiser="rmsprop"),
        Steps(0.01, optimiser="adamw"),
    ],
)
def test_a_member_that_has_finished_stays_as_it_is_to_the_bit(points, steps):
    """Momentum, decay and batch norms go on for the others."""
    mine, longer = [batches(k, n) for k, n in enumerate((3, 5))], batches(1, 12)
    (short, _), _ = descended(points, steps, mine)
    (beside, _), _ = descended(points, steps, [mine[0], longer])
    assert same_bits(short, beside)


def test_a_member_of_twenty_layers_that_has_finished_stays_as_it_is_too():
    """Of an empty batch the variance is 0: were it divided by, twenty layers would overflow, and 0 · inf is NaN."""
    generator = torch.Generator().manual_seed(3)
    points = Points.of(torch.randn(12, 3, 8, 8, generator=generator), torch.arange(12) % N_CLASSES)
    (done, going), _ = descended(points, Steps(0.01), [batches(0, 1, range(12)), batches(1, 3, range(12))], "resnet20")
    expected = alone(build("resnet20", 2)[0], points, Steps(0.01), [0.01], batches(0, 1, range(12)))
    assert all(torch.isfinite(p).all() for p in going.parameters())
    assert_close(done, expected, tolerance=1e-4)


def test_the_data_of_other_members_never_matter(points):
    steps = Steps(0.05, momentum=0.9)
    mine, others = batches(0, 6, range(20)), batches(1, 8, range(20, 40))
    inputs, labels = points.whole_inputs.clone(), points.whole_labels.clone()
    inputs[20:] *= -3
    labels[20:] = 0
    (one, theirs), _ = descended(points, steps, [mine, others])
    (two, changed), _ = descended(Points.of(inputs, labels), steps, [mine, others])
    assert same_bits(one, two)
    assert not same_bits(theirs, changed)


def test_a_member_that_diverges_takes_no_other_with_it(points):
    inputs = points.whole_inputs.clone()
    inputs[20:] = torch.inf
    steps, mine, others = Steps(0.05, momentum=0.9), batches(0, 6, range(20)), batches(1, 4, range(20, 40))
    (one, _), _ = descended(points, steps, [mine, others])
    (two, lost), _ = descended(Points.of(inputs, points.whole_labels), steps, [mine, others])
    assert same_bits(one, two)
    assert not all(torch.isfinite(p).all() for p in lost.parameters())


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_how_many_steps_are_laid_out_at_a_time_changes_no_bit(points, chunk, monkeypatch):
    """Members that finish in an earlier piece, at its edge and in the last one."""
    steps = Steps(0.05, momentum=0.9, schedule="cosine")
    all_batches = [batches(k, n) for k, n in enumerate((2, 9, 6, 0))]
    at_once, _ = descended(points, steps, all_batches, augment="flip-crop")
    monkeypatch.setattr(trainer, "CHUNK_STEPS", chunk)
    in_pieces, _ = descended(points, steps, all_batches, augment="flip-crop")
    assert all(map(same_bits, at_once, in_pieces))
    assert same_bits(in_pieces[3], build(CNN, 4)[3])  # no steps, no change


def test_gaps_between_parameters_stay_zero_all_the_way(points):
    _, stack = descended(points, Steps(0.01, optimiser="adamw", weight_decay=0.1), [batches(0, 5), batches(1, 5)])
    gaps = ~stack.is_weight
    assert gaps.any()
    assert not stack.weights[:, gaps].any()


def test_no_steps_are_no_change(points):
    (model,), _ = descended(points, Steps(0.1), [[]])
    assert same_bits(model, build(CNN, 1)[0])


def test_the_same_descent_twice_is_the_same_to_the_bit(points):
    all_batches = [batches(k, n) for k, n in enumerate(N_STEPS)]
    (one, _), (two, _) = (descended(points, Steps(0.1, momentum=0.9), all_batches) for _ in range(2))
    assert all(map(same_bits, one, two))


# -- What they say, and how curved they are ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small-cnn, batch norm", "resnet20", "mlp", "mlp, vectors, no bias"])
def test_logits_of_members_about_their_own_points(name):
    generator = torch.Generator().manual_seed(1)
    whole = Points.of(torch.randn(30, *MODELS[name][1], generator=generator), torch.arange(30) % N_CLASSES)
    models, sets = build(name, 4), [whole.subset(np.arange(n)[::-1] + 2) for n in (17, 1, 0, 28)]
    for size in (512, 5):
        for model, points, logits in zip(models, sets, logits_together(models, sets, batch_size=size), strict=True):
            assert logits.shape == (len(points), N_CLASSES)
            assert logits.dtype == np.float32
            np.testing.assert_allclose(logits, outputs_of(model, points), rtol=1e-4, atol=1e-5)


def test_of_no_points_there_are_no_logits(points):
    none = points.subset(np.arange(0))
    assert [logits.shape for logits in logits_together(build(CNN, 2), [none, none])] == [(0, N_CLASSES)] * 2


def d_loss(logits, labels):
    return [logits.softmax(-1) - F.one_hot(labels, N_CLASSES)]


@pytest.mark.parametrize("size", [256, 4])
@pytest.mark.parametrize("labels", ["shared", "each its own", "told"])
def test_squares_are_the_means_over_each_members_own_set(points, size, labels):
    models, sets = build(CNN, 3), [np.arange(11), np.arange(20, 25), np.array([7])]
    versions = [(points.whole_labels + (labels != "shared") * k) % N_CLASSES for k in range(3)]
    told = [version.numpy()[at] for version, at in zip(versions, sets, strict=True)] if labels == "told" else None
    wholes = [replace(points, whole_labels=version) if labels == "each its own" else points for version in versions]
    parts = [whole.subset(at) for whole, at in zip(wholes, sets, strict=True)]
    stack = TracedStack(copy.deepcopy(models))
    found = squares_together(stack, parts, d_loss, labels=told, batch_size=size)
    assert found.dtype == torch.float64
    for k, (model, at) in enumerate(zip(models, sets, strict=True)):
        y = versions[k][at]
        one = in_float64(model).eval()
        each = [own_gradient(one, points.whole_inputs[[i]], y[[place]]) for place, i in enumerate(at)]
        expected = {name: torch.stack([table[name] ** 2 for table in each]).mean(0) for name in each[0]}
        assert apart(stack.tables_of(found)[k], expected) < 1e-4


def test_squares_in_several_directions_add_up(points):
    """The Fisher information sums over classes: Σ_c of the squares in direction c."""
    sets = [points.subset(np.arange(n)) for n in (6, 9)]

    def each_class(logits, labels):
        p = logits.softmax(-1)
        return [p[..., [c]].sqrt() * (p - F.one_hot(torch.tensor(c), N_CLASSES)) for c in range(N_CLASSES)]

    stack = TracedStack(build(CNN, 2))
    whole = squares_together(stack, sets, each_class)
    parts = [squares_together(stack, sets, lambda z, y, c=c: [each_class(z, y)[c]]) for c in range(N_CLASSES)]
    torch.testing.assert_close(whole, sum(parts), rtol=1e-5, atol=1e-12)


def test_nothing_is_said_about_no_points():
    models = build("small-cnn, group norm", 2)
    points = Points.of(torch.zeros(3, *MODELS["small-cnn, group norm"][1]), torch.arange(3))
    nobody = points.subset(np.zeros(0, dtype=np.int64))
    assert [logits.shape for logits in logits_together(models, [nobody, nobody])] == [(0, 3), (0, 3)]
