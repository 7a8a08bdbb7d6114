"""The folded kernels on a CPU: their CUDA source, compiled by the machine's C++ compiler behind `emulated.h`."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from forgetgauge.learn.stacked.kernels.folded.machine import source_of

COMPILER = shutil.which("g++") or shutil.which("c++")
HEADER = Path(__file__).parent / "emulated.h"
ARGUMENTS = {"forward": "Forward", "backward": "Backward", "join": "Join", "gate": "Gate"}


class Emulator:
    """A GPU of two multiprocessors."""

    multiprocessors = 2
    shared_per_block = 232_448
    shared_per_multiprocessor = 233_472

    def __init__(self, folder: Path):
        self.folder = folder

    def compile(self, file, defines):
        self._compiled(file, tuple(sorted(defines.items())))

    def kernel(self, file, entry, defines, shared_bytes):
        library = self._compiled(file, tuple(sorted(defines.items())))

        def launch(argument, grid):
            getattr(library, f"launch_{entry}")(ctypes.byref(argument), *grid, shared_bytes)

        return launch

    @functools.cache  # noqa: B019
    def _compiled(self, file, defines):
        names = ["backward"] if dict(defines).get("BACKWARD") else ["forward"]
        names = ["join", "gate"] if file == "norm.cu" else names
        source = source_of(file) + "".join(f"ENTRY({name}, {ARGUMENTS[name]})\n" for name in names)
        given = [f"-D{name}={value}" for name, value in defines]
        stem = hashlib.sha256((source + str(given) + HEADER.read_text()).encode()).hexdigest()[:16]
        target = self.folder / f"{stem}.so"
        if not target.exists():  # another process may be at it: whoever is last wins, with the same file
            with tempfile.TemporaryDirectory(dir=self.folder) as work:
                code, made = Path(work) / "kernel.cpp", Path(work) / "kernel.so"
                code.write_text(source)
                flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-include", str(HEADER)]
                subprocess.run([COMPILER, *flags, *given, str(code), "-o", str(made)], check=True)
                made.replace(target)
        return ctypes.CDLL(str(target))


@functools.cache
def emulator():
    if COMPILER is None:
        pytest.skip("platform: there is no C++ compiler")
    folder = Path(tempfile.gettempdir()) / f"forgetgauge-emulated-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        pytest.skip(f"platform: {folder} is somebody else's, and what lies there would be run")
    return Emulator(folder)
