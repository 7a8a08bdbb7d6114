"""What stands first on the page: verdicts by kind, how many cells agree, why, and what all of it took."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from forgetgauge.results.record import TuningResult
from forgetgauge.suites.agreement import ENDS, METHODS, OTHERS, SMALL, agreement
from forgetgauge.suites.at_length import at_length, time_line
from forgetgauge.suites.claims import claims
from forgetgauge.suites.compare import compare_suite, difference_text
from forgetgauge.suites.device_time import Span, Spent, device_name, duration, spent_beside, spent_on_tables, totals
from forgetgauge.suites.evidence import Evidence, evidence, named_evidence
from forgetgauge.suites.findings import SEARCHES, SEEDS, Stored, read_findings
from forgetgauge.suites.page import render_markdown
from forgetgauge.suites.paper import PRINTED, paper_table
from forgetgauge.suites.records import Invocation, Ours
from forgetgauge.suites.summary import WORDS, in_a_minute
from forgetgauge.suites.tables import suite
from forgetgauge.suites.verdicts import BORROWED, MISSING, Claim
from forgetgauge.suites.without_dp import RECIPES
from tests.suites.conftest import method, metric, result_of

RESULTS = Path(__file__).parents[2] / "results"


def claim(name: str, verdict: str, figure: str = "", source: str = "") -> Claim:
    return Claim(name, "", "", verdict, figure, source)  # type: ignore[arg-type]


@pytest.fixture
def nothing(tmp_path):
    return read_findings(tmp_path)


def test_every_claim_stands_once_under_its_verdict(nothing):
    judged = [
        claim(
            "A",
            "confirmed",
            "lowest: 0.97",
            "Table 1, paper scale, strengths by price and Table 3, paper scale, one strength for all columns",
        ),
        claim(
            "B",
            "not confirmed",
            "τ = −0.16 [−0.24, 0.02]; the paper’s own numbers: 0.57",
            "Table 7, small scale, data set = CIFAR100, MNIST and SST5",
        ),
        claim("C", "undecided", "τ = 0.5"),
        replace(claim("D", "undecided", "τ = 0.5; missing: SSD"), why=(MISSING,)),
        replace(claim("F", "undecided"), why=(MISSING, BORROWED)),
        claim("E", "not run"),
    ]
    assert in_a_minute(nothing, judged) == [
        "**Confirmed** (1 of 6 statements): A (lowest: 0.97; Tables 1 and 3).",
        "**Not confirmed** (1): B (rankings correlate by −0.16 [−0.24, 0.02]; Table 7, small scale).",
        "**Undecided** (3; reasons overlap): a column or number is missing (2); too few runs (1); strengths "
        "were not chosen for each column (1).",
        "**Not run** (1): E.",
    ]
    assert at_length(nothing, judged) == [
        "**Undecided** (a column or number is missing): D; F.",
        "**Undecided** (too few runs): C.",
        "**Undecided** (strengths were not chosen for each column): F.",
    ]


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("Table 1, paper scale, strengths by price, η = 0.1 and 1.0", "Table 1"),
        ("Table 1, small scale and Table 3, small scale, one strength for all columns", "Tables 1 and 3, small scale"),
        (
            "Table 1, paper scale, strengths by price and Table 3, small scale, published settings alone",
            "Table 1, paper scale, and Table 3, small scale",
        ),
    ],
)
def test_scales_that_differ_are_all_named(nothing, source, short):
    (line,) = in_a_minute(nothing, [claim("A", "confirmed", "0.97", source)])
    assert line.endswith(f": A (0.97; {short}).")


def test_the_stored_summary_is_read_within_a_minute_and_leads_with_the_verdicts():
    found = read_findings(RESULTS)
    judged = claims(found)
    lines = in_a_minute(found, judged)
    assert sum(len(line.split()) for line in lines) <= WORDS
    heads = [line[2:].split("**")[0].removesuffix(" falls") for line in lines]
    order = ["Confirmed", "Not confirmed", "Undecided", "Not run", "Not whole at paper scale"]
    order += ["τ between columns", "Q of None"]
    order += ["Beside Table 8", "Why numbers differ", "Inside the paper’s ±", "Cannot be verified", "Time"]
    assert heads == [head for head in order if head in heads]
    assert {order[0], order[2], *order[5:10], "Time"} <= set(heads)
    said = " ".join(lines)
    assert all(claim.name in said for claim in judged if claim.verdict in ("confirmed", "not confirmed", "not run"))
    below = " ".join(at_length(found, judged))
    assert all(claim.name in below for claim in judged if claim.verdict == "undecided")


def test_what_cannot_be_verified_is_counted_first_and_named_below():
    found = read_findings(RESULTS)
    assert all(one.carries for one in found.evidence)
    every = [replace(one, carries=one.folder != "reproduce/small/table6") for one in found.evidence]
    bare = replace(found, evidence=every)
    (line,) = [line for line in in_a_minute(bare, claims(bare)) if line.startswith("**Cannot be verified**")]
    assert line == f"**Cannot be verified**: 1 of {len(every)} results (below)."
    (line,) = [line for line in at_length(bare, claims(bare)) if line.startswith("**Cannot be verified**")]
    assert line == "**Cannot be verified**, since they carry no decisions: Table 6."


def test_a_summary_gives_the_strengths_reach_with_published_settings_and_does_not_contradict_itself():
    found = read_findings(RESULTS)
    fisher = found.frontiers.published["fisher"].point.quality.value
    short, full = (" ".join(make(found, claims(found))) for make in (in_a_minute, at_length))
    assert "the paper’s Q is reached by Fisher for " in short
    assert f"Fisher 0.485 (0.762) to {fisher:.3f} (" in full  # with its accuracy
    assert f"Fisher 0.676, 0.755, 0.769, {fisher:.3f} (the paper" in full


def test_cells_are_counted_and_so_is_which_way_they_are_off(nothing):
    made, printed = suite("table1", "paper"), paper_table("table1").rows
    columns = {c.label: {row: method(v[c.label].mean, None) for row, v in printed.items()} for c in made.columns}
    columns["0.1"]["ssd"] = method(0.5, None)  # the paper: 0.975
    columns["0.4"]["fisher"] = method(0.9, None)  # the paper: 0.679
    columns["0.8"]["retrain"] = method(0.5, None)  # not an approximate method
    table = Stored(compare_suite(made, made.columns, result_of(columns), {}, []))
    (line,) = [x for x in at_length(replace(nothing, stored={("table1", "paper"): table}), []) if "numbers" in x]
    assert (
        "each table once, as statements are judged, without columns that count for none (Table 1, paper scale)" in line
    )
    assert "of approximate methods of Table 1 (paper scale) 22 of 24; Retrain there 3 of 4: " in line
    assert "Of the 2 outside it that are the Q of an approximate method, 1 are lower" in line


def test_a_column_whose_models_were_not_memorised_is_named(nothing):
    made = suite("table3", "paper")
    columns = {c.label: {"none": method(0.95, None)} for c in made.columns}
    table = Stored(compare_suite(made, made.columns, result_of(columns), {}, []))
    lines = at_length(replace(nothing, stored={("table3", "paper"): table}), [])
    (line,) = [x for x in lines if "another experiment" in x]
    assert line.startswith("**Table 3 at ε = ∞** is another experiment")
    assert "is 0.950 with ours, computed as the paper’s, and 0.587 with the paper’s" in line


def by_price(gains: dict[str, Ours], lost: dict[str, float]) -> Stored:
    """Table 2 at α = 0.1, with strengths that were chosen in the run."""
    made = suite("table2", "paper")
    chosen = TuningResult("lr", 0.1, 0.01, True, "retrained", 4, [])
    methods = {"none": method(0.4, None), "retrain": method(0.9, None)}
    methods |= {name: method(0.4 + gain.value, None, tuning=chosen) for name, gain in gains.items()}
    methods["neg-grad"] = method(0.5, None, tuning=chosen)
    methods["retrain"] = replace(methods["retrain"], utility={"test": 0.5})
    result = result_of({"0.1": methods})
    compared = compare_suite(made, made.columns[:1], result, {}, [])
    compared = replace(compared, over_none={"0.1": gains}, lost_accuracy={"0.1": lost})
    return Stored(compared, games={"0.1": result.games[0]})


def headlines(found) -> list[str]:
    return [line for line in at_length(found, []) if line.startswith("**What we find**")]


def test_what_a_point_of_accuracy_buys_is_said_of_each_column_with_intervals_and_costs(nothing):
    gains = {"ssd": Ours(0.25, (-0.03, 0.4)), "fisher": Ours(0.05, (0.025, 0.079))}
    found = replace(nothing, stored={("table2", "paper"): by_price(gains, {"ssd": 0.018})})
    (line,) = headlines(found)
    assert line.replace("\N{NO-BREAK SPACE}", " ") == (
        "**What we find** of methods at strengths that cost shadow models no more than a point of accuracy, counted "
        "from the less accurate of Retrain and None, on CIFAR-10: at α = 0.1 the best of them, SSD, which cost the "
        "models of the game 1.8 points, is above None’s Q of 0.400 by +0.250 [−0.030, +0.400], and Retrain, 10.0 "
        "points less accurate, by 0.500. The others are in Table 2, paper scale, strengths by "
        "price (an earlier rule, decision 0043)."
    )


def test_a_method_that_no_strength_keeps_within_the_price_shows_nothing_at_that_price(nothing):
    stored = by_price({"ssd": Ours(0.25, (-0.03, 0.4)), "fisher": Ours(0.05, (0.025, 0.079))}, {})
    (game,) = stored.games.values()
    beyond = replace(game.methods["ssd"], tuning=replace(game.methods["ssd"].tuning, holds=False))
    games = {"0.1": replace(game, methods={**game.methods, "ssd": beyond})}
    (line,) = headlines(replace(nothing, stored={("table2", "paper"): replace(stored, games=games)}))
    assert "the best of them, Fisher" in line
    none = {name: replace(one, tuning=beyond.tuning) for name, one in game.methods.items()}
    games = {"0.1": replace(game, methods=none)}
    assert headlines(replace(nothing, stored={("table2", "paper"): replace(stored, games=games)})) == []


def test_the_headline_says_what_every_stored_column_by_price_shows():
    found = read_findings(RESULTS)
    (line,) = headlines(found)
    stored = next(s for s in (*found.shown("table2"), *found.besides("table2")) if s.by_price)
    for label, game in stored.games.items():
        gains = {name: gain for name, gain in stored.comparison.over_none[label].items() if game.methods[name].tuning}
        best = max(gains, key=lambda name: gains[name].value)
        assert f"at α = {label} the best of them, {PRINTED[best]}" in line
        assert f" by {difference_text(gains[best])}, and Retrain" in line
    assert len(line.split()) < 110


def test_numbers_are_told_apart_by_what_they_are_and_columns_that_count_for_nothing_are_left_out(nothing):
    stored = {}
    for name, scale in (("table2", "small"), ("table3", "paper"), ("table4b", "paper")):
        made, printed = suite(name, scale), paper_table(name).rows
        score = {"mia": metric(0.0, (0.0, 0.0))}
        columns = {
            c.label: {row: method(v[c.label].mean, None, metrics=score) for row, v in printed.items()}
            for c in made.columns
        }
        if name == "table3":
            columns["inf"]["none"] = method(0.95, None)  # the paper: 0.587, so that the column is another experiment
        table = Stored(compare_suite(made, made.columns, result_of(columns), {}, []))
        stored[name, scale] = table
    found = agreement(replace(nothing, stored=stored))
    assert found == {METHODS: (18, 18), ENDS: (6, 6), SMALL: (24, 24), OTHERS: (0, 24)}


def test_what_no_strength_reaches_is_named_with_the_largest_that_was_played():
    found = read_findings(RESULTS)
    (line,) = [line for line in in_a_minute(found, claims(found)) if line.startswith("**Why numbers differ**")]
    for name in ("ssd", "neg-grad"):
        points = found.frontiers.curves[name].points
        most = max(point.quality.value for point in points if point.quality is not None)
        assert f"{PRINTED[name]} ({paper_table('table1').rows[name]['1.0'].mean:.3f}; at most {most:.3f})" in line
    assert "At η = 1.0 of Table 1" in line


def test_q_of_none_falls_in_words_where_the_intervals_of_both_ends_are_apart(nothing):
    def line(*values: float) -> str:
        made = suite("table3", "paper")
        columns = {
            c.label: {"none": method(q, (q - 0.01, q + 0.01))} for c, q in zip(made.columns, values, strict=True)
        }
        table = Stored(compare_suite(made, made.columns, result_of(columns), {}, []))
        lines = in_a_minute(replace(nothing, stored={("table3", "paper"): table}), [])
        (found,) = [line for line in lines if line.startswith("**Q of None")]
        return found

    assert line(0.95, 0.93, 0.91, 0.95) == (
        "**Q of None falls** (ours/the paper’s) at ε = 50, 150, 600, ∞: 0.950/0.972, 0.930/0.960, 0.910/0.932, "
        "0.950/0.587 (ours: another experiment)."
    )
    assert line(0.95, 0.93, 0.945, 0.6) == (
        "**Q of None falls** (ours/the paper’s) at ε = 50, 150, 600, ∞: 0.950/0.972, 0.930/0.960, 0.945/0.932, "
        "0.600/0.587."
    )
    alone = line(0.95, 0.94, 0.945, 0.8)  # below all the others, but another experiment
    assert alone.startswith("**Q of None** (ours/the paper’s) at ε = 50, 150, 600, ∞: ")
    assert alone.endswith(" 0.800/0.587 (ours: another experiment).")


def test_q_of_none_stands_in_the_papers_form_beside_the_papers_and_what_the_slash_means_is_said_once():
    found = read_findings(RESULTS)
    lines = in_a_minute(found, claims(found))
    assert sum("ours/the paper’s" in line for line in lines) == 1
    (line,) = [line for line in lines if line.startswith("**Q of None")]
    cells = found.fullest("table3").comparison.rows["none"].values()
    each = ", ".join(f"{cell.as_paper.value:.3f}/{cell.paper:.3f}" for cell in cells)
    assert line.replace(" (ours: another experiment)", "").endswith(f": {each}.")
    assert "0.960/0.972" in line
    (line,) = [line for line in lines if line.startswith("**τ between columns**")]
    assert line.endswith(
        " methods in every column: Table 1 0.00/0.97, 2 0.58/0.80, 3 0.60/0.86, 6 0.73/0.87, 7 −0.16/0.57."
    )


def test_the_methods_without_a_strength_are_off_one_table_and_inside_the_other():
    found = read_findings(RESULTS)
    assert (
        "Strengths are not all of it: Retr-final and Ft-final have none and are 0.118 and 0.122 off the paper’s Table "
        "1 at η = 1.0 yet inside the ± of its Table 2 (α = 0.1)"
    ) in " ".join(at_length(found, claims(found)))


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


def test_the_total_stands_beside_the_papers_days(nothing):
    spent = [Spent("", "small", "cuda: NVIDIA H200", 5040), Spent("", "paper", "cpu", 61)]
    assert time_line(replace(nothing, spent=spent)) == (
        "**Time**: everything on this page took 1 h 24 min of one NVIDIA H200 and 1 min of a processor core, part of "
        "it at small scale. The paper states 6, 1 and 4 days on four A40s, for experiments that are these in part."
    )
    assert time_line(nothing) == ""
    assert [duration(s) for s in (40, 60, 3599, 3600)] == ["40 s", "1 min", "1 h 0 min", "1 h 0 min"]


def test_the_stored_total_is_the_sum_of_what_is_listed():
    """Tenths of a second in which two commands had one device are counted once."""
    found = read_findings(RESULTS)
    spans = [span for one in found.spent for span in one.spans if span.where is not None]
    tenths = [
        (span.where, tenth) for span in set(spans) for tenth in range(round(10 * span.begin), round(10 * span.end))
    ]
    twice = (len(tenths) - len(set(tenths))) / 10
    assert twice > 400  # two columns of Table 1
    assert sum(totals(found.spent).values()) == pytest.approx(sum(one.seconds for one in found.spent) - twice, abs=1)
    lines = [line for made in (in_a_minute, at_length) for line in made(found, claims(found))]
    times = [line for line in lines if line.startswith("**Time**")]
    every = " and ".join(f"{duration(s)} of {device_name(device)}" for device, s in totals(found.spent).items())
    assert len(times) == 2
    assert all(every in line for line in times)


def test_the_rows_of_the_table_of_times_add_up_to_its_total():
    found = read_findings(RESULTS)
    page = render_markdown(found)
    table = page[page.index("| table | run |") : page.index("Wall time is")]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    told = [row[6].replace("\u202f", " ") for row in rows[:-1]]
    listed = sum(float(text.replace(" ", "").removesuffix("s")) for text in told if text.endswith(" s"))
    twice = float(re.search(r"less ([\d ]+)s", rows[-1][1].replace("\u202f", " "))[1].replace(" ", ""))
    assert listed - twice == pytest.approx(sum(totals(found.spent).values()), abs=len(rows))
    assert {row[0].lstrip("| ") for row in rows} >= {SEEDS, SEARCHES, RECIPES}
    assert all(rows[-1][6] in line for line in page.splitlines() if line.startswith("- **Time**"))


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


def test_published_settings_stand_beside_the_papers_numbers_and_what_they_cost():
    found = read_findings(RESULTS)
    (line,) = [line for line in at_length(found, claims(found)) if line.startswith("**Strengths**")]
    (table,) = [s.comparison for s in (*found.shown("table1"), *found.besides("table1")) if s.by_price]
    for name in ("fisher", "salun"):
        cells = table.rows[f"{name}-published"].values()
        assert ", ".join(f"{cell.ours.value:.3f}" for cell in cells) in line
        assert f"(the paper: {', '.join(f'{cell.paper:.3f}' for cell in table.rows[name].values())})" in line
        lost = [100 * column[f"{name}-published"] for column in table.lost_accuracy.values()]
        assert f"{min(lost):.1f} to {max(lost):.1f} points" in line


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
    assert named_evidence([*found, Evidence("", "Table 3", False), Evidence("", "Table 2", False)] * 2) == (
        "Tables 3 (twice) and 2 (twice); several trainings of one split (twice); SWAP against random splits (twice)"
    )
