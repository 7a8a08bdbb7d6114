"""Whether a known data set's files are the published ones, as far as `files` knows them."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable
from pathlib import Path

from forgetgauge.data.files import File, KnownSet
from forgetgauge.data.folders import path_of, wrong_size
from forgetgauge.errors import UserError

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
