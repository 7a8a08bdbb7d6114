"""Rows written as text: for a terminal, as CSV, JSON, LaTeX or Markdown.

CSV and JSON hold every column with every digit, so that they can be read back; an interval is two columns in CSV and a
list of two in JSON. The others are for people: fewer columns, rounded numbers, whatever a name holds escaped.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Sequence

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.report.rows import Cell, Rows
from forgetgauge.report.table import align


def written(rows: Rows, form: str) -> str:
    """The rows in one of FORMATS, without a newline at the end."""
    return FORMATS[known_format(form)](rows)


def known_format(form: str) -> str:
    """The name of a format, or one line that names the nearest."""
    if form not in FORMATS:
        raise UserError(unknown_name("format", form, FORMATS))
    return form


def _table(rows: Rows) -> str:
    return align(_texts(rows, _on_one_line))


def _csv(rows: Rows) -> str:
    names, cells = rows.flat()
    return "\n".join([_line_of_csv(names), *(_line_of_csv(row) for row in cells)])


def _line_of_csv(cells: Sequence[Cell]) -> str:
    """Cells with either half of csv's own line break are quoted; with \\n alone for one, \\r would not be."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerow(cells)
    return file.getvalue().removesuffix("\r\n")


def _json(rows: Rows) -> str:
    keys = [column.key for column in rows.columns]
    records = [dict(zip(keys, row, strict=True)) for row in rows.cells]
    return json.dumps(records, indent=1, allow_nan=False, ensure_ascii=False)


def _markdown(rows: Rows) -> str:
    """A table as GitHub has them; numbers stand flush right."""
    head, *body = _texts(rows, escaped_for_markdown)
    sides = ["---:" if right else "---" for right in _are_numbers(rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, sides, *body])


def _latex(rows: Rows) -> str:
    """A tabular with the rules of the package booktabs."""
    head, *body = [" & ".join(_escaped_for_latex(text) for text in line) for line in _texts(rows, _on_one_line)]
    sides = "".join("r" if right else "l" for right in _are_numbers(rows))
    lines = [rf"\begin{{tabular}}{{{sides}}}  % \usepackage{{booktabs}}", r"\toprule", rf"{head} \\", r"\midrule"]
    return "\n".join([*lines, *(rf"{line} \\" for line in body), r"\bottomrule", r"\end{tabular}"])


FORMATS: dict[str, Callable[[Rows], str]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "latex": _latex,
    "markdown": _markdown,
}


def _texts(rows: Rows, escaped: Callable[[str], str]) -> list[list[str]]:
    """The head and every row as people read them; words are `escaped`, numbers are not."""
    for_people = rows.for_people()
    return [
        [escaped(column.head) for column in for_people.columns],
        *(
            [
                escaped(cell) if isinstance(cell, str) else column.text(cell)
                for column, cell in zip(for_people.columns, row, strict=True)
            ]
            for row in for_people.cells
        ),
    ]


def _are_numbers(rows: Rows) -> list[bool]:
    for_people = rows.for_people()
    return [
        bool(rows.cells) and not any(isinstance(row[i], str) for row in for_people.cells)
        for i in range(len(for_people.columns))
    ]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def escaped_for_markdown(text: str) -> str:
    """Neither Markdown nor the HTML in it finds a mark here."""
    text = html.escape(_on_one_line(text), quote=False)
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", text)


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "[": "{[}", "]": "{]}", "*": "{*}", "ε": r"$\varepsilon$", "δ": r"$\delta$", "α": r"$\alpha$",
    "≥": r"$\geq$", "≤": r"$\leq$", "−": "$-$", "–": "--",
}  # fmt: skip
"""Brackets and stars, too: at the start of a row the line break before them would take them for its arguments."""


def _escaped_for_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
