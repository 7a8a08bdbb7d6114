"""Methods that attack the run itself: each is contained and named, and everything else finishes."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from forgetgauge.run.assignments import Assignment, Sources
from forgetgauge.run.executors import Processes
from tests.made_up import MadeUp

POISON = """
import copy, os, sys, time
from pathlib import Path

def exits(model, retain, forget, context): sys.exit(0)

def aborts(model, retain, forget, context): os.abort()

def hangs(model, retain, forget, context): time.sleep(1000)

def wanders(model, retain, forget, context):
    os.chdir("/")
    return copy.deepcopy(model)

def deletes(model, retain, forget, context):
    for path in Path({runs!r}).rglob("*.safetensors"):
        path.unlink(missing_ok=True)
    return copy.deepcopy(model)
"""
RUN = """
adversaries = ["correctness", "confidence"]
[data]
name = "digits"
fraction = 0.2
[game]
alpha = 0.5
pairs = 1
[learner]
epochs = 1
batch_size = 64
[shadows]
count = 2
[limits]
job_seconds = 8
[unlearners.retrain]
[unlearners.none]
"""


@pytest.fixture
def poisoned(tmp_path, monkeypatch):
    """Writes a run file with these methods, which can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poison_methods.py").write_text(POISON.format(runs=str(tmp_path / "runs")))
    sys.modules.pop("poison_methods", None)

    def write(*names: str) -> Path:
        tables = "".join(f'[unlearners.{name}]\nmethod = "poison_methods:{name}"\n' for name in names)
        (tmp_path / "poison.toml").write_text(RUN + tables)
        return tmp_path / "poison.toml"

    return write


@pytest.mark.slow
def test_in_worker_processes_each_is_contained_and_the_rest_finishes(poisoned, call, tmp_path):
    path = poisoned("exits", "aborts", "hangs", "wanders")
    code, out, err = call("run", path, "--executor", "processes", "--no-trial", "--quiet")
    assert code == 1
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert all("no pair completed" in rows[name] for name in ("exits", "aborts", "hangs"))
    assert all("no pair completed" not in rows[name] for name in ("retrain", "none", "wanders"))
    assert "SystemExit: it ended the program, with code 0" in err
    assert f"the worker process died (killed by signal {int(signal.SIGABRT)})" in err
    assert "ended after 8 s (limits.job_seconds = 8)" in err or "ended after 16 s (limits.job_seconds = 8)" in err
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir() and path.name != "__pycache__") == ["runs"]


@pytest.mark.slow
def test_in_this_process_too_as_far_as_one_can_survive_it(poisoned, call):
    path = poisoned("exits", "wanders")
    code, out, err = call("run", path, "--executor", "inline", "--no-trial", "--quiet")
    assert code == 1
    assert "SystemExit: it ended the program, with code 0" in err
    assert "result: runs/poison/result.json" in out
    assert Path("runs/poison/result.json").exists()


@pytest.mark.slow
def test_who_deletes_artefacts_is_told_of_in_one_line(poisoned, call):
    path = poisoned("deletes")
    code, _, err = call("run", path, "--executor", "inline", "--no-trial", "--quiet")
    assert code in (1, 2)
    assert "Traceback" not in err
    assert "again and again" in err


@pytest.mark.slow
def test_the_time_limit_holds_whatever_hangs(poisoned, call):
    path = poisoned("hangs")
    path.write_text(path.read_text().replace("job_seconds = 8", ""))
    code, out, err = call("run", path, "--executor", "processes", "--no-trial", "--quiet", "--time-limit", "15s")
    assert "time" in (out + err).lower()
    assert "Traceback" not in err
    assert code in (0, 1, 3)


@pytest.mark.slow
def test_a_trial_that_hangs_is_ended_and_named(poisoned, call):
    path = poisoned("hangs")
    path.write_text(path.read_text().replace("job_seconds = 8", "job_seconds = 12"))
    code, _, err = call("run", path, "--executor", "processes", "--quiet")
    assert code == 2
    assert "did not end within the time limit" in err
    assert "hangs" in err


def test_a_worker_that_is_killed_while_it_is_idle_is_replaced(tmp_path):
    job = MadeUp("train")
    workers = Processes(tmp_path, Sources({}), n_workers=1)
    try:
        workers._members[0].process.kill()
        workers._members[0].process.join()
        workers.start(Assignment((job,), frozenset({job.key})), {})
        ended = workers.next()
        assert ended is not None
        assert list(ended[1].failures) == [job.key]
        assert "died" not in ended[1].failures[job.key].line  # there is no such data set
    finally:
        workers.close()
