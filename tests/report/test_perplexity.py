"""What methods cost a language model in perplexity."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from forgetgauge.report.formats import written
from forgetgauge.report.html import render_report
from forgetgauge.report.perplexity import EXPLAINED, perplexity_table
from forgetgauge.report.rows import rows_of
from forgetgauge.report.table import render_table
from forgetgauge.results.record import read_result
from tests.report.test_html import game, method

STORED = Path(__file__).parents[2] / "results"


def told(quality, **parts):
    return method(quality, facts={f"perplexity, {part}": value for part, value in parts.items()})


def played(**changes):
    methods = {
        "retrain": told(1.0, retain=2.0, forget=5.0, unseen=4.0, outside=90.0),
        "npo": told(0.9, retain=3.0, forget=7.0, unseen=6.0, outside=123456.0),
        "none": told(0.2, retain=2.0, forget=2.0, unseen=5.0, outside=80.0),
    }
    return game({**methods, **changes})


def test_every_method_has_its_perplexity_and_its_price_beside_q():
    found = perplexity_table(played())
    assert found.heads == [
        "method",
        "Q",
        "perplexity retain",
        "perplexity unseen",
        "perplexity outside",
        "unseen, times Retrain’s",
        "unseen, times None’s",
    ]
    assert found.rows[1] == ["npo", "0.900", "3.00", "6.00", "1.23e+05", "1.50", "1.20"]
    assert [row[-2:] for row in found.rows[::2]] == [["1.00", "0.80"], ["1.25", "1.00"]]


def test_what_was_not_measured_has_a_dash_and_other_tasks_have_no_table():
    ours = played(mine=method(0.5), none=method(0.2))
    found = perplexity_table(ours)
    assert found.heads[-1] == "unseen, times Retrain’s"
    assert found.rows[-2][2:] == ["–"] * 4
    assert perplexity_table(game({"none": method(0.2), "retrain": method(1.0)})) is None


def test_the_table_the_report_and_the_data_show_it_of_language_models_alone():
    ours = read_result(STORED / "lume-slice/result.json")
    theirs = read_result(STORED / "groups-digits/result.json")
    assert render_table(ours).count(EXPLAINED) == render_report(ours).count(EXPLAINED) == len(ours.games)
    assert "perplexity" not in render_table(theirs).lower()
    assert "perplexity" not in render_report(theirs).lower()
    for result, columns in ((ours, ["perplexity_retain", "perplexity_unseen"]), (theirs, [])):
        head, *rows = csv.reader(io.StringIO(written(rows_of([("it", result)]), "csv")))
        assert [name for name in head if name.startswith("perplexity")] == columns
        for name in columns:
            facts = result.games[0].methods[rows[0][head.index("method")]].facts
            assert float(rows[0][head.index(name)]) == facts[name.replace("_", ", ")]
