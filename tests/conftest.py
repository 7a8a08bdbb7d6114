"""Shared by all tests: one thread per process (the suite runs on all cores), and a run small enough for seconds."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import functools
import sys
from pathlib import Path
from typing import Any

import pytest

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


ROOMS = tuple(Path(__file__).parent / room for room in ("game", "store"))
"""Whose quick tests show the coverage that is asked for: following every call of the others costs minutes."""


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Coverage is measured in the quick tests of the rooms it is asked of; whole runs are often made by fixtures."""
    follower = sys.gettrace()
    is_asked = any(item.path.is_relative_to(room) for room in ROOMS) and not item.get_closest_marker("slow")
    if is_asked or follower is None or "Tracer" not in type(follower).__name__:  # a debugger is let be
        return (yield)
    sys.settrace(None)  # pytest-cov's own mark, no_cover, has no effect in the processes of pytest-xdist
    try:
        return (yield)
    finally:
        sys.settrace(follower)


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


@pytest.fixture
def call(capsys, monkeypatch):
    """The command line inside this process: (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["forgetgauge", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run
