"""A training that is stopped at any moment goes on from its checkpoint and ends with the same bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn import checkpoint
from forgetgauge.learn.checkpoint import Checkpoint, Checkpoints, State, keeping
from forgetgauge.learn.dp_sgd import DpSgd
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.sisa import Sisa
from forgetgauge.learn.stacked import trainer
from forgetgauge.streams import Streams


class Stopped(BaseException):
    """Whatever ends a process."""


@pytest.fixture(autouse=True)
def _kept_after_every_step(monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)
    monkeypatch.setattr(trainer, "CHUNK_STEPS", 3)


@pytest.fixture
def stop_after(monkeypatch):
    """Stops the training right after its n-th checkpoint was written."""
    keep = Checkpoint.keep

    def set_up(n: int) -> None:
        left = itertools.count(n, -1)

        def kept(self, n_done, state):
            keep(self, n_done, state)
            if self.path is not None and next(left) == 1:
                raise Stopped

        monkeypatch.setattr(Checkpoint, "keep", kept)

    return set_up


def dropping(input_shape, n_classes) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, n_classes))


def parts_of(points: Points, sizes) -> list[Points]:
    return [points.subset(np.arange(start, start + size)) for start, size in enumerate(sizes)]


def fitted(learner, points, sizes, how="fit_many"):
    """The state of every model, all by `how`, each on a part of its own size."""
    parts, streams = parts_of(points, sizes), [Streams(f"model {k}") for k in range(len(sizes))]
    models = getattr(learner, how)(parts, streams)
    return [{name: tensor.clone() for name, tensor in model.state_dict().items()} for model in models]


def assert_same_bits(one, other):
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            assert torch.equal(a[name].nan_to_num(), b[name].nan_to_num()), name


SHORT = {"epochs": 3, "batch_size": 16, "augment": "flip-crop"}
CASES = {
    "alone, by sgd": (Minibatch(**SHORT), (50,), "fit_many"),
    "alone, by adamw": (Minibatch(**SHORT, optimiser="adamw", lr=1e-3), (50,), "fit_many"),
    "alone, by rmsprop": (Minibatch(**SHORT, optimiser="rmsprop", lr=1e-3), (50,), "fit_many"),
    "alone, with dropout": (Minibatch(model="dropping", epochs=3, batch_size=16), (50,), "fit_many"),
    "a stack by vmap": (Minibatch(**SHORT), (50, 50, 50), "fit_many"),
    "a traced stack of several sizes": (Minibatch(**SHORT), (50, 64, 40), "_fit_traced"),
    "a traced stack by adamw": (Minibatch(**SHORT, optimiser="adamw", lr=1e-3), (50, 64), "_fit_traced"),
    "two stacks, one after the other": (Minibatch(**SHORT), (50, 50, 40, 40), "fit_many"),
    "shards": (Sisa(n_shards=2, epochs=3, batch_size=16), (50, 60), "fit_many"),
    "DP-SGD": (
        DpSgd(model="small-cnn", model_params={"norm": "group"}, epochs=2, batch_size=16, target_epsilon=8.0),
        (50, 50),
        "fit_many",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stopped_training_ends_as_one_that_was_not_stopped(name, images, tmp_path, stop_after):
    plugins.models.bind(dropping, "dropping")
    learner, sizes, how = CASES[name]
    if isinstance(learner, DpSgd):
        pytest.importorskip("opacus")
    whole = fitted(learner, images, sizes, how)
    for n_stops in (1, 2):  # the second time, after it went on
        stop_after(n_stops)
        with pytest.raises(Stopped), keeping(Checkpoints(tmp_path / "kept", "a")):
            fitted(learner, images, sizes, how)
    stop_after(10**9)
    with keeping(Checkpoints(tmp_path / "kept", "a")):
        assert_same_bits(fitted(learner, images, sizes, how), whole)


def test_what_was_done_is_not_done_again(images, tmp_path, stop_after):
    learner, steps = Minibatch(**SHORT), []
    stop_after(5)
    with pytest.raises(Stopped), keeping(Checkpoints(tmp_path, "a")):
        fitted(learner, images, (50,))
    plain_loss = images.task.loss

    class Counting(type(images.task)):
        def loss(self, outputs, labels, reduction="mean"):
            steps.append(len(labels))
            return plain_loss(outputs, labels, reduction)

    stop_after(10**9)
    counted = Points(images.whole_inputs, images.whole_labels, images.index, task=Counting())
    with keeping(Checkpoints(tmp_path, "a")):
        fitted(learner, counted, (50,))
    assert len(steps) == 3 * 4 - 5


def test_other_work_finds_nothing_and_finished_work_leaves_nothing(images, tmp_path, stop_after):
    folder = tmp_path / "kept"
    stop_after(2)
    with pytest.raises(Stopped), keeping(Checkpoints(folder, "a")):
        fitted(Minibatch(**SHORT), images, (50,))
    (kept,) = folder.iterdir()
    assert Checkpoint(Checkpoints(folder, "a")).read({}) is not None
    assert Checkpoint(Checkpoints(folder, "b")).read({}) is None
    Checkpoints(folder, "b").drop()
    assert kept.exists()
    Checkpoints(folder, "a").drop()
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["flipped", "cut short", "empty", "of another shape"])
def test_a_damaged_checkpoint_is_as_good_as_none(damage, images, tmp_path, stop_after):
    learner = Minibatch(**SHORT)
    whole = fitted(learner, images, (50,))
    stop_after(4)
    other = Minibatch(**SHORT, model_params={"width": 4}) if damage == "of another shape" else learner
    with pytest.raises(Stopped), keeping(Checkpoints(tmp_path, "a")):
        fitted(other, images, (50,))
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes({"cut short": content[:-7], "empty": b""}.get(damage, content))
    stop_after(10**9)
    with keeping(Checkpoints(tmp_path, "a")):
        assert_same_bits(fitted(learner, images, (50,)), whole)


def test_a_disk_that_refuses_a_checkpoint_does_not_end_the_training(images, tmp_path):
    (tmp_path / "kept").write_text("a file where the folder should be")
    with keeping(Checkpoints(tmp_path / "kept", "a")):
        assert_same_bits(fitted(Minibatch(**SHORT), images, (50,)), fitted(Minibatch(**SHORT), images, (50,)))


def test_the_time_before_a_stop_is_counted(images, tmp_path, stop_after, monkeypatch):
    clock = itertools.count(step=7.0)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: next(clock))
    stop_after(3)
    first, again = Checkpoints(tmp_path, "a"), Checkpoints(tmp_path, "a")
    with pytest.raises(Stopped), keeping(first):
        fitted(Minibatch(**SHORT), images, (50,))
    spent = first.spent_s
    stop_after(10**9)
    with keeping(again):
        fitted(Minibatch(**SHORT), images, (50,))
    assert first.earlier_s == 0 < again.earlier_s < spent < again.spent_s


def test_a_short_training_writes_nothing(images, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY_S", 60.0)
    with keeping(Checkpoints(tmp_path / "kept", "a")):
        fitted(Minibatch(**SHORT), images, (50, 50))
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(("took", "pause"), [(0.1, 60.0), (3.0, 60.0), (12.0, 240.0)])
def test_writes_that_take_long_come_less_often(tmp_path, monkeypatch, took, pause):
    """They never take more than a twentieth of the time."""
    now, written = [0.0], []
    monkeypatch.setattr(checkpoint, "EVERY_S", 60.0)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])

    def state():
        now[0] += took
        written.append(now[0])
        return State({"weights": torch.zeros(2), "the same": torch.zeros(2)})

    kept = Checkpoint(Checkpoints(tmp_path, "a"))
    for step in range(2000):
        now[0] += 1.0
        kept.keep(step, state)
    assert np.diff(written).min() >= pause
    assert np.diff(written).max() <= pause + took + 2.0


def test_what_shares_its_memory_is_kept(tmp_path):
    whole = torch.arange(6.0)
    with keeping(Checkpoints(tmp_path, "a")):
        checkpoint.begin().keep(3, lambda: State({"whole": whole, "turned": whole.view(2, 3).T}))
    with keeping(Checkpoints(tmp_path, "a")):
        n_done, found = checkpoint.begin().read({"whole": whole})
    assert n_done == 3
    assert torch.equal(found.tensors["turned"], whole.view(2, 3).T)
