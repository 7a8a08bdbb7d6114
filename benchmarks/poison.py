"""Runs with one poisonous method each, in both executors: a part of `benchmarks/chaos.py`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos_runs import head, row, started

from forgetgauge.results.record import without_timings
from forgetgauge.store.runfolder import RunFolder

POISONED = """
adversaries = ["correctness", "confidence"]
[data]
name = "digits"
fraction = 0.2
[game]
alpha = 0.5
pairs = 1
[learner]
epochs = 1
batch_size = 64
[shadows]
count = 2
[limits]
job_seconds = 8
{poison}
[unlearners.retrain]
[unlearners.none]
[unlearners.neg-grad]
[unlearners.victim]
method = "poison_methods:victim"
"""
OTHERS = ("retrain", "none", "neg-grad", "victim")
POISONS = {
    "raises": "ValueError: no luck",
    "raises_base_exception": "_NotAnException: neither",
    "raises_keyboard_interrupt": "KeyboardInterrupt",
    "raises_generator_exit": "GeneratorExit",
    "raises_what_cannot_be_pickled": "_CannotBePickled: it holds a lock",
    "raises_what_cannot_be_shown": "_CannotBeShown",
    "raises_megabytes_and_escapes": "ValueError: ",
    "exits": "SystemExit: it ended the program, with code 0",
    "exits_at_once": "died",
    "aborts": "died",
    "kills_itself": "died",
    "hangs": "ended after|died",
    "hangs_and_ignores_signals": "ended after|died",
    "recurses": "RecursionError",
    "runs_out_of_memory": "MemoryError",
    "allocates_a_petabyte": "MemoryError",
    "gives_nothing": "gave back a NoneType",
    "gives_a_number": "gave back a float",
    "gives_another_model": "another architecture",
    "gives_nan": "NaN",
    "gives_a_model_that_raises": "no weights to be had",
    "fills_its_folder": "OSError",
    "replaces_functions_of_ours": "it replaced forgetgauge",
    "changes_its_inputs": "in place, which all methods share",
    "deletes_artefacts": "artefacts in the run folder",
    "changes_artefacts": "artefacts in the run folder",
    "wanders": "",
    "changes_settings": "",
    "closes_its_streams": "",
    "leaves_an_alarm": "",
    "leaves_children": "",
    "leaves_threads": "",
    "forks_and_both_go_on": "",
    "prints_megabytes_and_escapes": "",
}
"""Poison -> what is said of it, one of several; nothing where it harms nobody, and its own numbers are there."""
FATAL = ("exits_at_once", "aborts", "kills_itself", "hangs", "hangs_and_ignores_signals")
"""What the process that runs it does not survive."""
VANDALS = ("deletes_artefacts", "changes_artefacts")
EXECUTORS = ("processes", "inline")
HANGS_S = 20.0
"""Seconds without a line in the ledger after which the user kills a run in one process."""
MOST_S = 500.0


@dataclass
class Poisoned:
    """What became of a run with poisonous methods."""

    code: int
    said: str
    starts: int
    done: dict[str, str]
    methods: dict[str, Any]

    @staticmethod
    def of(scratch: Path, names: Sequence[str], executor: str) -> Poisoned:
        """Start it, and where the process dies of it, again."""
        tables = [f'[unlearners.{name}]\nmethod = "poison_methods:{name}"' for name in names]
        file, out = scratch / "poisoned.toml", scratch / "run"
        shutil.rmtree(out, ignore_errors=True)
        file.write_text(POISONED.format(poison="\n".join(tables)))
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        said, dies = "", executor == "inline" and any(name in FATAL for name in names)
        for starts in range(1, 6):  # noqa: B007
            process = started(file, out, executor, "--no-trial", PYTHONPATH=path, RUN_FOLDER=str(out))
            hangs = dies and names[0].startswith("hangs")
            code = _waited_for(process, out / "ledger.jsonl", HANGS_S if hangs else MOST_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left behind
            said += "".join(out.with_suffix(f".{name}").read_text(errors="replace") for name in ("err", "out"))
            if not dies or (code >= 0 and (out / "result.json").exists()):
                break
        done = {key: one.receipt.sha256 for key, one in RunFolder(out).open_ledger().state.done.items()}
        methods = {}
        if (out / "result.json").exists():
            methods = without_timings(json.loads((out / "result.json").read_text()))["games"][0]["methods"]
        return Poisoned(code, said, starts, done, methods)

    def of_run(self, names: Sequence[str], executor: str, clean: Poisoned) -> list[str]:
        """Which promises about the run were broken: above all, that the other methods' numbers are what they were."""
        n_starts = 4 if executor == "inline" and any(name in FATAL for name in names) else 1
        prints = any(name.startswith("prints") for name in names)
        promises = {
            f"exit code {self.code}": self.code == any(POISONS[name] for name in names),
            "a traceback": "Traceback (most" not in self.said,
            "raw escapes": prints or "\x1b" not in self.said,
            "megabytes": prints or len(self.said) < 100_000,
            "others' artefacts differ": self.done.items() >= clean.done.items(),
            "others' numbers differ": all(self.methods.get(name) == clean.methods[name] for name in OTHERS),
            f"{self.starts} starts": self.starts == n_starts,
            "the next start does not name it": n_starts == 1 or "the run ended once while it did" in self.said,
        }
        return [what for what, holds in promises.items() if not holds]

    def of_method(self, name: str) -> list[str]:
        """Which promises about a poisonous method were broken: it is named without numbers, or harmless with them."""
        lines = [line for line in self.said.splitlines() if name in line]
        words = POISONS[name].split("|")
        wrong = [] if any(word in line for word in words for line in lines) else ["not named"]
        has_numbers = bool(self.methods.get(name, {}).get("n_pairs"))
        return wrong + (["its numbers"] if has_numbers is bool(POISONS[name]) else [])


