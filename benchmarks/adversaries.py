"""How strong each adversary is: the nine of the default class and those that are not in it, on three settings.

    python benchmarks/adversaries.py OUT [SETTING ...]

runs benchmarks/adversaries-SETTING.toml into OUT/SETTING (what is done is not done again) and prints the tables of
docs/adversaries.md. digits needs nothing; cifar10 and mnist need their data (`forgetgauge data get`).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from forgetgauge.game.intervals import pair_interval
from forgetgauge.plan.spec import DEFAULT_ADVERSARIES
from forgetgauge.results.record import MethodResult, read_result
from forgetgauge.wording import signed, signed_bracket

SETTINGS = ("digits", "cifar10", "mnist")
METHODS = ("none", "ft-final", "retrain")


def main() -> None:
    """Do the runs that are missing, then print."""
    out, chosen = Path(sys.argv[1]), sys.argv[2:] or SETTINGS
    found: dict[str, dict[str, MethodResult]] = {}
    for setting in chosen:
        file = Path(__file__).with_name(f"adversaries-{setting}.toml")
        command = [sys.executable, "-m", "forgetgauge", "run", str(file), "--out", str(out / setting)]
        if not (out / setting / "result.json").exists():
            subprocess.run(command, check=True)
        found[setting] = read_result(out / setting / "result.json").methods
    for method in METHODS:
        print(f"\n{strengths(found, method)}")
    print(f"\nDifference to the strongest of the default class:\n\n{differences(found)}")


def strengths(found: dict[str, dict[str, MethodResult]], method: str) -> str:
    """Advantage with its interval, and AUC, of every adversary in every setting."""
    rows = [[f"against `{method}`", *(f"{setting}, AUC" for setting in found)]]
    first = next(iter(found.values()))[method].by_adversary
    for name in sorted(first, key=[*DEFAULT_ADVERSARIES, *first].index):
        cells = []
        for methods in found.values():
            one = methods[method].by_adversary[name]
            auc = "" if one.diagnostics is None else f", {one.diagnostics.auc:.3f}"
            cells.append(f"{signed(one.advantage)} {signed_bracket(one.interval)}{auc}")
        rows.append([f"`{name}`", *cells])
    return markdown(rows)


def differences(found: dict[str, dict[str, MethodResult]]) -> str:
    """Of each adversary that is not in the default class, pair by pair, less the strongest of those that are."""
    further = [name for name in next(iter(found.values()))["none"].by_adversary if name not in DEFAULT_ADVERSARIES]
    heads = [*(f"`{name}`" for name in further), "`bavaria` less `lira-online`"]
    rows = [["setting", "method", "strongest of the nine", *heads]]
    for setting, methods in found.items():
        for method in METHODS[:-1]:
            every = methods[method].by_adversary
            best = max(DEFAULT_ADVERSARIES, key=lambda name: every[name].advantage)
            compared = [*((name, best) for name in further), ("bavaria", "lira-online")]
            cells = [_less(*(every[name].by_pair for name in pair)) for pair in compared]
            rows.append([setting, f"`{method}`", f"`{best}` {signed(every[best].advantage)}", *cells])
    return markdown(rows)


def _less(one: list[float], other: list[float]) -> str:
    """The mean difference over pairs, with Student's interval."""
    apart = np.array(one) - np.array(other)
    interval = pair_interval(apart)
    return f"{signed(float(apart.mean()))} {signed_bracket((interval.low, interval.high))}"


def markdown(rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
