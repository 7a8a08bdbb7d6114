import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points, Scaling
from forgetgauge.learn.augment import draw_moves
from forgetgauge.learn.learner import Learner
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, utility_of
from forgetgauge.learn.stacked.engines import Engine
from forgetgauge.streams import Streams
from forgetgauge.tasks.classification import CLASSIFICATION

from . import own_models
from .own_models import AverageOfAllBatches, BatchNormed, BranchesOnData, Dropout, DropoutByFunction, Noise, Plain, Tied
from .test_augment import pad_crop_flip

NORMS = ["batch", "group", "none"]
OPTIMISERS = {
    "sgd": {"optimiser": "sgd", "lr": 0.05},
    "adamw": {"optimiser": "adamw", "lr": 0.01},
    "rmsprop": {"optimiser": "rmsprop", "lr": 0.001},
}
SCHEDULES = {
    "constant": {"schedule": "constant"},
    "cosine": {"schedule": "cosine"},
    "steps": {"schedule": "steps", "milestones": (0.5, 0.75)},
}
MEAN, DEVIATION = 0.4, 0.25
SOLO = [Dropout, DropoutByFunction, Noise, AverageOfAllBatches, BranchesOnData]
STACKED = [Plain, BatchNormed, Tied]


def small_cnn(norm="batch", **settings) -> Minibatch:
    return Minibatch(model_params={"width": 4, "norm": norm}, epochs=3, batch_size=16, weight_decay=1e-3, **settings)


def own(model: type[nn.Module], **settings) -> Minibatch:
    return Minibatch(**{"model": plugins.models.bind(model), "epochs": 2, "batch_size": 25, **settings})


def members(points: Points, n: int, size: int) -> tuple[list[Points], list[Streams]]:
    """Overlapping sets of one size, and a stream for each."""
    rng = np.random.default_rng(size)
    sets = [points.subset(rng.permutation(len(points.whole_inputs))[:size]) for _ in range(n)]
    return sets, [Streams(f"member {i} of {size}") for i in range(n)]


def same_bits(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def assert_close(one: nn.Module, other: nn.Module, atol=2e-5) -> None:
    """Parameters, running statistics and counts."""
    a, b = one.state_dict(), other.state_dict()
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-4, atol=atol, msg=lambda m, name=name: f"{name}: {m}")


def textbook(learner: Minibatch, points: Points, streams: Streams) -> nn.Module:
    """The training loop of any tutorial, with torch's own scheduler.

    Batches come from the stream `order`, moves from the stream `augment`.
    """
    model = learner.build(points, streams.seed("init"))
    model.train()
    n_batches = int(np.ceil(len(points) / learner.batch_size))
    n_steps = learner.epochs * n_batches
    kind = {"sgd": torch.optim.SGD, "rmsprop": torch.optim.RMSprop, "adamw": torch.optim.AdamW}[learner.optimiser]
    momentum = {} if learner.optimiser == "adamw" else {"momentum": learner.momentum}
    optimiser = kind(model.parameters(), learner.lr, weight_decay=learner.weight_decay, **momentum)
    scheduler = {
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=n_steps),
        "steps": lambda: torch.optim.lr_scheduler.MultiStepLR(
            optimiser, [int(np.ceil(m * n_steps)) for m in learner.milestones], gamma=0.1
        ),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=n_steps),
    }[learner.schedule]()
    criterion, rng, draws = nn.CrossEntropyLoss(), streams.generator("order"), streams.generator("augment")
    inputs, labels = points.whole_inputs[points.index], points.whole_labels[points.index]

    def batch_of(at):
        if learner.augment == "none":
            return inputs[at]
        moves = draw_moves(len(at), draws)
        pixels = torch.stack([pad_crop_flip(inputs[one], *move) for one, move in zip(at, moves, strict=True)])
        return (pixels / 255 - MEAN) / DEVIATION

    for _ in range(learner.epochs):
        order, start = rng.permutation(len(points)), 0
        for batch in range(n_batches):
            size = len(points) // n_batches + (batch < len(points) % n_batches)
            at, start = order[start : start + size], start + size
            optimiser.zero_grad()
            criterion(model(batch_of(at)), labels[at]).backward()
            optimiser.step()
            scheduler.step()
    return model.eval()


