"""What stands first on the page: what was run, what holds, what does not, why, and what all of it took."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from forgetgauge.suites.agreement import KINDS, agreement, other_experiments
from forgetgauge.suites.claim import Claim, Statement
from forgetgauge.suites.claims import all_of, claims
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.device_time import Span, Spent, duration, spent_beside, spent_on_tables, totals
from forgetgauge.suites.evidence import SEEDS, evidence
from forgetgauge.suites.findings import Stored, read_findings
from forgetgauge.suites.page import render_markdown
from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.records import Invocation
from forgetgauge.suites.searches import RECIPES, SEARCHES
from forgetgauge.suites.summary import at_a_price, checked, in_a_minute, spent_words
from forgetgauge.suites.tables import suite
from forgetgauge.wording import bracket
from tests.suites.conftest import UP, at_sizes, findings, method, metric, played, result_of

RESULTS = Path(__file__).parents[2] / "results"
WORDS = 250
"""As many as a reader takes in within a minute, numbers counted."""


def claim(name: str, holds: str, finding: str = "", short: str = "", alike: str = "") -> Claim:
    return Claim(Statement(name, name.lower(), "", ""), holds, finding, short, "", alike)  # type: ignore[arg-type]


@pytest.fixture
def nothing(tmp_path):
    return read_findings(tmp_path)


def paragraph(found, heading: str) -> str:
    every = [text for text in in_a_minute(found, all_of(claims(found))) if text.startswith(f"**{heading}")]
    return every[0] if every else ""


def test_every_claim_stands_once_under_what_it_came_to(nothing):
    judged = [
        claim("A", "yes", "a long finding", "a is so"),
        replace(claim("B", "yes", alike="sizes (τ 0.67)"), harmed=("Fisher",)),
        replace(claim("C", "yes", alike="shares (τ 1.00)"), harmed=("Fisher", "SalUn")),
        claim("D", "yes", "d is found"),
        claim("E", "no", "e is found", "e is not so"),
        claim("F", "open", "f is found"),
        claim("rankings across G", "open"),
        claim("rankings across H", "not run"),
    ]
    every = in_a_minute(replace(nothing, toy=[]), judged)
    assert every == [
        "**Confirmed.** A is so. Published settings (NegGrad has none) rank methods alike across sizes (τ 0.67) and "
        "shares (τ 1.00), though Fisher and SalUn lose accuracy then. D is found.",
        "**Not confirmed.** E is not so.",
        "**Open.** 3 statements, on f; rankings across g and h.",
    ]
    assert in_a_minute(replace(nothing, toy=[]), []) == []
    ruined = [replace(one, only_harmed=bool(one.alike)) for one in judged]
    assert (
        " and shares (τ 1.00), but beyond chance only as to Fisher and SalUn, which lose accuracy. D"
        in in_a_minute(replace(nothing, toy=[]), ruined)[0]
    )


def test_what_was_run_at_which_scale_stands_first(tmp_path):
    tables = [
        played("table1", at_sizes(UP, UP, UP, UP)),
        played("table2", {"0.1": UP}),
        played("table6", {}, scale="small"),
    ]
    (first, *_) = in_a_minute(findings(tmp_path, *tables), [])
    assert first == (
        "We ran Table 1 at the paper’s scale, Table 2 partly so and the others smaller. Tables 3, 4, 5, 7 and 8 were "
        "not run."
    )


def test_the_stored_summary_is_read_within_a_minute_and_names_every_claim():
    found = read_findings(RESULTS)
    judged = all_of(claims(found))
    lines = in_a_minute(found, judged)
    assert sum(bool(re.search(r"\w", word)) for line in lines for word in line.split()) <= WORDS
    heads = [line[2:].split(".**")[0].split("?**")[0] for line in lines[1:]]
    assert heads == ["Confirmed", "Not confirmed", "Why numbers differ", "Open"]
    said = " ".join(lines)
    for one in judged:
        words = one.statement.topic.removeprefix("rankings across ") if one.holds in ("open", "not run") else None
        assert (words[1:] if words else one.alike or (one.short or one.finding)[1:]) in said, one.statement.name


def test_what_cannot_be_verified_is_counted():
    found = read_findings(RESULTS)
    assert all(one.carries for one in found.evidence)
    assert checked(found).startswith("Every result of a game carries its decisions")
    assert checked(found) in render_markdown(found)
    every = [replace(one, carries=one.folder != "reproduce/small/table6") for one in found.evidence]
    n = len(every)
    assert checked(replace(found, evidence=every)).startswith(f"{n - 1} of {n} results carry their decisions")


def test_what_a_strength_reaches_and_what_none_does_is_said_with_numbers():
    found = read_findings(RESULTS)
    why = paragraph(found, "Why numbers differ")
    assert "On all data (Table 1) its Q is reached, at a loss of accuracy, by Fisher (12.2 points)" in why
    assert "and SalUn (2.6 points), but not by NegGrad and SSD in what we tried" in why
    known = [point for point in found.frontiers.curves["ssd"].points if point.quality is not None]
    most = max(known, key=lambda point: point.quality.value).quality
    theirs = paper_table("table1").rows["ssd"]["1.0"].mean
    ends = bracket(most.interval)
    assert f"(SSD at most {most.value:.3f} {ends}, not {theirs:.3f})" in why
    last, also = found.frontiers.fixed, paper_table("table2").rows
    for name in ("retrain-final", "ft-final"):
        assert abs(last[name].quality.value - also[name]["0.1"].mean) <= also[name]["0.1"].spread
    assert why.endswith(" Retr-final and Ft-final have nothing to set: ours miss its 0.634 but agree with its Table 2.")
    assert "Of 12 numbers of Table 1 with published settings 1 lies inside the paper’s ±." in paragraph(
        found, "Not confirmed"
    )


def test_what_a_point_of_accuracy_buys_is_the_largest_sure_gain_of_a_method_that_kept_the_price(tmp_path):
    column = {"none": 0.4, "retrain": 0.9, "neg-grad": 0.41, "fisher": 0.45, "salun": 0.5, "ssd": 0.6}

    def said(**how):
        return at_a_price(findings(tmp_path, played("table1", {"1.0": column}, **how)))

    assert said() == (
        "**What we find besides.** With strengths chosen for a price of one point a method gains over doing nothing, "
        "beyond chance and without damage, at most 0.200 (SSD) of Retrain’s 0.500 (Table 1, η = 1.0)."
    )
    assert "at most 0.100 (SalUn)" in said(damaged={"1.0": ["ssd"]})
    unsure = {("1.0", "none", method): None for method in ("ssd", "salun")}
    little = said(better=unsure)
    assert "at most 0.050 (Fisher) of Retrain’s 0.500" in little
    none = {("1.0", "none", method): None for method in ("ssd", "salun", "fisher", "neg-grad")}
    assert "at most nothing of Retrain’s 0.500 (Table 1, η = 1.0)" in said(better=none)
    assert said(by_price=False) == ""


def test_the_share_at_which_a_price_leaves_most_room_stands_beside_the_usual_one(tmp_path):
    usual = {"none": 0.4, "retrain": 0.9, "neg-grad": 0.41, "fisher": 0.45, "salun": 0.4, "ssd": 0.4}
    tables = played("table1", {"1.0": usual}), played("table2", {"0.67": {**usual, "salun": 0.7}}, scale="small")
    assert at_a_price(findings(tmp_path, *tables)).endswith(
        "at most 0.050 (Fisher) of Retrain’s 0.500 (Table 1, η = 1.0) and 0.300 (SalUn) of Retrain’s 0.500 "
        "(Table 2, α = 0.67, small scale)."
    )


def test_numbers_are_told_apart_by_what_they_are_and_columns_that_compare_with_nothing_are_left_out(tmp_path):
    tables = []
    for name, scale in (("table2", "small"), ("table1", "paper"), ("table3", "paper"), ("table4b", "paper")):
        made, printed = suite(name, scale), paper_table(name).rows
        score = {"mia": metric(0.0, (0.0, 0.0))}
        columns = {
            c.label: {row: method(v[c.label].mean, None, metrics=score) for row, v in printed.items()}
            for c in made.columns
        }
        if name == "table3":
            columns["inf"]["none"] = method(0.95, None)  # the paper: 0.587, so that the column is another experiment
        if name == "table1":
            columns["0.1"]["ssd"] = method(0.5, None)  # the paper: 0.975
            columns["0.8"]["retrain"] = method(0.5, None)
        tables.append(Stored(compare_suite(made, made.columns, result_of(columns), {}, [])))
    found = findings(tmp_path, *tables)
    methods, ends, small, others = KINDS
    assert list(other_experiments(found)) == ["inf"]
    assert agreement(found) == {methods: (41, 42), ends: (9, 10), small: (24, 24), others: (0, 24)}


def table(name: str, wall: float, work: float, decisions: str, device: str = "cuda: NVIDIA H200"):
    made = suite(name, "paper")
    invoked = [Invocation("", "", device, wall, 1)]
    found = compare_suite(made, [], None, {c.label: "" for c in made.columns}, invoked)
    return replace(found, work_s=work, digests={"decisions": decisions}, environment={"device": device})


def test_tables_of_one_run_count_once_and_work_of_earlier_commands_counts():
    spent = spent_on_tables(
        [table("table3", 11, 535, "a"), table("table4a", 335, 850, "a"), table("table1", 1052, 1036, "b")]
    )
    assert spent == [
        Spent("Table 3 and Table 4a", "paper", "cuda: NVIDIA H200", 850),
        Spent("Table 1", "paper", "cuda: NVIDIA H200", 1052),
    ]
    assert totals([*spent, Spent("", "", "cpu", 5000)]) == {"cpu": 5000, "cuda: NVIDIA H200": 1902}


def test_what_shared_a_device_side_by_side_counts_once():
    first = Spent("Table 1", "paper", "cuda: A", 100.0, (Span(1000.0, 1100.0, "one"),))
    second = Spent("Table 2", "paper", "cuda: A", 300.0, (Span(1050.0, 1250.0, "one"),))  # and 100 s nobody dated
    apart = Spent("Table 3", "paper", "cuda: B", 50.0, (Span(1000.0, 1050.0, "two"),))
    assert totals([first, second, apart]) == {"cuda: A": 350.0, "cuda: B": 50.0}


@pytest.mark.parametrize(("where", "seconds"), [(("one", "two"), 200.0), ((None, "one"), 200.0), ((None, None), 100.0)])
def test_two_devices_at_one_time_count_twice(where, seconds):
    """One command that stands in two tables is one, though nobody knows where it ran."""
    spent = [Spent("", "paper", "cuda: A", 100.0, (Span(1000.0, 1100.0, one),)) for one in where]
    assert totals(spent) == {"cuda: A": seconds}


def test_a_table_without_invocations_took_its_work():
    (found,) = spent_on_tables([replace(table("table1", 0, 77, "a"), invocations=[])])
    assert found.seconds == 77


def test_a_dated_command_took_its_time_and_says_on_which_device():
    dated = Invocation("", "", "cuda: NVIDIA H200", 50.0, 1, began=1000.0, where="one")
    (found,) = spent_on_tables([replace(table("table1", 0, 77, "a"), invocations=[dated])])
    assert (found.seconds, found.spans) == (50.0, (Span(1000.0, 1050.0, "one"),))


def test_tables_that_one_dated_command_played_together_count_once_though_their_decisions_differ():
    dated = Invocation("", "", "cuda: NVIDIA H200", 50.0, 1, began=1000.0, where="one")
    later = replace(dated, wall_s=5.0, began=2000.0)
    played = [(dated,), (dated,), (dated, later)]
    tables = [table(name, 0, 77, name) for name in ("table3", "table4a", "table4b")]
    spent = spent_on_tables(replace(t, invocations=list(how)) for t, how in zip(tables, played, strict=True))
    assert [(one.what, one.seconds) for one in spent] == [("Table 3 and Table 4a", 50.0), ("Table 4b", 55.0)]
    assert totals(spent) == {"cuda: NVIDIA H200": 55.0}


def test_time_beside_a_record_is_of_its_invocations_else_of_its_result(tmp_path):
    record = tmp_path / "swap-vs-random.json"
    assert spent_beside(record, "x") == []
    result_of({"1.0": {}}).save(tmp_path / "result.json")
    assert spent_beside(record, "x") == [Spent("x", "", "cpu", 12.0)]
    (tmp_path / "invocations.jsonl").write_text(
        '{"command": "", "commit": "", "device": "cuda: A", "wall_s": 3.5, "n_jobs": 1}\n' * 2
    )
    assert spent_beside(record, "x") == [Spent("x", "", "cuda: A", 7.0)]


def test_the_total_is_in_words(nothing):
    spent = [Spent("", "small", "cuda: NVIDIA H200", 5040), Spent("", "paper", "cpu", 61)]
    found = replace(nothing, spent=spent)
    assert spent_words(found) == "1 h 24 min of one NVIDIA H200 and 1 min of a processor core"
    assert [duration(s) for s in (40, 60, 3599, 3600)] == ["40 s", "1 min", "1 h 0 min", "1 h 0 min"]


def test_the_rows_of_the_table_of_times_add_up_to_its_total():
    """Tenths of a second in which two commands had one device are counted once."""
    found = read_findings(RESULTS)
    spans = [span for one in found.spent for span in one.spans if span.where is not None]
    tenths = [
        (span.where, tenth) for span in set(spans) for tenth in range(round(10 * span.begin), round(10 * span.end))
    ]
    counted_twice = (len(tenths) - len(set(tenths))) / 10
    assert counted_twice > 400  # two columns of Table 1
    page = render_markdown(found)
    rows = [line.split(" | ") for line in page[page.index("| what | run |") :].splitlines() if line.startswith("| ")][
        1:
    ]
    told = [row[3].replace("\u202f", " ") for row in rows[:-1]]
    listed = sum(float(text.replace(" ", "").removesuffix("s")) for text in told if text.endswith(" s"))
    twice = float(re.search(r"less ([\d ]+)s", rows[-1][1].replace("\u202f", " "))[1].replace(" ", ""))
    assert twice == pytest.approx(counted_twice, abs=1)
    assert listed - twice == pytest.approx(sum(totals(found.spent).values()), abs=len(rows))
    assert {row[0].lstrip("| ") for row in rows} >= {SEEDS, SEARCHES, RECIPES}
    assert rows[-1][3] == spent_words(found)


def test_searches_for_strengths_count_as_their_records_say():
    found = read_findings(RESULTS)
    spent = [one for one in found.spent if one.what == SEARCHES]
    assert sum(one.seconds for one in spent) == sum(one.seconds for one in found.searches) == 152 + 63 + 319


def test_recipes_that_were_tried_in_a_loop_of_their_own_count_where_their_record_has_seconds(tmp_path):
    record = tmp_path / "without_dp.json"
    record.write_text('{"as stated": {"test set": 0.5}}')
    assert read_findings(tmp_path).spent == []
    record.write_text('{"seconds": 83.0, "device": "cuda: A", "as stated": {"test set": 0.5}}')
    assert read_findings(tmp_path).spent == [Spent(RECIPES, "", "cuda: A", 83.0)]


def test_every_result_beside_a_record_of_the_page_is_evidence_with_or_without_its_decisions(tmp_path):
    result = result_of({"1.0": {}})
    for folder, record in (("seeds", "replicates.json"), ("random", "swap-vs-random.json")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / record).write_text("{}")
        result.save(tmp_path / folder / "result.json")
    (tmp_path / "alone").mkdir()
    result.save(tmp_path / "alone/result.json")  # no statement of the page rests on it
    found = evidence(tmp_path)
    assert [(one.folder, one.carries) for one in found] == [("seeds", False), ("random", False)]
