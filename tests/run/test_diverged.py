"""Models that diverged: what is lost with them, and how much time."""

from __future__ import annotations

import copy
from collections import Counter

import torch

import forgetgauge
from forgetgauge.plan.jobs import Job
from forgetgauge.run import model_jobs
from forgetgauge.run.assignments import Assignment, Failure, Outcome
from forgetgauge.run.scheduler import execute
from forgetgauge.run.worker import Worker
from forgetgauge.store.runfolder import RunFolder
from tests.run.test_scheduler import StandIn, little_graph

calls = iter(range(0))
TINY = {"pairs": 2, "shadows": 2, "fraction": 0.2, "learner": {"epochs": 1, "batch_size": 64}}


def diverges_on_some(model, retain, forget, context):
    """NaN in every second model."""
    model = copy.deepcopy(model)
    if next(calls) % 2:
        torch.nn.init.constant_(next(model.parameters()), torch.nan)
    return model


def test_a_model_that_diverged_is_asked_once_and_those_asked_with_it_are_not_asked_again(monkeypatch):
    global calls
    calls = iter(range(100))
    asked: Counter[int] = Counter()
    ask = model_jobs.outputs_of_many

    def counted(models, points, **how):
        asked[len(models)] += 1
        return ask(models, points, **how)

    monkeypatch.setattr(model_jobs, "outputs_of_many", counted)
    monkeypatch.setattr(Worker, "_units", lambda self, jobs: [tuple(jobs)])  # as on a GPU
    result = forgetgauge.evaluate(
        unlearner={"mine": diverges_on_some}, adversaries="correctness", on_failure="record", **TINY
    )
    assert [failure.error for failure in result.failures] == [
        "ValueError: the model's outputs hold NaN or infinite values"
    ] * 2
    assert asked == {2: 1, 4: 4}  # two shadow models about one set, four targets about four, each together and once


def test_a_failure_that_another_try_would_repeat_is_not_tried_again(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create()

    class Diverged(StandIn):
        def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
            assignment, outcome = super().next()
            final = {key: Failure(found.line, found.traceback) for key, found in outcome.failures.items()}
            return assignment, Outcome(outcome.receipts, final, seconds=outcome.seconds)

    def fail(job: Job) -> None:
        if job.label == "signals 1":
            raise ValueError("NaN")

    jobs = little_graph()
    standin = Diverged(folder, fail)
    ending = execute(jobs, folder, standin)
    assert [found.line for found in ending.failed.values()] == ["ValueError: NaN"]
    assert standin.performed.count("signals 1") == 1
    assert ending.n_missing == 2  # its signals and what would have been decided on them


def test_the_file_of_such_a_failure_says_what_happened(tmp_path):
    global calls
    calls = iter(range(1, 100))
    out = tmp_path / "run"
    result = forgetgauge.evaluate(
        unlearner={"mine": diverges_on_some}, adversaries="correctness", on_failure="record", out=out, **TINY
    )
    assert len(result.failures) == 2
    for failure in result.failures:
        assert "NaN or infinite" in (out / failure.traceback).read_text("utf-8")
