"""`kill -9` at random moments: the same command goes on, repeats no finished job, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forgetgauge.plan.runfile import read_run_file
from forgetgauge.results.record import without_timings
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY_TOML


def start(folder: Path, executor: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "forgetgauge", "run", str(folder / "tiny.toml"), "--out", str(folder / "run")]
    return subprocess.Popen(
        [*command, "--executor", executor, "--quiet"], stdout=subprocess.DEVNULL, start_new_session=True
    )


def result_of(folder: Path) -> object:
    return without_timings(json.loads((folder / "run/result.json").read_text()))


def ledger_lines(folder: Path) -> int:
    ledger = folder / "run/ledger.jsonl"
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def killed_at_random(folder: Path, executor: str, moments: random.Random) -> bool:
    """Start the run and kill it a moment after it has written none or one further line of its ledger.

    False where it was over before that.
    """
    wanted = ledger_lines(folder) + moments.randint(0, 1)
    process = start(folder, executor)
    while ledger_lines(folder) < max(wanted, 1) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(moments.choice([0.0, 0.1, 0.3]))
    if process.poll() is not None:
        assert process.returncode == 0
        return False
    if moments.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)  # the workers too
    else:
        process.kill()  # the parent alone: its workers must notice
    process.wait()
    return True


def assert_like(stormy: Path, calm: Path) -> None:
    """The same bytes, timings apart, and no job was done twice."""
    assert result_of(stormy) == result_of(calm)
    state = RunFolder(stormy / "run").open_ledger().state
    assert set(state.n_runs.values()) == {1}
    assert not list((stormy / "run/objects").glob("*/*.part"))


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "n_kills"), [("inline", 1), ("processes", 2)])
def test_kills_at_random_moments_change_nothing(tmp_path, executor, n_kills):
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    for folder in (calm, stormy):
        folder.mkdir()
        (folder / "tiny.toml").write_text(TINY_TOML.replace("epochs = 1", "epochs = 20"))
    play(Campaign.plan(resolve(*read_run_file(calm / "tiny.toml"))), RunFolder(calm / "run"))  # in this process
    moments = random.Random(0)
    n_killed = 0
    while n_killed < n_kills:
        if killed_at_random(stormy, executor, moments):
            n_killed += 1
        else:  # it came through: check it, and begin another
            assert_like(stormy, calm)
            shutil.rmtree(stormy / "run")
    assert start(stormy, executor).wait() == 0
    assert_like(stormy, calm)
