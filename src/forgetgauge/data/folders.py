"""Where data sets lie on this machine, and whether their files are the published ones, as far as `files` knows them.

They are looked for under FORGETGAUGE_DATA, else in the user's cache folder, and fetched if absent.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from forgetgauge.data.files import File, KnownSet, known_set
from forgetgauge.errors import UserError

VARIABLE = "FORGETGAUGE_DATA"
_READ_ONLY: ContextVar[bool] = ContextVar("read_only", default=False)


@contextmanager
def read_only() -> Iterator[None]:
    """Inside, nothing is downloaded and nothing is written to a cache: what is not here is a UserError."""
    before = _READ_ONLY.set(True)
    try:
        yield
    finally:
        _READ_ONLY.reset(before)


def is_read_only() -> bool:
    """Whether we are inside `read_only`."""
    return _READ_ONLY.get()


def data_folder() -> Path:
    """What the variable names, else the user's cache folder for this program."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    return _user_cache() / "forgetgauge"


def _user_cache() -> Path:
    """Where programs keep what they can fetch again, by the custom of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".cache"  # a relative one is to be ignored


def locate(name: str) -> Path:
    """The folder that holds a known data set's files, which are downloaded first where they are absent."""
    known, root = known_set(name), data_folder()
    folder = find(known, root)
    if folder is None:
        from forgetgauge.data.download import fetch

        if is_read_only():
            raise UserError(f"data '{name}' is not under {root}; 'forgetgauge data get {name}' downloads it")
        try:
            return fetch(known, root)
        except UserError as error:
            raise type(error)(f"data '{name}' is not under {root}; {error}") from None
    with mendable(name):
        for file in known.files:
            path = path_of(folder, file)
            problem = None if path.suffix == ".gz" else wrong_size(path, file, path.stat().st_size)
            if problem:
                raise UserError(problem)
    return folder


def find(known: KnownSet, root: Path) -> Path | None:
    """The first of the set's folders with all its files; None where there is none."""
    folders = (root / folder for folder in known.folders)
    return next((folder for folder in folders if all(path_of(folder, file).is_file() for file in known.files)), None)


def path_of(folder: Path, file: File) -> Path:
    """The file itself or, where only that is there, its compressed form."""
    plain, packed = folder / file.name, folder / f"{file.name}.gz"
    return packed if file.packable and packed.is_file() and not plain.is_file() else plain


def wrong_size(path: Path, file: File, n_bytes: int) -> str | None:
    """What is wrong with the number of (unpacked) bytes or of lines; None where they are right, or not known."""
    if file.n_bytes not in (None, n_bytes):
        return f"{path}: {n_bytes:,} bytes instead of {file.n_bytes:,}"
    if file.n_lines is not None:
        n_lines = sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))
        if n_lines != file.n_lines:
            return f"{path}: {n_lines:,} lines instead of {file.n_lines:,}"
    return None


@contextmanager
def mendable(name: str) -> Iterator[None]:
    """What is found wrong with a known data set's files is followed by what mends it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; 'forgetgauge data get {name}' mends it") from None


# -- whether files are the published ones ------------------------------------------------------------------------------

CHUNK_BYTES = 2**20


def damage(known: KnownSet, folder: Path, files: Iterable[File]) -> str | None:
    """What is wrong with the first of these files that is not as published; None where all are."""
    published = {download.name: download.sha256 for download in known.downloads}
    return next((line for file in files if (line := _damage(folder, file, published))), None)


def _damage(folder: Path, file: File, published: dict[str, str]) -> str | None:
    path = path_of(folder, file)
    if not path.is_file():
        return f"{path}: absent"
    try:
        n_bytes, sha256 = measure(path)
    except UserError as error:
        return str(error)
    size = wrong_size(path, file, n_bytes)
    if size:
        return size
    if file.sha256 not in (None, sha256):
        return f"{path}: not the published content (SHA-256 {sha256[:12]}… instead of {str(file.sha256)[:12]}…)"
    if file.sha256 is None and path.name in published:
        packed = hashlib.sha256(path.read_bytes()).hexdigest()
        if packed != published[path.name]:
            return f"{path}: not the published file (SHA-256 {packed[:12]}… instead of {published[path.name][:12]}…)"
    return None


def measure(path: Path) -> tuple[int, str]:
    """(bytes, SHA-256) of a file's content, unpacked where it is a `.gz`."""
    digest, n_bytes = hashlib.sha256(), 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as source:
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                n_bytes += len(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: not a whole .gz file: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    return n_bytes, digest.hexdigest()
