"""Methods that attack the run itself: each is contained and named, and everything else finishes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.errors import UserError, WrongOutput
from forgetgauge.plan.jobs import Named
from forgetgauge.run import campaign, executors, trial, worker
from forgetgauge.run.assignments import N_LIVES, Assignment, Failure, Outcome, Resolved, Sources
from forgetgauge.run.executors import Processes
from forgetgauge.run.scheduler import died_of, execute
from forgetgauge.run.side_effects import functions_kept
from forgetgauge.run.surroundings import settings_kept
from forgetgauge.store.objects import Artefact
from forgetgauge.store.runfolder import RunFolder
from tests.made_up import MadeUp
from tests.run.test_scheduler import StandIn, little_graph

POISON = """
import copy, gc, os, sys, time
from pathlib import Path

def exits(model, retain, forget, context): sys.exit(0)

def is_victim(context):
    # one model of the pair is enough, however often it is tried: the first that comes
    name = sys._getframe(1).f_code.co_name
    try:
        with open(name + ".victim", "x") as chosen:
            chosen.write(context.streams.key)
        return True
    except FileExistsError:
        return Path(name + ".victim").read_text() == context.streams.key

def aborts(model, retain, forget, context):
    if is_victim(context):
        os.abort()
    return copy.deepcopy(model)

def hangs(model, retain, forget, context):
    if is_victim(context):
        time.sleep(1000)
    return copy.deepcopy(model)

def loses(model, retain, forget, context):
    # as after an illegal access in a kernel: whatever this process asks of its GPU now would fail
    from forgetgauge.run.worker import Worker
    if not is_victim(context):
        return copy.deepcopy(model)
    for worker in gc.get_objects():
        if isinstance(worker, Worker):
            worker._has_lost_its_device = lambda: True
    with open("lost.txt", "a") as log:
        log.write(str(os.getpid()) + " ")
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

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
    path = poisoned("exits", "aborts", "hangs", "wanders", "loses")
    code, out, err = call("run", path, "--executor", "processes", "--no-trial", "--quiet")
    assert code == 1
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert all("no pair completed" in rows[name] for name in ("exits", "aborts", "hangs", "loses"))
    assert all("no pair completed" not in rows[name] for name in ("retrain", "none", "wanders"))
    assert "SystemExit: it ended the program, with code 0" in err
    assert f"the worker process died (killed by signal {int(signal.SIGABRT)})" in err
    assert "RuntimeError: CUDA error: an illegal memory access was encountered" in err
    pids = (tmp_path / "lost.txt").read_text().split()
    assert len(pids) == len(set(pids)) == N_LIVES  # each time in another process
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
def test_who_deletes_artefacts_is_named_and_the_rest_finishes(poisoned, call):
    path = poisoned("deletes")
    code, out, err = call("run", path, "--executor", "inline", "--no-trial", "--quiet")
    assert code == 1
    assert "deletes" in err
    assert "artefacts in the run folder that it was given or had made were deleted" in err
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert [name for name in ("retrain", "none", "deletes") if "no pair completed" in rows[name]] == ["deletes"]


@pytest.mark.slow
def test_the_time_limit_holds_whatever_hangs(poisoned, call, one_worker):
    path = poisoned("hangs")
    path.write_text(path.read_text().replace("job_seconds = 8", ""))
    code, out, err = call("run", path, "--executor", "processes", "--no-trial", "--quiet", "--time-limit", "7s")
    assert "time" in (out + err).lower()
    assert "Traceback" not in err
    assert code in (0, 1, 3)


@pytest.mark.slow
def test_a_trial_that_hangs_is_ended_and_named(poisoned, call, one_worker):
    path = poisoned("hangs")
    path.write_text(path.read_text().replace("job_seconds = 8", "job_seconds = 9"))
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


# -- what a job leaves behind in its process ---------------------------------------------------------------------------


class _NotAnException(BaseException):
    pass


class _CannotBeShown(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("not even this")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (_NotAnException("gone"), "_NotAnException: gone"),
        (GeneratorExit(), "GeneratorExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (_CannotBeShown(), "_CannotBeShown: (its text cannot be shown)"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * 1000 + "…"),
        (SystemExit(3), "SystemExit: it ended the program, with code 3"),
    ],
)
def test_whatever_a_method_raises_is_its_own_failure_in_one_line(tmp_path, monkeypatch, error, line):
    """Also KeyboardInterrupt, where nobody pressed Ctrl-C."""
    job = MadeUp("decide")
    monkeypatch.setattr(worker, "_made", lambda *_: raised(error))
    outcome = worker.Worker(tmp_path, Sources({})).perform(Assignment((job,), frozenset({job.key})), {})
    assert outcome.failures[job.key].line == line
    assert type(error).__name__ in outcome.failures[job.key].traceback
    tried = trial._Trial(lambda: False)
    tried.attempt("unlearners.mine", lambda _: raised(error))
    assert line in tried.failures["unlearners.mine"].line


