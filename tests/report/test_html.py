from __future__ import annotations

import dataclasses
import subprocess
import sys
from html.parser import HTMLParser
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from forgetgauge.attack.adversary import Need
from forgetgauge.report.html import render_report
from forgetgauge.report.picture import advantage_scale, magnitude, overview, quality_scale, spread, value_scale
from forgetgauge.report.settings import GIVEN
from forgetgauge.report.table import by_quality, render_table
from forgetgauge.results.record import (
    AdversaryResult,
    ComparisonResult,
    DiagnosticResult,
    FailureResult,
    GameResult,
    MethodResult,
    NoiseFloorResult,
    Result,
    StrongResult,
    WorstPairResult,
)
from forgetgauge.results.resolution import resolution_on
from forgetgauge.results.roc_and_parts import PartResult, RocResult
from forgetgauge.results.verdict import (
    INCONCLUSIVE,
    LIKE_RETRAIN,
    NOT_BETTER,
    NOT_EVALUABLE,
    STILL_VISIBLE,
    sweep_verdict,
    verdict,
    verdict_on,
    with_verdicts,
)
from forgetgauge.wording import bound, listed, p_value, seconds, signed

ADVERSARIES = ("correctness", "entropy")
VOID = {"meta", "line", "circle", "rect", "path", "wbr", "img"}


def method(quality: float, width: float = 0.01, **changes: Any) -> MethodResult:
    advantage = 1 - quality
    found = {
        name: AdversaryResult(share * advantage, (share * advantage - width, share * advantage + width), by_pair)
        for name, share, by_pair in zip(ADVERSARIES, (-0.5, 1.0), ([-0.01] * 8, [advantage] * 8), strict=True)
    }
    whole = MethodResult(
        quality=quality,
        quality_plugin=quality - 0.004,
        chosen_on="over pairs",
        epsilon=0.029,
        interval=(quality - width, min(1.0, quality + width)),
        interval_basis="over pairs",
        bounded_interval=(quality - width, min(1.0, quality + width)),
        advantage_floor=max(0.0, advantage - width),
        worst_pair=WorstPairResult(quality - 0.05, 3, "entropy", 0.03),
        adversary="entropy",
        by_adversary=found,
        p_value=0.0005,
        noise_floor=0.014,
        n_pairs=8,
        utility={"retain": 1.0, "forget": 0.987, "unseen": 0.954},
        n_gradients=9000.0,
        seconds=0.25,
    )
    return dataclasses.replace(whole, **changes)


NO_PAIR = MethodResult(None, None, None, None, None, None, None, {}, None, None, 0, {}, None, None)
DIAGNOSTICS = DiagnosticResult(auc=0.613, tpr_at_fpr_1_percent=0.0171, tpr_at_fpr_1_permille=0.0023, ks=0.187)


def compared(methods: dict[str, MethodResult], margin: float = 0.02) -> list[ComparisonResult]:
    """Every two methods that have a Q; the one whose Q is higher by more than the margin is better."""
    found = []
    qualities = {name: method.quality for name, method in methods.items() if method.quality is not None}
    for first, second in combinations(qualities, 2):
        difference = qualities[first] - qualities[second]
        better = None if abs(difference) <= margin else first if difference > 0 else second
        interval = (difference - margin, difference + margin)
        found.append(ComparisonResult(first, second, difference, interval, better))
    return found


def played(quality: float, by_queries: dict[int, tuple[float, float]], **changes: Any) -> MethodResult:
    """A method with diagnostics and strong adversaries; q -> the advantages of correctness and of entropy."""
    plain = method(quality, **changes)
    by_adversary = {
        name: dataclasses.replace(
            found,
            diagnostics=DIAGNOSTICS,
            strong=[StrongResult(q, each[i], (each[i] - 0.05, each[i] + 0.05), []) for q, each in by_queries.items()],
        )
        for i, (name, found) in enumerate(plain.by_adversary.items())
    }
    return dataclasses.replace(plain, by_adversary=by_adversary)


def without_intervals(found: MethodResult) -> MethodResult:
    by_adversary = {
        name: dataclasses.replace(each, strong=[dataclasses.replace(s, interval=None) for s in each.strong])
        for name, each in found.by_adversary.items()
    }
    return dataclasses.replace(found, by_adversary=by_adversary)


STRONG = {1: (0.02, 0.1), 4: (-0.3, 0.2), 16: (0.1, 0.45)}


