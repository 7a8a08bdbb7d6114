"""`check`: a gate that judges ends of intervals, and refuses what cannot be judged."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from forgetgauge.errors import UserError
from forgetgauge.game.quality import bounded_quality_interval
from forgetgauge.report.erasure_test import what_was_tested
from forgetgauge.results.gate import Conditions, check_evidence, check_result, junit, overall, warnings_in
from forgetgauge.results.made import FailureResult
from forgetgauge.results.one_model import judged_again
from forgetgauge.results.utility import loss_interval
from tests.report.evidence import CLEAN, SEEN, evidence
from tests.report.test_html import NO_PAIR, game, method, result

BY_PAIR = [0.95, 0.96, 0.94, 0.95, 0.95, 0.96, 0.95, 0.94]


def one(quality: float, width: float = 0.01, **changes):
    return game({"retrain": method(0.995), "none": method(0.85), "mine": method(quality, width, **changes)})


def state(made, **asked) -> str:
    return overall(check_result(result(made), Conditions(**asked), "r"))


@pytest.mark.parametrize(
    ("model", "margin", "expected"),
    [(SEEN, 0.5, "does not hold"), (CLEAN, 0.5, "holds"), (CLEAN, 0.01, "inconclusive")],
)
def test_one_model_is_held_to_chance_as_far_as_its_test_would_have_seen(model, margin, expected):
    assert overall(check_evidence(evidence({"mine": model}), Conditions(chance_margin=margin), "e")) == expected


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "--at-chance is what can be asked"),
        ({"chance_margin": 0.1, "min_quality": 0.9}, "--at-chance is what can be asked"),
        ({"chance_margin": 0.1, "bounded": True}, "--at-chance is what can be asked"),
        ({"chance_margin": 2.0}, "--margin 2 is not between 0 and 1"),
        ({"chance_margin": 1.0}, "--margin 1 asks nothing"),
        ({"chance_margin": 0.1, "methods": ["other"]}, "unknown model 'other'"),
        ({"chance_margin": 0.1, "adversaries": ["lira"]}, "lira did not take part"),
    ],
)
def test_what_cannot_be_asked_of_one_model_is_refused(asked, said):
    with pytest.raises(UserError, match=said):
        check_evidence(evidence({"mine": CLEAN}), Conditions(**asked), "e")
    not_evaluable = replace(CLEAN, verdict="not evaluable")
    with pytest.raises(UserError, match="not evaluable, so it is not judged"):
        check_evidence(evidence({"mine": not_evaluable}), Conditions(chance_margin=0.5), "e")


@pytest.mark.parametrize(("resolution", "named"), [(0.2811, True), (0.5, True), (0.62, False), (1.0, False)])
def test_the_margin_to_ask_for_is_named_where_there_is_one(resolution, named):
    coarse = replace(CLEAN, resolution=resolution, verdict=CLEAN.verdict if named else "inconclusive")
    with pytest.raises(UserError) as refused:
        check_evidence(evidence({"mine": coarse}), Conditions(), "e")
    assert ("with --margin" in str(refused.value)) == named
    asked = Conditions(chance_margin=0.282 if resolution < 0.3 else 0.5 if named else 0.999)
    (finding,) = check_evidence(evidence({"mine": coarse}), asked, "e")
    assert finding.state == ("holds" if named else "inconclusive")
    assert ("too coarse to say more" in finding.evidence) != named


def test_a_model_that_is_seen_all_the_same_is_not_said_to_be_too_coarse_for_it():
    (finding,) = check_evidence(evidence({"mine": replace(SEEN, resolution=0.62)}), Conditions(chance_margin=0.5), "e")
    assert finding.evidence == "still visible; an advantage of 0.620 would have been seen with a power of 80 %"


@pytest.mark.parametrize("name", ["before", "Before", "original", "none"])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SEEN, CLEAN, "holds"),
        (SEEN, SEEN, "does not hold"),
        (CLEAN, CLEAN, "inconclusive"),
        (CLEAN, SEEN, "does not hold"),
    ],
)
def test_nothing_holds_of_a_model_beside_one_from_before_the_deletion_that_is_not_visible(
    name, before, after, expected
):
    found = evidence({name: before, "after": after})
    asked = Conditions(chance_margin=0.5)
    findings = check_evidence(found, asked, "e")
    assert [finding.method for finding in findings] == ["after", name]
    assert overall(findings) == expected
    assert overall(check_evidence(found, replace(asked, methods=["after"]), "e")) == expected
    alone = check_evidence(found, replace(asked, methods=[name]), "e")
    assert [finding.state for finding in alone] == ["holds" if before is CLEAN else "does not hold"]
    says_nothing = any("says nothing about a deletion" in line for line in warnings_in(found))
    assert says_nothing == (before is CLEAN and after is CLEAN)


def test_evidence_that_is_inconclusive_never_holds():
    unsure = replace(CLEAN, verdict="inconclusive", resolution=0.6)
    for found in (unsure, replace(unsure, resolution=None)):
        assert overall(check_evidence(evidence({"mine": found}), Conditions(chance_margin=0.99), "e")) == "inconclusive"


@pytest.mark.parametrize(
    ("quality", "width", "expected"),
    [(0.97, 0.01, "holds"), (0.9, 0.01, "does not hold"), (0.95, 0.02, "inconclusive"), (0.99, 0.2, "inconclusive")],
)
def test_the_end_of_the_interval_decides_and_not_the_point(quality, width, expected):
    assert state(one(quality, width), min_quality=0.95) == expected
    assert state(one(quality, width), chance_margin=0.05) == expected


@pytest.mark.parametrize(("n_pairs", "expected"), [(5, "inconclusive"), (40, "holds")])
def test_bounded_asks_the_interval_for_pairs_of_any_distribution(n_pairs, expected, tmp_path, call):
    """One in ten models is left untouched, and none of those that were played: Student's interval lies above the Q of
    0.9 that the method has."""
    found = bounded_quality_interval(np.random.default_rng(0).normal(0, 0.01, (n_pairs, 1)))
    made = one(0.99, 0.005)
    mine = replace(made.methods["mine"], bounded_interval=(found.low, found.high))
    made = replace(made, methods={**made.methods, "mine": mine})
    assert (state(made, min_quality=0.91), state(made, min_quality=0.8, bounded=True)) == ("holds", expected)
    assert state(made, chance_margin=0.2, bounded=True) == expected
    result(made).save(tmp_path / "result.json")
    asked = ("check", tmp_path, "--min-q", "0.8", "--method", "mine", "--unverified")
    assert "if pairs are roughly normal" in call(*asked)[1]
    code, out, _ = call(*asked, "--bounded")
    assert (code, "for pairs of any distribution" in out) == ({"holds": 0, "inconclusive": 3}[expected], True)
    unknown = replace(made, methods={"mine": replace(mine, bounded_interval=None)})
    with pytest.raises(UserError, match="leave out --bounded"):
        state(unknown, min_quality=0.8, bounded=True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--max-accuracy-loss", "0.5", "--bounded"), "--bounded is for Q, of which nothing is asked"),
        (("--min-q", "0.5", "--margin", "0.01"), "--margin says what still counts as chance: give --at-chance as well"),
    ],
)
def test_an_option_that_asks_nothing_is_refused(options, why, tmp_path, call):
    result(one(0.99, 0.005)).save(tmp_path / "result.json")
    code, out, err = call("check", tmp_path, *options, "--unverified")
    assert (code, out, why in err, len(err.splitlines())) == (2, "", True, 1)


def test_what_does_not_hold_decides_over_what_is_inconclusive():
    made = game({"retrain": method(0.995), "bad": method(0.5), "unsure": method(0.95, 0.02)})
    assert state(made, min_quality=0.95) == "does not hold"
    assert state(made, min_quality=0.95, methods=["unsure"]) == "inconclusive"
    assert state(made, min_quality=0.95, methods=["retrain"]) == "holds"


@pytest.mark.parametrize(("lost", "expected"), [(0.0, "holds"), (0.1, "does not hold"), (0.011, "inconclusive")])
def test_utility_lost_is_judged_over_pairs(lost, expected):
    own = [value - lost + jitter for value, jitter in zip(BY_PAIR, [0.004, -0.004] * 4, strict=True)]
    methods = {
        "retrain": method(0.99, utility_by_pair={"unseen": BY_PAIR}),
        "none": method(0.8, utility={"unseen": 0.99}, utility_by_pair={"unseen": [0.99] * 8}),
        "mine": method(0.9, utility={"unseen": sum(own) / 8}, utility_by_pair={"unseen": own}),
    }
    assert state(game(methods), max_utility_loss=0.01) == expected


def beside(retrain, none, mine):
    """A game whose methods have these utilities by pair."""
    found = {"retrain": retrain, "none": none, "mine": mine}
    return game({name: method(0.9, utility_by_pair={"unseen": list(by_pair)}) for name, by_pair in found.items()})


SCATTERED = [0.9 + 0.03 * sign for sign in (1, -1, 1, -1, 1, -1, 1, -1)]


def test_a_price_is_checked_as_it_is_kept_against_either_reference():
    """None itself was inconclusive where retrained models happened to be a little lower on average."""
    lower = [value - 0.005 for value in SCATTERED[1:] + SCATTERED[:1]]
    assert state(beside(lower, SCATTERED, SCATTERED), max_utility_loss=0.01, methods=["none"]) == "holds"
    little = [value - 0.002 for value in SCATTERED]
    assert state(beside(lower, SCATTERED, little), max_utility_loss=0.01) == "holds"  # pair by pair below None
    assert state(beside(little, lower, [v - 0.02 for v in little]), max_utility_loss=0.021) == "holds"
    much = [value - 0.1 for value in SCATTERED]
    assert state(beside(lower, SCATTERED, much), max_utility_loss=0.01) == "does not hold"
    retrained_lost_it_too = beside(much, SCATTERED, much)
    assert state(retrained_lost_it_too, max_utility_loss=0.01) == "holds"
    assert state(beside(lower, SCATTERED, [v - 0.011 for v in SCATTERED]), max_utility_loss=0.01) == "inconclusive"


def test_both_ends_of_a_loss_are_one_sided_bounds_at_the_level_of_the_game():
    rng = np.random.default_rng(0)
    retrain, none, mine = (rng.normal(mean, 0.02, 8) for mean in (0.9, 0.91, 0.88))
    made = beside(retrain, none, mine)
    low, high = loss_interval(made, "mine")
    lows, highs = [], []
    for usual in (retrain, none):
        lost = usual - mine
        reach = stats.t.ppf(0.95, 7) * stats.sem(lost)
        lows.append(lost.mean() - reach)
        highs.append(lost.mean() + reach)
    assert (low, high) == pytest.approx((min(lows), min(highs)))


@pytest.mark.parametrize(("lost", "wrong"), [(0.0101, "holds"), (0.0099, "does not hold")])
def test_a_loss_just_beyond_the_price_seldom_passes_and_one_just_within_seldom_fails(lost, wrong):
    """Retrain and None alike: either bound may err in 5 % of cases, and that a loss is shown needs both."""
    rng, states = np.random.default_rng(1), []
    for _ in range(400):
        retrain, none = rng.normal(0.9, 0.01, 8), rng.normal(0.9, 0.01, 8)
        states.append(state(beside(retrain, none, none - lost + rng.normal(0, 0.004, 8)), max_utility_loss=0.01))
    assert np.mean([one == wrong for one in states]) < 0.12


@pytest.mark.parametrize(
    ("made", "asked", "why"),
    [
        (result(one(0.9)), {}, "nothing is asked"),
        (result(one(0.9)), {"min_quality": 1.5}, "--min-q 1.5 is not between 0 and 1"),
        (result(one(0.9)), {"min_quality": 0.9, "methods": ["mien"]}, "did you mean 'mine'"),
        (result(one(0.9)), {"min_quality": 0.9, "adversaries": ["lira-online"]}, "lira-online did not take part"),
        (result(one(0.9, n_pairs=4)), {"min_quality": 0.9}, "mine has 4 pairs"),
        (result(game({"mine": NO_PAIR})), {"min_quality": 0.9}, "mine has 0 pairs"),
        (result(game({"retrain": method(0.99)})), {"min_quality": 0.9}, "no method to judge"),
        (result(one(0.9), failures=[FailureResult("a job", "boom", "")]), {"min_quality": 0.9}, "1 job failed"),
        (result(game({"mine": method(0.9)})), {"max_utility_loss": 0.01}, "it needs Retrain or None"),
    ],
)
def test_what_cannot_be_judged_is_refused(made, asked, why):
    with pytest.raises(UserError, match=why):
        check_result(made, Conditions(**asked), "r")


def test_a_q_of_a_model_that_has_seen_the_unseen_points_never_passes():
    known = {"retrain": {"unseen": 0.56}, "none": {"unseen": 0.55}, "mine": {"unseen": 1.0}}
    methods = {name: method(0.85 if name == "none" else 0.995, utility=found) for name, found in known.items()}
    made = game(methods)
    made = replace(made, spec={**made.spec, "n_forget": 500})
    for asked in ({"min_quality": 0.9}, {"chance_margin": 0.1}, {"max_utility_loss": 0.02}):
        (found,) = check_result(result(made), Conditions(**asked), "r")
        assert found.state == "inconclusive"
        assert "more accurate on T than Retrain and None by 44.0 points" in found.evidence


def test_a_sweep_is_judged_game_by_game():
    made = result(one(0.97), one(0.5), sweep="game.alpha")
    found = check_result(made, Conditions(min_quality=0.95), "r")
    assert [f.state for f in found] == ["holds", "does not hold"]


def test_junit_counts_failures_and_errors():
    made = game({"retrain": method(0.995), "a<b": method(0.5), "unsure": method(0.95, 0.02), "fine": method(0.97)})
    suite = ET.fromstring(junit(check_result(result(made), Conditions(min_quality=0.95), "r"), "r"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("classname") for case in suite if case.find("failure") is not None] == ["a<b"]


@pytest.mark.parametrize("kind", ["warning", "ruined", "clean"])
def test_what_speaks_against_a_result_that_holds_is_told_and_with_strict_it_is_inconclusive(tmp_path, call, kind):
    found = one(0.97, 0.01)
    if kind == "warning":
        found = replace(found, warnings=["mine: the pairs contradict each other."])
    if kind == "ruined":
        ruined = {"retrain": 0.9, "none": 0.9, "mine": 0.1}
        methods = {name: replace(method, utility={"test": ruined[name]}) for name, method in found.methods.items()}
        found = replace(found, methods=methods)
    result(found).save(tmp_path / "result.json")
    asked = ("check", tmp_path, "--min-q", "0.95", "--unverified")
    said = {"warning": "contradict each other", "ruined": "mine by 80.0 points", "clean": ""}[kind]
    code, _, err = call(*asked)
    assert (code, said in err, bool(err)) == (0, True, kind != "clean")
    assert call(*asked, "--strict")[0] == (0 if kind == "clean" else 3)


def test_of_one_model_what_nobody_stated_is_told(tmp_path, call):
    path = tmp_path / "evidence.json"
    path.write_text(replace(evidence({"before": SEEN, "mine": CLEAN}), stated={}).to_json())
    code, _, err = call("check", path, "--at-chance", "--margin", "0.5", "--unverified")
    assert (code, err.count("nobody has stated: ")) == (0, 4)


@pytest.mark.parametrize(
    ("models", "said", "codes"),
    [
        ({"before": SEEN, "mine": CLEAN}, "", (0, 0)),
        ({"mine": CLEAN}, "No model from before the deletion is in the file", (0, 3)),
        ({"a": SEEN, "b": CLEAN}, "No model from before the deletion is in the file", (1, 1)),
        ({"none": CLEAN}, "none is called as the model from before the deletion is, and no other", (0, 3)),
        ({"mine": SEEN}, "", (1, 1)),
        ({"none": SEEN}, "", (1, 1)),
    ],
)
def test_of_one_model_a_missing_control_is_told_and_with_strict_it_is_inconclusive(tmp_path, call, models, said, codes):
    path = tmp_path / "evidence.json"
    path.write_text(evidence(models).to_json())
    asked = ("check", path, "--at-chance", "--margin", "0.5", "--unverified")
    found = [call(*asked), call(*asked, "--strict")]
    assert tuple(code for code, _, _ in found) == codes
    assert all((said in err) and (bool(err) == bool(said)) for _, _, err in found)


@pytest.mark.parametrize(("level", "codes"), [(0.95, (0, 0)), (0.9, (0, 0)), (0.99, (0, 3))])
def test_a_level_at_which_more_passes_is_named(tmp_path, call, level, codes):
    path = tmp_path / "evidence.json"
    whole = evidence({"before": SEEN, "mine": CLEAN}, level=level, list_shown=True)
    whole = replace(whole, models={name: judged_again(whole, name) for name in whole.models})
    path.write_text(whole.to_json())
    asked = ("check", path, "--at-chance", "--margin", "0.5", "--unverified")
    found = [call(*asked), call(*asked, "--strict")]
    assert tuple(code for code, _, _ in found) == codes
    assert all(f"visible where p ≤ {1 - level:.3g}" in out for _, out, _ in found)
    said = "a model is called still visible only where p is at most 0.01, in place of 0.05"
    assert (said in found[0][2]) == (level > 0.95)
    assert what_was_tested(whole, None, "here").outcome == ("WARNED" if level > 0.95 else "PASSED")


@pytest.mark.parametrize(
    "command", [("check", "--min-q", "0.9", "--unverified", "--junit"), ("report", "--unverified", "--to")]
)
def test_a_file_of_another_kind_is_not_written_over(tmp_path, call, command):
    result(one(0.97, 0.01)).save(tmp_path / "result.json")
    (tmp_path / "draw.json").write_text("the only one")
    name, *options = command
    code, _, err = call(name, tmp_path, *options, tmp_path / "draw.json")
    assert (code, len(err.splitlines()), "name another" in err) == (2, 1, True)
    assert (tmp_path / "draw.json").read_text() == "the only one"


@pytest.mark.parametrize(
    ("quality", "width", "code"), [(0.97, 0.01, 0), (0.9, 0.01, 1), (0.95, 0.02, 3), (0.9, 0.01, 2)]
)
def test_the_command_says_it_by_its_exit_code_and_where_pipelines_look(
    tmp_path, monkeypatch, call, quality, width, code
):
    result(one(quality, width)).save(tmp_path / "result.json")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    asked = ("--min-q", "0.95") if code != 2 else ()
    found, out, err = call("check", tmp_path, *asked, "--unverified", "--junit", tmp_path / "junit.xml")
    assert found == code
    if code == 2:
        assert len(err.splitlines()) == 1
        return
    assert "8 swap pairs; adversaries correctness and entropy; by chance alone Q ≥ 0.986" in out
    assert ("::error" in out, "::warning" in out) == (code == 1, code == 3)
    assert "| mine | Q ≥ 0.95 |" in (tmp_path / "summary.md").read_text()
    assert "<testsuite" in (tmp_path / "junit.xml").read_text()


def test_of_a_named_method_what_speaks_against_others_alone_is_not_told():
    found = {"retrain": method(0.995), "none": method(0.85)}
    found |= {name: method(0.9) for name in ("npo", "npo@1e-06", "npo@1e-05", "my.npo")}
    about = {
        "general": "Q may be shown too high by up to 0.06: of 4 adversaries the best is often not the one chosen",
        "retrain": "retrain: shadow gives the same answer for all points",
        "npo": "npo: its outputs hold NaN.",
        "npo@1e-06": "npo@1e-06: loss points in the opposite direction",
        "my.npo": "Less accurate than Retrain and None: my.npo by 2 points.",
        "both": "Less accurate than Retrain and None: npo by 2 points, npo@1e-05 by 3 points.",
    }
    stored = result(replace(game(found), warnings=list(about.values())))

    def told(*methods):
        lines = warnings_in(stored, methods)
        return {name for name, line in about.items() if line in lines}

    assert told() == set(about)
    assert told("npo") == {"general", "retrain", "npo", "both"}
    assert told("npo@1e-06") == {"general", "retrain", "npo@1e-06"}
    assert told("my.npo") == {"general", "retrain", "my.npo"}
    assert told("retrain") == {"general", "retrain"}
    assert told("npo", "npo@1e-06") == {"general", "retrain", "npo", "npo@1e-06", "both"}


def test_a_point_of_a_frontier_is_found_by_its_number_however_that_is_written():
    made = game({"retrain": method(0.995), "none": method(0.85), "salun@0.000193": method(0.9)})

    def judged(name):
        return check_result(result(made), Conditions(min_quality=0.5, methods=(name,)), "r")

    assert {finding.method for name in ("salun@1.93e-4", "salun@0.000193") for finding in judged(name)} == {
        "salun@0.000193"
    }
    for unknown in ("salun@0.0002", "ssd@0.000193", "salun@strong", "@"):
        with pytest.raises(UserError, match="unknown method"):
            judged(unknown)