# -- One model ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_model_is_what_the_textbook_loop_gives(images, norm, optimiser, schedule):
    learner = small_cnn(norm, **OPTIMISERS[optimiser], **SCHEDULES[schedule])
    points, streams = images.subset(np.arange(5, 42)), Streams("one")  # 37 points: batches of 13, 12 and 12
    assert_close(learner.fit(points, streams), textbook(learner, points, streams), atol=1e-6)


def test_the_same_points_and_streams_give_the_same_bits_whatever_torchs_seed(images):
    learner, (sets, streams) = small_cnn(), members(images, 3, 37)
    torch.manual_seed(1)
    one, many = learner.fit(sets[0], streams[0]), learner.fit_many(sets, streams)
    torch.manual_seed(2)
    torch.rand(5)
    assert same_bits(learner.fit(sets[0], streams[0]), one)
    assert all(same_bits(a, b) for a, b in zip(learner.fit_many(sets, streams), many, strict=True))


def test_other_streams_or_other_points_give_another_model(images):
    learner, (sets, streams) = small_cnn(), members(images, 2, 30)
    first = learner.fit(sets[0], streams[0])
    assert not same_bits(learner.fit(sets[0], streams[1]), first)
    assert not same_bits(learner.fit(sets[1], streams[0]), first)


def test_points_outside_the_set_do_not_matter(images):
    learner, inside, streams = small_cnn(), np.arange(30), Streams("one")
    other = images.whole_inputs.clone()
    other[30:] = 7.0
    assert same_bits(
        learner.fit(images.subset(inside), streams), learner.fit(Points(other, images.whole_labels, inside), streams)
    )


@pytest.mark.parametrize("model", [Plain, *SOLO])
def test_training_leaves_torchs_own_generator_as_it_was(vectors, model):
    learner, (sets, streams) = own(model), members(vectors, 2, 30)
    torch.manual_seed(9)
    before = torch.get_rng_state()
    learner.fit(sets[0], streams[0])
    learner.fit_many(sets, streams)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_leaves_the_data_as_it_was(images):
    before = images.whole_inputs.clone()
    sets, streams = members(images, 2, 30)
    small_cnn().fit_many(sets, streams)
    assert torch.equal(images.whole_inputs, before)


def test_a_trained_model_is_in_eval_mode_and_can_be_tuned_further(images):
    sets, streams = members(images, 2, 30)
    for model in [small_cnn().fit(sets[0], streams[0]), *small_cnn().fit_many(sets, streams)]:
        assert not any(module.training for module in model.modules())
        assert all(p.requires_grad and p.is_leaf for p in model.parameters())


def test_training_learns(images):
    points = images.subset(np.arange(60))
    learner = Minibatch(model_params={"width": 8}, epochs=25, batch_size=16)
    trained = outputs_of(learner.fit(points, Streams("one")), points)
    untrained = outputs_of(learner.build(points, 0), points)
    assert utility_of(trained, points) > 0.95 > utility_of(untrained, points)


@pytest.fixture(scope="module")
def pixels() -> Points:
    """Bytes, none of them black."""
    rng = np.random.default_rng(2)
    inputs = torch.from_numpy(rng.integers(1, 256, (90, 1, 8, 8), dtype=np.uint8))
    return Points.of(inputs, torch.from_numpy(rng.integers(0, 4, 90)), Scaling((MEAN,), (DEVIATION,)))


def test_the_rate_may_fall_along_a_line(images):
    learner, points = small_cnn(schedule="linear"), images.subset(np.arange(5, 42))
    assert_close(learner.fit(points, Streams("one")), textbook(learner, points, Streams("one")), atol=1e-6)