def game(methods: dict[str, MethodResult] | None = None, value: Any = None, **spec: Any) -> GameResult:
    methods = methods or {"retrain": method(0.995), "none": method(0.85), "neg-grad": method(0.9)}
    whole = {
        "alpha": 0.5, "pairs": 8, "seeds": 1, "level": 0.95, "n_retain": 300, "n_forget": 299, "seed": 7,
        "data": {"name": "digits", "params": {}, "code": ""}, "data_digest": "41b8ec37e170b9c5144d",
        "learner": {"name": "minibatch", "params": {"lr": 0.05, "model": "small-cnn"}, "code": ""},
        "methods": {name: {"unlearner": {"name": name, "params": {"rate": 0.125}, "code": ""}} for name in methods},
        "adversaries": {
            name: {"adversary": {"name": name, "params": {"k": 3}, "code": ""}, "needs": ["outsiders"], "columns": []}
            for name in ADVERSARIES
        },
        "delta": 1e-05, "n_references": 16, "queries": [1, 4, 64], "oracle_draws": 2000, "until": None,
        "sensitivity": {"kind": "uniform"}, "share_retrain": False, **spec,
    }  # fmt: skip
    floor = NoiseFloorResult("retrain", 0.007, 0.014)
    return GameResult(value, whole, methods, floor, compared(methods), 0.83, "over pairs")


def result(*games: GameResult, **changes: Any) -> Result:
    environment = {"forgetgauge": "0.1.0", "torch": "2.13.0+cpu"}
    digests = changes.pop("digests", {"data": "41b8ec37e170b9c5144d", "decisions": "bc1aff683899c7329df0"})
    return Result(environment, digests, list(games) or [game()], **changes)


def sweep(values: list[Any], key: str = "game.alpha") -> Result:
    games = [
        game({"retrain": method(0.995), "neg-grad": method(0.9 - 0.1 * i), "ft": method(0.85)}, value, alpha=value)
        for i, value in enumerate(values)
    ]
    return result(*games, sweep=key)


def leaking(n_parts: int = 10) -> Result:
    """With a curve and parts of each method's strongest adversary."""
    methods = {}
    for name, quality in (("retrain", 0.995), ("none", 0.85), ("neg-grad", 0.9)):
        rates = [0.001, 0.01, 0.1, 1.0]
        roc = RocResult(rates, [min(1.0, rate ** (2 * quality - 1)) for rate in rates], [(0.0, 1.0)] * 4, 4800)
        parts = [PartResult(f"{i}", (1 - quality) * i / n_parts, (-0.1, 0.2), 70, 8) for i in range(n_parts)]
        own = dataclasses.replace(method(quality).by_adversary["entropy"], roc=roc, diagnostics=DIAGNOSTICS)
        words = [PartResult(word, 0.2, (0.1, 0.3), 9, 8) for word in ("north-west", "<b>south</b>")]
        found = {**method(quality).by_adversary, "entropy": own}
        methods[name] = method(quality, by_adversary=found, parts={"class": parts, "region": words})
    return result(game(methods))


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
    "many methods": result(game({f"m{i}": method(0.9 - 0.01 * i) for i in range(16)})),
    "claims and facts": result(
        game(
            {
                "retrain": method(0.995),
                "mine": method(0.9, facts={"claimed_epsilon": 0.6, "claimed_delta": 1e-4, "retrainings": 0.25}),
            }
        )
    ),
    "no comparison": result(dataclasses.replace(game(), comparisons=[], rank_stability=None)),
    "strong adversaries": result(
        game({"retrain": played(0.995, STRONG), "mine": played(0.9, STRONG), "plain": method(0.9), "lost": NO_PAIR})
    ),
    "strong without intervals": result(game({"mine": without_intervals(played(0.9, STRONG))})),
    "one number of queries": result(game({"mine": played(0.9, {16: (0.1, 0.4)})})),
    "a sweep with strong adversaries": result(
        *(game({"retrain": played(0.995, STRONG), "mine": played(0.9, STRONG)}, value) for value in (1, 2)),
        sweep="game.seed",
    ),
    "no epsilon, no plug-in": result(game({"mine": method(0.9, epsilon=None, quality_plugin=None, p_value=None)})),
    "many failures": result(failures=[FailureResult(f"job {i}", "boom", f"failures/{i}.txt") for i in range(40)]),
    "leaks": leaking(),
    "leaks by many parts": leaking(n_parts=100),
    "a sweep with leaks": result(leaking().games[0], leaking().games[0], sweep="game.seed"),
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
        assert (attributes.get("href") or "#").startswith(("#", "data:text/csv;charset=utf-8;base64,"))
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
    assert {(attributes["href"] or "")[1:] for attributes in page.all("a") if "download" not in attributes} <= ids


