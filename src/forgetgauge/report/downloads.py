"""The data behind each picture, as a link that a page carries with it: nothing is fetched, and no script is needed."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from forgetgauge.report.formats import written
from forgetgauge.report.rows import Cell, Column, Rows, of_mappings, pair_rows, rows_of, rows_of_adversaries, sweep_cell
from forgetgauge.report.thumbnails import ShownPoints
from forgetgauge.results.record import AdversaryResult, Result, by_quality


@dataclass(frozen=True)
class Download:
    """A file that is inside the page."""

    name: str
    uri: str


def csv_download(name: str, rows: Rows) -> Download | None:
    """Rows as a CSV file; None where there are none."""
    return Download(name, csv_uri(written(rows, "csv"))) if rows.cells else None


def csv_uri(text: str) -> str:
    """A data URI of CSV."""
    packed = base64.b64encode(f"{text}\n".encode()).decode("ascii")
    return f"data:text/csv;charset=utf-8;base64,{packed}"


def downloads_of(result: Result, shown: Result, points: Mapping[int, list[ShownPoints]]) -> dict[str, Download]:
    """Picture -> its data; `shown` is the result without the points of a frontier."""
    found = {
        "quality": csv_download("q-by-method.csv", rows_of([("", shown)])),
        "frontier": csv_download("frontier.csv", rows_of([("", result)])),
        "advantages": csv_download("advantage-by-pair.csv", pair_rows(shown)),
        "queries": csv_download("q-by-queries.csv", _query_rows(shown)),
        "roc": csv_download("roc.csv", roc_rows(shown)),
        "parts": csv_download("q-by-part.csv", part_rows(shown)),
        "points": csv_download("points.csv", point_rows(shown, points)),
    }
    return {name: one for name, one in found.items() if one is not None}


def roc_rows(result: Result) -> Rows:
    """A row for each point of each curve."""

    def of(found: AdversaryResult) -> Iterable[dict[Column, Cell]]:
        if found.roc is None:
            return
        band: Sequence[Cell] = found.roc.band or [None] * len(found.roc.fpr)
        for fpr, tpr, ends in zip(found.roc.fpr, found.roc.tpr, band, strict=True):
            yield {Column("fpr"): fpr, Column("tpr"): tpr, Column("tpr_interval", is_interval=True): ends}

    return rows_of_adversaries(result, of)


def part_rows(result: Result) -> Rows:
    """A row for each method and part."""
    return of_mappings(
        [
            {
                **sweep_cell(result, game),
                Column("method"): name,
                Column("adversary"): method.adversary,
                Column("column"): column,
                Column("part"): one.part,
                Column("q"): 1 - abs(one.advantage),
                Column("advantage"): one.advantage,
                Column("advantage_interval", is_interval=True): one.interval,
                Column("points"): one.n_points,
                Column("pairs"): one.n_pairs,
            }
            for game in result.games
            for name, method in by_quality(game.methods)
            for column, parts in method.parts.items()
            for one in parts
        ]
    )


def _query_rows(result: Result) -> Rows:
    def of(found: AdversaryResult) -> Iterable[dict[Column, Cell]]:
        for strong in found.strong:
            yield {
                Column("queries"): strong.queries,
                Column("advantage"): strong.advantage,
                Column("advantage_interval", is_interval=True): strong.interval,
            }

    return rows_of_adversaries(result, of)


def point_rows(result: Result, points: Mapping[int, list[ShownPoints]]) -> Rows:
    """A row for each method and point that is shown."""
    return of_mappings(
        [
            {
                **sweep_cell(result, result.games[number]),
                Column("method"): shown.found.method,
                Column("adversary"): shown.found.adversary,
                Column("id"): point.id,
                Column("seen"): point.n_seen,
                Column("wrongly"): point.n_wrong,
                Column("asked"): point.n_asked,
                Column("margin_forgotten"): point.margin_forgotten,
                Column("margin_unseen"): point.margin_unseen,
            }
            for number, each in points.items()
            for shown in each
            for point in shown.found.points
        ]
    )
