"""Where tensors live. A device changes the order of float additions and, of DP training alone, the noise: all other
noise is drawn on the CPU."""

from __future__ import annotations

import functools
import hashlib
import importlib
import platform
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from forgetgauge.errors import UserError


def choose_device(name: str = "auto") -> torch.device:
    """The one device that is meant where there can be one only: the first of `choose_devices`."""
    return choose_devices(name)[0]


def choose_devices(name: str = "auto") -> list[torch.device]:
    """The devices behind `auto` (every GPU, the CPU where there is none), `cpu`, `cuda` (every GPU), `cuda:1` or
    `cuda:0,cuda:2`."""
    n_seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and n_seen == 0):
        return [torch.device("cpu")]
    if name == "auto" or (name == "cuda" and n_seen):
        return [torch.device("cuda", index) for index in range(n_seen)]
    chosen = [_gpu(part, name, n_seen) for part in name.split(",")]
    if len(set(chosen)) < len(chosen):
        raise UserError(f"device '{name}' names a GPU twice")
    return chosen


def _gpu(part: str, name: str, n_seen: int) -> torch.device:
    kind, _, number = part.partition(":")
    if kind != "cuda" or not (number.isdecimal() or name == "cuda"):
        raise UserError(f"device '{name}': write auto, cpu, cuda, cuda:0 or cuda:0,cuda:2")
    index = int(number or 0)
    if index >= n_seen:
        seen = {0: "no GPU", 1: "one GPU, cuda:0"}.get(n_seen, f"{n_seen} GPUs, cuda:0 to cuda:{n_seen - 1}")
        raise UserError(f"device '{part}' is not there: torch sees {seen}")
    return torch.device("cuda", index)  # always with its number: torch.device("cuda") equals no tensor's device


def describe(*devices: torch.device) -> str:
    """As results name them: `cpu`, `cuda: NVIDIA H200`, `cuda: 8 × NVIDIA H200`; which of several equal GPUs it was
    does not matter."""
    if devices[0].type != "cuda":
        return devices[0].type
    names = Counter(torch.cuda.get_device_name(device) for device in devices)
    return "cuda: " + ", ".join(name if n == 1 else f"{n} × {name}" for name, n in names.items())


def identity(*devices: torch.device) -> str:
    """Which devices they are, as an opaque digest: a GPU by its own UUID, a processor by its machine."""
    here = f"{platform.node()} {uuid.getnode()}"
    names = [here]
    if devices[0].type == "cuda":
        names = [str(getattr(torch.cuda.get_device_properties(one), "uuid", f"{here} {one}")) for one in devices]
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:12]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether narrower work might succeed: torch tells it in several ways, cuBLAS and the CPU's allocator in words."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    words = ("out of memory", "can't allocate memory", "ALLOC_FAILED", "bad_alloc")
    if isinstance(error, RuntimeError) and any(word in str(error) for word in words):
        return True
    while_capturing = isinstance(error, RuntimeError) and "captur" in str(error)  # its end fails in its turn
    return while_capturing and error.__context__ is not None and is_out_of_memory(error.__context__)


def others_hold(device: torch.device) -> str:
    """To stand behind a job that ran out of a GPU's memory: that other processes have much of it, where they do."""
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:  # so little is left that not even that can be asked
        return ""
    others = total - free - torch.cuda.memory_reserved(device)
    if others <= total // 8:
        return ""
    return f"; other processes hold {others / 2**30:.0f} GiB of it, so the same command tries again what failed"


SHARED_FROM = 120 * 2**30
"""Bytes of a GPU's memory from which two processes have room on it: two stacks of 32 adapters took 109 GiB."""
WORTH_KEEPING = 8
"""A process keeps at most this part of a GPU's memory for what it may need again."""


def processes_on(name: str) -> int:
    """How many processes should share each of these GPUs (`cuda:0,cuda:1`): two where there is room, so that one
    computes while the other reads, writes or prepares what comes next."""
    try:
        each = [torch.cuda.get_device_properties(part).total_memory for part in name.split(",")]
    except (RuntimeError, AssertionError):  # torch sees no such GPU
        return 1
    return 2 if min(each) >= SHARED_FROM else 1


def leave_room(device: torch.device) -> None:
    """Give memory back that is kept for what may come, where it is much: another process may share the GPU."""
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if kept > torch.cuda.get_device_properties(device).total_memory // WORTH_KEEPING:
        torch.cuda.empty_cache()


def is_lost(device: torch.device) -> bool:
    """Whether a GPU answers this process no more, as after an illegal access or an assertion that failed in a kernel:
    then whatever is asked of it fails, whoever asks."""
    if device.type != "cuda":
        return False
    try:
        torch.zeros(1, device=device).add_(1).item()
        torch.cuda.synchronize(device)
    except Exception as error:
        return not is_out_of_memory(error)
    return False


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for products of bfloat16: every GPU that is served, and some processors. On
    others such products would be slower than those of float32."""
    if device.type != "cpu":
        return True
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in asked)


def kernels_on(device: torch.device, name: str) -> ModuleType | None:
    """The module of Triton kernels by that name, where there is a GPU and Triton to run them."""
    if device.type != "cuda":
        return None
    try:
        return importlib.import_module(f"forgetgauge.learn.stacked.kernels.{name}")
    except ImportError:
        return None


def capture(step: Callable[[], None], device: torch.device, *, n_trials: int, pool: Any = None) -> torch.cuda.CUDAGraph:
    """A step as a CUDA graph, to be replayed; it is first tried out on a stream of its own, as captures want.

    The trials are real: a step must be one that changes nothing (an empty batch), or be undone afterwards. Graphs that
    share a `pool` share their memory.
    """
    side = _side_stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(n_trials):
            step()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    here = torch.cuda.stream(torch.cuda.current_stream(device))  # put back where a capture that fails leaves its own
    with here, torch.cuda.graph(graph, pool=pool):
        step()
    return graph


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for each device: cuBLAS keeps a workspace for every stream that it has seen."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@contextmanager
def products_in(*, tf32: bool) -> Iterator[None]:
    """float32 products as float32 on a GPU, unless tf32 was asked for; of all threads."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
