"""Runs with one poisonous method each, in both executors: a part of `benchmarks/chaos.py`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
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
    "replaces_functions_of_ours": "it replaced",
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
    "changes_its_inputs": "",
}
"""Poison -> what is said of it, one of several; nothing where it harms nobody, and its own numbers are there."""
FATAL = ("exits_at_once", "aborts", "kills_itself", "hangs", "hangs_and_ignores_signals")
"""What the process that runs it does not survive."""


@dataclass
class Poisoned:
    """What became of a run with a poisonous method."""

    code: int
    said: str
    starts: int
    done: dict[str, str]
    methods: dict[str, Any]

    @staticmethod
    def of(scratch: Path, poison: str, executor: str, most_s: float = 90) -> Poisoned:
        """Start it, and where the process dies of it, again; what hangs in one process is killed by its user."""
        table = f'[unlearners.poison]\nmethod = "poison_methods:{poison}"' if poison else ""
        file, out = scratch / "poisoned.toml", scratch / "run"
        shutil.rmtree(out, ignore_errors=True)
        file.write_text(POISONED.format(poison=table))
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        waits, said = (20 if executor == "inline" and poison.startswith("hangs") else most_s), ""
        for starts in range(1, 6):  # noqa: B007
            process = started(file, out, executor, "--no-trial", PYTHONPATH=path, RUN_FOLDER=str(out))
            try:
                code = process.wait(waits)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left behind
            said += "".join(out.with_suffix(f".{name}").read_text(errors="replace") for name in ("err", "out"))
            if not (executor == "inline" and poison in FATAL and (code < 0 or not (out / "result.json").exists())):
                break
        done = {key: one.receipt.sha256 for key, one in RunFolder(out).open_ledger().state.done.items()}
        methods = {}
        if (out / "result.json").exists():
            methods = without_timings(json.loads((out / "result.json").read_text()))["games"][0]["methods"]
        return Poisoned(code, said, starts, done, methods)

    def wrong(self, poison: str, executor: str, clean: Poisoned) -> list[str]:
        """Which promises were broken."""
        expected = POISONS[poison]
        named = not expected or any(words in self.said for words in expected.split("|"))
        n_pairs = self.methods.get("poison", {}).get("n_pairs")
        return [
            what
            for what, holds in {
                f"exit code {self.code}": self.code == bool(expected),
                "not named": named and (not expected or "poison" in self.said),
                "a traceback": "Traceback (most" not in self.said,
                "raw escapes": "\x1b" not in self.said or poison.startswith("prints"),
                "megabytes": len(self.said) < 20_000 or poison.startswith("prints"),
                "its own numbers": bool(n_pairs) is not bool(expected),
                "others' artefacts": self.done.items() >= clean.done.items(),
                "others' numbers": all(self.methods.get(name) == clean.methods[name] for name in OTHERS),
                f"{self.starts} starts": self.starts == (4 if executor == "inline" and poison in FATAL else 1),
            }.items()
            if not holds
        ]


def poison(names: tuple[str, ...], scratch: Path) -> list[str]:
    """Every poisonous method in both executors, beside methods that are not: are their numbers what they always are?"""
    problems = []
    head("method that", "in worker processes", "in the one process")
    clean = {executor: Poisoned.of(scratch, "", executor) for executor in ("processes", "inline")}
    for name in names or POISONS:
        cells = []
        for executor in ("processes", "inline"):
            came = Poisoned.of(scratch, name, executor)
            wrong = came.wrong(name, executor, clean[executor])
            again = f", {came.starts} starts" if came.starts > 1 else ""
            cells.append("; ".join(wrong) if wrong else ("named" if POISONS[name] else "harmless") + again)
            problems += [f"{name} ({executor}): {'; '.join(wrong)}\n{came.said[-1500:]}"] if wrong else []
        row(name.replace("_", " "), *cells)
    return problems
