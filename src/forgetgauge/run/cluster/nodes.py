"""The machines of a cluster as a run sees them: which can be used, and how much they do at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.run.cluster.demand import Demand
from forgetgauge.wording import listed

LOOK_EVERY_S = 2.0
"""Seconds between two looks at which machines there are."""
PATIENCE_S = 120.0
"""Seconds for which a run waits where no machine is left: another may be on its way."""
HEAD_ANSWERS_S = 2.0
"""Seconds within which the head of a cluster takes a connection."""
HEAD_PATIENCE_S = 30.0
"""Seconds for which a head may be gone: after 60 Ray ends this process without a word of ours."""
NODE = "ray.io/node-id"
"""The label that every node of Ray has."""

Node = tuple[str, str]
"""Ray's id of a node, and its address."""


def named(node: Node) -> str:
    """`10.0.0.3 (node 04aff316)`: several nodes may have one address."""
    return f"{node[1]} (node {node[0][:8]})"


def _amount(node: Mapping[str, Any], resource: str) -> float:
    return float(node["Resources"].get(resource, 0.0))


@dataclass
class Nodes:
    """The machines that are there, and those that are not to be used."""

    ray: Any
    head: tuple[str, int] | None = None
    """Where the head of the cluster listens; None: it is not asked whether it is there."""
    refused: dict[str, str] = field(default_factory=dict)
    """Id of a node -> its name, and why it does nothing for this run."""
    _alive: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _slots: dict[Demand, int] = field(default_factory=dict)
    """What is known since the last look: there may be a thousand machines, and ten thousand jobs that ask."""
    _most: dict[str, float] = field(default_factory=dict)
    _looked: float = -1e9
    _seen: float = field(default_factory=time.monotonic)
    """When there was last a machine that could be used."""
    _headless: float | None = None
    """Since when the head has not answered."""

    def look(self, *, at_once: bool = False) -> None:
        """Ask Ray which nodes there are, if that is not known since a moment ago."""
        now = time.monotonic()
        if (at_once or now - self._looked > LOOK_EVERY_S) and self._head_answers():
            self._looked = now
            self._alive = {str(node["NodeID"]): node for node in self.ray.nodes() if node["Alive"]}
            self._slots.clear()
            self._most.clear()
            if self.usable:
                self._seen = now

    def _head_answers(self) -> bool:
        """Whether Ray can be asked; UserError where it could not for long: it would end this process before it answers.

        A head that keeps its state elsewhere (Ray calls it GCS fault tolerance) may come back within that time.
        """
        try:
            if self.head is not None:
                socket.create_connection(self.head, HEAD_ANSWERS_S).close()
        except OSError:
            self._headless = self._headless or time.monotonic()
            if time.monotonic() - self._headless > HEAD_PATIENCE_S:
                where = f"{self.head[0]}:{self.head[1]}" if self.head else ""
                raise UserError(
                    f"the head of the cluster, {where}, has not answered for {HEAD_PATIENCE_S:.0f} s; what is finished "
                    "is kept: start the cluster again, and the same command continues"
                ) from None
            return False
        self._headless = None
        return True

    @property
    def usable(self) -> dict[str, Mapping[str, Any]]:
        """The machines that are there and not refused."""
        return {which: node for which, node in self._alive.items() if which not in self.refused}

    def slots(self, demand: Demand) -> int:
        """How many assignments with this demand are done at once by all of them."""
        self.look()
        if demand not in self._slots:
            self._slots[demand] = sum(demand.slots(node["Resources"]) for node in self.usable.values())
        return self._slots[demand]

    def most(self, resource: str) -> float:
        """What the machine has that has most of it."""
        self.look()
        if resource not in self._most:
            self._most[resource] = max((_amount(node, resource) for node in self.usable.values()), default=0.0)
        return self._most[resource]

    def mean(self, resource: str) -> float:
        """What a machine has of it on average."""
        self.look()
        return sum(_amount(node, resource) for node in self.usable.values()) / max(len(self.usable), 1)

    def refuse(self, node: Node, why: str, demand: Demand) -> None:
        """Use a node no more; UserError where that leaves none that could do such work."""
        self.refused[node[0]] = f"{named(node)}: {why}"
        self.look(at_once=True)
        if not self.slots(demand):
            raise UserError(f"no machine of the cluster can be used: {self.reasons}")

    def refuse_if_deserted(self, demand: Demand) -> None:
        """UserError where no machine has been left for long, or none has what is asked for."""
        self.look()
        if not self.usable and time.monotonic() - self._seen > PATIENCE_S:
            because = f" ({self.reasons})" if self.refused else ""
            raise UserError(
                f"the cluster has had no machine for {PATIENCE_S:.0f} s{because}; the same command continues"
            )
        if self.usable and not self.slots(demand):
            raise UserError(f"no machine of the cluster has what a job is to be given: {demand} (--resources)")

    @property
    def reasons(self) -> str:
        """Which machines were refused, and why."""
        return "; ".join(self.refused.values())

    def selector(self, avoided: Iterable[str], demand: Demand) -> dict[str, str]:
        """What Ray is told about where to go: not to who was refused, nor to who is avoided if anybody else can."""
        self.look()
        avoided = set(avoided)
        others = [node for which, node in self.usable.items() if which not in avoided]
        shunned = set(self.refused)
        if any(demand.slots(node["Resources"]) for node in others):
            shunned |= avoided
        gone = shunned & set(self._alive)
        return {NODE: f"!in({','.join(sorted(gone))})"} if gone else {}

    def has_others(self, node: Node, demand: Demand) -> bool:
        """Whether any other machine could do it."""
        self.look()
        others = [one for which, one in self.usable.items() if which != node[0]]
        return any(demand.slots(one["Resources"]) for one in others)

    def __str__(self) -> str:
        """`3 nodes, 24 CPUs, 8 GPUs`."""
        amounts = [len(self.usable)]
        for resource in ("CPU", "GPU"):
            amounts.append(round(sum(_amount(node, resource) for node in self.usable.values())))
        words = zip(amounts, ("node", "CPU", "GPU"), strict=True)
        told = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in words if n or word == "node"]
        return ", ".join(told) + (f" ({len(self.refused)} refused)" if self.refused else "")

    @property
    def gpus(self) -> str:
        """Kinds of GPU that there are, for people; empty where there is none."""
        self.look()
        resources = [node["Resources"] for node in self.usable.values() if node["Resources"].get("GPU")]
        kinds = {name.partition(":")[2] for one in resources for name in one if name.startswith("accelerator_type:")}
        return listed(sorted(kinds)) or ("GPU" if resources else "")
