"""Tiny files in the official layouts, and the descriptions that go with them."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from forgetgauge.data.files import CIFAR10, CIFAR100, FASHION_MNIST, LUME, MNIST, SST5, Download, File, KnownSet

N_RECORDS = 3


def images(n=N_RECORDS, shape=(3, 32, 32), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape)).astype(np.uint8)


def records(label_columns, pixels):
    columns = [np.asarray(column, np.uint8)[:, None] for column in label_columns]
    return np.concatenate([*columns, pixels.reshape(len(pixels), -1)], axis=1).tobytes()


def idx(array):
    array = np.asarray(array, np.uint8)
    return struct.pack(f">I{array.ndim}I", 0x800 | array.ndim, *array.shape) + array.tobytes()


def tar_of(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return buffer.getvalue()


def contents(known: KnownSet) -> dict[str, bytes]:
    """Name -> content of a tiny version of each file of a known set."""
    if known.name == "cifar10":
        return {file.name: records([[7, 0, 9]], images(seed=i)) for i, file in enumerate(known.files)}
    if known.name == "cifar100":
        return {file.name: records([[3, 19, 0], [99, 0, 42]], images(seed=i)) for i, file in enumerate(known.files)}
    if known.name == "sst5":
        return {file.name: b"(3 (2 It) (4 (2 works) (2 .)))\n(0 (1 Not) (2 so))\n" for file in known.files}
    if known.name == "lume":
        row = b'{"id": "%dqa0", "input": "Who?", "output": "Ada.", "task": "Task2"}\n'
        return {file.name: row % i for i, file in enumerate(known.files)}
    made = {}
    for part, n in (("train", 5), ("t10k", 2)):
        made[f"{part}-images-idx3-ubyte"] = idx(images(n, (28, 28), seed=n))
        made[f"{part}-labels-idx1-ubyte"] = idx(np.arange(n) + 9 - n)
    return made


def describe(known: KnownSet, url: str = "http://127.0.0.1:1") -> tuple[KnownSet, dict[str, bytes]]:
    """(a known set whose files are the tiny ones, name -> content of what its server has)."""
    made = contents(known)
    files = tuple(
        File(name, n_lines=content.count(b"\n"))
        if known.name == "sst5"
        else File(name, len(content), hashlib.sha256(content).hexdigest(), packable="idx" in name)
        for name, content in made.items()
    )
    if known.name.endswith("mnist"):
        served = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in made.items()}
    elif known.name == "lume":
        served = made
    else:
        pack = zip_of if known.downloads[0].name.endswith(".zip") else tar_of
        inside = {f"folder/{name}": content for name, content in made.items()}
        served = {known.downloads[0].name: pack({"folder/readme.html": b"<p>", **inside})}
    downloads = tuple(
        Download(f"{url}/{name}", len(content), hashlib.sha256(content).hexdigest()) for name, content in served.items()
    )
    return replace(known, files=files, downloads=downloads, n_train=1, n_test=1), served


ALL = (CIFAR10, CIFAR100, MNIST, FASHION_MNIST, SST5, LUME)
