"""What a user may say about a cluster: where it is, what a job takes of it, and whether it shares our disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plan.jobs import HEAVY, USES_TORCH, Kind
from forgetgauge.run.packing import stack_width

_UNITS = {"": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_RESOURCES = ("cpu", "gpu", "memory")
PROCESS_BYTES = {True: 2**29, False: 2**28}
"""Of a process that has torch and a small data set in memory (measured: 378 MiB), and of one without torch (97 MiB)."""
COPIES = 4
"""Of each member of a stack while it is trained: weights, gradients, momentum, and what a step needs besides."""


@dataclass(frozen=True)
class Demand:
    """What Ray sets aside for one assignment."""

    cpu: float
    gpu: float
    memory: int

    def slots(self, resources: Mapping[str, float]) -> int:
        """How many assignments a node with these resources does at once."""
        asked = {"CPU": self.cpu, "GPU": self.gpu, "memory": self.memory}
        fits = [int(resources.get(name, 0.0) / amount + 1e-9) for name, amount in asked.items() if amount]
        return min(fits)

    def at_most(self, memory: float) -> Demand:
        """This demand, with at most so many bytes of memory."""
        return replace(self, memory=min(self.memory, int(memory)))

    def __str__(self) -> str:
        """`1 CPU, 1 GPU, 2147483648 B of memory`."""
        told = {f"{self.cpu:g} CPU": self.cpu, f"{self.gpu:g} GPU": self.gpu, f"{self.memory} B of memory": self.memory}
        return ", ".join(text for text, amount in told.items() if amount)


@dataclass(frozen=True)
class Asked:
    """The settings of the executor `ray`, checked."""

    address: str | None
    """`auto`, `HOST:PORT`, or None for a cluster of this machine alone."""
    cpu: float
    gpu: float | None
    """None: one for each assignment that uses torch, where the cluster has GPUs."""
    memory: int | None
    """Bytes; None: as much as the plan says."""
    shared_store: bool

    @staticmethod
    def of(address: str | None = None, resources: str = "", shared_store: bool = False) -> Asked:
        """Read what stands on the command line, or say in one line what is wrong with it."""
        if find_spec("ray") is None:
            raise UserError("executor 'ray' needs Ray, which is not installed: pip install 'forgetgauge[ray]'")
        for name, value in {"address": "" if address is None else address, "resources": resources}.items():
            if not isinstance(value, str):
                raise UserError(f"executor 'ray': {name} = {value!r} is not a text")
        if not isinstance(shared_store, bool):
            raise UserError(f"executor 'ray': shared_store = {shared_store!r} is neither True nor False")
        if address is not None and address != "auto" and not _is_host_and_port(address):
            raise UserError(f"--address {address}: write auto, or a host and a port, e.g. 10.0.0.1:6379")
        amounts = _amounts(resources)
        cpu, memory = amounts.get("cpu", 1.0), amounts.get("memory")
        if not cpu:
            raise UserError(f"--resources {resources}: a job takes some of a CPU, so cpu must be above 0")
        return Asked(address, cpu, amounts.get("gpu"), None if memory is None else int(memory), shared_store)

    def demand(self, kind: Kind, device: str, model_bytes: int) -> Demand:
        """Of an assignment of such jobs, where models of that size are made on that device."""
        uses_gpu = kind in USES_TORCH and device.startswith("cuda")
        gpu = (1.0 if self.gpu is None else self.gpu) if uses_gpu else 0.0
        planned = PROCESS_BYTES[kind in USES_TORCH] + COPIES * model_bytes * (
            stack_width(device) if kind in HEAVY else 1
        )
        return Demand(self.cpu, gpu, planned if self.memory is None else self.memory)


def _is_host_and_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(re.fullmatch(r"[\w.\-]+|\[[0-9a-fA-F:]+\]", host)) and port.isdecimal() and 0 < int(port) < 2**16


def _amounts(text: str) -> dict[str, float]:
    """`cpu=1,gpu=0.25,memory=2GiB` as numbers by name."""
    amounts: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in _RESOURCES:
            raise UserError(f"--resources {text}: {unknown_name('resource', name, _RESOURCES)}")
        units = "|".join(_UNITS) if name == "memory" else ""
        match = re.fullmatch(rf"(\d+(?:\.\d+)?)\s*({units})", value, re.IGNORECASE)
        if match is None or name in amounts:
            raise UserError(f"--resources {text}: write each once, e.g. cpu=1,gpu=0.25,memory=2GiB")
        amounts[name] = float(match[1]) * _UNITS[match[2].lower()]
    if amounts.get("gpu", 0.0) > 1 or (amounts.get("cpu", 0.0) > 1 and amounts["cpu"] % 1):
        raise UserError(f"--resources {text}: gpu is 1 or a part of one, and cpu above 1 a whole number")
    return amounts