def test_images_are_moved_as_their_own_stream_says_and_scaled_after(pixels):
    learner, points = small_cnn(augment="flip-crop"), pixels.subset(np.arange(5, 42))
    trained = learner.fit(points, Streams("one"))
    assert_close(trained, textbook(learner, points, Streams("one")), atol=1e-5)
    assert not same_bits(trained, small_cnn().fit(points, Streams("one")))


def test_moving_images_changes_neither_the_order_of_the_batches_nor_the_first_weights(pixels):
    """Images of one colour that look the same wherever they are moved, were it not for the black edge."""
    flat = Points.of(torch.zeros_like(pixels.whole_inputs), pixels.whole_labels, pixels.scaling).subset(np.arange(37))
    assert same_bits(small_cnn(augment="flip-crop").fit(flat, Streams("a")), small_cnn().fit(flat, Streams("a")))


@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_a_cpu_computes_in_float32_whatever_the_precision(images, precision):
    sets, streams = members(images, 2, 37)
    exact, rounded = small_cnn(), small_cnn(precision=precision)
    assert same_bits(exact.fit(sets[0], streams[0]), rounded.fit(sets[0], streams[0]))
    assert all(map(same_bits, exact.fit_many(sets, streams), rounded.fit_many(sets, streams)))


def test_training_leaves_torchs_settings_for_products_as_they_were(images):
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    sets, streams = members(images, 2, 20)
    small_cnn(precision="tf32").fit_many(sets, streams)
    small_cnn().fit(sets[0], streams[0])
    assert (matmul.allow_tf32, cudnn.allow_tf32) == before


def test_its_cost_is_one_gradient_per_point_and_epoch():
    assert Minibatch(epochs=7).n_gradients(40) == 280


def test_it_keeps_the_promise_of_a_learner():
    assert isinstance(Minibatch(), Learner)


@pytest.mark.parametrize("bad", [{"warmup": -0.1}, {"warmup": 1.0}])
def test_a_warm_up_is_a_share_of_the_training(bad):
    with pytest.raises(ValueError, match="warmup"):
        Minibatch(**bad)


@pytest.mark.parametrize("bad", [{"epochs": 0}, {"batch_size": 0}, {"lr": 0.0}, {"lr": -1.0}, {"lr": float("nan")}])
def test_settings_that_train_nothing_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Minibatch(**bad)


# -- Many models -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_member_of_a_stack_is_the_model_trained_alone(images, norm, optimiser, schedule):
    learner = small_cnn(norm, **OPTIMISERS[optimiser], **SCHEDULES[schedule])
    sets, streams = members(images, 3, 37)
    assert learner.engine(sets).name == "vmap"
    for points, stream, model in zip(sets, streams, learner.fit_many(sets, streams), strict=True):
        assert_close(model, learner.fit(points, stream))


@pytest.mark.parametrize("settings", [{"schedule": "linear", "warmup": 0.3}, {"warmup": 0.2}, {"augment": "flip-crop"}])
def test_warm_ups_and_moves_of_a_stack_are_those_of_models_alone(pixels, settings):
    learner, (sets, streams) = small_cnn(**settings), members(pixels, 3, 37)
    for points, stream, model in zip(sets, streams, learner.fit_many(sets, streams), strict=True):
        assert_close(model, learner.fit(points, stream))


def test_running_statistics_and_counts_of_a_stack_are_those_of_models_alone(images):
    learner, (sets, streams) = small_cnn("batch"), members(images, 3, 37)
    stacked = learner.fit_many(sets, streams)
    means = [model.body[1].running_mean for model in stacked]
    assert not torch.allclose(means[0], means[1])
    for model, points, stream in zip(stacked, sets, streams, strict=True):
        alone = learner.fit(points, stream)
        for name, buffer in alone.named_buffers():
            torch.testing.assert_close(dict(model.named_buffers())[name], buffer, rtol=1e-4, atol=1e-6)
        assert int(model.body[1].num_batches_tracked) == 3 * 3  # epochs × batches of at most 16 of 37 points
        assert model.body[1].num_batches_tracked.dtype == torch.int64


