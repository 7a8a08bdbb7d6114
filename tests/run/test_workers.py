"""Worker processes: they may have children of their own, and they are gone when the run is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forgetgauge.run.assignments import Assignment
from forgetgauge.run.executors import Processes, _Member, _Role
from tests.run.test_poison import RUN

METHODS = """
import copy, multiprocessing, os, time
from pathlib import Path

from torch.utils.data import DataLoader, TensorDataset

def loads(model, retain, forget, context):
    points = TensorDataset(retain.x, retain.y)
    assert sum(len(y) for _, y in DataLoader(points, batch_size=16, num_workers=2)) == len(retain)
    return copy.deepcopy(model)

def leaves(model, retain, forget, context):
    child = multiprocessing.Process(target=time.sleep, args=(60,))
    child.start()
    Path(f"child-{child.pid}").touch()
    return copy.deepcopy(model)
"""


def is_there(pid: int) -> bool:
    """Whether such a process runs: one that ended and that nobody asked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: list[int], seconds: float) -> bool:
    """Whether all of them are, soon."""
    until = time.monotonic() + seconds
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_there, pids))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="platform: processes are looked up in /proc")
def test_a_method_may_have_processes_of_its_own(tmp_path, monkeypatch, call, one_worker):
    """What is left of them ends with the worker that started it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "methods_with_children.py").write_text(METHODS)
    names = ("loads", "leaves")
    tables = [f'[unlearners.{name}]\nmethod = "methods_with_children:{name}"\n' for name in names]
    (tmp_path / "children.toml").write_text(RUN + "".join(tables))
    code, out, err = call("run", "children.toml", "--executor", "processes", "--no-trial", "--quiet")
    children = [int(path.name.partition("-")[2]) for path in tmp_path.glob("child-*")]
    assert (code, err.count("leaked")) == (0, 0), err
    assert "no pair completed" not in out
    assert len(children) == 2
    assert gone(children, 2)


ALONE = """
import sys, time
from pathlib import Path
from forgetgauge.run.assignments import Sources
from forgetgauge.run.executors import Processes

class Busy:
    def __reduce__(self):
        return time.sleep, (60,)  # for whoever receives it

if __name__ == "__main__":
    workers = Processes(Path(sys.argv[1]), Sources({}), n_workers=2)
    if sys.argv[2] == "busy":
        for member in workers._members:
            member.pipe.send(Busy())
    print(*(member.process.pid for member in workers._members), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="platform: processes are looked up in /proc")
@pytest.mark.parametrize("work", ["idle", "busy"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_its_parent_however_that_ends(tmp_path, how, work):
    (tmp_path / "alone.py").write_text(ALONE)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "alone.py"), str(tmp_path), work],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(is_there, pids))
    parent.send_signal(how)
    parent.wait(10)
    parent.stdout.close()
    assert gone(pids, 10)


class BusyWithAProgram:
    """A message that the worker who receives it does not get through with: it waits for a program that it started."""

    def __init__(self, noted: Path) -> None:
        self.noted = noted

    def __reduce__(self):
        program = (
            f"import os, pathlib, time; pathlib.Path({str(self.noted)!r}).write_text(str(os.getpid())); time.sleep(60)"
        )
        return subprocess.run, ([sys.executable, "-c", program],)


STARTS_A_PROGRAM = """
import sys, time
from pathlib import Path

from forgetgauge.run.assignments import Assignment, Sources
from forgetgauge.run.executors import Processes
from tests.run.test_workers import BusyWithAProgram

if __name__ == "__main__":
    workers = Processes(Path(sys.argv[1]), Sources({}), n_workers=1)
    [member] = workers._members
    member.assignment = Assignment((), frozenset())
    member.pipe.send(BusyWithAProgram(Path(sys.argv[1]) / "program"))
    while not (Path(sys.argv[1]) / "program").exists() or not (Path(sys.argv[1]) / "program").read_text():
        time.sleep(0.02)
    print("ready", flush=True)
    {"stop": lambda: workers.stop(member.assignment), "close": workers.close, "kill": lambda: None}[sys.argv[2]]()
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="platform: processes are looked up in /proc")
@pytest.mark.parametrize("how", ["stop", "close", "kill"])
def test_a_program_that_a_job_waits_for_ends_with_the_worker(tmp_path, how):
    (tmp_path / "alone.py").write_text(STARTS_A_PROGRAM)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "alone.py"), str(tmp_path), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
    )
    try:
        assert parent.stdout.readline() == b"ready\n"
        program = int((tmp_path / "program").read_text())
        if how == "kill":
            parent.kill()
        ended = gone([program], 10)
        if not ended:
            os.kill(program, signal.SIGKILL)
        assert ended
    finally:
        parent.kill()
        parent.wait(10)
        parent.stdout.close()


def forks_and_dies(pipe):
    """Its child holds whatever it held, and outlives it."""
    if child := os.fork():
        pipe.send(child)
        os._exit(3)
    time.sleep(60)
    os._exit(0)


def test_the_death_of_a_worker_is_noticed_while_a_child_of_its_lives():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=forks_and_dies, args=(theirs,))
    process.start()
    theirs.close()
    child = ours.recv()
    workers = Processes.__new__(Processes)
    workers._arguments = (Path(), None, None)  # nothing that they print is kept
    workers._members = [_Member(_Role("cpu", frozenset()), process, ours, Assignment((), frozenset()))]
    try:
        begun = time.monotonic()
        assert workers._heard_from(30) is workers._members[0]
        assert time.monotonic() - begun < 20
        workers.close()
        assert process.exitcode == 3
        assert time.monotonic() - begun < 25
    finally:
        os.kill(child, signal.SIGKILL)
