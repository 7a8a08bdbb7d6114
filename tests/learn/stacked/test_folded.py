"""The folded kernels, run on a CPU, against convolutions, batch norms and gradients of torch."""

import contextlib
import copy

import pytest
import torch
import torch.nn.functional as F

from forgetgauge.learn.stacked.kernels.folded.convolution import (
    Gated,
    Normed,
    Shape,
    convolve,
    convolve_back,
    gate,
    join,
)
from forgetgauge.learn.stacked.traced import TracedStack

from .emulator import emulator
from .stacks import batch, both_ways, build, in_float64, own_gradient

K = 2
SHAPES = [
    Shape(3, 16, 8, 1),
    Shape(16, 16, 8, 1),
    Shape(16, 32, 8, 2),
    Shape(32, 32, 8, 1),
    Shape(64, 64, 4, 1),
]
NAMED = {"ids": lambda shape: f"{shape.channels_in}-{shape.channels_out}-{shape.side}-{shape.stride}"}


def random(*shape, seed=0, scale=1.0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def normed(shape, batch, residual, seed=0, relu=True):
    """What a convolution before would leave behind: its sums in three parts, for the norm to be made of."""
    c, side = shape.channels_in, shape.side
    y = random(K, batch, side, side, c, seed=seed).bfloat16() + 0.5
    rows = torch.rand(K, 2 * c + 5, generator=torch.Generator().manual_seed(seed)) + 0.5
    return Normed(
        y, None, torch.full((K, 4, c), 7.0), rows[:, :c], rows[:, c : 2 * c], (torch.zeros(K, c), torch.ones(K, c)),
        0.1, 1e-5, random(*y.shape, seed=seed + 1).bfloat16() if residual else None, relu,
    )  # fmt: skip


def with_sums(value, n_valid):
    """Sums over the examples that count, in uneven parts."""
    own = torch.arange(value.y.shape[1]) < n_valid[:, None]
    y = value.y.float() * own[..., None, None, None]
    parts = [torch.stack([p.sum((1, 2, 3)), p.square().sum((1, 2, 3))], 1) for p in y.split([1, 2, y.shape[1] - 3], 1)]
    value.parts = torch.stack(parts, 1).contiguous()
    return value


def read_by(shape, batch, n_valid, residual):
    """What a convolution of this shape reads."""
    if shape.channels_in == 3:
        return random(K, batch, shape.side, shape.side, 3).bfloat16()
    return with_sums(normed(shape, batch, residual), n_valid)


def reference(y, value, k, n):
    """relu(batch_norm(y) + residual) of one member by torch, from what may require a gradient."""
    flat = F.batch_norm(
        y.permute(0, 3, 1, 2), None, None, value.gamma[k].double(), value.beta[k].double(), True, 0.1, 1e-5
    )
    flat = flat.permute(0, 2, 3, 1)
    if value.residual is not None:
        flat = flat + value.residual[k, :n].double()
    return flat.relu() if value.relu else flat


def close(found, expected, within=0.01):
    off = float((found.double() - expected.double()).norm() / expected.double().norm().clamp(min=1e-9))
    assert off < within, off


def weights_of(shape, seed=5):
    """Rows wider than the weights, as a stack has them."""
    size = 9 * shape.channels_in * shape.channels_out
    rows = random(K, size + 16, seed=seed, scale=(9 * shape.channels_in) ** -0.5).bfloat16()
    return rows[:, :size].view(K, 3, 3, shape.channels_in, shape.channels_out)


def convolved(x, weight, shape):
    return F.conv2d(x.permute(0, 3, 1, 2), weight.double().permute(3, 2, 0, 1), stride=shape.stride, padding=1).permute(
        0, 2, 3, 1
    )


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("shape", SHAPES, **NAMED)
def test_forwards_the_norm_before_is_applied_and_the_sums_for_the_one_behind_are_taken(shape, residual):
    batch, n_valid = 5, torch.tensor([5, 3], dtype=torch.int32)
    value = read_by(shape, batch, n_valid, residual)
    weight = weights_of(shape)
    y, parts = convolve(emulator(), value, weight, shape, n_valid, write=residual)
    for k, n in enumerate(n_valid.tolist()):
        x = (
            value[k, :n].double()
            if isinstance(value, torch.Tensor)
            else reference(value.y[k, :n].double(), value, k, n)
        )
        expected = convolved(x, weight[k], shape)
        close(y[k, :n], expected)
        assert not y[k, n:].any()
        sums = parts[k].sum(0)
        close(sums[0], expected.sum((0, 1, 2)), 0.02)
        close(sums[1], expected.square().sum((0, 1, 2)))
        if isinstance(value, Normed):
            close(value.norm[k, 0], value.y[k, :n].double().mean((0, 1, 2)), 1e-4)
            close(value.norm[k, 1], (value.y[k, :n].double().var((0, 1, 2), correction=0) + 1e-5).rsqrt(), 1e-4)
            close(value.running[0][k], 0.1 * value.y[k, :n].double().mean((0, 1, 2)), 1e-4)
            close(value.running[1][k], 0.9 + 0.1 * value.y[k, :n].double().var((0, 1, 2)), 1e-4)
            assert value.parts is None
            assert (value.x is not None) is residual
            if residual:
                close(value.x[k, :n], x)
                assert not value.x[k, n:].any()


@pytest.mark.parametrize(("plus", "raw", "last"), [(True, False, True), (False, True, True), (True, False, False)])
@pytest.mark.parametrize("shape", SHAPES, **NAMED)
def test_backwards_all_gradients_are_autograds(shape, plus, raw, last):
    batch, n_valid = 5, torch.tensor([5, 3], dtype=torch.int32)
    weight, image = weights_of(shape), shape.channels_in == 3
    value = (
        random(K, batch, shape.side, shape.side, 3).bfloat16()
        if image
        else with_sums(normed(shape, batch, not raw), n_valid)
    )
    y, parts = convolve(emulator(), value, weight, shape, n_valid, write=not raw)
    behind = normed(Shape(shape.channels_out, 16, shape.out, 1), batch, False, seed=3)
    behind.y, behind.parts = y, parts
    z = join(emulator(), behind, n_valid)
    up = random(*y.shape, seed=9).bfloat16()
    added = (
        random(K, batch, shape.side, shape.side, shape.channels_in, seed=11).bfloat16() if plus and not image else None
    )
    if added is not None:
        for k, n in enumerate(n_valid.tolist()):
            added[k, n:] = 0
    gated = gate(emulator(), up, behind, n_valid)
    rows = torch.full((K, 9 * shape.channels_in * shape.channels_out + 200), 7.0)
    c, size = shape.channels_out, weight[0].numel()
    d_gamma, d_beta, d_weight = rows[:, :c], rows[:, 64 : 64 + c], rows[:, 160 : 160 + size]
    rows_of = d_gamma, d_beta, d_weight
    down = convolve_back(
        emulator(), gated, behind, value, weight, shape, n_valid, *rows_of, added, last=last, train=True
    )  # fmt: skip
    assert isinstance(down, Gated) is (last and not image)
    for k, n in enumerate(n_valid.tolist()):
        if image:
            x = value[k, :n].double()
        else:  # what the kernel had: rounded
            x = reference(value.y[k, :n].double(), value, k, n).bfloat16().double().requires_grad_()
        leaf, kernel = y[k, :n].double().requires_grad_(), weight[k].double().requires_grad_()
        gamma, beta = (t[k].double().requires_grad_() for t in (behind.gamma, behind.beta))
        made = F.batch_norm(leaf.permute(0, 3, 1, 2), None, None, gamma, beta, True, 0.1, 1e-5).permute(0, 2, 3, 1)
        close(z[k, :n], made.relu().detach())
        (made * (z[k, :n] > 0) * up[k, :n].double()).sum().backward()
        close(d_gamma[k], gamma.grad)
        close(d_beta[k], beta.grad)
        convolved(x, kernel, shape).backward(leaf.grad)
        close(d_weight[k].view_as(kernel), kernel.grad)
        if image:
            continue
        expected = x.grad if added is None else x.grad + added[k, :n].double()
        if last:
            expected = expected * (x > 0)
            old = value.y[k, :n].double()
            flat = (old - old.mean((0, 1, 2))) / (old.var((0, 1, 2), correction=0) + 1e-5).sqrt()
            sums = down.sums[k].sum(0)
            close(sums[0], expected.sum((0, 1, 2)), 0.02)
            close(sums[1], (expected * flat).sum((0, 1, 2)), 0.02)
        found = down.g if last else down
        close(found[k, :n], expected)
        assert not found[k, n:].any()


@pytest.mark.parametrize("train", [True, False])
def test_a_whole_stack_is_as_near_to_autograd_as_plain_torch_is(train):
    """In bfloat16; of a ResNet-20 on small images, whose last convolutions are too small to be folded."""
    models, (x, y) = build("resnet20", K), batch("resnet20", K, 6)
    n_valid = (6, 4)
    exact = []
    for model, n, one, labels in zip(models, n_valid, x, y, strict=True):
        own = in_float64(model).train(train)
        exact.append(own_gradient(own, one[:n], labels[:n]))
    off, statistics = {}, {}
    for machine in (emulator(), None):
        stack = TracedStack(copy.deepcopy(models), "bfloat16")
        stack.machine = machine
        _, gradient = both_ways(stack, x, y, n_valid, train=train)
        found = torch.cat([torch.cat([g.flatten() for g in table.values()]) for table in stack.tables_of(gradient)])
        expected = torch.cat([torch.cat([g.flatten() for g in table.values()]) for table in exact])
        off[machine] = float((found - expected).norm() / expected.norm())
        statistics[machine] = torch.cat([t.flatten() for pair in stack.statistics.values() for t in pair])
    assert off[emulator()] < 1.2 * off[None] + 0.01
    close(statistics[emulator()], statistics[None], 0.02)


def test_where_the_kernels_do_not_compile_models_are_trained_without_them():
    class Broken(type(emulator())):
        def compile(self, file, defines):
            raise RuntimeError(f"{file} does not compile: no such GPU")

    models, (x, y) = build("resnet20", K), batch("resnet20", K, 3)
    seen = []
    for machine in (Broken(emulator().folder), None):
        stack = TracedStack(copy.deepcopy(models), "bfloat16")
        stack.machine = machine
        with (
            contextlib.nullcontext()
            if machine is None
            else pytest.warns(UserWarning, match="slower kernels: .*cu does")
        ):
            seen.append(both_ways(stack, x, y, (3, 2), train=True)[1])
    assert torch.equal(*seen)