def test_sets_of_several_sizes_are_trained_in_stacks_of_their_own_and_come_back_in_order(images):
    learner = small_cnn()
    (large, for_large), (small, for_small), (odd, for_odd) = (
        members(images, n, s) for n, s in ((2, 40), (2, 17), (1, 5))
    )
    sets = [large[0], small[0], odd[0], large[1], small[1]]
    streams = [for_large[0], for_small[0], for_odd[0], for_large[1], for_small[1]]
    for model, points, stream in zip(learner.fit_many(sets, streams), sets, streams, strict=True):
        assert_close(model, learner.fit(points, stream))


def test_a_stack_of_one_is_the_model_alone_to_the_bit(images):
    sets, streams = members(images, 1, 37)
    assert small_cnn().engine(sets) == Engine("solo", "a stack of one is a model alone")
    assert same_bits(small_cnn().fit_many(sets, streams)[0], small_cnn().fit(sets[0], streams[0]))


def test_no_models_are_no_models():
    assert small_cnn().fit_many([], []) == []


def test_the_order_of_the_members_does_not_matter(images):
    learner, (sets, streams) = small_cnn(), members(images, 4, 37)
    forth, back = learner.fit_many(sets, streams), learner.fit_many(sets[::-1], streams[::-1])[::-1]
    for one, other in zip(forth, back, strict=True):
        assert_close(one, other)


def test_a_member_does_not_depend_on_the_other_members(images):
    learner, (sets, streams) = small_cnn(), members(images, 5, 37)
    among_all, among_two = learner.fit_many(sets, streams), learner.fit_many(sets[:2], streams[:2])
    for one, other in zip(among_two, among_all, strict=False):
        assert_close(one, other)


def test_a_member_that_diverges_takes_no_other_with_it(images):
    inputs = images.whole_inputs.clone()
    inputs[80:] *= 1e25
    points = Points(inputs, images.whole_labels, images.index)
    sets = [points.subset(np.arange(37)), points.subset(np.arange(53, 90)), points.subset(np.arange(20, 57))]
    learner, streams = small_cnn("none"), [Streams(str(i)) for i in range(3)]
    stacked = learner.fit_many(sets, streams)
    assert not all(torch.isfinite(p).all() for p in stacked[1].parameters())
    for member in (0, 2):
        assert_close(stacked[member], learner.fit(sets[member], streams[member]))


def test_members_share_no_memory(images):
    sets, streams = members(images, 2, 20)
    one, other = small_cnn().fit_many(sets, streams)
    before = other.head.weight.clone()
    with torch.no_grad():
        one.head.weight.fill_(3.0)
    assert torch.equal(other.head.weight, before)


def test_equal_sets_of_different_tensors_are_trained_alone_and_right(images):
    copied = Points.of(images.whole_inputs.clone(), images.whole_labels.clone())
    sets, streams = [images.subset(np.arange(30)), copied.subset(np.arange(30))], [Streams("same"), Streams("same")]
    assert small_cnn().engine(sets) == Engine("solo", "the points are of different data sets")
    one, other = small_cnn().fit_many(sets, streams)
    assert same_bits(one, other)


# -- The user's own models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SOLO)
def test_what_cannot_be_stacked_is_trained_alone_for_a_reason_of_one_line(vectors, model):
    learner, (sets, streams) = own(model), members(vectors, 3, 40)
    engine = learner.engine(sets)
    assert engine.name == "solo"
    assert engine.reason
    assert "\n" not in engine.reason
    torch.manual_seed(1)
    stacked = learner.fit_many(sets, streams)
    torch.manual_seed(2)
    for trained, points, stream in zip(stacked, sets, streams, strict=True):
        assert same_bits(trained, learner.fit(points, stream))


def test_dropout_is_named_in_the_reason_and_dropout_of_probability_zero_is_none(vectors):
    def without(input_shape, n_classes):
        model = Dropout(input_shape, n_classes)
        model.dropout.p = 0.0
        return model

    sets, _ = members(vectors, 2, 40)
    assert own(Dropout).engine(sets) == Engine("solo", "dropout draws random numbers of its own")
    assert Minibatch(model=plugins.models.bind(without)).engine(sets).name == "vmap"


