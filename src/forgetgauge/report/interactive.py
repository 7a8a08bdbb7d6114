"""A result in the hands of somebody who writes Python: short to look at, a table, a DataFrame, a picture, a file.

`evaluate`, `audit_file` and `audit_one_model` return these, and `read_result` reads them again. They are the records of
`results` with nothing added to what is stored; everything here shows what stands in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, Self

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import set_aside, write_whole
from forgetgauge.report.comparison import (
    compared_table,
    differences_of,
    refuse_unlike,
    remarks_of,
    render_comparison,
)
from forgetgauge.report.rows import Rows, pair_rows, rows_of
from forgetgauge.report.rows import adversary_rows as rows_by_adversary
from forgetgauge.results import one_model, record
from forgetgauge.results.shared import SharedDifference
from forgetgauge.results.verdict import no_controls, reservations, sweep_verdict, verdict
from forgetgauge.wording import counted, setting, visible

if TYPE_CHECKING:
    import pandas

By = Literal["method", "adversary", "pair"]
WIDTH = 100
"""Letters in a line of prose."""
MOST_ROWS = 12
"""Most rows of a short form; the table has all of them."""
BRIEF = ("result", "method", "model", "test", "strength", "q", "q_interval", "advantage", "log10_p", "verdict")
"""The columns of a short form, in this order, behind the values of a sweep."""


class Shown:
    """What can be looked at as rows: in a terminal, in a notebook, as a DataFrame."""

    def table(self) -> str:
        """The text that the command line prints."""
        raise NotImplementedError

    def _rows(self) -> Rows:
        raise NotImplementedError

    def _titled(self) -> str:
        """What it is, in one line."""
        raise NotImplementedError

    def _remarks(self) -> list[str]:
        """What is to be known, one line each."""
        raise NotImplementedError

    def _brief(self) -> Rows:
        rows = self._rows()
        places = {column.key: i for i, column in enumerate(rows.columns)}
        kept = [i for i, column in enumerate(rows.columns) if column.is_sweep]
        kept += [places[key] for key in BRIEF if key in places]
        return Rows(
            tuple(rows.columns[i] for i in kept), [[row[i] for i in kept] for row in rows.cells[:MOST_ROWS]]
        ).for_people()

    def _left_out(self) -> list[str]:
        more = len(self._rows().cells) - MOST_ROWS
        return [f"… and {counted(more, 'row')} more: .table() has all"] if more > 0 else []

    def __repr__(self) -> str:
        from forgetgauge.report.formats import written

        remarks = [line for remark in self._remarks() for line in wrap(remark, WIDTH, break_on_hyphens=False)]
        lines = [self._titled(), *written(self._brief(), "table").splitlines(), *self._left_out(), *remarks]
        return visible("\n".join(lines))

    def _repr_html_(self) -> str:
        from forgetgauge.report.html import template

        brief = self._brief()
        cells = [[column.text(cell) for column, cell in zip(brief.columns, row, strict=True)] for row in brief.cells]
        page = template("brief.html.j2").render(
            title=self._titled(),
            heads=[column.head for column in brief.columns],
            rows=cells,
            remarks=[*self._left_out(), *self._remarks()],
        )
        return visible(page)

    def to_dataframe(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame: numbers are numbers, and an interval is two columns, `…_low` and `…_high`."""
        return _frame(self._rows())


