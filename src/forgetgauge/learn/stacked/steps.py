"""The steps a twin plays: each reads values of a pass, makes one, and can be played backwards.

A step works on stacks of activations, (K, batch, height, width, channels). What it reads and makes has the name that
torch.fx gave it; backwards, it takes the gradient of what it made and adds to the gradients of what it read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from forgetgauge.learn.stacked import ops as plain_ops
from forgetgauge.learn.stacked import products
from forgetgauge.learn.stacked.group_norm import Groups, group_norm, group_norm_gradient
from forgetgauge.learn.stacked.kernels.folded import convolution as folded
from forgetgauge.learn.stacked.kernels.folded.convolution import Gated, Normed
from forgetgauge.learn.stacked.ops import Norm, Window
from forgetgauge.learn.stacked.slots import Slot

if TYPE_CHECKING:
    from forgetgauge.learn.stacked.traced import Twin

Sums = Literal["gradient", "squares"]
"""What the backward pass adds up over the examples: their gradients, or the squares of each example's own."""


@dataclass
class Play:
    """One pass over a batch."""

    values: dict[str, Tensor | Normed]
    saved: dict[str, Any] = field(default_factory=dict)
    n_valid: Tensor = field(default_factory=lambda: torch.empty(0))
    train: bool = True
    keep: bool = True
    sums: Sums = "gradient"

    @property
    def descends(self) -> bool:
        """Whether it is a step of a descent: one of many alike, for which kernels are worth compiling."""
        return self.keep and self.sums == "gradient"

    def read(self, twin: Twin, name: str) -> Tensor:
        """A value as a tensor, with any norm applied that was still to be."""
        value = self.values[name]
        if isinstance(value, Tensor):
            return value
        assert twin.machine is not None
        return folded.join(twin.machine, value, self.n_valid)


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

    def forward(self, twin: Twin, play: Play) -> None:
        raise NotImplementedError

    def backward(self, twin: Twin, play: Play, d_values: Gradients) -> None:
        raise NotImplementedError


