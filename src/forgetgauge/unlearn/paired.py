"""Descents of language models in which every step has a batch of F and a batch of R, of all members of a stack at once.

A method brings what it minimises as a function of one step: the codes of all records of the batch, and which of them
are to be forgotten and which stay. A model alone is a stack of one.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Optimiser, Steps, batch_positions, batches_per_epoch, check_steps
from forgetgauge.learn.stacked.records import RecordStack, only_there
from forgetgauge.learn.stacked.trainer import Batch, Descent, Feed
from forgetgauge.models.condensed import DECLINED, GIVEN
from forgetgauge.plan.strength import Strength
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.unlearn.stacked import moved_records
from forgetgauge.unlearn.unlearner import Context, Request

KEEP, FORGET = 0, 1
"""What stands in the place of a label in these batches."""


@dataclass(frozen=True)
class Step:
    """One step's records, of all members."""

    codes: Tensor
    """(K, B, versions, length)."""
    lost: Tensor
    """(K, B) whether there is a record to be forgotten."""
    kept: Tensor
    """(K, B) whether there is one that stays."""

    @property
    def given(self) -> Tensor:
        """(K, B, length) all as they were given."""
        return self.codes[:, :, GIVEN]

    @property
    def declined(self) -> Tensor:
        """(K, B, length) those to be forgotten with a refusal for an answer, the others as they were given."""
        return torch.where(self.lost[..., None], self.codes[:, :, DECLINED], self.given)


def mean(values: Tensor, which: Tensor) -> Tensor:
    """(K, B), (K, B) -> (K,) mean of a member's values there; 0 where there is none."""
    return (values * which).sum(1) / which.sum(1).clamp(min=1)


@dataclass(frozen=True)
class PairedPasses:
    """How often, in what batches, by which steps; `over` says whose batches make an epoch, the others go along."""

    epochs: int
    batch_size: int
    """Points in each batch of F and in each of R."""
    steps: Steps
    over: Literal["forget", "retain"] = "forget"

    def descended(
        self, stack: RecordStack, requests: Sequence[Request], objective: Callable[[Step], Tensor]
    ) -> list[nn.Module]:
        """The members after minimising (K,) `objective(step)`; the rate is the method's strength, of which each request
        may have its own."""
        whole = requests[0].retain

        def of_step(index: Tensor, labels: Tensor, there: Tensor) -> Tensor:
            codes = only_there(whole.inputs_at(index), there)
            step = Step(codes, there & (labels == FORGET), there & (labels == KEEP))
            return objective(step)

        feeds = [Feed(self._batches(one), self._n_steps(one), lr=one.strength) for one in requests]
        Descent(stack, whole, feeds, self.steps, batch_size=2 * self.batch_size, objective=of_step).run()
        return stack.members()

    def _n_steps(self, request: Request) -> int:
        part = request.forget if self.over == "forget" else request.retain
        return self.epochs * batches_per_epoch(len(part), self.batch_size)

    def _batches(self, request: Request) -> Iterator[Batch]:
        """Each batch of the one part with a batch of the other, which is gone through again as often as needed."""
        forget, retain, streams = request.forget, request.retain, request.context.streams
        n_steps = self._n_steps(request)  # so many passes of the part that goes along are never all needed
        over_forget, over_retain = (self.epochs, n_steps) if self.over == "forget" else (n_steps, self.epochs)
        lost = batch_positions(len(forget), self.batch_size, over_forget, streams.generator("forget-order"))
        kept = batch_positions(len(retain), self.batch_size, over_retain, streams.generator("order"))
        for to_forget, to_keep in itertools.islice(zip(lost, kept, strict=False), n_steps):
            request.context.n_gradients += len(to_forget) + len(to_keep)
            index = np.concatenate([forget.index[to_forget], retain.index[to_keep]])
            yield Batch(index, np.repeat([FORGET, KEEP], [len(to_forget), len(to_keep)]))


Objective = Callable[[Step], Tensor]
"""(K,) what each member minimises at a step, differentiable in the stack's weights."""


@dataclass(frozen=True)
class PairedMethod(ABC):
    """Minimises (something of F) + retain_weight · (something of R); an epoch is one pass over F, with a batch of R
    beside each of F's."""

    task: ClassVar[str] = CAUSAL_LM.name
    strength: ClassVar[Strength] = Strength("lr", weakest=1e-6, strongest=1e-2)
    retain_weight: float = 1.0
    """w, of the part that is about R."""
    lr: float = 1e-4
    epochs: int = 5
    batch_size: int = 16
    """Records in each batch of F and in each of R."""
    optimiser: Optimiser = "adamw"

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)
        if self.retain_weight < 0:
            raise ValueError("retain_weight must not be negative")

    @abstractmethod
    def objective(self, stack: RecordStack, requests: Sequence[Request]) -> Objective:
        """What is minimised, of a stack whose weights are still the originals'."""

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Descend from a copy of the model."""
        return self.unlearn_many([Request(model, retain, forget, context)])[0]

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack."""
        passes = PairedPasses(self.epochs, self.batch_size, Steps(self.lr, optimiser=self.optimiser))
        return moved_records(
            requests, lambda stack, requests: passes.descended(stack, requests, self.objective(stack, requests))
        )
