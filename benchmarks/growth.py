"""How the cost of a run grows with its pairs, trainings, methods and data: seconds of one core, a table and a picture.

    python benchmarks/growth.py [docs/growth.svg]

Real runs on the digits with a recipe of three epochs, everything in this process on one thread; one thing is doubled at
a time, the rest stays at its smallest. Seconds are CPU time: what an idle core would take, whoever else uses this one.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import forgetgauge

SMALLEST: dict[str, Any] = {"pairs": 2, "seeds": 1, "unlearner": ["retrain", "none"], "fraction": 0.25}
GROWN: dict[str, list[tuple[int, dict[str, Any]]]] = {
    "pairs": [(n, {"pairs": n}) for n in (2, 4, 8, 16)],
    "trainings per side": [(n, {"seeds": n}) for n in (1, 2, 4, 8)],
    "methods": [
        (n, {"unlearner": {f"fine-tune {i}": {"method": "fine-tune", "lr": 0.01 + i / 1e4} for i in range(n)}})
        for n in (1, 2, 4, 8)
    ],
    "points of data": [(round(1797 * f), {"fraction": f}) for f in (0.125, 0.25, 0.5, 1.0)],
}
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")


def seconds_of(settings: dict[str, Any]) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    forgetgauge.evaluate(**{**SMALLEST, **settings}, shadows=2, learner={"epochs": 3}, device="cpu", queries=(1,))
    return time.process_time() - start


def drawn(lines: dict[str, list[tuple[float, float]]]) -> str:
    """Cost against size, both as multiples of the smallest, on logarithmic axes; the dashed diagonal is linear."""
    left, top, side = 46, 16, 260

    def at(size: float, cost: float) -> tuple[float, float]:
        return left + side * math.log2(size) / 3, top + side - side * math.log2(max(cost, 1)) / 3

    parts = []
    for n in (1, 2, 4, 8):
        x, y = at(n, n)
        parts.append(f'<text x="{x:.0f}" y="{top + side + 18}" text-anchor="middle">{n}×</text>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{n}×</text>')
        parts.append(f'<path d="M{left} {y:.1f}h{side}M{x:.1f} {top}v{side}" stroke="#8884" fill="none"/>')
    (x0, y0), (x1, y1) = at(1, 1), at(8, 8)
    parts.append(f'<path d="M{x0} {y0}L{x1} {y1}" stroke="#888" stroke-dasharray="5 4"/>')
    for row, ((name, line), colour) in enumerate(zip(lines.items(), COLOURS, strict=True)):
        way = "L".join("{:.1f} {:.1f}".format(*at(*point)) for point in line)
        parts.append(f'<path d="M{way}" stroke="{colour}" stroke-width="2.5" fill="none"/>')
        label = f'<text x="{left + side + 32}" y="{top + 24 + 22 * row}">{name}</text>'
        parts.append(
            f'<path d="M{left + side + 10} {top + 20 + 22 * row}h16" stroke="{colour}" stroke-width="3"/>{label}'
        )
    parts.append(f'<text x="{left + side + 10}" y="{top + 24 + 22 * len(lines)}">dashed: linear</text>')
    parts.append(f'<text x="{left + side / 2}" y="{top + side + 38}" text-anchor="middle">size</text>')
    style = 'font-family="sans-serif" font-size="12" fill="#777"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 500 320" {style}>{"".join(parts)}</svg>\n'


def main() -> None:
    """Measure, print, draw."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/growth.svg")
    seconds_of({})  # imports, and the first touch of everything
    lines = {}
    print("| what grows | sizes | seconds of one core | largest against smallest |\n|---|---|---|---|")
    for name, sizes in GROWN.items():
        found = [(size, seconds_of(settings)) for size, settings in sizes]
        lines[name] = [(size / found[0][0], seconds / found[0][1]) for size, seconds in found]
        told = [", ".join(str(size) for size, _ in found), ", ".join(f"{seconds:.1f}" for _, seconds in found)]
        print(
            f"| {name} | {told[0]} | {told[1]} | {lines[name][-1][1]:.1f}× for {lines[name][-1][0]:.0f}× |", flush=True
        )
    target.write_text(drawn(lines))


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