class Result(Shown, record.Result):
    """What a run or an audit of swap pairs found: Q of each method, with all that it follows from.

    It is the record that `result.json` stores (its fields are there), and can be looked at: by itself it shows a few
    lines, Q of each method with its interval and verdict.

    Examples:
        >>> result = forgetgauge.read_result("runs/digits")
        >>> result.verdict
        'fisher has the highest Q of the 6 methods tested, and what it was to forget is still visible: ...'
        >>> print(result.table())
        method         Q      95 % interval   pairs ...
        >>> result.to_dataframe().loc[:, ["method", "q"]].round(3).head(2)
            method      q
        0  retrain  1.000
        1   fisher  0.913
        >>> axes = result.plot()  # Q with intervals; result.plot_frontier(): Q against accuracy
        >>> result.methods["none"].interval
        (0.82..., 0.87...)
        >>> result.save("kept")
        >>> forgetgauge.read_result("kept") == result
        True
    """

    @classmethod
    def of(cls, found: record.Result) -> Self:
        """A stored result, in the form that notebooks show."""
        return cls(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})

    def __eq__(self, other: object) -> bool:
        return _same(self, other, record.Result)

    __hash__ = None  # type: ignore[assignment]  # it holds lists and mappings

    @property
    def verdict(self) -> str:
        """One sentence on the method of highest Q; of a sweep, on which method has it where."""
        return (verdict(self.games[0]) if self.sweep is None else sweep_verdict(self)).headline

    def table(self) -> str:
        """The text that the command line prints, with the lines on how to read it."""
        from forgetgauge.report.table import render_table

        return visible(render_table(self))

    def to_dataframe(self, by: By = "method") -> pandas.DataFrame:
        """A pandas DataFrame with one row for each method (of a sweep, at each of its values), highest Q first.

        With `by="adversary"` there is one row for each method and adversary, with its signed advantage, interval and
        diagnostics; with `by="pair"` one for each method, adversary and swap pair. An interval is two columns,
        `q_interval_low` and `q_interval_high`; what was not measured is NaN. The columns: docs/python.md.
        """
        makers = {
            "method": lambda: self._rows(),
            "adversary": lambda: rows_by_adversary(self),
            "pair": lambda: pair_rows(self),
        }
        if by not in makers:
            raise UserError(unknown_name("by", str(by), makers))
        return _frame(makers[by]())

    def plot(self, ax: Any = None) -> Any:
        """Q of each method with its interval, shaded what chance alone gives; of a sweep over numbers, Q against them.

        Returns the matplotlib axes (drawn on `ax` where it is given); where matplotlib is not installed, a picture that
        a notebook shows and that has `save(path)`.
        """
        from forgetgauge.report.chart import quality_chart
        from forgetgauge.report.drawing import drawn

        return drawn(quality_chart(self), ax)

    def plot_frontier(self, ax: Any = None) -> Any:
        """Q against accuracy on points that no model saw, upper right is best: each method is a point, or a curve
        along its strength where the run played several. Returns what `plot` returns; not for a sweep."""
        from forgetgauge.report.chart import frontier_chart
        from forgetgauge.report.drawing import drawn

        if self.sweep is not None:
            raise UserError(
                "plot_frontier: a sweep has one frontier for each value; .plot() shows Q against the values"
            )
        return drawn(frontier_chart(self), ax)

    def save(self, path: str | Path) -> None:
        """Write it: to a name that ends in .json the result, in .html the report; to any other, a folder with both.

        A folder keeps another result that it holds, under a number.
        """
        from forgetgauge.report.html import render_report

        _save(Path(path), "result.json", self.to_json, "report.html", lambda: render_report(self))

    def _rows(self) -> Rows:
        return rows_of([("", self)])

    def _titled(self) -> str:
        game = self.games[0]
        facts = [str(game.spec.get("data", {}).get("name", "")).partition("@")[0]]
        facts += [f"α = {setting(game.spec['alpha'])}"] if "alpha" in game.spec and self.sweep != "game.alpha" else []
        facts.append(
            counted(game.spec.get("pairs", max((m.n_pairs for m in game.methods.values()), default=0)), "swap pair")
        )
        facts += [] if self.sweep is None else [f"{counted(len(self.games), 'value')} of {self.sweep}"]
        return f"forgetgauge.Result: {', '.join(filter(None, facts))}"

    def _remarks(self) -> list[str]:
        n_warnings = sum(len(reservations(game)) for game in self.games)
        failed = [f"{counted(len(self.failures), 'job')} failed: see .failures"] if self.failures else []
        warned = [f"{counted(n_warnings, 'warning')}: see .table()"] if n_warnings else []
        return [self.verdict, *failed, *warned, *(line for game in self.games for line in no_controls(game))]


