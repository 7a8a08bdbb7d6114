"""The kernels without a GPU: in Triton's interpreter, and through its compiler.

Triton reads TRITON_INTERPRET when it is imported, and a process that has set it can no longer use a GPU, nor can one
that was told of a GPU which is not there: the checks run in processes of their own.
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


needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=WHY)


@needs_triton
def test_the_kernels_compute_what_plain_torch_computes():
    """All files in one process: to import torch and triton takes longer than most of them."""
    assert len(FILES) >= 5
    ran = checked(FILES, TRITON_INTERPRET="1")
    assert ran.returncode in (0, NO_TESTS), ran.stdout + ran.stderr
    if skipped := [line for line in ran.stdout.splitlines() if line.startswith("SKIPPED")]:
        pytest.skip(skipped[0].partition(": ")[2])


@needs_triton
def test_the_kernels_compile_for_a_gpu(tmp_path):
    ran = checked([Path(__file__).parent / "compiled_kernels.py"], TRITON_CACHE_DIR=str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def checked(files: list[Path], **environment: str) -> subprocess.CompletedProcess[str]:
    """Files of checks, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-W", "ignore", *map(str, files)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
