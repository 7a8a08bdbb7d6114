from __future__ import annotations

import errno
import io
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.errors import DiskFull, UserError
from forgetgauge.files import write_whole
from forgetgauge.store.objects import CorruptArtefact, ObjectStore

KEY = "ab" * 32


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


def test_what_is_written_can_be_read_and_dropped(store):
    receipt = store.write(KEY, {"a": np.arange(3)}, {"fact": 1})
    assert store.is_sound(KEY, receipt.sha256)
    assert store.read(KEY, receipt.sha256).facts == {"fact": 1}
    assert store.n_bytes() == receipt.n_bytes
    store.drop(KEY)
    store.drop(KEY)
    with pytest.raises(CorruptArtefact):
        store.read(KEY, receipt.sha256)


def test_every_single_flipped_bit_is_noticed(store):
    receipt = store.write(KEY, {"a": np.arange(3, dtype=np.int8)}, {})
    content = bytearray(store.path(KEY).read_bytes())
    for place in range(len(content)):
        content[place] ^= 1
        store.path(KEY).write_bytes(bytes(content))
        assert not store.is_sound(KEY, receipt.sha256)
        content[place] ^= 1


def test_a_key_that_is_no_digest_is_refused(store):
    for key in ("../../etc/passwd", "AB" * 32, "ab" * 31, ""):
        with pytest.raises(ValueError, match="not a job key"):
            store.path(key)


def test_a_full_disk_is_one_line_and_leaves_no_half_file(store, monkeypatch):
    class Full(io.FileIO):
        def write(self, content) -> int:
            super().write(bytes(content)[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda self, mode: Full(str(self), mode))
    with pytest.raises(DiskFull, match="the disk is full"):
        store.write(KEY, {"a": np.arange(3)}, {})
    assert list(store.folder.glob("*/*")) == []


def test_another_error_of_the_disk_is_one_line_and_not_called_a_full_disk(store, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("forgetgauge.files.os.replace", broken)
    with pytest.raises(UserError, match=r"safetensors: cannot be written: Input/output error$") as told:
        store.write(KEY, {}, {})
    assert not isinstance(told.value, DiskFull)
    assert list(store.folder.glob("*/*")) == []


def test_bytes_that_are_no_artefact_are_a_corrupt_one_whatever_their_digest(store):
    for content in (b"", b"x", b"\xff" * 8, b"\x02" + bytes(7) + b"{}", b"\x02" + bytes(7) + b"[]", bytes(100)):
        receipt = store.write_bytes(KEY, content)
        with pytest.raises(CorruptArtefact):
            store.read(KEY, receipt.sha256)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_whole(target, b"old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("forgetgauge.files.os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert target.read_bytes() == b"old"


def test_half_files_of_a_killed_process_are_swept_up(store):
    receipt = store.write(KEY, {}, {})
    half = store.path(KEY).with_name(KEY + ".safetensors.123.part")
    half.write_bytes(b"half")
    store.sweep_up()
    assert not half.exists()
    assert store.is_sound(KEY, receipt.sha256)
