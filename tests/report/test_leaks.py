"""Where it leaks, on the page: curves, parts, points, markers and the data behind each picture."""

from __future__ import annotations

import base64
import csv
import dataclasses
import io
import re
import zlib

import numpy as np
import pytest
from PIL import Image

from forgetgauge.report.comparison import render_comparison
from forgetgauge.report.html import render_report, template
from forgetgauge.report.leaks import MOST_MARKS, part_views, roc_view
from forgetgauge.report.picture import DIAMOND, SQUARE, markers_of
from forgetgauge.report.thumbnails import MOST_PIXELS, ShownPoints, Thumbnail, png_uri, thumbnail
from forgetgauge.results.points import VisiblePoint, VisiblePoints
from tests.report.evidence import evidence
from tests.report.test_html import EVERY_KIND, Page, game, leaking, method, result, sweep


def files(page: Page) -> dict[str, list[dict[str, str]]]:
    """Name of each file that the page carries -> its rows."""
    found = {}
    for link in page.all("a"):
        if "download" in link:
            head, _, packed = link["href"].partition(",")
            assert head == "data:text/csv;charset=utf-8;base64"
            text = base64.b64decode(packed, validate=True).decode("utf-8")
            found[link["download"]] = list(csv.DictReader(io.StringIO(text, newline="")))
    return found


def points(picture: str = "", text: str = "") -> list[ShownPoints]:
    shown = VisiblePoint(17, 3, 0, 4, 1.25, -0.5)
    found = VisiblePoints("neg-grad", "entropy", False, [shown], 598, 3, 20, 14.7)
    return [ShownPoints(found, [Thumbnail(picture, text)], ["7"])]


# -- the data behind each picture --------------------------------------------------------------------------------------


def test_every_picture_brings_its_data_with_all_digits():
    found = files(Page(render_report(leaking())))
    assert set(found) == {"q-by-method.csv", "advantage-by-pair.csv", "roc.csv", "q-by-part.csv"}
    assert [float(row["tpr"]) for row in found["roc.csv"] if row["method"] == "none"] == [
        rate**0.7 for rate in (0.001, 0.01, 0.1, 1.0)
    ]
    parts = [row for row in found["q-by-part.csv"] if (row["method"], row["column"]) == ("none", "class")]
    assert [float(row["advantage"]) for row in parts] == [(1 - 0.85) * i / 10 for i in range(10)]
    assert {row["method"] for row in found["q-by-method.csv"]} == {"retrain", "none", "neg-grad"}


def test_strong_adversaries_and_a_sweep_bring_theirs():
    found = files(Page(render_report(EVERY_KIND["strong adversaries"])))
    assert {row["queries"] for row in found["q-by-queries.csv"]} == {"1", "4", "16"}
    swept = files(Page(render_report(sweep([0.1, 0.2]))))
    assert {row["game.alpha"] for row in swept["q-by-method.csv"]} == {"0.1", "0.2"}


def test_a_name_that_looks_like_markup_stays_a_name_in_the_page_and_in_its_files():
    html = render_report(leaking())
    assert "<b>south</b>" not in html
    assert "<b>south</b>" in Page(html).text
    assert "<b>south</b>" in {row["part"] for row in files(Page(html))["q-by-part.csv"]}


# -- curves and parts --------------------------------------------------------------------------------------------------


def test_curves_share_their_axes_and_stand_where_their_rates_are():
    view = roc_view(leaking().games[0])
    assert [panel.method for panel in view.panels] == ["retrain", "neg-grad", "none"]
    assert [tick for _, tick in view.ticks] == ["100 %", "10 %", "1 %", "0.1 %"]
    places = [tuple(map(float, place.split())) for place in view.panels[2].line[1:].split("L")]
    for (across, down), rate in zip(places, (0.001, 0.01, 0.1, 1.0), strict=True):
        assert across == pytest.approx(1000 * (3 + np.log10(rate)) / 3, abs=1)
        assert down == pytest.approx(1000 * (1 - (3 + 0.7 * np.log10(rate)) / 3), abs=1)
    assert {role for role, _ in view.panels[1].behind} == {"retrain", "none"}
    assert {role for role, _ in view.panels[0].behind} == {"none"}


def test_a_result_without_curves_or_parts_has_no_such_section():
    assert "Where it leaks" not in render_report(result())
    assert "Where it leaks" in render_report(leaking())


