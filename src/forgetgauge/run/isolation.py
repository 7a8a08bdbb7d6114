"""What a job shares with nobody while it runs: the global random generators, and torch's threads."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from forgetgauge.plan.jobs import USES_TORCH, Job, Kind
from forgetgauge.streams import Streams


@contextmanager
def seeded(job: Job) -> Iterator[None]:
    """Whatever the user's code draws from the global generators is the job's own, and they are left as they were."""
    if job.kind in ("initialise", "signals"):
        yield
        return
    python, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(Streams(job.key).seed("random"))
    np.random.seed(Streams(job.key).seed("numpy") % 2**32)  # noqa: NPY002
    try:
        with _torch_seeded(job):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)  # noqa: NPY002


def _torch_seeded(job: Job) -> AbstractContextManager[None]:
    if job.kind not in USES_TORCH and "torch" not in sys.modules:
        return nullcontext()
    from forgetgauge.learn.descent import own_randomness

    return own_randomness(Streams(job.key))


@contextmanager
def one_thread(kind: Kind) -> Iterator[None]:
    """One torch thread while a task runs, and of cuDNN's algorithms those without atomics.

    A model's bits then depend neither on the cores nor on who else works nor on the day.
    """
    if kind not in USES_TORCH:
        yield
        return
    import torch

    threads, settled = torch.get_num_threads(), torch.backends.cudnn.deterministic
    torch.set_num_threads(1)
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cudnn.deterministic = settled
