"""Choosing a device, and what a run says about where it was made."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.learn.device import choose_device, choose_devices, describe, identity
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.packing import stack_width
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="GPU: is about machines without a GPU")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "mps", "cpu:0", "", "CPU", "cuda,cpu", ","])
def test_a_name_that_is_no_device_is_one_line(name):
    with pytest.raises(UserError, match=f"device '{name}': write auto, cpu, cuda, cuda:0 or cuda:0,cuda:2"):
        choose_device(name)


def test_a_device_that_is_not_there_is_one_line():
    with pytest.raises(UserError, match="device 'cuda:999' is not there: torch sees"):
        choose_device("cuda:999")


@without_cuda
def test_auto_is_the_cpu_where_there_is_no_gpu():
    assert describe(choose_device("auto")) == describe(choose_device("cpu")) == "cpu"
    with pytest.raises(UserError, match="torch sees no GPU"):
        choose_device("cuda")


@pytest.fixture
def four_gpus(monkeypatch):
    """A machine of which torch says that it has four GPUs, of two makes."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A" if device.index < 3 else "B")


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("auto", [0, 1, 2, 3]), ("cuda", [0, 1, 2, 3]), ("cuda:2", [2]), ("cuda:3,cuda:0", [3, 0])],
)
def test_devices_are_all_gpus_or_those_that_are_named(four_gpus, name, chosen):
    assert [str(device) for device in choose_devices(name)] == [f"cuda:{index}" for index in chosen]
    assert choose_device(name) == choose_devices(name)[0]


def test_several_gpus_are_described_by_make(four_gpus):
    assert describe(*choose_devices("cuda")) == "cuda: 3 × A, B"
    assert describe(choose_device("cuda:1")) == "cuda: A"


@pytest.mark.parametrize(
    ("name", "said"), [("cuda:0,cuda:0", "names a GPU twice"), ("cuda:0,cuda:4", "device 'cuda:4' is not there: torch")]
)
def test_a_list_of_gpus_that_cannot_be_is_one_line(four_gpus, name, said):
    with pytest.raises(UserError, match=said):
        choose_devices(name)


def test_one_process_takes_no_list_of_gpus(four_gpus):
    with pytest.raises(UserError, match="the inline executor has one device; --executor processes has several"):
        forgetgauge.evaluate(pairs=2, shadows=2, fraction=0.2, device="cuda:0,cuda:1")


def test_stacks_are_wider_on_a_gpu():
    assert stack_width("cuda:0") > stack_width("cpu")


def test_the_result_says_where_and_how_models_were_made(tmp_path):
    campaign = Campaign.plan(resolve({**TINY, "unlearners": ["retrain", "none"]}, "tiny"))
    _, result = play(campaign, RunFolder(tmp_path / "run"), RunOptions(device="cpu"))
    assert result is not None
    assert result.environment["device"] == "cpu"
    made = {(stack.kind, stack.width): stack.models for stack in result.stacks}
    assert made == {("train", 6): 6, ("unlearn", 4): 4, ("unlearn", 1): 4}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["environment"]["device"] == "cpu"


def test_evaluate_refuses_a_device_that_is_not_there():
    with pytest.raises(UserError, match="cuda:999"):
        forgetgauge.evaluate(pairs=2, shadows=2, fraction=0.2, device="cuda:999")


def test_scoring_a_finished_run_never_loads_torch(tmp_path):
    play(Campaign.plan(resolve({**TINY, "adversaries": ["confidence"]}, "tiny")), RunFolder(tmp_path / "run"))
    code = (
        "import sys; from pathlib import Path; from forgetgauge.run.campaign import add_adversaries, play;"
        "from forgetgauge.store.runfolder import RunFolder; folder = RunFolder(Path(sys.argv[1]));"
        "play(add_adversaries(folder, ['entropy']), folder); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)


def test_devices_are_known_again_and_told_apart(monkeypatch):
    """By the UUIDs of GPUs, in whatever order; by the machine where there are none."""
    named = {0: "GPU-a", 1: "GPU-b"}
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid=named[device.index]))
    first, second = (torch.device("cuda", index) for index in range(2))
    assert identity(first) == identity(first) != identity(second)
    assert identity(first, second) == identity(second, first) != identity(first)
    assert identity(torch.device("cpu")) == identity(torch.device("cpu"))
    assert "GPU" not in identity(first)
