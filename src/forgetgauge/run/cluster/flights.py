"""Assignments under way on a cluster, and those that wait to be sent out again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forgetgauge.run.assignments import Assignment
from forgetgauge.run.cluster.demand import Demand
from forgetgauge.run.cluster.nodes import Node
from forgetgauge.store.objects import Receipt

PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0
"""What a machine's trouble lost waits before it is sent out again, twice as long each time: a machine that is dying
takes tasks and loses them for as long as Ray thinks that it lives, half a minute perhaps."""


@dataclass(eq=False)
class Flight:
    """An assignment under way."""

    assignment: Assignment
    digests: Mapping[str, str]
    demand: Demand
    avoided: set[str] = field(default_factory=set)
    n_lost: int = 0
    due: float = 0.0
    """When it is to be sent out again, while it waits."""
    task: Any = None
    node: Node | None = None
    arrived: float | None = None
    begun: float | None = None
    made: dict[str, Receipt] = field(default_factory=dict)


class Paused:
    """Lost assignments that wait before they are sent out again."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []

    def add(self, flight: Flight) -> None:
        """One that was lost once more."""
        flight.node = flight.arrived = flight.begun = None  # nobody is at work on it
        flight.due = time.monotonic() + min(LONGEST_PAUSE_S, PAUSE_S * 2 ** (flight.n_lost - 1))
        self.flights.append(flight)

    def drop(self, flight: Flight) -> None:
        """One that nobody wants any more, if it waits."""
        self.flights = [other for other in self.flights if other is not flight]

    def seconds(self, most: float) -> float:
        """Until the next is due, or `most`."""
        due = min((flight.due for flight in self.flights), default=float("inf"))
        return min(most, max(0.0, due - time.monotonic()))

    def take_due(self) -> list[Flight]:
        """Takes out the assignments whose time to wait is over."""
        now = time.monotonic()
        due = [flight for flight in self.flights if flight.due <= now]
        self.flights = [flight for flight in self.flights if flight.due > now]
        return due
