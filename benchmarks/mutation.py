"""Would the tests notice? `game/` and `store/` are changed in one place at a time, and the tests that meet it are run.

    python benchmarks/mutation.py --sample 400               # a look: so many places, drawn with --seed
    python benchmarks/mutation.py --jobs 16 --time-limit 540 # all of them, several at a time; the same again goes on
    python benchmarks/mutation.py --survivors                # again those that nothing noticed, after tests were added

Run in the root of a checkout, in an environment with the extra `test`. What is changed: mutants.py.

A first run with coverage tells which tests meet which line. Every change is made in a forked process, never on disk:
its tests run there, those named after the module first, until one fails or all take many times as long as usual, which
counts as noticed. A change inside a function is put into the function that is loaded already, which takes a tenth
of the time; others, and all with --anew, are imported anew. Tests marked `slow` are not run. Changes that no test
can notice stand in mutation_equivalent.json with the reason, and are counted apart. A line is written for every change
when it is done; the report is Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mutants import Mutant, clear_caches, find_functions, install, mutants_of, mutated

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "forgetgauge"
ROOMS = ("game", "store")
TESTS = ("tests/game", "tests/store", "tests/results", "tests/report")  # conftest follows coverage in these alone
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.json")
LOADED = (
    "numpy numpy.f2py scipy.special scipy.stats scipy.integrate scipy.optimize sklearn.metrics sklearn.linear_model "
    "sklearn.datasets safetensors.numpy pydantic typer typer.testing rich.table rich.progress jinja2 torch torch.func "
    "torch.utils.data safetensors.torch hypothesis hypothesis.extra.numpy hypothesis.strategies pytest"
)
KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
SPARE_MEMORY = 6 * 2**30


def all_mutants() -> list[Mutant]:
    """Of all modules of the rooms."""
    paths = sorted(path for room in ROOMS for path in (SOURCE / room).glob("*.py"))
    return [mutant for path in paths for mutant in mutants_of(path, path.relative_to(SOURCE).as_posix())]


# -- in a forked process -----------------------------------------------------------------------------------------------


def load_tests() -> None:
    """Import the tests and all they need once, before processes are forked; then look for what a change is put into."""
    import pytest

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        if pytest.main([*QUIET, "--collect-only", "-p", "no:cov", *TESTS]) != 0:
            raise SystemExit("the tests cannot be collected")
    find_functions(SOURCE)
    gc.freeze()  # a forked process shares the memory as long as it does not write to it


@dataclass(eq=False)
class Picked:
    """A plugin of pytest: runs some of the tests that were found, in a given order, and keeps how long each takes."""

    order: dict[str, int] | None = None
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failed: str = ""

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Those that meet the change, the quickest files first."""
        if self.order is not None:
            items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_collection_finish(self) -> None:
        """All is imported now."""
        if self.order is None:
            find_functions(SOURCE)

    def pytest_runtest_setup(self) -> None:
        """What an earlier test left in a cache would hide that this one needs it."""
        if self.order is None:
            clear_caches()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Seconds of all three phases; the first that failed."""
        self.seconds[report.nodeid] += report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        """A module that cannot be imported fails too."""
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (cannot be imported)"


QUIET = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
QUIET += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are loaded already


def in_fork(work: Callable[[], dict[str, Any]], answer: Path) -> int:
    """Start a process that writes what `work` returns; its id, which is also that of its group."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        said = os.open(answer.with_suffix(".log"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for stream in range(3):
            os.dup2(said, stream)
        part = answer.with_suffix(".part")
        part.write_text(json.dumps(work()))
        part.rename(answer)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def test_mutant(mutant: Mutant | None, tests: list[str], scratch: Path) -> dict[str, Any]:
    """Run the tests against a change, in this process: the first that fails, or none."""
    import pytest

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, resource.RLIM_INFINITY))
    if mutant is not None:
        install("forgetgauge", mutated(SOURCE / mutant.path, mutant), mutant)
    name = Path(mutant.path).stem if mutant else ""
    first = [test for test in tests if test.split("::")[0].endswith(f"/test_{name}.py")]
    for some in (first, [test for test in tests if test not in set(first)]):
        if some:
            picked = Picked({test: place for place, test in enumerate(some)})
            code = pytest.main([*QUIET, "-x", "-p", "no:cov", f"--basetemp={scratch}", *_files(some)], plugins=[picked])
            if code != 0:
                return {"outcome": KILLED, "by": picked.failed or f"pytest ended with {int(code)}"}
    return {"outcome": SURVIVED, "by": ""}


def _files(tests: list[str]) -> list[str]:
    return list(dict.fromkeys(test.split("::")[0] for test in tests))