def test_names_are_escaped_wherever_they_stand() -> None:
    evil = '"><script>alert(1)</script>'
    strong = [StrongResult(q, 0.1, None, []) for q in (1, 4)]
    by_adversary = {evil: AdversaryResult(0.1, (0.0, 0.2), [0.1], DIAGNOSTICS, strong)}
    named = method(0.9, by_adversary=by_adversary, adversary=evil)
    hostile = game(
        {evil: named, f"{evil}2": named, f"{evil}3": method(0.5)}, value=evil, adversaries={}, data={"name": evil}
    )
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
    weak = method(0.8, n_pairs=3, interval_basis="given these models")
    methods = {"a": method(0.9, n_pairs=7), "b": weak, "c": method(0.7, n_pairs=3)}
    text = Page(render_report(result(game(methods)))).text
    assert "a completed 7 of 8 pairs." in text
    assert "b completed 3 of 8 pairs; its intervals are for these models only" in text
    assert "c completed 3 of 8 pairs." in text  # a bounded interval, which three pairs have too


def test_a_row_that_lacks_pairs_says_so_and_carries_no_verdict() -> None:
    """One of six pairs at Q = 0.959 is not better than what all six give another method."""
    methods = {
        "retrain": method(0.995, n_pairs=6), "none": method(0.85, n_pairs=6), "ssd": method(0.9, n_pairs=6),
        "lucky": method(0.959, n_pairs=1),
    }  # fmt: skip
    whole = game(methods, pairs=6)
    lucky = dataclasses.replace(whole, comparisons=[c for c in whole.comparisons if "lucky" not in (c.first, c.second)])
    found = verdict(lucky)
    assert found.headline.startswith("ssd was tested, and what it was to forget is still visible: Q")
    assert "Not judged, since pairs are missing: lucky (1 of 6)." in found.remarks
    assert [name for name, _ in by_quality(methods)] == ["retrain", "ssd", "none", "lucky"]
    table, page = render_table(result(lucky)), Page(render_report(result(lucky))).text
    assert "1 of 6" in next(line for line in table.splitlines() if line.startswith("lucky"))
    assert "No verdict on lucky: pairs are missing." in table
    assert "1 of 6 pairs: no verdict" in page
    swept = sweep_verdict(result(lucky, lucky, sweep="game.alpha"))
    assert swept.headline.startswith("ssd has the highest Q")
    nobody = verdict(game({"a": method(0.9, n_pairs=5), "b": method(0.8, n_pairs=1)}, pairs=6))
    assert nobody.headline == "No method completed every swap pair, so there is no verdict."


def test_a_method_about_which_nothing_was_decided_has_no_evidence_rather_than_no_pair() -> None:
    silent = dataclasses.replace(
        method(1.0), quality=None, quality_plugin=None, interval=None, interval_basis=None, adversary=None,
        epsilon=None, p_value=None, noise_floor=None, chosen_on=None, decided_nothing=list(ADVERSARIES),
    )  # fmt: skip
    shown = game({"mine": silent, "retrain": method(0.995)})
    assert "Nothing was measured of mine: no adversary told any two points apart." in verdict(shown).remarks
    for text in (render_table(result(shown)), Page(render_report(result(shown))).text):
        assert "nothing measured" in text
        assert "no pair completed" not in text
    assert verdict(game({"mine": silent})).headline.startswith("Every adversary gave the same answer")


def test_the_largest_advantage_is_marked_once_in_each_row() -> None:
    html = render_report(result())
    assert html.count("largest: ") == len(game().methods)


def test_everything_that_an_adversary_may_ask_for_has_words() -> None:
    assert set(GIVEN) == {str(need) for need in Need}


def test_settings_show_every_choice() -> None:
    text = Page(render_report(result())).text
    for said in ("0.5", "300", "299", "41b8ec37e170b9c5144d", "lr = 0.05, model = small-cnn", "2.13.0+cpu"):
        assert said in text
    given = "k = 3; was given the shadow models’ outputs on the attacked half"
    for said in ("rate = 0.125", given, "1e-05", "16", "1, 4, 64", "2000"):
        assert said in text


