"""Install the lock, every file checked by its hash, then this package from the clone, into the Python that runs this.

    .venv/bin/python tools/install.py [base|run|text|dp|ray|dev]

`base` judges outputs, `run` trains, `text`, `dp` and `ray` add those extras, `dev` is for the tests, linters and
pages. Of PyTorch, a build without CUDA is taken where pip's indexes or folders have the one in lock/torch-cpu.txt;
elsewhere the index's build. Nothing is fetched that is not in the lock.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("install", "--quiet", "--require-hashes", "--no-deps")


def pip(*arguments: str, **options: object) -> subprocess.CompletedProcess:
    """Run pip of this Python."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, **options)


def install(name: str) -> int:
    """Install one of the lock's files and the package; pip's exit code."""
    if name != "base" and pip(*CHECKED, "-r", "lock/torch-cpu.txt", stderr=subprocess.DEVNULL).returncode:
        failed = pip(*CHECKED, "-r", "lock/torch.txt").returncode
        if failed:
            return failed
    steps = [(*CHECKED, "-r", f"lock/{name}.txt")]
    steps += [("install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", "."), ("check",)]
    return next((failed for step in steps if (failed := pip(*step).returncode)), 0)


if __name__ == "__main__":
    names = sorted(file.stem for file in (ROOT / "lock").glob("*.txt") if not file.stem.startswith("torch"))
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        sys.exit(f"usage: python tools/install.py {'|'.join(names)}")
    if sys.prefix == sys.base_prefix:
        sys.exit("run it with the Python of a virtual environment: python3 -m venv .venv")
    sys.exit(install(sys.argv[1]))
