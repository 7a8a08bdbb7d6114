from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from forgetgauge.plan.game import Method, PlannedAdversary
from forgetgauge.plan.graph import build_graph
from forgetgauge.plan.jobs import HEAVY, Job, Named
from forgetgauge.run.assignments import Sources
from forgetgauge.run.packing import WIDTH, form_stacks, jobs_to_do, pack, stack_kind, stack_members
from forgetgauge.run.worker import Worker
from forgetgauge.store.ledger import LedgerState
from forgetgauge.streams import identity_key
from tests.made_up import MadeUp
from tests.plan.test_graph import GAME
from tests.plan.test_keys import EVERY_NEED


def chain() -> dict[str, Job]:
    """train -> unlearn -> signals -> decide."""
    train = MadeUp("train", {"n": 0}, group="train", coupled=True)
    unlearn = MadeUp("unlearn", inputs={"model": train.key})
    signals = MadeUp("signals", inputs={"model": unlearn.key})
    decide = MadeUp("decide", inputs={"signals": signals.key})
    return {job.key: job for job in (train, unlearn, signals, decide)}


def finished(*keys: str, dropped: bool = False) -> LedgerState:
    state = LedgerState()
    job = {"sha256": "", "bytes": 0, "seconds": 0.0}
    state.apply({"event": "done", "jobs": [{"key": key, **job} for key in keys]})
    if dropped:
        state.apply({"event": "dropped", "keys": list(keys)})
    return state


def test_everything_is_to_do_at_first_and_nothing_at_the_end():
    jobs = chain()
    assert jobs_to_do(jobs, LedgerState()) == list(jobs)
    assert jobs_to_do(jobs, finished(*jobs)) == []


def test_dropped_weights_are_not_missed_while_nothing_needs_them():
    jobs = chain()
    train, unlearn, signals, decide = jobs
    state = finished(train, unlearn, dropped=True)
    assert jobs_to_do(jobs, state) == list(jobs)
    for key in (signals, decide):
        state.apply({"event": "done", "jobs": [{"key": key, "sha256": "", "bytes": 0, "seconds": 0.0}]})
    assert jobs_to_do(jobs, state) == []


def test_a_lost_artefact_brings_back_only_what_is_needed_to_make_it():
    jobs = chain()
    train, unlearn, signals, decide = jobs
    assert jobs_to_do(jobs, finished(train, unlearn, decide)) == [signals]
    assert jobs_to_do(jobs, finished(signals, decide)) == []


def stacked_chains(n: int) -> tuple[dict[str, Job], LedgerState]:
    """n chains train -> unlearn -> signals, one after another in the plan; the unlearned models are one stack."""
    jobs = []
    for i in range(n):
        train = MadeUp("train", {"i": i}, group="train")
        unlearn = MadeUp("unlearn", {"i": i}, inputs={"model": train.key}, group="unlearn", coupled=True)
        jobs += [train, unlearn, MadeUp("signals", {"i": i}, inputs={"model": unlearn.key})]
    state = LedgerState()
    state.apply({"event": "stacks", "stacks": [[job.key for job in jobs if job.kind == "unlearn"]]})
    return {job.key: job for job in jobs}, state


def test_what_another_member_of_a_stack_reads_is_made_too_wherever_it_stands_in_the_plan():
    """Else the stack would wait for it for ever."""
    jobs, state = stacked_chains(2)
    first, unlearned, signals, second, _, _ = jobs
    record = {"sha256": "", "bytes": 0, "seconds": 0.0}
    state.apply({"event": "done", "jobs": [{"key": key, **record} for key in jobs if key != signals]})
    state.apply({"event": "dropped", "keys": [key for key, job in jobs.items() if job.kind != "signals"]})
    assert jobs_to_do(jobs, state) == [first, unlearned, signals, second]


