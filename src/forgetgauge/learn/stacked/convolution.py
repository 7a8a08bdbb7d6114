"""The step of a convolution with what follows it: batch norm, residual and ReLU, computed together.

Three ways lead to the same numbers up to rounding: the folded kernels where they know the shape, the kernels of
`kernels/ops.py` for a step of a descent, and plain torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from forgetgauge.learn.stacked import ops as plain_ops
from forgetgauge.learn.stacked.kernels.folded import convolution as folded
from forgetgauge.learn.stacked.kernels.folded.convolution import Normed
from forgetgauge.learn.stacked.ops import Norm, own_examples
from forgetgauge.learn.stacked.patches import Window
from forgetgauge.learn.stacked.steps import Gradients, Slot, Step, Tape, add_gradient, plain

if TYPE_CHECKING:
    from forgetgauge.learn.stacked.traced import TracedStack


MANY, WIDE = 2**13, 64
"""Ten ResNet-20s, whose widest layers have 64 channels, answered for 10,240 images each in 0.35 s of an H200 by
kernels, which had taken 4.5 s to compile, and in 0.71 s by products with patches (benchmarks/looks.py). A table asks
hundreds of models; where the two meet was not measured, nor were wider layers, for which a library's products are fast.
"""


@dataclass(frozen=True)
class BatchNorm:
    """A batch norm that follows a convolution."""

    name: str
    gamma: Slot
    beta: Slot
    momentum: float
    epsilon: float


@dataclass(eq=False)
class ConvNorm(Step):
    """relu(norm(conv(x)) + residual); norm, residual and ReLU may each be absent."""

    reads: str
    makes: str
    window: Window
    weight: Slot
    bias: Slot | None = None
    norm: BatchNorm | None = None
    residual: str | None = None
    relu: bool = False

    @property
    def reads_all(self) -> tuple[str, ...]:
        """With the residual."""
        return (self.reads, self.residual) if self.residual else (self.reads,)

    def forward(self, stack: TracedStack, tape: Tape) -> None:
        shape = self._folded_shape(stack, tape)
        if shape is not None:
            self._forward_folded(stack, tape, shape)
            return
        x = tape.read(self.reads)
        residual = tape.read(self.residual) if self.residual else None
        weight = stack.parameter(self.weight)
        ops = self._ops(stack, tape)
        y, parts = ops.convolve(x, weight, self.window, tape.n_valid if tape.train else None, stack.tf32)
        if self.bias is not None:
            y += stack.parameter(self.bias)[:, None, None, None]
        if self.norm is None:
            z = y if residual is None else y + residual
            norm, tape.values[self.makes] = None, z.relu() if self.relu else z
        else:
            own, scales, running = self.norm, *self._scales(stack)
            if tape.train:
                n_pixels = y.shape[2] * y.shape[3]
                norm = ops.finish_moments(parts, tape.n_valid, n_pixels, *scales, running, own.momentum, own.epsilon)
            else:
                norm = Norm.of(*running, *scales, own.epsilon)
            tape.values[self.makes] = ops.scale_shift(y, norm, residual, self.relu)
        if tape.keep:
            tape.saved[self.makes] = y, norm

    def backward(self, stack: TracedStack, tape: Tape, d_values: Gradients) -> None:
        shape = self._folded_shape(stack, tape)
        if shape is not None:
            self._backward_folded(stack, tape, d_values, shape)
            return
        x, z, up = tape.read(self.reads), tape.read(self.makes), plain(d_values.pop(self.makes)).contiguous()
        (y, norm), ops = tape.saved[self.makes], self._ops(stack, tape)
        if self.norm is None:
            g = up * (z > 0) if self.relu else up
            down, side = g, g
        else:
            d_gamma, d_beta = self.norm.gamma.of(stack.gradient), self.norm.beta.of(stack.gradient)
            down, side = ops.norm_gradient(
                up, y, z, norm, tape.n_valid, d_gamma, d_beta,
                residual=self.residual is not None, relu=self.relu, train=tape.train,
            )  # fmt: skip
            if tape.sums == "squares":
                _squared_scale_gradients(up, y, z, norm, tape.n_valid, d_gamma, d_beta, self.relu)
        if self.residual:
            add_gradient(d_values, self.residual, side)
        squares = tape.sums == "squares"
        if self.bias is not None:
            each = down.float().sum((2, 3))  # (K, B, C)
            self.bias.of(stack.gradient).copy_((each.square() if squares else each).sum(1))
        flat = stack.gradient[:, self.weight.start : self.weight.stop]
        if squares:
            plain_ops.weight_gradient(x, down, self.window, flat, stack.tf32, squares=True)
        else:
            ops.weight_gradient(x, down, self.window, flat, stack.tf32)
        if self.reads != stack.input:
            weight, plus = stack.parameter(self.weight), d_values.pop(self.reads, None)
            d_values[self.reads] = ops.convolve_back(down, weight, self.window, x.shape, plus, stack.tf32)

    def _ops(self, stack: TracedStack, tape: Tape) -> Any:
        """The kernels, where they are faster: before a batch norm, in a descent, which is long, or where points of a
        large data set are looked at, in layers that are not wide. Which models are looked at together decides nothing:
        that hangs on when a run was interrupted."""
        looks = not tape.keep and stack.looks_at >= MANY and max(self.weight.shape[-2:]) <= WIDE
        return stack.ops if self.norm is not None and (tape.descends or looks) else plain_ops

    def _scales(self, stack: TracedStack) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """(γ, β) and the running (mean, variance) of its norm, (K, C) each."""
        assert self.norm is not None
        return (self.norm.gamma.of(stack.weights), self.norm.beta.of(stack.weights)), stack.statistics[self.norm.name]

    # -- with norms folded into the convolutions ------------------------------------------------------------------

    def _folded_shape(self, stack: TracedStack, tape: Tape) -> folded.Shape | None:
        """The shape, where the folded kernels compute this step in this pass."""
        if tape.machine is None or self.norm is None or tape.sums != "gradient" or self.window.kernel != (3, 3):
            return None
        value = tape.values[self.reads]
        side, other, c = (value if isinstance(value, Tensor) else value.y).shape[2:]
        stride = self.window.stride[0]
        shape = folded.Shape(c, self.weight.shape[-1], side, stride)
        known = (
            side == other
            and self.window == Window((3, 3), (stride, stride), (1, 1))
            and (c >= 16 or self.reads == stack.input)
        )
        return shape if known and folded.suits(shape, tape.machine) else None

    def _forward_folded(self, stack: TracedStack, tape: Tape, shape: folded.Shape) -> None:
        assert tape.machine is not None
        assert self.norm is not None
        value = tape.values[self.reads]
        if isinstance(value, Normed) and value.x is not None:
            value = value.x
        shared = len(stack.readers[self.reads]) > 1 or (isinstance(value, Normed) and value.residual is not None)
        weight = stack.parameter(self.weight)
        y, parts = folded.convolve(tape.machine, value, weight, shape, tape.n_valid, write=shared)
        own, scales, running = self.norm, *self._scales(stack)
        if tape.train:
            norm = torch.empty((len(y), 4, y.shape[-1]), device=y.device)
        else:
            given = Norm.of(*running, *scales, own.epsilon)
            norm = torch.stack([given.mean, given.rstd, given.scale, given.shift], 1)
        residual = tape.read(self.residual) if self.residual else None
        tape.values[self.makes] = Normed(
            y, parts if tape.train else None, norm, *scales, running, own.momentum, own.epsilon, residual, self.relu
        )

    def _backward_folded(self, stack: TracedStack, tape: Tape, d_values: Gradients, shape: folded.Shape) -> None:
        made, up = tape.values[self.makes], d_values.pop(self.makes)
        assert tape.machine is not None
        assert self.norm is not None
        assert isinstance(made, Normed)
        if isinstance(up, Tensor):
            up = folded.gate(tape.machine, up, made, tape.n_valid)
        if self.residual:
            add_gradient(d_values, self.residual, up.g)
        plus = d_values.pop(self.reads, None)
        down = folded.convolve_back(
            tape.machine, up, made, tape.values[self.reads], stack.parameter(self.weight), shape, tape.n_valid,
            self.norm.gamma.of(stack.gradient), self.norm.beta.of(stack.gradient),
            stack.gradient[:, self.weight.start : self.weight.stop],
            None if plus is None else plain(plus).to(made.y.dtype).contiguous(),
            last=stack.readers[self.reads][0] is self, train=tape.train,
        )  # fmt: skip
        if down is not None:
            d_values[self.reads] = down


def _squared_scale_gradients(
    up: Tensor, y: Tensor, z: Tensor, norm: Norm, n_valid: Tensor, d_gamma: Tensor, d_beta: Tensor, relu: bool
) -> None:
    """Σ over examples of (∂/∂γ)² and (∂/∂β)²: each example's own sum over pixels, squared."""
    own = own_examples(y, n_valid)
    g = up.float() * own * (z > 0 if relu else 1)
    along = (y.float() - norm.mean[:, None, None, None]) * norm.rstd[:, None, None, None]
    d_gamma.copy_((g * along).sum((2, 3)).square().sum(1))
    d_beta.copy_(g.sum((2, 3)).square().sum(1))
