"""Run by `test_kernels.py` with TRITON_INTERPRET=1: the kernels against `ops.py`, and both against autograd."""

import copy

import pytest
import torch
import torch.nn.functional as F

from forgetgauge.learn.stacked import convolution, ops
from forgetgauge.learn.stacked.patches import Window
from forgetgauge.learn.stacked.traced import TracedStack

from .interpreter import kernels_of
from .stacks import batch, both_ways, build, convolved

kernels = kernels_of("ops", loops=True)

# Members, batch, height, width, channels in and out, window, stride, padding; the interpreter is slow.
SHAPES = {
    "stem": (1, 2, 4, 5, 3, 16, (3, 3), 1, 1),
    "downwards": (2, 2, 6, 6, 5, 7, (3, 3), 2, 1),
    "shortcut": (2, 2, 5, 5, 6, 9, (1, 1), 2, 0),
    "wide window": (1, 2, 5, 5, 2, 4, (7, 7), 2, 3),
    "uneven window": (2, 2, 5, 4, 4, 3, (3, 1), 1, 0),
    "more channels than a block": (1, 1, 2, 2, 33, 70, (3, 3), 1, 1),
    "more pixels than a block": (1, 2, 12, 12, 2, 3, (3, 3), 1, 1),
    "more columns than a block": (1, 1, 3, 3, 16, 4, (3, 3), 1, 1),
}
BOTH = pytest.mark.parametrize("does", [kernels, ops], ids=["kernels", "ops"])
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def example(shape):
    k, n, h, w, ci, co, window, stride, pad = SHAPES[shape]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(k, n, h, w, ci, generator=generator)
    weight = torch.randn(k, *window, ci, co, generator=generator) / (ci * window[0]) ** 0.5
    return (
        x,
        weight,
        Window(window, (stride, stride), (pad, pad)),
        torch.tensor([n - 1, n][-k:], dtype=torch.int32),
        generator,
    )


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
def test_a_convolution_and_its_gradients_are_autograds(shape, does):
    x, weight, window, _, generator = example(shape)
    inputs, weights = x.clone().requires_grad_(), weight.clone().requires_grad_()
    expected = convolved(inputs, weights, window)
    found, moments = does.convolve(x, weight, window)
    assert moments is None
    torch.testing.assert_close(found, expected.detach(), **CLOSE)
    up = torch.randn(expected.shape, generator=generator)
    expected.backward(up)
    back = does.convolve_back(up, weight, window, x.shape)
    torch.testing.assert_close(back, inputs.grad, **CLOSE)
    if shape == "shortcut":
        plus = torch.randn(x.shape, generator=generator)
        torch.testing.assert_close(does.convolve_back(up, weight, window, x.shape, plus), inputs.grad + plus, **CLOSE)
    out = torch.full((len(x), weight[0].numel()), 7.0)
    does.weight_gradient(x, up, window, out)
    torch.testing.assert_close(out.view_as(weight), weights.grad, **CLOSE)


def normed(y, gamma, beta, n_valid, running, residual, relu, train):
    """F.batch_norm on each member's own rows; padding is left out."""
    each = []
    for k, n in enumerate(n_valid.tolist()):
        flat = F.batch_norm(
            y[k, :n].permute(0, 3, 1, 2), running[0][k], running[1][k], gamma[k], beta[k], train, 0.1, 1e-5
        ).permute(0, 2, 3, 1)
        flat = flat if residual is None else flat + residual[k, :n]
        each.append(flat.relu() if relu else flat)
    return each


@BOTH
@pytest.mark.parametrize(
    ("shape", "with_residual", "relu", "train"),
    [
        ("downwards", False, True, True),
        ("downwards", True, True, True),
        ("downwards", True, False, True),
        ("downwards", False, False, True),
        ("downwards", False, True, False),
        ("downwards", True, True, False),
        ("more pixels than a block", True, True, True),
    ],
)
def test_a_batch_norm_and_its_gradients_are_autograds(shape, with_residual, relu, train, does):
    x, weight, window, n_valid, generator = example(shape)
    y, moments = does.convolve(x, weight, window, n_valid)
    k, c = len(x), weight.shape[-1]
    rows = torch.rand(k, 64, generator=generator) + 0.5  # of weights, as in a stack
    gamma, beta = rows[:, :c], rows[:, 32 : 32 + c]
    running = torch.randn(k, c, generator=generator), torch.rand(k, c, generator=generator) + 0.5
    theirs = running[0].clone(), running[1].clone()
    residual = torch.randn(y.shape, generator=generator) if with_residual else None
    if train:
        norm = does.finish_moments(moments, n_valid, y.shape[2] * y.shape[3], gamma, beta, running, 0.1, 1e-5)
    else:
        norm = ops.Norm.of(*running, gamma, beta, 1e-5)
    z = does.scale_shift(y, norm, residual, relu)
    leaves = [t.clone().requires_grad_() for t in (y, gamma, beta, *([residual] if with_residual else []))]
    expected = normed(*leaves[:3], n_valid, theirs, leaves[3] if with_residual else None, relu, train)
    for one, other in zip(running, theirs, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)
    up = torch.randn(y.shape, generator=generator)
    for mine, own in zip(z, expected, strict=True):
        torch.testing.assert_close(mine[: len(own)], own.detach(), **CLOSE)
    sum((own * up[member, : len(own)]).sum() for member, own in enumerate(expected)).backward()
    gradient = torch.zeros(k, 64)
    d_gamma, d_beta = gradient[:, :c], gradient[:, 32 : 32 + c]
    down, side = does.norm_gradient(
        up, y, z, norm, n_valid, d_gamma, d_beta, residual=with_residual, relu=relu, train=train
    )
    assert (side is None) is not with_residual
    found = [down, d_gamma, d_beta, *([side] if with_residual else [])]
    for mine, leaf in zip(found, leaves, strict=True):
        torch.testing.assert_close(mine, leaf.grad, rtol=1e-3, atol=1e-4)
    assert int(gradient.count_nonzero()) == 2 * k * c  # nothing beside its place