@given(st.data())
def test_all_that_a_job_to_be_done_reads_is_there_or_to_be_done(data):
    jobs, state = stacked_chains(4)
    record = {"sha256": "", "bytes": 0, "seconds": 0.0}
    done = data.draw(st.lists(st.sampled_from(list(jobs)), unique=True))
    state.apply({"event": "done", "jobs": [{"key": key, **record} for key in done]})
    heavy = [key for key in done if jobs[key].kind in HEAVY]
    state.apply({"event": "dropped", "keys": data.draw(st.lists(st.sampled_from(heavy), unique=True)) if heavy else []})
    to_do = jobs_to_do(jobs, state)
    assert to_do == [key for key in jobs if key in to_do]
    for key in to_do:
        for member in stack_members(jobs, state, key):
            assert all(state.is_available(read) or read in to_do for read in jobs[member].inputs.values())


def test_what_hangs_on_a_hopeless_job_is_not_tried():
    jobs = chain()
    train, unlearn, *_ = jobs
    assert jobs_to_do(jobs, LedgerState(), hopeless=[unlearn]) == [train]
    assert jobs_to_do(jobs, LedgerState(), hopeless=[train]) == []


@pytest.mark.parametrize("width", [1, 3, WIDTH["train"], 64])
def test_stacks_hold_one_company_and_at_most_the_width(width):
    jobs = build_graph(GAME).jobs
    for stack in form_stacks(jobs, list(jobs), LedgerState(), width):
        assert len({stack_kind(jobs[key]) for key in stack}) == 1
        assert len({jobs[key].kind for key in stack}) == 1
        assert len(stack) <= width


def test_models_of_one_learner_are_trained_together_whatever_they_are_for():
    jobs = build_graph(GAME).jobs
    trained = [key for key, job in jobs.items() if job.kind == "train"]
    stacks = [stack for stack in form_stacks(jobs, list(jobs), LedgerState(), 64) if jobs[stack[0]].kind == "train"]
    assert {jobs[key].params["role"] for key in trained} > {"target"}
    by_learner = {}
    for key in trained:
        by_learner.setdefault(identity_key(jobs[key].params["learner"]), []).append(key)
    assert sorted(map(sorted, stacks)) == sorted(map(sorted, by_learner.values()))


def test_models_on_different_data_are_never_one_stack():
    both = {**build_graph(GAME).jobs, **build_graph(replace(GAME, data_digest="another")).jobs}
    for stack in form_stacks(both, list(both), LedgerState(), 64):
        assert len({both[key].params["data"] for key in stack}) == 1


def test_shadow_models_that_one_method_unlearns_at_several_strengths_are_one_stack_and_targets_are_not():
    """Where all else is alike; a method whose members must be alike has a stack for each strength."""
    salun = Method(Named("salun", {"lr": 1e-3, "fraction": 0.5}), stacked=True)
    others = {"lr": {"lr": 1e-2, "fraction": 0.5}, "fraction": {"lr": 1e-2, "fraction": 0.1}}
    own = {f"own {n}": Method(Named("mine:Mine", {"lr": n}, "c0de"), stacked=True) for n in (1, 2)}
    methods = {"salun": salun, **{k: replace(salun, unlearner=Named("salun", p)) for k, p in others.items()}, **own}
    taught = {"aware": PlannedAdversary(Named("all-signals-aware"), ("unlearned",))}
    jobs = build_graph(replace(GAME, methods=methods, adversaries=taught)).jobs
    stacks = [stack for stack in form_stacks(jobs, list(jobs), LedgerState(), 64) if jobs[stack[0]].kind == "unlearn"]

    def together(role):
        found = [
            {str(jobs[key].unlearner.params) for key in stack if jobs[key].subject.role == role} for stack in stacks
        ]
        return sorted(map(len, filter(None, found)))

    assert together("target") == [1, 1, 1, 1, 1]
    assert together("shadow") == [1, 1, 1, 2]
    assert all(
        len({jobs[key].subject.role for key in stack}) == 1 for stack in stacks if "salun" in str(jobs[stack[0]])
    )


def test_the_tasks_do_each_job_exactly_once():
    jobs = build_graph(GAME).jobs
    state = LedgerState()
    state.apply({"event": "stacks", "stacks": form_stacks(jobs, list(jobs), state)})
    assignments = pack(jobs, list(jobs), state)
    assert sorted(key for assignment in assignments for key in assignment.wanted) == sorted(jobs)


