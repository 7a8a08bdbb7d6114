"""Which jobs are done together.

A stack's members are fixed when they are first planned and written into the ledger before any of them begins: an
interrupted stack is done again whole, and jobs that come later form stacks of their own. So a model never depends on
when a run was interrupted.

A stack that memory is too small for is done in parts half as wide, and half again, down to single models: nobody knows
before how much a model of the user's own takes; a failed attempt costs a step, a run that stops costs a night. The
parts that ran are written into the ledger, so that who goes on, or does one of them again, does the same.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from forgetgauge.plan.jobs import HEAVY, USES_TORCH, Job, Kind, TrainJob, UnlearnJob
from forgetgauge.plan.subjects import Shadow
from forgetgauge.run.algorithms import strength_in_stack
from forgetgauge.run.assignments import Assignment
from forgetgauge.store.ledger import LedgerState
from forgetgauge.streams import identity_key

WIDTH: dict[Kind, int] = {
    "initialise": 1,
    "train": 16,
    "unlearn": 16,
    "signals": 16,
    "fit": 1,
    "decide": 16,
    "try-model": 1,
    "try-adversary": 1,
}
"""Most jobs in one assignment. A model of the embedded run, five epochs on one thread, took 206 ms alone and 81, 62 and
51 ms in a stack of 8, 16 and 32: beyond 16 little is gained, and several stacks keep several processes busy. As many
decisions as signals: they begin when one assignment of signals is done."""

STACK_ON_GPU = 64
"""Most models in one stack on a GPU, which small models leave idle otherwise."""
LANGUAGE_MODELS_ON_GPU = 32
"""The same of language models: sixteen fill a GPU, and their activations its memory soon after."""


def stack_width(device: str, *, deterministic: bool = False, of_records: bool = False) -> int:
    """The width of new stacks, which may be of language models; those in the ledger stay as they are, wherever the run
    goes on.

    A member's last bits depend on how wide its stack is (float additions in another order). Deterministic is every
    model alone: its bits are then its own, whatever else is in the run.
    """
    if deterministic:
        return 1
    on_gpu = LANGUAGE_MODELS_ON_GPU if of_records else STACK_ON_GPU
    return on_gpu if device.startswith("cuda") else WIDTH["train"]


def jobs_to_do(
    jobs: dict[str, Job], state: LedgerState, *, hopeless: Collection[str] = (), keep_weights: bool = False
) -> list[str]:
    """Keys of the jobs that must be done, inputs first.

    Wanted are all light artefacts (signals, fits, decisions). Weights are wanted where something that must be done
    reads them, and, with `keep_weights`, where they were never dropped. `hopeless` jobs failed for good: neither they
    nor what hangs on them is done.
    """
    needed: set[str] = {
        key for key, job in jobs.items() if job.kind not in HEAVY or (keep_weights and key not in state.done)
    }
    wanted: set[str] = set()
    open_ones = list(needed)
    while open_ones:  # not in one pass: what a member of a stack reads may stand behind another member in the plan
        key = open_ones.pop()
        if key not in wanted and not state.is_available(key):
            wanted.add(key)
            members = [jobs[member] for member in stack_members(jobs, state, key)]
            open_ones += [read for job in members for read in job.inputs.values()]
    blocked = _blocked(jobs, state, wanted, hopeless) if hopeless else set()
    return [key for key in jobs if key in wanted and key not in blocked]


def _blocked(
    jobs: Mapping[str, Job], state: LedgerState, to_do: Collection[str], hopeless: Collection[str]
) -> set[str]:
    """What hangs on hopeless jobs, itself or by a member of its stack, which is done whole or not at all."""
    blocked, n_before = set(hopeless), -1
    while len(blocked) > n_before:
        n_before = len(blocked)
        for key, job in jobs.items():
            reads = set(job.inputs.values())
            if job.coupled and key in to_do:
                reads.update(
                    read for member in stack_members(jobs, state, key) for read in jobs[member].inputs.values()
                )
            if not blocked.isdisjoint(reads):
                blocked.add(key)
    return blocked


def stack_members(jobs: Mapping[str, Job], state: LedgerState, key: str) -> tuple[str, ...]:
    """The job's stack as the ledger has it; the job alone where it has none, or where the plan lost a member."""
    members = state.stack_of.get(key, (key,))
    return members if all(member in jobs for member in members) else (key,)


def form_stacks(
    jobs: Mapping[str, Job], to_do: Iterable[str], state: LedgerState, width: int = WIDTH["train"], n_gpus: int = 1
) -> list[list[str]]:
    """New stacks for the coupled jobs that are in none yet: at most `width` models each, and with several GPUs so many
    that all have work."""
    loose = [key for key in to_do if jobs[key].coupled and stack_members(jobs, state, key) == (key,)]
    fresh = [key for key in loose if state.stack_of.get(key) != (key,)]
    groups = _groups(jobs, fresh)
    share = _shares(jobs, groups, n_gpus)
    widths = [min(width, share[_reads_a_model(jobs, group)]) for group in groups]
    return [list(chunk) for group, most in zip(groups, widths, strict=True) for chunk in cut(group, most)]


