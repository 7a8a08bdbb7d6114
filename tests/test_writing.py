"""What the operating system refuses on writing is one line, and no file is left half-written under its name."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.auditing.export import write_audit_file
from forgetgauge.errors import UserError
from forgetgauge.files import write_whole
from tests.conftest import TINY_TOML
from tests.report.evidence import evidence
from tests.report.test_html import result
from tests.run.test_campaign import played

REFUSALS = (errno.EIO, errno.EACCES, errno.EMFILE, errno.ENOSPC, errno.EROFS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run; not to be changed."""
    folder = tmp_path_factory.mktemp("writing") / "run"
    played(folder)
    return folder


@pytest.fixture
def place(finished, tmp_path):
    """A folder with one of everything that commands read."""
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    (tmp_path / "one").mkdir()
    (tmp_path / "made").mkdir()
    result().save(tmp_path / "made/result.json")
    (tmp_path / "one/evidence.json").write_text(evidence().to_json())
    (tmp_path / "ids.txt").write_text("".join(f"p{i}\n" for i in range(20)))
    n = 40
    np.savez(
        tmp_path / "audit.npz", pair=np.repeat([0, 1], n), side=np.tile(np.repeat([0, 1], n // 2), 2),
        point=np.concatenate([np.tile(np.arange(20) + 20 * pair, 2) for pair in (0, 1)]),
        label=np.zeros(2 * n, dtype=int),
        set=np.array((["forget"] * 10 + ["unseen"] * 10 + ["unseen"] * 10 + ["forget"] * 10) * 2),
        decision=np.arange(2 * n) % 3 == 0,
    )  # fmt: skip
    return tmp_path


COMMANDS = {
    "run": ("run", "tiny.toml", "--out", "run", "--executor", "inline", "--quiet"),
    "run anew": ("run", "tiny.toml", "--out", "new", "--executor", "inline", "--quiet"),
    "score": ("score", "run", "--adversary", "loss"),
    "report": ("report", "run"),
    "report --to": ("report", "run", "--to", "page.html"),
    "report of evidence": ("report", "one"),
    "export": ("export", "run", "run.tar"),
    "audit": ("audit", "audit.npz", "--out", "audited"),
    "draw": ("draw", "ids.txt", "--forget", "5", "--out", "draw.json"),
    "check": ("check", "made", "--unverified", "--min-q", "0", "--junit", "junit.xml"),
    "record": ("record", "run", "--out", "record", "--method", "neg-grad"),
}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("refusal", REFUSALS, ids=errno.errorcode.get)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_rename_is_one_line_and_every_file_is_as_it_was(place, call, monkeypatch, command, refusal):
    before = files(place)

    def refused(*_):
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.chdir(place)
    monkeypatch.setattr("forgetgauge.files.os.replace", refused)
    code, _, err = call(*COMMANDS[command])
    assert code == 2
    assert err.startswith("forgetgauge: ")
    assert err.count("\n") == 1
    assert ("the disk is full" if refusal == errno.ENOSPC else os.strerror(refusal)) in err
    monkeypatch.undo()
    grown = {Path("run/ledger.jsonl"), Path("run/lock"), Path("new/lock"), Path("new/ledger.jsonl")}
    after = files(place)
    assert {path: raw for path, raw in after.items() if path not in grown} == {
        path: raw for path, raw in before.items() if path not in grown
    }
    ledger = Path("run/ledger.jsonl")
    assert after[ledger].startswith(before[ledger])


@pytest.mark.parametrize("refusal", REFUSALS, ids=errno.errorcode.get)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_opened_for_writing_is_one_line(place, call, monkeypatch, command, refusal):
    real = Path.open

    def refused(self, mode="r", *more, **named):
        if set(mode) & set("wax"):
            raise OSError(refusal, os.strerror(refusal), str(self))
        return real(self, mode, *more, **named)

    monkeypatch.chdir(place)
    monkeypatch.setattr(Path, "open", refused)
    code, _, err = call(*COMMANDS[command])
    assert code == 2
    assert err.startswith("forgetgauge: ")
    assert err.count("\n") == 1


def test_the_ledger_refused_is_one_line_and_the_run_goes_on_later(place, call, monkeypatch):
    """Whichever line it is of, and whatever refuses it."""
    from forgetgauge.store.ledger import Ledger

    real = Path.open
    monkeypatch.chdir(place)
    for refusal, after in zip(REFUSALS, (0, 1, 3, 10, 30), strict=True):
        left = [after]

        def refused(self, mode="r", *more, refusal=refusal, left=left, **named):
            if "a" in mode:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(refusal, os.strerror(refusal), str(self))
            return real(self, mode, *more, **named)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", refused)
            code, _, err = call(*COMMANDS["run anew"])
        *told, line = err.splitlines()
        assert code == 2
        assert line.startswith("forgetgauge: ")
        assert all(one.startswith("the run ended once while it did") for one in told)  # before this start
        if Path("new/ledger.jsonl").exists():
            Ledger(Path("new/ledger.jsonl"))
    code, _, err = call(*COMMANDS["run anew"])
    assert (code, err) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="platform: it has no /dev/full")
def test_what_is_no_file_is_written_to_and_never_replaced(place, call):
    code, _, err = call("report", place / "run", "--to", "/dev/full")
    assert (code, err.count("\n")) == (2, 1)
    assert "the disk is full" in err
    assert Path("/dev/full").is_char_device()
    assert call("report", place / "run", "--to", "/dev/null")[0] == 0
    assert Path("/dev/null").is_char_device()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "there/file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/file").read_text() == "new"


@pytest.mark.parametrize("name", ["audit.csv", "other.npz"])
def test_an_audit_file_is_written_whole_or_not_at_all(place, monkeypatch, name):
    def refused(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("forgetgauge.files.os.replace", refused)
    with pytest.raises(UserError, match="cannot be written: Input/output error"):
        write_audit_file(place / "run", place / name)
    assert not list(place.glob(f"{name}*"))
    monkeypatch.undo()
    write_audit_file(place / "run", place / name)
    assert (place / name).stat().st_size > 0
