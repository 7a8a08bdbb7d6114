"""Whether a change of the code left all numbers as they were: four runs on embedded data, before and after.

    python benchmarks/same_numbers.py FOLDER            plays what is not there yet, and keeps each result in FOLDER
    python benchmarks/same_numbers.py BEFORE AFTER      compares two such folders; exits with 1 if they differ

The default run, DP training, certified removal and the rival metrics. Compared is every number and every word of the
results but seconds, versions, folders and digests: a number that moved its place in the record counts as gone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
RUNS = {
    "embedded": None,
    **{name: EXAMPLES / f"{name}.toml" for name in ("dp-digits", "certified-digits", "rivals-digits")},
}
NOT_COMPARED = ("seconds", "environment", "versions", "not_covered", "digests", "sha256")


def play(folder: Path) -> None:
    """Each run in a folder of its own that is thrown away; its result stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in RUNS.items():
        kept = folder / f"{name}.json"
        if kept.exists():
            continue
        with tempfile.TemporaryDirectory() as work:
            run = Path(work) / "run"
            command = [sys.executable, "-m", "forgetgauge", "run", *([str(file)] if file else []), "--out", str(run)]
            ended = subprocess.run([*command, "--quiet", "--device", "cpu"], stdout=subprocess.DEVNULL, check=False)
            if ended.returncode not in (0, 1):  # 1: jobs failed, as one of rivals-digits does, and are in the result
                sys.exit(f"{name}: exit status {ended.returncode}")
            kept.write_text((run / "result.json").read_text("utf-8"), "utf-8")
        print(f"{name}: played", flush=True)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word of a record, by where it stands."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not any(word in key for word in NOT_COMPARED):
                yield from leaves(part, f"{path}/{key}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from leaves(part, f"{path}/{place}")
    else:
        yield path, value


def compare(before: Path, after: Path) -> bool:
    """Print the differences; whether there are none."""
    same = True
    for name in RUNS:
        old, new = (
            dict(leaves(json.loads((folder / f"{name}.json").read_text("utf-8")))) for folder in (before, after)
        )
        differing = [path for path in old.keys() | new.keys() if old.get(path, ...) != new.get(path, ...)]
        same = same and not differing
        print(f"{name}: {len(old)} before, {len(new)} after, {len(differing)} differ")
        for path in sorted(differing)[:10]:
            print(f"  {path}: {old.get(path, 'absent')} -> {new.get(path, 'absent')}")
    return same


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    if len(sys.argv) == 3:
        sys.exit(0 if compare(Path(sys.argv[1]), Path(sys.argv[2])) else 1)
    play(Path(sys.argv[1]))
