from __future__ import annotations

import errno
import io
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from forgetgauge.errors import DiskFull, UserError
from forgetgauge.store.ledger import Ledger, line_of, replay
from forgetgauge.store.objects import Receipt

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def written(path: Path) -> Ledger:
    ledger = Ledger(path)
    ledger.record_stacks([])
    ledger.record_stacks([[A, B], [C]])
    ledger.record_done({A: Receipt("1" * 64, 10), B: Receipt("2" * 64, 20)}, 4.0)
    ledger.record_failed(C, "ValueError: no")
    ledger.record_dropped([A])
    return ledger


def test_the_state_is_the_replay_of_the_file(path):
    ledger = written(path)
    assert Ledger(path).state == ledger.state
    state = ledger.state
    assert state.stack_of == {A: (A, B), B: (A, B), C: (C,)}
    assert state.done[B].seconds == 2.0
    assert not state.is_available(A)
    assert state.is_available(B)
    assert not state.is_available(C)
    assert state.failed == {C: "ValueError: no"}


def test_a_job_that_succeeds_later_is_no_failure(path):
    ledger = written(path)
    ledger.record_done({C: Receipt("3" * 64, 1)}, 1.0)
    assert Ledger(path).state.failed == {}


def test_a_lost_artefact_makes_its_job_open_again(path):
    ledger = written(path)
    ledger.record_lost(B)
    ledger.record_lost(B)
    assert B not in Ledger(path).state.done
    ledger.record_done({B: Receipt("2" * 64, 20)}, 1.0)
    assert ledger.state.n_runs == {A: 1, B: 2}


@given(st.data())
def test_a_ledger_cut_at_any_byte_is_the_ledger_of_the_whole_lines_before_it(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    written(path)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[: content[:cut].rfind(b"\n") + 1]
    ledger = Ledger(path)
    assert ledger.state == replay(whole, path)[0]
    ledger.record_failed(B, "again")
    assert path.read_bytes().startswith(whole)
    assert Ledger(path).state == ledger.state


def test_damage_in_the_middle_is_one_line_with_its_number(path):
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{broken\n" + b"".join(lines[1:]))
    with pytest.raises(UserError, match="line 2 is damaged"):
        Ledger(path)


def test_a_full_disk_during_an_append_loses_nothing(path, monkeypatch):
    ledger = written(path)
    before = path.read_bytes()

    class Full(io.FileIO):
        def write(self, line) -> int:
            super().write(bytes(line)[:5])
            raise OSError(errno.ENOSPC, "No space left on device")

    real = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda self, mode="r": Full(str(self), "ab") if "a" in mode else real(self, mode))
        with pytest.raises(DiskFull):
            ledger.record_failed("d" * 64, "x")
    assert Ledger(path).state == replay(before, path)[0]
    ledger.record_failed("d" * 64, "y")
    assert Ledger(path).state.failed["d" * 64] == "y"


def test_a_job_that_its_process_dies_of_is_counted_until_it_ends_in_any_other_way(path):
    ledger = Ledger(path)
    for _ in range(2):
        ledger.record_begun([A, B, C])
    ledger.record_begun([A])
    assert Ledger(path).state.begun == ledger.state.begun == {A: 3, B: 2, C: 2}
    ledger.record_left([A])
    ledger.record_failed(B, "ValueError: no")
    assert Ledger(path).state.begun == ledger.state.begun == {C: 2}
    ledger.record_done({C: Receipt("3" * 64, 1)}, 1.0)
    assert Ledger(path).state.begun == ledger.state.begun == {}


def test_a_flipped_bit_anywhere_and_a_line_taken_out_or_moved_is_found(path):
    written(path)
    content = path.read_bytes()
    for place in range(len(content) - 1):  # without its last newline the last line counts as torn
        with pytest.raises(UserError, match="is damaged"):
            replay(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :], path)
    first, second, *rest = content.splitlines(keepends=True)
    for lines in ([second, *rest], [second, first, *rest], [first, *rest]):
        with pytest.raises(UserError, match="is damaged"):
            replay(b"".join(lines), path)


def test_a_ledger_is_torn_after_half_a_line_until_the_next_one_is_written(path):
    assert not written(path).torn
    assert not Ledger(path).torn
    with path.open("ab") as journal:
        journal.write(b'{"event":')
    ledger = Ledger(path)
    assert ledger.torn
    ledger.record_lost(B)
    assert not ledger.torn
    assert not Ledger(path).torn


def test_a_disk_that_is_full_only_when_the_line_leaves_the_buffer_loses_nothing(path, monkeypatch):
    ledger = written(path)

    class Full(io.FileIO):
        def write(self, line) -> int:
            super().write(bytes(line)[:5])
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda self, mode: io.BufferedWriter(Full(str(self), mode)))
        with pytest.raises(DiskFull):
            ledger.record_failed("d" * 64, "x")
    ledger.record_failed("d" * 64, "y")
    assert Ledger(path).state.failed["d" * 64] == "y"


def test_lines_with_right_checks_and_wrong_contents_are_damaged(path):
    job = {"key": A, "sha256": "1" * 64, "bytes": 10, "seconds": 1.5}
    done = {"event": "done", "made_with": {"numpy": "2"}, "jobs": [job]}
    for changed in (
        *({**job, "bytes": odd} for odd in (-1, 1.5, "1", None, 2**63)),
        *({**job, "seconds": odd} for odd in (-1, "1", None, 1e10, float("nan"))),
        *({**job, name: 1} for name in ("key", "sha256")),
    ):
        with pytest.raises(UserError, match="line 1 is damaged"):
            replay(line_of({**done, "jobs": [changed]}, b"")[0], path)
    for event in (
        {**done, "made_with": {"numpy": 2}},
        {"event": "stacks", "stacks": ["ab"]},
        {"event": "begun", "keys": [1]},
        {"event": "failed", "key": A, "error": 1},
    ):
        with pytest.raises(UserError, match="line 1 is damaged"):
            replay(line_of(event, b"")[0], path)
    for fine in (job, {**job, "bytes": 0, "seconds": 0}):
        state, *_ = replay(line_of({**done, "jobs": [fine]}, b"")[0], path)
        assert (state.done[A].receipt.n_bytes, state.done[A].seconds) == (fine["bytes"], fine["seconds"])


def test_weights_that_are_made_again_keep_the_time_of_the_first_making(path):
    """A result says how long its work took; whoever makes dropped weights again later must not change that."""
    ledger = written(path)
    ledger.record_done({A: Receipt("1" * 64, 10)}, 9.0)
    assert ledger.state.done[A].seconds == 2.0
    assert ledger.state.is_available(A)
    ledger.record_lost(A)
    ledger.record_done({A: Receipt("1" * 64, 10)}, 7.0)  # as if for the first time
    assert Ledger(path).state.done[A].seconds == 7.0


@pytest.mark.parametrize("what", ["deleted", "another"])
def test_a_run_whose_folder_was_deleted_or_begun_anew_adds_nothing_to_it(path, what):
    ledger = written(path)
    path.unlink()
    if what == "another":
        Ledger(path).record_failed(B, "begun anew")
    found = path.read_bytes() if path.exists() else None
    with pytest.raises(UserError, match="deleted, moved or changed"):
        ledger.record_lost(B)
    assert (path.read_bytes() if path.exists() else None) == found
    Ledger(path)
