"""One table of data, five ways to write it: CSV and JSON give every number back, the others break at no name."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.errors import UserError
from forgetgauge.report.formats import FORMATS, written
from forgetgauge.report.rows import Column, Rows, rows_of, unlike
from tests.report.evidence import CLEAN, SEEN, evidence
from tests.report.test_html import EVERY_KIND, NO_PAIR, game, method, result, sweep

FINITE = st.floats(allow_nan=False, allow_infinity=False)
EVIL = 'a|b_c & 50% {x} \\ ^~#$ <script>alert(1)</script>\n[z] * `q` "é"'


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_result_can_be_written_in_every_format(kind, form):
    found = EVERY_KIND[kind]
    text = written(rows_of([("here", found)]), form)
    for played in found.games:
        assert all(name in text for name in played.methods)


def test_csv_and_json_give_every_number_back_to_the_last_digit():
    quality = 0.9012345678901234
    found = result(game({"retrain": method(0.995), "mine": method(quality, seconds=1 / 3), "lost": NO_PAIR}))
    rows = rows_of([("", found)])
    (mine,) = [row for row in read_csv(written(rows, "csv")) if row["method"] == "mine"]
    own = found.methods["mine"]
    assert float(mine["q"]) == quality
    assert (float(mine["q_interval_low"]), float(mine["q_interval_high"])) == own.interval
    assert float(mine["seconds_per_model"]) == 1 / 3
    assert int(mine["pairs"]) == own.n_pairs
    (same,) = [row for row in json.loads(written(rows, "json")) if row["method"] == "mine"]
    assert (same["q"], tuple(same["q_interval"]), same["p"]) == (quality, own.interval, own.p_value)
    (lost,) = [row for row in json.loads(written(rows, "json")) if row["method"] == "lost"]
    assert lost["q"] is None
    assert lost["verdict"] == "not evaluable"


@given(st.text(st.characters(exclude_categories=["Cs"])), FINITE, FINITE, FINITE | st.none())
def test_any_text_and_any_number_survive_csv_and_json(text, number, low, other):
    columns = (Column("a", "a"), Column("b", "b"), Column("c", "c", is_interval=True), Column("d"))
    rows = Rows(columns, [[text, number, (low, number), other]])
    (row,) = read_csv(written(rows, "csv"))
    assert row["a"] == text
    assert (float(row["b"]), float(row["c_low"]), float(row["c_high"])) == (number, low, number)
    assert row["d"] == "" if other is None else float(row["d"]) == other
    assert json.loads(written(rows, "json")) == [{"a": text, "b": number, "c": [low, number], "d": other}]


def test_an_interval_that_nobody_has_is_still_two_columns_of_csv():
    rows = read_csv(written(rows_of([("", result(game({"mine": NO_PAIR})))]), "csv"))
    assert rows[0]["q_interval_low"] == rows[0]["q_interval_high"] == ""


def cells_of_markdown(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_name_breaks_a_markdown_table(name):
    columns = (Column("method", "method"), Column("q", "Q"))
    lines = written(Rows(columns, [[name, 0.5]]), "markdown").split("\n")
    assert len(lines) == 3
    assert lines[1] == "| --- | ---: |"
    assert len(cells_of_markdown(lines[2])) == 2
    assert cells_of_markdown(lines[2])[1] == "0.500"
    assert not re.search(r"<[a-zA-Z/!]", lines[2])


def unescaped_latex(cell: str) -> str:
    """What LaTeX would print of a cell, by the meaning of each macro; an active letter left over is an error."""
    meaning = {
        r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
        r"\textgreater{}": ">", r"\textbar{}": "|", "{[}": "[", "{]}": "]", "{*}": "*", r"$\varepsilon$": "ε",
        r"$\delta$": "δ", r"$\alpha$": "α", r"$\geq$": "≥", r"$\leq$": "≤", "$-$": "−", "--": "–",
        **{f"\\{letter}": letter for letter in "{}%_&#$"},
    }  # fmt: skip
    pattern = "|".join(re.escape(macro) for macro in sorted(meaning, key=len, reverse=True))
    for rest in re.split(pattern, cell):
        assert not set(rest) & set("\\{}%_&#$~^"), rest
    return re.sub(pattern, lambda match: meaning[match[0]], cell)


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: "--" not in text))
def test_latex_prints_any_name_as_it_is(name):
    lines = written(Rows((Column("method", "method"), Column("q", "Q")), [[name, 0.5]]), "latex").split("\n")
    assert lines[0].startswith(r"\begin{tabular}{lr}")
    assert lines[-1] == r"\end{tabular}"
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    (row,) = lines[4:-2]
    shown, number = row.removesuffix(r" \\").rsplit(" & ", 1)
    assert number == "0.500"
    assert unescaped_latex(shown) == " ".join(name.split())


def test_hostile_names_stand_in_every_format_of_a_whole_result():
    found = result(game({"retrain": method(0.995), EVIL: method(0.9)}))
    rows = rows_of([("", found)])
    assert EVIL in [row["method"] for row in read_csv(written(rows, "csv"))]
    assert EVIL in [row["method"] for row in json.loads(written(rows, "json"))]
    assert "<script" not in written(rows, "markdown")
    assert r"50\%" in written(rows, "latex")


def test_a_sweep_has_a_row_for_each_value_and_method():
    rows = json.loads(written(rows_of([("", sweep([0.1, 0.2]))]), "json"))
    assert [(row["game.alpha"], row["method"]) for row in rows[:2]] == [(0.1, "retrain"), (0.1, "neg-grad")]
    assert len(rows) == 6


def test_evidence_from_one_model_has_a_row_for_each_test():
    rows = rows_of([("", evidence({"mine": SEEN, "other": CLEAN}))])
    read = json.loads(written(rows, "json"))
    assert [(row["model"], row["test"]) for row in read] == [
        ("mine", "loss"), ("mine", "gap"), ("other", "loss"), ("other", "gap"),
    ]  # fmt: skip
    assert read[0]["log10_p"] == SEEN.tests["loss"].log10_p
    assert read[0]["epsilon"] == SEEN.epsilon
    assert "q" not in read[0]
    assert "3e-8" in written(rows, "markdown")


def test_a_model_without_a_test_keeps_its_verdict():
    bare = dataclasses.replace(SEEN, tests={}, verdict="not evaluable")
    (row,) = json.loads(written(rows_of([("", evidence({"mine": bare}))]), "json"))
    assert row["verdict"] == "not evaluable"


def test_results_side_by_side_name_whose_each_row_is_and_what_differs():
    named = [("a", result()), ("b", result(game(n_references=50)))]
    rows = json.loads(written(rows_of(named), "json"))
    assert [row["result"] for row in rows] == ["a"] * 3 + ["b"] * 3
    assert unlike(named) == ["not the same number of reference models: a 16; b 50"]
    assert unlike([named[0], ("c", named[0][1])]) == []
    drawn = [("a", evidence()), ("b", evidence(n_forget=10))]
    assert unlike(drawn) == ["not the same drawn: a 100 points; b 10 points"]


def test_methods_of_one_name_with_other_settings_are_told_apart():
    def of(name, code="", **params):
        made = result(game({"mine": method(0.9)}))
        spec = {**made.games[0].spec, "methods": {"mine": {"unlearner": {"params": params, "code": code}}}}
        return name, dataclasses.replace(made, games=[dataclasses.replace(made.games[0], spec=spec)])

    assert unlike([of("a", scale=0.1, lr=1.0), of("b", scale=0.5, lr=1.0)]) == ["not the same mine.scale: a 0.1; b 0.5"]
    assert unlike([of("a", code="0123456789"), of("b", code="abcdefghij")]) == [
        "not the same code of mine: a 01234567; b abcdefgh"
    ]
    assert unlike([of("a", scale=0.1), of("b", scale=0.1)]) == []


def test_columns_of_unlike_results_are_put_together_in_order():
    tested = method(0.9, utility={"retain": 1.0, "forget": 1.0, "unseen": 0.9, "test": 0.8})
    rows = rows_of([("a", result()), ("b", result(game({"mine": tested})))])
    keys = [column.key for column in rows.columns]
    assert keys.index("accuracy_unseen") < keys.index("accuracy_test") < keys.index("seconds_per_model")
    assert len(keys) == len(set(keys))


def test_an_unknown_format_names_the_nearest():
    with pytest.raises(UserError, match="did you mean 'markdown'"):
        written(rows_of([("", result())]), "markdwn")
