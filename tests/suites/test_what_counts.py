"""What a claim may be judged by: no method that does nothing, damages its models, or was tuned for another setting."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.results.record import ComparisonResult
from forgetgauge.suites.claims import claims
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.findings import Stored, advantages_of, read_findings
from forgetgauge.suites.level_claims import grounding_claim
from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.ranking_claims import best_claim, left_out, ranking_claim, rival_ranking_claim, score_over_none
from forgetgauge.suites.tables import suite
from forgetgauge.suites.verdicts import BORROWED, MISSING, TOO_FEW
from tests.suites.conftest import method, metric, result_of
from tests.suites.test_claims import DOWN, SIX, TUNED, UP, at_sizes, by_budget, stored

RESULTS = Path(__file__).parents[2] / "results"


def played(
    table: str,
    *columns: dict[str, float],
    idle: dict[str, list[str]] | None = None,
    damaged: dict[str, list[str]] | None = None,
    tuned: bool = True,
    scale: str = "paper",
    only: int = 9,
    rule: int = PRICE_RULE,
) -> Stored:
    """A table with games: Q by method, strengths by price; of each column, who is not above None and who is ruined."""
    made = suite(table, scale)
    labels = [column.label for column in made.columns][:only]
    methods, comparisons = {}, {}
    for label, qualities in zip(labels, columns, strict=False):
        ruined = (damaged or {}).get(label, [])
        methods[label] = {
            name: method(
                q,
                (q - 0.01, q + 0.01),
                tuning=TUNED if tuned and name in ("neg-grad", "fisher", "salun", "ssd") else None,
                utility={"unseen": 0.5, "test": 0.4 if name in ruined else 0.6},
                metrics={"ic": metric(q, (q, q))},
            )
            for name, q in {**qualities, "none": 0.1, "retrain": 0.99}.items()
        }
        comparisons[label] = [
            ComparisonResult("none", m, -0.1, (-0.2, 0.1), None)
            if m in (idle or {}).get(label, [])
            else ComparisonResult(m, "none", 0.1, (0.05, 0.2), m)
            for m in qualities
        ]
    result = result_of(methods)
    price = {"price": 0.01, "rule": rule} if tuned else None
    games = [replace(g, comparisons=comparisons[g.value], spec={**g.spec, "price": price}) for g in result.games]
    result = replace(result, games=games)
    run = [column for column in made.columns if column.label in methods]
    not_run = {column.label: "not asked for" for column in made.columns if column.label not in methods}
    compared = compare_suite(made, run, result, not_run, [])
    return Stored(compared, {g.value: advantages_of(g) for g in games}, {g.value: g for g in games})


def test_a_ranking_leaves_out_what_does_nothing_or_damages_somewhere():
    table = played("table1", UP, UP, UP, UP, idle={"0.4": ["neg-grad"]}, damaged={"1.0": ["ssd"]})
    found = ranking_claim("", "", "table1", table)
    assert found.verdict == "confirmed"
    assert found.figure.startswith(
        "τ = 1.00 [1.00, 1.00] over Retr-final, Ft-final, Fisher and SalUn; left out: NegGrad (somewhere not "
        "above None beyond chance), SSD (models damaged somewhere); with all that every column has τ = 1.00 "
        "[1.00, 1.00]; the paper’s"
    )
    assert left_out(table) == {"idle": ["neg-grad"], "damaged": ["ssd"], "beyond the price": []}


def test_a_method_that_was_never_played_does_not_count_and_is_missing():
    without = {m: q for m, q in UP.items() if m != "neg-grad"}
    idle = {"50": ["retrain-final", "ft-final", "fisher", "salun", "ssd"]}
    found = ranking_claim("", "", "table3", played("table3", without, without, without, without, idle=idle))
    assert found.figure.startswith("no method counts; left out: Retr-final, Ft-final, Fisher, SalUn and SSD (somewhere")
    assert "; missing: NegGrad in every column; " in found.figure
    assert found.why == (MISSING, TOO_FEW)


def test_a_score_above_none_within_its_interval_is_not_above_it():
    table = played("table4a", UP, UP, UP, UP)
    game = table.games["50"]
    scatter = [0.3, -0.1, 0.2, -0.2, 0.4, -0.1]
    noisy = replace(game.methods["fisher"].metrics["ic"], by_pair=[0.1 + gain for gain in scatter])
    fisher = replace(game.methods["fisher"], metrics={"ic": noisy})
    game = replace(game, methods={**game.methods, "fisher": fisher})
    mean, half = np.mean(scatter), scipy.stats.t.ppf(0.975, 5) * scipy.stats.sem(scatter)
    gain = score_over_none(game, "ic")["fisher"]
    assert (gain.value, *gain.interval) == pytest.approx((mean, mean - half, mean + half))
    assert left_out(replace(table, games={**table.games, "50": game}), "ic")["idle"] == ["fisher"]


def test_the_papers_own_rankings_are_of_the_methods_and_columns_that_ours_has():
    without = {m: q for m, q in UP.items() if m != "neg-grad"}
    found = ranking_claim("", "", "table3", played("table3", without, without, without, only=3))
    theirs = tau_of(paper_table("table3").rows, list(without), ["50", "150", "600"])
    assert found.figure.endswith(f"; the paper’s own numbers: {theirs:.2f}")
    assert ranking_claim("", "", "table3", played("table3", UP, UP, UP, UP)).figure.endswith("numbers: 0.71")


def tau_of(rows, methods, labels) -> float:
    """Mean τ_b between every two columns."""
    columns = [[rows[m][label].mean for m in methods] for label in labels]
    return float(np.mean([scipy.stats.kendalltau(one, other)[0] for one, other in combinations(columns, 2)]))


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("Methods rank alike at every size of the data", "0.97"),
        ("Small data predict the ranking on all data", "0.95"),
        ("Methods rank alike at every ε", "0.86"),
        ("Methods rank alike in every architecture", "0.87"),
        ("The IC score ranks methods differently at different ε", "0.97"),
        ("The MIA score ranks methods differently at different ε", "0.85"),
    ],
)
def test_the_stored_rankings_stand_beside_the_papers_of_the_same_methods(name, theirs):
    (found,) = [claim for claim in claims(read_findings(RESULTS)) if claim.name == name]
    assert f"the paper’s own numbers: {theirs}" in found.figure


def test_of_the_stored_ic_scores_three_methods_are_above_none():
    (found,) = [claim for claim in claims(read_findings(RESULTS)) if claim.name.startswith("The IC score ranks")]
    assert found.figure.startswith("only Retr-final, Ft-final and SalUn count")


def test_what_is_left_out_turns_no_ranking():
    """SSD goes from the first place to the last of five, and back; then its models are damaged."""
    turned, idle = {**UP, "ssd": 0.1}, {"0.1": ["neg-grad"]}
    plainly = ranking_claim("", "", "table1", played("table1", UP, turned, UP, turned, idle=idle))
    assert plainly.verdict == "not confirmed"
    damaged = {"0.1": ["ssd"]}
    found = ranking_claim("", "", "table1", played("table1", UP, turned, UP, turned, idle=idle, damaged=damaged))
    assert found.verdict == "confirmed"


@pytest.mark.parametrize("columns", [(UP, UP, UP, UP), (UP, DOWN, UP, DOWN)])
def test_three_methods_are_too_few_for_either_verdict(columns):
    idle = {"0.1": ["neg-grad", "retrain-final", "ssd"]}
    found = ranking_claim("", "", "table1", played("table1", *columns, idle=idle))
    assert found.verdict == "undecided"
    assert found.figure.startswith("only Ft-final, Fisher and SalUn count, too few to rank; left out: NegGrad, ")
    assert found.why == ("too few methods forget without damage",)


def test_a_strength_that_no_value_of_which_kept_the_price_does_not_count():
    table = played("table1", UP, UP, UP, UP)
    game = table.games["0.4"]
    weakest = replace(game.methods["fisher"], tuning=replace(TUNED, holds=False))
    games = {**table.games, "0.4": replace(game, methods={**game.methods, "fisher": weakest})}
    assert left_out(replace(table, games=games))["beyond the price"] == ["fisher"]


@pytest.mark.parametrize("columns", [(UP, UP, UP), (UP, DOWN, UP)])
def test_strengths_from_elsewhere_decide_no_ranking(columns):
    found = ranking_claim("", "", "table7", played("table7", *columns, tuned=False))
    assert found.verdict == "undecided"
    assert "; strengths were not chosen for each column" in found.figure
    assert found.why == ("strengths were not chosen for each column",)


def test_a_claim_has_all_its_reasons_what_was_never_played_first():
    idle = {"50": ["neg-grad", "retrain-final", "ssd"]}
    found = ranking_claim("", "", "table3", played("table3", UP, UP, UP, idle=idle, tuned=False))
    assert "; missing: ε = ∞" in found.figure
    assert found.why == (MISSING, BORROWED, TOO_FEW)


def test_of_the_stored_claims_every_reason_that_their_figures_name_is_counted():
    undecided = [claim for claim in claims(read_findings(RESULTS)) if claim.verdict == "undecided"]
    for words, why in (
        (BORROWED, BORROWED),
        ("; missing: ", MISSING),
        ("too few to rank", TOO_FEW),
        ("no method counts", TOO_FEW),
    ):
        with_words = [claim for claim in undecided if words in claim.figure]
        assert with_words, words
        assert all(why in claim.why for claim in with_words), words


def test_rivals_rankings_leave_out_what_is_not_above_none_by_their_own_score_and_need_the_same_strengths():
    """None has a score of 0.1 and an order of Q that is of no concern here."""
    idle = {"50": list(SIX)}
    turned = (UP, DOWN, UP, DOWN)
    assert rival_ranking_claim("", "", "ic", "table4a", played("table4a", *turned)).verdict == "confirmed"
    assert rival_ranking_claim("", "", "ic", "table4a", played("table4a", *turned, idle=idle)).verdict == "confirmed"
    low = {**UP, "neg-grad": 0.1, "ssd": 0.05, "salun": 0.1}
    found = rival_ranking_claim("", "", "ic", "table4a", played("table4a", low, *turned[1:]))
    assert found.verdict == "undecided"
    assert found.figure.startswith(
        "only Retr-final, Ft-final and Fisher count, too few to rank; left out: NegGrad, SalUn and SSD (somewhere not "
        "above None by the IC score beyond chance); with all that every column has τ = "
    )
    assert rival_ranking_claim("", "", "ic", "table4a", played("table4a", *turned, tuned=False)).verdict == "undecided"


def test_which_method_is_best_is_not_decided_by_strengths_from_elsewhere():
    table = played("table3", UP, UP, UP, UP, tuned=False)
    games = {
        label: replace(g, comparisons=[ComparisonResult(m, "ssd", 0.0, (0.0, 0.0), "ssd") for m in SIX if m != "ssd"])
        for label, g in table.games.items()
    }
    found = best_claim("ssd", "", replace(table, games=games))
    assert (found.verdict, "strengths were not chosen for each column" in found.figure) == ("undecided", True)


def test_a_larger_scale_with_fewer_columns_that_says_the_opposite_is_quoted():
    small = played("table2", UP, UP, UP, UP, scale="small", idle={"0.1": ["neg-grad", "retrain-final", "ssd"]})
    large = played("table2", UP, DOWN, UP, only=3)
    found = ranking_claim("", "", "table2", small, [large])
    assert "; paper scale, 3 of 4 columns, disagrees: τ = −0.33 [" in found.figure
    assert "disagrees" not in ranking_claim("", "", "table2", small, [played("table2", UP, UP, UP, only=3)]).figure


# -- which table ---------------------------------------------------------------------------------------------------


def findings(tmp_path, stored: dict, also=()):
    return replace(read_findings(tmp_path), stored=stored, also=list(also))


def test_the_table_by_price_is_judged_where_it_is_complete(tmp_path):
    one, price = played("table1", UP, UP, UP, UP, tuned=False), played("table1", DOWN, DOWN, DOWN, DOWN)
    found = findings(tmp_path, {("table1", "paper"): one}, [price])
    assert found.fullest("table1") is price
    part = played("table1", UP, UP, only=2)
    assert findings(tmp_path, {("table1", "paper"): one}, [part]).fullest("table1") is one


def test_from_says_which_strengths_and_by_which_rule():
    name = "Table 1, paper scale"
    assert ranking_claim("", "", "table1", played("table1", UP, UP, UP, UP)).source.startswith(
        f"{name}, strengths by price, η"
    )
    early = ranking_claim("", "", "table1", played("table1", UP, UP, UP, UP, rule=1))
    assert early.source.startswith(f"{name}, strengths by price (an earlier rule, decision 0043), η")
    assert ranking_claim("", "", "table1", played("table1", UP, UP, UP, UP, tuned=False)).source.startswith(
        f"{name}, one strength for all columns, η"
    )


def test_where_the_two_differ_in_verdict_both_figures_are_given(tmp_path):
    low = [{**UP, "retrain": q} for q in (0.99, 0.99, 0.99, 0.99)]
    price = stored("table1", at_sizes(*low))
    bad = stored("table1", at_sizes(*({**UP, "retrain": q} for q in (0.5, 0.99, 0.99, 0.99))))
    price = replace(price, games=played("table1", UP, UP, UP, UP).games)
    bad = replace(bad, games=played("table1", UP, UP, UP, UP, tuned=False).games)
    budgets = stored("table3", by_budget(0.97, 0.96, 0.93, 0.587))
    found = findings(tmp_path, {("table1", "paper"): price, ("table3", "paper"): budgets}, [bad])
    (claim,) = [c for c in claims(found) if c.name.startswith("Q of Retrain")]
    assert claim.verdict == "confirmed"
    figure = claim.figure.replace("\xa0", " ")
    assert "; at one strength for all columns: not confirmed, " in figure
    assert figure.count("; lowest: [0.490") == 1


# -- Retrain -------------------------------------------------------------------------------------------------------


def test_retrain_is_judged_in_the_columns_that_count_and_these_are_named(tmp_path):
    sizes = stored("table1", at_sizes(*({**UP, "retrain": 0.99} for _ in range(4))))
    budgets = by_budget(0.97, 0.96, 0.93, 0.95)  # at ∞ the paper's None is at 0.587
    budgets["inf"]["retrain"] = 0.5
    found = findings(tmp_path, {("table1", "paper"): sizes, ("table3", "paper"): stored("table3", budgets)})
    (claim,) = [c for c in claims(found) if c.name.startswith("Q of Retrain")]
    assert claim.verdict == "confirmed"
    assert "columns: η = 0.1, 0.4, 0.8 and 1.0, ε = 50, 150 and 600" in claim.figure
    assert "missing" not in claim.figure
    assert "in every column of Tables 1 and 3 that counts" in claim.rule


def test_a_column_that_was_not_run_is_missing_all_the_same():
    sizes = stored("table1", {"0.1": {**UP, "retrain": 0.99}})
    found = grounding_claim([sizes, stored("table3", by_budget(0.9, 0.8, 0.7, 0.5))])
    assert (found.verdict, "missing: η = 0.4" in found.figure) == ("undecided", True)


def test_no_ranking_of_the_stored_tables_is_decided_by_methods_that_do_nothing():
    """Fewer than four methods do something and damage nothing in every column of any of them."""
    found = {claim.name: claim for claim in claims(read_findings(RESULTS))}
    alpha, data = found["Methods rank alike at every α"], found["Methods rank alike on every data set"]
    assert {alpha.verdict, data.verdict} == {"undecided"}
    assert "only Retr-final, Fisher and SalUn count, too few to rank" in alpha.figure
    assert "strengths were not chosen for each column" in data.figure
    assert "by price" in found["Methods rank alike at every size of the data"].source
