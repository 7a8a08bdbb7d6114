"""What becomes of an assignment whose task ends by itself, by whose fault it was; Ray is a stand-in."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import TrainJob
from forgetgauge.run.assignments import Assignment, Outcome, Sources
from forgetgauge.run.cluster import demand, executor, sending
from forgetgauge.run.cluster.executor import Ray
from forgetgauge.run.cluster.nodes import NODE


class RayError(Exception):
    """Of which all others are."""


NAMES = ("WorkerCrashed", "OutOfMemory", "NodeDied", "RuntimeEnvSetup", "OutOfDisk", "ObjectStoreFull")
ERRORS = SimpleNamespace(RayError=RayError, **{f"{name}Error": type(f"{name}Error", (RayError,), {}) for name in NAMES})


class Task:
    """A task that Ray says nothing of."""


class Silent:
    """A Ray that takes tasks, and whose nodes have one CPU and a gigabyte each."""

    exceptions = ERRORS
    cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)

    def __init__(self) -> None:
        self.sent: list[dict] = []

    def nodes(self):
        return [{"NodeID": which, "Alive": True, "Resources": {"CPU": 1.0, "memory": 2.0**30}} for which in "abc"]

    def remote(self, **how):
        ray = self

        class Remote:
            def options(self, **how):
                ray.sent.append(how)
                return self

            def remote(self, *arguments):
                return Task()

        return lambda function: Remote()

    def put(self, what):
        return what


class Connected:
    """A connection to that."""

    is_local, head = True, None

    def __init__(self, ray) -> None:
        self.ray = ray

    def close(self) -> None:
        """Nothing."""


@pytest.fixture
def ray(monkeypatch, tmp_path):
    """An executor on such a cluster."""
    silent = Silent()
    monkeypatch.setattr(demand, "find_spec", lambda name: name)  # whether or not Ray is installed
    monkeypatch.setattr(executor, "connected", lambda asked: Connected(silent))
    made = Ray(tmp_path / "objects", Sources({}, model_bytes=10**6))
    yield made
    made.close()


def stack(n: int) -> Assignment:
    """So many jobs that train, with numbers for keys."""
    made = tuple(TrainJob.__new__(TrainJob) for _ in range(n))
    for number, job in enumerate(made):
        job.__dict__.update(key=f"{number}", coupled=True)
    return Assignment(made, frozenset(job.key for job in made))


def send_due(ray) -> None:
    for flight in ray._paused.take_due():
        ray._send(flight)


def ended(ray, assignment, *errors):
    """What comes of an assignment whose tasks end with these errors on node `a`, one after another."""
    ray.start(assignment, {})
    for error in errors:
        (flight,) = ray._flights.values()
        flight.node = ("a", "10.0.0.1")
        ray._trouble(flight, error())
        for paused in ray._paused.flights:
            paused.due = 0.0  # nobody waits here
        send_due(ray)
    return ray._settled.popleft()[1] if ray._settled else None


def test_a_stack_whose_process_took_all_memory_is_halved(ray):
    outcome = ended(ray, stack(5), ERRORS.OutOfMemoryError)
    assert outcome.stacks == [["0", "1", "2"], ["3", "4"]]
    assert not outcome.failures
    alone = ended(ray, stack(1), ERRORS.OutOfMemoryError)
    assert alone.failures["0"].line.endswith("10.0.0.1 (node a): its machine was out of memory")


def test_a_lost_machine_counts_against_nobody_and_is_not_asked_again(ray):
    assert ended(ray, stack(2), *[ERRORS.NodeDiedError] * 5) is None
    assert ray._ray.sent[-1]["label_selector"] == {NODE: "!in(a)"}
    assert not ray._died_on


def test_what_a_machine_lost_waits_longer_each_time_and_what_is_stopped_meanwhile_is_not_sent(ray, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(sending.time, "monotonic", lambda: now[0])
    assignment, pauses = stack(1), []
    ray.start(assignment, {})
    for _ in range(10):
        (flight,) = ray._flights.values()
        ray._trouble(flight, ERRORS.RayError())
        assert not ray._flights
        pauses.append(flight.due - now[0])
        n_sent, now[0] = len(ray._ray.sent), flight.due - 0.01
        send_due(ray)
        assert len(ray._ray.sent) == n_sent
        now[0] = flight.due
        send_due(ray)
    assert pauses[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert pauses[-1] == 10.0
    assert sum(pauses) > 30  # seconds for which Ray may take a dead machine for a sound one
    (flight,) = ray._flights.values()
    flight.n_lost = 0
    ray._trouble(flight, ERRORS.RayError())
    ray.stop(assignment)
    now[0] += 100
    send_due(ray)
    assert not ray._flights


def test_code_that_no_machine_can_be_sent_ends_the_run(ray):
    failed = ERRORS.RuntimeEnvSetupError
    with pytest.raises(UserError, match="your code could not be sent to a machine"):
        ended(ray, stack(2), *[failed] * 3)


def test_what_is_lost_too_often_is_given_up_by_name(ray):
    outcome = ended(ray, stack(1), *[ERRORS.RayError] * 11)
    assert outcome.failures["0"].line == "lost 11 times on its way, the last time because: RayError"


def test_of_an_outcome_that_waits_nobody_asks_how_long_it_takes(ray):
    """An input that is missing is known as soon as it is to be sent."""
    assignment = stack(1)
    ray.start(assignment, {"gone": "0" * 64})
    assert ray.seconds_at_work(assignment) == 0.0
    assert ray.next(0.0) == (assignment, Outcome(lost="gone"))
