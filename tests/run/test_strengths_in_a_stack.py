"""Models at several strengths in one stack: one that fails, dies, hangs or takes too much harms no other, and what is
not its fault changes no numbers."""

from __future__ import annotations

import multiprocessing
import os
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from forgetgauge.run import executors, model_jobs
from forgetgauge.run.assignments import N_LIVES, Failure, Outcome
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.durations import Limits
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.run.scheduler import _Scheduler, execute
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY
from tests.run.test_scheduler import StandIn

ROOT = Path(__file__).parents[2]
AUTO = {
    **TINY,
    "unlearners": {"retrain": {}, "none": {}, "neg-grad": {"strength": "auto"}},
    "tuning": {"points": 3, "shadows": 3, "price": 0.3},
}
INLINE = RunOptions("inline", "cpu")


def planned(**tables):
    return Campaign.plan(resolve({**AUTO, **tables}, "test"))


def strongest_of(campaign):
    return campaign.graphs[0].game.methods["neg-grad"].tuning.tried[-1]


def has(jobs, strength):
    return any(job.kind == "unlearn" and job.unlearner.params.get("lr") == strength for job in jobs)


def failing(campaign, error):
    """`unlearn`, which raises wherever the strongest value is among the jobs; and the widths that were tried."""
    unlearn, widths = model_jobs.unlearn, []

    def fails_at_the_strongest(jobs, *rest):
        if jobs[0].unlearner.name == "neg-grad":
            widths.append(len(jobs))
        if has(jobs, strongest_of(campaign)):
            raise error
        return unlearn(jobs, *rest)

    return fails_at_the_strongest, widths


@pytest.mark.parametrize("error", [RuntimeError("no such strength"), MemoryError("out of memory")])
def test_a_strength_that_raises_fails_alone_and_is_a_stack_of_its_own(error, tmp_path, monkeypatch):
    campaign, folder = planned(), RunFolder(tmp_path / "run")
    monkeypatch.setattr(model_jobs, "unlearn", failing(campaign, error)[0])
    ending, result = play(campaign, folder, INLINE)
    assert result is not None
    jobs = campaign.jobs
    assert {jobs[key].unlearner.params["lr"] for key in ending.failed} == {strongest_of(campaign)}
    assert len(ending.failed) == 3
    stack_of = folder.open_ledger().state.stack_of
    for key in ending.failed:
        assert set(stack_of[key]) <= set(ending.failed)


def test_a_strength_that_raises_leaves_other_stacks_as_wide_as_they_were(tmp_path, monkeypatch):
    tables = {"tuning": {"points": 8, "shadows": 8, "price": 0.3}}
    campaign = planned(**tables)
    fails, widths = failing(campaign, RuntimeError("no such strength"))
    monkeypatch.setattr(model_jobs, "unlearn", fails)
    play(campaign, RunFolder(tmp_path / "run"), INLINE)
    assert widths.count(16) >= 4  # 64 models of the first round, each stack tried as it was formed
    assert min(widths) > 1


class DiesOnce(executors.Inline):
    """In the place of a worker process that something else ends once, in the midst of a stack of several strengths."""

    in_this_process = False
    lives = 1

    def next(self, timeout=None):
        assignment, _ = self._waiting[-1]
        if DiesOnce.lives and len({str(job.choices) for job in assignment.jobs if job.kind == "unlearn"}) > 1:
            DiesOnce.lives -= 1
            self._waiting.pop()
            died = Failure("the worker process died (killed by signal 9)", "", tries=N_LIVES)
            return assignment, Outcome(failures=dict.fromkeys(assignment.wanted, died))
        return super().next(timeout)


def test_a_death_that_is_nobodys_fault_changes_no_number(tmp_path, monkeypatch):
    """A narrower stack of adapters has other last bits."""
    raw = tomllib.loads((ROOT / "examples/tiny-lm.toml").read_text("utf-8"))
    raw |= {"unlearners": {"retrain": {}, "none": {}, "npo": {"strength": {"lr": [1e-4, 1e-2]}, "epochs": 1}}}
    raw |= {"tuning": {"points": 3, "shadows": 3, "price": 0.5}, "adversaries": ["loss"], "keep": "weights"}
    raw["game"]["pairs"], raw["learner"]["epochs"], raw["shadows"] = 1, 1, {"count": 2}
    raw.pop("metrics", None)

    def made(name):
        folder = RunFolder(tmp_path / name)
        ending, _ = play(Campaign.plan(resolve(raw, "test")), folder, INLINE)
        assert not ending.failed
        state = folder.open_ledger().state
        return {key: done.receipt.sha256 for key, done in state.done.items()}, state.stack_of

    undisturbed = made("undisturbed")
    monkeypatch.setattr(RunOptions, "load_executor", lambda self: DiesOnce)
    monkeypatch.setattr(DiesOnce, "lives", 1)
    assert made("disturbed") == undisturbed
    assert DiesOnce.lives == 0