def _waited_for(process: subprocess.Popen[str], ledger: Path, patience_s: float) -> int:
    """The exit code of a run, which is killed where it writes nothing more."""
    length, since = 0, time.monotonic()
    while process.poll() is None:
        now = ledger.stat().st_size if ledger.exists() else 0
        if now != length or not now:
            length, since = now, time.monotonic()
        if time.monotonic() - since > patience_s:
            process.kill()
            return process.wait()
        time.sleep(0.1)
    return process.returncode


def poison(asked: Sequence[str], scratch: Path) -> list[str]:
    """Every poisonous method in both executors, beside methods that are not: are their numbers what they always are?

    Those that the process survives run together, the others and those that damage artefacts each in a run of its own.
    """
    names = [name for name in POISONS if not asked or name in asked]
    alone = {"processes": VANDALS, "inline": (*VANDALS, *FATAL)}
    cells: dict[str, dict[str, str]] = {name: {} for name in names}
    problems = []
    for executor in EXECUTORS:
        clean = Poisoned.of(scratch, (), executor)
        together = [name for name in names if name not in alone[executor]]
        for group in filter(None, [together, *([name] for name in names if name in alone[executor])]):
            came = Poisoned.of(scratch, group, executor)
            of_run = came.of_run(group, executor, clean)
            problems += [f"{executor}, {', '.join(group)}: {'; '.join(of_run)}\n{came.said[-3000:]}"] if of_run else []
            for name in group:
                wrong = came.of_method(name) + (of_run if len(group) == 1 else [])
                again = f", {came.starts} starts" if came.starts > 1 else ""
                cells[name][executor] = "; ".join(wrong) or ("named" if POISONS[name] else "harmless") + again
                problems += [f"{executor}, {name}: {'; '.join(wrong)}"] if wrong else []
            print(f"{executor}: {len(group)} of {len(names)} tried", *of_run, file=sys.stderr)
    head("method that", "in worker processes", "in the one process")
    for name in names:
        row(name.replace("_", " "), *(cells[name][executor] for executor in EXECUTORS))
    return problems