@BOTH
def test_an_empty_batch_moves_no_statistics_and_passes_nothing_on(does):
    """Not y / √ε, which twenty layers would make infinite."""
    x, weight, window, _, _ = example("downwards")
    n_valid = torch.tensor([2, 0], dtype=torch.int32)
    y, moments = does.convolve(x, weight, window, n_valid)
    c = weight.shape[-1]
    gamma, beta, running = torch.ones(2, c), torch.zeros(2, c), (torch.ones(2, c), torch.full((2, c), 2.0))
    norm = does.finish_moments(moments, n_valid, y.shape[2] * y.shape[3], gamma, beta, running, 0.1, 1e-5)
    assert (running[0][1] == 1).all()
    assert (running[1][1] == 2).all()
    assert (running[0][0] != 1).all()
    z = does.scale_shift(y, norm, None, True)
    assert not z[1].any()  # β = 0
    assert z[0].any()
    d_gamma, d_beta = torch.full((2, c), 7.0), torch.full((2, c), 7.0)
    down, _ = does.norm_gradient(
        torch.ones_like(y), y, z, norm, n_valid, d_gamma, d_beta, residual=False, relu=True, train=True
    )
    assert not down[1].any()
    assert not d_gamma[1].any()
    assert not d_beta[1].any()


def test_a_batch_is_put_together_from_many_parts():
    """Of 300 pixels in 150 parts, member by member another number of them counts."""
    y = torch.randn(2, 1, 300, 1, 5, generator=torch.Generator().manual_seed(0)) + 20
    own = torch.tensor([300, 41], dtype=torch.int32)
    gamma, beta, running = torch.rand(2, 5) + 0.5, torch.rand(2, 5), (torch.zeros(2, 5), torch.ones(2, 5))
    counts = (own[:, None] - 2 * torch.arange(150)).clamp(0, 2)  # (K, parts)
    parts = y.view(2, 150, 2, 5) * (torch.arange(2) < counts[..., None])[..., None]
    means = parts.sum(2) / counts.clamp(min=1)[..., None]
    off = (parts - means[:, :, None]) * (torch.arange(2) < counts[..., None])[..., None]
    norm = kernels.finish_moments((means, off.square().sum(2), 2), own, 1, gamma, beta, running, 0.1, 1e-5)
    for k, n in enumerate(own.tolist()):
        mine = y[k, 0, :n, 0].double()
        torch.testing.assert_close(norm.mean[k].double(), mine.mean(0), **CLOSE)
        torch.testing.assert_close(norm.rstd[k].double(), (mine.var(0, correction=0) + 1e-5).rsqrt(), **CLOSE)
        torch.testing.assert_close(running[0][k].double(), 0.1 * mine.mean(0), **CLOSE)
        torch.testing.assert_close(running[1][k].double(), 0.9 + 0.1 * mine.var(0), **CLOSE)


def test_the_gradient_of_a_norm_is_put_together_from_many_parts():
    generator = torch.Generator().manual_seed(0)
    y, up = torch.randn(2, 1, 3, 30, 25, 3, generator=generator)
    n_valid, running = torch.tensor([3], dtype=torch.int32), (torch.zeros(1, 3), torch.ones(1, 3))
    norm = ops.finish_moments(y, n_valid, 750, torch.ones(1, 3), torch.zeros(1, 3), running, 0.1, 1e-5)
    seen = []
    for does in (kernels, ops):
        scales = torch.zeros(2, 1, 3)
        z = does.scale_shift(y, norm, None, True)
        down, _ = does.norm_gradient(up, y, z, norm, n_valid, *scales, residual=False, relu=True, train=True)
        seen.append((z, scales, down))
    for one, other in zip(*seen, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


def test_a_whole_stack_by_kernels_is_one_by_plain_torch():
    name = "small-cnn, batch norm"
    models, (x, y) = build(name, 2), batch(name, 2, 2)
    seen = []
    for does in (kernels, ops):
        stack = TracedStack(copy.deepcopy(models))
        stack.ops = does
        logits, gradient = both_ways(stack, x, y, (2, 1), train=True)
        statistics = [tensor for pair in stack.statistics.values() for tensor in pair]
        seen.append([logits[0], logits[1, :1], gradient, *statistics])
    for one, other in zip(*seen, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["small-cnn, batch norm", "resnet20"])
def test_what_a_stack_says_of_many_points_is_by_kernels_what_it_says_of_few_by_plain_torch(name, monkeypatch):
    models, (x, _) = build(name, 2), batch(name, 2, 1)
    called = []
    monkeypatch.setattr(kernels, "convolve", lambda *given, own=kernels.convolve: called.append(1) or own(*given))
    seen = []
    for looks_at in (convolution.MANY, convolution.MANY - 1):
        stack = TracedStack(models, looks_at=looks_at)
        stack.ops = kernels
        seen.append(stack.forward(x)[0])
        assert bool(called) == (looks_at == convolution.MANY)
        called.clear()
    torch.testing.assert_close(*seen, rtol=1e-4, atol=1e-5)
