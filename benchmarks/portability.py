"""How far the numbers of a run move with the machine: instruction set, threads, executor, everything else equal.

    python benchmarks/portability.py [OUT.json] [--file RUN.toml] [--only NAME …]

Each way runs the embedded example from nothing in a process of its own. What moves is the last bits of the weights; a
decision near its threshold then falls the other way, and Q with it. Printed: Q of every method under every way, how far
it moves, whether the comparisons (which of two methods is better) are the same, and whether the order of two methods
whose comparison is settled ever changes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WAYS: dict[str, tuple[dict[str, str], list[str]]] = {
    "as it is": ({}, []),
    "again": ({}, []),
    "inline": ({}, ["--executor", "inline"]),
    "each model alone": ({}, ["--deterministic"]),
    "ATen AVX2": ({"ATEN_CPU_CAPABILITY": "avx2"}, []),
    "ATen without AVX": ({"ATEN_CPU_CAPABILITY": "default"}, []),
    "MKL and oneDNN AVX2": ({"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}, []),
    "two threads": ({"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}, []),
}


def result_of(way: str, file: str | None, out: Path) -> dict[str, Any]:
    """The result of one run; what it prints is not shown."""
    environment, options = WAYS[way]
    command = [
        sys.executable,
        "-m",
        "forgetgauge",
        "run",
        *([file] if file else []),
        "--out",
        str(out),
        "--quiet",
        *options,
    ]
    subprocess.run(
        [*command, "--device", "cpu"], env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL
    )
    result: dict[str, Any] = json.loads((out / "result.json").read_text("utf-8"))
    return {**result["games"][0], "environment": result["environment"]}


def settled(result: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Two methods -> the better one, where the comparison says so."""
    pairs = {tuple(sorted((one["first"], one["second"]))): one["better"] for one in result["comparisons"]}
    return {(first, second): better for (first, second), better in pairs.items() if better}


def grounded(result: dict[str, Any]) -> dict[str, bool]:
    """Method -> whether its interval holds 1."""
    return {name: method["interval"][1] >= 1 for name, method in result["methods"].items()}


def summary(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What is the same under all ways, and how far the rest moves."""
    first = next(iter(results.values()))
    qualities = {m: {way: r["methods"][m]["quality"] for way, r in results.items()} for m in first["methods"]}
    known = [settled(result) for result in results.values()]
    always = {pair: found for pair, found in known[0].items() if all(other.get(pair) == found for other in known)}
    ever = {pair for each in known for pair in each}
    turned = [pair for pair in ever if len({each[pair] for each in known if pair in each}) > 1]
    return {
        "quality": qualities,
        "moves": {m: max(each.values()) - min(each.values()) for m, each in qualities.items()},
        "adversary": {m: {way: r["methods"][m]["adversary"] for way, r in results.items()} for m in qualities},
        "settled under every way": [" > ".join((found, *(set(pair) - {found}))) for pair, found in always.items()],
        "settled under some": len(ever),
        "settled both ways": turned,
        "interval holds 1, the same under every way": all(
            grounded(result) == grounded(first) for result in results.values()
        ),
    }


def main() -> None:
    """Run every way and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?")
    parser.add_argument("--file")
    parser.add_argument("--only", nargs="*", default=list(WAYS))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {way: result_of(way, chosen.file, Path(folder) / str(i)) for i, way in enumerate(chosen.only)}
    told = summary(results)
    width = max(map(len, told["quality"]))
    for method, each in told["quality"].items():
        print(
            method.ljust(width), *(f"{quality:.4f}" for quality in each.values()), f"moves {told['moves'][method]:.4f}"
        )
    print("ways:", "; ".join(results))
    for key in ("settled under every way", "settled under some", "settled both ways"):
        print(f"{key}: {told[key]}")
    print("interval holds 1, the same under every way:", told["interval holds 1, the same under every way"])
    if chosen.out:
        processor = next((line.split(":")[1].strip() for line in _processor() if line.startswith("model name")), "")
        environment = {**results[chosen.only[0]]["environment"], "processor": processor or platform.processor()}
        Path(chosen.out).write_text(json.dumps({"environment": environment, **told}, indent=1) + "\n", "utf-8")


def _processor() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text("utf-8").splitlines() if path.exists() else []


if __name__ == "__main__":
    main()
