"""`kill -9` at random moments: the same command goes on, repeats no finished job, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forgetgauge.report.result import without_timings
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY_TOML


def start(folder: Path, executor: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "forgetgauge", "run", str(folder / "tiny.toml"), "--out", str(folder / "run")]
    return subprocess.Popen(
        [*command, "--executor", executor, "--quiet"], stdout=subprocess.DEVNULL, start_new_session=True
    )


def result_of(folder: Path) -> object:
    return without_timings(json.loads((folder / "run/result.json").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize(("executor", "n_kills"), [("inline", 3), ("processes", 10)])
def test_kills_at_random_moments_change_nothing(tmp_path, executor, n_kills):
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    for folder in (calm, stormy):
        folder.mkdir()
        (folder / "tiny.toml").write_text(TINY_TOML.replace("epochs = 1", "epochs = 4"))
    begin = time.monotonic()
    assert start(calm, executor).wait() == 0
    whole = time.monotonic() - begin
    moments = random.Random(0)
    n_killed = 0
    for _ in range(n_kills):
        process = start(stormy, executor)
        try:
            process.wait(timeout=moments.uniform(0.3, 0.9) * whole)
        except subprocess.TimeoutExpired:
            if moments.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)  # the workers too
            else:
                process.kill()  # the parent alone: its workers must notice
            process.wait()
            n_killed += 1
    assert n_killed > 0
    assert start(stormy, executor).wait() == 0
    assert result_of(stormy) == result_of(calm)
    state = RunFolder(stormy / "run").open_ledger().state
    assert set(state.n_runs.values()) == {1}
    assert not list((stormy / "run/objects").glob("*/*.part"))
