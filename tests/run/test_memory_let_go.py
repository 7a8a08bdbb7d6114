"""What a job that failed, or is done, held in memory is free for the next."""

from __future__ import annotations

import copy
import types
import weakref

import numpy as np
import pytest
import torch
from torch import nn

import forgetgauge
from forgetgauge.data.dataset import Points
from forgetgauge.learn import predict
from forgetgauge.learn.device import others_hold
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.stacked import engines
from forgetgauge.models import head
from forgetgauge.models.head import features_of
from forgetgauge.report.table import failed_alike
from forgetgauge.results.utility import loss_interval, lost_accuracy
from forgetgauge.run import worker
from forgetgauge.run.assignments import Assignment, Sources, failure_of
from forgetgauge.streams import Streams
from forgetgauge.unlearn import squared_gradients
from forgetgauge.unlearn.fine_tune import FineTune
from forgetgauge.unlearn.unlearner import Context, Request, one_by_one


class Held:
    """What a frame holds."""


def test_a_failure_holds_nothing_of_what_its_frames_did_nor_those_behind_it():
    held = []

    def inner():
        mine = Held()
        held.append(weakref.ref(mine))
        raise ValueError("first")

    def outer():
        mine = Held()
        held.append(weakref.ref(mine))
        try:
            inner()
        except ValueError as error:
            raise MemoryError("second") from error

    try:
        outer()
    except MemoryError as error:
        failure = failure_of(error)
    assert failure.line == "MemoryError: second"
    assert "in inner" in failure.traceback
    assert isinstance(failure.error, MemoryError)
    assert [ref() for ref in held] == [None, None]


def points(n: int, shape: tuple[int, ...] = (1, 8, 8)) -> Points:
    generator = torch.Generator().manual_seed(0)
    return Points.of(torch.rand(n, *shape, generator=generator), torch.arange(n) % 3)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.flatten(1))


def test_the_inputs_of_members_that_are_done_are_gone_and_so_are_their_gradients():

    every = points(40)
    requests = [
        Request(
            Small(), every.subset(np.arange(30)), every.subset(np.arange(30, 40)), Context(Minibatch(), Streams("s"))
        )
        for _ in range(3)
    ]
    made = one_by_one(FineTune(epochs=1), requests)
    assert not any("x" in vars(part) for r in requests for part in (r.retain, r.forget))
    assert all(parameter.grad is None for model in made for parameter in model.parameters())


def test_features_are_those_of_one_batch(monkeypatch):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 3)).eval(), points(50).x
    whole = features_of(model, x)
    monkeypatch.setattr(head, "AT_ONCE", 7)
    torch.testing.assert_close(features_of(model, x), whole)
    assert whole.shape == (50, 5)


@pytest.mark.parametrize(
    ("shape", "at_once"), [((3, 32, 32), 1024), ((1, 64, 64), 1024), ((3, 224, 224), 27), ((2**23,), 1)]
)
def test_large_points_are_asked_about_fewer_at_once(shape, at_once):
    assert predict.points_at_once(points(1, shape)) == at_once


@pytest.mark.parametrize(("length", "at_once"), [(64, 1024), (256, 64), (512, 16)])
def test_long_texts_are_asked_about_fewer_at_once(length, at_once):
    texts = Points.of(torch.zeros(2, length, dtype=torch.int64), torch.arange(2))
    assert predict.points_at_once(texts) == at_once


def full(*_, **__):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


def test_short_memory_is_not_taken_for_a_model_that_vmap_cannot_take(monkeypatch):
    """It would be done in another way, with other rounding, without a word."""
    with pytest.raises(torch.OutOfMemoryError):
        squared_gradients._works(full, points(2).x, points(2).y)
    monkeypatch.setattr(engines.VmapStack, "loss", full)
    with pytest.raises(torch.OutOfMemoryError):
        engines.check_vmap(Small(), points(2).x, points(2).y, nn.functional.cross_entropy)


