"""What a job shares with nobody: whatever code of the user's sets for the whole process ends with its job.

Random generators, torch's threads and settings, the working folder, environment, warnings, signals, standard output. It
is a safeguard against carelessness: code that means harm can do all that this process can.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from types import FrameType
from typing import Any

import numpy as np

from forgetgauge.plan.jobs import USES_TORCH, Job, Kind, ModelJob
from forgetgauge.run.algorithms import is_own, makes_own_models
from forgetgauge.run.side_effects import functions_kept
from forgetgauge.streams import Streams


@contextmanager
def alone(job: Job) -> Iterator[None]:
    """All of it, for one job or for several that are done as one."""
    own = makes_own_models(job) if isinstance(job, ModelJob) else is_own(job)
    kept = functions_kept() if own else nullcontext()
    with one_thread(job.kind), settings_kept(job.kind), seeded(job), kept, _one_self():
        yield


@contextmanager
def _one_self() -> Iterator[None]:
    """A second self that code of the user's forked and let go on ends here: it would write what we write."""
    pid = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != pid:
            os._exit(1)


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
    with ExitStack() as kept:
        for context in (_process_kept, _python_kept, _streams_kept, _signals_kept):
            kept.enter_context(context())
        if kind in USES_TORCH:
            kept.enter_context(_torch_settings_kept())
        yield


LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_CPU)


@contextmanager
def _process_kept() -> Iterator[None]:
    """Working folder, environment, who may read new files, and how large they may be."""
    folder, environment, mask = None, dict(os.environ), os.umask(0o077)
    with suppress(FileNotFoundError):  # somebody deleted it: then there is none to go back to
        folder = os.getcwd()
    os.umask(mask)
    limits = {what: resource.getrlimit(what) for what in LIMITS}
    try:
        yield
    finally:
        os.umask(mask)
        for what, limit in limits.items():
            with suppress(ValueError, OSError):  # the harder limit cannot be lifted again
                resource.setrlimit(what, limit)
        if os.environ != environment:
            os.environ.clear()
            os.environ.update(environment)
        with suppress(FileNotFoundError):  # somebody deleted it meanwhile
            os.chdir(folder or ".")


@contextmanager
def _python_kept() -> Iterator[None]:
    """What Python and NumPy are set to."""
    errors, path, depth = np.geterr(), list(sys.path), sys.getrecursionlimit()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.setrecursionlimit(depth)
        sys.path[:] = path
        np.seterr(**errors)


@contextmanager
def _streams_kept() -> Iterator[None]:
    """Standard input, output and error, even where they were closed."""
    names = ("stdin", "stdout", "stderr")
    before: dict[str, Any] = {name: getattr(sys, name) for name in names}
    spare = {}
    for number in range(len(names)):
        with suppress(OSError):  # closed before: then it stays so
            spare[number] = os.dup(number)
    try:
        yield
    finally:
        for number, name in enumerate(names):
            if number in spare:
                os.dup2(spare[number], number)
                os.close(spare[number])
            stream = before[name]
            if getattr(stream, "closed", False) and number in spare:  # one that the caller made need not know
                mode = "w" if number else "r"
                how: dict[str, Any] = {part: getattr(stream, part, None) for part in ("encoding", "errors")}
                stream = os.fdopen(number, mode, closefd=False, **how)
            setattr(sys, name, stream)


SIGNALS = ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD", "SIGXFSZ", "SIGPIPE")


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Who answers a signal, and no alarm that goes off in another's job; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    timer = _Timer(before[signal.SIGALRM])
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        timer.go_on()


class _Timer:
    """The caller's timer, which a job may set anew: there is one alone. It goes off in the job, or after it."""

    def __init__(self, handler: Any) -> None:
        self._left, self._interval = signal.getitimer(signal.ITIMER_REAL)
        self._begun, self._handler, self._went_off = time.monotonic(), handler, False
        if self._left and callable(handler):
            signal.signal(signal.SIGALRM, self._go_off)

    def _go_off(self, number: int, frame: FrameType | None) -> Any:
        self._went_off = True
        return self._handler(number, frame)

    def go_on(self) -> None:
        """Set what is left of it: if it is overdue and never went off, the least there is."""
        left = self._left - (time.monotonic() - self._begun)
        if self._left and (left > 0 or self._interval or not self._went_off):
            left = left % self._interval if left <= 0 and self._interval and self._went_off else left
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), self._interval)


class Interruption:
    """Whether Ctrl-C was pressed while a job was done: code of the user's may raise KeyboardInterrupt by itself."""

    def __init__(self) -> None:
        self._pressed = False

    def is_behind(self, error: BaseException) -> bool:
        """Whether this is somebody's wish to stop, not a job's failure."""
        return isinstance(error, KeyboardInterrupt) and self._pressed

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take note of Ctrl-C, which is raised as ever."""
        before = signal.getsignal(signal.SIGINT)
        standard = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
        # a program that handles it its own way is believed; one that ignores it, as workers do, never gets it
        self._pressed = not standard and before is not signal.SIG_IGN
        if standard:
            signal.signal(signal.SIGINT, self._press)
        try:
            yield
        finally:
            if standard:
                signal.signal(signal.SIGINT, before)

    def _press(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
        signal.default_int_handler(number, frame)


interruption = Interruption()
"""Whether Ctrl-C was pressed in this process."""


@contextmanager
def _torch_settings_kept() -> Iterator[None]:
    import torch

    backends = torch.backends
    dtype, gradients, device = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_default_device()
    exact, precision = torch.get_deterministic_debug_mode(), torch.get_float32_matmul_precision()
    cudnn = (backends.cudnn.benchmark, backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32)
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
