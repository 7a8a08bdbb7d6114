"""Files out of a tar or zip archive without trusting it: the names written are ours, links are refused."""

from __future__ import annotations

import hashlib
import math
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from forgetgauge.data.files import File
from forgetgauge.errors import UserError

CHUNK_BYTES = 2**20


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
