"""Artefacts, and the store that keeps one file per job key, written atomically and verified on every read.

An artefact is one safetensors file: named arrays and one JSON object of facts. No pickles, reproducible bytes. No fsync
is called: a file that a power failure tore does not match its SHA-256, and its job is simply done again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from forgetgauge.errors import DiskFull
from forgetgauge.streams import canonical_json

FACTS = "facts"  # the only metadata key: with two or more the order of keys, and so the bytes, would vary


@dataclass(frozen=True)
class Artefact:
    """What one job made: named arrays, and facts about them."""

    arrays: dict[str, npt.NDArray[Any]]
    facts: dict[str, Any]


def encode(arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> bytes:
    """The file's bytes; equal content gives equal bytes."""
    contiguous = {name: np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape) for name in sorted(arrays)}
    return save(contiguous, metadata={FACTS: canonical_json(dict(facts))})


def decode(content: bytes) -> Artefact:
    """The artefact that `encode` made these bytes of."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return Artefact(load(content), json.loads(header["__metadata__"][FACTS]))


KEY = re.compile(r"[0-9a-f]{64}")
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class CorruptArtefact(Exception):
    """A file is missing or its bytes are not those that were written."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


@dataclass(frozen=True)
class Receipt:
    """What was written: enough to verify it later."""

    sha256: str
    n_bytes: int


@contextmanager
def full_disk_is_one_line(folder: Path) -> Iterator[None]:
    """Turn "no space left" into the one line a user can act on."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskFull(f"{folder}: the disk is full; free some space, then the same command continues") from None


@dataclass(frozen=True)
class ObjectStore:
    """Artefacts of a run folder, by job key."""

    folder: Path

    def path(self, key: str) -> Path:
        """Where the artefact of a key is; two characters of the key spread the files over 256 folders."""
        if not KEY.fullmatch(key):
            raise ValueError(f"not a job key: {key!r}")
        return self.folder / key[:2] / f"{key}.safetensors"

    def write(self, key: str, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> Receipt:
        """Write an artefact; a reader sees all of it or nothing."""
        return self.write_bytes(key, encode(arrays, facts))

    def write_bytes(self, key: str, content: bytes) -> Receipt:
        """Write an artefact that is encoded already."""
        path = self.path(key)
        with full_disk_is_one_line(self.folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        return Receipt(hashlib.sha256(content).hexdigest(), len(content))

    def read(self, key: str, sha256: str) -> Artefact:
        """Read an artefact, or raise CorruptArtefact."""
        return decode(self.read_bytes(key, sha256))

    def read_bytes(self, key: str, sha256: str) -> bytes:
        """Read an artefact's verified bytes, or raise CorruptArtefact."""
        try:
            content = self.path(key).read_bytes()
        except FileNotFoundError:
            raise CorruptArtefact(key) from None
        if hashlib.sha256(content).hexdigest() != sha256:
            raise CorruptArtefact(key)
        return content

    def is_sound(self, key: str, sha256: str) -> bool:
        """Whether the artefact is there with the bytes that were written."""
        try:
            self.read_bytes(key, sha256)
        except CorruptArtefact:
            return False
        return True

    def drop(self, key: str) -> None:
        """Delete the artefact of a key."""
        self.path(key).unlink(missing_ok=True)

    def n_bytes(self) -> int:
        """Disk use of all artefacts."""
        return sum(path.stat().st_size for path in self.folder.glob("*/*.safetensors"))

    def sweep_up(self) -> None:
        """Delete half-written files that a killed process left."""
        for path in self.folder.glob("*/*.part"):
            path.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the file, then rename over it; on failure nothing is left behind."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
