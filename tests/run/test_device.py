"""Choosing a device, and what a run says about where it was made."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.learn.device import choose_device, describe, free_bytes
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.packing import stack_width
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="GPU: is about machines without a GPU")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "mps", "cpu:0", "", "CPU"])
def test_a_name_that_is_no_device_is_one_line(name):
    with pytest.raises(UserError, match=f"device '{name}': write auto, cpu, cuda or cuda:0"):
        choose_device(name)


def test_a_device_that_is_not_there_is_one_line():
    with pytest.raises(UserError, match="device 'cuda:999' is not there: torch sees"):
        choose_device("cuda:999")


@without_cuda
def test_auto_is_the_cpu_where_there_is_no_gpu():
    assert describe(choose_device("auto")) == describe(choose_device("cpu")) == "cpu"
    assert free_bytes(choose_device("cpu")) > 0
    with pytest.raises(UserError, match="torch sees no GPU"):
        choose_device("cuda")


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
