"""The paper's statements in words, judged on records made by hand: one that holds, one that fails, one left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.results.record import TuningResult, read_result
from forgetgauge.suites.accuracy import FullData, Trained
from forgetgauge.suites.claims import claim_rules, claims
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.data_claims import difficulty_claim
from forgetgauge.suites.findings import Stored, read_findings
from forgetgauge.suites.level_claims import (
    accuracy_claim,
    falling_claim,
    replicates_claim,
    rival_claim,
    trend_of,
)
from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.ranking_claims import (
    ranking_claim,
    small_predicts_large,
)
from forgetgauge.suites.replicates import Replicates
from forgetgauge.suites.tables import suite
from forgetgauge.suites.verdicts import GUESSED
from forgetgauge.wording import bracket
from tests.suites.conftest import method, metric, result_of

EARLY = "strengths by price (an earlier rule, decision 0043)"
TUNED = TuningResult("lr", 0.1, 0.01, True, "untreated", 4, [])
SIX = ("neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")
UP = dict(zip(SIX, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7), strict=True))
DOWN = dict(zip(SIX, reversed(UP.values()), strict=True))


def stored(table: str, columns: dict[str, dict[str, float]], half: float = 0.01, noise: float = 0.0, scale="paper"):
    """A table with these Q, each with an interval of ± half, whose pairs scatter by `noise`."""
    made = suite(table, scale)
    rng = np.random.default_rng(0)
    advantages = {
        label: {m: 1 - q + noise * rng.standard_normal((6, 1)) for m, q in column.items()}
        for label, column in columns.items()
    }
    result = result_of(
        {label: {m: method(q, (q - half, q + half)) for m, q in column.items()} for label, column in columns.items()}
    )
    played = [column for column in made.columns if column.label in columns]
    not_run = {column.label: "not asked for" for column in made.columns if column.label not in columns}
    return Stored(compare_suite(made, played, result, not_run, []), advantages)


def at_sizes(*columns: dict[str, float]) -> dict[str, dict[str, float]]:
    """All four η of Table 1."""
    return dict(zip(("0.1", "0.4", "0.8", "1.0"), columns, strict=True))


# -- rankings ----------------------------------------------------------------------------------------------------


def test_columns_that_rank_alike_confirm_and_reversed_ones_do_not():
    same = ranking_claim("", "", "table1", stored("table1", at_sizes(UP, UP, UP, UP)))
    assert same.verdict == "confirmed"
    assert same.figure.startswith("τ = 1.00 [1.00, 1.00]; the paper’s own numbers: 0.8")
    assert "η = 0.1, 0.4, 0.8 and 1.0" in same.source
    turned = stored("table1", at_sizes(UP, DOWN, UP, DOWN))
    assert ranking_claim("", "", "table1", turned).verdict == "not confirmed"


def test_a_ranking_without_a_column_or_a_method_of_its_rule_is_left_open():
    part = ranking_claim("", "", "table1", stored("table1", {"0.1": UP, "0.4": UP}))
    assert part.verdict == "undecided"
    assert "τ = 1.00 [1.00, 1.00]; missing: η = 0.8, η = 1.0; the paper’s" in part.figure
    few = {m: UP[m] for m in SIX[:4]}
    part = ranking_claim("", "", "table1", stored("table1", at_sizes(UP, UP, UP, few)))
    assert part.verdict == "undecided"
    assert "; missing: SalUn and SSD in some column;" in part.figure
    part = small_predicts_large(stored("table1", {"0.1": DOWN, "1.0": UP}))
    assert (part.verdict, "missing: η = 0.4, η = 0.8" in part.figure) == ("undecided", True)


def test_a_ranking_drowned_in_noise_is_left_open():
    near = dict(zip(SIX, (0.50, 0.51, 0.52, 0.53, 0.60, 0.61), strict=True))
    found = ranking_claim(
        "", "", "table2", stored("table2", dict.fromkeys(("0.1", "0.25", "0.4", "0.67"), near), noise=0.05)
    )
    assert found.verdict == "undecided"
    assert "missing" not in found.figure
    assert "[" in found.figure


def test_methods_too_close_to_rank_are_not_called_ranked_differently():
    near = dict(zip(SIX, (0.500, 0.501, 0.502, 0.503, 0.504, 0.505), strict=True))
    back = dict(zip(SIX, reversed(near.values()), strict=True))
    columns = at_sizes(near, back, near, back)
    found = ranking_claim("", "", "table1", stored("table1", columns, noise=0.006))
    assert found.verdict == "undecided"
    assert "no two methods change places beyond chance" in found.figure
    apart = ranking_claim("", "", "table1", stored("table1", at_sizes(UP, DOWN, UP, DOWN), noise=0.006))
    assert (apart.verdict, " and 12 other couples change places beyond chance" in apart.figure) == (
        "not confirmed",
        True,
    )


def test_what_cannot_be_ranked_is_not_called_a_failure():
    assert ranking_claim("", "", "table1", None).verdict == "not run"
    alone = ranking_claim("", "", "table1", stored("table1", {"0.1": UP}))
    assert (alone.verdict, alone.figure) == ("not run", "1 column: nothing to compare")
    without = replace(stored("table1", {"0.1": UP, "0.4": UP}), columns={})
    assert ranking_claim("", "", "table1", without).verdict == "undecided"


def test_retrain_and_none_raise_no_tau():
    ends = {"retrain": 0.99, "none": 0.01}
    found = ranking_claim("", "", "table1", stored("table1", {"0.1": {**UP, **ends}, "1.0": {**DOWN, **ends}}))
    assert found.figure.startswith("τ = −1.00")


def test_small_data_are_compared_with_all_of_them_and_not_with_each_other():
    assert small_predicts_large(stored("table1", at_sizes(UP, UP, UP, UP))).verdict == "confirmed"
    turned = small_predicts_large(stored("table1", at_sizes(UP, UP, UP, DOWN)))
    assert (turned.verdict, turned.figure[:9]) == ("not confirmed", "τ = −1.00")
    assert small_predicts_large(stored("table1", {"0.1": UP, "0.4": UP})).verdict == "not run"


# -- levels ------------------------------------------------------------------------------------------------------


def levels(**by_data: float) -> dict[str, dict[str, float]]:
    return {label: {m: q + 0.001 * i for i, m in enumerate(SIX)} for label, q in by_data.items()}


@pytest.mark.parametrize(
    ("mnist", "cifar10", "cifar100", "half", "verdict"),
    [
        (0.9, 0.7, 0.5, 0.01, "confirmed"),
        (0.9, 0.5, 0.7, 0.01, "not confirmed"),
        (0.9, 0.7, 0.5, 0.15, "undecided"),
    ],
)
def test_data_sets_are_ordered_where_intervals_are_apart(mnist, cifar10, cifar100, half, verdict):
    data = stored("table7", levels(CIFAR100=cifar100, MNIST=mnist), half)
    found = difficulty_claim(data, stored("table1", levels(**{"1.0": cifar10}), half))
    assert found.verdict == verdict


def test_data_sets_of_different_shares_are_not_compared():
    data = stored("table7", levels(CIFAR100=0.5, MNIST=0.9), scale="small")
    sizes = stored("table1", levels(**{"1.0": 0.7}), scale="small")
    assert difficulty_claim(data, sizes).verdict == "not run"


def test_what_small_scale_shows_of_data_sets_stands_beside_a_claim_that_was_not_run():
    data = stored("table7", levels(CIFAR100=0.3, MNIST=0.97), scale="small")
    shares = stored("table2", levels(**{"0.1": 0.6}), scale="small")
    found = difficulty_claim(None, None, (data, shares))
    assert (found.verdict, found.aside) == ("not run", "small scale: same order, other shares of data")
    assert found.figure.startswith(
        "at small scale in this order beyond intervals: 6 of 6 methods (Table 7, and Table 2 at α = 0.1 for CIFAR-10); "
        "this decides nothing: CIFAR-10 has all of its data there and the others half"
    )
    harmed = replace(shares.comparison, lost_accuracy={"0.1": {"ssd": 0.1, "fisher": 0.1}})
    fewer = difficulty_claim(None, None, (data, replace(shares, comparison=harmed)))
    assert fewer.aside == found.aside
    assert fewer.figure.startswith("at small scale in this order beyond intervals: 4 of 4 methods (")
    assert "; not counted, since models are damaged in one of them: Fisher and SSD); " in fewer.figure
    harmed = replace(harmed, lost_accuracy={"0.1": {"ssd": 0.1, "fisher": 0.1, "salun": 0.1}})
    assert difficulty_claim(None, None, (data, replace(shares, comparison=harmed))).aside == ""
    turned = stored("table2", levels(**{"0.1": 0.2}), scale="small")
    assert difficulty_claim(None, None, (data, turned)).aside == ""
    assert difficulty_claim(None, None, (data, None)).figure == ""


def test_a_method_that_was_never_played_is_missing_and_counts_for_no_share():
    columns = {
        label: {m: q for m, q in c.items() if m != "neg-grad"} for label, c in by_budget(0.9, 0.8, 0.7, 0.5).items()
    }
    found = falling_claim(stored("table3", columns))
    assert (found.verdict, found.figure) == (
        "undecided",
        "6 of 6 methods are lower at ∞ than at 50; higher from one column to the next: none; missing: NegGrad in every "
        "column",
    )


def by_budget(*values: float) -> dict[str, dict[str, float]]:
    budgets = zip(("50", "150", "600", "inf"), values, strict=True)
    return {label: {**dict.fromkeys((*SIX, "none"), q), "retrain": 0.99} for label, q in budgets}


@pytest.mark.parametrize(
    ("values", "half", "verdict"),
    [
        ((0.9, 0.8, 0.7, 0.5), 0.01, "confirmed"),
        ((0.9, 0.7, 0.8, 0.5), 0.01, "not confirmed"),
        ((0.9, 0.895, 0.898, 0.5), 0.01, "confirmed"),  # a rise inside the intervals is none
        ((0.9, 0.8, 0.7, 0.5), 0.3, "undecided"),
    ],
)
def test_quality_falls_with_the_budget_where_intervals_say_so(values, half, verdict):
    assert falling_claim(stored("table3", by_budget(*values), half)).verdict == verdict


def test_one_method_that_rises_is_named():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    columns["150"]["ssd"] = 0.95
    found = falling_claim(stored("table3", columns))
    assert found.verdict == "not confirmed"
    assert (
        found.figure
        == "7 of 7 methods are lower at ∞ than at 50; higher from one column to the next: SSD from 50 to 150"
    )


def test_a_fall_is_not_confirmed_on_fewer_methods_or_columns_than_the_rule_names():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    ends = falling_claim(stored("table3", {label: columns[label] for label in ("50", "inf")}))
    assert (ends.verdict, ends.figure) == (
        "undecided",
        "7 of 7 methods are lower at ∞ than at 50; higher from one column to the next: none; missing: ε = 150, ε = 600",
    )
    del columns["150"]["ssd"]
    found = falling_claim(stored("table3", columns))
    assert (found.verdict, found.figure[-21:]) == ("undecided", "; missing: SSD at 150")
    columns["600"]["fisher"] = 0.95  # one that rises refutes it, whatever is missing
    assert falling_claim(stored("table3", columns)).verdict == "not confirmed"


def test_without_both_ends_nothing_falls_and_one_column_is_no_run():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    middle = {label: columns[label] for label in ("150", "600")}
    assert falling_claim(stored("table3", middle)).verdict == "undecided"
    assert falling_claim(stored("table3", {"150": columns["150"]})).verdict == "not run"


def test_retrain_may_do_what_it_likes():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    columns["50"]["retrain"] = 0.1
    assert trend_of(stored("table3", columns).comparison).all_fall


def test_intervals_for_the_models_at_hand_decide_nothing():
    table = stored("table3", by_budget(0.9, 0.8, 0.7, 0.5))
    table = replace(table, comparison=replace(table.comparison, basis=["given these models"]))
    assert falling_claim(table).verdict == "undecided"


@pytest.mark.parametrize(
    ("values", "half", "verdict"),
    [
        ((0.9, 0.8, 0.7, 0.5), 0.01, "not confirmed"),  # the rival falls like Q
        ((0.8, 0.9, 0.7, 0.5), 0.01, "confirmed"),
        ((0.8, 0.9, 0.7, 0.5), 0.2, "undecided"),
    ],
)
def test_a_rival_is_said_not_to_fall(values, half, verdict):
    made = suite("table4a", "paper")
    columns = {
        label: {
            m: method(0.5, None, metrics={"ic": metric(v, (v - half, v + half))}) for m in (*SIX, "none", "retrain")
        }
        for label, v in zip(("50", "150", "600", "inf"), values, strict=True)
    }
    table = Stored(compare_suite(made, made.columns, result_of(columns), {}, []))
    assert rival_claim("", "", table).verdict == verdict


# -- seeds and accuracy ------------------------------------------------------------------------------------------


def spread(quality: dict[str, list[list[float]]], data: str = "cifar10") -> Replicates:
    return Replicates(data, "resnet20", 0.1, ["shadow"], quality)


def test_the_deviation_over_seeds_is_inside_pairs_with_the_interval_of_chi_square():
    found = spread({"ssd": [[0.5, 0.6, 0.7], [0.1, 0.2, 0.3]]})
    assert found.deviation("ssd") == pytest.approx(0.1)
    assert bracket((0.1 * np.sqrt(4 / 11.143), 0.1 * np.sqrt(4 / 0.4844))) in replicates_claim(found).figure  # χ²(4)


@pytest.mark.parametrize(
    ("step", "verdict"), [(0.001, "confirmed"), (0.02, "undecided"), (0.3, "not confirmed")]
)  # against 0.035, with two degrees of freedom
def test_seeds_are_judged_by_the_method_that_scatters_most(step, verdict):
    quiet = {m: [[0.5, 0.5, 0.501]] for m in (*SIX, "retrain")}
    found = replicates_claim(spread({**quiet, "fisher": [[0.5, 0.5 + step, 0.5 - step]]}))
    assert found.verdict == verdict
    assert "Fisher" in found.figure
    assert "1 pair, 3 replicates" in found.source


def test_seeds_of_some_methods_confirm_nothing_and_may_refute():
    still = {m: [[0.5, 0.5, 0.501]] for m in (*SIX, "retrain")}
    assert replicates_claim(spread(still)).verdict == "confirmed"
    part = replicates_claim(spread({m: still[m] for m in still if m not in ("salun", "ssd")}))
    assert part.verdict == "undecided"
    assert part.figure.endswith("; missing: SalUn, SSD")
    assert replicates_claim(spread({"ssd": [[0.2, 0.5, 0.8]]})).verdict == "not confirmed"


def test_of_several_records_of_seeds_the_one_that_says_most_is_shown(tmp_path):
    records = {
        "a": spread({"ssd": [[0.5, 0.6, 0.7, 0.8]]}),  # 3 degrees of freedom
        "b": spread({"ssd": [[0.5, 0.6, 0.7]] * 2}),  # 4
        "c": spread({"ssd": [[0.5, 0.6]] * 9}),  # two seeds say nothing
        "d": spread({"ssd": [[0.5, 0.6, 0.7]] * 9}, "digits"),
    }
    for name, record in records.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "replicates.json").write_text(record.to_json())
    assert read_findings(tmp_path).replicates == records["b"]


def test_digits_and_two_seeds_count_for_nothing():
    assert replicates_claim(spread({"ssd": [[0.5, 0.5, 0.5]]}, "digits")).verdict == "not run"
    assert replicates_claim(spread({"ssd": [[0.5, 0.5]]})).verdict == "not run"


def trained(*accuracies: float, scale: str = "paper") -> FullData:
    models = Trained(list(accuracies), 1.0, "cpu", "solo", "", "")
    return FullData(scale, "cifar10", "0", 50_000, 10_000, {"epochs": 200}, 3, {"none": models})


@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        (trained(0.853, 0.854, 0.855), "confirmed"),  # 85.40 ± 0.25 %
        (trained(0.881, 0.882, 0.883), "undecided"),  # of a model that is our guess
        (trained(0.84, 0.86, 0.88), "undecided"),
        (trained(0.853), "undecided"),
        (trained(0.853, 0.854, 0.855, scale="small"), "undecided"),
        (trained(0.853, 0.854, 0.855, scale="smoke"), "not run"),
        (None, "not run"),
    ],
)
def test_accuracy_is_the_papers_where_its_interval_is_within_a_point(record, verdict):
    assert accuracy_claim("none", "", record).verdict == verdict
    assert accuracy_claim("flip-crop", "", record).verdict == "not run"


def test_a_mean_outside_is_undecided_for_a_reason():
    found = accuracy_claim("none", "", trained(0.881, 0.882, 0.883))
    assert found.why == (GUESSED,)
    assert found.figure.endswith(f"; {GUESSED}")


# -- all of them -------------------------------------------------------------------------------------------------


def test_nothing_stored_is_nothing_run_and_every_claim_has_a_rule(tmp_path):
    every = claims(read_findings(tmp_path))
    assert {claim.verdict for claim in every} == {"not run"}
    assert all(claim.rule and claim.words for claim in every)
    assert sum(line.count(";") + 1 for line in claim_rules(every)) >= len(every)


def keep(folder: Path, table: str, scale: str, only: Sequence[str] = ()) -> None:
    """A stored table as a run leaves it, all columns or some: the paper's numbers, with advantages by pair."""
    made, printed = suite(table, scale), paper_table(table)
    columns = {
        c.label: {
            m: method(cells[c.label].mean, None, by_pair=[1 - cells[c.label].mean] * 6, tuning=TUNED)
            for m, cells in printed.rows.items()
        }
        for c in made.columns
        if c.label in only or not only
    }
    result = result_of(columns)
    played = [c for c in made.columns if c.label in columns]
    not_run = {c.label: "not asked for" for c in made.columns if c.label not in columns}
    folder.mkdir(parents=True)
    (folder / "comparison.json").write_text(compare_suite(made, played, result, not_run, []).to_json())
    result.save(folder / "result.json")


