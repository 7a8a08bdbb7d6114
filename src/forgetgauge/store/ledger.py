"""The ledger: an append-only journal of what was decided and what was finished, one JSON object a line.

The state of a run is the replay of its ledger. A stack of jobs is finished by one line, so it is finished whole or not
at all; a last line torn by a kill is cut off when the ledger is opened. Every line ends with a check over itself and
the check of the line before, so that a line that was changed, taken out or moved is found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.files import parse_json, writing
from forgetgauge.store.objects import Receipt


@dataclass(frozen=True)
class Done:
    """A finished job, as the ledger has it."""

    receipt: Receipt
    seconds: float
    """Its share of the time its assignment took."""
    dropped: bool = False
    """Whether its artefact was deleted because nothing needed it any more."""
    made_with: Mapping[str, str] = field(default_factory=dict)
    """Versions of what made it; in no key, so that a run can go on on another machine."""


@dataclass
class LedgerState:
    """What all lines of the ledger say together."""

    done: dict[str, Done] = field(default_factory=dict)
    stack_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Job key -> all members of the stack that the plan put it into."""
    failed: dict[str, str] = field(default_factory=dict)
    """Job key -> one line on why, for jobs that did not succeed since."""
    begun: dict[str, int] = field(default_factory=dict)
    """Job key -> how often it was begun, by a process that then died, since it last succeeded or failed."""
    n_runs: dict[str, int] = field(default_factory=dict)
    """Job key -> how often it was finished: 1, unless its artefact was damaged, or dropped and needed again."""

    def apply(self, event: dict[str, Any]) -> None:
        """Take one line of the ledger into account."""
        match event["event"]:
            case "stacks":
                for members in event["stacks"]:
                    self.stack_of.update(dict.fromkeys(_texts(members), tuple(members)))
            case "done":
                made_with = event.get("made_with", {})
                _texts([*made_with, *made_with.values()])
                for job in event["jobs"]:
                    _texts([job["key"], job["sha256"]])
                    receipt = Receipt(job["sha256"], _bytes(job["bytes"]))
                    seconds, before = _seconds(job["seconds"]), self.done.get(job["key"])
                    if before is not None and before.dropped:  # made again for somebody else: a result has the first
                        seconds = before.seconds
                    self.done[job["key"]] = Done(receipt, seconds, made_with=made_with)
                    self.failed.pop(job["key"], None)
                    self.begun.pop(job["key"], None)
                    self.n_runs[job["key"]] = self.n_runs.get(job["key"], 0) + 1
            case "dropped":
                for key in _texts(event["keys"]):
                    self.done[key] = replace(self.done[key], dropped=True)
            case "lost":
                self.done.pop(event["key"], None)
            case "failed":
                if event["key"] not in self.done:  # whatever failed beside it, its artefact is there
                    self.failed[event["key"]], _ = _texts([event["error"], event["key"]])
                self.begun.pop(event["key"], None)
            case "begun":
                for key in _texts(event["keys"]):
                    self.begun[key] = self.begun.get(key, 0) + 1
            case "left":
                for key in event["keys"]:
                    self.begun.pop(key, None)

    def is_available(self, key: str) -> bool:
        """Finished, and its artefact was not dropped."""
        done = self.done.get(key)
        return done is not None and not done.dropped


LONGEST_S, MOST_BYTES = 1e9, 2**62
"""Thirty years, and more bytes than any disk has: larger numbers are no measurements."""


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("something that is no text stands where a key or a message should")
    return values


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_S:
        raise ValueError(f"{value!r} is no number of seconds")
    return float(value)


def _bytes(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_BYTES:
        raise ValueError(f"{value!r} is no number of bytes")
    return value


_CHECK = b',"check":"'


def line_of(event: Mapping[str, Any], before: bytes) -> tuple[bytes, bytes]:
    """(the line of an event, its check), which rests on the check of the line before."""
    body = json.dumps(event, separators=(",", ":")).encode()[:-1]
    check = _check(body, before)
    return body + _CHECK + check + b'"}\n', check


def _check(body: bytes, before: bytes) -> bytes:
    return hashlib.sha256(before + body).hexdigest()[:16].encode()


def replay(content: bytes, source: Path) -> tuple[LedgerState, int, bytes]:
    """(state, length of the whole lines, the last check): what a journal says; bytes after the last whole line are not
    looked at."""
    state, check = LedgerState(), b""
    sound = content.rfind(b"\n") + 1
    for number, line in enumerate(content[:sound].split(b"\n")[:-1], 1):
        try:
            body, _, stated = line.rpartition(_CHECK)
            check = _check(body, check)
            if stated != check + b'"}':
                raise ValueError("it, or the line before it, was changed")
            state.apply(parse_json(body + b"}"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{source}: line {number} is damaged ({error}); restore or delete the file") from None
    return state, sound, check


class Ledger:
    """The journal file and its replayed state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = path.read_bytes() if path.exists() else b""
        self.state, self._sound, self._check = replay(content, path)
        self.torn = len(content) > self._sound
        """Whether a line was being written when the process died."""

    def record_stacks(self, stacks: Sequence[Sequence[str]]) -> None:
        """Fix which jobs train together, before any of them begins."""
        if stacks:
            self._append({"event": "stacks", "stacks": [list(members) for members in stacks]})

    def record_done(
        self, receipts: dict[str, Receipt], seconds: float, made_with: Mapping[str, str] | None = None
    ) -> None:
        """Finish the jobs of an assignment, all by one line."""
        share = round(seconds / max(len(receipts), 1), 6)
        self._append(
            {
                "event": "done",
                "made_with": dict(made_with or {}),
                "jobs": [
                    {"key": key, "sha256": r.sha256, "bytes": r.n_bytes, "seconds": share}
                    for key, r in receipts.items()
                ],
            }
        )

    def record_dropped(self, keys: Sequence[str]) -> None:
        """The artefacts of these jobs are about to be deleted."""
        self._append({"event": "dropped", "keys": list(keys)})

    def record_lost(self, key: str) -> None:
        """The artefact of this job is missing or damaged: the job must be done again."""
        self._append({"event": "lost", "key": key})

    def record_failed(self, key: str, error: str) -> None:
        """The job raised, and raised again."""
        self._append({"event": "failed", "key": key, "error": error})

    def record_begun(self, keys: Sequence[str]) -> None:
        """These jobs are about to be done by the very process that keeps the ledger, which may die of them."""
        self._append({"event": "begun", "keys": list(keys)})

    def record_left(self, keys: Sequence[str]) -> None:
        """They were left, by an interruption say, not died of."""
        self._append({"event": "left", "keys": list(keys)})

    def _append(self, event: dict[str, Any]) -> None:
        line, check = line_of(event, self._check)
        self._refuse_another()
        with writing(self.path), self.path.open("ab") as journal:
            if self.torn:
                journal.truncate(self._sound)
                self.torn = False
            try:
                journal.write(line)
                journal.flush()
            except OSError:
                self.torn = True
                raise
        self._sound += len(line)
        self._check = check
        self.state.apply(event)

    def _refuse_another(self) -> None:
        """UserError where the folder was deleted or moved meanwhile, and perhaps begun anew by another run: our next
        line fits no other journal."""
        n_bytes = self.path.stat().st_size if self.path.exists() else 0
        if n_bytes < self._sound or (n_bytes > self._sound and not self.torn):
            raise UserError(f"{self.path}: was deleted, moved or changed while this run was at work, which ends here")