def test_a_part_is_called_settled_only_where_its_interval_ends_below_one():
    by_class, by_region = part_views(leaking().games[0])
    assert not any(mark.is_settled for panel in by_class.panels for mark in panel.marks)
    assert all(mark.is_settled for panel in by_region.panels for mark in panel.marks)
    assert (by_class.n_looked, by_region.n_looked) == (12, 12)
    assert {panel.note for panel in by_class.panels} == {"none below 1 beyond doubt"}
    assert {panel.note for panel in by_region.panels} == {"all below 1"}


def test_of_many_parts_those_of_lowest_q_are_drawn_and_all_are_in_the_table():
    view = part_views(leaking(n_parts=100).games[0])[0]
    assert view.n_left == 100 - MOST_MARKS
    assert [mark.part for mark in view.panels[-1].marks] == [str(i) for i in range(99, 99 - MOST_MARKS, -1)]
    text = Page(render_report(leaking(n_parts=100))).text
    assert f"{100 - MOST_MARKS} more are in the table" in text


# -- points ------------------------------------------------------------------------------------------------------------


def test_points_are_shown_with_what_they_look_like_and_how_often_they_were_seen():
    page = Page(render_report(leaking(), {0: points(text="It <i>works</i>.")}))
    words = " ".join(page.text.split())
    assert "seen in 3 of 4" in words
    assert "It <i>works</i>." in words
    assert (
        "20 of 598 points were told right at least 3 times more often than wrong; a coin would give about 15." in words
    )
    assert files(page)["points.csv"] == [
        {"method": "neg-grad", "adversary": "entropy", "id": "17", "seen": "3", "wrongly": "0", "asked": "4",
         "margin_forgotten": "1.25", "margin_unseen": "-0.5"}
    ]  # fmt: skip


