"""The folded kernels, called with tensors: `convolve`, its gradients, and norms where no convolution does them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from forgetgauge.learn.stacked.kernels.folded.machine import Machine

_pointer, _long, _int, _float = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int, ctypes.c_float


@dataclass
class Normed:
    """What a convolution made, with relu(norm(y) + residual) still to be applied: whoever reads it first does so."""

    y: Tensor
    parts: Tensor | None
    """(K, n, 2, C) sums of y and y², of which the norm is still to be made; its first reader makes it."""
    norm: Tensor
    """(K, 4, C) mean, 1 / deviation, scale, shift."""
    gamma: Tensor
    beta: Tensor
    running: tuple[Tensor, Tensor]
    momentum: float
    epsilon: float
    residual: Tensor | None
    relu: bool
    x: Tensor | None = None
    """The value itself, where it was written."""


@dataclass(frozen=True)
class Gated:
    """A gradient behind the ReLU of what it belongs to, and the sums its norm needs: (K, n, 2, C)."""

    g: Tensor
    sums: Tensor


@dataclass(frozen=True)
class Shape:
    """Of a convolution with a window of three by three and a border of one."""

    channels_in: int
    channels_out: int
    side: int
    stride: int

    @property
    def out(self) -> int:
        """Side of what it makes."""
        return self.side // self.stride


@dataclass(frozen=True)
class Plan:
    """How a kernel is cut up: images at a time, channels in and warps of a block, blocks on a multiprocessor, bytes."""

    images: int
    slice: int
    warps: int
    blocks: int
    shared_bytes: int

    def defines(self, shape: Shape) -> dict[str, int]:
        return {
            "CI": shape.channels_in, "CO": shape.channels_out, "SIDE": shape.side, "STRIDE": shape.stride,
            "IMAGES": self.images, "SLICE": self.slice, "WARPS": self.warps, "BLOCKS": self.blocks,
        }  # fmt: skip


WARPS = 8
"""Of a block."""


# -- Which shapes there are kernels for ------------------------------------------------------------------------------


def plan(shape: Shape, machine: Machine, *, backward: bool) -> Plan | None:
    """None where there is none for the shape, or the machine has too little shared memory."""
    ci, co, out = shape.channels_in, shape.channels_out, shape.out
    if (ci > 3 and ci not in (16, 32, 64)) or co not in (16, 32, 64) or shape.side % shape.stride or shape.stride > 2:
        return None
    deep = max(16, ci)
    part = min(deep, 1024 // co) if backward else deep
    plans = []
    for images in (1, 2, 4, 8):
        size = _bytes(shape, images, part, backward)
        if _divides(shape, images, part, backward) and size <= machine.shared_per_block:
            room = machine.shared_per_multiprocessor // (size + 1024)
            plans.append(Plan(images, part, WARPS, max(1, min(room, 2 if backward else 3)), size))
    return max(
        plans, key=lambda how: (how.blocks, how.images if how.images * out * out <= 256 else -how.images), default=None
    )


def suits(shape: Shape, machine: Machine) -> bool:
    """Whether there are kernels for the shape, both ways."""
    return all(plan(shape, machine, backward=backward) is not None for backward in (False, True))


def compile_all(machine: Machine, shapes: Iterable[Shape]) -> None:
    """Ahead of their first use and side by side: what takes a second each takes little more together."""
    wanted: list[tuple[str, dict[str, int]]] = []
    for shape in {shape for shape in shapes if suits(shape, machine)}:
        ways = (plan(shape, machine, backward=backward) for backward in (False, True))
        forward, backward = (how.defines(shape) for how in ways if how is not None)
        wanted += [("convolution.cu", forward), ("convolution.cu", backward | {"BACKWARD": 1})]
        wanted += [("norm.cu", {"DEPTH": shape.channels_out, "WARPS": WARPS})]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda one: machine.compile(*one), wanted))


def _divides(shape: Shape, images: int, part: int, backward: bool) -> bool:
    """Whether every thread loads, and every warp multiplies, equally many whole pieces (as convolution.cu asserts)."""
    pixels, co = images * shape.out**2, shape.channels_out
    loads = shape.channels_in < 16 or _rounds(images, shape.side, part, 4)
    if pixels % 16 or not backward:
        return loads and pixels % 16 == 0 and _tiles(pixels, co, WARPS)
    for_weights = WARPS // 2 if shape.channels_in >= 16 else WARPS
    shares = for_weights // (part * co // 256)
    multiplies = pixels // 16 % shares == 0 and (shape.channels_in < 16 or _tiles(pixels, part, WARPS // 2))
    return loads and _rounds(images, shape.out, co, 2) and multiplies


def _tiles(pixels: int, channels: int, warps: int) -> bool:
    """Whether the rows of a product are the same number of whole tiles for every warp."""
    mine, rest = divmod(pixels // 16, warps // max(1, channels // 32))
    return rest == 0 and mine > 0 and mine % min(4 if channels == 16 else 2, mine) == 0


def _rounds(images: int, side: int, channels: int, at_once: int) -> bool:
    """Whether images are loaded in whole rounds of whole lines, eight channels a thread."""
    lines, rest = divmod(32 * WARPS, channels // 8 * side)
    rounds, left = divmod(images * side, max(1, lines))
    return rest == left == 0 and rounds > 0 and rounds % min(rounds, at_once) == 0


def _bytes(shape: Shape, images: int, part: int, backward: bool) -> int:
    co = shape.channels_out
    tile = images * _bordered(shape.side) * (2 * part + 16)
    weights = 9 * part * (2 * co + 16)
    if not backward:
        return tile + weights + 16 * part
    gradient = images * _bordered(shape.out) * (2 * co + 16)
    return tile + gradient + (weights if shape.channels_in >= 16 else 0) + 16 * part + 12 * co


def _bordered(side: int) -> int:
    """Pixels of an image with its border, of which neighbouring rows share one."""
    return (side + 2) * (side + 1) + 1


def _parts(machine: Machine, blocks: int, k: int, batch: int, images: int) -> tuple[int, int]:
    """(blocks that share a member's batch, images of each): as many as run at once, if that is possible."""
    at_once = max(1, machine.multiprocessors * blocks // k)
    each = -(-batch // at_once)
    each = -(-each // images) * images
    return -(-batch // each), each


# -- What the kernels are given --------------------------------------------------------------------------------------


class _Made(ctypes.Structure):
    _fields_ = [
        *((name, _pointer) for name in ("source", "residual", "joined", "norm", "parts", "gamma", "beta")),
        ("running_mean", _pointer), ("running_var", _pointer), ("scale_stride", _long),
        ("n_parts", _int), ("relu", _int), ("momentum", _float), ("epsilon", _float),
    ]  # fmt: skip


class _Forward(ctypes.Structure):
    _fields_ = [
        ("x", _Made), *((name, _pointer) for name in ("weight", "n_valid", "out", "parts_out")),
        ("weight_stride", _long), ("batch", _int), ("per_part", _int),
    ]  # fmt: skip


class _Backward(ctypes.Structure):
    _fields_ = [
        *((name, _pointer) for name in ("up", "y", "norm", "sums", "d_gamma", "d_beta", "source", "norm_in", "plus")),
        *((name, _pointer) for name in ("y_in", "down", "sums_out", "weight", "d_weight", "n_valid")),
        ("scale_stride", _long), ("weight_stride", _long),
        *((name, _int) for name in ("n_sums", "batch", "per_part", "relu", "raw", "train")),
    ]  # fmt: skip


class _Join(ctypes.Structure):
    _fields_ = [("x", _Made), ("n_valid", _pointer), ("batch", _int), ("n_pixels", _int), ("per_part", _int)]


class _Gate(ctypes.Structure):
    _fields_ = [
        *((name, _pointer) for name in ("up", "x", "y", "norm", "out", "parts_out", "n_valid")),
        *((name, _int) for name in ("batch", "n_pixels", "per_part", "relu")),
    ]  # fmt: skip


def _at(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.data_ptr()


def _made(value: Normed | Tensor, joined: Tensor | None) -> _Made:
    if isinstance(value, Tensor):
        return _Made(source=_at(value))
    return _Made(
        _at(value.y), _at(value.residual), _at(joined), _at(value.norm), _at(value.parts),
        _at(value.gamma), _at(value.beta), *map(_at, value.running), value.gamma.stride(0),
        0 if value.parts is None else value.parts.shape[1], value.relu, value.momentum, value.epsilon,
    )  # fmt: skip


def _applied(value: Normed | Tensor, joined: Tensor | None) -> None:
    """After the launch: the norm is made once."""
    if isinstance(value, Normed):
        value.parts, value.x = None, joined


# -- The same, called with tensors -----------------------------------------------------------------------------------


def convolve(
    machine: Machine, value: Normed | Tensor, weight: Tensor, shape: Shape, n_valid: Tensor, *, write: bool
) -> tuple[Tensor, Tensor]:
    """y (K, B, side, side, Co) in bfloat16 and the sums its norm is made of; with `write`, the value read is kept."""
    how = plan(shape, machine, backward=False)
    assert how is not None
    source = value if isinstance(value, Tensor) else value.y
    k, batch = source.shape[:2]
    n_parts, per_part = _parts(machine, how.blocks, k, batch, how.images)
    y = torch.empty((k, batch, shape.out, shape.out, shape.channels_out), device=source.device, dtype=source.dtype)
    parts = torch.empty((k, n_parts, 2, shape.channels_out), device=source.device)
    joined = torch.empty_like(source) if write and isinstance(value, Normed) else None
    given = _Forward(
        _made(value, joined), _at(weight), _at(n_valid), _at(y), _at(parts), weight.stride(0), batch, per_part
    )
    machine.kernel("convolution.cu", "forward", how.defines(shape), how.shared_bytes)(given, (n_parts, k, 1))
    _applied(value, joined)
    return y, parts


def convolve_back(
    machine: Machine, up: Gated, made: Normed, value: Normed | Tensor, weight: Tensor, shape: Shape, n_valid: Tensor,
    d_gamma: Tensor, d_beta: Tensor, d_weight: Tensor, plus: Tensor | None, *, last: bool, train: bool,
) -> Gated | Tensor | None:  # fmt: skip
    """The gradient of what was read, `plus` added; of its weights and norm into `d_weight`, `d_gamma`, `d_beta`.

    `last`: nothing else will be added, so that a `Normed` value's ReLU is passed and its sums are taken.
    """
    how = plan(shape, machine, backward=True)
    assert how is not None
    k, batch = made.y.shape[:2]
    n_slices = max(1, shape.channels_in // how.slice)
    n_parts, per_part = _parts(machine, how.blocks, k * n_slices, batch, how.images)
    before = value if isinstance(value, Normed) else None
    source = value.y if isinstance(value, Normed) else value
    raw = before is not None and before.x is None
    if before is not None and before.x is not None:
        source = before.x
    behind = before is not None and last
    parts = torch.empty((n_parts, *d_weight.shape), device=source.device)
    down = torch.empty_like(source) if shape.channels_in >= 16 else None
    sums = torch.empty((k, n_parts, 2, shape.channels_in), device=source.device) if behind else None
    given = _Backward(
        _at(up.g), _at(made.y), _at(made.norm), _at(up.sums), _at(d_gamma), _at(d_beta),
        _at(source), _at(before.norm) if before else None, _at(plus), _at(before.y) if before and behind else None,
        _at(down), _at(sums), _at(weight), _at(parts), _at(n_valid), d_gamma.stride(0), weight.stride(0),
        up.sums.shape[1], batch, per_part, before is not None and before.relu, raw, train,
    )  # fmt: skip
    defines = how.defines(shape) | {"BACKWARD": 1}
    machine.kernel("convolution.cu", "backward", defines, how.shared_bytes)(given, (n_parts, k, n_slices))
    torch.sum(parts, 0, out=d_weight)
    return Gated(down, sums) if down is not None and sums is not None else down


def join(machine: Machine, value: Normed, n_valid: Tensor) -> Tensor:
    """The value itself, written if it was not yet."""
    if value.x is not None:
        return value.x
    k, batch, side, _, c = value.y.shape
    joined = torch.empty_like(value.y)
    grid, per_part = _eights(machine, value.y)
    given = _Join(_made(value, joined), _at(n_valid), batch, side * value.y.shape[3], per_part)
    machine.kernel("norm.cu", "join", {"DEPTH": c, "WARPS": WARPS}, 16 * c + 8 * (256 + 2 * c))(given, (grid, k, 1))
    _applied(value, joined)
    return joined


def gate(machine: Machine, up: Tensor, value: Normed, n_valid: Tensor) -> Gated:
    """A gradient of what a norm made, through its ReLU."""
    k, batch, side, _, c = value.y.shape
    grid, per_part = _eights(machine, value.y)
    g, sums = torch.empty_like(value.y), torch.empty((k, grid, 2, c), device=up.device)
    up = up.to(value.y.dtype).contiguous()
    given = _Gate(
        _at(up), _at(join(machine, value, n_valid)), _at(value.y), _at(value.norm), _at(g), _at(sums), _at(n_valid),
        batch, side * value.y.shape[3], per_part, value.relu,
    )  # fmt: skip
    machine.kernel("norm.cu", "gate", {"DEPTH": c, "WARPS": WARPS}, 16 * c + 64 * 256)(given, (grid, k, 1))
    return Gated(g, sums)


def _eights(machine: Machine, y: Tensor) -> tuple[int, int]:
    """(blocks to a member, eights of channels to a block)."""
    each = y[0].numel() // 8
    blocks = max(1, min(-(-each // 256), 4 * machine.multiprocessors // len(y)))
    per_part = -(-each // (256 * blocks)) * 256
    return -(-each // per_part), per_part
