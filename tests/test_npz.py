"""Arrays from strangers: a claim is checked before anything is expanded."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pytest

from forgetgauge import npz
from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError
from forgetgauge.npz import UNREADABLE, read_array, read_arrays


def test_arrays_come_back_and_what_is_not_wanted_is_not_read(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(5), b=np.array(["x", "y"]), c=np.zeros((2, 3), np.float32))
    found = read_arrays(path)
    assert list(found) == ["a", "b", "c"]
    assert found["a"].tolist() == [0, 1, 2, 3, 4]
    assert found["c"].dtype == np.float32
    assert read_arrays(path, {"a"})["c"].shape == (0,)
    np.save(tmp_path / "a.npy", np.arange(7.0))
    assert read_array(tmp_path / "a.npy").tolist() == list(range(7))


def claiming(path, shape, stored=b""):
    """An archive whose array claims a shape that is not stored."""
    header = str({"descr": "<f8", "fortran_order": False, "shape": shape})
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + stored
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("logits.npy", raw)
    return raw


@pytest.mark.parametrize("shape", [(10**13,), (2**62, 2**62), (3,), (-1,), (10**300,)])
def test_a_claim_that_is_not_stored_is_refused_before_memory_is_taken(tmp_path, shape, call):
    raw = claiming(tmp_path / "x.npz", shape)
    (tmp_path / "x.npy").write_bytes(raw)
    with pytest.raises(UNREADABLE):
        read_arrays(tmp_path / "x.npz")
    with pytest.raises(UNREADABLE):
        read_array(tmp_path / "x.npy")
    code, _, err = call("audit", tmp_path / "x.npz")
    assert (code, err.count("\n")) == (2, 1)


def with_long_header(path, n_bytes, stored=b""):
    """An archive whose array `x` has a header of so many spaces, in version 2.0, and an array `y`."""
    header = str({"descr": "<f8", "fortran_order": False, "shape": (len(stored) // 8,)})
    np.savez(path, y=np.arange(4))
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as column,
    ):
        column.write(b"\x93NUMPY\x02\x00" + n_bytes.to_bytes(4, "little") + header.encode())
        for begun in range(len(header), n_bytes, 2**20):
            column.write(b" " * min(2**20, n_bytes - begun))
        column.write(stored)


def test_a_long_header_is_refused_before_it_is_read(tmp_path, call, monkeypatch):
    """Spaces take no room in an archive: two megabytes of it can hold a header of two gigabytes."""
    path = tmp_path / "x.npz"
    with_long_header(path, 1_000, bytes(16))
    assert read_arrays(path)["x"].tolist() == [0, 0]
    with_long_header(path, 2**24)
    with zipfile.ZipFile(path) as archive:
        (tmp_path / "x.npy").write_bytes(archive.read("x.npy"))
    read = []
    expanded = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, n=-1: read.append(expanded(self, n)) or read[-1])
    for found in (lambda: read_arrays(path), lambda: read_arrays(path, {"y"}), lambda: read_array(tmp_path / "x.npy")):
        with pytest.raises(ValueError, match=r"a header of 16,777,216 bytes, more than 10,000"):
            found()
    with pytest.raises(UserError, match=r"x or y cannot be read: a header of 16,777,216 bytes, more than 10,000"):
        load_dataset(str(path))
    code, _, err = call("audit", path)
    assert (code, err.count("\n")) == (2, 1)
    assert "a header of 16,777,216 bytes" in err
    assert max(map(len, read)) <= 10_000


def test_more_than_fits_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(1000), b=np.zeros(1000))
    monkeypatch.setattr(npz, "LARGEST", 10_000)
    with pytest.raises(ValueError, match="more than"):
        read_arrays(tmp_path / "x.npz")
    assert read_arrays(tmp_path / "x.npz", {"a"})["a"].shape == (1000,)


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", b"\x93NUMPY\x09\x00aaaa"])
def test_what_is_no_such_file_is_refused_in_one_line(tmp_path, call, content):
    (tmp_path / "w.npy").write_bytes(content)
    (tmp_path / "w.npz").write_bytes(content)
    settings = ("--set", f"game.sensitivity.file={tmp_path / 'w.npy'}")
    for command in (("audit", tmp_path / "w.npz"), ("validate", *settings)):
        code, _, err = call(*command)
        assert (code, err.count("\n")) == (2, 1), err


@pytest.mark.slow
def test_a_column_that_is_refused_is_not_expanded(tmp_path):
    """A gigabyte of zeros in a megabyte."""
    np.savez_compressed(tmp_path / "bomb.npz", pair=np.arange(4), nonsense=np.zeros(2**27))
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**30 * 3 // 4,) * 2);"
    program = f"{limit} sys.argv = ['forgetgauge', 'audit', sys.argv[1]]; from forgetgauge.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "bomb.npz")],
        capture_output=True,
        text=True,
        check=False,
        env={"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 2, done.stderr
    assert "unknown column 'nonsense'" in done.stderr
