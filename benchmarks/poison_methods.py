"""Unlearning methods that attack the run which calls them, for `benchmarks/chaos.py`; `RUN_FOLDER` names its folder."""

# ruff: noqa: D103, NPY002

from __future__ import annotations

import copy
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def victim(model: nn.Module, retain: Any, forget: Any, context: Any) -> nn.Module:
    """Not poisonous: its weights depend on all that others may leave behind in the process."""
    model = copy.deepcopy(model)
    around = f"{os.environ.get('CHAOS')} {'/nowhere' in sys.path} {sys.getrecursionlimit()} {warnings.filters[:1]}"
    around += f"{os.getcwd() == '/'} {torch.get_default_dtype()} {torch.get_num_threads()} {torch.is_grad_enabled()}"
    drawn = float(torch.rand(1)) + random.random() + np.random.rand() + sum(map(ord, around)) % 97
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1e-3 * drawn * parameter.mean()
    return model


class _NotAnException(BaseException):
    pass


class _CannotBePickled(Exception):
    def __init__(self) -> None:
        super().__init__("it holds a lock")
        self.lock = threading.Lock()


class _CannotBeShown(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def raises(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise ValueError("no luck")


def raises_base_exception(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise _NotAnException("neither an Exception nor an exit")


def raises_keyboard_interrupt(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise KeyboardInterrupt


def raises_generator_exit(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise GeneratorExit


def raises_what_cannot_be_pickled(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise _CannotBePickled


def raises_what_cannot_be_shown(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise _CannotBeShown


def raises_megabytes_and_escapes(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise ValueError("\x1b]0;mine\x07\x1b[2J" + "x" * 5_000_000)


def exits(model, retain, forget, context):  # type: ignore[no-untyped-def]
    sys.exit(0)


def exits_at_once(model, retain, forget, context):  # type: ignore[no-untyped-def]
    os._exit(0)


def aborts(model, retain, forget, context):  # type: ignore[no-untyped-def]
    os.abort()


def kills_itself(model, retain, forget, context):  # type: ignore[no-untyped-def]
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(model, retain, forget, context):  # type: ignore[no-untyped-def]
    while True:
        time.sleep(1000)


def hangs_and_ignores_signals(model, retain, forget, context):  # type: ignore[no-untyped-def]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        time.sleep(1000)


def recurses(model, retain, forget, context):  # type: ignore[no-untyped-def]
    return recurses(model, retain, forget, context)


def runs_out_of_memory(model, retain, forget, context):  # type: ignore[no-untyped-def]
    raise MemoryError


def allocates_a_petabyte(model, retain, forget, context):  # type: ignore[no-untyped-def]
    return np.ones(2**47)


def gives_nothing(model, retain, forget, context):  # type: ignore[no-untyped-def]
    return None


def gives_a_number(model, retain, forget, context):  # type: ignore[no-untyped-def]
    return 0.5


def gives_another_model(model, retain, forget, context):  # type: ignore[no-untyped-def]
    return nn.Linear(3, 2)


def gives_nan(model, retain, forget, context):  # type: ignore[no-untyped-def]
    model = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    return model


def gives_a_model_that_raises(model, retain, forget, context):  # type: ignore[no-untyped-def]
    class Broken(nn.Module):
        def state_dict(self, *args: object, **kwargs: object) -> dict[str, Tensor]:
            raise RuntimeError("no weights to be had")

    return Broken()


def wanders(model, retain, forget, context):  # type: ignore[no-untyped-def]
    os.chdir("/")
    return copy.deepcopy(model)


def changes_settings(model, retain, forget, context):  # type: ignore[no-untyped-def]
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(3)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    np.seterr(all="raise")
    warnings.simplefilter("error")
    os.environ["CHAOS"] = "1"
    sys.path[:] = ["/nowhere"]
    sys.setrecursionlimit(200)
    os.umask(0o777)
    return copy.deepcopy(model)


def closes_its_streams(model, retain, forget, context):  # type: ignore[no-untyped-def]
    sys.stdout.close()
    sys.stderr.close()
    for number in (0, 1, 2):
        os.close(number)
    return copy.deepcopy(model)


def leaves_an_alarm(model, retain, forget, context):  # type: ignore[no-untyped-def]
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return copy.deepcopy(model)


def leaves_children(model, retain, forget, context):  # type: ignore[no-untyped-def]
    subprocess.Popen(["sleep", "300"])
    if os.fork() == 0:
        time.sleep(300)
        os._exit(0)
    return copy.deepcopy(model)


def leaves_threads(model, retain, forget, context):  # type: ignore[no-untyped-def]
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(300,)).start()
    return copy.deepcopy(model)


def forks_and_both_go_on(model, retain, forget, context):  # type: ignore[no-untyped-def]
    os.fork()
    return copy.deepcopy(model)


def prints_megabytes_and_escapes(model, retain, forget, context):  # type: ignore[no-untyped-def]
    print("\x1b[31m" + "x" * 5_000_000)
    print("\x1b[31m" + "x" * 5_000_000, file=sys.stderr)
    return copy.deepcopy(model)


def fills_its_folder(model, retain, forget, context):  # type: ignore[no-untyped-def]
    with tempfile.TemporaryFile() as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        while True:
            os.write(file.fileno(), b"x" * 50_000)


def changes_its_inputs(model, retain, forget, context):  # type: ignore[no-untyped-def]
    with torch.no_grad():
        for points in (retain, forget):
            points.whole_inputs.zero_()
            points.whole_labels.zero_()
        for parameter in model.parameters():
            parameter.zero_()
    return model


def replaces_functions_of_ours(model, retain, forget, context):  # type: ignore[no-untyped-def]
    import forgetgauge.run.adversary as adversary
    import forgetgauge.run.model_jobs as model_jobs
    import forgetgauge.run.worker as worker

    def nothing(*args: object, **kwargs: object) -> None:
        return None

    worker.decide = adversary.decide = worker.fit = adversary.fit = nothing  # type: ignore[assignment]
    model_jobs.utility_of = lambda outputs, points: 1.0  # type: ignore[assignment]
    return copy.deepcopy(model)


def _artefacts() -> list[Path]:
    return sorted(Path(os.environ["RUN_FOLDER"]).rglob("*.safetensors"))


def deletes_artefacts(model, retain, forget, context):  # type: ignore[no-untyped-def]
    for path in _artefacts():
        path.unlink(missing_ok=True)
    return copy.deepcopy(model)


def changes_artefacts(model, retain, forget, context):  # type: ignore[no-untyped-def]
    for path in _artefacts():
        if path.exists():
            path.write_bytes(path.read_bytes()[:-1] + b"!")
    return copy.deepcopy(model)
