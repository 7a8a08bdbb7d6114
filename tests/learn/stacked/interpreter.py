"""Triton's interpreter, for the checks that `test_kernels.py` runs in a process of their own."""

import importlib
import os
from types import ModuleType

import pytest
import torch


def kernels_of(name: str, *, loops: bool = False) -> ModuleType:
    """The module of kernels; the checks are skipped where the interpreter is off, or cannot do the loops they have."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("platform: wants TRITON_INTERPRET=1 before triton is imported", allow_module_level=True)
    if loops and not _works():
        reason = "platform: Triton's interpreter fails at `for i in range(n)` (3.6 does with numpy ≥ 2.4, in __index__)"
        pytest.skip(reason, allow_module_level=True)
    return importlib.import_module(f"forgetgauge.learn.stacked.kernels.{name}")


def _works() -> bool:
    from .counting_kernel import count

    out = torch.zeros(1, dtype=torch.int32)
    try:
        count[(1,)](out, 3)
    except Exception:
        return False
    return int(out) == 3
