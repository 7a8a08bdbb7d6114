import numpy as np

from forgetgauge.run.assignments import Sources
from forgetgauge.run.worker import Recent, Worker
from forgetgauge.store.objects import Artefact
from tests.made_up import MadeUp


def artefact(n: int) -> Artefact:
    return Artefact({"weights": np.zeros(n, dtype=np.uint8)}, {"n": n})


def test_the_latest_used_are_kept():
    recent = Recent(room=100)
    recent.keep("a", "1", artefact(40))
    recent.keep("b", "1", artefact(40))
    assert recent.find("a", "1").facts == {"n": 40}
    recent.keep("c", "1", artefact(40))  # b was used longer ago than a
    assert recent.find("b", "1") is None
    assert recent.find("a", "1") is not None
    assert recent.find("c", "1") is not None


def test_another_digest_is_another_artefact():
    recent = Recent()
    recent.keep("a", "1", artefact(1))
    assert recent.find("a", "2") is None
    assert recent.find("b", "1") is None


def test_what_was_made_again_counts_once():
    recent = Recent(room=100)
    for _ in range(5):
        recent.keep("a", "1", artefact(60))
    recent.keep("b", "1", artefact(40))
    assert recent.find("a", "1") is not None
    assert recent.find("b", "1") is not None


def test_what_has_no_room_is_not_kept():
    recent = Recent(room=100)
    recent.keep("a", "1", artefact(101))
    assert recent.find("a", "1") is None


def test_a_worker_on_a_gpu_finds_weights_in_memory_and_all_else_on_the_disk(tmp_path, monkeypatch):
    made = artefact(3)
    for kind, on_gpu in (("train", True), ("train", False), ("signals", True)):
        worker, job = Worker(tmp_path, Sources({})), MadeUp(kind)
        monkeypatch.setattr(type(worker.data), "is_on_gpu", on_gpu)
        receipt = worker._write(job, made)
        found = worker._read(job.key, receipt.sha256)
        assert (found is made) is (on_gpu and kind == "train")  # what is handed out to a user's code is read anew
        assert found.facts == made.facts
        assert np.array_equal(found.arrays["weights"], made.arrays["weights"])


def test_a_worker_that_was_asked_for_no_device_is_on_no_gpu(tmp_path):
    worker = Worker(tmp_path, Sources({}))
    assert not worker.data.is_on_gpu
    assert worker.data.device.type == "cpu"
    assert not worker.data.is_on_gpu