def test_the_policy_lets_pictures_in_only_where_there_are_some():
    plain, text, picture = (
        render_report(leaking(), shown)
        for shown in ({}, {0: points(text="x")}, {0: points(png_uri(np.zeros((2, 2, 1), dtype=np.uint8)))})
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    for html, wanted in ((plain, policy), (text, policy), (picture, f"{policy}; img-src data:")):
        (meta,) = [m for m in Page(html).all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        assert meta["content"] == wanted
        assert len(Page(html).all("img")) == (html is picture)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_is_read_back_pixel_by_pixel(channels):
    image = np.random.default_rng(0).integers(256, size=(5, 7, channels), dtype=np.uint8)
    packed = png_uri(image).removeprefix("data:image/png;base64,")
    read = np.asarray(Image.open(io.BytesIO(base64.b64decode(packed))))
    assert np.array_equal(read.reshape(image.shape), image)


def test_points_are_pictures_or_text_or_numbers():
    rng = np.random.default_rng(0)
    assert thumbnail(rng.random((1, 8, 8)), None, (0, 1)).picture.startswith("data:image/png")
    assert thumbnail(np.arange(9), "a sentence", (0, 1)).text == "a sentence"
    assert thumbnail(np.arange(9), None, (0, 1)).text == "(0, 1, 2, 3, 4, 5, …)"
    assert len(thumbnail(np.arange(9), "a" * 999, (0, 1)).text) == 240
    large = base64.b64decode(thumbnail(np.zeros((3, 224, 224), dtype=np.uint8), None, (0, 1)).picture.partition(",")[2])
    assert max(Image.open(io.BytesIO(large)).size) <= MOST_PIXELS
    assert zlib.crc32(large) != 0


# -- markers -----------------------------------------------------------------------------------------------------------


def test_a_method_has_one_marker_and_no_two_methods_have_the_same():
    many = result(game({"retrain": method(0.99), "none": method(0.8), **{f"m{i}": method(0.9) for i in range(30)}}))
    found = markers_of(many)
    assert (found["retrain"].form, found["none"].form) == (DIAMOND, SQUARE)
    looks = [(one.form, one.colour) for one in found.values()]
    assert len(set(looks)) == len(looks)
    tested = [one for name, one in found.items() if name.startswith("m")]
    assert not {DIAMOND, SQUARE} & {one.form for one in tested}


def test_the_first_figure_and_the_curves_draw_a_method_alike():
    html = render_report(sweep([0.1, 0.2, 0.5]))
    colours = {name: one.colour for name, one in markers_of(sweep([0.1, 0.2, 0.5])).items()}
    rows = re.findall(r'aria-label="([\w-]+): Q .*?<g class="mark ([\w-]+)">', html, flags=re.DOTALL)
    assert rows
    assert all(colours[name] == colour for name, colour in rows)
    drawn = re.findall(r'<g class="series ([\w-]+)[^"]*" transform', html)
    assert set(drawn) == set(colours.values())


# -- who may read it: contrast, keyboard, no script --------------------------------------------------------------------


def style() -> str:
    return template("style.html.j2").render()


def themes() -> dict[str, dict[str, str]]:
    """Light and dark: variable -> #rrggbb."""
    blocks = re.findall(r":root \{([^}]*)\}", style())
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b(?![0-9a-f])", block)) for block in blocks[:2])
    return {"light": light, "dark": {**light, **dark}}


def luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_contrast_is_computed_as_the_standard_has_it():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ink", ["ink", "muted", "accent", "ideal", "alert"])
def test_letters_stand_out_from_the_paper(theme, ink):
    colours = themes()[theme]
    assert contrast(colours[ink], colours["paper"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_on_an_alert_and_lines_of_every_colour_stand_out(theme):
    colours = themes()[theme]
    for ink in ("ink", "alert"):
        assert contrast(colours[ink], colours["alert-paper"]) >= 4.5
    for i in range(8):
        assert contrast(colours[f"c{i}"], colours["paper"]) >= 3


PAGES = {
    **{name: (found, {}) for name, found in EVERY_KIND.items()},
    "points": (leaking(), {0: points(text="a sentence")}),
}


@pytest.mark.parametrize(("found", "shown"), PAGES.values(), ids=list(PAGES))
def test_everything_can_be_reached_by_keyboard(found, shown):
    """What scrolls takes the focus and has a name; what folds is a summary; nothing else asks for the focus."""
    page = Page(render_report(found, shown))
    for tag, attributes in page.tags:
        if "scroll" in (attributes.get("class") or "").split():
            assert attributes["tabindex"] == "0"
            assert attributes["role"] == "region"
            assert attributes["aria-label"]
        else:
            assert "tabindex" not in attributes
        assert tag not in {"button", "input", "select", "textarea"}
    assert len(page.all("details")) == len(page.all("summary"))
    assert all(link.get("href") for link in page.all("a"))
    assert "outline: none" not in style()
    assert "outline:0" not in style().replace(" ", "")


@pytest.mark.parametrize(("found", "shown"), PAGES.values(), ids=list(PAGES))
def test_nothing_on_the_page_is_or_needs_a_script(found, shown):
    html = render_report(found, shown)
    page = Page(html)
    assert "script" not in {tag for tag, _ in page.tags}
    assert "javascript:" not in html
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    (meta,) = [m for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert meta["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "script-src" not in meta["content"]


def test_what_a_shared_retrained_model_shows_is_certain():
    from forgetgauge.results.assessed import with_shared_retrain

    found = leaking().games[0]
    shared = with_shared_retrain(dataclasses.replace(found, spec={**found.spec, "share_retrain": True}))
    retrain = shared.methods["retrain"]
    roc = retrain.by_adversary["entropy"].roc
    assert all(low == high == rate for rate, (low, high) in zip(roc.tpr, roc.band, strict=True))
    assert {part.interval for part in retrain.parts["class"]} == {(0.0, 0.0)}
    assert {part.interval for part in shared.methods["none"].parts["class"]} == {(-0.1, 0.2)}


def test_a_page_of_several_results_has_the_same_properties():
    pages = [
        render_comparison([("runs/a", leaking()), ('<b onclick="x">', leaking())]),
        render_comparison([("a", sweep([0.1, 0.2])), ("b", sweep([0.1, 0.2]))]),
        render_comparison([("a", EVERY_KIND["nothing completed"]), ("b", EVERY_KIND["nothing completed"])]),
        render_comparison([("a", evidence()), ("b", evidence())]),
    ]
    for html in pages:
        page = Page(html)
        assert not page.open
        assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
        (meta,) = [m for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        assert meta["content"] == "default-src 'none'; style-src 'unsafe-inline'"
        assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert all(attributes.get("scope") in {"row", "col"} for attributes in page.all("th"))
        scrolls = [attributes for _, attributes in page.tags if attributes.get("class") == "scroll"]
        assert scrolls
        assert all(attributes["tabindex"] == "0" and attributes["aria-label"] for attributes in scrolls)
        assert "results.csv" in files(page)
    assert render_comparison([("a", leaking()), ("b", leaking())]) == render_comparison(
        [("a", leaking()), ("b", leaking())]
    )
