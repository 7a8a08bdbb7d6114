from __future__ import annotations

import dataclasses
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from forgetgauge.report.html import render_report
from forgetgauge.report.picture import advantage_scale, overview, quality_scale, spread, value_scale
from forgetgauge.report.result import (
    AdversaryResult,
    FailureResult,
    GameResult,
    MethodResult,
    NoiseFloorResult,
    Result,
)
from forgetgauge.report.verdict import sweep_verdict, verdict
from forgetgauge.report.wording import listed, p_value, seconds, signed

ADVERSARIES = ("correctness", "entropy")
VOID = {"meta", "line", "circle", "rect", "path", "br"}


def method(quality: float, width: float = 0.01, **changes: Any) -> MethodResult:
    advantage = 1 - quality
    found = {
        name: AdversaryResult(share * advantage, (share * advantage - width, share * advantage + width), by_pair)
        for name, share, by_pair in zip(ADVERSARIES, (-0.5, 1.0), ([-0.01] * 8, [advantage] * 8), strict=True)
    }
    whole = MethodResult(
        quality=quality,
        interval=(quality - width, min(1.0, quality + width)),
        adversary="entropy",
        by_adversary=found,
        p_value=0.0005,
        noise_floor=0.014,
        n_pairs=8,
        accuracy={"retain": 1.0, "forget": 0.987, "unseen": 0.954},
        n_gradients=9000.0,
        seconds=0.25,
    )
    return dataclasses.replace(whole, **changes)


NO_PAIR = MethodResult(None, None, None, {}, None, None, 0, {}, 0.0, 0.0)


def game(methods: dict[str, MethodResult] | None = None, value: Any = None, **spec: Any) -> GameResult:
    methods = methods or {"retrain": method(0.995), "none": method(0.85), "neg-grad": method(0.9)}
    whole = {
        "alpha": 0.5, "pairs": 8, "seeds": 1, "level": 0.95, "n_retain": 300, "n_forget": 299, "seed": 7,
        "data": {"name": "digits", "params": {}, "code": ""}, "data_digest": "41b8ec37e170b9c5144d",
        "learner": {"name": "minibatch", "params": {"lr": 0.05, "model": "small-cnn"}, "code": ""},
        "methods": {name: {"unlearner": {"name": name, "params": {"rate": 0.125}, "code": ""}} for name in methods},
        "adversaries": {name: {"name": name, "params": {}, "code": ""} for name in ADVERSARIES},
        "sensitivity": {"kind": "uniform"}, "share_retrain": False, **spec,
    }  # fmt: skip
    return GameResult(value, whole, methods, NoiseFloorResult("retrain", 0.007, 0.014), "over pairs")


def result(*games: GameResult, **changes: Any) -> Result:
    environment = {"forgetgauge": "0.1.0", "torch": "2.13.0+cpu"}
    digests = {"data": "41b8ec37e170b9c5144d", "decisions": "bc1aff683899c7329df0"}
    return Result(environment, digests, list(games) or [game()], **changes)


def sweep(values: list[Any], key: str = "game.alpha") -> Result:
    games = [
        game({"retrain": method(0.995), "neg-grad": method(0.9 - 0.1 * i), "ft": method(0.85)}, value, alpha=value)
        for i, value in enumerate(values)
    ]
    return result(*games, sweep=key)