@given(st.data())
def test_a_stack_stays_together_whatever_is_left_of_it(data):
    jobs = build_graph(GAME).jobs
    state = LedgerState()
    state.apply({"event": "stacks", "stacks": form_stacks(jobs, list(jobs), state)})
    whole = {
        assignment.jobs[0].key: assignment.jobs
        for assignment in pack(jobs, list(jobs), state)
        if assignment.jobs[0].coupled
    }
    left = data.draw(st.sets(st.sampled_from(sorted(jobs)), min_size=1))
    for assignment in pack(jobs, [key for key in jobs if key in left], state):
        assert assignment.wanted <= left
        if assignment.jobs[0].coupled:
            assert assignment.jobs == whole[assignment.jobs[0].key]


def test_jobs_that_come_later_form_stacks_of_their_own():
    before, after = build_graph(GAME).jobs, build_graph(replace(GAME, pairs=4)).jobs
    state = LedgerState()
    old = form_stacks(before, list(before), state)
    state.apply({"event": "stacks", "stacks": old})
    new = form_stacks(after, list(after), state)
    assert not {key for stack in old for key in stack} & {key for stack in new for key in stack}
    assert {key for stack in [*old, *new] for key in stack} == {key for key, job in after.items() if job.coupled}


def test_a_stack_whose_members_left_the_plan_is_formed_anew():
    jobs = {key: job for key, job in chain().items() if job.kind == "train"}
    (train,) = jobs
    state = LedgerState()
    state.apply({"event": "stacks", "stacks": [[train, "f" * 64]]})
    assert form_stacks(jobs, [train], state) == [[train]]


@pytest.mark.parametrize("kind", sorted(HEAVY))
def test_weights_are_made_only_for_those_who_read_them(kind):
    lonely = MadeUp(kind, {"n": 1})
    assert jobs_to_do({lonely.key: lonely}, LedgerState()) == []
    assert jobs_to_do({lonely.key: lonely}, LedgerState(), keep_weights=True) == [lonely.key]
    assert jobs_to_do({lonely.key: lonely}, finished(lonely.key, dropped=True), keep_weights=True) == []


def test_what_only_the_result_needs_is_done_last_so_that_no_training_waits_for_it():
    graph = build_graph(GAME)
    assignments = pack(graph.jobs, list(graph.jobs), LedgerState())
    kinds = [assignment.jobs[0].kind for assignment in assignments]
    assert kinds[0] == "train"
    assert kinds.index("initialise") == len(kinds) - 1
    assert not any(graph.initialise in job.inputs.values() for job in graph.jobs.values())


def test_decisions_wait_for_one_task_of_signals_alone():
    """So that they are made while the next models are at work, and not all at the end."""
    graph = build_graph(replace(GAME, pairs=11))
    assignments = pack(graph.jobs, list(graph.jobs), LedgerState())
    taken_by = {
        job.key: i for i, assignment in enumerate(assignments) for job in assignment.jobs if job.kind == "signals"
    }
    decisions = [assignment for assignment in assignments if assignment.jobs[0].kind == "decide"]
    assert max(len(assignment.jobs) for assignment in decisions) > 1
    for assignment in decisions:
        assert len({taken_by[job.inputs["signals"]] for job in assignment.jobs}) == 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_on_a_gpu_models_that_are_alike_are_asked_together_and_elsewhere_each_alone(tmp_path, device):
    worker = Worker(tmp_path, Sources({}))
    vars(worker.data)["device"] = SimpleNamespace(type=device)
    game = replace(GAME, adversaries=EVERY_NEED, metrics={"ic": [0, 1]})
    asked = [job for job in build_graph(game).jobs.values() if job.kind == "signals"]
    units = worker._units(asked)
    assert sorted(job.key for unit in units for job in unit) == sorted(job.key for job in asked)
    what = [{(job.subject.role, job.look_at, job.columns) for job in unit} for unit in units]
    assert all(len(same) == 1 for same in what)
    assert len(units) == (len(set.union(*what)) if device == "cuda" else len(asked))