def test_where_a_trial_loses_the_gpu_nothing_else_is_to_blame():
    tried = trial._Trial(lambda: True)
    assert tried.attempt("unlearners.first", lambda _: raised(RuntimeError("CUDA error"))) is None
    assert tried.attempt("unlearners.second", lambda _: raised(AssertionError("not to be tried"))) is None
    assert list(tried.failures) == ["unlearners.first"]
    assert tried.device_lost


def test_a_lost_gpu_is_charged_to_the_job_that_ran_and_not_to_those_behind_it(tmp_path, monkeypatch):
    jobs = tuple(MadeUp("decide", {"i": i}) for i in range(4))

    def made(those, *_):
        if those[0] is jobs[1]:
            raise RuntimeError("CUDA error")
        return [Artefact({"decisions": np.zeros(2, dtype=bool)}, {})]

    monkeypatch.setattr(worker, "_made", made)
    monkeypatch.setattr(worker, "refuse_wrong_output", lambda *_: None)
    monkeypatch.setattr(worker.Worker, "_has_lost_its_device", lambda self: True)
    done = worker.Worker(tmp_path, Sources({})).perform(Assignment(jobs, frozenset(job.key for job in jobs)), {})
    assert done.device_lost
    assert (list(done.receipts), list(done.failures)) == ([jobs[0].key], [jobs[1].key])
    assert done.failures[jobs[1].key].tries == N_LIVES
    assert done.seconds > 0


def raised(error: BaseException) -> None:
    raise error


