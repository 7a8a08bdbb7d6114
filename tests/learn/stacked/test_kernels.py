"""The kernels on a CPU, in Triton's interpreter.

Triton reads TRITON_INTERPRET when it is imported, and a process that has set it can no longer use a GPU: the checks of
`interpreted_*.py` run in a process of their own.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

NO_TESTS = 5  # pytest's exit status where all it found was a module that skips itself


FILES = sorted(Path(__file__).parent.glob("interpreted_*.py"))


WHY = "triton is not installed (the extra [test])" if sys.platform == "linux" else "platform: triton is for Linux"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=WHY)
def test_the_kernels_compute_what_plain_torch_computes():
    """All files in one process: to import torch and triton takes longer than most of them."""
    assert len(FILES) >= 5
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-W", "ignore", *map(str, FILES)]
    ran = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert ran.returncode in (0, NO_TESTS), ran.stdout + ran.stderr
    if skipped := [line for line in ran.stdout.splitlines() if line.startswith("SKIPPED")]:
        pytest.skip(skipped[0].partition(": ")[2])
