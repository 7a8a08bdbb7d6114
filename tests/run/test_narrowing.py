"""Stacks that memory is too small for: the run goes on with narrower ones, says so, and stays with them."""

from __future__ import annotations

import copy
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.device import is_out_of_memory
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.plan.jobs import HEAVY
from forgetgauge.report.html import render_report
from forgetgauge.results.record import Result, read_result
from forgetgauge.run import executors
from forgetgauge.run.assignments import N_LIVES, Assignment
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.packing import cut, halved, in_parts
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.streams import Streams
from tests.conftest import TINY
from tests.made_up import MadeUp


@dataclass(frozen=True)
class Tight:
    """Minibatch on a device whose memory holds so many models; the widths tried are written into a file."""

    limit: int
    log: str
    killed: bool = False

    def build(self, points: Points, seed: int) -> nn.Module:
        return Minibatch().build(points, seed)

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        return self.fit_many([points], [streams])[0]

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        with Path(self.log).open("a") as log:
            print(len(points), file=log)
        if len(points) > self.limit and self.killed:
            os.kill(os.getpid(), signal.SIGKILL)  # as a system does whose memory is full
        if len(points) > self.limit:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return Minibatch(epochs=1, batch_size=64).fit_many(points, streams)

    def n_gradients(self, n_points: int) -> int:
        return n_points


def tight_campaign(folder: Path, limit: int = 3, pairs: int = 3, **how: bool) -> Campaign:
    learner = {"name": f"{__name__}:Tight", "limit": limit, "log": str(folder / "tried"), **how}
    game = {"game": {"alpha": 0.5, "pairs": pairs}, "unlearners": ["retrain", "none"], "keep": "weights"}
    return Campaign.plan(resolve({**copy.deepcopy(TINY), **game, "learner": learner}, "tight"))


def played(folder: Path) -> tuple[Result, list[int]]:
    """(result, widths tried)."""
    (folder / "tried").unlink(missing_ok=True)
    ending, result = play(tight_campaign(folder), RunFolder(folder / "run"), RunOptions(trial=False))
    assert result is not None
    assert ending.failed == {}
    return result, [int(line) for line in (folder / "tried").read_text().split()]


def test_a_stack_too_wide_for_memory_is_done_in_narrower_ones_and_the_result_says_so(tmp_path):
    result, _ = played(tmp_path)
    assert all(method.quality is not None for method in result.methods.values())
    stacked = [stack for stack in result.stacks if stack.engine == "stack"]
    assert {stack.width for stack in stacked} == {2, 3}
    trained = sum(stack.models for stack in result.stacks if stack.kind == "train")
    assert trained == sum(job.kind == "train" for job in tight_campaign(tmp_path).jobs.values())
    assert read_result(tmp_path / "run" / "result.json") == result
    assert "2 wide" in render_report(result)


def test_what_did_not_fit_is_tried_once_for_all_stacks_alike(tmp_path):
    _, tried = played(tmp_path)
    assert tried == [8, 4, 2, 2, 2, 2, 6, 3, 3]  # six originals and two shadows, then six retrained models


def test_a_run_that_goes_on_repeats_the_narrower_stacks(tmp_path):
    played(tmp_path)
    folder = RunFolder(tmp_path / "run")
    jobs = tight_campaign(tmp_path).jobs
    before = {key: folder.objects.path(key).read_bytes() for key, job in jobs.items() if job.kind in HEAVY}
    stacks = folder.open_ledger().state.stack_of
    for key in stacks:
        folder.objects.drop(key)
    _, tried = played(tmp_path)
    assert sorted(tried) == [2, 2, 2, 2, 3, 3]
    assert folder.open_ledger().state.stack_of == stacks
    assert {key: folder.objects.path(key).read_bytes() for key in before} == before


def test_a_model_too_large_alone_is_a_failure_like_any_other(tmp_path):
    ending, result = play(tight_campaign(tmp_path, limit=0), RunFolder(tmp_path / "run"))
    assert ending.n_missing > 0
    assert result is not None
    assert {failure.error for failure in result.failures} == {
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
    }


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 bytes")])
def test_memory_that_is_short_is_known_by_every_name_it_has(error):
    def do(part: tuple[int, ...]) -> int:
        if len(part) > 2:
            raise error
        return sum(part)

    assert in_parts((1, 2, 3, 4, 5), do) == [((1, 2), 3), ((3, 4), 7), ((5,), 5)]