def _shares(jobs: Mapping[str, Job], groups: Iterable[list[str]], n_gpus: int) -> dict[bool, int]:
    """How many models are one GPU's part: of those that are made of a model, and of those that are made of none.

    The latter can all begin at once, and take longest. A narrower stack makes fewer models a second, but six
    ResNet-20s still have 80 % of the pace of sixteen (docs/performance.md): a GPU that is idle has none.
    """
    total = {True: 0, False: 0}
    for group in groups:
        total[_reads_a_model(jobs, group)] += len(group)
    return {reads: max(1, -(-n // n_gpus)) for reads, n in total.items()}


def _reads_a_model(jobs: Mapping[str, Job], group: list[str]) -> bool:
    return "model" in jobs[group[0]].inputs


def stack_kind(job: Job) -> str:
    """Jobs of one kind in this sense may stand in one stack.

    Originals, shadows and references of one learner on one data set are made alike, whatever they are for and on
    however many points (a learner that cannot stack sets of different sizes splits them itself). So are shadow models
    that one method unlearns at several strengths, where it can: not targets, whose seconds are shown. And models that
    were taught labels of their own, each its own; but those keep to themselves, so that asking for them leaves the
    stacks of the game, and with them its bits, as they were.
    """
    if not isinstance(job, TrainJob | UnlearnJob):
        return job.group
    alike = {what: named.identity for what, named in job.choices}
    if isinstance(job, UnlearnJob) and isinstance(job.subject, Shadow) and (apart := strength_in_stack(job.unlearner)):
        params = {key: value for key, value in job.unlearner.params.items() if key != apart}
        alike["unlearner"] = {**replace(job.unlearner, params=params).identity, "at any": apart}
    own_labels = job.subject.exchanged is not None
    return identity_key({"kind": job.kind, **alike, "data": job.halves.data, "own labels": own_labels})


def pack(
    jobs: Mapping[str, Job], to_do: Collection[str], state: LedgerState, width: int = WIDTH["train"]
) -> list[Assignment]:
    """The assignments that do `to_do`, in the order of the plan; what models say is asked of at most `width` at once.

    What only the result needs comes last: a GPU's worker does it while others decide.
    """
    assignments: dict[str, Assignment] = {}
    free = [key for key in to_do if not jobs[key].coupled]
    for group in _groups(jobs, free):
        kind = jobs[group[0]].kind
        for chunk in cut(group, min(width, WIDTH[kind]) if kind in USES_TORCH else WIDTH[kind]):
            assignments[chunk[0]] = Assignment(tuple(jobs[key] for key in chunk), frozenset(chunk))
    wanted = set(to_do)
    for key in to_do:
        if jobs[key].coupled:
            members = stack_members(jobs, state, key)
            assignments[members[0]] = Assignment(
                tuple(jobs[m] for m in members), frozenset(wanted.intersection(members))
            )
    order = {key: place for place, key in enumerate(jobs)}
    return [
        assignments[first]
        for first in sorted(assignments, key=lambda key: (jobs[key].kind == "initialise", order[key]))
    ]


def _groups(jobs: Mapping[str, Job], keys: Iterable[str]) -> list[list[str]]:
    """Jobs of one `stack_kind` whose inputs can be ready at the same time, in the order of the plan.

    They can where the inputs are of one kind too, and theirs, and so on: decisions about one method do not wait for
    the models of another.
    """
    groups: dict[str, list[str]] = {}
    descent: dict[str, str] = {}
    for key, job in jobs.items():  # inputs come before the jobs that read them
        makers = sorted({descent[read] for read in job.inputs.values() if read in descent})
        descent[key] = identity_key({"kind": stack_kind(job), "makers": makers})
    for key in keys:
        groups.setdefault(descent[key], []).append(key)
    return list(groups.values())


# -- stacks that are too wide for the memory ---------------------------------------------------------------------------

Member = TypeVar("Member")
Made = TypeVar("Made")


def in_parts(
    stack: tuple[Member, ...], do: Callable[[tuple[Member, ...]], Made]
) -> list[tuple[tuple[Member, ...], Made]]:
    """(part, what `do` made of it) one after the other: the whole stack as one part, unless that took too much."""
    done: list[tuple[tuple[Member, ...], Made]] = []
    waiting = [stack]
    while waiting:
        part = waiting.pop(0)
        try:
            done.append((part, do(part)))
            continue
        except Exception as error:
            if len(part) == 1 or not is_out_of_memory(error):
                raise
        forget_unused()  # after `except`: the error's frames held on to all they had allocated
        rest = [member for left in (part, *waiting) for member in left]
        waiting = cut(rest, -(-len(part) // 2))
    return done


def cut(members: list[Member], width: int) -> list[tuple[Member, ...]]:
    """Parts of at most so many, in their order."""
    return [tuple(members[start : start + width]) for start in range(0, len(members), width)]


def by_strength(stack: tuple[Job, ...]) -> list[tuple[Job, ...]]:
    """The members at each strength, where there are several: one that fails is not to take the others with it."""
    found: dict[str, list[Job]] = {}
    for job in stack:
        found.setdefault(identity_key({what: named.identity for what, named in job.choices}), []).append(job)
    return [tuple(members) for members in found.values()]


def halved(assignment: Assignment) -> list[list[str]]:
    """Keys of the two stacks that are tried in place of one whose process was ended because memory was short."""
    keys = [job.key for job in assignment.jobs]
    return [list(part) for part in cut(keys, -(-len(keys) // 2))]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether narrower work might succeed."""
    if "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from forgetgauge.learn import device

    try:
        return device.is_out_of_memory(error)
    except Exception:  # its text cannot be had
        return False


def forget_unused() -> None:
    """Give cached memory back, so that the next attempt finds it in one piece."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        with suppress(RuntimeError):  # after a capture that failed some versions refuse it
            torch.cuda.empty_cache()