@dataclass(eq=False)
class ConvNorm(Step):
    """relu(norm(conv(x)) + residual); norm, residual and ReLU may each be absent."""

    reads: str
    makes: str
    window: Window
    weight: Slot
    bias: Slot | None = None
    norm: tuple[str, Slot, Slot, float, float] | None = None
    """Name, γ, β, momentum, epsilon."""
    residual: str | None = None
    relu: bool = False

    @property
    def reads_all(self) -> tuple[str, ...]:
        """With the residual."""
        return (self.reads, self.residual) if self.residual else (self.reads,)

    def forward(self, twin: Twin, play: Play) -> None:
        shape = self._folded_shape(twin, play)
        if shape is not None:
            self._forward_folded(twin, play, shape)
            return
        x = play.read(twin, self.reads)
        residual = play.read(twin, self.residual) if self.residual else None
        weight = twin.parameter(self.weight)
        if self.norm is None or not play.descends:
            y = parts = products.convolve(x, weight, self.window, twin.tf32)
        else:
            n_valid = play.n_valid if play.train else None
            y, parts = twin.ops.convolve(x, weight, self.window, n_valid, twin.tf32)
        if self.bias is not None:
            y += twin.parameter(self.bias)[:, None, None, None]
        if self.norm is None:
            z = y if residual is None else y + residual
            norm, play.values[self.makes] = None, z.relu() if self.relu else z
        else:
            name, gamma, beta, momentum, epsilon = self.norm
            scales = gamma.of(twin.weights), beta.of(twin.weights)
            running, ops = twin.statistics[name], twin.ops if play.descends else plain_ops
            if play.train:
                n_pixels = y.shape[2] * y.shape[3]
                norm = ops.finish_moments(parts, play.n_valid, n_pixels, *scales, running, momentum, epsilon)
            else:
                norm = Norm.of(*running, *scales, epsilon)
            play.values[self.makes] = ops.scale_shift(y, norm, residual, self.relu)
        if play.keep:
            play.saved[self.makes] = y, norm

    def backward(self, twin: Twin, play: Play, d_values: Gradients) -> None:
        shape = self._folded_shape(twin, play)
        if shape is not None:
            self._backward_folded(twin, play, d_values, shape)
            return
        x, z, up = (
            play.read(twin, self.reads),
            play.read(twin, self.makes),
            _plain(d_values.pop(self.makes)).contiguous(),
        )
        y, norm = play.saved[self.makes]
        if self.norm is None:
            g = up * (z > 0) if self.relu else up
            down, side = g, g
        else:
            _, gamma, beta, *_ = self.norm
            d_gamma, d_beta = gamma.of(twin.gradient), beta.of(twin.gradient)
            down, side = (twin.ops if play.descends else plain_ops).norm_gradient(
                up, y, z, norm, play.n_valid, d_gamma, d_beta,
                residual=self.residual is not None, relu=self.relu, train=play.train,
            )  # fmt: skip
            if play.sums == "squares":
                _squared_scale_gradients(up, y, z, norm, play.n_valid, d_gamma, d_beta, self.relu)
        if self.residual:
            _add(d_values, self.residual, side)
        squares = play.sums == "squares"
        if self.bias is not None:
            each = down.float().sum((2, 3))  # (K, B, C)
            self.bias.of(twin.gradient).copy_((each.square() if squares else each).sum(1))
        flat = twin.gradient[:, self.weight.start : self.weight.stop]
        ops = twin.ops if self.norm is not None and play.descends else products
        if squares:
            products.weight_gradient(x, down, self.window, flat, twin.tf32, squares=True)
        else:
            ops.weight_gradient(x, down, self.window, flat, twin.tf32)
        if self.reads != twin.input:
            weight, plus = twin.parameter(self.weight), d_values.pop(self.reads, None)
            d_values[self.reads] = ops.convolve_back(down, weight, self.window, x.shape, plus, twin.tf32)

    # -- with norms folded into the convolutions ------------------------------------------------------------------

    def _folded_shape(self, twin: Twin, play: Play) -> folded.Shape | None:
        """Where the folded kernels do this step in this pass."""
        if (
            twin.machine is None
            or self.norm is None
            or play.sums != "gradient"
            or (self.window.rows, self.window.columns) != (3, 3)
        ):
            return None
        value = play.values[self.reads]
        side, other, c = (value if isinstance(value, Tensor) else value.y).shape[2:]
        shape = folded.Shape(c, self.weight.shape[-1], side, self.window.stride)
        known = (
            side == other
            and self.window == Window(3, 3, self.window.stride, 1)
            and (c >= 16 or self.reads == twin.input)
        )
        return shape if known and folded.suits(shape, twin.machine) else None

    def _forward_folded(self, twin: Twin, play: Play, shape: folded.Shape) -> None:
        assert twin.machine is not None
        assert self.norm is not None
        value = play.values[self.reads]
        if isinstance(value, Normed) and value.x is not None:
            value = value.x
        shared = len(twin.readers[self.reads]) > 1 or (isinstance(value, Normed) and value.residual is not None)
        weight = twin.parameter(self.weight)
        y, parts = folded.convolve(twin.machine, value, weight, shape, play.n_valid, write=shared)
        name, gamma, beta, momentum, epsilon = self.norm
        scales, running = (gamma.of(twin.weights), beta.of(twin.weights)), twin.statistics[name]
        if play.train:
            norm = torch.empty((len(y), 4, y.shape[-1]), device=y.device)
        else:
            given = Norm.of(*running, *scales, epsilon)
            norm = torch.stack([given.mean, given.rstd, given.scale, given.shift], 1)
        residual = play.read(twin, self.residual) if self.residual else None
        play.values[self.makes] = Normed(
            y, parts if play.train else None, norm, *scales, running, momentum, epsilon, residual, self.relu
        )

    def _backward_folded(self, twin: Twin, play: Play, d_values: Gradients, shape: folded.Shape) -> None:
        made, up = play.values[self.makes], d_values.pop(self.makes)
        assert twin.machine is not None
        assert self.norm is not None
        assert isinstance(made, Normed)
        if isinstance(up, Tensor):
            up = folded.gate(twin.machine, up, made, play.n_valid)
        if self.residual:
            _add(d_values, self.residual, up.g)
        plus = d_values.pop(self.reads, None)
        down = folded.convolve_back(
            twin.machine, up, made, play.values[self.reads], twin.parameter(self.weight), shape, play.n_valid,
            self.norm[1].of(twin.gradient), self.norm[2].of(twin.gradient),
            twin.gradient[:, self.weight.start : self.weight.stop],
            None if plus is None else _plain(plus).to(made.y.dtype).contiguous(),
            last=twin.readers[self.reads][0] is self, train=play.train,
        )  # fmt: skip
        if down is not None:
            d_values[self.reads] = down


