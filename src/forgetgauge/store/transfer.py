"""A run as one file: `export` packs run.json, the ledger and the artefacts into a tar, `import` unpacks it elsewhere.

Its last entry is the SHA-256 of every byte before it.

Import trusts nothing: only names we would have written are taken, only regular files, and every artefact must match
the digest in the ledger that came with it, and the whole file its own.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.files import parse_json, written_whole
from forgetgauge.store.ledger import line_of, replay
from forgetgauge.store.objects import KEY, CorruptArtefact
from forgetgauge.store.runfolder import RUN_FORMAT, RunFolder

RUN, LEDGER, RESULT, SEAL, OBJECT_SUFFIX = "run.json", "ledger.jsonl", "result.json", "sha256", ".safetensors"
LARGEST_TEXT = 64 * 2**20


def export_run(folder: RunFolder, target: Path, heavy: Callable[[str], bool] | None = None) -> int:
    """Pack a run; artefacts for which `heavy(key)` is true are left out. Returns the number of artefacts packed."""
    folder.read_run()
    state = folder.open_ledger().state
    packed = 0
    try:
        with written_whole(target) as raw, tarfile.open(fileobj=raw, mode="w") as tar:
            _add(tar, RUN, folder.run_file.read_bytes())
            if folder.result.exists():
                _add(tar, RESULT, folder.result.read_bytes())
            events: list[dict[str, object]] = [{"event": "stacks", "stacks": sorted(set(state.stack_of.values()))}]
            for key, done in sorted(state.done.items()):
                left_out = done.dropped or (heavy is not None and heavy(key))
                if not left_out:
                    _add(tar, key + OBJECT_SUFFIX, folder.objects.read_bytes(key, done.receipt.sha256))
                    packed += 1
                job = {"key": key, "sha256": done.receipt.sha256, "bytes": done.receipt.n_bytes}
                made_with = dict(done.made_with)
                events.append({"event": "done", "made_with": made_with, "jobs": [{**job, "seconds": done.seconds}]})
                if left_out:
                    events.append({"event": "dropped", "keys": [key]})
            events += [{"event": "failed", "key": key, "error": error} for key, error in sorted(state.failed.items())]
            lines, check = [], b""
            for event in events:
                line, check = line_of(event, check)
                lines.append(line)
            _add(tar, LEDGER, b"".join(lines))
            raw.flush()
            _add(tar, SEAL, _digest(Path(raw.name), tar.offset))
    except CorruptArtefact as error:
        raise UserError(f"{folder.path}: artefact {error.key[:12]} is damaged; run the command again first") from None
    return packed


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def import_run(source: Path, folder: RunFolder) -> int:
    """Unpack a run into a folder, new or not; what is already there stays. Returns the number of artefacts taken."""
    try:
        with tarfile.open(source, "r:") as tar:
            for entry in tar:
                _refuse_odd(source, entry)
            _refuse_changed(source, tar)
            with folder.locked():
                return _take(tar, source, folder)
    except FileNotFoundError:
        raise UserError(f"{source}: no such file") from None
    except (tarfile.TarError, EOFError, IsADirectoryError) as error:
        raise UserError(f"{source}: not a run exported by forgetgauge: {error}") from None
    except OSError as error:
        raise UserError(f"{source}: cannot be read: {error.strerror}") from None


def _refuse_odd(source: Path, entry: tarfile.TarInfo) -> None:
    is_object = entry.name.endswith(OBJECT_SUFFIX) and KEY.fullmatch(entry.name.removesuffix(OBJECT_SUFFIX))
    if (
        entry.type != tarfile.REGTYPE
        or entry.issparse()
        or not (is_object or entry.name in (RUN, LEDGER, RESULT, SEAL))
    ):
        raise UserError(f"{source}: refused: '{entry.name}' is nothing an export holds")
    if entry.size > source.stat().st_size:
        raise UserError(f"{source}: refused: '{entry.name}' claims to be larger than the whole file")
    if not is_object and entry.size > LARGEST_TEXT:
        raise UserError(f"{source}: refused: '{entry.name}' is larger than {LARGEST_TEXT // 2**20} MiB")


def _refuse_changed(source: Path, tar: tarfile.TarFile) -> None:
    entries = tar.getmembers()
    if not {RUN, LEDGER} <= {entry.name for entry in entries}:
        raise UserError(f"{source}: not a run exported by forgetgauge: {RUN} or {LEDGER} is missing")
    last = entries[-1]
    digest = _digest(source, last.offset)
    expected = _entry(SEAL, digest)
    with source.open("rb") as file:
        file.seek(last.offset)
        rest = file.read(2 * tarfile.RECORDSIZE + 1)
    if rest[: len(expected)] != expected or len(rest) > 2 * tarfile.RECORDSIZE or any(rest[len(expected) :]):
        raise UserError(f"{source}: was changed after it was written: its bytes do not fit the SHA-256 at its end")


def _entry(name: str, content: bytes) -> bytes:
    """The bytes of an entry of a tar file."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    return entry.tobuf(tarfile.DEFAULT_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def _digest(path: Path, n_bytes: int) -> bytes:
    """SHA-256 of the first bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while n_bytes > 0:
            chunk = file.read(min(n_bytes, 2**20))
            if not chunk:
                break
            digest.update(chunk)
            n_bytes -= len(chunk)
    return digest.hexdigest().encode()


def _take(tar: tarfile.TarFile, source: Path, folder: RunFolder) -> int:
    names = set(tar.getnames())
    run = _read(tar, RUN)
    try:
        run_format = parse_json(run)["format"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{source}: {RUN} is not valid") from None
    if run_format != RUN_FORMAT:
        raise UserError(f"{source}: format {run_format!r}, but this version reads {RUN_FORMAT}")
    theirs, *_ = replay(_read(tar, LEDGER), source)
    ledger = folder.open_ledger()
    taken = 0
    ledger.record_stacks(
        [s for s in sorted(set(theirs.stack_of.values())) if not any(k in ledger.state.stack_of for k in s)]
    )
    for key, done in theirs.done.items():
        if ledger.state.is_available(key) or (key in ledger.state.done and done.dropped):
            continue
        if not done.dropped:
            if key + OBJECT_SUFFIX not in names:
                raise UserError(f"{source}: artefact {key[:12]} is missing")
            if folder.objects.write_bytes(key, _read(tar, key + OBJECT_SUFFIX)) != done.receipt:
                folder.objects.drop(key)
                raise UserError(f"{source}: artefact {key[:12]} is damaged")
            taken += 1
        ledger.record_done({key: done.receipt}, done.seconds, done.made_with)
        if done.dropped:
            ledger.record_dropped([key])
    for key, error in theirs.failed.items():
        if key not in ledger.state.done and key not in ledger.state.failed:
            ledger.record_failed(key, error)
    if not folder.run_file.exists():
        folder.write_text(folder.run_file, run)
        if RESULT in names:
            folder.write_text(folder.result, _read(tar, RESULT))
    return taken


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None  # only regular files came this far
    return member.read()