def test_settings_show_how_the_pairs_were_chosen_and_a_learner_of_its_own() -> None:
    shown = game(until={"half_width": 0.02, "pilot_pairs": 8})
    shown.spec["methods"]["neg-grad"]["learner"] = {"name": "sisa", "params": {"shards": 4}, "code": ""}
    text = Page(render_report(result(shown))).text
    assert "half_width = 0.02, pilot_pairs = 8" in text
    assert "learner sisa; shards = 4" in text
    assert "pairs chosen by a pilot" not in Page(render_report(result())).text


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
        "import sys; from forgetgauge.report.html import render_report; from forgetgauge.results.record import *;"
        "render_report(Result({}, {}, [GameResult(None, {}, {}, None, [], None, None)]));"
        "sys.exit(bool({'torch', 'matplotlib', 'sklearn', 'scipy.stats'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_methods_are_compared_and_one_is_not() -> None:
    assert "Which differences are real" in render_report(result())
    assert "Which differences are real" not in render_report(result(game({"mine": method(0.9)})))


def test_every_two_methods_are_compared_once_and_higher_q_stands_in_the_row() -> None:
    shown = game({"c": method(0.7), "a": method(0.9), "b": method(0.895), "lost": NO_PAIR})
    html = render_report(result(shown))
    assert html.count('data-label="against ') == 3
    assert html.count('<span class="settled">better</span>') == 2
    assert html.count('<span class="settled">not settled</span>') == 1
    assert '<b>+0.200</b> <span class="interval">[+0.180, +0.220]</span>' in html  # a − c, recorded as c − a
    assert "did not complete every pair" in html


def test_a_comparison_against_the_order_of_q_is_called_worse() -> None:
    turned = [ComparisonResult("a", "b", -0.03, (-0.05, -0.01), "b")]
    shown = dataclasses.replace(game({"a": method(0.9), "b": method(0.89)}), comparisons=turned)
    assert '<span class="settled">worse</span>' in render_report(result(shown))


def test_strong_adversaries_have_a_picture_where_there_are_any() -> None:
    assert "Stronger adversaries" not in render_report(result())
    html = render_report(EVERY_KIND["strong adversaries"])
    assert "Stronger adversaries: several queries" in html
    assert 'id="strong-title"' in html
    assert "chosen on the pairs that score it" in html
    assert 'id="strong-title"' not in render_report(EVERY_KIND["one number of queries"])


def test_the_strongest_adversary_is_chosen_anew_at_each_number_of_queries() -> None:
    html = render_report(result(game({"mine": played(0.9, STRONG)})))
    cells = [cell.split("</td>")[0] for cell in html.split('data-label="q = ')[1:]]
    assert [cell.split('"')[0] for cell in cells] == ["1", "4", "16"]
    for cell, (quality, interval, adversary) in zip(
        cells,
        [("0.900", "[0.850,\u00a00.950]", "entropy"), ("0.700", "[0.650,\u00a00.750]", "correctness"),
         ("0.550", "[0.500,\u00a00.600]", "entropy")],
        strict=True,
    ):  # fmt: skip
        assert quality in cell
        assert interval in cell
        assert adversary in cell


def test_strong_adversaries_without_intervals_say_so() -> None:
    assert "none: too few pairs" in render_report(EVERY_KIND["strong without intervals"])
    assert "none: too few pairs" not in render_report(EVERY_KIND["strong adversaries"])


def test_diagnostics_are_labelled_and_all_but_the_strongest_are_folded_away() -> None:
    assert "Diagnostics, not Q" not in render_report(result())
    html = render_report(EVERY_KIND["strong adversaries"])
    text = " ".join(Page(html).text.split())
    assert "their thresholds were chosen on the points of F and T themselves" in text
    assert "With |T| = 299, 0.1 % allows not a single wrong call." in text
    assert "0.613" in text
    assert "1.7 %" in text
    before, folded = html.split("<summary>All adversaries</summary>")
    assert before.count("0.613") == 2  # retrain and mine; plain has none
    assert folded.count("0.613") == 4


def test_the_paper_s_estimate_is_marked_in_each_row_and_in_the_legend() -> None:
    html = render_report(result())
    assert html.count('class="plugin"') == len(game().methods) + 1
    assert "the paper’s estimate, biased low" in Page(html).text
    assert "the paper’s estimate 0.896" in html
    assert render_report(EVERY_KIND["no epsilon, no plug-in"]).count('class="plugin"') == 1


