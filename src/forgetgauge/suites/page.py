"""The reproduction as one page, for someone who has read the paper's abstract: Markdown, and HTML with pictures.

Made from what is stored under a results folder alone; of a table at several scales the largest is shown, and
smaller ones below it where columns are missing. What was not run is called that.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape

from forgetgauge.report.html import template_of
from forgetgauge.suites.accuracy import accuracy_remarks, accuracy_rows
from forgetgauge.suites.agreement import inside_words
from forgetgauge.suites.claims import all_of, claim_rows, claim_rules, claims
from forgetgauge.suites.compare import AGREEMENT, as_paper_text, judged_cells, ours_text, paper_text, remarks
from forgetgauge.suites.device_time import runs_of, spent_on_tables, totals
from forgetgauge.suites.evidence import CURVES, SEEDS, SPLITS
from forgetgauge.suites.findings import SPLITTING, Findings, Stored
from forgetgauge.suites.frontier_words import frontier_remarks, frontier_rows, marked_words, paper_cells
from forgetgauge.suites.paper import KEYS, PRINTED, in_column, paper_source, table_name, text_values
from forgetgauge.suites.pictures import (
    BOTTOM_PX,
    HEIGHT_PX,
    LEFT_PX,
    RIGHT_PX,
    TOP_PX,
    ColumnPicture,
    column_pictures,
    curve_pictures,
)
from forgetgauge.suites.quality_map import map_svg, map_words
from forgetgauge.suites.records import CompareCell, TableComparison
from forgetgauge.suites.replicates import Replicates
from forgetgauge.suites.searches import RECIPES, RULE, SEARCHES, search_rows
from forgetgauge.suites.slips import slips
from forgetgauge.suites.splits_page import splitting_setting, spread_rows, spread_words
from forgetgauge.suites.summary import at_a_price, checked, in_a_minute, spent_words
from forgetgauge.suites.tables import OUTLINES, PUBLISHED_FOLDER
from forgetgauge.suites.toy import toy_table
from forgetgauge.suites.tried import tried_lines
from forgetgauge.wording import counted, listed, plain, seconds, tau_text

QUESTIONS = {
    "table1": "Does the ranking of methods hold when only a part η of the data is used?",
    "table2": "Does the ranking hold when a larger share α of the training data is to be forgotten?",
    "table3": "Does Q rise when training itself is private (a small ε)? It should: less is memorised.",
    "table4a": "Does the IC score, another metric, rise as ε falls?",
    "table4b": "Does the MIA score, a third metric, rise as ε falls?",
    "table5a": "How accurate are the models behind Table 4a?",
    "table5b": "How accurate are the models behind Tables 3 and 4b?",
    "table6": "Does the ranking hold for deeper networks?",
    "table7": "Does the ranking hold on other data?",
    "table8": "Does the advantage fall with the ε that certified removal promises?",
    "table8-visible": "Does certified removal remove what an attacker sees where the request is ignored?",
}

PAPER_DAYS = {
    "table1": "dataset_size_and_seeds",
    **dict.fromkeys(("table3", "table4a", "table4b", "table5a", "table5b"), "dp"),
    SPLITTING: "swap_vs_random_std",
}
"""Whose time the paper states, and under which of its entries; several tables share one."""


@dataclass(frozen=True)
class Section:
    """One table on the page."""

    name: str
    heading: str
    question: str
    found: TableComparison | None
    pictures: list[ColumnPicture]
    grid: list[list[str]]
    remarks: list[str]
    words: list[str]
    """Where ours differs, and what was tried to explain it; of a table that is ours alone, what it shows."""
    by_price: bool = False
    """Whether strengths were chosen for each column, and another run of the table has others."""

    @property
    def anchor(self) -> str:
        """What a link to it names, on a page that may have the table several times."""
        if self.found is None:
            return self.name
        scale = "" if self.found.scale == "paper" else f"-{self.found.scale}"
        replicates = "" if self.found.replicates == 1 else f"-replicates-{self.found.replicates}"
        published = PUBLISHED_FOLDER if self.found.published else ""
        return self.name + scale + replicates + published + ("-by-price" if self.by_price else "")

    @property
    def words_heading(self) -> str:
        """What stands above `words`."""
        return "Where ours differs, and what was tried" if self.name in KEYS else "What it shows"


def render_markdown(found: Findings, page: Path | None = None) -> str:
    """The page as Markdown; `page` is where it is to lie, `docs/reproduction.md` beside the results without."""
    home = (found.root.parent / "docs" if page is None else page.parent).absolute()
    link = "" if found.map_path is None else Path(os.path.relpath(found.map_path.absolute(), home)).as_posix()
    return template_of("suites", "page.md.j2", **FILTERS).render(_context(found), map_link=link).rstrip() + "\n"


def render_page(found: Findings) -> str:
    """The page as one HTML file that loads nothing."""
    return template_of("suites", "page.html.j2", **FILTERS).render(_context(found))


def _context(found: Findings) -> dict[str, object]:
    judged = claims(found)
    return {
        "sections": [section for name in OUTLINES for section in _sections(name, found)],
        "summary": _summary(found),
        "inside": inside_words(found),
        "inside_published": inside_words(found, published=True),
        "times": _times(found),
        "in_a_minute": in_a_minute(found, all_of(judged)),
        "at_a_price": at_a_price(found),
        "checked": checked(found),
        "slips": slips(),
        "splittings": [(splitting_setting(one), spread_rows(one), spread_words(one)) for one in found.splittings],
        "toy": toy_table(found.toy),
        "toy_holds": all(row.holds for row in found.toy),
        "source": paper_source(),
        "claims": [(subject, claim_rows(those), claim_rules(those)) for subject, those in judged.items()],
        "tried": tried_lines(found.root, all_of(judged)),
        "accuracy": found.accuracy,
        "accuracy_grid": [] if found.accuracy is None else accuracy_rows(found.accuracy),
        "accuracy_remarks": [] if found.accuracy is None else accuracy_remarks(found.accuracy),
        **_frontiers(found),
    }


def _frontiers(found: Findings) -> dict[str, object]:
    shown = found.frontiers
    return {
        "frontiers": shown,
        "frontier_grid": [] if shown is None else frontier_rows(shown),
        "frontier_remarks": [] if shown is None else frontier_remarks(shown),
        "map": None if shown is None else map_svg(shown),
        "map_words": "" if shown is None else map_words(paper_cells(shown)),
        "marked_words": "" if shown is None else marked_words(shown),
        "frontier_pictures": [] if shown is None else curve_pictures(shown),
        "frame": {"left": LEFT_PX, "right": RIGHT_PX, "top": TOP_PX, "bottom": BOTTOM_PX, "height": HEIGHT_PX},
        "rule": RULE,
        "searches": [(search, search_rows(search)) for search in found.searches],
    }


def _sections(name: str, found: Findings) -> list[Section]:
    """Of one table: one for each scale that is shown, or one that says it was not run."""
    heading = f"{table_name(name)}: {OUTLINES[name].title}"
    return [_section(heading, stored, differs) for stored, differs in _told_apart(name, found)] or [
        Section(name, heading, QUESTIONS[name], None, [], [], [], [])
    ]


def _section(heading: str, stored: Stored, differs: str) -> Section:
    found = stored.comparison
    heading += "" if found.scale == "paper" else f", {found.scale} scale"
    heading += differs
    pictures, grid = column_pictures(found), _grid(found)
    lines = [*remarks(found), *([] if stored.verifiable is None else [VERIFIED[stored.verifiable]])]
    by_price = stored.by_price and STRENGTHS[True] in differs
    return Section(found.name, heading, QUESTIONS[found.name], found, pictures, grid, lines, stored.words, by_price)


def _told_apart(name: str, found: Findings) -> list[tuple[Stored, str]]:
    """All there is of a table, each with what tells it from the others, apart from its scale."""
    tables = [*found.shown(name), *found.besides(name)]
    several = len({_strengths(stored) for stored in tables}) > 1
    told = []
    for stored in tables:
        n = stored.comparison.replicates
        words = [f"{n} trainings of each split"] if n > 1 else []
        words += [_strengths(stored)] if several or stored.comparison.published else []
        told.append((stored, "".join(f", {each}" for each in words)))
    return told


def _strengths(stored: Stored) -> str:
    return PUBLISHED_ALONE if stored.comparison.published else STRENGTHS[stored.by_price]


PUBLISHED_ALONE = "published settings alone"
STRENGTHS = {
    True: "strengths chosen for each column, at a price of one point of accuracy",
    False: "strengths not chosen for each column",
}
VERIFIED = {
    True: "The result carries every decision behind it: `forgetgauge verify` computes it again.",
    False: "The result is from before results carried their decisions: `forgetgauge verify` cannot compute it again.",
}


def _grid(found: TableComparison) -> list[list[str]]:
    """Head and rows; a cell has the paper's number, ours as the paper computes it, whether they agree, and ours."""
    rows = [["method", *(in_column(found.variable, column) for column in found.columns)]]
    for row, cells in found.rows.items():
        rows.append([PRINTED.get(row, row), *(_both(cells[column]) for column in found.columns)])
    return rows


