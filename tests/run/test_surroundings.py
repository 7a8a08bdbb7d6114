"""What is the caller's own is as it was after a job: a stream of any kind, a timer, a folder."""

from __future__ import annotations

import signal
import sys
import time

import pytest

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.run.surroundings import settings_kept


def test_a_stream_of_the_callers_that_can_write_and_flush_alone_is_enough(monkeypatch):
    class Tee:
        def __init__(self):
            self.written = []

        def write(self, text):
            self.written.append(text)

        def flush(self):
            pass

    tee = Tee()
    monkeypatch.setattr(sys, "stdout", tee)
    monkeypatch.setattr(sys, "stdin", object())
    with settings_kept("fit"):
        print("heard")
    assert sys.stdout is tee
    assert tee.written[0] == "heard"


@pytest.fixture
def alarms():
    """Counts alarms, whose handler and timer are as before afterwards."""
    fired = []
    before = signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
    yield fired
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def spent(seconds):
    """Sleep, whatever interrupts it."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(left)


def test_the_callers_timer_goes_on_after_a_job_that_left_it_alone_or_set_its_own(alarms):
    for own in (None, 0, 40):
        signal.setitimer(signal.ITIMER_REAL, 60, 7)
        with settings_kept("fit"), settings_kept("fit"):
            if own is not None:
                signal.signal(signal.SIGALRM, signal.SIG_IGN)
                signal.setitimer(signal.ITIMER_REAL, own)
            spent(0.02)
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        assert 50 < left <= 59.98
        assert interval == 7
        assert alarms == []


def test_a_timer_that_is_due_in_a_job_goes_off_once(alarms):
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    with settings_kept("fit"), settings_kept("fit"):
        spent(0.05)
        assert alarms == [1]
    spent(0.02)
    assert alarms == [1]
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_timer_that_a_job_kept_from_going_off_goes_off_after_it(alarms):
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    with settings_kept("fit"):
        signal.setitimer(signal.ITIMER_REAL, 0)
        spent(0.05)
        assert alarms == []
    spent(0.02)
    assert alarms == [1]


def test_a_repeated_timer_keeps_its_beat(alarms):
    signal.setitimer(signal.ITIMER_REAL, 0.01, 30)
    with settings_kept("fit"):
        spent(0.03)
    assert alarms == [1]
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    assert 29 < left < 30
    assert interval == 30


def test_a_timer_of_a_job_ends_with_it(alarms):
    with settings_kept("fit"):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
    spent(0.04)
    assert alarms == []


def test_a_working_folder_that_was_deleted_is_one_line(tmp_path, monkeypatch, call):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for command in (("run", "--out", tmp_path / "run"), ("validate",), ("plan",), ("report", tmp_path)):
        code, _, err = call(*command)
        assert (code, err) == (2, "forgetgauge: the current folder was deleted: change into one that is there\n")
    with pytest.raises(UserError, match="the current folder was deleted"):
        forgetgauge.evaluate(out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_working_folder_that_is_deleted_while_jobs_are_done_is_no_jobs_fault(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with settings_kept("fit"):
        pass