def test_epsilon_is_shown_with_what_it_means_and_a_dash_where_there_is_none() -> None:
    html = render_report(result())
    assert html.count('<td role="cell" data-label="ε at least">0.02</td>') == len(game().methods)
    assert "any (ε, δ)-certified removal this method could claim has at least this ε, at δ = 1e-05" in html
    assert '<td role="cell" data-label="ε at least">–</td>' in render_report(EVERY_KIND["no epsilon, no plug-in"])


def test_many_adversaries_are_a_matrix_with_the_rest_folded_away() -> None:
    html = render_report(EVERY_KIND["many adversaries"])
    assert 'class="cells matrix"' in html
    assert "<details><summary>Intervals and single pairs</summary>" in html
    assert 'class="cells matrix"' not in render_report(result())


def test_the_terminal_table_has_a_column_for_each_number_and_dashes_for_none() -> None:
    methods = {"b": method(1.0, quality_plugin=0.98), "a": method(1.0, quality_plugin=0.97, epsilon=None)}
    header, *rows, seen, unjudged, chance, intervals, worst, bounds = render_table(
        result(game({"lost": NO_PAIR, **methods}))
    ).splitlines()
    assert " ".join(header.split()) == (
        "method Q 95 % interval pairs worst pair ε ≥ adversary acc retain acc forget acc unseen s/model"
    )
    assert [row.split()[0] for row in rows] == ["b", "a", "lost"]
    assert rows[0].split()[2:9] == ["[0.990,", "1.000]", "8", "0.950", "(0.970)", "0.02", "entropy"]
    assert rows[1].split()[7] == "–"
    assert "no pair completed" in rows[2]
    assert "0 of 8" in rows[2]
    assert (seen, unjudged) == ("Still visible: b and a.", "Not evaluable: lost.")
    assert "chance keeps Q above 0.986 in 95 % of cases" in chance
    assert intervals == "Intervals are for new splits and trainings, assuming that pairs are roughly normal."
    assert worst.startswith("Worst pair: ")
    assert bounds.startswith("ε ≥: with 95 % confidence, ")


def test_what_the_interval_takes_for_granted_is_said_where_it_stands() -> None:
    normal, free = result(game({"mine": method(0.9)})), result(game({"mine": method(0.9)}, interval="bounded"))
    assert "assuming that pairs are roughly normal" in render_table(normal)
    assert "whatever the distribution of pairs." in render_table(free)
    for words in ("over pairs (pairs taken as roughly normal)", "60 % of simulated games"):
        assert words in render_report(normal)
        assert words not in render_report(free)
    assert "over pairs (for pairs of any distribution)" in render_report(free)
    floorless = result(dataclasses.replace(game({"mine": method(0.9)}), noise_floor=None))
    assert "Intervals are for new splits" in render_table(floorless)
    assert "chance keeps Q above" not in render_table(floorless)
    assert "Intervals are for" not in render_table(
        result(dataclasses.replace(game({"lost": NO_PAIR}), interval_basis=None))
    )
    few = result(dataclasses.replace(game({"mine": method(0.9)}), interval_basis="given these models"))
    assert "Intervals are for these models only" in render_table(few)


def test_the_worst_pair_stands_beside_q_with_what_chance_gives() -> None:
    html = render_report(result(game({"mine": method(0.9)})))
    assert "worst pair 0.850, chance 0.970" in html
    old = result(game({"mine": method(0.9, worst_pair=None)}))
    assert ", chance " not in render_report(old)
    assert "Worst pair" not in render_table(old)


def test_methods_are_sorted_by_quality_then_by_the_plug_in_then_by_name() -> None:
    methods = {
        "lost": NO_PAIR, "c": method(0.9), "z": method(1.0, quality_plugin=0.99), "b": method(0.9),
        "y": method(1.0, quality_plugin=0.98),
    }  # fmt: skip
    assert [name for name, _ in by_quality(methods)] == ["z", "y", "b", "c", "lost"]


def said(played: GameResult) -> str:
    found = verdict(played)
    return " ".join([found.headline, *found.remarks])


