"""Bad Teacher: a student that starts as the original learns F from a model that knows nothing, and R from the original.

Chundawat et al. 2023: minimise the mean over a sample of R and all of F of KL(p_teacher ‖ p_student), where the teacher
is the original (competent) on R and a randomly initialised model (incompetent) on F. Labels are not used. The published
code divides by the number of classes too (`kl_div`'s default); we take the mean over examples, and Adam hardly minds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Steps, batch_positions, batches_per_epoch, check_steps, descend, own_randomness
from forgetgauge.learn.predict import outputs_of
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.unlearn.unlearner import Context


@dataclass(frozen=True)
class BadTeacher:
    """Adam on the KL divergence to the two teachers; their temperature is 1."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-6, strongest=0.01)
    published: ClassVar[Published] = Published(
        {"lr": 1e-4, "epochs": 1, "retain_share": 0.3, "batch_norm": "train"}, "Chundawat et al. 2023, their code"
    )
    needs_classes: ClassVar[bool] = True
    retain_share: float = 0.3
    """How much of R takes part, sampled once."""
    lr: float = 1e-4
    epochs: int = 1
    batch_size: int = 256
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`frozen` is eval mode; `train`, as published, moves the running statistics to the sample's and F's."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)
        if not 0 <= self.retain_share <= 1:
            raise ValueError("retain_share must lie between 0 and 1")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Teach a copy of the model."""
        streams, student = context.streams, copy.deepcopy(model)
        n_sampled = round(self.retain_share * len(retain))
        sample = retain.subset(streams.generator("sample").choice(retain.index, n_sampled, replace=False))
        both = retain.subset(np.concatenate([forget.index, sample.index]))
        with own_randomness(streams):
            ignorant = context.learner.build(retain, streams.seed("teacher")).to(retain.device)
            lessons = torch.cat([log_posterior(ignorant, forget), log_posterior(student, sample)])  # (n, K)
            student.train(self.batch_norm == "train")
            descend(
                lambda at: kl_divergence(lessons[at], student(both.x[at]).log_softmax(1)),
                student.parameters(),
                batch_positions(len(both), self.batch_size, self.epochs, streams.generator("order")),
                Steps(lr=self.lr, optimiser="adamw"),  # without decay it is Adam
                n_steps=self.epochs * batches_per_epoch(len(both), self.batch_size),
            )
        context.n_gradients += self.epochs * len(both)
        return student.eval()


def log_posterior(model: nn.Module, points: Points, temperature: float = 1.0) -> Tensor:
    """(n, K) what a teacher says, in eval mode; it never changes, so it is asked once and not at every step."""
    logits = torch.from_numpy(outputs_of(model, points)).to(points.device)
    return (logits / temperature).log_softmax(1)


def kl_divergence(teacher: Tensor, student: Tensor) -> Tensor:
    """Mean over examples of KL(teacher ‖ student), from (n, K) log-probabilities."""
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)