def _both(cell: CompareCell) -> str:
    if cell.ours is None or (cell.paper is None and cell.as_paper is None):  # not run, or nothing of the paper's
        return f"{paper_text(cell)}<br>{ours_text(cell)}"
    as_paper = f"**{as_paper_text(cell)}** {AGREEMENT[cell.inside]}".rstrip()
    return f"{paper_text(cell)}<br>{as_paper}<br>{ours_text(cell)}"


def _summary(found: Findings) -> list[list[str]]:
    """One line a table: how it was run, and whether it agrees."""
    head = [
        "table",
        "run",
        "cells inside the paper’s ±",
        "Kendall τ with the paper, Retrain apart",
        "Retrain at its ideal",
    ]
    rows = [head]
    for name in OUTLINES:
        lines = [_line(one.comparison, differs) for one, differs in _told_apart(name, found)]
        rows += [[table_name(name), *cells] for cells in lines or [["not run", "–", "–", "–"]]]
    return rows


def _times(found: Findings) -> list[list[str]]:
    """One line for all that took time, and the total."""
    rows = [["what", "run", "wall time", "device time", "paper, on four A40"]]
    times = device_times(found)
    for name in OUTLINES:
        for one, differs in _told_apart(name, found):
            table = one.comparison
            ran = f"{_scale_and_columns(table)}{differs}"
            rows.append([table_name(name), ran, seconds(table.wall_s), times[id(table)], _days(name)])
    others = {
        CURVES: "" if found.frontiers is None else f"{found.frontiers.scale} scale",
        "accuracy on all images": "" if found.accuracy is None else f"{found.accuracy.scale} scale",
        SPLITS: "; ".join(map(splitting_setting, found.splittings)),
        SEEDS: "" if found.replicates is None else _replicates_words(found.replicates),
        SEARCHES: listed([one.name for one in found.searches]),
        RECIPES: "for ε = ∞ of Table 3",
    }
    for title, ran in others.items():
        days = _days(SPLITTING) if title == SPLITS else "–"
        rows.append([title, ran or "not run", *_took(found, title), days])
    every = spent_words(found) or "–"
    days = text_values()["compute_claims_days_4xA40"]
    return [*rows, ["all", side_by_side(found), "–", every, f"{sum(days.values())} days"]]


