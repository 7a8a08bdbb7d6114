from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.errors import UserError
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import SEAL, export_run, import_run

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run with light A, heavy B, and C dropped."""
    run = RunFolder(tmp_path / "run")
    run.create()
    run.write_run({"games": []})
    ledger = run.open_ledger()
    ledger.record_stacks([[B, C]])
    for key in (A, B, C):
        ledger.record_done({key: run.objects.write(key, {"x": np.arange(4)}, {"key": key})}, 1.0)
    ledger.record_dropped([C])
    run.objects.drop(C)
    return run


def tar_with(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for entry, content in entries:
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def rewritten(source: Path, target: Path, change) -> Path:
    """The tar `source` with `change(name, content)` applied to every entry; None leaves one out. Its digest fits."""
    with tarfile.open(source) as tar:
        entries = [(m.name, tar.extractfile(m).read()) for m in tar if m.name != SEAL]
    changed = [(name, change(name, content)) for name, content in entries]
    kept = [(tarfile.TarInfo(name), content) for name, content in changed if content is not None]
    tar_with(target, *kept)
    n_bytes = sum(512 + len(content) + -len(content) % 512 for _, content in kept)
    digest = hashlib.sha256(target.read_bytes()[:n_bytes]).hexdigest().encode()
    return tar_with(target, *kept, (tarfile.TarInfo(SEAL), digest))


def test_a_run_moves_with_everything_or_without_the_heavy_parts(folder, tmp_path):
    assert export_run(folder, tmp_path / "all.tar") == 2
    assert export_run(folder, tmp_path / "light.tar", heavy=lambda key: key == B) == 1
    whole, light = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "light")
    assert import_run(tmp_path / "all.tar", whole) == 2
    assert import_run(tmp_path / "light.tar", light) == 1
    state, ours = whole.open_ledger().state, folder.open_ledger().state
    assert (state.done, state.stack_of) == (ours.done, ours.stack_of)
    assert whole.read_run() == folder.read_run()
    assert not light.open_ledger().state.is_available(B)
    assert light.open_ledger().state.done[B].dropped


def test_importing_into_a_run_adds_what_is_missing_and_changes_nothing_else(folder, tmp_path):
    export_run(folder, tmp_path / "light.tar", heavy=lambda key: key == B)
    export_run(folder, tmp_path / "all.tar")
    target = RunFolder(tmp_path / "target")
    import_run(tmp_path / "light.tar", target)
    assert import_run(tmp_path / "light.tar", target) == 0
    assert import_run(tmp_path / "all.tar", target) == 1
    assert target.open_ledger().state.is_available(B)
    assert target.open_ledger().state.done.keys() == {A, B, C}


def test_a_damaged_run_is_not_exported(folder, tmp_path):
    folder.objects.path(A).write_bytes(b"damaged")
    with pytest.raises(UserError, match="damaged"):
        export_run(folder, tmp_path / "x.tar")
    assert not list(tmp_path.glob("x.tar*"))


def test_an_export_that_cannot_be_written_is_one_line(folder, tmp_path):
    with pytest.raises(UserError, match="cannot be written"):
        export_run(folder, tmp_path / "absent" / "x.tar")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "objects/../../evil", f"{A}.safetensors/../x", "other.txt"])
def test_names_that_no_export_holds_are_refused_and_nothing_is_written(tmp_path, name):
    source = tar_with(tmp_path / "x.tar", (tarfile.TarInfo(name), b"evil"))
    with pytest.raises(UserError, match="refused"):
        import_run(source, RunFolder(tmp_path / "run"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_links_and_other_odd_entries_are_refused(tmp_path, kind):
    entry = tarfile.TarInfo("run.json")
    entry.type, entry.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.addfile(entry)
    with pytest.raises(UserError, match="refused"):
        import_run(tmp_path / "x.tar", RunFolder(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_an_oversized_text_is_refused(folder, tmp_path, monkeypatch):
    export_run(folder, tmp_path / "x.tar")
    monkeypatch.setattr("forgetgauge.store.transfer.LARGEST_TEXT", 3)
    with pytest.raises(UserError, match="larger than"):
        import_run(tmp_path / "x.tar", RunFolder(tmp_path / "run"))


def _flip(name: str, content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1]) if name.startswith("a") else content


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_flip, "damaged"),
        (lambda name, content: None if name.startswith("a") else content, "artefact aaaaaaaaaaaa is missing"),
        (lambda name, content: None if name == "run.json" else content, "is missing"),
        (lambda name, content: b"[]" if name == "run.json" else content, "not valid"),
        (lambda name, content: b"{" if name == "run.json" else content, "not valid"),
        (lambda name, content: json.dumps({"format": 0}).encode() if name == "run.json" else content, "format 0"),
        (lambda name, content: b"{}\n" if name == "ledger.jsonl" else content, "line 1 is damaged"),
    ],
)
def test_a_tampered_file_is_refused_with_the_reason(folder, tmp_path, change, words):
    export_run(folder, tmp_path / "good.tar")
    source = rewritten(tmp_path / "good.tar", tmp_path / "bad.tar", change)
    target = RunFolder(tmp_path / "target")
    with pytest.raises(UserError, match=words):
        import_run(source, target)
    assert A not in target.open_ledger().state.done
    assert not target.objects.path(A).exists()


def test_a_file_that_is_no_export_is_one_line(tmp_path):
    (tmp_path / "x.tar").write_bytes(b"not a tar at all")
    with pytest.raises(UserError, match="not a run exported"):
        import_run(tmp_path / "x.tar", RunFolder(tmp_path / "run"))
    with pytest.raises(UserError, match="no such file"):
        import_run(tmp_path / "absent.tar", RunFolder(tmp_path / "run"))


def test_a_sparse_entry_and_one_larger_than_its_file_are_refused(tmp_path):
    """A few bytes that claim gigabytes."""
    for name, change in (("sparse", {"type": tarfile.GNUTYPE_SPARSE}), ("large", {})):
        entry = tarfile.TarInfo("run.json")
        entry.size = 3 * 2**30
        for key, value in change.items():
            setattr(entry, key, value)
        path = tmp_path / f"{name}.tar"
        path.write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
        with pytest.raises(UserError, match=r"refused|not a run exported"):
            import_run(path, RunFolder(tmp_path / "run"))
        assert not (tmp_path / "run").exists()
