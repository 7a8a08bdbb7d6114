"""A result in Python's hands: short to look at, the same numbers in table, DataFrame, picture and file."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import pytest

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.records import read_record
from forgetgauge.report import drawing
from forgetgauge.report.chart import evidence_chart, frontier_chart, quality_chart
from forgetgauge.report.drawing import Picture, as_picture
from forgetgauge.report.formats import written
from forgetgauge.report.html import is_unchanged
from forgetgauge.report.interactive import MOST_ROWS, Comparison, Evidence, Result, shown
from forgetgauge.report.one_model import render_evidence
from forgetgauge.report.rows import rows_of
from forgetgauge.report.table import render_table
from forgetgauge.results import record
from tests.report.evidence import CLEAN, SEEN, evidence, requested
from tests.report.test_formats import EVIL, read_csv
from tests.report.test_html import EVERY_KIND, NO_PAIR, game, method, result, sweep

pandas = pytest.importorskip("pandas") if find_spec("pandas") else None
needs_pandas = pytest.mark.skipif(pandas is None, reason="pandas is not installed")
needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
EVERY = {**EVERY_KIND, "evidence": evidence(), "evidence of requests": requested()}


@pytest.fixture
def without(monkeypatch):
    """Packages as if they were not installed."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setattr(drawing, "find_spec", lambda name: None if name in names else find_spec(name))

    return hide


@pytest.mark.parametrize("kind", EVERY)
def test_every_result_is_short_to_look_at_and_names_its_methods_and_its_verdict(kind):
    found = shown(EVERY[kind])
    text = repr(found)
    assert len(text) < 2500
    assert len(text.splitlines()) <= MOST_ROWS + 8
    assert " ".join(found.verdict.split(" ")[:3]) in text.replace("\n", " ")
    names = list(found.models if isinstance(found, Evidence) else found.games[0].methods)[:MOST_ROWS]
    assert all(name in text and name in found._repr_html_() for name in names)


@pytest.mark.parametrize("kind", [kind for kind in EVERY_KIND if kind != "an empty spec"])
def test_the_table_is_the_one_that_the_command_line_prints(kind):
    assert shown(EVERY_KIND[kind]).table() == render_table(EVERY_KIND[kind])


def test_the_table_of_evidence_is_the_one_that_the_command_line_prints():
    assert shown(evidence()).table() == render_evidence(evidence())


def test_names_can_neither_steer_a_terminal_nor_write_markup():
    found = shown(result(game({"retrain": method(0.99), f"\x1b[2J{EVIL}": method(0.9)})))
    assert "\x1b" not in repr(found)
    assert "\x1b" not in found.table()
    page = found._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    svg = as_picture(quality_chart(found)).svg
    assert "<script" not in svg
    assert "\x1b" not in svg
    ET.fromstring(svg)


def test_the_methods_of_the_short_form_have_their_q_interval_and_verdict():
    lines = repr(shown(result(game()))).splitlines()
    (row,) = [line for line in lines if line.startswith("neg-grad ")][:1]
    assert re.split(r"\s{2,}", row) == ["neg-grad", "0.900", "[0.890, 0.910]", "still visible"]


def test_a_shown_result_equals_the_record_that_it_is(tmp_path):
    stored = result(game())
    found = shown(stored)
    assert isinstance(found, Result)
    assert isinstance(found, record.Result)
    assert found == stored
    assert stored == found
    assert found != shown(result(game({"mine": method(0.5)})))
    assert found.to_json() == stored.to_json()
    assert isinstance(dataclasses.replace(found, failures=[]), Result)
    assert shown(evidence()) == evidence()
    assert shown(evidence()) != found


