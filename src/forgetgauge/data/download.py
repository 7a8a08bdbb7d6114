"""Downloads that go on where they broke off, and that leave nothing under a file's name but the published bytes.

What arrives is kept in a `.part` file beside the wanted one, a broken download asks the server for the rest, and the
file gets its name when its checksum is right. Archives are not trusted: the names written are ours, and links are
refused.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import math
import os
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from forgetgauge.data.files import Download, File, KnownSet
from forgetgauge.data.folders import VARIABLE, damage, find
from forgetgauge.errors import DiskFull, UserError

TIMEOUT_S = 30
CHUNK_BYTES = 2**18
MIB = 2**20
NO_SUCH_RANGE = 416  # HTTP: the server's file ends before what was asked for


class Broken(Exception):
    """The connection ended early; what arrived is kept."""


Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes so far and the bytes in all."""


def line_on_terminal(name: str, n_done: int, n_bytes: int) -> None:
    """`cifar-10-binary.tar.gz  34 %  55.1 of 162.2 MiB`, on a line that rewrites itself; nothing off a terminal."""
    if sys.stderr.isatty():
        line = f"{name} {100 * n_done // n_bytes:3d} %  {n_done / MIB:.1f} of {n_bytes / MIB:.1f} MiB"
        print(f"\r{line}", end="\n" if n_done >= n_bytes else "", file=sys.stderr, flush=True)


def fetch(known: KnownSet, root: Path, progress: Progress = line_on_terminal) -> Path:
    """The folder under `root` with all files of the set; what is missing or damaged is downloaded."""
    found, folder = find(known, root), root / known.folders[0]
    if found and not damage(known, found, known.files):
        return found
    try:
        for download in known.downloads:
            served = [file for file in known.files if download.name in (file.name, f"{file.name}.gz")]
            if served:
                if damage(known, folder, served):
                    (folder / served[0].name).unlink(missing_ok=True)  # damaged, and read before a compressed one
                    retrieve(download, folder / download.name, progress)
            elif damage(known, folder, known.files):
                archive = root / download.name
                retrieve(download, archive, progress)
                unpack(archive, known.files, folder)
                archive.unlink()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFull(f"{root}: the disk is full; the same command continues when there is room") from None
        raise UserError(
            f"{error.filename or root}: cannot be written: {error.strerror or error}; set {VARIABLE} to another folder"
        ) from None
    return folder


def retrieve(download: Download, path: Path, progress: Progress) -> None:
    """`path` with the published bytes, or a UserError and `path` as it was."""
    if path.is_file() and _sha256(path) == download.sha256:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    resumed = Resumed(path.with_name(f"{path.name}.part"), download.n_bytes, progress)
    try:
        resumed.finish(download.url)
    except Broken as error:
        raise UserError(f"{download.url}: {error}; the same command continues") from None
    if _sha256(resumed.part) != download.sha256:
        resumed.part.unlink()
        raise UserError(
            f"{download.url}: what arrived is not the published file ({resumed.n_done:,} bytes, expected "
            f"{download.n_bytes:,} with SHA-256 {download.sha256[:12]}…): it was thrown away; try again later"
        )
    os.replace(resumed.part, path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Resumed:
    """A download that begins where the part that is there ends."""

    def __init__(self, part: Path, n_bytes: int, progress: Progress) -> None:
        self.part, self.n_bytes, self.progress = part, n_bytes, progress
        self.n_done = part.stat().st_size if part.exists() else 0

    def finish(self, url: str) -> None:
        """Bring the part to its end; whether it is the right one is not asked here."""
        if self.n_done >= self.n_bytes:
            return
        try:
            self._receive(url)
        except urllib.error.HTTPError as error:
            error.close()
            raise Broken(f"the server answers {error.code} {error.reason}") from None
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            raise Broken(self._how_far(error)) from None

    def _receive(self, url: str) -> None:
        headers = {"User-Agent": "forgetgauge", "Accept-Encoding": "identity"}
        if self.n_done:
            headers["Range"] = f"bytes={self.n_done}-"
        try:
            asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - of data/files.py, all http or https
            answer = urllib.request.urlopen(asked, timeout=TIMEOUT_S)  # noqa: S310 - as above
        except urllib.error.HTTPError as error:
            if error.code != NO_SUCH_RANGE:
                raise
            error.close()
            self.part.unlink()
            self.n_done = 0
            return self._receive(url)
        with answer:
            goes_on = answer.headers.get("Content-Range", "").startswith(f"bytes {self.n_done}-")
            if not goes_on:  # the server knows no ranges and sends all of it
                self.n_done = 0
            promised = self.n_done + int(answer.headers.get("Content-Length", self.n_bytes - self.n_done))
            with self.part.open("ab" if goes_on else "wb") as part:
                while self.n_done <= self.n_bytes and (chunk := answer.read1(CHUNK_BYTES)):
                    part.write(chunk)
                    self.n_done += len(chunk)
                    self.progress(self.part.stem, min(self.n_done, self.n_bytes), self.n_bytes)
            if self.n_done < min(promised, self.n_bytes):
                raise ConnectionError("the connection broke")
        return None

    def _how_far(self, error: Exception) -> str:
        reason = " ".join(str(getattr(error, "reason", error)).split())
        if not self.n_done:
            return f"cannot be reached: {reason or type(error).__name__}"
        return f"{reason or type(error).__name__} after {self.n_done / MIB:.1f} of {self.n_bytes / MIB:.1f} MiB"


# -- archives ----------------------------------------------------------------------------------------------------------


def unpack(archive: Path, files: Sequence[File], folder: Path) -> None:
    """Write each of `files` into `folder`, taken from the member with that last name, wherever in the archive it is.

    No path of the archive's is ever written to, other members are left alone, and a member that is a link, too long or
    of the wrong content is refused before it gets its name.
    """
    wanted = {file.name: file for file in files}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _opened(archive) as members:
            for name, source in members:
                file = wanted.pop(PurePosixPath(name).name, None)
                if file is None:
                    continue
                if source is None:
                    raise UserError(f"{archive}: {name} is not a plain file")
                with source:
                    _write(source, file, folder / file.name, archive)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise UserError(f"{archive}: not a readable archive: {str(error).splitlines()[0]}") from None
    if wanted:
        raise UserError(f"{archive}: holds no {', '.join(wanted)}")


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[tuple[str, IO[bytes] | None]]]:
    """Pairs of a member's name and its content, which is None for links, devices and folders."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            yield ((member.filename, zipped.open(member)) for member in zipped.infolist() if not member.is_dir())
    else:
        with tarfile.open(archive) as tar:
            yield ((member.name, tar.extractfile(member) if member.isreg() else None) for member in tar)


def _write(source: IO[bytes], file: File, path: Path, archive: Path) -> None:
    part, digest, n_bytes = path.with_name(f"{path.name}.part"), hashlib.sha256(), 0
    limit = math.inf if file.n_bytes is None else file.n_bytes
    with part.open("wb") as target:
        while n_bytes <= limit and (chunk := source.read(CHUNK_BYTES)):
            target.write(chunk)
            digest.update(chunk)
            n_bytes += len(chunk)
    if file.n_bytes not in (None, n_bytes) or file.sha256 not in (None, digest.hexdigest()):
        part.unlink()
        raise UserError(f"{archive}: {file.name} in it is not the published file")
    os.replace(part, path)
