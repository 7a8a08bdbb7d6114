"""An artefact is one safetensors file: named arrays and one JSON object of facts. No pickles, reproducible bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from forgetgauge.streams import canonical_json

FACTS = "facts"  # the only metadata key: with two or more the order of keys, and so the bytes, would vary


@dataclass(frozen=True)
class Artefact:
    """What one job made."""

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, Any]


def encode(arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> bytes:
    """The file's bytes; equal content gives equal bytes."""
    contiguous = {name: np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape) for name in sorted(arrays)}
    return save(contiguous, metadata={FACTS: canonical_json(dict(facts))})


def decode(content: bytes) -> Artefact:
    """The artefact again."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return Artefact(load(content), json.loads(header["__metadata__"][FACTS]))
