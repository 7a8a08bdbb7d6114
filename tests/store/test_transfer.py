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


def test_result_failures_versions_and_times_travel_and_what_is_there_stays(folder, tmp_path):
    ledger, failed = folder.open_ledger(), "d" * 64
    ledger.record_done({A: folder.objects.write(A, {"x": np.ones(3)}, {})}, 2.5, {"numpy": "2.0"})
    ledger.record_failed(failed, "ValueError: no")
    folder.result.write_text('{"quality": 0.5}')
    export_run(folder, tmp_path / "x.tar")
    target = RunFolder(tmp_path / "target")
    import_run(tmp_path / "x.tar", target)
    theirs, ours = target.open_ledger().state, folder.open_ledger().state
    assert (theirs.done, theirs.failed, theirs.stack_of) == (ours.done, ours.failed, ours.stack_of)
    assert theirs.failed == {failed: "ValueError: no"}
    assert target.result.read_bytes() == folder.result.read_bytes()
    journal = (target.path / "ledger.jsonl").read_bytes()
    target.result.write_text("{}")
    assert import_run(tmp_path / "x.tar", target) == 0
    assert (target.path / "ledger.jsonl").read_bytes() == journal
    assert target.result.read_text() == "{}"


def test_a_failure_elsewhere_says_nothing_of_a_job_that_is_done_here(folder, tmp_path):
    folder.open_ledger().record_lost(A)
    folder.open_ledger().record_failed(A, "ValueError: no")
    export_run(folder, tmp_path / "x.tar")
    target = RunFolder(tmp_path / "target")
    target.create()
    target.open_ledger().record_done({A: target.objects.write(A, {}, {})}, 1.0)
    journal = (target.path / "ledger.jsonl").read_bytes()
    import_run(tmp_path / "x.tar", target)
    assert (target.path / "ledger.jsonl").read_bytes().startswith(journal)
    assert b"ValueError" not in (target.path / "ledger.jsonl").read_bytes()
    assert target.open_ledger().state.is_available(A)


@pytest.mark.parametrize("name", [f"../{A}.safetensors", "x.safetensors", ".safetensors", A, f"{A}.safetensors.part"])
def test_only_a_key_with_the_suffix_names_an_artefact(tmp_path, name):
    source = tar_with(tmp_path / "x.tar", (tarfile.TarInfo(name), b"evil"))
    with pytest.raises(UserError, match="is nothing an export holds"):
        import_run(source, RunFolder(tmp_path / "run"))


def claiming(path: Path, name: str, size: int, n_bytes: int) -> Path:
    """A tar whose one entry claims a size, in a file of so many bytes that take no room on the disk."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    with path.open("wb") as file:
        file.write(entry.tobuf(tarfile.GNU_FORMAT))
        file.truncate(n_bytes)
    return path


def test_texts_have_a_largest_size_and_artefacts_have_not(tmp_path):
    most = 64 * 2**20
    for name, size, words in (
        ("result.json", most, r"run\.json or ledger\.jsonl is missing"),
        ("result.json", most + 1, r"'result\.json' is larger than 64 MiB"),
        (f"{A}.safetensors", 2 * most, r"run\.json or ledger\.jsonl is missing"),
        (f"{A}.safetensors", 5 * most, r"'a{64}\.safetensors' claims to be larger than the whole file"),
    ):
        source = claiming(tmp_path / "x.tar", name, size, 3 * most)
        with pytest.raises(UserError, match=words):
            import_run(source, RunFolder(tmp_path / "run"))
        assert not (tmp_path / "run").exists()


def test_a_changed_byte_anywhere_in_an_export_is_found(folder, tmp_path):
    export_run(folder, tmp_path / "x.tar")
    content = (tmp_path / "x.tar").read_bytes()
    places = [*range(0, len(content), 211), len(content) - 1]
    for changed in (
        *(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places),
        content + b"x",
        content + bytes(10 * tarfile.RECORDSIZE),
        content + content,
    ):
        (tmp_path / "changed.tar").write_bytes(changed)
        with pytest.raises(UserError, match=r"was changed|refused|not a run exported"):
            import_run(tmp_path / "changed.tar", RunFolder(tmp_path / "target"))
        assert not (tmp_path / "target").exists()


def test_an_export_whose_digest_was_taken_out_was_changed(folder, tmp_path):
    export_run(folder, tmp_path / "x.tar")
    with tarfile.open(tmp_path / "x.tar") as tar:
        entries = [(tarfile.TarInfo(m.name), tar.extractfile(m).read()) for m in tar if m.name != SEAL]
    for kept in (entries, [e for e in entries if e[0].name in ("run.json", "ledger.jsonl")]):
        with pytest.raises(UserError, match="was changed after it was written"):
            import_run(tar_with(tmp_path / "bare.tar", *kept), RunFolder(tmp_path / "target"))


def test_what_is_no_run_or_was_changed_is_not_exported(folder, tmp_path):
    with pytest.raises(UserError, match="not a run folder"):
        export_run(RunFolder(tmp_path / "nothing"), tmp_path / "x.tar")
    folder.run_file.write_bytes(folder.run_file.read_bytes().replace(b"[]", b"{}"))
    with pytest.raises(UserError, match="was changed after it was written"):
        export_run(folder, tmp_path / "x.tar")
    assert not list(tmp_path.glob("x.tar*"))


def test_an_import_that_is_refused_leaves_no_folder(folder, tmp_path):
    export_run(folder, tmp_path / "good.tar")
    change = {"run.json": b'{"format": 0}'}
    source = rewritten(tmp_path / "good.tar", tmp_path / "bad.tar", lambda name, content: change.get(name, content))
    with pytest.raises(UserError, match="format 0"):
        import_run(source, RunFolder(tmp_path / "runs" / "target"))
    assert not (tmp_path / "runs").exists()