class Evidence(Shown, one_model.OneModelResult):
    """What the exact test of one model found (`audit` with a draw): p, a lower bound of ε and a verdict; it is not Q.

    It is the record that `evidence.json` stores, and can be looked at as a `Result` can: a short form, `table()`,
    `to_dataframe()` with one row for each test, `plot()`, `verdict`, `save(path)`.

    Examples:
        >>> evidence = forgetgauge.audit("outputs.csv", "draw.json", states=["all"])
        >>> evidence.verdict
        'still visible'
        >>> evidence.models["model"].epsilon > 1
        True
    """

    @classmethod
    def of(cls, found: one_model.OneModelResult) -> Self:
        """Stored evidence, in the form that notebooks show."""
        return cls(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})

    def __eq__(self, other: object) -> bool:
        return _same(self, other, one_model.OneModelResult)

    __hash__ = None  # type: ignore[assignment]  # it holds lists and mappings

    @property
    def verdict(self) -> str:
        """In words; of several models, `first: still visible; second: inconclusive`."""
        several = len(self.models) > 1
        return "; ".join(f"{f'{name}: ' if several else ''}{model.verdict}" for name, model in self.models.items())

    def table(self) -> str:
        """The text that the command line prints."""
        from forgetgauge.report.one_model import render_evidence

        return visible(render_evidence(self))

    def plot(self, ax: Any = None) -> Any:
        """The advantage of each test. Returns the matplotlib axes or, where that is not installed, a picture."""
        from forgetgauge.report.chart import evidence_chart
        from forgetgauge.report.drawing import drawn

        return drawn(evidence_chart(self), ax)

    def save(self, path: str | Path) -> None:
        """Write it: to a name that ends in .json the evidence, in .html the page; to any other, a folder with both.

        A folder keeps other evidence that it holds, under a number.
        """
        from forgetgauge.report.one_model import render_evidence_page

        _save(Path(path), "evidence.json", self.to_json, "evidence.html", lambda: render_evidence_page(self))

    def _rows(self) -> Rows:
        return rows_of([("", self)])

    def _titled(self) -> str:
        forgotten = f"F is {counted(self.n_forget, self.kind.removesuffix('s'))} ({self.origin})"
        return f"forgetgauge.Evidence: {counted(len(self.models), 'model')}, {forgotten}"

    def _remarks(self) -> list[str]:
        n_warnings = len(one_model.warnings_on(self))
        warned = [f"{counted(n_warnings, 'warning')}: see .table()"] if n_warnings else []
        return [f"Evidence from one model, not Q: {self.verdict}.", *warned]


class Comparison(Shown):
    """Results of one game side by side, one row for each method of each; `differences` on the pairs they share.

    `remarks` say what makes them hard to compare.

    Examples:
        >>> both = forgetgauge.compare({"first": "runs/digits", "second": "runs/digits"})
        >>> both.to_dataframe().groupby("result").size().to_dict()
        {'first': 8, 'second': 8}
        >>> both.remarks
        []
    """

    def __init__(self, named: Sequence[tuple[str, record.Result | one_model.OneModelResult]]) -> None:
        self.results = dict(named)
        """Name -> result."""
        self.differences: list[SharedDifference] = differences_of(named)
        """Of each method that two results have, on the pairs that both have played, with a paired interval."""
        self.remarks = remarks_of(named, self.differences)
        """What is not the same in all of them and is to be known, one line each."""

    def table(self) -> str:
        """The text that `forgetgauge compare` prints."""
        return visible(compared_table(list(self.results.items()), self.differences))

    def save(self, path: str | Path) -> None:
        """Write the page that `forgetgauge compare` writes."""
        write_whole(Path(path), render_comparison(list(self.results.items())))

    def plot(self, ax: Any = None) -> Any:
        """Q of each method of each result with its interval. Returns what `Result.plot` returns; evidence has no Q."""
        from forgetgauge.report.chart import comparison_chart
        from forgetgauge.report.drawing import drawn

        found = {name: one for name, one in self.results.items() if isinstance(one, record.Result)}
        if not found:
            raise UserError("plot: evidence from one model has no Q; each has a plot of its own")
        return drawn(comparison_chart(found), ax)

    def _rows(self) -> Rows:
        return rows_of(list(self.results.items()))

    def _titled(self) -> str:
        return f"forgetgauge.Comparison: {counted(len(self.results), 'result')}"

    def _remarks(self) -> list[str]:
        return self.remarks


