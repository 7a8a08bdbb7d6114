from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from forgetgauge.errors import UserError
from forgetgauge.store.runfolder import RunFolder


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot make this folder"):
        RunFolder(tmp_path / "file" / "run").create()


def test_a_folder_that_is_not_writable_is_one_line(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path)
    monkeypatch.setattr("forgetgauge.store.runfolder.os.access", lambda *_: False)
    with pytest.raises(UserError, match="not writable"):
        folder.create()


def test_a_second_process_is_refused_while_the_first_holds_the_folder(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.locked(), pytest.raises(UserError, match="another forgetgauge run"), RunFolder(tmp_path).locked():
        pass
    with folder.locked():
        pass


def test_a_lock_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(UserError, match="not writable"), RunFolder(tmp_path).locked():
        pass


def test_a_folder_made_for_nothing_goes_again_and_others_stay(tmp_path):
    with pytest.raises(KeyError), RunFolder(tmp_path / "runs" / "new").locked():
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyError), RunFolder(tmp_path / "runs" / "new").locked():
        raise KeyError((tmp_path / "runs/new/ledger.jsonl").write_text("begun"))
    assert (tmp_path / "runs/new/ledger.jsonl").exists()
    with pytest.raises(KeyError), RunFolder(tmp_path).locked():
        raise KeyError
    assert tmp_path.exists()


def test_an_error_in_a_new_folder_that_was_deleted_meanwhile_is_said(tmp_path):
    with pytest.raises(ZeroDivisionError), RunFolder(tmp_path / "new").locked():
        shutil.rmtree(tmp_path / "new") or 1 / 0


def test_whether_a_folder_could_be_made_is_said_without_making_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    RunFolder(tmp_path / "runs" / "new").check()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(UserError, match="cannot make this folder"):
        RunFolder(tmp_path / "file" / "run").check()
    monkeypatch.setattr("forgetgauge.store.runfolder.os.access", lambda *_: False)
    with pytest.raises(UserError, match="not writable"):
        RunFolder(tmp_path / "runs" / "new").check()


def test_a_folder_without_a_run_says_so(tmp_path):
    with pytest.raises(UserError, match=r"no run\.json"):
        RunFolder(tmp_path).read_run()


@pytest.mark.parametrize(("text", "words"), [("{", "not valid JSON"), ('{"format": 99}', "format 99")])
def test_a_run_file_that_is_not_ours_is_one_line(tmp_path, text, words):
    folder = RunFolder(tmp_path)
    folder.run_file.write_text(text)
    with pytest.raises(UserError, match=words):
        folder.read_run()


def test_what_was_asked_for_is_kept(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.write_run({"games": []})
    assert folder.read_run()["games"] == []


def test_a_changed_byte_of_what_was_asked_for_is_found(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_run({"games": [], "name": "none"})
    content = folder.run_file.read_bytes()
    for place in range(len(content)):
        folder.run_file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(UserError, match=r"was changed|not valid JSON|but this version"):
            folder.read_run()


def test_a_file_in_a_folder_that_is_not_there_yet_is_written(tmp_path):
    folder = RunFolder(tmp_path)
    for text in ("once", "again"):
        folder.write_text(folder.failures / "job.txt", text)
        assert (tmp_path / "failures" / "job.txt").read_text() == text


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    folder = RunFolder(tmp_path)
    for odd in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            folder.write_run({"games": [], "job_seconds": odd})
    assert not folder.run_file.exists()