def test_other_errors_are_not_taken_for_short_memory():
    def do(part: tuple[int, ...]) -> int:
        raise RuntimeError("the shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        in_parts((1, 2), do)


def test_cutting_loses_nothing():
    assert cut(list("abcde"), 2) == [("a", "b"), ("c", "d"), ("e",)]
    assert cut([], 3) == []


def test_a_model_is_the_same_in_a_stack_of_sixteen_of_four_or_alone_to_within_1e_4():
    rng = np.random.default_rng(0)
    inputs, labels = rng.standard_normal((120, 1, 8, 8)), rng.integers(0, 4, 120)
    points = Points.of(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))
    recipe = Minibatch(epochs=3, batch_size=32)
    sets = [points.subset(np.random.default_rng(i).permutation(120)[:80]) for i in range(16)]
    streams = [Streams(str(i)) for i in range(16)]
    wide = recipe.fit_many(sets, streams)[1]
    narrow = recipe.fit_many(sets[:4], streams[:4])[1]
    alone = recipe.fit(sets[1], streams[1])
    for other in (narrow, alone):
        for name, tensor in wide.state_dict().items():
            torch.testing.assert_close(other.state_dict()[name], tensor, atol=1e-4, rtol=0)


def test_stacks_alike_that_were_not_begun_are_cut_and_written_down_first(tmp_path, monkeypatch):
    monkeypatch.setattr("forgetgauge.run.campaign.stack_width", lambda device, **_: 4)
    _, tried = played(tmp_path)
    assert tried == [4, 2, 2, 2, 2, 4, 2, 2, 2]  # the second four trainings, and the last two retrainings, never failed


def test_memory_that_ends_in_a_capture_is_told_by_what_was_behind_the_error():
    """The end of a capture that failed fails in its turn, with words of its own."""

    def failed(cause, said):
        try:
            try:
                raise cause
            finally:
                raise RuntimeError(said)
        except RuntimeError as error:
            return error

    memory, other = torch.cuda.OutOfMemoryError("CUDA out of memory."), ValueError("no")
    assert is_out_of_memory(failed(memory, "CUDA error: operation failed due to a previous error during capture"))
    assert not is_out_of_memory(failed(other, "CUDA error: operation failed due to a previous error during capture"))
    assert not is_out_of_memory(failed(memory, "something else"))


def played_in_processes(tmp_path, monkeypatch, one_worker, kills):
    """What became of a run whose system kills what is too wide, and the widths tried; `kills` counts what it killed."""
    monkeypatch.setattr(executors, "killed_for_memory", kills)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    ending, _ = play(
        tight_campaign(tmp_path, killed=True, pairs=1),
        RunFolder(tmp_path / "run"),
        RunOptions(trial=False, executor="processes"),
    )
    return ending, [int(line) for line in (tmp_path / "tried").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="platform: only Linux says that a process was killed for memory")
def test_a_stack_whose_process_the_system_killed_for_memory_is_tried_half_as_wide(tmp_path, monkeypatch, one_worker):
    counter = itertools.count()
    ending, tried = played_in_processes(tmp_path, monkeypatch, one_worker, lambda: next(counter))
    assert (ending.failed, ending.n_missing) == ({}, 0)
    assert sorted(tried) == [2, 2, 2, 4]  # two originals and two shadows as one stack, halved; two retrained models


@pytest.mark.slow
def test_a_stack_whose_process_somebody_else_killed_is_tried_as_it_is(tmp_path, monkeypatch, one_worker):
    ending, tried = played_in_processes(tmp_path, monkeypatch, one_worker, lambda: 0)
    assert ending.failed
    assert tried.count(4) == N_LIVES


def test_the_system_says_how_many_processes_it_killed_for_memory():
    assert executors.killed_for_memory() >= 0
    assert isinstance(executors.killed_for_memory(), int)


def test_half_of_a_stack_is_the_smaller_one_of_an_odd_number():
    jobs = tuple(MadeUp("train", {"name": name}) for name in "abcde")
    keys = [job.key for job in jobs]
    assert halved(Assignment(jobs, frozenset(keys[:2]))) == [keys[:3], keys[3:]]
