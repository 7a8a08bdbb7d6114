"""The least that Triton's interpreter must be able to do."""

import triton
import triton.language as tl


@triton.jit
def count(out, n):
    total = 0
    for _ in range(n):
        total += 1
    tl.store(out, total)
