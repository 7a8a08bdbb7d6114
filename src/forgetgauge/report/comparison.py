"""Several results as one table and one HTML page: Q of each method in each, and differences on the pairs they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forgetgauge.errors import NotComparable, UserError
from forgetgauge.report.downloads import Download, csv_download
from forgetgauge.report.formats import written
from forgetgauge.report.html import template
from forgetgauge.report.picture import Marker, Scale, quality_scale, tested_markers
from forgetgauge.report.rows import Column, Rows, of_mappings, refuse_unlike_kinds, rows_of, unlike
from forgetgauge.report.strengths import without_variants
from forgetgauge.results.one_model import OneModelResult, warnings_on
from forgetgauge.results.record import GameResult, MethodResult, Result, by_quality, is_run
from forgetgauge.results.shared import SharedDifference, reasons_against, shared_differences
from forgetgauge.results.verdict import verdict_on, warnings_of
from forgetgauge.wording import counted, setting, signed

Named = Sequence[tuple[str, Result | OneModelResult]]
TITLE = "forgetgauge: results side by side"
"""By which a page of this kind is known."""


def refuse_unlike(named: Named) -> None:
    """UserError where these are not of one kind; NotComparable, with every reason, where they are of several games."""
    refuse_unlike_kinds(named)
    reasons = reasons_against(_results(named))
    if reasons:
        raise NotComparable([f"compare: {reason}; numbers of different games cannot be compared" for reason in reasons])


def _results(named: Named) -> list[tuple[str, Result]]:
    return [(name, without_variants(one)) for name, one in named if isinstance(one, Result)]


def differences_of(named: Named) -> list[SharedDifference]:
    """Differences between results of swap pairs; evidence from one model has none."""
    return shared_differences(_results(named))


def difference_rows(found: Sequence[SharedDifference]) -> Rows:
    """A row for each method and two results."""
    return of_mappings(
        [
            {
                Column("method", "method"): one.method,
                **({} if one.value is None else {Column("value", "at"): setting(one.value)}),
                Column("result", "Q in"): one.second,
                Column("minus", "minus Q in"): one.first,
                Column("difference", "difference", signed): one.difference,
                Column("interval", "interval", _signed_ends, is_interval=True): one.interval,
                Column("pairs", "shared pairs"): one.n_pairs,
                Column("better", "better in"): one.outcome,
            }
            for one in found
        ]
    )


def _signed_ends(interval: tuple[float, float]) -> str:
    return f"[{signed(interval[0])}, {signed(interval[1])}]"


def remarks_of(named: Named, found: Sequence[SharedDifference]) -> list[str]:
    """What else is to be known, one line each."""
    lines = [*unlike(named), *_doubtful(named)]
    results = [one for _, one in named if isinstance(one, Result)]
    if results and not found:
        lines.append(_why_no_differences(results))
    return lines


def _doubtful(named: Named) -> list[str]:
    """Which results carry warnings, that nobody relies on their numbers here who was warned there."""
    each = [
        (name, sum(len(warnings_of(game)) for game in one.games) if isinstance(one, Result) else len(warnings_on(one)))
        for name, one in named
    ]
    return [f"{name}: {counted(n, 'warning')} about its numbers: see its own table" for name, n in each if n]


def _why_no_differences(results: Sequence[Result]) -> str:
    if not all(is_run(game.spec) for result in results for game in result.games):
        return (
            "no differences with intervals: an audit says nothing about which points its pairs are of, so that it is "
            "for you to know whether they are the same"
        )
    return "no differences with intervals: these results share no pairs (the same seed, α and share of the data)"


def compared_table(named: Named, found: Sequence[SharedDifference]) -> str:
    """The text that `forgetgauge compare` prints."""
    parts = [written(rows_of(named), "table")]
    if found:
        parts += ["", written(difference_rows(found), "table")]
    return "\n".join([*parts, *remarks_of(named, found)])


# -- the page ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ComparedRow:
    """Q of a method in one result."""

    result: str
    marker: Marker
    found: MethodResult | None
    verdict: str


@dataclass(frozen=True)
class ComparedMethod:
    """A method in all results, and what differs between them."""

    name: str
    rows: list[ComparedRow]
    differences: list[SharedDifference]


@dataclass(frozen=True)
class ComparedGame:
    """All methods of one game."""

    title: str
    methods: list[ComparedMethod]
    scale: Scale


def render_comparison(named: Named) -> str:
    """The whole page; deterministic, self-contained, without a script."""
    results, found = _results(named), differences_of(named)
    rows = rows_of(named).for_people()
    files = {
        "rows": csv_download("results.csv", rows_of(named)),
        "differences": csv_download("differences.csv", difference_rows(found)),
    }
    downloads: dict[str, Download] = {name: one for name, one in files.items() if one is not None}
    return template("comparison.html.j2").render(
        title=TITLE,
        facts=[name for name, _ in named],
        headline=_headline([name for name, _ in named], found),
        remarks=remarks_of(named, found),
        games=_games(results, found),
        has_differences=bool(found),
        heads=[column.head for column in rows.columns],
        rows=[[column.text(cell) for column, cell in zip(rows.columns, row, strict=True)] for row in rows.cells],
        downloads=downloads,
    )


def _headline(names: Sequence[str], found: Sequence[SharedDifference]) -> str:
    if not found:
        return f"{counted(len(names), 'result')} side by side"
    settled = [one for one in found if one.better is not None]
    if not settled:
        return f"On the pairs they share, no method’s Q is shown to differ between the {counted(len(names), 'result')}"
    first = settled[0]
    others = f", and {counted(len(settled) - 1, 'more difference')} beyond chance" if len(settled) > 1 else ""
    return f"On the pairs they share, {first.method} is better in {first.better}{others}"


def _games(results: Sequence[tuple[str, Result]], found: Sequence[SharedDifference]) -> list[ComparedGame]:
    if not results:
        return []
    markers, sweep = tested_markers(name for name, _ in results), results[0][1].sweep
    games = []
    for number, game in enumerate(results[0][1].games):
        own = [(name, result.games[number]) for name, result in results]
        names = dict.fromkeys(method for _, one in own for method, _ in by_quality(one.methods))
        ends = [end for _, one in own for method in one.methods.values() for end in _ends(method)]
        methods = [
            ComparedMethod(
                method,
                [_row(name, markers[name], one, method) for name, one in own],
                [each for each in found if (each.method, each.value) == (method, game.value)],
            )
            for method in names
        ]
        title = "" if sweep is None else f"{sweep} = {setting(game.value)}"
        games.append(ComparedGame(title, methods, quality_scale(ends)))
    return games


def _row(name: str, marker: Marker, game: GameResult, method: str) -> ComparedRow:
    found = game.methods.get(method)
    return ComparedRow(name, marker, found, "" if found is None else found.verdict or verdict_on(game, method))


def _ends(method: MethodResult) -> list[float]:
    return [] if method.quality is None else [method.quality, *(method.interval or ())]


def refuse_foreign_page(path: str, content: bytes) -> None:
    """UserError where a file that is about to be written over is no page of this kind."""
    if f"<title>{TITLE}</title>".encode() not in content:
        raise UserError(f"{path}: there is a file of another kind; name another one with --to")
