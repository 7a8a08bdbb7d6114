"""The folded kernels on a GPU, at the sizes they are made for; on a CPU `test_folded.py` runs the same source."""

import pytest
import torch
import torch.nn.functional as F

from forgetgauge.learn.stacked.kernels.folded import convolution as folded
from forgetgauge.learn.stacked.kernels.folded.machine import gpu
from forgetgauge.learn.stacked.traced import TracedStack, convolutions_of
from forgetgauge.models.resnet import resnet20, resnet44

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")
N_VALID = (40, 33, 0, 1)


@pytest.fixture(autouse=True)
def _poisoned():
    """What no kernel wrote is NaN."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)


def passed(build, precision, *, fold=True, train=True):
    """(logits that count, gradient, running statistics)."""
    torch.manual_seed(0)
    models = [build((3, 32, 32), 10).cuda() for _ in N_VALID]
    stack = TracedStack(models, precision)
    if not fold:
        stack.machine = None
    x = torch.randn(len(N_VALID), max(N_VALID), 3, 32, 32, device="cuda")
    y = torch.randint(0, 10, x.shape[:2], device="cuda")
    n_valid = torch.tensor(N_VALID, dtype=torch.int32, device="cuda")
    own = torch.arange(x.shape[1], device="cuda") < n_valid[:, None]
    logits, tape = stack.forward(x, n_valid, train=train, keep=True)
    weight = own / n_valid.clamp(min=1)[:, None]
    stack.backward(tape, (logits.softmax(-1) - F.one_hot(y, 10)) * weight[..., None])
    statistics = torch.cat([tensor.flatten() for pair in stack.statistics.values() for tensor in pair])
    return logits[own], stack.gradient.clone(), statistics


def off(found, expected):
    return [float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]


def test_every_convolution_of_a_resnet_is_folded():
    machine = gpu(torch.device("cuda", 0))
    shapes = set(convolutions_of(resnet20((3, 32, 32), 10), torch.Size((3, 32, 32))))
    assert len(shapes) == 6
    assert all(folded.suits(shape, machine) for shape in shapes)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("build", [resnet20, resnet44], ids=["resnet20", "resnet44"])
def test_folded_is_as_near_to_float32_as_unfolded(build, train):
    exact = passed(build, "float32", train=train)
    found = off(passed(build, "bfloat16", train=train), exact)
    unfolded = off(passed(build, "bfloat16", fold=False, train=train), exact)
    for one, other in zip(found, unfolded, strict=True):
        assert one <= 1.1 * other + 1e-4


def test_the_same_twice_to_the_bit():
    for one, other in zip(passed(resnet20, "bfloat16"), passed(resnet20, "bfloat16"), strict=True):
        assert torch.equal(one, other)
