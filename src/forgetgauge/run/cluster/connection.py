"""From settings to a connected Ray: a cluster that is there, or one of this machine alone that nobody else can reach.

A cluster that we start listens on the loopback address only, wants a token that nobody else has, has no dashboard,
sends no usage statistics, and keeps its files in a folder that only this user can open. It ends with the run.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TextIO

from forgetgauge.errors import UserError, line_of
from forgetgauge.run.cluster.demand import Asked
from forgetgauge.run.executors import usable_cores

ALONE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # whatever the system: without it Ray asks for an address of the network
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # Ray's 15 would leave a worker a tenth of a core beside any other program
}
"""What Ray reads when it is imported, for a cluster of this machine alone."""
CONNECT_S = 10.0
"""Seconds within which a cluster must answer."""
LONGEST_FOLDER = 20
"""Letters of the folder for temporary files: the names of Ray's sockets, 86 below it, may have 107 in all."""
FOLDER, LOCK = "fg-", "lock"
"""How the name of that folder begins, and a file in it."""
STORE_SHARE = 0.2
"""Of the memory that is free, for Ray's object store, where the cluster is ours."""
STORE_BYTES = (2**27, 2**32)
"""At least and at most, of the same."""


class Connection:
    """A connected Ray; `close` ends what was begun here and nothing else."""

    def __init__(
        self,
        ray: Any,
        folder: Path | None = None,
        *,
        lock: TextIO | None = None,
        address: str | None = None,
        is_ours: bool = True,
    ) -> None:
        self.ray, self._folder, self._lock, self._address, self._is_ours = ray, folder, lock, address, is_ours
        self.is_local = folder is not None
        """Whether the cluster is this machine alone, and ends with the connection."""
        self.is_held = False
        """Whether several runs use it one after another: then none of them closes it."""

    @property
    def head(self) -> tuple[str, int]:
        """Where the head of the cluster listens."""
        host, _, port = self.ray.get_runtime_context().gcs_address.rpartition(":")
        return host.strip("[]"), int(port)

    def send_code(self, folder: Path) -> None:
        """Have every process work in a copy of this folder, wherever it is; Ray takes that when it connects alone.

        Whoever connected before us has said what code there is: each job compares it with the plan's.
        """
        if self._is_ours and self._address is not None:
            self.ray.shutdown()
            # of a submitted job, whose own folder need not hold all of the code
            with _environment(RAY_OVERRIDE_JOB_RUNTIME_ENV="1"):
                _join(self.ray, self._address, runtime_env={"working_dir": str(folder)})

    def close(self) -> None:
        """Leave the cluster, unless it is held; one that was started for us ends."""
        if self.is_held:
            return
        global _CURRENT
        _CURRENT = None
        if self._is_ours:
            self.ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


_CURRENT: tuple[Asked, Connection] | None = None
"""Ray has one connection in a process."""


def connected(asked: Asked) -> Connection:
    """The connection of this process to what was asked for, made where there is none."""
    global _CURRENT
    if _CURRENT is not None and _CURRENT[0] == asked:
        return _CURRENT[1]
    connection = _started() if asked.address is None else _joined(asked.address)
    _CURRENT = (asked, connection)
    return connection


def _quiet(ray: Any) -> Any:
    """Ray prints what its daemons report on standard output, which belongs to the result."""
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
    return ray


HUSHED: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}


def _started() -> Connection:
    """A cluster of this machine alone."""
    if "ray" in sys.modules and "RAY_AUTH_TOKEN" not in os.environ:
        import ray

        if ray.is_initialized():
            return Connection(_quiet(ray), is_ours=False)
        raise UserError(
            "executor 'ray': Ray was imported before, so it would listen on the network; call ray.init() first, which "
            "is then used, or give an address"
        )
    os.environ.update(ALONE)
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    folder, lock = _private_folder()
    connection = Connection(_quiet(ray), folder, lock=lock)
    try:
        ray.init(
            address="local",
            num_cpus=usable_cores(),
            include_dashboard=False,
            object_store_memory=_store_bytes(),
            _temp_dir=str(folder / "ray"),  # which Ray opens to everybody: the folder above stays closed
            **HUSHED,
        )
        addresses = {str(node["NodeManagerAddress"]) for node in ray.nodes()}
        if outside := [address for address in addresses if not ip_address(address).is_loopback]:
            raise UserError(f"executor 'ray': Ray would listen on {outside[0]}, which is not of this machine alone")
    except BaseException as error:
        connection.close()
        if isinstance(error, Exception) and not isinstance(error, UserError):
            raise UserError(f"executor 'ray': Ray does not start here: {line_of(error)}") from error
        raise
    return connection


def _private_folder() -> tuple[Path, TextIO]:
    """(a folder that only this user can open, the lock that is held while it is used); those that nobody uses any more,
    because their process was killed, are deleted."""
    root = Path(tempfile.gettempdir())
    if len(str(root)) > LONGEST_FOLDER:
        root = Path("/tmp")  # noqa: S108 - the folder in it has a name and rights of its own
    for left in root.glob(f"{FOLDER}*"):
        with suppress(OSError), (left / LOCK).open("r+") as lock:  # somebody else's cannot be opened
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=root))
    lock = (folder / LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, lock


def _store_bytes() -> int:
    """For the object store of our own cluster: Ray would take a third of all memory."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    least, most = STORE_BYTES
    return min(max(int(free * STORE_SHARE), least), most)


def _joined(address: str) -> Connection:
    """A cluster that is there."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except OSError as error:
            raise UserError(f"--address {address}: nothing answers there: {error.strerror or error}") from None
    import ray

    if ray.is_initialized():
        return Connection(_quiet(ray), is_ours=False)
    _join(_quiet(ray), address)
    return Connection(ray, address=address)


def _join(ray: Any, address: str, **how: Any) -> None:
    try:
        ray.init(address=address, **how, **HUSHED)
    except Exception as error:
        raise UserError(f"--address {address}: no Ray cluster can be joined there: {line_of(error)}") from None


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """With these variables of the environment, which are then as they were."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