@pytest.mark.parametrize(("free", "said"), [(60, ""), (40, "; other processes hold 30 GiB of it")])
def test_that_other_programs_hold_a_gpus_memory_is_said(monkeypatch, free, said):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free * 2**30, 80 * 2**30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 10 * 2**30)
    found = others_hold(torch.device("cuda"))
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_numbers_that_say_which_error_it_is_keep_failures_apart():
    errors = ["ended with exit code 1", "ended with exit code 139", "killed by signal 11", "killed by signal 6"]
    errors += ["CUDA: 900.00 MiB", "CUDA: 1.20 GiB"]
    found = failed_alike([(f"a of pair {k} side 0", error) for k, error in enumerate(errors)])
    assert [error for _, error, _ in found] == errors[:5]


TRIES = []


def full_once(model, retain, forget, context):
    """Fails where it is tried first, as beside something that is free again a moment later."""
    TRIES.append(len(forget))
    if len(TRIES) % 2:
        raise MemoryError
    return copy.deepcopy(model)


def test_a_job_that_memory_was_too_short_for_is_tried_once_more():
    TRIES.clear()
    found = forgetgauge.evaluate(unlearner={"mine": full_once}, on_failure="record", **SMALL)
    assert found.failures == []
    assert len(TRIES) == 2 * 2 * 2


SMALL = {"data": "digits", "fraction": 0.2, "alpha": 0.5, "pairs": 2, "shadows": 2, "adversaries": ["loss"]}
SIDES = []


def one_side(model, retain, forget, context):
    """What None does; of the last pair one side alone is done."""
    SIDES.append(None)
    if len(SIDES) == 6:
        raise RuntimeError("no")
    return copy.deepcopy(model)


def test_costs_are_of_pairs_that_are_whole_and_nothing_is_compared_over_other_pairs():
    SIDES.clear()
    how = {**SMALL, "pairs": 3}
    found = forgetgauge.evaluate(unlearner=["retrain", "none", one_side], on_failure="record", **how)
    (game,) = found.games
    mine, none = game.methods["one_side"], game.methods["none"]
    assert mine.n_pairs == 2
    assert {len(values) for values in mine.utility_by_pair.values()} == {2}
    for part, values in mine.utility_by_pair.items():
        assert mine.utility[part] == pytest.approx(np.mean(values))
        assert set(values) <= set(none.utility_by_pair[part])
    assert loss_interval(game, "one_side") is None
    assert "one_side" not in lost_accuracy(game)


class Changing:
    """A store whose one input a job may change."""

    stamp = 1

    def stamps(self, keys):
        return {"input": self.stamp}

    def read(self, key, sha256):
        return types.SimpleNamespace(arrays={}, facts={})

    def write(self, *_):
        return types.SimpleNamespace(sha256="x")


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_a_job_that_damages_what_others_made_is_told_so_though_memory_was_short(monkeypatch, tmp_path, error):
    """A second try would take the damage for what was there."""
    monkeypatch.setattr(worker, "is_own", lambda job: True)
    monkeypatch.setattr(worker, "_refuse_content", lambda jobs, inputs: None)
    made = worker.Worker(tmp_path, Sources({}))
    made.store = Changing()
    job = types.SimpleNamespace(key="job", coupled=False, kind="decide", inputs={"of": "input"})
    tries = []

    def harms(part, inputs):
        tries.append(part)
        made.store.stamp += 1
        raise error

    monkeypatch.setattr(made, "_do_resumably", harms)
    monkeypatch.setattr(made, "_units", lambda jobs: [tuple(jobs)])
    monkeypatch.setattr(made, "warm_up", lambda assignment: None)
    outcome = made._perform(Assignment((job,), frozenset({"job"})), {"input": "x"})
    assert outcome.failures == {"job": worker.HARMFUL}
    assert len(tries) == 1
