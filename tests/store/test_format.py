"""A run folder of format 3, written by hand: what another version of the same format wrote must be read."""

from __future__ import annotations

import errno
import hashlib
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from forgetgauge.errors import UserError
from forgetgauge.store.objects import ObjectStore, decode
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import import_run

KEYS = [character * 64 for character in "abc"]


def test_a_folder_of_format_3_is_read(tmp_path):
    text = '{\n "format": 3,\n "sha256": "%s",\n "games": []\n}\n'
    (tmp_path / "run.json").write_text(text % hashlib.sha256((text % "").encode()).hexdigest())
    artefact = bytes.fromhex("3c00000000000000") + b'{"__metadata__":{"facts":"{\\"kind\\":\\"signals\\"}"}}'.ljust(60)
    path = tmp_path / "objects" / "aa" / f"{KEYS[0]}.safetensors"
    path.parent.mkdir(parents=True)
    path.write_bytes(artefact)
    digest = hashlib.sha256(artefact).hexdigest()
    job = {"key": KEYS[0], "sha256": digest, "bytes": len(artefact), "seconds": 1.5}
    events = [
        {"event": "stacks", "stacks": [KEYS[:2]]},
        {"event": "done", "made_with": {"numpy": "2.0"}, "jobs": [job]},
        {"event": "failed", "key": KEYS[2], "error": "ValueError: no"},
    ]
    lines, check = [], ""
    for event in events:
        body = json.dumps(event, separators=(",", ":"))[:-1]
        check = hashlib.sha256((check + body).encode()).hexdigest()[:16]
        lines.append(f'{body},"check":"{check}"}}\n')
    (tmp_path / "ledger.jsonl").write_text("".join(lines))

    folder = RunFolder(tmp_path)
    assert folder.read_run()["games"] == []
    state = folder.open_ledger().state
    assert (state.done[KEYS[0]].receipt.sha256, state.done[KEYS[0]].seconds) == (digest, 1.5)
    assert (state.stack_of[KEYS[1]], state.failed) == (tuple(KEYS[:2]), {KEYS[2]: "ValueError: no"})
    assert folder.objects.read(KEYS[0], digest).facts == {"kind": "signals"}


def test_artefacts_that_share_a_folder_and_one_that_is_written_again(tmp_path):
    store = ObjectStore(tmp_path)
    keys = ["ab" * 32, "ab" + "c" * 62]
    receipts = [store.write(key, {"x": np.arange(3)}, {"key": key}) for key in (*keys, keys[0])]
    assert receipts[0] == receipts[2]
    assert store.is_sound(keys[0], receipts[1].sha256) is False
    assert all(store.is_sound(key, receipt.sha256) for key, receipt in zip(keys, receipts, strict=False))


def test_half_files_that_another_process_sweeps_up_first_are_no_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [self / "ab" / "swept-up.part"])
    ObjectStore(tmp_path).sweep_up()


def test_facts_that_are_no_table_are_no_artefact():
    with pytest.raises(ValueError, match="its facts are no table"):
        decode(save({"x": np.arange(3)}, metadata={"facts": "[1]"}))


def test_a_disk_that_cannot_be_read_is_one_line(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", broken)
    with pytest.raises(UserError, match="cannot be read: Input/output error"):
        ObjectStore(tmp_path).read_bytes(KEYS[0], "0" * 64)
    monkeypatch.setattr(tarfile, "open", broken)
    with pytest.raises(UserError, match="cannot be read: Input/output error"):
        import_run(tmp_path / "x.tar", RunFolder(tmp_path / "run"))
