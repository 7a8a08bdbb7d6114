"""Artefacts, and the store that keeps one file per job key, written atomically and verified on every read.

An artefact is one safetensors file: named arrays and one JSON object of facts. No pickles, reproducible bytes. No fsync
is called: a file that a power failure tore does not match its SHA-256, and its job is simply done again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from forgetgauge.errors import UserError
from forgetgauge.files import write_into
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
    """The artefact that `encode` made these bytes of; ValueError where it made no such bytes."""
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        facts = json.loads(header["__metadata__"][FACTS])
        arrays = load(content)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError, MemoryError, SafetensorError) as error:
        raise ValueError(f"not an artefact: {error}") from None
    if not isinstance(facts, dict):
        raise ValueError("not an artefact: its facts are no table")
    return Artefact(arrays, facts)


KEY = re.compile(r"[0-9a-f]{64}")


class CorruptArtefact(UserError):
    """A file is missing, or its bytes are not those that were written, or not what its job makes."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"artefact {key[:12]} is missing, damaged, or nothing that its job makes: run the command again"
        )
        self.key = key


@dataclass(frozen=True)
class Receipt:
    """What was written: enough to verify it later."""

    sha256: str
    n_bytes: int


@dataclass(frozen=True)
class ObjectStore:
    """Artefacts of a run folder, by job key."""

    folder: Path

    @property
    def checkpoints(self) -> Path:
        """Where the states of long trainings are until their artefacts are written."""
        return self.folder.parent / "checkpoints"

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
        write_into(self.path(key), content)
        return Receipt(hashlib.sha256(content).hexdigest(), len(content))

    def read(self, key: str, sha256: str) -> Artefact:
        """Read an artefact, or raise CorruptArtefact."""
        content = self.read_bytes(key, sha256)
        try:
            return decode(content)
        except ValueError:
            raise CorruptArtefact(key) from None

    def read_bytes(self, key: str, sha256: str) -> bytes:
        """Read an artefact's verified bytes, or raise CorruptArtefact."""
        try:
            content = self.path(key).read_bytes()
        except (FileNotFoundError, IsADirectoryError, ValueError):  # missing, or of a key that is none
            raise CorruptArtefact(key) from None
        except OSError as error:
            raise UserError(f"{self.path(key)}: cannot be read: {error.strerror}") from None
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

    def stamps(self, keys: Iterable[str]) -> dict[str, tuple[int, int, int]]:
        """What shows whether the file of an artefact was written again; one that is missing has nothing."""
        found = {}
        for key in keys:
            with suppress(FileNotFoundError):
                status = self.path(key).stat()
                found[key] = (status.st_size, status.st_mtime_ns, status.st_ino)
        return found

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