def test_the_verdict_names_the_best_tested_method_and_not_a_reference() -> None:
    spoken = verdict(game({"retrain": method(0.995), "none": method(0.5), "a": method(0.8), "b": method(0.7)}))
    assert spoken.headline.startswith(
        "a leaves less to see than the other method tested, and what it was to forget is still visible: Q"
    )
    assert "Retrain has 0.995" in spoken.headline
    assert "None has 0.500" in spoken.headline


def test_who_is_still_visible_but_better_than_nothing_is_said_below_the_table() -> None:
    shown = render_table(result(game({"none": method(0.5), "a": method(0.8), "b": method(0.51)})))
    assert "Still visible: a (but better than doing nothing)." in shown.splitlines()
    assert "Not shown to be better than doing nothing: b." in shown.splitlines()
    assert "Still visible: a." in render_table(result(game({"a": method(0.8)}))).splitlines()


def test_the_verdict_crowns_nobody_who_cannot_be_told_from_none() -> None:
    spoken = verdict(game({"retrain": method(0.995), "none": method(0.8), "a": method(0.81), "b": method(0.7)}))
    assert spoken.headline.startswith("No method is shown to be better than doing nothing: a has a Q of 0.810")
    turned = game({"none": method(0.8), "a": method(0.9), "b": method(0.89)})
    settled = [c if "a" not in (c.first, c.second) else dataclasses.replace(c, better=None) for c in turned.comparisons]
    found = verdict(dataclasses.replace(turned, comparisons=settled))
    assert found.headline.startswith(
        "b has the highest Q of those that are better than None, and what it was to forget is still visible:"
    )


@pytest.mark.parametrize(
    ("mine", "said"),
    [
        (method(0.9), STILL_VISIBLE),
        (method(0.86), NOT_BETTER),
        (method(0.98, p_value=0.3), LIKE_RETRAIN),
        (method(0.98, p_value=0.3, noise_floor=0.7), INCONCLUSIVE),
        (NO_PAIR, NOT_EVALUABLE),
        (method(0.9, n_pairs=3), NOT_EVALUABLE),
    ],
)
def test_a_method_is_given_one_of_five_verdicts_the_same_everywhere(mine, said) -> None:
    played = game({"retrain": method(0.995, p_value=0.5), "none": method(0.85), "mine": mine})
    assert verdict_on(played, "mine") == said
    assert with_verdicts(played).methods["mine"].verdict == said
    assert f"{said[0].upper()}{said[1:]}: mine" in render_table(result(played))
    assert verdict_on(played, "none") == STILL_VISIBLE
    assert verdict_on(played, "retrain") == LIKE_RETRAIN


def test_the_resolution_is_what_would_have_been_seen_four_times_of_five() -> None:
    rng = np.random.default_rng(0)
    by_pair = [0.1, -0.05, 0.15, 0.0, 0.05, -0.1, 0.1, 0.05]
    played = game({"mine": method(0.98, noise_floor=0.05)})
    told = dataclasses.replace(played.methods["mine"].by_adversary["entropy"], by_pair=by_pair)
    changed = dataclasses.replace(played.methods["mine"], by_adversary={"entropy": told}, adversary="entropy")
    found = resolution_on(dataclasses.replace(played, methods={"mine": changed}), "mine")
    error = np.std(by_pair, ddof=1) / np.sqrt(8)
    assert (rng.normal(found, error, 20_000) > 0.05).mean() == pytest.approx(0.8, abs=0.01)


def test_the_verdict_says_whether_retrain_is_grounded() -> None:
    assert "so its Q should be 1: its interval" in said(game({"retrain": method(0.995)}))
    assert "so its Q should be 1, but it is 0.900" in said(game({"retrain": method(0.9)}))
    assert "Retrain has no Q here" in said(game({"mine": method(0.9)}))
    assert "by construction" in said(game({"retrain": method(1.0)}, share_retrain=True))


def test_the_verdict_knows_retrain_behind_another_id() -> None:
    played = game({"gold": method(0.995)})
    played.spec["methods"]["gold"]["unlearner"]["name"] = "retrain"
    assert "so its Q should be 1: its interval" in said(played)


