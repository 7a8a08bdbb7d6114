"""Which of the results that the page rests on carry their decisions, so that they can be computed again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forgetgauge.results.record import read_result
from forgetgauge.suites import frontier, replicates
from forgetgauge.suites.records import FILE, read_comparison

CURVES, SEEDS, SPLITS = "Q along the strength", "several trainings of one split", "SWAP against random splits"
RESTS_ON = {replicates.FILE: SEEDS, "swap-vs-random.json": SPLITS, frontier.FILE: CURVES}
"""Record -> what a reader of the page calls the result beside it; a table is called by its name."""


@dataclass(frozen=True)
class Evidence:
    """One `result.json` that statements of the page rest on."""

    folder: str
    """Below the folder of results."""
    name: str
    """`Table 3`, `SWAP against random splits`."""
    carries: bool
    """Whether it has the decisions of every game."""


def evidence(results: Path) -> list[Evidence]:
    """All of them, tables first."""
    return [
        Evidence(path.parent.relative_to(results).as_posix(), name, carries_decisions(path.with_name("result.json")))
        for path, name in _records(results)
        if path.with_name("result.json").exists()
    ]


def _records(results: Path) -> Iterator[tuple[Path, str]]:
    yield from ((path, read_comparison(path).label) for path in sorted(results.rglob(FILE)))
    for record, name in RESTS_ON.items():
        yield from ((path, name) for path in sorted(results.rglob(record)))


def carries_decisions(result: Path) -> bool:
    """Whether `forgetgauge verify` can compute all of it again."""
    return all(game.decisions is not None for game in read_result(result).games)