def clean_run(data_file: Path) -> dict[str, Any]:
    """All tests, with coverage: seconds of each, and by file and line those that meet it."""
    import coverage
    import pytest

    os.environ["COVERAGE_FILE"] = str(data_file)
    picked = Picked()
    options = ["--cov-context=test", "--cov-report=", *(f"--cov=forgetgauge.{room}" for room in ROOMS)]
    if pytest.main([*QUIET, *options, *TESTS], plugins=[picked]) != 0:
        raise SystemExit(f"the tests fail before anything is changed: {picked.failed}")
    data = coverage.CoverageData(str(data_file))
    data.read()
    met = {Path(file).relative_to(SOURCE).as_posix(): data.contexts_by_lineno(file) for file in data.measured_files()}
    return {"seconds": picked.seconds, "met": met}


# -- which tests, and how long -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tests:
    """Which tests meet which line, and how long each takes."""

    seconds: dict[str, float]
    met: dict[str, dict[str, list[str]]]

    def of(self, mutant: Mutant, slowest: float) -> list[str]:
        """Those that meet a change, file by file, the quickest file first; of an import all that meet the module."""
        lines = self.met.get(mutant.path, {})
        here = {context for line in mutant.statement for context in lines.get(str(line), [])}
        if here == {""}:
            here = {context for contexts in lines.values() for context in contexts}
        tests = {context.split("|")[0] for context in here if context}
        shared = {context.split("::")[0] for context in here if context.endswith("|setup")}  # fixtures of a module
        tests |= {test for test in self.seconds if test.split("::")[0] in shared}
        tests = {test for test in tests if self.seconds.get(test, math.inf) <= slowest}
        whole: dict[str, float] = defaultdict(float)
        for test in tests:
            whole[test.split("::")[0]] += self.seconds[test]
        return sorted(
            tests, key=lambda test: (whole[test.split("::")[0]], test.split("::")[0], self.seconds[test], test)
        )