def test_ctrl_c_is_no_failure_of_the_job(tmp_path, monkeypatch):
    job = MadeUp("decide")
    monkeypatch.setattr(worker, "_made", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        worker.Worker(tmp_path, Sources({})).perform(Assignment((job,), frozenset({job.key})), {})
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_job_sets_for_the_whole_process_ends_with_it(tmp_path):
    def state() -> tuple[object, ...]:
        mask = os.umask(0)
        os.umask(mask)
        handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        limits = resource.getrlimit(resource.RLIMIT_FSIZE), sys.getrecursionlimit()
        return dict(os.environ), list(sys.path), list(warnings.filters), mask, handlers, limits, os.getcwd(), sys.stdout

    before = state()
    with settings_kept("decide"):
        os.environ["CHAOS"] = "1"
        os.environ.pop("PATH")
        sys.path[:] = []
        warnings.simplefilter("ignore")
        os.umask(0o777)
        sys.setrecursionlimit(5_000)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 30)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, before[5][0][1]))
        os.chdir("/")
        sys.stdout = None
    assert state() == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_standard_output_that_a_job_closed_is_open_again():
    """In a process of its own, which has a standard output to lose."""
    program = (
        "import os, sys\nfrom forgetgauge.run.surroundings import settings_kept\n"
        "with settings_kept('decide'):\n    sys.stdout.close(); sys.stderr.close(); os.close(1); os.close(2)\n"
        "print('still here'); print('here too', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "still here\n", "here too\n")


def test_a_second_self_that_a_job_forked_ends_with_the_job(tmp_path):
    program = (
        "import os\nfrom forgetgauge.run.surroundings import alone\nfrom tests.made_up import MadeUp\n"
        "with alone(MadeUp('decide')):\n    child = os.fork()\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1\nprint('once')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "once\n"), done.stderr


def test_a_function_of_ours_that_a_method_replaced_is_put_back_and_the_method_named():
    def replace() -> None:
        with functions_kept():
            worker.decide = len
            worker.Worker.perform = None

    before = worker.decide, worker.Worker.perform
    with pytest.raises(WrongOutput, match=r"it replaced forgetgauge.run.worker.decide.*and 1 more"):
        replace()
    assert (worker.decide, worker.Worker.perform) == before


def test_threads_that_a_method_left_do_not_keep_the_program_from_ending():
    program = (
        "import threading, time\nfrom forgetgauge import cli\n"
        "cli.app = lambda **_: threading.Thread(target=time.sleep, args=(100,)).start()\ncli.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("note: 1 thread that code of yours started still ran")


# -- methods that damage the run folder --------------------------------------------------------------------------------


class Vandal(worker.Worker):
    """Whose first method deletes or changes all artefacts there are, whenever it runs."""

    harm = "delete"

    def _do(self, jobs, inputs):
        if jobs[0].label.startswith("unlearn 0"):
            for path in self.store.folder.rglob("*.safetensors"):
                path.unlink() if self.harm == "delete" else path.write_bytes(b"no more")
        return [Artefact({"x": np.arange(3)}, {}) for _ in jobs]


@pytest.mark.parametrize("harm", ["delete", "change"])
def test_who_damages_artefacts_is_set_aside_and_the_others_finish(tmp_path, monkeypatch, harm):
    monkeypatch.setattr(executors, "Worker", Vandal)
    monkeypatch.setattr(Vandal, "harm", harm)
    monkeypatch.setattr(worker, "is_own", lambda job: job.kind == "unlearn")
    monkeypatch.setattr(worker, "_refuse_content", lambda *_: None)  # which is made up
    monkeypatch.setattr(MadeUp, "choices", property(lambda job: [("unlearner", Named(str(job.states.get("i"))))]))
    folder, jobs = RunFolder(tmp_path / "run"), little_graph()
    folder.create()
    ending = execute(jobs, folder, executors.Inline(folder.objects.folder, Sources({})), keep_weights=True)
    assert {failure.job for failure in ending.failed.values()} == {"unlearn 0"}
    assert all("artefacts in the run folder" in failure.line for failure in ending.failed.values())
    state = folder.open_ledger().state
    assert {job.label for key, job in jobs.items() if key not in state.done} == {"unlearn 0", "signals 0", "decide 0"}


def test_an_input_that_is_nothing_a_job_makes_is_given_up_though_its_digest_is_right(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "Worker", Vandal)
    monkeypatch.setattr(worker, "is_own", lambda job: False)
    folder, jobs = RunFolder(tmp_path / "run"), little_graph(2)
    folder.create()
    ending = execute(jobs, folder, executors.Inline(folder.objects.folder, Sources({})), keep_weights=True)
    assert any("damaged again and again" in failure.line for failure in ending.failed.values())


# -- the next start ----------------------------------------------------------------------------------------------------


def test_the_next_start_names_the_job_that_the_process_died_of(tmp_path):
    folder, jobs = RunFolder(tmp_path / "run"), little_graph()
    folder.create()
    assert died_of(jobs, folder) == ""
    key = next(key for key, job in jobs.items() if job.label == "unlearn 1")
    for times in ("once", "2 times", "3 times"):
        folder.open_ledger().record_begun([key])
        assert f"ended {times} while it did “unlearn 1”" in died_of(jobs, folder)
    assert "left out (" in died_of(jobs, folder)


def test_half_written_files_are_swept_up_wherever_they_are(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create()
    for name in ("result.json.12.part", "failures/x.txt.12.part", "objects/ab/x.safetensors.12.part"):
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text("half")
    execute(little_graph(1), folder, StandIn(folder))
    assert not list(folder.path.rglob("*.part"))


def test_a_worker_that_dies_before_it_is_told_what_for_is_replaced(tmp_path, monkeypatch):
    dead = executors._started()
    dead[0].kill()
    dead[0].join()
    monkeypatch.setattr(executors, "_AHEAD", [dead])
    workers = Processes(tmp_path, Sources({}), n_workers=1)
    try:
        assert workers._members[0].process.is_alive()
    finally:
        workers.close()


# -- trials ------------------------------------------------------------------------------------------------------------


class DiesAtFirst(StandIn):
    """Whose process dies so often; then the trial is fine."""

    def __init__(self, folder: RunFolder, n_deaths: int) -> None:
        super().__init__(folder)
        self.n_deaths = n_deaths

    def next(self, timeout=None):
        assignment, _ = self.waiting.pop()
        self.performed.append(assignment.jobs[0].label)
        if len(self.performed) > self.n_deaths:
            return assignment, Outcome()
        return assignment, Outcome(failures={key: Failure("it died", "", tries=N_LIVES) for key in assignment.wanted})


class NeverEnds(StandIn):
    """Whose trial goes on and on; what was stopped is in `stopped`."""

    def next(self, timeout=None):
        time.sleep(timeout)

    def stop(self, assignment):
        self.performed.append(f"stopped {assignment.jobs[0].label}")


@pytest.fixture
def to_try(tmp_path, monkeypatch):
    """A run with one trial to do: its campaign and its folder."""
    monkeypatch.setattr(campaign, "trials_of", lambda *_: [MadeUp("try-model", label="try learner 'mine'")])
    folder = RunFolder(tmp_path / "run")
    folder.create()
    return campaign.Campaign([], Resolved([], None, False, Sources({}), {})), folder


def test_a_trial_whose_process_dies_is_tried_again_as_a_job_is(to_try):
    planned, folder = to_try
    survives, dies = DiesAtFirst(folder, N_LIVES - 1), DiesAtFirst(folder, N_LIVES)
    assert campaign._try_first(planned, folder, survives, None) == []
    with pytest.raises(UserError, match="try learner 'mine': it died"):
        campaign._try_first(planned, folder, dies, None)
    assert len(survives.performed) == len(dies.performed) == N_LIVES


def test_a_trial_that_the_time_limit_cuts_off_is_no_fault_of_the_method(to_try):
    """The same command goes on with more time; what was being tried is named."""
    planned, folder = to_try
    workers = NeverEnds(folder)
    (said,) = campaign._try_first(planned, folder, workers, time.monotonic() + 0.05)
    assert said.endswith("(try learner 'mine')")
    assert workers.performed == ["stopped try learner 'mine'"]
    workers.has_room = lambda _: not workers.performed
    slow = replace(planned, resolved=replace(planned.resolved, job_seconds=0.01))
    workers.seconds_at_work = lambda _: 1.0
    workers.performed.clear()
    with pytest.raises(UserError, match="did not end within the time limit"):
        campaign._try_first(slow, folder, workers, None)
