"""Networks with group norms on a GPU: kernels against plain torch, a stack against the CPU, DP-SGD against opacus."""

import importlib.util

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from forgetgauge.data.dataset import Points
from forgetgauge.learn.dp_sgd import DpSgd
from forgetgauge.learn.stacked import group_norm, patches
from forgetgauge.learn.stacked.group_norm import Groups
from forgetgauge.learn.stacked.patches import Window
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.streams import Streams

from .stacks import batch, both_ways, build

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")

# Pixels, channels and groups of a ResNet-18's layers; three channels in a group are torch's affair.
NORMS = [((16, 16), 64, 32), ((8, 8), 64, 32), ((4, 4), 128, 32), ((2, 2), 256, 32), ((1, 1), 512, 32), ((3, 3), 9, 3)]
# Pixels, channels, window, stride and padding of its convolutions.
WINDOWS = [
    (32, 3, Window((7, 7), (2, 2), (3, 3))),
    (8, 64, Window((3, 3), (1, 1), (1, 1))),
    (8, 64, Window((3, 3), (2, 2), (1, 1))),
    (8, 64, Window((1, 1), (2, 2), (0, 0))),
    (1, 512, Window((3, 3), (1, 1), (1, 1))),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("pixels", "channels", "count"), NORMS)
def test_group_norms_are_torchs_own(pixels, channels, count, dtype, monkeypatch):
    generator = torch.Generator("cuda").manual_seed(0)
    x, up = torch.randn(2, 3, 40, *pixels, channels, generator=generator, device="cuda").to(dtype)
    gamma, beta = torch.randn(2, 3, channels, generator=generator, device="cuda")
    groups, told = Groups(count, 1e-5), []
    for _ in range(2):
        made, moments = group_norm.group_norm(x, gamma, beta, groups)
        told.append((made, *group_norm.group_norm_gradient(up, x, moments, gamma, groups)))
        monkeypatch.setattr(group_norm, "_kernels_for", lambda x, groups: None)
    loose = 2e-2 if dtype == torch.bfloat16 else 1e-4
    for found, expected in zip(*told, strict=True):
        torch.testing.assert_close(found.float(), expected.float(), rtol=loose, atol=10 * loose)


@pytest.mark.parametrize(("side", "channels", "window"), WINDOWS)
def test_patches_are_plain_torchs(side, channels, window, monkeypatch):
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(70, side, side, channels, generator=generator, device="cuda")
    found = patches.cut(x, window)
    up = torch.randn(found.shape, generator=generator, device="cuda")
    back = patches.add_up(up, window, x.shape)
    monkeypatch.setattr(patches, "_kernels_for", lambda x: None)
    assert torch.equal(found, patches.cut(x, window))
    torch.testing.assert_close(back, patches.add_up(up, window, x.shape), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sums", ["gradient", "squares"])
@pytest.mark.parametrize("name", ["resnet18, imagenet stem", "resnet20, group norm", "small-cnn, no norm"])
def test_a_stack_is_the_same_on_both(name, sums):
    x, y = batch(name, 2, 5)
    here = both_ways(TracedStack(build(name, 2)), x, y, (5, 3), train=False, sums=sums)
    there = both_ways(
        TracedStack([model.cuda() for model in build(name, 2)]), x.cuda(), y.cuda(), (5, 3), train=False, sums=sums
    )
    for found, expected in zip(there, here, strict=True):
        assert (found.cpu() - expected).norm() <= 1e-4 * expected.norm()


@pytest.mark.skipif(importlib.util.find_spec("opacus") is None, reason="opacus is not installed ([dp])")
@pytest.mark.parametrize("epsilon", [5000.0, "inf"])
def test_dp_models_side_by_side_are_opacus_own(epsilon):
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.randn(400, 3, 16, 16, generator=generator), torch.randint(0, 10, (400,), generator=generator)
    whole = Points.of(images, labels).on(torch.device("cuda"))
    recipe = DpSgd(
        model="resnet18", optimiser="sgd", lr=1e-4, epochs=1, batch_size=64, physical_batch_size=48,
        target_epsilon=epsilon,
    )  # fmt: skip
    sets = [whole.subset(np.arange(300)), whole.subset(np.arange(100, 400))]
    streams = [Streams("a"), Streams("b")]
    together, apart = recipe.fit_many(sets, streams), list(map(recipe.fit, sets, streams))
    for points, stream, one, other in zip(sets, streams, together, apart, strict=True):
        began = parameters_to_vector(recipe.build(points, stream.seed("init")).parameters())
        found, expected = (parameters_to_vector(model.parameters()) - began for model in (one, other))
        assert (found - expected).norm() <= 1e-2 * expected.norm()
