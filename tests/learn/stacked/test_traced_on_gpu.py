"""The stacked engine on a GPU: its kernels against plain torch, a stack against models alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from forgetgauge.data.dataset import Points, Scaling
from forgetgauge.learn.descent import Steps
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.stacked import ops
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.learn.stacked.trainer import Descent, Feed, batches_of, stacked_outputs
from forgetgauge.streams import Streams

from .stacks import MODELS, N_CLASSES, batch, both_ways, build

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")

N_VALID = (64, 17, 50)


@pytest.fixture(autouse=True)
def _plain_floats():
    """What is compared is the engine, not TF32."""
    places = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [place.allow_tf32 for place in places]
    for place in places:
        place.allow_tf32 = False
    yield
    for place, allowed in zip(places, before, strict=True):
        place.allow_tf32 = allowed


@pytest.fixture(scope="module")
def pixels() -> Points:
    """Three thousand images whose classes differ in colour, as bytes on the GPU."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, N_CLASSES, 3000)
    images = rng.integers(0, 200, (3000, 3, 32, 32)) + 15 * labels[:, None, None, None]
    scaling = Scaling((0.5,) * 3, (0.25,) * 3)
    whole = Points.of(torch.from_numpy(images.astype(np.uint8)), torch.from_numpy(labels), scaling)
    return whole.on(torch.device("cuda"))


def stack_of(name: str, precision="float32", plain=False) -> TracedStack:
    stack = TracedStack([model.cuda() for model in build(name, len(N_VALID))], precision)
    assert stack.ops is not ops
    if plain:
        stack.ops = ops
    return stack


def passes(stack: TracedStack, name: str, train: bool):
    x, y = batch(name, len(N_VALID), max(N_VALID))
    logits, gradient = both_ways(stack, x.cuda(), y.cuda(), N_VALID, train=train)
    own = torch.cat([logits[k, :n] for k, n in enumerate(N_VALID)])
    return own, gradient, torch.cat([tensor.flatten() for pair in stack.statistics.values() for tensor in pair])


def relative(one, other):
    return float((one - other).norm() / other.norm())


def flat(model):
    return torch.cat([tensor.detach().flatten() for tensor in model.parameters()])


def same_bits(one, other):
    a, b = one.state_dict(), other.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", ["resnet20", "resnet18, thin", "small-cnn, batch norm"])
def test_kernels_compute_what_plain_torch_computes(name, train):
    found, expected = (passes(stack_of(name, plain=plain), name, train) for plain in (False, True))
    for one, other in zip(found, expected, strict=True):
        assert relative(one, other) < 1e-4


@pytest.mark.parametrize("precision", ["bfloat16", "tf32"])
def test_rounded_activations_have_gradients_nearby(precision):
    rounded = passes(stack_of("resnet20", precision), "resnet20", train=True)
    exact = passes(stack_of("resnet20", plain=True), "resnet20", train=True)
    assert relative(rounded[1].norm(dim=1), exact[1].norm(dim=1)) < 5e-2
    assert relative(rounded[2], exact[2]) < 5e-2


@pytest.mark.parametrize("name", ["resnet20", "small-cnn, batch norm"])
def test_an_empty_batch_changes_nothing(name):
    stack, (x, y) = stack_of(name), batch(name, 3, 8)
    before = [tensor[1].clone() for pair in stack.statistics.values() for tensor in pair]
    _, gradient = both_ways(stack, x.cuda(), y.cuda(), (8, 0, 3), train=True)
    assert not gradient[1].any()
    assert all(map(torch.equal, before, (tensor[1] for pair in stack.statistics.values() for tensor in pair)))


