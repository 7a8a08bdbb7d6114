"""Runs as a user starts them, and what must be left of one, for `benchmarks/chaos.py`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetgauge.results.record import without_timings
from forgetgauge.store.runfolder import RunFolder

SMALL = """
adversaries = ["correctness", "confidence", "entropy"]
[data]
name = "digits"
fraction = 0.2
[game]
alpha = 0.5
pairs = 2
[learner]
epochs = 1
batch_size = 64
[shadows]
count = 2
[unlearners.retrain]
[unlearners.none]
[unlearners.neg-grad]
"""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def row(*cells: object) -> None:
    """A line of a table, shown at once."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*titles: str) -> None:
    """The first two lines of a table."""
    row(*titles)
    print("|" + "---|" * len(titles), flush=True)


def started(file: Path, out: Path, executor: str, *further: str, **environment: str) -> subprocess.Popen[str]:
    """A run as a user starts it, in a process group of its own, its words kept in files beside the folder."""
    command = [sys.executable, "-m", "forgetgauge", "run", str(file), "--out", str(out), "--executor", executor]
    said = {name: out.with_suffix(f".{name}").open("w") for name in ("out", "err")}
    return subprocess.Popen(
        [*command, "--quiet", *further],
        stdin=subprocess.DEVNULL,
        stdout=said["out"],
        stderr=said["err"],
        start_new_session=True,
        env={**os.environ, **ONE_THREAD, **environment},
        text=True,
    )


@dataclass(frozen=True)
class Remains:
    """All of a finished run that must not depend on what happened on the way."""

    result: Any
    artefacts: dict[str, str]

    @staticmethod
    def of(folder: Path) -> Remains:
        """Result without timings, and the digest of every artefact by its name."""
        files = sorted((folder / "objects").rglob("*.safetensors"))
        digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        return Remains(without_timings(json.loads((folder / "result.json").read_text())), digests)

    def unlike(self, calm: Remains) -> list[str]:
        """In what it differs from a run that nobody disturbed."""
        names = sorted(self.artefacts.keys() | calm.artefacts.keys())
        found = [(name, self.artefacts.get(name), calm.artefacts.get(name)) for name in names]
        other = [
            f"artefact {name[:8]} {'is missing' if ours is None else 'is left' if theirs is None else 'differs'}"
            for name, ours, theirs in found
            if ours != theirs
        ]
        return other + (["another result.json"] if self.result != calm.result else [])


def broken_in(folder: Path) -> list[str]:
    """What a run folder must not hold: a job both done and failed, and files that were being written."""
    state = RunFolder(folder).open_ledger().state
    both = [f"{key[:8]} is done and failed" for key in state.failed if key in state.done]
    return both + [f"{path} is left" for path in folder.rglob("*.part")]
