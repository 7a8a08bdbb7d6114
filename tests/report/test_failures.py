"""Failed jobs in words: each cause once, and of full memory no more than what it is full of."""

from __future__ import annotations

import pytest

from forgetgauge.errors import line_of
from forgetgauge.report.table import causes, failed_alike

FULL = (
    "CUDA out of memory. Tried to allocate {} MiB. GPU 0 has a total capacity of 139.80 GiB of which {} MiB is free. "
    "Process 590 has 23.12 GiB memory in use. Including non-PyTorch memory, this process has 1.30 GiB memory in use."
)
ADVICE = (
    " Of the allocated memory 500.90 MiB is allocated by PyTorch, and 85.10 MiB is reserved by PyTorch but unallocated."
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to"
    " avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html)"
)


@pytest.mark.parametrize(
    "job", ["ft-final of pair {} side 0 seed 0", "signals of ft-final, pair {} side 0 seed 0", "ft-final of shadow {}"]
)
def test_jobs_whose_errors_differ_in_numbers_alone_are_one_line(job):
    failed = [(job.format(k), FULL.format(144 + k, 55.88 - k)) for k in range(5)]
    (line,) = causes(failed)
    assert line.endswith(f"{FULL.format(144, 55.88)} (5 jobs, the first of them: {job.format(0)})")


def test_other_methods_and_other_errors_have_lines_of_their_own():
    failed = [("a of pair 0 side 0", "E: x"), ("b of pair 0 side 0", "E: x"), ("a of pair 1 side 0", "E: y 3")]
    assert [(what, error) for what, error, _ in failed_alike(failed)] == [("a", "E: x"), ("b", "E: x"), ("a", "E: y 3")]


def test_the_allocators_advice_is_left_out():
    class OutOfMemoryError(RuntimeError):
        pass

    assert line_of(OutOfMemoryError(FULL.format(144, 55) + ADVICE)) == f"OutOfMemoryError: {FULL.format(144, 55)}"


def test_other_texts_stay_as_they_are():
    assert (
        line_of(ValueError("Of the allocated memory none is free"))
        == "ValueError: Of the allocated memory none is free"
    )
    assert line_of(ValueError("a Of the allocated memory b")) == "ValueError: a Of the allocated memory b"
