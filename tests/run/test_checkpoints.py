"""A run that is stopped in the middle of a training goes on in the middle of it."""

from __future__ import annotations

import json
import signal

import pytest

from forgetgauge.learn import checkpoint
from forgetgauge.learn.checkpoint import Checkpoint
from forgetgauge.plan.runfile import read_run_file
from forgetgauge.results.record import without_timings
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder

INLINE = RunOptions(executor="inline")


def played(run_file, folder):
    play(Campaign.plan(resolve(*read_run_file(run_file))), folder, INLINE)
    return without_timings(json.loads(folder.result.read_text()))


def test_a_stack_that_was_stopped_goes_on_from_its_checkpoint_and_the_result_is_the_same(
    tiny_file, tmp_path, monkeypatch
):
    tiny_file.write_text(tiny_file.read_text().replace("epochs = 1", "epochs = 3"))
    calm = played(tiny_file, RunFolder(tmp_path / "calm"))
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)
    keep, read, gone_on_from, n_kept = Checkpoint.keep, Checkpoint.read, [], 0

    def kept(self, n_done, state):
        nonlocal n_kept
        keep(self, n_done, state)
        n_kept += 1
        if n_kept in (2, 5, 9):
            signal.raise_signal(signal.SIGINT)  # Ctrl-C

    def seen(self, like):
        found = read(self, like)
        gone_on_from.append(0 if found is None else found[0])
        return found

    monkeypatch.setattr(Checkpoint, "keep", kept)
    monkeypatch.setattr(Checkpoint, "read", seen)
    folder = RunFolder(tmp_path / "stormy")
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            played(tiny_file, folder)
        assert list(folder.objects.checkpoints.iterdir())
    assert played(tiny_file, folder) == calm
    assert sum(n_done > 0 for n_done in gone_on_from) == 3
    assert not folder.objects.checkpoints.exists()
    assert set(folder.open_ledger().state.n_runs.values()) == {1}


def test_what_a_failed_job_left_is_gone_when_the_run_is_over(tiny_file, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.objects.checkpoints.mkdir(parents=True)
    (folder.objects.checkpoints / "0-1.safetensors").write_bytes(b"of a stack that was halved")
    played(tiny_file, folder)
    assert not folder.objects.checkpoints.exists()
