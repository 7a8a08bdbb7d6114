"""Does `verify` find every change of a stored run? A small run is played, changed in one place, verified, and mended.

    python benchmarks/changes.py          # 1,000 changes: some minutes on one core
    python benchmarks/changes.py 100      # a quick look

Kinds of change: a bit of any file of the run folder, files drawn by their length; a bit of its export; a bit of a
result that is verified alone; and a number of `result.json`, its digest computed anew as a forger would.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.report.html import render_report
from forgetgauge.results.record import read_result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.run.verify import verify
from forgetgauge.seal import with_seal
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import export_run

SMALL: dict[str, Any] = {
    "adversaries": ["correctness", "confidence", "entropy"],
    "data": {"name": "digits", "fraction": 0.2},
    "game": {"alpha": 0.5, "pairs": 2},
    "learner": {"epochs": 1, "batch_size": 64},
    "shadows": {"count": 2},
    "unlearners": ["retrain", "none", "neg-grad"],
}


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """One bit of it changed."""
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def numbers(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where every number stands."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(part, (*place, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


def forged(text: str, rng: np.random.Generator) -> str:
    """A result with one number changed, under a digest that fits."""
    record = json.loads(text)
    places = list(numbers(record))
    *way, last = places[int(rng.integers(len(places)))]
    inside = record
    for key in way:
        inside = inside[key]
    inside[last] += 1 if isinstance(inside[last], int) else 1e-6
    return with_seal(json.dumps({**record, "sha256": ""}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def found_in(path: Path, target: Path, change: Callable[[bytes], bytes]) -> bool:
    """Whether verifying `target` finds a change of the file at `path`, which is mended afterwards."""
    before = path.read_bytes()
    path.write_bytes(change(before))
    try:
        return bool(verify(target).problems)
    finally:
        path.write_bytes(before)


def main(n_changes: int) -> None:
    """Print a table: kind of change, how many, how many were found."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch) / "run")
        play(Campaign.plan(resolve(SMALL, "small")), folder)
        folder.report.write_text(render_report(read_result(folder.result)))
        export, alone = Path(scratch) / "run.tar", Path(scratch) / "alone.json"
        export_run(folder, export)
        shutil.copy(folder.result, alone)
        files = sorted(path for path in folder.path.rglob("*") if path.is_file() and path.stat().st_size)
        lengths = np.array([path.stat().st_size for path in files])
        texts = [path for path in files if path.suffix != ".safetensors"]
        kinds: dict[str, Callable[[], bool]] = {
            "a bit of any file of the run folder": lambda: found_in(
                files[int(rng.choice(len(files), p=lengths / lengths.sum()))], folder.path, lambda c: flipped(c, rng)
            ),
            "a bit of run.json, ledger, result or report": lambda: found_in(
                texts[int(rng.integers(len(texts)))], folder.path, lambda c: flipped(c, rng)
            ),
            "a bit of its export": lambda: found_in(export, export, lambda c: flipped(c, rng)),
            "a bit of a result alone": lambda: found_in(alone, alone, lambda c: flipped(c, rng)),
            "a number of the result, under a new digest": lambda: found_in(
                folder.result, folder.path, lambda c: forged(c.decode(), rng).encode()
            ),
        }
        for unchanged in (folder.path, export, alone):
            if verify(unchanged).problems:
                raise SystemExit(f"{unchanged} does not verify as it is")
        print("| change | how many | found |\n|---|---|---|")
        total = 0
        for name, once in kinds.items():
            n = n_changes // len(kinds)
            n_found = sum(once() for _ in range(n))
            total += n_found
            print(f"| {name} | {n} | {n_found} |", flush=True)
        print(f"| together | {n_changes // len(kinds) * len(kinds)} | {total} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
