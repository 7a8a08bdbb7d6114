"""What is called a slip of the paper is one: every inequality from the printed tables, every formula by counting."""

from __future__ import annotations

from fractions import Fraction
from math import exp

from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.slips import slips


def printed(table: str, row: str, column: str) -> float:
    return paper_table(table).rows[row][column].mean


def test_none_is_worse_than_neg_grad_on_ic_at_both_ends():
    for column in ("50", "inf"):
        assert printed("table4a", "none", column) < printed("table4a", "neg-grad", column)
    assert "0.749 and 0.925 at ε = 50 and 0.005 and 0.180 at ∞" in " ".join(slips())


def test_the_examples_of_scores_that_do_not_fall_fall_there_and_rise_before():
    for table, rows in (("table4a", ("retrain-final", "ft-final")), ("table4b", ("neg-grad", "fisher"))):
        for row in rows:
            assert printed(table, row, "150") > printed(table, row, "600")
            assert printed(table, row, "50") < printed(table, row, "150")


def test_sst_5_lies_below_cifar_100_in_every_row():
    rows = paper_table("table7").rows
    assert len(rows) == 6
    assert all(cells["SST5"].mean < cells["CIFAR100"].mean for cells in rows.values())
    assert "in 6 of 6 rows: Retr-final 0.404 < 0.464" in " ".join(slips())
    cifar10 = [paper_table("table1").rows[row]["1.0"].mean for row in rows]  # the caption: SST-5 above CIFAR-10
    assert all(cells["SST5"].mean < value for cells, value in zip(rows.values(), cifar10, strict=True))
    cifar10 = [paper_table("table2").rows[row]["0.1"].mean for row in rows]
    below = sum(cells["SST5"].mean < value for cells, value in zip(rows.values(), cifar10, strict=True))
    assert f"below it in 6 of 6 rows of Table 1 and {below} of 6 rows of Table 2" in " ".join(slips())
    assert all(cells["SST5"].mean < cells["MNIST"].mean for cells in rows.values())


def test_neg_grad_and_fisher_are_no_further_apart_on_mia_than_the_bound_on_their_errors():
    one, other = (paper_table("table4b").rows[row] for row in ("neg-grad", "fisher"))
    apart = {column: round(one[column].mean - other[column].mean, 3) for column in ("50", "150", "600")}
    assert apart == {"50": 0.001, "150": -0.002, "600": 0.003}
    assert all(abs(apart[c]) < rows[c].spread == 0.01 for rows in (one, other) for c in apart)
    assert "by +0.001, −0.002, +0.003 at ε = 50, 150 and 600, where all" in " ".join(slips())
    assert one["inf"].mean - other["inf"].mean < -0.02


def test_thirty_per_cent_are_left_at_the_largest_share_only():
    assert [round(100 / 2 / (1 + alpha), 1) for alpha in (0.1, 0.67)] == [45.5, 29.9]
    assert "it is 45.5 %" in " ".join(slips())
    assert "At α = 0.67, the largest of Table 2, it is 29.9 %" in " ".join(slips())


def test_tables_1_and_2_are_apart_by_more_than_both_spreads():
    for row in ("fisher", "retrain-final"):
        one, two = paper_table("table1").rows[row]["1.0"], paper_table("table2").rows[row]["0.1"]
        assert abs(one.mean - two.mean) > one.spread + two.spread


def test_the_bound_of_the_theorem_is_negative_at_every_budget_of_table_3():
    for epsilon in (50, 150, 600):
        assert 4 / (exp(epsilon) + 1) - 1 < 0
    assert 4 / (3 + 1) - 1 == 0


def test_the_opposite_attack_exchanges_both_errors():
    """Four models, accepted or not: α is the share of unlearned ones rejected, β of retrained ones accepted."""
    unlearned, retrained = [True, True, True, False], [True, False, False, False]

    def errors(flip: bool) -> tuple[Fraction, Fraction]:
        accepted = [[said != flip for said in models] for models in (unlearned, retrained)]
        return Fraction(accepted[0].count(False), 4), Fraction(accepted[1].count(True), 4)

    alpha, beta = errors(False)
    assert errors(True) == (1 - alpha, 1 - beta)
    assert errors(True) != (alpha, 1 - beta)


def test_the_sign_in_the_toy_proof_is_turned():
    """F = ABC, all of F accepted and none of T: the advantage is 1, the proof's expression −1."""
    said, in_forget = [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]

    def accepted(y: int) -> Fraction:
        chosen = [a for a, b in zip(said, in_forget, strict=True) if b == y]
        return Fraction(sum(chosen), len(chosen))

    assert accepted(1) - accepted(0) == 1
    assert accepted(0) - accepted(1) == -1