@pytest.mark.parametrize("kind", ["one game", "a sweep of numbers", "evidence"])
def test_what_is_saved_is_read_again_from_a_file_and_from_a_folder(kind, tmp_path):
    found = shown(EVERY[kind])
    found.save(str(tmp_path / "kept"))
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert names == (["evidence.html", "evidence.json"] if kind == "evidence" else ["report.html", "result.json"])
    found.save(tmp_path / "one.json")
    found.save(tmp_path / "new/page.html")
    page = (tmp_path / "new/page.html").read_bytes()
    assert b"<!doctype html>" in page
    assert is_unchanged(page)
    stored = read_record(tmp_path / "one.json", type(found).__mro__[2])
    assert found == stored


def test_reading_takes_files_and_folders_and_refuses_what_is_neither(tmp_path):
    assert isinstance(forgetgauge.read_result("results/certified-digits"), Result)
    path = "results/certified-digits/result.json"
    assert forgetgauge.read_result(path).verdict == forgetgauge.read_result("results/certified-digits").verdict
    with pytest.raises(UserError, match="no such file or folder"):
        forgetgauge.read_result(tmp_path / "nowhere")
    shown(evidence()).save(tmp_path / "one")
    assert forgetgauge.read_result(tmp_path / "one", verify=True) == evidence()
    text = (tmp_path / "one/evidence.json").read_text("utf-8")
    (tmp_path / "one/changed.json").write_text(text.replace('"n_forget": 100', '"n_forget": 101'), "utf-8")
    with pytest.raises(UserError, match="was changed after it was written"):
        forgetgauge.read_result(tmp_path / "one/changed.json")
    shown(result(game())).save(tmp_path / "bare")
    with pytest.raises(UserError, match="no decisions"):
        forgetgauge.read_result(tmp_path / "bare", verify=True)
    assert forgetgauge.read_result(tmp_path / "one") == evidence()


@pytest.fixture(autouse=True)
def _at_the_root(request, monkeypatch):
    monkeypatch.chdir(request.config.rootpath)


# -- DataFrames --------------------------------------------------------------------------------------------------------


@needs_pandas
@pytest.mark.parametrize("kind", EVERY)
def test_a_dataframe_has_the_rows_and_columns_of_csv_with_every_digit(kind):
    frame = shown(EVERY[kind]).to_dataframe()
    rows = read_csv(written(rows_of([("", EVERY[kind])]), "csv"))
    assert list(frame.columns) == list(rows[0])
    assert len(frame) == len(rows)
    for i, row in enumerate(rows):
        for name, text in row.items():
            cell = frame[name].iloc[i]
            if pandas.isna(cell):
                assert text == ""
            else:
                assert (str(cell) == text) if isinstance(cell, str) else float(cell) == float(text)


@needs_pandas
def test_numbers_are_numbers_also_where_some_or_all_are_missing():
    frame = shown(result(game({"mine": method(0.9, seconds=None), "lost": NO_PAIR}))).to_dataframe().set_index("method")
    numeric = ["q", "q_interval_low", "q_interval_high", "level", "pairs", "p", "seconds_per_model", "accuracy_unseen"]
    assert all(pandas.api.types.is_numeric_dtype(frame[name]) for name in numeric)
    assert frame.loc["mine", "q"] == 0.9
    assert frame["q"].isna().to_dict() == {"mine": False, "lost": True}


@needs_pandas
def test_a_sweep_has_a_row_for_each_value_and_method():
    frame = shown(EVERY_KIND["a sweep of numbers"]).to_dataframe()
    assert frame.groupby("game.alpha")["method"].count().to_dict() == {0.1: 3, 0.2: 3, 0.5: 3}


@needs_pandas
def test_by_adversary_and_by_pair_hold_what_the_record_holds():
    found = shown(EVERY_KIND["strong adversaries"])
    frame = found.to_dataframe(by="adversary").set_index(["method", "adversary"])
    own = found.methods["mine"].by_adversary["entropy"]
    assert frame.loc[("mine", "entropy"), "advantage"] == own.advantage
    assert frame.loc[("mine", "entropy"), "auc"] == own.diagnostics.auc
    assert frame.loc[("mine", "entropy"), "advantage_interval_low"] == own.interval[0]
    pairs = found.to_dataframe(by="pair").query("method == 'mine' and adversary == 'entropy'")
    assert pairs["pair"].tolist() == list(range(8))
    assert pairs["advantage"].tolist() == own.by_pair
    with pytest.raises(UserError, match="did you mean 'adversary'"):
        found.to_dataframe(by="adversaries")


