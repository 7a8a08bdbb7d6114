"""A GPU that compiles CUDA source when it is first needed, by the compiler library that comes with torch (NVRTC)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from importlib import resources, util
from pathlib import Path
from typing import Protocol

import torch

Launch = Callable[[ctypes.Structure, tuple[int, int, int]], None]
"""(the kernel's one argument, the grid of blocks)"""
Defines = tuple[tuple[str, int], ...]


class Machine(Protocol):
    """What kernels run on."""

    multiprocessors: int
    shared_per_block: int
    """Bytes of shared memory that a block can have."""
    shared_per_multiprocessor: int

    def compile(self, file: str, defines: Mapping[str, int]) -> None:
        """Ahead of time; several threads may do so at once."""
        ...

    def kernel(self, file: str, entry: str, defines: Mapping[str, int], shared_bytes: int) -> Launch:
        """A function of a source file, compiled with these macros (WARPS is among them)."""
        ...


def source_of(file: str) -> str:
    """What is compiled: the file behind what all of them share."""
    folder = resources.files(__package__)
    return (folder / "common.cuh").read_text() + (folder / file).read_text()


class GPU:
    """An NVIDIA GPU."""

    def __init__(self, device: torch.device) -> None:
        properties = torch.cuda.get_device_properties(device)
        self.device = device
        self.multiprocessors: int = properties.multi_processor_count
        self._architecture = f"--gpu-architecture=sm_{properties.major}{properties.minor}"
        self._compiler, self._driver = _compiler(), ctypes.CDLL("libcuda.so.1")
        self.shared_per_block = self._attribute(97)
        self.shared_per_multiprocessor = self._attribute(81)

    @functools.cache  # noqa: B019  (there is one object per device, for as long as the process lives)
    def _compiled(self, file: str, defines: Defines) -> bytes:
        options = [self._architecture, "--std=c++17", *(f"-D{name}={value}" for name, value in defines)]
        return _compile(self._compiler, source_of(file), file, options)

    @functools.cache  # noqa: B019
    def _function(
        self, file: str, entry: str, defines: tuple[tuple[str, int], ...], shared_bytes: int
    ) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with torch.cuda.device(self.device):
            self._do("cuModuleLoadData", ctypes.byref(module), self._compiled(file, defines))
        self._do("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        self._do("cuFuncSetAttribute", function, 8, shared_bytes)  # the most dynamic shared memory
        return function

    def compile(self, file: str, defines: Mapping[str, int]) -> None:
        """Into the cache that `kernel` takes it from."""
        self._compiled(file, tuple(sorted(defines.items())))

    def kernel(self, file: str, entry: str, defines: Mapping[str, int], shared_bytes: int) -> Launch:
        """Launched on torch's current stream."""
        function = self._function(file, entry, tuple(sorted(defines.items())), shared_bytes)
        threads = 32 * defines["WARPS"]

        def launch(argument: ctypes.Structure, grid: tuple[int, int, int]) -> None:
            arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
            stream = ctypes.c_void_p(torch.cuda.current_stream(self.device).cuda_stream)
            with torch.cuda.device(self.device):
                self._do("cuLaunchKernel", function, *grid, threads, 1, 1, shared_bytes, stream, arguments, None)

        return launch

    def _attribute(self, which: int) -> int:
        """By its number in CUDA's driver interface."""
        value = ctypes.c_int()
        self._do("cuDeviceGetAttribute", ctypes.byref(value), which, self.device.index or 0)
        return value.value

    def _do(self, name: str, *arguments: object) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"CUDA: {name}: {(text.value or b'unknown error').decode()}")


@functools.cache
def gpu(device: torch.device) -> GPU | None:
    """The GPU behind a device; None where it cannot multiply bfloat16, or the compiler library is missing."""
    if device.type != "cuda" or torch.version.cuda is None or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    try:
        return GPU(device)
    except OSError:
        return None


@functools.cache
def _compiler() -> ctypes.CDLL:
    """The library of torch's own CUDA version: on the loader's path, or in a wheel beside torch."""
    major = (torch.version.cuda or "").partition(".")[0]
    name = f"libnvrtc.so.{major}"
    try:
        return ctypes.CDLL(name)
    except OSError:
        for place in _library_folders():
            for path in sorted(place.glob(f"**/{name}")):
                return ctypes.CDLL(str(path))
        raise


def _library_folders() -> list[Path]:
    wheels = util.find_spec("nvidia")
    found = [Path(place) for place in (wheels.submodule_search_locations or [] if wheels else [])]
    return [*found, Path(torch.__file__).parent / "lib"]


def _compile(library: ctypes.CDLL, source: str, name: str, options: list[str]) -> bytes:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), given)
    what = "ProgramLog" if failed else "CUBIN"
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise RuntimeError(f"{name} does not compile: {buffer.value.decode()}")
    return buffer.raw