def test_better_is_said_only_where_a_comparison_says_so() -> None:
    close = game({"a": method(0.9), "b": method(0.895), "c": method(0.7)})
    assert verdict(close).headline.startswith("a has the highest Q of the 3 methods tested")
    assert "a is better than c. This run is too small to say whether a is better than b." in said(close)
    far = {"a": method(0.9), "b": method(0.5)}  # intervals far apart, yet nobody compared them
    assert "better than" not in said(dataclasses.replace(game(far), comparisons=[]))
    assert "a is not compared with b" in said(dataclasses.replace(game(far), comparisons=[]))
    near = {"a": method(0.9, width=0.05), "b": method(0.87, width=0.05)}  # intervals overlap, yet the pairs tell
    assert verdict(game(near)).headline.startswith("a leaves less to see than the other method tested")
    turned = [ComparisonResult("a", "b", -0.03, (-0.05, -0.01), "b")]
    assert "compared pair by pair, b is better than a" in said(dataclasses.replace(game(near), comparisons=turned))


def test_the_verdict_sets_methods_beside_none_by_comparisons() -> None:
    assert "cannot tell unlearning from doing nothing" in said(game({"none": method(0.995), "a": method(0.9)}))
    assert "This run cannot tell a from None" in said(game({"none": method(0.9), "a": method(0.9)}))
    assert "None is better than a: that unlearning made" in said(game({"none": method(0.9), "a": method(0.7)}))
    assert "b and a are better than None" in said(game({"none": method(0.7), "a": method(0.9), "b": method(0.92)}))
    apart = dataclasses.replace(game({"none": method(0.9), "a": method(0.7)}), comparisons=[])
    assert "better than" not in said(apart)


def test_the_verdict_says_how_stable_the_ranking_is() -> None:
    assert "agrees with this one with a Kendall’s τ\u00a0of\u00a00.83 on average" in said(game())
    assert "Kendall" not in said(dataclasses.replace(game(), rank_stability=None))


def test_the_verdict_admits_too_few_pairs_and_too_little_data() -> None:
    assert "for these models only" in said(dataclasses.replace(game(), interval_basis="given these models"))
    assert "so the Q of a is the paper’s estimate" in said(game({"a": method(0.9, chosen_on="plug-in")}))


def test_the_verdict_of_a_sweep_says_where_the_best_changes() -> None:
    assert "changes with game.alpha: neg-grad at 0.1; ft at 0.3" in sweep_verdict(sweep([0.1, 0.3])).headline
    assert "neg-grad has the highest Q of the methods tested at every value" in sweep_verdict(sweep([0.1])).headline


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (signed(0.1494), "+0.149"),
        (signed(-0.02), "−0.020"),
        (signed(-0.0001), "0.000"),
        (bound(0.0999), "0.09"),
        (bound(0.29), "0.29"),
        (bound(0.0), "0.00"),
        (bound(None), "–"),
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
    assert value_scale([1, 4, 16], logarithmic=True).percent(4) == 50


@pytest.mark.parametrize(
    ("signed_interval", "wanted"),
    [((0.1, 0.3), (0.7, 0.9)), ((-0.3, -0.1), (0.7, 0.9)), ((-0.1, 0.3), (0.7, 1.0)), ((0.0, 0.0), (1.0, 1.0))],
)
def test_the_sign_of_an_advantage_does_not_matter_to_q(
    signed_interval: tuple[float, float], wanted: tuple[float, float]
) -> None:
    assert magnitude(signed_interval) == pytest.approx(wanted)


def test_lines_of_a_picture_stand_beside_each_other_around_their_values() -> None:
    picture = overview([1, 2], {name: [(0.9, 0.8, 1.0)] * 2 for name in "abc"})
    assert [series.shift for series in picture.series] == [-3, 0, 3]


def test_a_gap_breaks_the_line_of_a_sweep() -> None:
    picture = overview([1, 2, 3, 4], {"a": [(0.9, 0.8, 1.0), None, (0.8, 0.7, 0.9), (0.7, 0.6, 0.8)], "b": [None] * 4})
    (series,) = picture.series
    assert [len(series.points), len(series.segments)] == [3, 1]


def test_labels_keep_their_order_and_their_distance() -> None:
    placed = spread([50, 10, 52, 51], gap=10, low=0, high=60)
    assert placed[1] < placed[0] < placed[3] < placed[2] <= 60
    ordered = sorted(placed)
    assert all(b - a >= 10 for a, b in pairwise(ordered))


def test_warnings_stand_beside_the_numbers_in_table_and_report() -> None:
    warned = dataclasses.replace(game(), warnings=["The sides <b> of ssd are copies."])
    shown = result(warned)
    assert "warning: The sides <b> of ssd are copies." in render_table(shown)
    assert "The sides &lt;b&gt; of ssd are copies." in render_report(shown)
