"""Run by `test_kernels.py`: every kernel is compiled to the machine code of a GPU that is not here, and fits into it.

Nothing is computed. Triton's compiler needs no GPU, only to be told of one; what its interpreter lets pass, such as
types, blocks and memory that a multiprocessor does not have, is found here. `KINDS="75 80 86 90"` asks for more kinds.
"""

import importlib
import os
import pkgutil

import pytest
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from forgetgauge.learn.stacked import kernels
from forgetgauge.learn.stacked.kernels import blocks, group_norm, ops, optimiser, patches
from forgetgauge.learn.stacked.patches import Window

SHARED = {75: 64, 80: 163, 86: 99, 90: 227}
"""KiB of shared memory that a program may have, by the kind of GPU: T4, A100, RTX 30 and 40, H100 and H200."""
INSIDE = {"batch_norm._gate", "convolution._gather_columns", "group_norm._of_groups", "patches._runs"}
"""What other kernels call, and nobody launches."""
WINDOW = Window((3, 3), (1, 1), (1, 1))


class Absent:
    """A GPU of which nothing is known but its kind."""

    def __init__(self, kind):
        self.kind = kind

    def get_current_target(self):
        return GPUTarget("cuda", self.kind, 32)

    def get_current_device(self):
        return self.kind  # what is compiled is kept by its number

    def get_current_stream(self, _):
        return 0


@pytest.fixture(params=[int(kind) for kind in os.environ.get("KINDS", "90").split()])
def compiled(request, monkeypatch):
    """The kernels that were compiled, in place of being run."""
    found, run = set(), JITFunction.run

    def compile_alone(self, *given, warmup, **how):
        made = run(self, *given, warmup=True, **how)
        assert len(made.asm["cubin"]) > 0
        assert made.metadata.shared <= SHARED[request.param] * 1024
        found.add(name_of(self))
        return made

    monkeypatch.setattr(JITFunction, "run", compile_alone)
    driver.set_active(Absent(request.param))
    return found


def test_every_kernel_is_compiled(compiled):
    for dtype in (torch.bfloat16, torch.float32):
        launch_those_of_language_models(dtype)
    launch_those_of_images(torch.bfloat16)
    assert compiled == all_kernels() - INSIDE


def launch_those_of_language_models(dtype):
    """In the sizes of SmolLM2-135M."""
    turn = torch.zeros(8, 64, dtype=dtype)
    blocks.turn_heads(torch.zeros(8, 15, 64, dtype=dtype), turn, turn, 12)
    blocks.gate(torch.zeros(8, 3072, dtype=dtype))
    blocks.gate_back(torch.zeros(8, 3072, dtype=dtype), torch.zeros(8, 1536, dtype=dtype))
    for gradient in (False, True):
        logits = torch.zeros(8, 49152, dtype=dtype)
        blocks.cross_entropies(logits, torch.zeros(8, dtype=torch.int64), with_gradient=gradient)
    weights, one = torch.zeros(2, 5000), torch.ones(1)
    optimiser.adamw(weights, weights, (weights, weights), torch.zeros(2, 1), (one, one), decay=0.1, betas=(0.9, 0.99))


def launch_those_of_images(dtype):
    """A block of a ResNet, with either norm."""
    x, weight = torch.zeros(2, 4, 8, 8, 32, dtype=dtype), torch.zeros(2, 3, 3, 32, 32, dtype=dtype)
    n_valid, channels = torch.tensor([4, 4], dtype=torch.int32), torch.ones(2, 32)
    y, moments = ops.convolve(x, weight, WINDOW, n_valid)
    norm = ops.finish_moments(moments, n_valid, 64, channels, channels, (channels, channels), 0.1, 1e-5)
    z = ops.scale_shift(y, norm, x, relu=True)
    ops.norm_gradient(z, y, z, norm, n_valid, channels, channels, residual=True, relu=True, train=True)
    ops.convolve_back(y, weight, WINDOW, x.shape, x)
    ops.weight_gradient(x, y, WINDOW, torch.zeros(2, 9 * 32 * 32))
    _, mean, rstd = group_norm.group_norm(x, channels, channels, 8, 1e-5)
    group_norm.group_norm_gradient(x, x, mean, rstd, channels, 8)
    patches.patches_back(patches.patches(x[0], WINDOW), WINDOW, x[0].shape)


def name_of(kernel):
    """`blocks._gate`."""
    return f"{kernel.fn.__module__.rpartition('.')[2]}.{kernel.__name__}"


def all_kernels():
    """Of every module of the folder."""
    modules = [
        importlib.import_module(f"{kernels.__name__}.{one.name}") for one in pkgutil.iter_modules(kernels.__path__)
    ]
    return {name_of(one) for module in modules for one in vars(module).values() if isinstance(one, JITFunction)}