class Page(HTMLParser):
    """Every tag with its attributes, all text, and whether each tag was closed by its own kind."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


EVERY_KIND = {
    "one game": result(),
    "one method": result(game({"mine": method(0.9)})),
    "references only": result(game({"retrain": method(0.995), "none": method(0.85)})),
    "nothing completed": result(dataclasses.replace(game({"mine": NO_PAIR}), noise_floor=None, interval_basis=None)),
    "an empty spec": result(dataclasses.replace(game(), spec={})),
    "many adversaries": result(
        game({"mine": method(0.9, by_adversary={f"a{i}": AdversaryResult(0.1, (0.0, 0.2), [0.1]) for i in range(9)})})
    ),
    "many failures": result(failures=[FailureResult(f"job {i}", "boom", f"failures/{i}.txt") for i in range(40)]),
    "a sweep of numbers": sweep([0.1, 0.2, 0.5]),
    "a sweep over magnitudes": sweep([1e-5, 1e-3, 1e-1], "learner.lr"),
    "a sweep of words": sweep(["cosine", "step"], "learner.schedule"),
    "a sweep of one": sweep([0.1]),
    "a sweep with a gap": dataclasses.replace(
        sweep([0.1, 0.2, 0.5]),
        games=[game({"a": method(0.9)}, 1), game({"a": NO_PAIR}, 2), game({"a": method(0.8)}, 3)],
    ),
}


@pytest.fixture(params=list(EVERY_KIND.values()), ids=list(EVERY_KIND))
def any_result(request: pytest.FixtureRequest) -> Result:
    found: Result = request.param
    return found


def test_the_page_is_well_formed_and_loads_nothing(any_result: Result) -> None:
    html = render_report(any_result)
    page = Page(html)
    assert not page.open
    assert not {"script", "link", "img", "iframe", "object", "use", "image"} & {tag for tag, _ in page.tags}
    assert "@import" not in html
    assert "url(" not in html
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_the_same_result_gives_the_same_bytes(any_result: Result) -> None:
    assert render_report(any_result) == render_report(dataclasses.replace(any_result))


def test_every_method_and_adversary_appears(any_result: Result) -> None:
    text = Page(render_report(any_result)).text
    for played in any_result.games:
        assert all(name in text for name in played.methods)
        assert all(name in text for found in played.methods.values() for name in found.by_adversary)


def test_pictures_say_what_they_show_and_tables_have_scopes(any_result: Result) -> None:
    page = Page(render_report(any_result))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pictures = [attributes for attributes in page.all("svg") if attributes.get("role") == "img"]
    assert len(page.all("title")) == len(pictures) + 1
    for attributes in pictures:
        assert set((attributes.get("aria-labelledby") or "").split()) <= set(ids)
    assert all(attributes.get("scope") in {"row", "col"} for attributes in page.all("th"))


def test_every_anchor_has_its_target(any_result: Result) -> None:
    page = Page(render_report(any_result))
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert {(attributes["href"] or "")[1:] for attributes in page.all("a")} <= ids


def test_names_are_escaped_wherever_they_stand() -> None:
    evil = '"><script>alert(1)</script>'
    named = method(0.9, by_adversary={evil: AdversaryResult(0.1, (0.0, 0.2), [0.1])}, adversary=evil)
    hostile = game({evil: named}, value=evil, adversaries={}, data={"name": evil})
    failures = [FailureResult(evil, evil, evil)]
    for shown in (result(hostile, failures=failures), result(hostile, hostile, sweep=evil, failures=failures)):
        html = render_report(shown)
        assert "<script" not in html
        assert evil in Page(html).text


def test_failures_are_named_with_their_traceback() -> None:
    failures = [FailureResult(f"job {i}", f"ValueError: number {i}", f"failures/{i:016}.txt") for i in range(30)]
    text = Page(render_report(result(failures=failures))).text
    assert "30 jobs failed" in text
    for failure in failures:
        assert failure.job in text
        assert failure.error in text
        assert failure.traceback in text


def test_a_run_without_failures_does_not_mention_any() -> None:
    assert 'id="failures"' not in render_report(result())


def test_a_method_without_a_pair_is_listed_without_a_number() -> None:
    text = Page(render_report(result(game({"mine": NO_PAIR, "retrain": method(0.995)})))).text
    assert "no pair completed" in text
    assert "mine completed 0 of 8 pairs" in text
    assert "No pair was completed for mine" in text


def test_lost_pairs_are_said_and_so_is_a_weaker_interval() -> None:
    text = Page(render_report(result(game({"a": method(0.9, n_pairs=7), "b": method(0.8, n_pairs=3)})))).text
    assert "a completed 7 of 8 pairs." in text
    assert "b completed 3 of 8 pairs; its intervals are given these models" in text


def test_the_largest_advantage_is_marked_once_in_each_row() -> None:
    html = render_report(result())
    assert html.count("largest: ") == len(game().methods)


def test_settings_show_every_choice() -> None:
    text = Page(render_report(result())).text
    for said in ("0.5", "300", "299", "41b8ec37e170…", "lr = 0.05, model = small-cnn", "rate = 0.125", "2.13.0+cpu"):
        assert said in text


def test_settings_of_a_sweep_show_what_differs() -> None:
    text = Page(render_report(sweep([0.1, 0.2]))).text
    assert "game.alpha = 0.1: 0.1" in text
    assert "game.alpha = 0.2: 0.2" in text


def test_a_sweep_of_numbers_has_a_picture_and_one_of_words_a_table_alone() -> None:
    assert 'id="overview-title"' in render_report(sweep([0.1, 0.2, 0.5]))
    words = render_report(sweep(["cosine", "step"], "learner.schedule"))
    assert 'id="overview-title"' not in words
    assert "learner.schedule = cosine" in words
    assert 'id="overview-title"' not in render_report(sweep([True, False], "game.share_retrain"))


def test_the_report_is_rendered_without_torch() -> None:
    code = (
        "import sys; from forgetgauge.report.html import render_report; from forgetgauge.report.result import *;"
        "render_report(Result({}, {}, [GameResult(None, {}, {}, None, None)]));"
        "sys.exit(bool({'torch', 'matplotlib', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def said(played: GameResult) -> str:
    found = verdict(played)
    return " ".join([found.headline, *found.remarks])


def test_the_verdict_names_the_best_tested_method_and_not_a_reference() -> None:
    spoken = verdict(game({"retrain": method(0.995), "none": method(0.99), "a": method(0.8), "b": method(0.7)}))
    assert spoken.headline.startswith("a leaves the least to see of the 2 methods tested")


def test_the_verdict_says_whether_retrain_is_grounded() -> None:
    assert "Retrain is grounded" in said(game({"retrain": method(0.995)}))
    assert "Retrain is not grounded" in said(game({"retrain": method(0.9)}))
    assert "Retrain has no Q here" in said(game({"mine": method(0.9)}))
    assert "by construction" in said(game({"retrain": method(1.0)}, share_retrain=True))


def test_the_verdict_knows_retrain_behind_another_id() -> None:
    played = game({"gold": method(0.995)})
    played.spec["methods"]["gold"]["unlearner"]["name"] = "retrain"
    assert "Retrain is grounded" in said(played)


def test_the_verdict_admits_what_intervals_do_not_settle() -> None:
    assert "does not settle" in said(game({"a": method(0.9), "b": method(0.895)}))
    assert "does not settle" not in said(game({"a": method(0.9), "b": method(0.8)}))
    assert "cannot tell unlearning from doing nothing" in said(game({"none": method(0.995), "a": method(0.9)}))
    assert "a cannot be told from None" in said(game({"none": method(0.9), "a": method(0.9)}))
    assert "Below None: a" in said(game({"none": method(0.9), "a": method(0.7)}))
    assert "given these models" in said(dataclasses.replace(game(), interval_basis="given these models"))


def test_the_verdict_of_a_sweep_says_where_the_best_changes() -> None:
    assert "depends on game.alpha: neg-grad at 0.1; ft at 0.3" in sweep_verdict(sweep([0.1, 0.3])).headline
    assert "neg-grad leaves the least to see at every value" in sweep_verdict(sweep([0.1])).headline


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (signed(0.1494), "+0.149"),
        (signed(-0.02), "−0.020"),
        (signed(-0.0001), "0.000"),
        (p_value(0.31), "0.31"),
        (p_value(1 / 2001), "0.0005"),
        (p_value(1e-9), "< 0.0001"),
        (seconds(0.0811), "0.081\u202fs"),
        (seconds(1234.5), "1\u202f234\u202fs"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (listed([]), ""),
    ],
)
def test_numbers_are_written_as_people_write_them(shown: str, wanted: str) -> None:
    assert shown == wanted


@pytest.mark.parametrize("least", [0.0, 0.001, 0.3, 0.5, 0.83, 0.9, 0.949, 0.9999, 1.0])
def test_the_axis_of_quality_holds_what_it_must_and_ends_at_one(least: float) -> None:
    scale = quality_scale([least])
    assert 0 <= scale.low <= least
    assert (scale.ticks[0], scale.ticks[-1]) == (scale.low, 1)
    assert len(scale.ticks) <= 6
    assert scale.low <= 0.9
    assert scale.percent(1) == 100


def test_the_axis_of_advantages_holds_zero() -> None:
    for values in ([], [0.3], [-0.2, -0.1]):
        scale = advantage_scale(values)
        assert scale.low < 0 < scale.high


def test_the_axis_of_values_is_logarithmic_over_magnitudes_only() -> None:
    assert value_scale([1e-4, 1e-2, 1]).percent(1e-2) == 50
    assert value_scale([0.0, 50.0, 100.0]).percent(50) == 50


def test_a_gap_breaks_the_line_of_a_sweep() -> None:
    picture = overview([1, 2, 3, 4], {"a": [(0.9, 0.8, 1.0), None, (0.8, 0.7, 0.9), (0.7, 0.6, 0.8)], "b": [None] * 4})
    (series,) = picture.series
    assert [len(series.points), len(series.segments)] == [3, 1]


def test_labels_keep_their_order_and_their_distance() -> None:
    placed = spread([50, 10, 52, 51], gap=10, low=0, high=60)
    assert placed[1] < placed[0] < placed[3] < placed[2] <= 60
    ordered = sorted(placed)
    assert all(b - a >= 10 for a, b in pairwise(ordered))
