"""What a digest of the user's code costs: a project of 300 modules, of 120 functions each in 10,000 to 40,000 lines.

    python benchmarks/digest.py

The first digest of a process reads all files; it is paid once a run. Python's own import of the same modules, compiled
before, stands beside it.
"""

from __future__ import annotations

import importlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

N_MODULES = 300
BODY = "\n".join(f"def f{i}(x):\n    y = x + {i}\n    return y * CONST\n" for i in range(40))


def write_project(root: Path) -> None:
    """A tree of modules, each of which imports two others and a part of a package."""
    (root / "bigproject").mkdir()
    (root / "bigproject" / "__init__.py").write_text("")
    for m in range(N_MODULES):
        children = [child for child in (2 * m + 1, 2 * m + 2) if child < N_MODULES]
        imports = [f"from bigproject.m{child} import f1 as g{child}" for child in children]
        head = "\n".join(["import os", "import numpy as np", "import torch", *imports, f"CONST = {m}"])
        uses = "\n".join(f"def h{child}():\n    return g{child}(1)\n" for child in children)
        (root / "bigproject" / f"m{m}.py").write_text(f"{head}\n{BODY}\n{uses}")


def measure(root: Path) -> tuple[float, float, int]:
    """Seconds of the import, of the first digest, and how many modules it covers; in this process."""
    sys.path.insert(0, str(root))
    import numpy  # noqa: F401
    import torch  # noqa: F401

    from forgetgauge.code.descriptions import Descriptions
    from forgetgauge.code.named_globals import follow_globals

    start = time.perf_counter()
    module = importlib.import_module("bigproject.m0")
    imported = time.perf_counter()
    walk = Descriptions()
    walk.describe(module.h1, "h1")
    follow_globals(walk)
    return imported - start, time.perf_counter() - imported, len(walk.imports.sources)


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    if len(sys.argv) > 1:
        print(*measure(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_project(Path(folder))
            told = [
                subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True, check=True).stdout
                for _ in range(6)
            ]
        rounds = [[float(number) for number in line.split()] for line in told[1:]]  # the first compiles the modules
        imports, digests = (statistics.median(column) for column in list(zip(*rounds, strict=True))[:2])
        print(f"{rounds[0][2]:.0f} modules, median of {len(rounds)} processes:")
        print(f"digest {digests:.3f} s, Python's own import {imports:.3f} s")