@dataclass(eq=False)
class Linear(Step):
    """The layer is small and its products are few: float32 whatever the rest is."""

    reads: str
    makes: str
    weight: Slot
    bias: Slot | None

    def forward(self, twin: Twin, play: Play) -> None:
        out = torch.bmm(play.read(twin, self.reads).float(), self.weight.of(twin.weights).transpose(1, 2))
        if self.bias is not None:
            out += self.bias.of(twin.weights)[:, None]
        play.values[self.makes] = out

    def backward(self, twin: Twin, play: Play, d_values: Gradients) -> None:
        x, up = play.read(twin, self.reads).float(), _plain(d_values.pop(self.makes)).float()
        if self.reads != twin.input:
            _add(d_values, self.reads, torch.bmm(up, self.weight.of(twin.weights)))
        if play.sums == "squares":  # of the outer product up ⊗ x of each example
            x, up = x.square(), up.square()
        self.weight.of(twin.gradient).copy_(torch.bmm(up.transpose(1, 2), x))
        if self.bias is not None:
            self.bias.of(twin.gradient).copy_(up.sum(1))


@dataclass(eq=False)
class Other(Step):
    """A part without parameters of its own: its gradient is autograd's."""

    reads: tuple[str, ...]
    makes: str
    function: Callable[..., Tensor]

    def forward(self, twin: Twin, play: Play) -> None:
        given = [play.read(twin, name) for name in self.reads]
        if not play.keep:
            play.values[self.makes] = self.function(*given)
            return
        given = [value.detach().requires_grad_() for value in given]
        with torch.enable_grad():
            made = self.function(*given)
        play.values[self.makes], play.saved[self.makes] = made.detach(), (given, made)

    def backward(self, twin: Twin, play: Play, d_values: Gradients) -> None:
        given, made = play.saved[self.makes]
        up = _plain(d_values.pop(self.makes)).to(made.dtype)
        for name, gradient in zip(self.reads, torch.autograd.grad(made, given, up, retain_graph=True), strict=True):
            if name != twin.input:
                _add(d_values, name, gradient)


@dataclass(eq=False)
class Shortcut(Step):
    """Every stride-th pixel, with `side` channels of zeros on both sides of its own."""

    reads: str
    makes: str
    stride: int
    side: int

    def forward(self, twin: Twin, play: Play) -> None:
        thinned = play.read(twin, self.reads)[:, :, :: self.stride, :: self.stride]
        play.values[self.makes] = F.pad(thinned, (self.side, self.side))

    def backward(self, twin: Twin, play: Play, d_values: Gradients) -> None:
        up = _plain(d_values.pop(self.makes))
        if self.reads != twin.input:
            down = torch.zeros_like(play.read(twin, self.reads))
            down[:, :, :: self.stride, :: self.stride] = up[..., self.side : up.shape[-1] - self.side]
            _add(d_values, self.reads, down)


@dataclass(eq=False)
class GroupNorm(Step):
    """γ x̂ + β, groups of each example alone."""

    reads: str
    makes: str
    groups: Groups
    gamma: Slot
    beta: Slot

    def forward(self, twin: Twin, play: Play) -> None:
        gamma, beta = self.gamma.of(twin.weights), self.beta.of(twin.weights)
        play.values[self.makes], moments = group_norm(play.read(twin, self.reads), gamma, beta, self.groups)
        if play.keep:
            play.saved[self.makes] = moments

    def backward(self, twin: Twin, play: Play, d_values: Gradients) -> None:
        x, moments = play.read(twin, self.reads), play.saved[self.makes]
        up = _plain(d_values.pop(self.makes))
        down, *each = group_norm_gradient(up, x, moments, self.gamma.of(twin.weights), self.groups)
        for slot, own in zip((self.gamma, self.beta), each, strict=True):
            slot.of(twin.gradient).copy_((own.square() if play.sums == "squares" else own).sum(1))
        if self.reads != twin.input:
            _add(d_values, self.reads, down)


def _squared_scale_gradients(
    up: Tensor, y: Tensor, z: Tensor, norm: Norm, n_valid: Tensor, d_gamma: Tensor, d_beta: Tensor, relu: bool
) -> None:
    """Σ over examples of (∂/∂γ)² and (∂/∂β)²: each example's own sum over pixels, squared."""
    own = (torch.arange(y.shape[1], device=y.device) < n_valid[:, None]).view(*y.shape[:2], 1, 1, 1)
    g = up.float() * own * (z > 0 if relu else 1)
    along = (y.float() - norm.mean[:, None, None, None]) * norm.rstd[:, None, None, None]
    d_gamma.copy_((g * along).sum((2, 3)).square().sum(1))
    d_beta.copy_(g.sum((2, 3)).square().sum(1))


def _add(d_values: Gradients, name: str, gradient: Tensor | None) -> None:
    if gradient is not None:
        d_values[name] = _plain(d_values[name]) + gradient if name in d_values else gradient


def _plain(gradient: Tensor | Gated) -> Tensor:
    """Only the step that made a value is given a gradient behind its ReLU, and it knows what to do with that."""
    assert isinstance(gradient, Tensor)
    return gradient