def test_dropout_draws_from_a_stream_of_the_models_own(vectors):
    """Two models that start and shuffle alike but drop differently would differ; one stream, one model."""
    learner, points = own(Dropout), vectors.subset(np.arange(40))
    assert same_bits(learner.fit(points, Streams("a")), learner.fit(points, Streams("a")))
    plain = textbook(own(Plain), points, Streams("a"))
    dropped = learner.fit(points, Streams("a"))
    assert not torch.allclose(plain.head.weight, dropped.head.weight)


@pytest.mark.parametrize("model", STACKED)
def test_an_own_model_is_stacked_and_each_member_is_the_model_alone(vectors, model):
    learner, (sets, streams) = own(model), members(vectors, 3, 40)
    assert learner.engine(sets).name == "vmap"
    for trained, points, stream in zip(learner.fit_many(sets, streams), sets, streams, strict=True):
        assert_close(trained, learner.fit(points, stream))
        assert_close(trained, textbook(learner, points, stream))


def test_tied_weights_stay_tied_in_a_stack(vectors):
    sets, streams = members(vectors, 2, 40)
    for model in own(Tied).fit_many(sets, streams):
        assert model.one.weight is model.other.weight


def test_a_layer_that_is_never_used_is_left_as_it_began_even_under_weight_decay(vectors):
    learner, (sets, streams) = own(own_models.UnusedLayer, weight_decay=0.1), members(vectors, 2, 40)
    for model, stream in zip(learner.fit_many(sets, streams), streams, strict=True):
        assert torch.equal(model.unused.weight, learner.build(vectors, stream.seed("init")).unused.weight)


def test_what_a_model_has_frozen_stays_frozen_alone(vectors):
    learner, points, streams = own(own_models.FrozenBody), vectors.subset(np.arange(40)), Streams("one")
    began, trained = learner.build(points, streams.seed("init")), learner.fit(points, streams)
    assert torch.equal(trained.body.weight, began.body.weight)
    assert not torch.equal(trained.head.weight, began.head.weight)


def test_what_a_model_has_frozen_stays_frozen_in_a_stack(vectors):
    learner, (sets, streams) = own(own_models.FrozenBody), members(vectors, 2, 40)
    for model, points, stream in zip(learner.fit_many(sets, streams), sets, streams, strict=True):
        began = learner.build(points, stream.seed("init"))
        assert torch.equal(model.body.weight, began.body.weight)


def test_a_buffer_that_is_replaced_in_forward_is_kept_in_a_stack(vectors):
    learner, (sets, streams) = own(own_models.CountsByAssignment), members(vectors, 2, 40)
    for model, points, stream in zip(learner.fit_many(sets, streams), sets, streams, strict=True):
        assert_close(model, learner.fit(points, stream))


# -- What a model says -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 50])
def test_logits_are_one_row_per_point_in_eval_mode(images, n):
    model, points = small_cnn().build(images, 0).train(), images.subset(np.arange(n))
    logits = outputs_of(model, points)
    assert logits.shape == (n, 4)
    assert logits.dtype == np.float32
    assert not model.training
    assert int(model.body[1].num_batches_tracked) == 0
    if n:
        np.testing.assert_allclose(logits, model(points.x).detach().numpy(), atol=1e-6)


def test_logits_of_more_points_than_one_batch_holds_are_in_order(vectors):
    model, index = own(Plain).build(vectors, 0), np.arange(2500) % 60
    logits = outputs_of(model, vectors.subset(index))
    np.testing.assert_allclose(logits, outputs_of(model, vectors)[index], rtol=1e-5, atol=1e-6)


def test_accuracy_counts_the_points_whose_largest_logit_is_the_label():
    logits = np.array([[2, 1], [0, 1], [3, 4], [5, 0]], dtype=np.float32)
    assert CLASSIFICATION.utility(logits, np.array([0, 1, 0, 1])) == 0.5
