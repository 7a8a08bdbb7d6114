"""A run folder: what was asked for, the ledger, the artefacts, the result; one process at a time may change it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.files import is_sealed, read_json, with_seal, write_into
from forgetgauge.store.ledger import Ledger
from forgetgauge.store.objects import ObjectStore

try:
    import fcntl
except ImportError:
    raise UserError("forgetgauge runs on Linux and macOS; on Windows it runs inside WSL") from None

LEDGER = "ledger.jsonl"
RUN_FORMAT = 3
"""Raised when what is inside a run folder changes: one of another format is neither continued nor read."""


class RunFolder:
    """Names of the things in a run folder, and how they are read and written."""

    def __init__(self, path: Path, store: Path | None = None) -> None:
        self.path = path
        self.store = store or path
        """Where artefacts and ledger are: the folder itself, or the one whose store it shares."""
        self.objects = ObjectStore(self.store / "objects")
        self.result = path / "result.json"
        self.report = path / "report.html"
        self.failures = path / "failures"
        self.run_file = path / "run.json"

    @staticmethod
    def at(path: Path) -> RunFolder:
        """A folder that is there; one inside a run folder, with a run but no ledger of its own, shares its store."""
        shares = (path / "run.json").is_file() and not (path / LEDGER).exists() and (path.parent / LEDGER).is_file()
        return RunFolder(path, path.parent if shares else None)

    def part(self, name: str) -> RunFolder:
        """A run of its own inside this folder, which finds what this one has made and the other way round."""
        return RunFolder(self.path / name, self.store)

    def create(self) -> None:
        """Make the folder, or say in one line why it cannot be."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot make this folder: {error.strerror}") from None
        if not os.access(self.path, os.W_OK):
            raise UserError(f"{self.path}: this folder is not writable")

    def check(self) -> None:
        """Say in one line why the folder could not be made or written, without making it."""
        nearest = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise UserError(f"{self.path}: cannot make this folder: {nearest} is a file")
        if not os.access(nearest, os.W_OK):
            raise UserError(f"{self.path}: {nearest} is not writable")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder, made where it is not there: a second run into it is refused.

        The lock goes with the process, however it dies. A folder that was made here and in which nothing was written
        before an error goes too.
        """
        made = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self.create()
        try:
            lock = (self.store / "lock").open("w")
        except OSError as error:
            raise UserError(f"{self.path}: this folder is not writable: {error.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{self.path}: another forgetgauge run is using this folder") from None
            try:
                yield
            except BaseException:
                with suppress(OSError):  # it is gone already, or somebody else put something there
                    if self.path in made and {path.name for path in self.path.iterdir()} <= {"lock"}:
                        (self.store / "lock").unlink()
                        for path in made:
                            path.rmdir()
                raise

    def is_in_use(self) -> bool:
        """Whether a process holds the folder now, on any machine that sees it; nothing is made or changed."""
        try:
            lock = (self.store / "lock").open()
        except OSError:
            return False
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def changed_at(self) -> float | None:
        """When the last job was written down, in seconds since 1970; None where none was."""
        try:
            return (self.store / LEDGER).stat().st_mtime
        except OSError:
            return None

    def open_ledger(self) -> Ledger:
        """The ledger of the folder, replayed from its file."""
        return Ledger(self.store / LEDGER)

    def write_run(self, run: dict[str, Any]) -> None:
        """Keep what was asked for, every choice resolved; in its own order, which settles ties between adversaries."""
        text = json.dumps({"format": RUN_FORMAT, "sha256": "", **run}, indent=1, allow_nan=False) + "\n"
        self.write_text(self.run_file, with_seal(text))

    def read_run(self) -> dict[str, Any]:
        """What was asked for, as `write_run` kept it."""
        if not self.run_file.exists():
            is_evidence = (self.path / "evidence.json").exists()
            hint = "; it has evidence of one model, which is handed on as it is" if is_evidence else ""
            raise UserError(f"{self.path}: not a run folder (it has no run.json){hint}")
        run = read_json(self.run_file)
        run_format = run.get("format") if isinstance(run, dict) else None
        if run_format != RUN_FORMAT:
            raise UserError(
                f"{self.run_file}: format {run_format!r}, but this version of forgetgauge reads {RUN_FORMAT}; "
                "name another folder, or use the version that made this one"
            )
        if not is_sealed(self.run_file.read_bytes()):
            raise UserError(
                f"{self.run_file}: was changed after it was written: its bytes do not fit the SHA-256 that it names"
            )
        return dict(run)

    def sweep_up(self) -> None:
        """Delete half-written files that a killed process left, wherever they are."""
        for path in (*self.path.glob("*.part"), *self.failures.glob("*.part")):
            path.unlink(missing_ok=True)
        self.objects.sweep_up()

    def drop_checkpoints(self) -> None:
        """Delete the states of trainings that nobody will go on with: all is done, or failed for good."""
        shutil.rmtree(self.objects.checkpoints, ignore_errors=True)

    def write_text(self, path: Path, text: str | bytes) -> None:
        """Write a file of the folder, whole or not at all."""
        write_into(path, text)