def test_advantages_by_pair_are_read_from_the_result_beside_a_comparison(tmp_path):
    keep(tmp_path / "a", "table1", "paper")
    found = {claim.name: claim for claim in claims(read_findings(tmp_path))}
    sizes = found["Methods rank alike at every size of the data"]
    assert sizes.verdict == "confirmed"
    ours, paper = sizes.figure.split("; the paper’s own numbers: ")
    assert ours == f"τ = {paper} [{paper}, {paper}]"


def test_of_two_scales_the_one_with_most_columns_is_judged(tmp_path):
    keep(tmp_path / "a", "table2", "paper", ["0.1", "0.4"])
    keep(tmp_path / "b", "table2", "small")
    found = {claim.name: claim for claim in claims(read_findings(tmp_path))}["Methods rank alike at every α"]
    assert (found.verdict, found.source) == ("confirmed", f"Table 2, small scale, {EARLY}, α = 0.1, 0.25, 0.4 and 0.67")


def test_difficulty_is_judged_at_paper_scale_whatever_else_there_is(tmp_path):
    keep(tmp_path / "a", "table7", "paper")
    keep(tmp_path / "b", "table1", "paper", ["1.0"])
    keep(tmp_path / "c", "table1", "small")
    found = {claim.name: claim for claim in claims(read_findings(tmp_path))}["Q tells easy data from difficult ones"]
    assert (found.verdict, found.figure) == ("undecided", "no intervals over pairs")  # not “not run”: two scales


def test_smoke_counts_for_no_claim(tmp_path):
    keep(tmp_path / "a", "table1", "smoke")
    assert {claim.verdict for claim in claims(read_findings(tmp_path))} == {"not run"}


def test_a_result_of_another_invocation_is_not_taken_for_the_comparisons(tmp_path):
    keep(tmp_path / "a", "table1", "paper")
    path = tmp_path / "a/result.json"
    result = read_result(path)
    replace(result, digests={**result.digests, "decisions": "1"}).save(path)
    found = {claim.name: claim.verdict for claim in claims(read_findings(tmp_path))}
    assert found["Methods rank alike at every size of the data"] == "undecided"
