"""What a job shares with nobody while it runs: the global random generators, torch's threads and settings."""

from __future__ import annotations

import os
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
def settings_kept(kind: Kind) -> Iterator[None]:
    """Whatever the user's code sets globally (a default dtype, gradients off, another folder) ends with its job."""
    if kind not in USES_TORCH:
        yield
        return
    import torch

    backends = torch.backends
    dtype, gradients, device = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device()
    exact, precision = torch.get_deterministic_debug_mode(), torch.get_float32_matmul_precision()
    cudnn = (backends.cudnn.benchmark, backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32)
    folder, errors = os.getcwd(), np.geterr()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
        if torch.get_deterministic_debug_mode() != exact:  # 0: off, 1: warn, 2: on
            torch.use_deterministic_algorithms(exact > 0, warn_only=exact == 1)
        torch.set_float32_matmul_precision(precision)
        backends.cudnn.benchmark, backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32 = cudnn
        os.chdir(folder)
        np.seterr(**errors)


@contextmanager
def one_thread(kind: Kind) -> Iterator[None]:
    """One torch thread while an assignment runs, and of cuDNN's algorithms those without atomics.

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
