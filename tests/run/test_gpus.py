"""Several GPUs: a worker owns each, and stacks are spread over them. The devices are fakes; what they do is real."""

from __future__ import annotations

import types

import pytest
import torch

from forgetgauge.learn import device
from forgetgauge.plan.jobs import USES_TORCH
from forgetgauge.run import executors
from forgetgauge.run.assignments import Sources
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.executors import KINDS, worker_roles
from forgetgauge.run.options import RunOptions
from forgetgauge.run.packing import STACK_ON_GPU, form_stacks
from forgetgauge.run.resolve import resolve
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

METHODS = ["retrain", "none", "ft-final", "neg-grad"]


@pytest.mark.parametrize("cores", [2, 4, 16])
def test_each_gpu_has_a_worker_and_another_fits_and_decides(cores):
    roles = worker_roles("cuda:0,cuda:2,cuda:3", cores)
    assert [role.device for role in roles if role.kinds == USES_TORCH] == ["cuda:0", "cuda:2", "cuda:3"]
    light = roles[3:]
    assert len(light) == max(cores - 3, 1)
    assert all(role.device == "cpu" and role.kinds == frozenset(KINDS) - USES_TORCH for role in light)


def test_where_a_gpu_has_room_two_workers_share_it_and_stacks_are_as_wide_as_for_one(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "_processes_on", lambda device: 2)
    monkeypatch.setattr(executors.Processes, "_hire", lambda self, role: role)
    hired = executors.Processes(tmp_path, Sources({}), "cuda:0,cuda:1", 16)
    owners = [role.device for role in hired._members if role.kinds == USES_TORCH]
    assert owners == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]  # the first two assignments go to different GPUs
    assert len(hired._members) == 16
    assert hired.n_gpus == 2


@pytest.mark.parametrize(("gib", "n"), [(140, 2), (80, 1), (48, 1), (8, 1)])
def test_how_many_workers_share_a_gpu_hangs_on_its_memory(gib, n, monkeypatch):
    each = {"cuda:0": 140, "cuda:1": gib}
    seen = lambda name: types.SimpleNamespace(total_memory=each[name] * 2**30)  # noqa: E731
    monkeypatch.setattr(torch.cuda, "get_device_properties", seen)
    assert device.processes_on("cuda:0,cuda:1") == n


def stacks_of(n_pairs, n_gpus, width=STACK_ON_GPU):
    """(Made of a model, width) of every stack."""
    raw = {**TINY, "game": {**TINY["game"], "pairs": n_pairs}, "unlearners": METHODS}
    jobs = Campaign.plan(resolve(raw, "tiny")).jobs
    formed = form_stacks(jobs, list(jobs), LedgerState(), width, n_gpus)
    coupled = [key for key, job in jobs.items() if job.coupled]
    assert sorted(key for stack in formed for key in stack) == sorted(coupled)  # each in one stack
    return [(bool(jobs[stack[0]].inputs), len(stack)) for stack in formed]


@pytest.mark.parametrize("n_pairs", [2, 5, 20])
@pytest.mark.parametrize("n_gpus", [2, 3, 8, 100])
def test_models_made_of_none_are_spread_over_all_gpus(n_pairs, n_gpus):
    n_models = 4 * n_pairs + 2  # originals, retrained ones and two shadow models
    widths = [width for reads, width in stacks_of(n_pairs, n_gpus) if not reads]
    gpus = [0] * n_gpus
    for width in widths:  # as they are handed out, were all models equally long
        gpus[gpus.index(min(gpus))] += width
    assert sum(widths) == n_models
    assert max(gpus) == -(-n_models // n_gpus)  # nobody could be sooner


def test_methods_keep_to_one_stack_while_there_are_as_many_as_gpus():
    assert [width for reads, width in stacks_of(5, 2) if reads] == [10, 10]
    assert [width for reads, width in stacks_of(5, 4) if reads] == [5, 5, 5, 5]


def test_one_gpu_has_everything_of_a_kind_in_one_stack():
    assert stacks_of(5, 1) == [(False, 12), (False, 10), (True, 10), (True, 10)]


def test_no_stack_is_wider_than_memory_and_pace_advise():
    assert max(width for _, width in stacks_of(20, 2, width=16)) == 16


def test_a_run_on_two_devices_uses_both(tmp_path, monkeypatch):
    light = frozenset(KINDS) - USES_TORCH
    roles = [executors._Role("cpu", USES_TORCH)] * 2 + [executors._Role("cpu", light)]
    monkeypatch.setattr(executors, "worker_roles", lambda device, n_workers, per_gpu: roles)
    at_work = []
    start = executors.Processes.start

    def noted(self, assignment, digests):
        start(self, assignment, digests)
        busy = [member.assignment for member in self._members[:2] if member.assignment is not None]
        at_work.append(len(busy))

    monkeypatch.setattr(executors.Processes, "start", noted)
    campaign = Campaign.plan(resolve({**TINY, "unlearners": METHODS}, "tiny"))
    folder = RunFolder(tmp_path / "run")
    ending, result = play(campaign, folder, RunOptions("processes", "cpu"))
    assert not ending.failed
    assert result is not None
    assert max(at_work) == 2
    trained = {stack.width for stack in result.stacks if stack.kind == "train"}
    assert trained == {5, 1}  # ten are trained, Retrain's four among them, so that five are each device's part
    assert set(result.methods) == set(METHODS)
