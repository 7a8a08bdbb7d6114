"""The steps that a traced stack computes: each reads values of a pass, makes one, and knows its own gradient.

A step works on stacks of activations, (K, batch, height, width, channels). What it reads and makes has the name that
torch.fx gave it; backwards, it takes the gradient of what it made and adds to the gradients of what it read. Weights
lie in one row for each member, (K, P), each parameter in its slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from forgetgauge.learn.stacked.group_norm import Groups, group_norm, group_norm_gradient
from forgetgauge.learn.stacked.kernels.folded import convolution as folded
from forgetgauge.learn.stacked.kernels.folded.convolution import Gated, Normed
from forgetgauge.learn.stacked.kernels.folded.machine import Machine

if TYPE_CHECKING:
    from forgetgauge.learn.stacked.traced import TracedStack

ALIGNMENT = 16
"""Every parameter begins at a multiple of this, so that a GPU can read it in wide pieces; the gaps stay 0."""


@dataclass(frozen=True)
class Slot:
    """Where a parameter lies in a member's row, and how it is turned: convolution weights have their outputs last."""

    start: int
    shape: tuple[int, ...]
    """In the stack's own order of axes."""
    order: tuple[int, ...]
    """own.shape[i] = model.shape[order[i]]."""

    @property
    def stop(self) -> int:
        """One past its last place."""
        return self.start + math.prod(self.shape)

    def of(self, rows: Tensor) -> Tensor:
        """(K, *shape) view of rows (K, P)."""
        return rows[:, self.start : self.stop].view(len(rows), *self.shape)

    def to_model(self, rows: Tensor) -> Tensor:
        """(K, *model shape): the parameter as the model has it."""
        back = [self.order.index(axis) + 1 for axis in range(len(self.order))]
        return self.of(rows).permute(0, *back)

    def from_model(self, stacked: Tensor) -> Tensor:
        """The inverse, flat: (K, size)."""
        return stacked.permute(0, *(axis + 1 for axis in self.order)).reshape(len(stacked), -1)


Sums = Literal["gradient", "squares"]
"""What the backward pass adds up over the examples: their gradients, or the squares of each example's own."""


@dataclass
class Tape:
    """One pass over a batch: how it is made, and what the backward pass needs of the forward pass."""

    values: dict[str, Tensor | Normed]
    """By the names of torch.fx."""
    n_valid: Tensor
    """(K,) how many examples of each member's batch are its own; the rest is padding."""
    machine: Machine | None
    """What runs the folded kernels, where they are used."""
    train: bool
    """Whether batch norms use the statistics of the batch."""
    keep: bool
    """Whether a backward pass follows."""
    sums: Sums
    saved: dict[str, Any] = field(default_factory=dict)
    """What a step keeps for its gradient, by the name of what it makes."""

    @property
    def descends(self) -> bool:
        """Whether it is a step of a descent: one of many alike, for which kernels are worth compiling."""
        return self.keep and self.sums == "gradient"

    def read(self, name: str) -> Tensor:
        """A value as a tensor, with any norm applied that was still to be."""
        value = self.values[name]
        if isinstance(value, Tensor):
            return value
        assert self.machine is not None
        return folded.join(self.machine, value, self.n_valid)


Gradients = dict[str, Tensor | Gated]
"""Of the values of a pass, by their names."""


class Step:
    """A part of the network: reads some values, makes one."""

    makes: str

    @property
    def reads_all(self) -> tuple[str, ...]:
        """The names of all values it reads."""
        reads: str | tuple[str, ...] = self.reads  # type: ignore[attr-defined]
        return (reads,) if isinstance(reads, str) else reads

    def forward(self, stack: TracedStack, tape: Tape) -> None:
        """Put what it makes into `tape.values`."""
        raise NotImplementedError

    def backward(self, stack: TracedStack, tape: Tape, d_values: Gradients) -> None:
        """Take the gradient of what it made, add to those of what it read, write those of its parameters."""
        raise NotImplementedError