@pytest.mark.parametrize("augment", ["none", "flip-crop"])
def test_a_stack_after_an_epoch_is_each_model_alone(pixels, augment):
    """Members of three sizes: some finish before the others; more than twenty steps, so that they are captured.

    Small steps: at lr 0.01 with momentum, a change of 1e-7 in the first weights of a model alone grows to 1e-2.
    """
    recipe = Minibatch(model="resnet20", epochs=1, batch_size=64, lr=0.001, momentum=0.0, augment=augment)
    sizes = (2000, 1500, 2000, 500)
    sets = [pixels.subset(np.random.default_rng(k).permutation(3000)[:n]) for k, n in enumerate(sizes)]
    streams = [Streams(str(k)) for k in range(4)]
    assert recipe.engine(sets).name == "traced"
    for model, points, stream in zip(recipe.fit_many(sets, streams), sets, streams, strict=True):
        alone = recipe.fit(points, stream)
        torch.testing.assert_close(flat(model), flat(alone), rtol=0, atol=1e-4)
        for one, other in zip(model.buffers(), alone.buffers(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-3)
        moved = flat(alone) - flat(recipe.build(points, stream.seed("init")))
        assert (flat(model) - flat(alone)).norm() < 0.02 * moved.norm()


def test_members_that_were_taught_different_labels_are_each_the_model_alone(pixels):
    recipe = Minibatch(model="resnet20", epochs=1, batch_size=64, lr=0.001, momentum=0.0)
    n_classes, streams = pixels.n_classes, [Streams(str(k)) for k in range(3)]
    taught = [replace(pixels, whole_labels=(pixels.whole_labels + k) % n_classes) for k in range(3)]
    sets = [whole.subset(np.arange(k, 1500 + k)) for k, whole in enumerate(taught)]
    assert recipe.engine(sets).name == "traced"
    for model, points, stream in zip(recipe.fit_many(sets, streams), sets, streams, strict=True):
        alone = recipe.fit(points, stream)
        moved = flat(alone) - flat(recipe.build(points, stream.seed("init")))
        assert (flat(model) - flat(alone)).norm() < 0.02 * moved.norm()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_stack_twice_is_the_same_to_the_bit(pixels, precision):
    recipe = Minibatch(model="resnet20", epochs=1, batch_size=64, augment="flip-crop", precision=precision)
    sets = [pixels.subset(np.arange(n)) for n in (1600, 1500, 1600)]
    streams = [Streams(str(k)) for k in range(3)]
    one, two = (recipe.fit_many(sets, streams) for _ in range(2))
    assert all(map(same_bits, one, two))


def descended(points, all_batches, optimiser="sgd"):
    stack = TracedStack([model.cuda() for model in build("small-cnn, batch norm", len(all_batches))])
    feeds = [Feed(batches_of(points, mine), len(mine)) for mine in all_batches]
    Descent(stack, points, feeds, Steps(0.01, momentum=0.9, optimiser=optimiser), batch_size=16).run()
    return stack.members()


@pytest.fixture(scope="module")
def small() -> Points:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(90, *MODELS["small-cnn, batch norm"][1], generator=generator)
    return Points.of(inputs, torch.arange(90) % N_CLASSES).on(torch.device("cuda"))


@pytest.mark.parametrize("optimiser", ["sgd", "adamw", "rmsprop"])
def test_a_captured_step_is_the_step(small, optimiser, monkeypatch):
    """More than one piece of steps, a member that ends in the first, replayed and computed step by step."""
    rng = np.random.default_rng(0)
    all_batches = [[rng.permutation(90)[: 5 + step % 12] for step in range(n)] for n in (300, 30, 140)]
    replayed = descended(small, all_batches, optimiser)
    monkeypatch.setattr(Descent, "_is_worth_capturing", lambda self, n_steps: False)
    stepwise = descended(small, all_batches, optimiser)
    assert all(map(same_bits, replayed, stepwise))


def test_logits_of_a_stack_are_those_of_models_alone(pixels):
    models = [model.cuda() for model in build("resnet20", 3)]
    sets = [pixels.subset(np.arange(k, 900 + 100 * k)) for k in range(3)]
    for model, points, logits in zip(models, sets, stacked_outputs(models, sets), strict=True):
        np.testing.assert_allclose(logits, outputs_of(copy.deepcopy(model), points), rtol=1e-3, atol=1e-4)
