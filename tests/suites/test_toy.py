"""The six-point example through the library and the command line."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from forgetgauge.suites.paper import text_values
from forgetgauge.suites.toy import toy, toy_table


def test_every_split_gives_the_papers_advantage():
    rows = toy()
    assert [set(row.advantages) for row in rows] == [{Fraction(0)}, {Fraction(1, 6)}, {Fraction(1, 3)}]
    assert all(len(row.advantages) == 20 and row.holds for row in rows)


@pytest.mark.parametrize("forget", ["ABC", "DEF"])
def test_plain_accuracy_is_the_papers_on_the_splits_it_looks_at(forget):
    claimed = text_values()["toy_example"][f"mia_accuracy_forget_{forget}"]
    assert {row.name: str(row.accuracies[forget]) for row in toy()} == claimed


def test_plain_accuracy_depends_on_the_split_even_for_retrain():
    retrain = next(row for row in toy() if row.name == "Retrain")
    assert (min(retrain.accuracies.values()), max(retrain.accuracies.values())) == (0, 1)


def test_the_command_prints_and_keeps_it(call, tmp_path):
    code, out, _ = call("reproduce", "toy", "--out", tmp_path)
    assert code == 0
    assert toy_table(toy()) in out
    kept = json.loads((tmp_path / "toy/result.json").read_text())
    assert kept["UL2"]["holds"] is True
    assert set(kept["UL2"]["swap_advantages"]) == {"1/3"}