def _replicates_words(found: Replicates) -> str:
    return f"{counted(found.n_pairs, 'pair')}, {found.n_replicates} trainings"


def device_times(found: Findings) -> dict[int, str]:
    """Identity of a table -> its device time, as the total counts it; tables that are one run have it at the first."""
    times = {}
    for first, *others in runs_of(stored.comparison for name in OUTLINES for stored, _ in _told_apart(name, found)):
        (spent,) = spent_on_tables([first, *others])
        times[id(first)] = seconds(spent.seconds)
        times |= {id(table): f"in that of {table_name(first.name)}" for table in others}
    return times


def side_by_side(found: Findings) -> str:
    """What rows of the table have in common, so that they add up to more than the total."""
    twice = sum(one.seconds for one in found.spent) - sum(totals(found.spent).values())
    return f"less {seconds(twice)} in which two commands had one device" if twice >= 1 else "–"


def _took(found: Findings, title: str) -> tuple[str, str]:
    """Wall time and work of what is no table: they are one, where nothing is shared."""
    took = seconds(sum(one.seconds for one in found.spent if one.what == title))
    return (took, took) if any(one.what == title for one in found.spent) else ("–", "–")


def _scale_and_columns(table: TableComparison) -> str:
    n_run = len(table.columns) - len(table.not_run)
    part = "" if n_run == len(table.columns) else f", {n_run} of {len(table.columns)} columns"
    return f"{table.scale} scale{part}"


def _line(table: TableComparison, differs: str) -> list[str]:
    judged, published = ([cell.inside for _, cell in judged_cells(table, published=which)] for which in (False, True))
    counts = [f"{sum(map(bool, judged))} of {len(judged)}"] if judged else []
    counts += [f"published {sum(map(bool, published))} of {len(published)}"] if published else []
    taus = [tau for tau in (table.tau_without_retrain or table.tau).values() if tau is not None]
    grounded = [yes for yes in table.grounding.values() if yes is not None]
    means_something = table.scale != "smoke"
    return [
        f"{_scale_and_columns(table)}{differs}",
        "; ".join(counts) if counts and means_something else "–",
        tau_text(float(np.mean(taus))) if taus and means_something else "–",
        f"{sum(grounded)} of {len(grounded)} columns" if grounded else "–",
    ]


def _days(name: str) -> str:
    days = text_values()["compute_claims_days_4xA40"]
    if name not in PAPER_DAYS:
        return "not stated" if name in KEYS else "–"
    n = days[PAPER_DAYS[name]]
    shared = {"dp": ", Tables 3 to 5", "dataset_size_and_seeds": ", with random seeds"}.get(PAPER_DAYS[name], "")
    return f"{counted(n, 'day')}{shared}"


def marked(text: str) -> Markup:
    """Markdown's `code`, **strong** and *emphasis* as HTML, links as their words; the rest is escaped."""
    shown = re.sub(r"\[([^][]+)\]\([^()\s]+\)", r"\1", str(escape(text)))
    for sign, tag in (("`", "code"), (r"\*\*", "strong"), (r"\*", "em")):
        shown = re.sub(rf"(?<!\w){sign}(\S[^*`]*){sign}(?!\w)", rf"<{tag}>\1</{tag}>", shown)
    return Markup(shown)  # noqa: S704 - escaped in the first line; the tags are the three above


def markdown_rows(rows: list[list[str]]) -> str:
    """Rows of cells as a Markdown table."""
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *body])


FILTERS = {"plain": plain, "markdown": markdown_rows, "tau": tau_text, "marked": marked}
