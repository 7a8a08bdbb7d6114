"""What the paper says of single methods, of rivals' rankings, of accuracy and of certified removal, judged by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetgauge.results.record import ComparisonResult
from forgetgauge.suites.claims import claims
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.data_claims import sentences_claim
from forgetgauge.suites.findings import Stored, other_experiments, read_findings
from forgetgauge.suites.level_claims import grounding_claim, rising_accuracy_claim
from forgetgauge.suites.ranking_claims import best_claim, rival_ranking_claim, score_columns
from forgetgauge.suites.records import Ours, TableComparison
from forgetgauge.suites.removal_claims import removal_claim, removal_shown
from forgetgauge.suites.tables import suite
from forgetgauge.suites.verdicts import SAME_MODELS
from tests.suites.conftest import method, metric, result_of
from tests.suites.test_claims import DOWN, SIX, TUNED, UP, at_sizes, by_budget, levels, stored


def scored(metric_name: str, table: str, *columns: dict[str, float]) -> Stored:
    """A table of a rival score at all four ε, from Q-like values by method."""
    made = suite(table, "paper")
    by_label = {
        label: {m: method(0.5, None, metrics={metric_name: metric(v, (v, v))}, tuning=TUNED) for m, v in values.items()}
        for label, values in zip(("50", "150", "600", "inf"), columns, strict=True)
    }
    result = result_of(by_label)
    return Stored(compare_suite(made, made.columns, result, {}, []), games={g.value: g for g in result.games})


def test_a_rival_is_inconsistent_where_its_columns_rank_differently():
    found = rival_ranking_claim("", "", "ic", "table4a", scored("ic", "table4a", UP, DOWN, UP, DOWN))
    assert found.verdict == "confirmed"
    assert found.figure.startswith("τ = −0.33 [−0.33, −0.33]; NegGrad and Retr-final, ")
    assert "change places beyond chance; the paper’s own numbers: 0.3" in found.figure
    same = rival_ranking_claim("", "", "mia", "table4b", scored("mia", "table4b", UP, UP, UP, UP))
    assert (same.verdict, same.figure[:8]) == ("not confirmed", "τ = 1.00")
    assert rival_ranking_claim("", "", "mia", "table4b", None).verdict == "not run"


def test_scores_are_ranked_highest_first():
    (column, *_) = score_columns(scored("ic", "table4a", UP, UP, UP, UP), "ic").values()
    assert {m: 1 - values.mean() for m, values in column.items()} == pytest.approx(UP)


def fought(better: dict[tuple[str, str], str | None]) -> Stored:
    """Table 3 with SSD against the other five in each column; who is better is SSD unless told."""
    table = stored("table3", by_budget(0.9, 0.8, 0.7, 0.5))
    games = {}
    for label in table.comparison.columns:
        pairs = [ComparisonResult(m, "ssd", 0.0, (0.0, 0.0), better.get((label, m), "ssd")) for m in SIX if m != "ssd"]
        (game,) = result_of({label: {}}).games
        games[label] = replace(game, comparisons=pairs)
    return replace(table, games=games)


def test_ssd_is_best_where_it_beats_all_and_not_where_one_beats_it():
    assert best_claim("ssd", "", fought({})).verdict == "confirmed"
    found = best_claim("ssd", "", fought({("50", "salun"): "salun", ("150", "fisher"): None}))
    assert (found.verdict, found.figure) == (
        "not confirmed", "higher than another of the five methods in 18 of 20 comparisons; lower than SalUn at ε = 50"
    )  # fmt: skip
    assert best_claim("ssd", "", fought({("50", "salun"): None})).verdict == "undecided"
    table = fought({})
    part = best_claim("ssd", "", replace(table, games={k: g for k, g in table.games.items() if k != "inf"}))
    assert (part.verdict, "missing: NegGrad at ε = ∞" in part.figure) == ("undecided", True)


@pytest.mark.parametrize(
    ("sst", "images", "half", "verdict"),
    [(0.9, 0.5, 0.01, "confirmed"), (0.4, 0.5, 0.01, "not confirmed"), (0.9, 0.5, 0.3, "undecided")],
)
def test_sentences_are_set_against_cifar_100_and_against_the_papers_own_numbers(sst, images, half, verdict):
    found = sentences_claim(stored("table7", levels(CIFAR100=images, MNIST=0.9, SST5=sst), half))
    assert found.verdict == verdict
    assert found.figure.endswith("the paper’s own numbers: 0 of 6 methods")
    assert sentences_claim(stored("table7", levels(CIFAR100=0.5, MNIST=0.9))).verdict == "not run"


@pytest.mark.parametrize(("lowest", "verdict"), [(0.98, "confirmed"), (0.955, "undecided"), (0.5, "not confirmed")])
def test_retrain_is_at_one_where_no_interval_goes_below_the_bar(lowest, verdict):
    sizes = stored("table1", at_sizes(*({**UP, "retrain": q} for q in (lowest, 0.99, 0.99, 0.99))))
    found = grounding_claim([sizes, stored("table3", by_budget(0.9, 0.8, 0.7, 0.5))])
    assert found.verdict == verdict
    above = "all" if verdict == "confirmed" else "7 of them"
    assert found.figure.startswith(f"7 of 8 intervals contain 1 and {above} lie above 0.95; lowest: [")
    assert grounding_claim([sizes, None]).verdict != "confirmed"
    assert grounding_claim([None, None]).verdict == "not run"


def accurate(table: str, *values: float, half: float = 0.01) -> Stored:
    """A half of Table 5 with these accuracies and intervals over pairs."""
    made = suite(table, "paper")
    labels = ("50", "150", "600", "inf")
    columns = {label: {"none": method(0.5, None, utility={"test": v})} for label, v in zip(labels, values, strict=True)}
    compared = compare_suite(made, made.columns, result_of(columns), {}, [])
    cells = {
        label: replace(compared.rows["accuracy"][label], ours=Ours(v, (v - half, v + half)))
        for label, v in zip(labels, values, strict=True)
    }
    return Stored(replace(compared, rows={"accuracy": cells}))


@pytest.mark.parametrize(
    ("values", "half", "verdict"),
    [
        ((0.4, 0.5, 0.6, 0.7), 0.01, "confirmed"),
        ((0.4, 0.5, 0.6, 0.5), 0.01, "not confirmed"),
        ((0.4, 0.5, 0.6, 0.7), 0.2, "undecided"),
    ],
)
def test_accuracy_rises_where_both_halves_of_the_table_say_so(values, half, verdict):
    rising = accurate("table5a", 0.4, 0.5, 0.6, 0.7)
    assert rising_accuracy_claim([rising, accurate("table5b", *values, half=half)]).verdict == verdict
    alone = rising_accuracy_claim([rising, None])
    assert (alone.verdict, "missing: a half of it" in alone.figure) == ("undecided", True)


@pytest.mark.parametrize(
    ("qualities", "verdict"),
    [
        ((0.90, 0.92, 0.94, 0.96, 0.999), "confirmed"),
        ((0.90, 0.92, 0.94, 0.90, 0.999), "not confirmed"),
        ((0.990, 0.991, 0.992, 0.993, 0.5), "undecided"),  # Retrain, the last, is no ε
    ],
)
def test_the_advantage_falls_with_the_budget_of_certified_removal(qualities, verdict):
    made = suite("table8", "paper")
    names = [column.method for column in made.columns]
    methods = {name: method(q, (q - 0.005, q + 0.005)) for name, q in zip(names, qualities, strict=True)}
    result = result_of({column.label: methods for column in made.columns})
    assert removal_claim(Stored(compare_suite(made, made.columns, result, {}, []))).verdict == verdict


def test_columns_with_the_same_models_are_told_apart_by_no_number_of_runs():
    made = suite("table8", "paper")
    exceeded = {"certified-0.8": 0.0, "certified-0.6": 0.0, "certified-0.4": 0.0, "certified-0.3": 1.0}
    methods = {
        name: method(0.99, (0.985, 0.995), facts={"retrainings": share, "claimed_epsilon": 0.5, "claimed_delta": 1e-4})
        for name, share in exceeded.items()
    }
    result = result_of({column.label: {**methods, "retrain": method(0.99, None)} for column in made.columns})
    table = compare_suite(made, made.columns, result, {}, [])
    found = removal_claim(Stored(table, games={game.value: game for game in result.games}))
    assert (found.verdict, found.why) == ("undecided", (SAME_MODELS,))
    assert found.figure.endswith("; the models at ε = 0.8, 0.6 and 0.4 are the same; at ε = 0.3 every one is retrained")


def visibly(*advantages: tuple[float, float] | None, none: tuple[float, float] = (0.05, 0.09)) -> TableComparison:
    """The table beside Table 8: intervals of the advantage of None, of each ε from the largest, and of Retrain."""
    made = suite("table8-visible", "paper")
    known = [
        (column, ends)
        for column, ends in zip(made.columns, (none, *advantages, (0.0, 0.02)), strict=True)
        if ends is not None
    ]
    methods = {column.method: method(1 - sum(ends) / 2, (1 - ends[1], 1 - ends[0])) for column, ends in known}
    result = result_of({column.label: methods for column, _ in known})
    run = [column for column, _ in known]
    missing = {column.label: "not asked for" for column in made.columns if column not in run}
    return compare_suite(made, run, result, missing, [])


@pytest.mark.parametrize(
    ("intervals", "most", "course"),
    [
        (((0.0, 0.02), (0.0, 0.0281), (0.0, 0.02)), "0.029", "no fall with ε"),
        (((0.03, 0.04), (0.0, 0.04), (0.0, 0.02)), "0.040", "it falls with ε"),
        (((0.0, 0.01), (0.02, 0.04), (0.0, 0.04)), "0.040", "it rises as ε falls"),
        (((0.03, 0.04), (0.0, 0.04), None), "0.040", "whether it falls with ε is unknown"),
    ],
)
def test_removal_cuts_the_advantage_to_the_largest_end_of_an_interval(intervals, most, course):
    said = f"certified removal cuts None’s advantage of 0.070 to at most {most}; {course}"
    assert removal_shown(visibly(*intervals)) == said


def test_removal_is_not_said_to_cut_what_its_intervals_do_not_show():
    low = (0.0, 0.02)
    assert removal_shown(visibly(low, (0.01, 0.05), low)) == ""
    assert removal_shown(visibly(None, None, None)) == ""
    table = visibly(low, low, low)
    assert removal_shown(replace(table, basis=["the models at hand"])) == ""
    cells = table.rows["advantage"]
    bare = {**cells, "2.0": replace(cells["2.0"], ours=Ours(0.01, None))}
    assert removal_shown(replace(table, rows={"advantage": bare})) == ""
    assert removal_shown(replace(table, rows={})) == ""


def test_a_method_that_does_nothing_is_not_called_beaten():
    table = fought({("50", "salun"): "salun"})
    idle = ComparisonResult("none", "ssd", 0.0, (-0.01, 0.01), None)
    games = {**table.games, "50": replace(table.games["50"], comparisons=[*table.games["50"].comparisons, idle])}
    found = best_claim("ssd", "", replace(table, games=games))
    assert found.verdict == "undecided"
    assert found.figure.endswith("; lower than SalUn at ε = 50; not above None at ε = 50, where our SSD does nothing")
    games["50"] = replace(games["50"], comparisons=[pair for pair in games["50"].comparisons if pair.first != "salun"])
    unbeaten = best_claim("ssd", "", replace(table, games=games))
    assert "; lower than none; not above None at ε = 50" in unbeaten.figure


def test_a_column_of_other_models_counts_for_no_claim(tmp_path):
    columns = by_budget(0.97, 0.94, 0.91, 0.95)  # the paper's None has 0.972, 0.960, 0.932 and 0.587
    found = replace(read_findings(tmp_path), stored={("table3", "paper"): stored("table3", columns)})
    (falls,) = [claim for claim in claims(found) if claim.name == "Q is lower the larger ε is"]
    assert falls.verdict == "undecided"
    assert falls.figure == (
        "7 of 7 methods are lower at 600 than at 50; higher from one column to the next: none; missing: ε = ∞"
    )
    assert list(other_experiments(found)) == ["inf"]
