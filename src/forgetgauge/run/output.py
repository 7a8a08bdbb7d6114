"""What code of the user's prints in a worker process: kept in a file, not printed into the table of a run."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

FILE = "output.txt"
"""In the run folder."""


class Output(io.TextIOBase):
    """A text file that is written to by several processes, each line under the job that printed it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", errors="replace")
        self._job = self._told = ""

    def about(self, job: str) -> None:
        """What is printed from now on is of this job."""
        self._job = job

    def write(self, text: str) -> int:
        """At once: the process may die of what comes next."""
        if text and self._job != self._told:
            self._told = self._job
            self._file.write(f"-- {self._job}\n")
        self._file.write(text)
        self._file.flush()
        return len(text)

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """Where programs in other languages write."""
        return self._file.fileno()

    def take_over(self) -> None:
        """From now on this is the standard output and error of the process, and of the processes that it starts."""
        for number in (1, 2):
            os.dup2(self.fileno(), number)
        sys.stdout = sys.stderr = self


def drop_if_empty(path: Path) -> None:
    """Delete the file where nobody printed anything; it is there as soon as a worker is."""
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()
