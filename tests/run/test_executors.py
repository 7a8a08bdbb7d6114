"""Who may take which assignment: with a GPU, one worker owns it and the others do what needs no torch."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import USES_TORCH, Kind
from forgetgauge.run import executors
from forgetgauge.run.assignments import Assignment, Sources
from forgetgauge.run.executors import KINDS, Inline, Processes, worker_roles
from tests.made_up import MadeUp


def assignment(kind: Kind) -> Assignment:
    job = MadeUp(kind)
    return Assignment((job,), frozenset({job.key}))


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_on_a_cpu_every_worker_does_everything(n_workers):
    hired = worker_roles("cpu", n_workers)
    assert len(hired) == n_workers
    assert all(place.serves(assignment(kind)) for place in hired for kind in KINDS)


@pytest.mark.parametrize("n_workers", [1, 2, 8])
def test_with_a_gpu_one_worker_owns_it_and_never_waits_for_an_adversary(n_workers):
    owner, *others = worker_roles("cuda:0", n_workers)
    assert len(others) == max(n_workers - 1, 1)
    assert owner.device == "cuda:0"
    assert {place.device for place in others} == {"cpu"}
    for kind in KINDS:
        assert owner.serves(assignment(kind)) == (kind in USES_TORCH)
        assert all(place.serves(assignment(kind)) == (kind not in USES_TORCH) for place in others)


@pytest.mark.slow
def test_a_busy_gpu_leaves_room_for_light_tasks(tmp_path):
    workers = Processes(tmp_path, Sources({}), "cuda:0", n_workers=3)
    try:
        assert (workers.n_workers(assignment("train")), workers.n_workers(assignment("decide"))) == (1, 2)
        workers.start(assignment("train"), {})
        assert not workers.has_room(assignment("unlearn"))
        assert workers.has_room(assignment("decide"))
        done, outcome = workers.next()  # there is no such data set, nor perhaps such a device
        assert done == assignment("train")
        assert list(outcome.failures) == list(done.wanted)
        assert workers.has_room(assignment("unlearn"))
    finally:
        workers.close()


def test_this_process_does_one_task_at_a_time(tmp_path):
    executor = Inline(tmp_path, Sources({}))
    assert executor.has_room(assignment("train"))
    executor.start(assignment("train"), {})
    assert not executor.has_room(assignment("decide"))
    assert executor.n_workers(assignment("decide")) == 1


@pytest.mark.slow
def test_a_worker_that_was_started_ahead_is_hired_for_what_needs_torch(tmp_path):
    with Processes.started_ahead("cpu"):
        ((process, _),) = executors._AHEAD
        workers = Processes(tmp_path, Sources({}), n_workers=2)
        try:
            assert executors._AHEAD == []
            assert [member.process is process for member in workers._members] == [True, False]
            workers.start(assignment("train"), {})
            done, outcome = workers.next()  # there is no such data set
            assert (done, list(outcome.failures)) == (assignment("train"), list(done.wanted))
        finally:
            workers.close()
    assert not process.is_alive()


def test_a_worker_that_nobody_hired_is_ended_whatever_went_wrong():
    started = []

    def plan_badly():
        with Processes.started_ahead("cpu"):
            started.extend(executors._AHEAD)
            raise UserError("no such data")

    with pytest.raises(UserError):
        plan_badly()
    assert [process.is_alive() for process, _ in started] == [False]
    assert executors._AHEAD == []


def test_a_worker_that_died_before_it_was_hired_is_replaced(tmp_path):
    with Processes.started_ahead("cpu"):
        ((process, _),) = executors._AHEAD
        process.kill()
        process.join()
        workers = Processes(tmp_path, Sources({}), n_workers=1)
        try:
            assert workers._members[0].process.is_alive()
        finally:
            workers.close()


def test_a_worker_that_died_is_noticed_although_a_child_of_its_holds_the_pipe(tmp_path, monkeypatch):
    workers = Processes(tmp_path, Sources({}), n_workers=1)
    try:
        member = workers._members[0]
        held = os.dup(member.pipe.fileno())  # as a process that it forked would hold the other end
        monkeypatch.setattr(type(member.pipe), "poll", lambda self, timeout=0.0: False)
        member.assignment = assignment("train")
        member.process.kill()
        ended = workers.next(10.0)
        assert ended is not None
        assert "killed by signal 9" in next(iter(ended[1].failures.values())).line
        os.close(held)
    finally:
        workers.close()


def test_a_wait_ends_when_it_was_said_to_whoever_begins_meanwhile(tmp_path, monkeypatch):
    workers = Processes(tmp_path, Sources({}), n_workers=1)
    try:
        member = workers._members[0]
        member.assignment = assignment("train")
        said = iter([executors.BEGUN] * 3)

        def heard(timeout):
            time.sleep(min(0.4, timeout))
            return member if timeout > 0 and (word := next(said, None)) and word else None

        monkeypatch.setattr(workers, "_heard_from", heard)
        monkeypatch.setattr(type(member.pipe), "poll", lambda self, timeout=0.0: True)
        monkeypatch.setattr(type(member.pipe), "recv", lambda self: executors.BEGUN)
        start = time.monotonic()
        assert workers.next(1.0) is None
        assert time.monotonic() - start < 2.0
        member.assignment = None
    finally:
        workers.close()


def test_a_script_need_not_guard_its_calls(tmp_path):
    (tmp_path / "plain.py").write_text(
        "import forgetgauge\n"
        "print('begun')\n"
        "result = forgetgauge.evaluate(unlearner='none', pairs=1, shadows=1, fraction=0.1, adversaries='correctness',\n"
        "                              learner={'epochs': 1}, executor='processes')\n"
        "print(len(result.methods))\n"
    )
    done = subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["begun", "1"], done.stderr