class DiesAtTheStrongest(StandIn):
    """Its process dies of any assignment with that strength, and of no other."""

    def next(self, timeout=None):
        assignment, outcome = super().next(timeout)
        if has(assignment.jobs, strongest_of(planned())):
            died = Failure("the worker process died", "", tries=N_LIVES)
            outcome = Outcome(failures=dict.fromkeys(assignment.wanted, died))
        return assignment, outcome


def searched_in(jobs):
    return [job for job in jobs.values() if job.label.startswith("neg-grad at ")]


def test_a_strength_that_ends_its_process_does_not_take_the_others_with_it(tmp_path):
    folder, jobs = RunFolder(tmp_path / "run"), planned().graphs[0].jobs
    folder.create()
    ending = execute(jobs, folder, DiesAtTheStrongest(folder))
    assert {jobs[key].unlearner.params["lr"] for key in ending.failed} == {strongest_of(planned())}
    assert len(ending.failed) == 3
    done = folder.open_ledger().state.done
    assert {job.key for job in searched_in(jobs)} - set(ending.failed) <= set(done)


def play_until_it_dies(path):
    campaign = planned()
    unlearn = model_jobs.unlearn

    def dies_at_the_strongest(jobs, *rest):
        if has(jobs, strongest_of(campaign)):
            os._exit(9)
        return unlearn(jobs, *rest)

    model_jobs.unlearn = dies_at_the_strongest
    ending, result = play(campaign, RunFolder(path), RunOptions("inline", "cpu", tell=lambda line: None))
    failed = Counter(campaign.jobs[key].unlearner.params["lr"] for key in ending.failed if key in campaign.jobs)
    assert failed == {strongest_of(campaign): 3}
    assert result is not None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_strength_that_ends_a_run_in_one_process_is_left_out_alone(tmp_path):
    codes = []
    while len(codes) < 6 and codes[-1:] != [0]:
        process = multiprocessing.get_context("fork").Process(target=play_until_it_dies, args=(tmp_path / "run",))
        process.start()
        process.join()
        codes.append(process.exitcode)
    assert codes == [9, 9, 9, 0]


class HangsAtTheStrongest(StandIn):
    """Never done with that strength."""

    def __init__(self, folder):
        super().__init__(folder)
        self.stopped = []

    def next(self, timeout=None):
        if has(self.waiting[-1][0].jobs, strongest_of(planned())):
            return None
        return super().next(timeout)

    def seconds_at_work(self, assignment):
        return 1e6 if has(assignment.jobs, strongest_of(planned())) else 0.0

    def stop(self, assignment):
        self.stopped.append(len(assignment.jobs))
        self.waiting.pop()


def test_a_strength_that_hangs_is_ended_alone(tmp_path):
    folder, jobs = RunFolder(tmp_path / "run"), planned().graphs[0].jobs
    folder.create()
    executor = HangsAtTheStrongest(folder)
    ending = execute(jobs, folder, executor, job_seconds=5.0)
    assert {jobs[key].unlearner.params["lr"] for key in ending.failed} == {strongest_of(planned())}
    assert len(ending.failed) == 3
    assert executor.stopped == [9, 3]


def test_a_stack_of_which_something_was_made_stays_whole_in_the_ledger(tmp_path):
    """Its models are compared with what was made from them: made again they are of the same width."""
    folder, jobs = RunFolder(tmp_path / "run"), planned().graphs[0].jobs
    folder.create()
    execute(jobs, folder, StandIn(folder), keep_weights=True)
    before = folder.open_ledger().state.stack_of
    stack = tuple(jobs[key] for key in before[searched_in(jobs)[0].key])
    assert len(stack) == 9
    scheduler = _Scheduler(jobs, folder, StandIn(folder), True, 16, Limits(None, None), lambda _: None)
    assert scheduler._apart(stack, frozenset({stack[0].key})) == []
    assert folder.open_ledger().state.stack_of == before


def test_no_model_of_a_search_is_made_again_for_an_attack_that_is_taught_by_them(tmp_path, monkeypatch):
    unlearn, made = model_jobs.unlearn, Counter()
    monkeypatch.setattr(
        model_jobs, "unlearn", lambda jobs, *rest: made.update(job.key for job in jobs) or unlearn(jobs, *rest)
    )
    campaign, folder = planned(adversaries=["u-lira"], shadows={"count": 3}), RunFolder(tmp_path / "run")
    ending, _ = play(campaign, folder, INLINE)
    assert not ending.failed
    assert set(made.values()) == {1}
    taught = [job for job in Campaign.read(folder).jobs.values() if job.kind == "fit" and "neg-grad" in job.label]
    assert taught
    assert not campaign.keep_weights
    assert not [key for key in made if folder.objects.path(key).exists()]  # nothing is held for longer