@needs_pandas
@pytest.mark.parametrize("by", ["method", "adversary", "pair"])
def test_every_column_is_documented(by):
    page = (ROOT / "docs/python.md").read_text("utf-8")
    found = [shown(one) for kind, one in EVERY.items() if by == "method" or isinstance(shown(one), Result)]
    frames = [one.to_dataframe(by=by) if isinstance(one, Result) else one.to_dataframe() for one in found]
    swept = {one.sweep for one in found if isinstance(one, Result)}
    for name in {name for frame in frames for name in frame.columns} - swept:
        assert f"`{name}`" in page, name


def test_without_pandas_one_line_says_what_to_install(without):
    without("pandas")
    with pytest.raises(UserError, match=r"^to_dataframe needs pandas.*pip install 'forgetgauge\[notebook\]'$"):
        shown(result(game())).to_dataframe()


# -- pictures ----------------------------------------------------------------------------------------------------------


def texts(picture: Picture) -> list[str]:
    return [node.text for node in ET.fromstring(picture.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("kind", EVERY)
def test_every_picture_is_an_svg_without_scripts_that_labels_both_axes(kind, without, tmp_path):
    without("matplotlib")
    found = shown(EVERY[kind])
    picture = found.plot()
    assert isinstance(picture, Picture)
    chart = evidence_chart(found) if isinstance(found, Evidence) else quality_chart(found)
    assert {chart.x_label, chart.y_label} <= set(texts(picture))
    assert picture._repr_svg_() == picture.svg
    assert "script" not in picture.svg
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text("utf-8") == picture.svg
    assert "picture.svg" in repr(picture)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_all_that_is_drawn_lies_inside_of_the_picture_and_names_do_not_overlap(kind):
    root = ET.fromstring(as_picture(quality_chart(shown(EVERY_KIND[kind]))).svg)
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter(f"{SVG}circle"):
        assert 0 <= float(node.get("cx")) <= width
        assert 0 <= float(node.get("cy")) <= height
    places = [(float(node.get("x")), float(node.get("y"))) for node in root.iter(f"{SVG}text")]
    assert len(set(places)) == len(places)


def test_marks_of_the_svg_stand_where_the_numbers_say():
    found = shown(result(game({"a": method(0.9), "b": method(0.8)})))
    chart = quality_chart(found)
    root = ET.fromstring(as_picture(chart).svg)
    (first, second) = [float(node.get("cx")) for node in root.iter(f"{SVG}circle")]
    ticks = {t.text: float(t.get("x")) for t in root.iter(f"{SVG}text") if re.fullmatch(r"[\d.]+", t.text or "")}
    assert (first, second) == pytest.approx((ticks["0.9"], ticks["0.8"]), abs=0.2)


def test_the_frontier_has_q_and_accuracy_of_every_method():
    found = shown(result(game()))
    chart = frontier_chart(found)
    drawn = {curve.name: (curve.marks[0].x, curve.marks[0].y, curve.marks[0].interval) for curve in chart.curves}
    assert drawn == {name: (m.utility["unseen"], m.quality, m.interval) for name, m in found.methods.items()}
    assert {curve.name: curve.role for curve in chart.curves}["retrain"] == "retrain"


def test_a_sweep_has_no_one_frontier():
    with pytest.raises(UserError, match="a sweep has one frontier for each value"):
        shown(sweep([0.1, 0.2], {"mine": [0.9, 0.8]})).plot_frontier()


@needs_matplotlib
@pytest.mark.parametrize("kind", EVERY)
def test_matplotlib_draws_every_result_with_labels_on_both_axes(kind):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    found = shown(EVERY[kind])
    axes = found.plot()
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    axes.figure.canvas.draw()
    _, own = plt.subplots()
    assert found.plot(ax=own) is own
    if isinstance(found, Result) and found.sweep is None:
        drawn = found.plot_frontier()
        assert "Q" in drawn.get_ylabel()
        drawn.figure.canvas.draw()
    plt.close("all")


@needs_matplotlib
def test_matplotlib_marks_each_method_at_its_q():
    import matplotlib as mpl

    mpl.use("agg")
    found = shown(result(game({"a": method(0.9), "b": method(0.8)})))
    axes = found.plot()
    marked = {line.get_label(): line.get_xdata()[0] for line in axes.lines if not line.get_label().startswith("_")}
    assert marked == {"a": 0.9, "b": 0.8}
    ends = [tuple(line.get_xdata()) for line in axes.lines if line.get_label().startswith("_")]
    assert ends == [found.methods["a"].interval, found.methods["b"].interval]


# -- side by side ------------------------------------------------------------------------------------------------------


def test_results_side_by_side_have_the_rows_of_the_command_and_its_remarks():
    first, second = result(game()), result(game(n_shadows=150))
    found = forgetgauge.compare({"first": first, "second": second})
    assert isinstance(found, Comparison)
    assert found.table().startswith(written(rows_of([("first", first), ("second", second)]), "table"))
    assert any("number of shadow models" in line for line in found.remarks)
    assert all(line in found.table() for line in found.remarks)
    assert "first" in found._repr_html_()
    if pandas is not None:
        assert found.to_dataframe()["result"].tolist() == ["first"] * 3 + ["second"] * 3


def test_the_order_of_adversaries_is_no_difference():
    one, other = (game(adversaries={name: {} for name in names}) for names in (("a", "b"), ("b", "a")))
    assert not any("adversaries" in line for line in forgetgauge.compare([result(one), result(other)]).remarks)


def test_results_are_named_by_their_paths_or_counted(without):
    without("matplotlib")
    path = "results/certified-digits"
    found = forgetgauge.compare([path, forgetgauge.read_result(path)])
    assert list(found.results) == [path, "result 2"]
    assert any("certified" in text for text in texts(found.plot()))
    assert {one.difference for one in found.differences} == {0.0}


def test_a_comparison_is_saved_as_the_page_of_the_command(tmp_path):
    found = forgetgauge.compare({"first": result(game()), "second": result(game())})
    found.save(tmp_path / "page.html")
    assert "first" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([], "two results or more"),
        ([result(game())], "two results or more"),
        (result(game()), "as a list or as a mapping"),
        ("results/certified-digits", "as a list or as a mapping"),
        ([result(game()), evidence()], "cannot stand beside"),
        ([result(game()), 7], "result 2 is neither a result nor the path of one"),
        (["results/certified-digits"] * 2, "named twice"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused_in_one_line(results, said):
    with pytest.raises(UserError, match=said) as error:
        forgetgauge.compare(results)
    assert "\n" not in str(error.value)


def test_evidence_has_no_q_to_draw_side_by_side():
    found = forgetgauge.compare({"a": evidence({"model": SEEN}), "b": evidence({"model": CLEAN})})
    assert "still visible" in repr(found)
    with pytest.raises(UserError, match="has no Q"):
        found.plot()


# -- the package -------------------------------------------------------------------------------------------------------


def test_the_package_lists_what_it_has_and_loads_it_when_asked():
    assert dir(forgetgauge) == sorted(forgetgauge.__all__)
    for name in forgetgauge.__all__:
        assert getattr(forgetgauge, name) is not None
        if name != "__version__":
            assert getattr(forgetgauge, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = forgetgauge.nothing


def test_reading_and_showing_load_neither_torch_nor_what_is_not_asked_for():
    code = (
        "import sys, forgetgauge\n"
        "assert 'numpy' not in sys.modules\n"
        "repr(forgetgauge.read_result('results/certified-digits'))\n"
        "print([name for name in ('torch', 'pandas', 'matplotlib', 'IPython') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
