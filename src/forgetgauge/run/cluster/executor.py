"""The executor `ray`: every assignment is one Ray task; what it made comes back as bytes and is written here alone.

Ray finds a place for a task, starts processes, moves bytes, and says when a process or a machine died. It tries nothing
again: the ledger counts tries, and whose fault an end was decides whether it counts. A process that dies counts against
the job, which then goes to another machine; a machine that is lost counts against nobody.
"""

from __future__ import annotations

import pickle
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from forgetgauge.errors import DiskFull, UserError, line_of
from forgetgauge.plan.jobs import Kind
from forgetgauge.run.assignments import N_LIVES, Assignment, Failure, Outcome, Sources
from forgetgauge.run.cluster import errand
from forgetgauge.run.cluster.connection import Connection, connected
from forgetgauge.run.cluster.demand import Asked, Demand
from forgetgauge.run.cluster.nodes import LOOK_EVERY_S, Node, Nodes, named
from forgetgauge.run.cluster.sending import STORE_SHARE, Flight, Paused, References, gathered
from forgetgauge.run.cluster.serving import Arrived, Begun, Context, Ended, Lacks, Made, environment
from forgetgauge.run.executors import START_UP
from forgetgauge.run.packing import halved
from forgetgauge.store.objects import CorruptArtefact, ObjectStore
from forgetgauge.wording import listed

N_LOST = 10
"""So often an assignment is sent out again that was lost without anybody's fault."""
MARK = ".shared-"
"""How the name of a file begins that only who shares the store's disk can see."""
N_SETUPS = 3
"""So often in a row a machine may fail to set up a process with the user's code before that ends the run."""


