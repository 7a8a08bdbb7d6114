"""Shared by all tests: one thread per process (the suite runs on all cores), and a run small enough for seconds."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import functools
import importlib
import pkgutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import typer

from forgetgauge import cli
from forgetgauge.run import executors
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - hooks

TINY: dict[str, Any] = {
    "adversaries": ["correctness", "confidence", "entropy", "modified-entropy"],
    "data": {"name": "digits", "fraction": 0.2},
    "game": {"alpha": 0.5, "pairs": 2},
    "learner": {"epochs": 1, "batch_size": 64},
    "shadows": {"count": 2},
    "unlearners": ["retrain", "none", "neg-grad"],
}

TINY_TOML = """
adversaries = ["correctness", "confidence", "entropy", "modified-entropy"]
[data]
name = "digits"
fraction = 0.2
[game]
alpha = 0.5
pairs = 2
[learner]
epochs = 1
batch_size = 64
[shadows]
count = 2
[unlearners.retrain]
[unlearners.none]
[unlearners.neg-grad]
"""


ROOMS = ("game", "store")
"""Whose quick tests show the coverage that is asked for: following every call of the others costs minutes."""

for room in ROOMS:  # what they do when they are imported is followed here, and nothing that is imported afterwards
    for module in pkgutil.iter_modules(importlib.import_module(f"forgetgauge.{room}").__path__):
        importlib.import_module(f"forgetgauge.{room}.{module.name}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores: a seventh of the tests' time is waiting for processes of their own."""
    return executors.usable_cores() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any):
    """Tests of a file that makes something once for all of them run in one process: else every process makes it.

    Elsewhere the cases of one test stay together: handing out ten thousand one by one takes the time of many tests.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatIsShared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return path if makes_once(config.rootpath / path) else nodeid.partition("[")[0]

    return ByWhatIsShared(config, log)


@functools.cache
def makes_once(path: Path) -> bool:
    """Whether a file of tests has a fixture that is made once."""
    return 'scope="module"' in path.read_text(encoding="utf-8")


class Followed:
    """What follows the calls of this process and of its threads for coverage, while it may."""

    by: tuple[Any, Any] | None = None

    @classmethod
    def pause(cls) -> None:
        """Nothing is followed from here on; a debugger is let be."""
        if "Tracer" in type(sys.gettrace()).__name__:
            cls.by = sys.gettrace(), threading.gettrace()
            sys.settrace(None)
            threading.settrace(None)

    @classmethod
    def resume(cls) -> None:
        """What was followed before is followed again."""
        if cls.by is not None:
            sys.settrace(cls.by[0])
            threading.settrace(cls.by[1])


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """To import ten thousand tests and all that they need, in each process, is not to be followed."""
    Followed.pause()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Coverage is measured in the quick tests of the rooms it is asked of; whole runs are often made by fixtures."""
    here = Path(__file__).parent
    if item.get_closest_marker("slow") or not any(item.path.is_relative_to(here / room) for room in ROOMS):
        return (yield)
    Followed.resume()  # pytest-cov's own mark, no_cover, has no effect in the processes of pytest-xdist
    try:
        return (yield)
    finally:
        Followed.pause()


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    """A run file of a few seconds."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY_TOML)
    return path


@pytest.fixture
def one_worker(monkeypatch):
    """A worker process takes seconds to start; where one shows what two would, there is one."""
    monkeypatch.setattr(executors, "usable_cores", lambda: 1)


command_of = functools.cache(typer.main.get_command)
"""Typer makes all commands anew whenever it is called, which is once in a program and here thousands of times."""


@pytest.fixture
def users_method(tmp_path, monkeypatch):
    """Makes `method` of `usersown`, a module of the user's in the current folder, or of a script, from its text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "usersown.py"

    def write(text: str, *, script: bool = False):
        file.write_text(text)
        sys.modules.pop("usersown", None)
        if not script:
            return importlib.import_module("usersown").method
        space: dict[str, Any] = {"__name__": "__main__", "__file__": str(file)}
        exec(compile(text, str(file), "exec"), space)
        return space["method"]

    yield write
    sys.modules.pop("usersown", None)


@pytest.fixture
def call(capsys, monkeypatch):
    """The command line inside this process: (exit code, standard output, standard error)."""
    monkeypatch.setattr(typer.main, "get_command", command_of)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["forgetgauge", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run
