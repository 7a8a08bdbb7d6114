"""The page of evidence from one model: verdict first, nothing loaded, every name escaped."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.report.formats import written
from forgetgauge.report.meaning import meaning
from forgetgauge.report.one_model import LIMITS, render_evidence, render_evidence_page
from forgetgauge.report.rows import rows_of
from forgetgauge.results.one_model import RESTS_ON
from forgetgauge.results.verdict import LIKE_RETRAIN, NOT_EVALUABLE, VERDICTS
from forgetgauge.wording import chance
from tests.report.evidence import BLIND, CLEAN, SEEN, SEEN_OF_REQUESTS, evidence, requested
from tests.report.test_html import Page

KINDS = {
    "one model": evidence(),
    "two models": evidence({"one": SEEN, "other": CLEAN}),
    "pairs": evidence({"mine": dataclasses.replace(SEEN, point_epsilon=0.31)}, kind="pairs", delta=0.0),
    "groups, drawn by the tester": evidence(kind="groups", own_draw=True),
    "no test": evidence({"mine": dataclasses.replace(SEEN, tests={}, utility={}, verdict="not evaluable")}),
    "requests": requested(),
    "nothing stated, a warning": evidence(stated={}, warnings=["this & that"]),
}


@pytest.fixture(params=list(KINDS.values()), ids=list(KINDS))
def any_evidence(request):
    return request.param


def test_the_page_is_well_formed_and_loads_nothing(any_evidence):
    html = render_evidence_page(any_evidence)
    page = Page(html)
    assert not page.open
    assert not {"script", "link", "img", "iframe", "object", "a"} & {tag for tag, _ in page.tags}
    assert "url(" not in html
    policies = [found["content"] for found in page.all("meta") if "http-equiv" in found]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert html == render_evidence_page(dataclasses.replace(any_evidence))


def test_it_says_all_that_was_found_and_nothing_of_q_as_a_number(any_evidence):
    text = Page(render_evidence_page(any_evidence)).text
    for name, model in any_evidence.models.items():
        assert f"{name}: {model.verdict}" in text
        for adversary, test in model.tests.items():
            assert adversary in text
            assert f"{test.n_right} of {test.n_asked}" in text
    for whole in (any_evidence.commitment, any_evidence.seed, *any_evidence.digests.values()):
        assert whole in text
    assert all(line in text for line in (*LIMITS, *any_evidence.warnings))
    assert "Q =" not in text


def test_the_verdict_stands_before_every_number():
    text = Page(render_evidence_page(evidence())).text
    assert text.index("model: still visible") < text.index("71 of 100") < text.index("What it rests on")


def test_a_visible_model_from_before_the_deletion_is_said_to_be_as_it_has_to_be():
    said = "the model from before the deletion has to be"
    for models, times in (
        ({"before": SEEN, "after": CLEAN}, 1),
        ({"before": CLEAN, "after": SEEN}, 0),
        ({"none": SEEN}, 0),
    ):
        found = evidence(models)
        assert [text.count(said) for text in (Page(render_evidence_page(found)).text, render_evidence(found))] == [
            times
        ] * 2


def test_what_is_not_stated_is_named_as_such():
    text = Page(render_evidence_page(evidence(stated={"training": True}))).text
    assert f"Stated: {RESTS_ON['training']}." in text
    assert all(f"Not stated: {RESTS_ON[name]}." in text for name in ("shadows", "settings", "validation"))


def test_whose_the_draw_is_is_said():
    assert "the tester’s own" not in Page(render_evidence_page(evidence())).text
    assert "the tester’s own" in Page(render_evidence_page(evidence(own_draw=True))).text


def test_of_points_that_were_not_drawn_nothing_says_that_they_were():
    text = Page(render_evidence_page(requested())).text
    few = dataclasses.replace(SEEN_OF_REQUESTS, tests={"loss": SEEN.tests["loss"]})
    assert "100 points whose deletion was asked for, not drawn at random" in text
    assert "drawn at random before training" not in text
    assert "argued and not shown" in text
    assert "argued and not shown" not in Page(render_evidence_page(evidence())).text
    assert "ε ≥" not in text
    assert "ε ≥" not in render_evidence(requested())
    (row,) = json.loads(written(rows_of([("", requested(models={"mine": few}))]), "json"))
    assert row["epsilon"] is None


def test_of_which_differences_the_limit_is_true_is_said():
    for found in (render_evidence(requested()), Page(render_evidence_page(requested())).text):
        assert "as far as reference models show it" in found
    weak = dataclasses.replace(BLIND, by=["raw points", "reference models"], n_columns=5, alike=0.1)
    for found in (render_evidence(requested(blind=weak)), Page(render_evidence_page(requested(blind=weak))).text):
        assert "if that is a linear shift of normal columns or what a random forest finds" in found
        assert "eference models do not count for what may have been missed" in found
    none = dataclasses.replace(BLIND, alike=0.1, missed=1.0)
    for found in (render_evidence(requested(blind=none)), Page(render_evidence_page(requested(blind=none))).text):
        assert "linear shift" not in found
        assert "1.000" not in found


def test_what_is_not_evaluable_shows_no_bound():
    said = dataclasses.replace(SEEN, verdict=NOT_EVALUABLE)
    assert "ε ≥" in render_evidence_page(evidence())
    text = render_evidence_page(evidence({"mine": said}))
    assert "ε ≥" not in text
    assert "no evidence here" in text


def test_names_are_escaped_wherever_they_stand():
    evil = '"><script>alert(1)</script>'
    tests = {evil: SEEN.tests["gap"]}
    found = evidence(
        {evil: dataclasses.replace(SEEN, tests=tests, utility={evil: 0.5})},
        seed=evil, seed_from=evil, commitment=evil, digests={evil: evil}, environment={evil: evil}, warnings=[evil],
    )  # fmt: skip
    html = render_evidence_page(found)
    assert "<script" not in html
    assert evil in Page(html).text


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_has_a_meaning_and_resolution_is_told_where_it_matters(verdict):
    said = meaning(verdict, 0.218)
    assert said.endswith(".")
    assert ("0.218" in said) == (verdict == LIKE_RETRAIN)


@given(st.floats(-400, 0))
def test_a_small_p_is_never_shown_smaller_than_it_is(log10_p):
    text = chance(log10_p)
    digit, _, exponent = text.partition("e")
    if not exponent:
        assert float(text) == pytest.approx(10**log10_p, abs=5.1e-4)
        return
    shown = math.log10(int(digit)) + int(exponent)
    assert log10_p - 1e-6 <= shown <= log10_p + math.log10(2) + 1e-6


def test_several_models_of_one_file_are_each_tested_alone_and_that_is_said():
    """One of forty models that know nothing is called visible: p allows for the choice among its own tests alone."""
    found = evidence({"before": SEEN, **{f"m{one}": CLEAN for one in range(40)}})
    line = "Of 40 that know nothing of F, at most 2 would be called still visible by chance on average"
    assert line in render_evidence(found)
    assert line in render_evidence_page(found)
    assert "tested by itself" not in render_evidence(evidence({"before": SEEN, "after": CLEAN}))
    assert "tested by itself" not in render_evidence(evidence())


def test_a_name_that_is_near_to_the_control_is_told_of():
    text = render_evidence(evidence({"orginal": CLEAN, "after": CLEAN}))
    assert "orginal: judged as a model of its own; if it is that one, call it before." in text
    assert "model of its own" not in render_evidence(evidence({"first": CLEAN, "after": CLEAN}))