class Ray:
    """Assignments as tasks of a Ray cluster: one that is there, or one of this machine that is started for the run."""

    @staticmethod
    @contextmanager
    def started_ahead(device: str, **settings: Any) -> Iterator[None]:
        """Connected before anything is planned, so that a wrong setting costs nobody a plan."""
        connection = connected(Asked.of(**settings))
        connection.is_held = True
        try:
            yield
        finally:
            connection.is_held = False
            connection.close()

    @staticmethod
    def chosen_device(name: str, **settings: Any) -> tuple[str, str]:
        """(`cpu` or `cuda`, its description): what the cluster has, whatever this machine has."""
        asked = Asked.of(**settings)
        if name not in ("auto", "cpu", "cuda"):
            raise UserError(f"--device {name}: Ray says which GPU does what; write auto, cpu or cuda")
        gpus = Nodes(connected(asked).ray).gpus if name != "cpu" and asked.gpu != 0 else ""
        if name == "cuda" and not gpus:
            raise UserError("--device cuda: no machine of the cluster has a GPU")
        return ("cuda", f"cuda: {gpus}") if gpus else ("cpu", "cpu")

    def __init__(
        self,
        objects: Path,
        sources: Sources,
        device: str = "cpu",
        *,
        address: str | None = None,
        resources: str = "",
        shared_store: bool = False,
    ) -> None:
        self._asked = Asked.of(address, resources, shared_store)
        self._connection: Connection = connected(self._asked)
        self._ray = ray = self._connection.ray
        self._store, self._sources, self._device = ObjectStore(objects.absolute()), sources, device
        self._nodes = Nodes(ray, self._connection.head)
        self._run = secrets.token_hex(8)
        self._flights: dict[Any, Flight] = {}
        self._n_busy: Counter[bool] = Counter()
        """Assignments under way that have a GPU, and that have none."""
        self._by_assignment: dict[int, Flight] = {}
        self._paused = Paused()
        self._heard: deque[Any] = deque()
        self._settled: deque[tuple[Assignment, Outcome]] = deque()
        self._died_on: dict[str, list[Node]] = {}
        self._data: dict[str, list[Any]] = {}
        room = self._nodes.mean("object_store_memory") / STORE_SHARE
        self._references = References(ray, self._store, room)
        self._folder = Path(tempfile.mkdtemp(prefix="forgetgauge-"))
        try:
            self._nodes.refuse_if_deserted(self._demand("decide"))
            self._nodes.refuse_if_deserted(self._demand("train"))
            if not self._connection.is_local and gathered(sources, self._folder):
                self._connection.send_code(self._folder)
            ray.cloudpickle.register_pickle_by_value(errand)
            self._remote = ray.remote(max_retries=0, num_returns="streaming", max_calls=0)(errand.errand)
            self._context = [ray.put(self._made_context())]
        except BaseException:
            self.close()
            raise

    def _made_context(self) -> Context:
        path = tuple(sys.path) if self._connection.is_local else ()
        if not self._asked.shared_store:
            return Context(self._sources, self._device, None, "", path)
        self._store.folder.mkdir(parents=True, exist_ok=True)
        self._unmark()
        mark = f"{MARK}{self._run}"
        (self._store.folder / mark).touch()
        return Context(self._sources, self._device, self._store.folder, mark, path)

    def _unmark(self) -> None:
        """Delete the mark by which machines know that they share the store; that of a driver that was killed, too."""
        for mark in self._store.folder.glob(f"{MARK}*"):
            mark.unlink(missing_ok=True)

    # -- how much is done at once --------------------------------------------------------------------------------------

    def _demand(self, kind: Kind) -> Demand:
        """Of assignments of such jobs; what the plan thinks of memory keeps no machine from doing them one by one."""
        demand = self._asked.demand(kind, self._device, self._sources.model_bytes)
        return demand if self._asked.memory is not None else demand.at_most(self._nodes.most("memory"))

    def has_room(self, assignment: Assignment) -> bool:
        """Whether a machine is idle, or will be before we could say what is next."""
        demand = self._demand(assignment.jobs[0].kind)
        slots = self._nodes.slots(demand)
        return self._n_busy[bool(demand.gpu)] < slots + 1 + slots // 4

    def n_workers(self, assignment: Assignment) -> int:
        """As many workers as all machines have room for."""
        return max(1, self._nodes.slots(self._demand(assignment.jobs[0].kind)))

    @property
    def n_gpus(self) -> int:
        """How many stacks of models GPUs do at once; stacks of the CPU are as wide as on one machine."""
        if not self._device.startswith("cuda"):
            return 1
        return max(1, self._nodes.slots(self._demand("train")))

    @property
    def crew(self) -> str:
        """The machines at work, in words."""
        return str(self._nodes)

    @property
    def notes(self) -> list[str]:
        """What the user should know when all is done."""
        return [f"not used: {line}" for line in self._nodes.refused.values()]

    # -- out -----------------------------------------------------------------------------------------------------------

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        """Hand the assignment to Ray; one whose process died before goes to another machine, where there is one."""
        died_on = {node[0] for key in assignment.wanted for node in self._died_on.get(key, ())}
        self._send(Flight(assignment, dict(digests), self._demand(assignment.jobs[0].kind), died_on))

    def _send(self, flight: Flight) -> None:
        flight.node = flight.arrived = flight.begun = None
        flight.made = {}
        self._by_assignment[id(flight.assignment)] = flight
        try:
            read = {} if self._asked.shared_store else flight.digests
            inputs = {key: self._references.sent(key, digest) for key, digest in read.items()}
        except CorruptArtefact as error:
            self._settle(flight, Outcome(lost=error.key))
            return
        except UserError as error:  # the disk, say
            self._settle(flight, _failed(flight, Failure(str(error), str(error), error=error)))
            return
        demand, selector = flight.demand, self._nodes.selector(flight.avoided, flight.demand)
        how = {
            "num_cpus": demand.cpu,
            **({"num_gpus": demand.gpu} if demand.gpu else {}),
            **({"memory": demand.memory} if demand.memory else {}),
            **({"label_selector": selector} if selector else {}),
        }
        flight.task = self._remote.options(**how).remote(
            self._run,
            environment(),
            self._context,
            pickle.dumps(flight.assignment),
            flight.digests,
            inputs,
            self._data,
        )
        self._flights[flight.task] = flight
        self._n_busy[bool(demand.gpu)] += 1

    # -- back ----------------------------------------------------------------------------------------------------------

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome] | None:
        """Wait for any task; who is lost without fault is sent out again meanwhile."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            for due in self._paused.take_due():
                self._send(due)
            if self._settled:
                return self._settled.popleft()
            if not self._heard:
                left = LOOK_EVERY_S if until is None else min(LOOK_EVERY_S, max(0.0, until - time.monotonic()))
                self._listen(left)
            if self._heard:
                flight = self._flights.get(self._heard.popleft())
                if flight is not None:
                    self._take(flight)
            elif until is not None and time.monotonic() >= until:
                return None
            else:
                for demand in {flight.demand for flight in self._flights.values()}:
                    self._nodes.refuse_if_deserted(demand)

    def _listen(self, seconds: float) -> None:
        """Take note of all tasks that have something to say."""
        tasks, seconds = list(self._flights), self._paused.seconds(seconds)
        if not tasks:
            time.sleep(seconds)
            return
        ready, others = self._ray.wait(tasks, num_returns=1, timeout=seconds, fetch_local=False)
        if ready and others:
            ready += self._ray.wait(others, num_returns=len(others), timeout=0, fetch_local=False)[0]
        self._heard.extend(ready)

    def _take(self, flight: Flight) -> None:
        """One word of a task, or its end."""
        try:
            said = self._ray.get(next(flight.task))
        except StopIteration:
            self._again(flight, "its task ended without a word")
            return
        except self._ray.exceptions.RayError as error:
            self._trouble(flight, error)
            return
        match said:
            case Arrived(node):
                flight.node, flight.arrived = node, time.monotonic()
            case Begun(node):
                flight.node, flight.begun = node, time.monotonic()
            case Made():
                self._keep(flight, said)
            case Ended():
                self._land(flight, said)
            case Lacks(digest):
                if digest not in self._data:
                    self._data[digest] = [self._ray.put(self._sources.dataset(digest))]
                self._again(flight, "its data set was sent")
            case (errand.REFUSED, node, why):
                self._nodes.refuse(node, why, flight.demand)
                self._again(flight, why)

    def _keep(self, flight: Flight, made: Made) -> None:
        """Write an artefact that is what its maker says; one that is not is missed at the end."""
        if made.key not in flight.assignment.wanted or sha256(made.content).hexdigest() != made.sha256:
            return
        try:
            flight.made[made.key] = self._store.write_bytes(made.key, made.content)
        except DiskFull as error:
            self._settle(flight, Outcome(full_disk=str(error)))

    def _land(self, flight: Flight, ended: Ended) -> None:
        """The outcome, unless something went wrong on the way or with the machine."""
        outcome, node = ended.outcome, flight.node
        if ended.full_disk and node is not None and self._nodes.has_others(node, flight.demand):
            self._nodes.refuse(node, f"its disk is full: {ended.full_disk}", flight.demand)
            return self._again(flight, ended.full_disk)
        if not self._asked.shared_store:
            if outcome.lost is not None and self._store.is_sound(outcome.lost, flight.digests[outcome.lost]):
                self._references.forget(outcome.lost)
                return self._again(flight, "an artefact that it reads was damaged on the way")
            if dict(outcome.receipts) != flight.made:
                return self._again(flight, "an artefact that it made was damaged on the way")
        return self._settle(flight, outcome)

    def _trouble(self, flight: Flight, error: Exception) -> None:
        """A task ended by itself: whose fault that was."""
        raised = self._ray.exceptions
        match error:
            case raised.OutOfMemoryError() if flight.assignment.jobs[0].coupled and len(flight.assignment.jobs) > 1:
                self._settle(flight, Outcome(stacks=halved(flight.assignment)))
            case raised.WorkerCrashedError() | raised.OutOfMemoryError():
                for key in flight.assignment.wanted:
                    self._died_on.setdefault(key, []).extend([flight.node] if flight.node else [])
                self._settle(flight, self._death(flight, isinstance(error, raised.OutOfMemoryError)))
            case raised.RuntimeEnvSetupError() if flight.n_lost >= N_SETUPS - 1:
                raise UserError(
                    f"executor 'ray': your code could not be sent to a machine: {line_of(error)}"
                ) from error
            case raised.NodeDiedError() | raised.OutOfDiskError() | raised.ObjectStoreFullError() if flight.node:
                flight.avoided.add(flight.node[0])  # Ray may take it for sound for half a minute yet
                self._again(flight, f"{named(flight.node)}: {line_of(error)}", pause=True)
            case _:
                self._again(flight, line_of(error), pause=True)

    def _death(self, flight: Flight, out_of_memory: bool) -> Outcome:
        """A process that died counts as a try of each job that it did."""
        nodes = {named(node): None for key in flight.assignment.wanted for node in self._died_on.get(key, ())}
        where = f" on {listed(list(nodes))}" if nodes else ""
        how = ": its machine was out of memory" if out_of_memory else ""
        line = f"the worker process died{where}{how}"
        return _failed(flight, Failure(line, line, tries=N_LIVES))

    def _again(self, flight: Flight, why: str, *, pause: bool = False) -> None:
        """Send out again what was lost by nobody's fault, at once or after a pause; not for ever."""
        self._drop(flight)
        flight.n_lost += 1
        if flight.n_lost > N_LOST:
            line = f"lost {flight.n_lost} times on its way, the last time because: {why}"
            return self._settle(flight, _failed(flight, Failure(line, line)))
        if pause:
            return self._paused.add(flight)
        return self._send(flight)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _settle(self, flight: Flight, outcome: Outcome) -> None:
        self._drop(flight)
        del self._by_assignment[id(flight.assignment)]
        self._settled.append((flight.assignment, outcome))

    def _drop(self, flight: Flight) -> None:
        """Hear no more of a task."""
        if flight.task is not None:
            del self._flights[flight.task]
            self._n_busy[bool(flight.demand.gpu)] -= 1
            flight.task = None

    def seconds_at_work(self, assignment: Assignment) -> float:
        """Since its process said that it begins, which takes no longer than START_UP once it is there."""
        flight = self._by_assignment.get(id(assignment))
        if flight is None:  # its outcome is known, and `next` gives it
            return 0.0
        since = flight.begun or (flight.arrived + START_UP if flight.arrived else time.monotonic())
        return max(0.0, time.monotonic() - since)

    def stop(self, assignment: Assignment) -> None:
        """End the process that does it; Ray starts another where one is needed."""
        flight = self._by_assignment.pop(id(assignment))
        self._paused.drop(flight)
        if flight.task is not None:
            self._ray.cancel(flight.task, force=True)
        self._drop(flight)

    def close(self) -> None:
        """End all tasks, and leave the cluster."""
        for task in list(self._flights):
            with suppress(Exception):
                self._ray.cancel(task, force=True)
        self._flights.clear()
        if self._asked.shared_store:
            self._unmark()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._connection.close()


def _failed(flight: Flight, failure: Failure) -> Outcome:
    return Outcome(failures=dict.fromkeys(flight.assignment.wanted, failure))
