"""What the paper says of single numbers, judged on records made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from forgetgauge.suites.accuracy import FullData, Trained
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.level_claims import accuracy_claim, difficulty_claim, grounding_claim, replicates_claim
from forgetgauge.suites.replicates import Replicates
from forgetgauge.wording import bracket
from tests.suites.conftest import SIX, UP, at_sizes, by_budget, findings, played


@pytest.mark.parametrize(("lowest", "holds"), [(0.99, "yes"), (0.955, "open"), (0.5, "no")])
def test_retrain_is_at_one_where_no_interval_goes_below_the_bar(tmp_path, lowest, holds):
    sizes = played("table1", at_sizes(*({**UP, "retrain": q} for q in (lowest, 0.991, 0.992, 0.993))), half=0.01)
    found = grounding_claim(findings(tmp_path, sizes, played("table3", by_budget(0.9, 0.8, 0.7, 0.5, retrain=0.994))))
    assert found.holds == holds
    n_above = 8 if holds == "yes" else 7
    assert found.finding.startswith(f"{n_above} of 8 intervals contain 1 and lie at 0.95 or above; the lowest is [")
    assert (found.short == "Q of Retrain is 1 up to chance in all 8 measurements") == (holds == "yes")


def test_columns_at_small_scale_are_counted_apart(tmp_path):
    column = {**UP, "retrain": 0.992}
    sizes = played("table1", at_sizes(column, column, column, column))
    deep = played("table6", {f"ResNet{n}": {**UP, "retrain": 0.991} for n in (44, 56, 110)}, scale="small")
    found = grounding_claim(findings(tmp_path, sizes, deep))
    assert found.finding.startswith("7 of 7 intervals (4 at the paper’s scale) contain 1")
    assert found.short == "Q of Retrain is 1 up to chance in all 7 measurements (4 at the paper’s scale)"


def test_the_same_trainings_in_two_tables_are_one_column(tmp_path):
    column = {**UP, "retrain": 0.99}
    one, two = played("table1", {"1.0": column}), played("table2", {"0.1": column})
    assert "1 of 1 interval " in grounding_claim(findings(tmp_path, one, two)).finding
    assert grounding_claim(findings(tmp_path)).holds == "not run"


def spread(quality: dict[str, list[list[float]]], data: str = "cifar10") -> Replicates:
    return Replicates(data, "resnet20", 0.1, ["shadow"], quality)


def test_the_deviation_over_seeds_is_inside_pairs_with_the_interval_of_chi_square():
    found = spread({"ssd": [[0.5, 0.6, 0.7], [0.1, 0.2, 0.3]]})
    assert found.deviation("ssd") == pytest.approx(0.1)
    assert bracket((0.1 * np.sqrt(4 / 11.143), 0.1 * np.sqrt(4 / 0.4844))) in replicates_claim(found).finding  # χ²(4)


@pytest.mark.parametrize(
    ("step", "holds"), [(0.001, "yes"), (0.02, "open"), (0.3, "no")]
)  # against 0.035, with two degrees of freedom
def test_seeds_are_judged_by_the_method_that_scatters_most(step, holds):
    quiet = {m: [[0.5, 0.5, 0.501]] for m in (*SIX, "retrain")}
    found = replicates_claim(spread({**quiet, "fisher": [[0.5, 0.5 + step, 0.5 - step]]}))
    assert found.holds == holds
    assert found.finding.startswith("over 3 trainings of 1 split the standard deviation of Q is ")
    assert " for Fisher and " in found.finding


def test_seeds_of_some_methods_show_nothing_and_may_refute():
    still = {m: [[0.5, 0.5, 0.501]] for m in (*SIX, "retrain")}
    part = replicates_claim(spread({m: still[m] for m in still if m not in ("salun", "ssd")}))
    assert (part.holds, part.finding[-21:]) == ("open", "; missing: SalUn, SSD")
    assert replicates_claim(spread({"ssd": [[0.2, 0.5, 0.8]]})).holds == "no"


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
    assert replicates_claim(spread({"ssd": [[0.5, 0.5, 0.5]]}, "digits")).holds == "not run"
    assert replicates_claim(spread({"ssd": [[0.5, 0.5]]})).holds == "not run"


def trained(*accuracies: float, scale: str = "paper") -> FullData:
    models = Trained(list(accuracies), 1.0, "cpu", "solo", "", "")
    return FullData(scale, "cifar10", "0", 50_000, 10_000, {"epochs": 200}, 3, {"none": models})


@pytest.mark.parametrize(
    ("record", "holds"),
    [
        (trained(0.8524, 0.8534, 0.8544), "yes"),
        (trained(0.853, 0.854, 0.855), "yes"),  # 85.40 ± 0.25 %, within a point
        (trained(0.849, 0.853, 0.855), "yes"),  # 85.23 ± 0.76 %, and 85.34 is inside
        (trained(0.848, 0.853, 0.858), "open"),  # contains it, but ± 1.2 points is more than it may be off
        (trained(0.881, 0.882, 0.883), "no"),
        (trained(0.853), "open"),
        (trained(0.853, 0.854, 0.855, scale="small"), "open"),
        (trained(0.853, 0.854, 0.855, scale="smoke"), "not run"),
        (None, "not run"),
    ],
)
def test_accuracy_is_the_papers_where_its_interval_says_so(record, holds):
    assert accuracy_claim("none", "", record).holds == holds
    assert accuracy_claim("flip-crop", "", record).holds == "not run"


def test_an_accuracy_is_told_in_short_where_it_is_decided():
    assert accuracy_claim("none", "", trained(0.881, 0.882, 0.883)).short == (
        "Without augmentation ResNet-20 has 88.2 ± 0.2 %, not 85.34 % (the paper names no model)"
    )
    assert accuracy_claim("none", "", trained(0.853, 0.854, 0.855)).short == (
        "Without augmentation ResNet-20 has 85.4 ± 0.2 % (the paper: 85.34 %)"
    )


def levels(**by_data: float) -> dict[str, dict[str, float]]:
    return {label: {m: q + 0.001 * i for i, m in enumerate(SIX)} for label, q in by_data.items()}


@pytest.mark.parametrize(
    ("mnist", "cifar10", "cifar100", "half", "holds"),
    [
        (0.9, 0.7, 0.5, 0.01, "yes"),
        (0.9, 0.5, 0.7, 0.01, "no"),
        (0.9, 0.7, 0.5, 0.15, "open"),
    ],
)
def test_data_sets_are_ordered_where_intervals_are_apart(tmp_path, mnist, cifar10, cifar100, half, holds):
    data = played("table7", levels(CIFAR100=cifar100, MNIST=mnist), half=half)
    sizes = played("table1", levels(**{"1.0": cifar10}), half=half)
    assert difficulty_claim(findings(tmp_path, data, sizes)).holds == holds


def test_data_sets_of_different_shares_or_with_borrowed_strengths_decide_nothing(tmp_path):
    data = played("table7", levels(CIFAR100=0.5, MNIST=0.9), scale="small", by_price=False)
    sizes = played("table2", levels(**{"0.1": 0.7}), scale="small")
    found = difficulty_claim(findings(tmp_path, data, sizes))
    assert found.holds == "open"
    assert found.finding == (
        "of 6 methods 6 have a higher Q on MNIST than on CIFAR-10, and 6 a lower one on CIFAR-100; but CIFAR-10 had "
        "all of its data and the others half, which lowers Q by itself on CIFAR-100 and strengths were chosen for "
        "another setting"
    )
    assert difficulty_claim(findings(tmp_path, data)).holds == "not run"
    assert difficulty_claim(findings(tmp_path, played("table7", levels(MNIST=0.9), scale="small"), sizes)).holds == (
        "not run"
    )


def test_methods_that_damage_their_models_show_no_order_of_data_sets(tmp_path):
    columns = {label: {**c, "none": 0.2, "retrain": 0.99} for label, c in levels(CIFAR100=0.5, MNIST=0.9).items()}
    data = played("table7", columns, damaged={"MNIST": ["ssd", "fisher", "salun"]})
    sizes = played("table1", {"1.0": {**levels(x=0.7)["x"], "none": 0.2, "retrain": 0.99}})
    found = difficulty_claim(findings(tmp_path, data, sizes))
    assert found.holds == "open"
    assert found.finding.startswith("of 3 methods 3 have ")
    assert "(Fisher, SalUn and SSD damaged models)" in found.finding