@dataclass(eq=False)
class Linear(Step):
    """A linear layer: small, and its products are few, so float32 whatever the rest is."""

    reads: str
    makes: str
    weight: Slot
    bias: Slot | None

    def forward(self, stack: TracedStack, tape: Tape) -> None:
        out = torch.bmm(tape.read(self.reads).float(), self.weight.of(stack.weights).transpose(1, 2))
        if self.bias is not None:
            out += self.bias.of(stack.weights)[:, None]
        tape.values[self.makes] = out

    def backward(self, stack: TracedStack, tape: Tape, d_values: Gradients) -> None:
        x, up = tape.read(self.reads).float(), plain(d_values.pop(self.makes)).float()
        if self.reads != stack.input:
            add_gradient(d_values, self.reads, torch.bmm(up, self.weight.of(stack.weights)))
        if tape.sums == "squares":  # of the outer product up ⊗ x of each example
            x, up = x.square(), up.square()
        self.weight.of(stack.gradient).copy_(torch.bmm(up.transpose(1, 2), x))
        if self.bias is not None:
            self.bias.of(stack.gradient).copy_(up.sum(1))


@dataclass(eq=False)
class Other(Step):
    """A part without parameters of its own: its gradient is autograd's."""

    reads: tuple[str, ...]
    makes: str
    function: Callable[..., Tensor]

    def forward(self, stack: TracedStack, tape: Tape) -> None:
        given = [tape.read(name) for name in self.reads]
        if not tape.keep:
            tape.values[self.makes] = self.function(*given)
            return
        given = [value.detach().requires_grad_() for value in given]
        with torch.enable_grad():
            made = self.function(*given)
        tape.values[self.makes], tape.saved[self.makes] = made.detach(), (given, made)

    def backward(self, stack: TracedStack, tape: Tape, d_values: Gradients) -> None:
        given, made = tape.saved[self.makes]
        up = plain(d_values.pop(self.makes)).to(made.dtype)
        for name, gradient in zip(self.reads, torch.autograd.grad(made, given, up, retain_graph=True), strict=True):
            if name != stack.input:
                add_gradient(d_values, name, gradient)


@dataclass(eq=False)
class Shortcut(Step):
    """Every stride-th pixel, with `side` channels of zeros on both sides of its own."""

    reads: str
    makes: str
    stride: int
    side: int

    def forward(self, stack: TracedStack, tape: Tape) -> None:
        thinned = tape.read(self.reads)[:, :, :: self.stride, :: self.stride]
        tape.values[self.makes] = F.pad(thinned, (self.side, self.side))

    def backward(self, stack: TracedStack, tape: Tape, d_values: Gradients) -> None:
        up = plain(d_values.pop(self.makes))
        if self.reads != stack.input:
            down = torch.zeros_like(tape.read(self.reads))
            down[:, :, :: self.stride, :: self.stride] = up[..., self.side : up.shape[-1] - self.side]
            add_gradient(d_values, self.reads, down)


@dataclass(eq=False)
class GroupNorm(Step):
    """γ x̂ + β, groups of each example alone."""

    reads: str
    makes: str
    groups: Groups
    gamma: Slot
    beta: Slot

    def forward(self, stack: TracedStack, tape: Tape) -> None:
        gamma, beta = self.gamma.of(stack.weights), self.beta.of(stack.weights)
        tape.values[self.makes], moments = group_norm(tape.read(self.reads), gamma, beta, self.groups)
        if tape.keep:
            tape.saved[self.makes] = moments

    def backward(self, stack: TracedStack, tape: Tape, d_values: Gradients) -> None:
        x, moments = tape.read(self.reads), tape.saved[self.makes]
        up = plain(d_values.pop(self.makes))
        down, *each = group_norm_gradient(up, x, moments, self.gamma.of(stack.weights), self.groups)
        for slot, own in zip((self.gamma, self.beta), each, strict=True):
            slot.of(stack.gradient).copy_((own.square() if tape.sums == "squares" else own).sum(1))
        if self.reads != stack.input:
            add_gradient(d_values, self.reads, down)


def add_gradient(d_values: Gradients, name: str, gradient: Tensor | None) -> None:
    """Add to the gradient of a value; None adds nothing."""
    if gradient is not None:
        d_values[name] = plain(d_values[name]) + gradient if name in d_values else gradient


def plain(gradient: Tensor | Gated) -> Tensor:
    """A gradient as a tensor: only the step that made a value is ever given one that has passed its ReLU."""
    assert isinstance(gradient, Tensor)
    return gradient
