"""Shared by the tests of whoever handles jobs without doing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forgetgauge.plan.jobs import Job, Kind, Named


@dataclass(frozen=True)
class MadeUp(Job):
    """A job of any kind, told from others by what it states."""

    kind: Kind
    states: Mapping[str, Any] = field(default_factory=dict)

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.states)

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return []
