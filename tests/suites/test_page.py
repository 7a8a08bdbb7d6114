"""The page of all tables, and the command's answers to mistakes."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from forgetgauge.cli.reproduce import FURTHER
from forgetgauge.results.record import TuningResult
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.findings import read_findings, read_notes
from forgetgauge.suites.page import render_markdown, render_page
from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.pictures import column_pictures
from forgetgauge.suites.tables import OUTLINES, suite
from tests.suites.conftest import method, result_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def found():
    made, printed = suite("table1", "paper"), paper_table("table1")
    columns = {
        label: {row: method(value[label].mean, (0.0, 1.0)) for row, value in printed.rows.items()}
        for label in printed.columns
    }
    columns["0.1"]["ssd"] = method(0.01, (0.0, 0.1))  # from second place to the last
    return compare_suite(made, made.columns, result_of(columns), {}, [])


def store(found, folder, missing):
    """One comparison a scale, with so many columns not run."""
    for scale, n in missing.items():
        (folder / scale).mkdir()
        absent = dict.fromkeys(found.columns[:n], "not asked for")
        (folder / scale / "comparison.json").write_text(replace(found, scale=scale, not_run=absent).to_json())
    return read_findings(folder)


@pytest.mark.parametrize(
    ("missing", "shown", "judged_by"),
    [
        ({"small": 0, "smoke": 0, "paper": 0}, ["paper"], "paper"),
        ({"small": 0, "smoke": 0, "paper": 3}, ["paper", "small"], "small"),
        ({"small": 1, "smoke": 0, "paper": 1}, ["paper", "small"], "paper"),
        ({"small": 2, "paper": 1}, ["paper", "small"], "paper"),
        ({"smoke": 0}, ["smoke"], None),
        ({}, [], None),
    ],
)
def test_of_several_scales_the_largest_is_shown_and_what_it_lacks_by_smaller_ones(
    found, tmp_path, missing, shown, judged_by
):
    findings = store(found, tmp_path, missing)
    assert [stored.comparison.scale for stored in findings.shown("table1")] == shown
    fullest = findings.fullest("table1")
    assert (fullest and fullest.comparison.scale) == judged_by


def test_a_table_at_two_scales_has_two_sections_and_two_lines(found, tmp_path):
    findings = store(found, tmp_path, {"paper": 1, "small": 0})
    page = render_markdown(findings)
    title = "## Table 1: Q against the size of the data set"
    assert page.index(f"{title}\n") < page.index(f"{title}, small scale\n")
    assert "| Table 1 | paper scale, 3 of 4 columns |" in page
    assert "| Table 1 | small scale |" in page
    assert 'id="table1"' in render_page(findings)
    assert 'id="table1-small"' in render_page(findings)


def test_a_table_with_replicates_stands_below_the_one_without(found, tmp_path):
    for n in (1, 3):
        (tmp_path / f"{n}").mkdir()
        (tmp_path / f"{n}/comparison.json").write_text(replace(found, replicates=n).to_json())
    findings = read_findings(tmp_path)
    assert findings.stored["table1", "paper"].comparison.replicates == 1
    page, title = render_markdown(findings), "## Table 1: Q against the size of the data set"
    assert page.index(f"{title}\n") < page.index(f"{title}, 3 trainings of each split\n")
    assert "| Table 1 | paper scale, 3 trainings of each split |" in page
    assert 'id="table1-replicates-3"' in render_page(findings)


def test_published_settings_alone_stand_below_the_table_by_price(found, tmp_path):
    for is_published in (True, False):
        (tmp_path / f"{is_published}").mkdir()
        (tmp_path / f"{is_published}/comparison.json").write_text(replace(found, published=is_published).to_json())
    findings = read_findings(tmp_path)
    assert not findings.stored["table1", "paper"].comparison.published
    page, title = render_markdown(findings), "## Table 1: Q against the size of the data set"
    assert page.index(f"{title}, strengths not chosen for each column\n") < page.index(
        f"{title}, published settings alone\n"
    )
    assert 'id="table1-published"' in render_page(findings)


def test_published_settings_where_there_is_no_other_table_are_called_so(found, tmp_path):
    (tmp_path / "comparison.json").write_text(replace(found, published=True).to_json())
    findings = read_findings(tmp_path)
    assert "## Table 1: Q against the size of the data set, published settings alone\n" in render_markdown(findings)


def test_a_table_with_strengths_of_two_sorts_says_which_is_which(tmp_path):
    made = suite("table1", "paper")
    tuned = TuningResult("lr", 0.1, 0.01, True, "untreated", 4, [])
    for folder, tuning in (("one-setting", None), ("by-price", tuned)):
        columns = {"0.1": {"salun": method(0.5, (0.4, 0.6), tuning=tuning)}}
        result = replace(result_of(columns), digests={"decisions": folder})
        comparison = compare_suite(made, made.columns[:1], result, {} if tuning is None else {"0.4": "later"}, [])
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "comparison.json").write_text(comparison.to_json())
        (tmp_path / folder / "result.json").write_text(result.to_json())
    findings = read_findings(tmp_path)
    page, title = render_markdown(findings), "## Table 1: Q against the size of the data set"
    one, each = (
        "strengths not chosen for each column",
        "strengths chosen for each column, at a price of one point of accuracy",
    )
    assert page.index(f"{title}, {one}\n") < page.index(f"{title}, {each}\n")
    assert f"| Table 1 | paper scale, 3 of 4 columns, {each} |" in page
    assert {'id="table1"', 'id="table1-by-price"'} <= set(re.findall('id="table1[^"]*"', render_page(findings)))


def test_what_was_not_run_is_called_that(tmp_path):
    page = render_markdown(read_findings(tmp_path / "nothing"))
    for name in OUTLINES:
        assert f"Not run: `forgetgauge reproduce {name} --scale paper`." in page
    assert "the SWAP advantage is the paper's for every split" in page


def test_numbers_of_both_stand_in_a_cell(found, tmp_path):
    (tmp_path / "comparison.json").write_text(found.to_json())
    page = render_markdown(read_findings(tmp_path))
    assert "0.340 ± 0.017<br>**0.340 ± 0.000** inside<br>0.340 [0.000,\u00a01.000]" in page
    assert "27 of 28" in page
    assert "1 day, with random seeds" in page


def test_the_page_in_html_has_no_markdown_left_and_folds_what_is_long():
    page = render_page(read_findings(ROOT / "results"))
    assert "](" not in page
    assert "**" not in page
    assert page.count("<details>") == page.count("</details>") > 10


def test_columns_are_called_alike_on_both_pages():
    found = read_findings(ROOT / "results")
    for page in (render_page(found), render_markdown(found)):
        assert "ε = 0.3" in page
        assert not re.search("ε = (Retrain|None|inf)", page)


def test_whether_a_result_can_be_verified_is_said():
    found = read_findings(ROOT / "results")
    place = ("table6", "small")
    games = {label: replace(game, decisions=None) for label, game in found.stored[place].games.items()}
    bare = replace(found, stored={**found.stored, place: replace(found.stored[place], games=games)})
    for findings, said in ((found, "computes it again"), (bare, "cannot compute it again")):
        page = render_markdown(findings)
        six = page[page.index("## Table 6:") : page.index("## Table 7:")]
        assert f"`forgetgauge verify` {said}" in six


def test_what_was_tried_is_told_under_the_table(found, tmp_path):
    (tmp_path / "comparison.json").write_text(found.to_json())
    (tmp_path / "notes.md").write_text("# Notes\n\n- SSD is lower: 0.1 < 0.2, by `a < b`.\n")
    findings = read_findings(tmp_path)
    assert "what was tried:\n\n- SSD is lower: 0.1 < 0.2, by `a < b`." in render_markdown(findings)
    assert "<li>SSD is lower: 0.1 &lt; 0.2, by <code>a &lt; b</code>.</li>" in render_page(findings)


def test_a_method_that_fell_is_drawn_falling(found):
    (first, *_) = column_pictures(found)
    moved = {slope.name: slope.moved for slope in first.slopes}
    assert moved["SSD"] == -5
    assert moved["Retrain"] == 0
    assert moved["Fisher"] == 1


def test_the_html_page_is_whole_and_loads_nothing(found, tmp_path):
    (tmp_path / "comparison.json").write_text(found.to_json())
    page = render_page(read_findings(tmp_path))
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)
            assert not {"src", "href"} & dict(attrs).keys()

    Reader().feed(page)
    assert seen.count("svg") == 4 * (1 + 7)  # of each column the two rankings, and a strip for each method
    assert "script" not in seen
    assert page.count("Not run.") == len(OUTLINES) - 1 + 3  # the other tables, and three suites that are none


def test_the_page_in_the_documentation_is_that_of_the_stored_results():
    written = (ROOT / "docs/reproduction.md").read_text("utf-8")
    assert written == render_markdown(read_findings(ROOT / "results")), "run `forgetgauge reproduce page`"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tabel1"], "unknown table 'tabel1'; did you mean 'table1'?"),
        (["table1", "--column", "0.5"], "table1: unknown column '0.5'"),
        (["table1", "--time-limit", "soon"], "write a number and s, m or h"),
        (["table1", "list"], "list goes alone: forgetgauge reproduce list"),
        (["LIST", "table1"], "list goes alone: forgetgauge reproduce list"),
        (["list", "--column", "0.1"], "not with list"),
        (["strengths", "--column", "foo"], "--column goes with tables and accuracy, not with strengths"),
        (["table1", "toy", "--column", "0.1"], "not with toy"),
        (["replicates", "--column", "0.1"], "not with replicates"),
        (["swap-vs-random", "--column", "0.1"], "not with swap-vs-random"),
        (["table1", "toy", "--replicates", "3"], "--replicates goes with tables, not with toy"),
        (["strengths", "--published"], "--published goes with tables, not with strengths"),
        (["table1", "table8", "--published"], "table8 has no method with a strength"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(call, tmp_path, arguments, said):
    code, out, err = call("reproduce", *arguments, "--out", tmp_path)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_page_is_not_made_from_no_folder_nor_over_its_own_markdown(call, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("kept")
    for results, said in ((tmp_path / "nowhere", "no such folder"), (page, "not a folder")):
        code, out, err = call("reproduce", "page", "--results", results, "--out", page)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err
    assert page.read_text() == "kept"
    code, _, err = call("reproduce", "page", "--results", tmp_path, "--out", tmp_path / "page.html")
    assert (code, err.count("\n"), "name the Markdown page" in err) == (2, 1, True)
    assert not (tmp_path / "page.html").exists()


def test_a_stored_record_that_is_wrong_is_one_line(found, call, tmp_path):
    path = tmp_path / "comparison.json"
    hole = {**found.rows, "ssd": {}}
    for wrong, said in (
        (replace(found, scale="papre"), "did you mean 'paper'"),
        (replace(found, rows=hole), "rows.ssd"),
    ):
        path.write_text(wrong.to_json())
        code, _, err = call("reproduce", "page", "--results", tmp_path, "--out", tmp_path / "page.md")
        assert (code, err.count("\n")) == (2, 1)
        assert f"{path}: " in err
        assert said in err
    path.write_text(found.to_json())
    (tmp_path / "notes.md").write_bytes(b"- \xff\n")
    code, _, err = call("reproduce", "page", "--results", tmp_path, "--out", tmp_path / "page.md")
    assert (code, err.count("\n"), "notes.md: cannot be read" in err) == (2, 1, True)


def test_bullets_may_wrap(tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\nWords.\n- SSD is\n  lower,\nby 0.1.\n- Fisher\n\nMore.\n- c\n# d\n")
    assert read_notes(tmp_path / "notes.md") == ["SSD is lower, by 0.1.", "Fisher", "c"]


def test_list_names_every_suite(call):
    code, out, _ = call("reproduce", "list")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {*OUTLINES, "toy", *FURTHER}


def test_swap_pairs_against_random_splits_are_shown_on_the_papers_data_first():
    page = render_markdown(read_findings(ROOT / "results"))
    section = page[page.index("## SWAP against random splits") :]
    assert section.index("repetitions on CIFAR-10, α = 0.1, 20 epochs:") < section.index("repetitions on digits")
    found = read_findings(ROOT / "results").splittings[0]
    record = found.methods["ssd"].by_adversary[found.adversary]
    assert f"| SSD | {found.methods['ssd'].quality.swap_mean:.3f} ± " in section
    assert f"{record.variance_ratio:.2f} [{record.variance_ratio_interval[0]:.2f}, " in section
    assert "less for no method" in section[section.index("repetitions on digits") :]