AnyResult = record.Result | one_model.OneModelResult
Named = Mapping[str, "AnyResult | str | Path"] | Sequence["AnyResult | str | Path"]


def read_result(path: str | Path, *, verify: bool = False) -> Result | Evidence:
    """A stored result: of `result.json` or `evidence.json`, or of the folder of a run or an audit that has one.

    One that was changed since it was written is refused.

    Args:
        path: The file, or the folder.
        verify: Computes its numbers again from the decisions that it carries, which takes seconds, and refuses it where
            they do not fit.

    Examples:
        >>> forgetgauge.read_result("runs/digits").methods["none"].verdict
        'still visible'
    """
    from forgetgauge.results.reading import read_either, read_sealed

    return shown(read_either(Path(path))[1] if verify else read_sealed(Path(path)))


def shown(found: AnyResult) -> Result | Evidence:
    """Either kind of record, to be looked at."""
    return Evidence.of(found) if isinstance(found, one_model.OneModelResult) else Result.of(found)


def compare(results: Named) -> Comparison:
    """Results side by side: what `evaluate` returned, or paths of stored ones; a mapping gives them names. Refused with
    every reason (`NotComparable`) where their games differ, so that their numbers cannot be compared.

    Examples:
        >>> result = forgetgauge.read_result("runs/digits")
        >>> forgetgauge.compare({"before": "runs/digits", "after": result})
        forgetgauge.Comparison: 2 results
        ...
    """
    if isinstance(results, str | Path | record.Result | one_model.OneModelResult):
        raise UserError("compare: give several results, as a list or as a mapping name -> result")
    if isinstance(results, Mapping):
        named = [(str(name), found) for name, found in results.items()]
    else:
        named = [(str(one) if isinstance(one, str | Path) else f"result {i}", one) for i, one in enumerate(results, 1)]
    read = [(name, read_result(one) if isinstance(one, str | Path) else one) for name, one in named]
    for name, one in read:
        if not isinstance(one, record.Result | one_model.OneModelResult):
            raise UserError(f"compare: {name} is neither a result nor the path of one")
    refuse_unlike(read)
    return Comparison(read)


def _same(one: Any, other: object, kind: type) -> bool:
    fields = [field.name for field in dataclasses.fields(one) if field.compare]
    return isinstance(other, kind) and all(getattr(one, name) == getattr(other, name) for name in fields)


def _save(path: Path, name: str, record_text: Any, page: str, page_text: Any) -> None:
    one_file = {".json": record_text, ".html": page_text}.get(path.suffix)
    (path if one_file is None else path.parent).mkdir(parents=True, exist_ok=True)
    if one_file is not None:
        write_whole(path, one_file())
    else:
        text = record_text()
        set_aside(path / name, text, path / page)
        write_whole(path / name, text)
        write_whole(path / page, page_text())


def _frame(rows: Rows) -> pandas.DataFrame:
    try:
        import pandas
    except ModuleNotFoundError:
        raise UserError(
            "to_dataframe needs pandas, which is not installed: pip install 'forgetgauge[notebook]'"
        ) from None
    names, cells = rows.flat()
    frame = pandas.DataFrame({name: [row[i] for row in cells] for i, name in enumerate(names)})
    for i, name in enumerate(names):
        if not any(isinstance(row[i], str) for row in cells) and frame[name].dtype == object:
            frame[name] = frame[name].astype(float)  # nothing but numbers and gaps
    return frame