def tests_of(out: Path) -> Tests:
    """By a run without a change, or as it was kept beside the results while neither sources nor tests changed."""
    digest = hashlib.sha256()
    for path in sorted([*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        digest.update(path.read_bytes())
    kept = out.with_suffix(".tests.json")
    if not kept.exists() or json.loads(kept.read_text())["digest"] != digest.hexdigest():
        answer = out.with_suffix(".clean.json")
        answer.unlink(missing_ok=True)
        _, status = os.waitpid(in_fork(lambda: clean_run(out.with_suffix(".coverage")), answer), 0)
        if status != 0:
            raise SystemExit("the tests fail before anything is changed: run pytest " + " ".join(TESTS))
        kept.write_text(json.dumps({"digest": digest.hexdigest(), **json.loads(answer.read_text())}))
        answer.unlink()
    found = json.loads(kept.read_text())
    return Tests(found["seconds"], found["met"])


# -- many of them ------------------------------------------------------------------------------------------------------


@dataclass
class Running:
    """A change whose tests run in a process of their own."""

    mutant: Mutant | None
    answer: Path
    began: float
    deadline: float

    def ended(self, pid: int) -> dict[str, Any] | None:
        """What came of it, or None as long as it runs."""
        late = time.monotonic() > self.deadline
        if late:
            os.killpg(pid, signal.SIGKILL)
        if os.waitpid(pid, 0 if late else os.WNOHANG)[0] == 0:
            return None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # workers that its tests left
        found = {"outcome": TIMEOUT, "by": ""} if late else {"outcome": KILLED, "by": "the process died"}
        if self.answer.exists():
            found = json.loads(self.answer.read_text())
        for suffix in (".answer", ".part", ".log"):
            self.answer.with_suffix(suffix).unlink(missing_ok=True)
        shutil.rmtree(self.answer.with_suffix(".tmp"), ignore_errors=True)
        return _line(self.mutant, found["outcome"], found["by"], time.monotonic() - self.began)


def play(todo: Sequence[Mutant | None], tests: Tests, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Test changes, several at a time; None is no change at all, which must survive."""
    running: dict[int, Running] = {}
    waiting = list(todo)[::-1]
    while running or (waiting and time.monotonic() < options.stop_at):
        while waiting and len(running) < options.jobs and time.monotonic() < options.stop_at:
            mutant = waiting.pop()
            chosen = tests.of(mutant, options.slowest) if mutant else [t for t, s in tests.seconds.items() if s < 0.1]
            if not chosen:
                yield _line(mutant, SURVIVED, "no test meets it", 0.0)
                continue
            answer = options.out.with_suffix(f".{len(waiting)}.answer")
            answer.unlink(missing_ok=True)
            patience = 30 + options.patience * sum(tests.seconds[test] for test in chosen)
            work = partial(test_mutant, mutant, chosen, answer.with_suffix(".tmp"))
            running[in_fork(work, answer)] = Running(mutant, answer, time.monotonic(), time.monotonic() + patience)
        for pid, one in list(running.items()):
            if (line := one.ended(pid)) is not None:
                del running[pid]
                yield line
        time.sleep(0.01)


def _line(mutant: Mutant | None, outcome: str, by: str, seconds: float) -> dict[str, Any]:
    return {"name": mutant.name if mutant else "", "outcome": outcome, "by": by, "seconds": round(seconds, 2)}


# -- what came of it ---------------------------------------------------------------------------------------------------


def wilson(right: int, n: int) -> tuple[float, float]:
    """95 % limits of a share."""
    z2 = 1.959964**2 / n
    centre, half = right / n + z2 / 2, math.sqrt(z2 * (right / n * (1 - right / n) + z2 / 4))
    return (centre - half) / (1 + z2), (centre + half) / (1 + z2)


def report(mutants: list[Mutant], done: dict[str, dict[str, Any]], equivalent: dict[str, str]) -> str:
    """Scores by room and by module, then the survivors and the changes that nothing can notice."""
    groups: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        for group in ("both rooms", mutant.path.split("/")[0] + "/", mutant.path):
            groups[group].append(mutant)
    lines = ["| | changes | tested | noticed | of these by time | not noticed | cannot be noticed | score |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for group, members in groups.items():
        same = [m for m in members if m.name in equivalent]
        tested = [done[m.name]["outcome"] for m in members if m.name in done and m.name not in equivalent]
        noticed, late = sum(outcome != SURVIVED for outcome in tested), tested.count(TIMEOUT)
        score = f"{noticed / len(tested):.1%}" if tested else "–"
        if tested and len(tested) < len(members) - len(same):
            score += " ({:.1%} to {:.1%})".format(*wilson(noticed, len(tested)))
        row = (group, len(members), len(tested), noticed, late, len(tested) - noticed, len(same), score)
        lines.append("| " + " | ".join(map(str, row)) + " |")
    lines += ["", "Not noticed:", ""]
    for m in mutants:
        if m.name not in equivalent and done.get(m.name, {}).get("outcome") == SURVIVED:
            why = f" ({done[m.name]['by']})" if done[m.name]["by"] else ""
            lines.append(f"- {m.path}:{m.line} `{m.name.partition(' ')[2]}`{why}")
    lines += ["", "Cannot be noticed:", ""]
    known = [m for m in mutants if m.name in equivalent]
    lines += [f"- {m.path}:{m.line} `{m.name.partition(' ')[2]}`: {equivalent[m.name]}" for m in known]
    return "\n".join(lines)


def asked() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="test so many changes, drawn at random (all)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("--only", default="", help="changes whose name contains this")
    parser.add_argument("--survivors", action="store_true", help="test those again that survived")
    parser.add_argument("--anew", action="store_true", help="import the changed module, also for changes in functions")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (1)")
    parser.add_argument("--slowest", type=float, default=math.inf, help="leave out tests that take more seconds (none)")
    parser.add_argument("--patience", type=float, default=8, help="times the usual time that tests may take (8)")
    parser.add_argument("--time-limit", type=float, default=math.inf, help="begin no more after so many seconds")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutation.jsonl", help="one line a change")
    options = parser.parse_args()
    options.stop_at = time.monotonic() + options.time_limit
    options.out = options.out.absolute()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    return options


def prepare() -> None:
    """Load what is not changed, so that forked processes need not."""
    os.chdir(ROOT)
    os.environ.update(
        OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", PYTHONPATH=str(ROOT / "src")
    )
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    sys.dont_write_bytecode = True
    for module in LOADED.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    if "hypothesis" in sys.modules:
        settings = sys.modules["hypothesis"].settings
        settings.register_profile("mutation", derandomize=True, database=None, deadline=None)
        settings.load_profile("mutation")


def main() -> None:
    """Choose, test, tell."""
    options = asked()
    prepare()
    mutants = all_mutants()
    equivalent = json.loads(EQUIVALENT.read_text("utf-8")) if EQUIVALENT.exists() else {}
    if stale := sorted(set(equivalent) - {m.name for m in mutants}):
        print(f"{EQUIVALENT.name} names what is no change any more:", *stale, sep="\n- ", file=sys.stderr)
    lines = options.out.read_text("utf-8").splitlines() if options.out.exists() else []
    done = {line["name"]: line for line in map(json.loads, lines)}
    import numpy as np  # after the number of its threads was set

    order = np.random.default_rng(options.seed).permutation(len(mutants))[: options.sample]
    chosen = [m for m in (mutants[which] for which in order) if options.only in m.name and m.name not in equivalent]
    if options.survivors:
        todo = [m for m in chosen if done.get(m.name, {}).get("outcome") == SURVIVED]
    else:
        todo = [m for m in chosen if m.name not in done]
    tests = tests_of(options.out)
    quick = [m for m in todo if m.within and not options.anew]
    with options.out.open("a", encoding="utf-8") as journal:
        for some in ([m for m in todo if m not in quick], quick):
            if some is quick and quick:
                load_tests()
            for line in play([None, *some] if some else [], tests, options):
                if line["name"]:
                    done[line["name"]] = line
                    print(json.dumps(line, ensure_ascii=False), file=journal, flush=True)
                    print(f"{line['outcome']:9} {line['seconds']:6.1f} s  {line['name']}", file=sys.stderr)
                elif line["outcome"] != SURVIVED:
                    raise SystemExit(f"without a change, run as with one, this fails: {line['by']}")
    print(report([m for m in mutants if options.only in m.name], done, equivalent))


if __name__ == "__main__":
    main()
