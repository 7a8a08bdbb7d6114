"""Learners and signals on a GPU: what they give on a CPU, up to rounding."""

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch

from forgetgauge.learn import checkpoint
from forgetgauge.learn.columns import COLUMNS
from forgetgauge.learn.device import choose_device, describe
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.sisa import Sisa
from forgetgauge.learn.stacked import trainer
from forgetgauge.streams import Streams

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")

RECIPE = {"model_params": {"width": 4}, "epochs": 2, "batch_size": 16}
LEARNERS = {
    "minibatch": Minibatch(**RECIPE),
    "without norm": Minibatch(**{**RECIPE, "model_params": {"width": 4, "norm": "none"}}),
    "adamw": Minibatch(**RECIPE, optimiser="adamw", lr=1e-3, weight_decay=0.01),
    "rmsprop": Minibatch(**RECIPE, optimiser="rmsprop", lr=1e-3),
    "sisa": Sisa(n_shards=2, **RECIPE),
}


@pytest.fixture(autouse=True)
def _plain_floats():
    """TF32 rounds to ten bits: what is compared here is the recipe, not the precision."""
    places = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [place.allow_tf32 for place in places]
    for place in places:
        place.allow_tf32 = False
    yield
    for place, allowed in zip(places, before, strict=True):
        place.allow_tf32 = allowed


def assert_close(on_gpu, on_cpu, tolerance=2e-3):
    found = on_gpu.state_dict()
    assert {tensor.device.type for tensor in found.values()} == {"cuda"}
    for name, tensor in on_cpu.state_dict().items():
        torch.testing.assert_close(found[name].cpu(), tensor, atol=tolerance, rtol=tolerance)


def test_the_gpu_has_a_name():
    device = choose_device("auto")
    assert device == choose_device("cuda") == choose_device("cuda:0")
    assert describe(device).startswith("cuda: ")


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_model_alone_is_the_same_on_both(learner, images):
    there = images.on(choose_device("cuda"))
    assert_close(learner.fit(there, Streams("one")), learner.fit(images, Streams("one")))


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_stack_of_sets_of_different_sizes_is_the_same_on_both(learner, images):
    there = images.on(choose_device("cuda"))
    index = [np.random.default_rng(i).permutation(90)[: 40 + 7 * (i % 3)] for i in range(6)]
    streams = [Streams(str(i)) for i in range(6)]
    stacked = learner.fit_many([there.subset(at) for at in index], streams)
    for model, at, stream in zip(stacked, index, streams, strict=True):
        assert_close(model, learner.fit(images.subset(at), stream))


@pytest.mark.parametrize("column", COLUMNS)
def test_signals_are_the_same_on_both(column, images):
    model = Minibatch(**RECIPE).fit(images, Streams("one"))
    there, moved = images.on(choose_device("cuda")), copy.deepcopy(model).to("cuda")
    np.testing.assert_allclose(outputs_of(moved, there), outputs_of(model, images), atol=1e-3)
    here = COLUMNS[column](model, images, images)
    np.testing.assert_allclose(COLUMNS[column](moved, there, there), here, atol=1e-3, rtol=1e-3)


def test_the_same_fit_twice_on_a_gpu_is_the_same_to_the_bit(images):
    there = images.on(choose_device("cuda"))
    one, two = (Minibatch(**RECIPE).fit(there, Streams("one")).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_stack_that_was_stopped_goes_on_from_its_checkpoint_with_the_same_bits(images, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)
    monkeypatch.setattr(trainer, "CHUNK_STEPS", 8)
    learner = Minibatch(**{**RECIPE, "epochs": 8})
    there = images.on(choose_device("cuda"))
    points = [there.subset(np.arange(k, k + 60)) for k in range(3)]
    streams = [Streams(f"member {k}") for k in range(3)]
    assert learner.engine(points).name == "traced"
    whole = learner.fit_many(points, streams)
    keep, kept = checkpoint.Checkpoint.keep, []

    def stop_at_the_second(self, n_done, state):
        keep(self, n_done, state)
        kept.append(n_done)
        if len(kept) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as stopping:
        stopping.setattr(checkpoint.Checkpoint, "keep", stop_at_the_second)
        with pytest.raises(KeyboardInterrupt), checkpoint.keeping(checkpoint.Checkpoints(tmp_path, "work")):
            learner.fit_many(points, streams)
    again = checkpoint.Checkpoints(tmp_path, "work")
    with checkpoint.keeping(again):
        resumed = learner.fit_many(points, streams)
    assert again.earlier_s > 0
    for one, other in zip(whole, resumed, strict=True):
        for name, tensor in one.state_dict().items():
            assert torch.equal(tensor, other.state_dict()[name]), name


def test_a_gpu_that_a_failed_assertion_made_deaf_is_called_lost():
    """In a process of its own, which can do nothing more on it."""
    program = """
import torch
from forgetgauge.learn.device import choose_device, is_lost
device = choose_device("cuda")
before = is_lost(device)
try:
    torch.zeros(3, device=device)[torch.tensor([5], device=device)].cpu()
except RuntimeError:
    print(before, is_lost(device), is_lost(torch.device("cpu")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["False", "True", "False"]
