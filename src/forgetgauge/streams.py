"""Randomness comes from identity: every stream of random numbers is named by who uses it and what for.

Two streams with different names are independent (their seeds are SHA-256 digests, never `seed + i`), so adding a
method, an adversary, a pair or a seed changes no other stream.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def identity_key(identity: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON: the content key of a job or of a draw."""
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()


@dataclass(frozen=True)
class Streams:
    """The random streams of one identity, e.g. `Streams(job.key).generator("order")`."""

    key: str

    def generator(self, purpose: str) -> np.random.Generator:
        """A fresh numpy generator for one purpose (`init`, `order`, `noise`, …)."""
        return np.random.default_rng(np.random.SeedSequence(self._entropy(purpose)))

    def seed(self, purpose: str) -> int:
        """A 63-bit seed for generators that take an integer (torch)."""
        return self._entropy(purpose) >> (256 - 63)

    def child(self, name: str) -> Streams:
        """The streams of a part of this identity."""
        return Streams(hashlib.sha256(f"{self.key}/{name}".encode()).hexdigest())

    def _entropy(self, purpose: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.key}:{purpose}".encode()).digest(), "big")
