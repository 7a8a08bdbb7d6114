"""What accuracy says of Q: ruined models, and pairs that did not learn, are told of."""

from dataclasses import replace

import pytest

from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.assessed import means_by_group
from forgetgauge.results.record import GameResult, Result
from forgetgauge.results.utility import (
    DAMAGE,
    LITTLE,
    damage,
    has_seen_unseen,
    lost_accuracy,
    lost_retained,
    uneven_accuracy,
)
from forgetgauge.results.verdict import reservations, sweep_verdict, verdict
from tests.report.test_html import method

SPEC = {"pairs": 3, "alpha": 0.1, "level": 0.95, "adversaries": {}}


def game(**by_pair):
    methods = {name: method(0.9, utility_by_pair=found) for name, found in by_pair.items()}
    return GameResult(None, SPEC, methods, None, [], None, None)


def test_a_pair_that_stands_apart_is_told_and_one_that_does_not_is_not():
    found = game(none={"test": [0.52, 0.1, 0.5]}, retrain={"test": [0.51, 0.5, 0.42]})
    line = f"Accuracy differs from pair to pair: none 0.100 to 0.520 (test set). {LITTLE}"
    assert uneven_accuracy(found) == line
    for page in (render_table(Result({}, {}, [found])), render_report(Result({}, {}, [found]))):
        assert line in page


@pytest.mark.parametrize(
    "by_pair", [{}, {"retain": [0.1, 0.9]}, {"unseen": [0.5, 0.6]}, {"test": [0.5, 0.5], "unseen": [0.1, 0.9]}]
)
def test_nothing_is_told_where_unseen_points_show_nothing(by_pair):
    """Of two sets the official one counts: T is small."""
    assert uneven_accuracy(game(none=by_pair)) is None


@pytest.mark.parametrize(("n_forget", "told"), [(16, False), (1000, True)])
def test_what_few_points_may_do_by_chance_is_not_told(n_forget, told):
    """A pair of 32 points scatters by 5 points of accuracy, two hundred of them by three times that and more."""
    spec = {**SPEC, "pairs": 8, "n_forget": n_forget}
    by_pair = {"unseen": [0.9] * 7 + [0.65]}
    references = {name: method(0.9, utility={"unseen": 0.9}) for name in ("retrain", "none")}
    tested = method(0.9, utility={"unseen": 0.86}, utility_by_pair=by_pair)
    found = GameResult(None, spec, {**references, "ssd": tested}, None, [], None, None)
    assert (damage(found) is not None) is told
    assert (uneven_accuracy(found) is not None) is told


def test_means_of_groups_are_in_their_order_and_of_those_that_have_the_name():
    records = [(2, {"a": 1.0}), (0, {"a": 3.0, "b": 5.0}), (2, {"a": 2.0}), (1, {"b": 7.0})]
    assert means_by_group(records) == {"a": [3.0, 1.5], "b": [5.0, 7.0]}


def measured(**accuracy):
    methods = {name: method(0.9, utility=found) for name, found in accuracy.items()}
    return GameResult(None, SPEC, methods, None, [], None, None)


LARGE = {**SPEC, "pairs": 5, "n_forget": 500, "n_retain": 2000}


def test_a_method_that_knows_the_unseen_points_is_told_of_and_one_that_learnt_more_is_not():
    """Whoever trains on a loader of all data forgets nothing, and shows no difference between F and T."""
    references = {"retrain": {"unseen": 0.56, "test": 0.57}, "none": {"unseen": 0.55, "test": 0.56}}
    found = measured(
        **references,
        leaks={"unseen": 1.0, "test": 0.58},
        leaks_from_a_set_without_test={"unseen": 1.0},
        trained_further={"unseen": 0.66, "test": 0.67},
        forgets={"unseen": 0.55, "test": 0.56},
    )
    found = replace(found, spec=LARGE)
    assert has_seen_unseen(found) == pytest.approx({"leaks": 0.44, "leaks_from_a_set_without_test": 0.44})
    few = replace(found, spec={**LARGE, "n_forget": 2, "pairs": 2})  # eight points tell nothing
    assert has_seen_unseen(few) == {}
    assert has_seen_unseen(replace(found, utility_name="token probability")) == {}
    for page in (render_table(Result({}, {}, [found])), render_report(Result({}, {}, [found]))):
        assert "More accurate on the unseen points T than Retrain and None: leaks by 44.0 points" in page
    assert any("leaks by 44.0 points" in line for line in reservations(found))


def test_without_a_test_set_a_method_is_no_more_suspected_for_training_further_than_short_references():
    short = {"retrain": {"unseen": 0.62, "retain": 0.66}, "none": {"unseen": 0.63, "retain": 0.67}}
    found = measured(
        **short,
        trained_further={"unseen": 0.83, "retain": 0.90},
        leaks={"unseen": 0.95, "retain": 0.70},
        fitted_less={"unseen": 0.70, "retain": 0.60},
    )
    found = replace(found, spec=LARGE)
    assert has_seen_unseen(found) == pytest.approx({"leaks": 0.32})
    assert lost_retained(found) == {}  # better on T and worse on R is no damage


@pytest.mark.parametrize(
    ("n_classes", "retrained", "untreated", "told", "n_retain"),
    [
        (10, 0.101, 0.118, True, 10**6),
        (10, 0.101, 0.13, False, 10**6),
        (10, 0.15, 0.13, True, 100),  # four models that guess one class each
        (10, 0.101, 0.2, False, 100),
        (2, 0.5, 0.49, True, 10**6),
        (2, 0.51, 0.5, False, 10**6),
        (0, 0.1, 0.1, False, 100),
    ],
)
def test_that_nothing_was_learnt_is_told_before_all_else(n_classes, retrained, untreated, told, n_retain):
    found = measured(
        retrain={"retain": retrained, "unseen": 0.1},
        none={"retain": untreated, "unseen": 0.1},
        mine={"retain": 0.9, "unseen": 0.1},
    )
    found = replace(found, spec={**SPEC, "n_classes": n_classes, "n_retain": n_retain, "pairs": 2})
    said = [line for line in reservations(found) if "nothing was learnt that could be forgotten" in line]
    assert len(said) == told
    assert not told or said[0].startswith(
        f"Retrain and None classify {max(retrained, untreated):.0%} of the points they"
    )


def test_what_is_lost_on_the_points_that_stay_is_told_where_unseen_points_do_not_show_it():
    """Of labels that nobody can predict, accuracy on unseen points is that of the commonest class, damage or not."""
    references = {"retrain": {"unseen": 0.92, "retain": 1.0}, "none": {"unseen": 0.92, "retain": 1.0}}
    found = measured(
        **references,
        shrunk={"unseen": 0.92, "retain": 0.914},
        ruined={"unseen": 0.5, "retain": 0.5},
        good={"retain": 1.0},
    )
    found = replace(found, spec=LARGE)
    assert lost_retained(found) == pytest.approx({"shrunk": 0.086})  # what is known to be ruined is told of once
    for page in (render_table(Result({}, {}, [found])), render_report(Result({}, {}, [found]))):
        assert "Less accurate than Retrain and None on the points that stay: shrunk by 8.6 points" in page


def test_a_method_that_loses_more_than_a_point_against_both_references_is_named():
    found = measured(
        retrain={"test": 0.80, "unseen": 0.1},
        none={"test": 0.82},
        ssd={"test": 0.6568, "unseen": 0.9},
        fisher={"test": 0.785},
        salun={"test": 0.79},
        good={"test": 0.82},
    )
    assert lost_accuracy(found) == pytest.approx({"ssd": 0.1432, "fisher": 0.015})
    line = (
        "Less accurate than Retrain and None: ssd by 14.3 points, fisher by 1.5 points. "
        "A damaged model gives less away: part of such a Q is damage, not forgetting."
    )
    assert damage(found) == line
    for page in (render_table(Result({}, {}, [found])), render_report(Result({}, {}, [found]))):
        assert line in page


def test_the_headline_does_not_praise_a_ruined_model_without_its_price():
    found = measured(retrain={"test": 0.8}, none={"test": 0.82}, ssd={"test": 0.1})
    spoken = verdict(found)
    assert "but it is 70.0 points less accurate than Retrain and None" in spoken.headline
    assert damage(found) in spoken.remarks
    page = render_report(Result({}, {}, [found]))
    assert "ssd<span" in page.replace("\n", "")
    assert "less accurate by 70.0 points" in page


def test_a_sweep_says_where_which_method_is_damaged():
    games = [
        replace(measured(retrain={"test": 0.8}, ssd={"test": ssd}, fisher={"test": fisher}), value=value)
        for value, ssd, fisher in ((0.1, 0.7, 0.8), (0.25, 0.7, 0.8), (0.4, 0.8, 0.6))
    ]
    remarks = sweep_verdict(Result({}, {}, games, sweep="game.alpha")).remarks
    said = "More than a point of accuracy below Retrain and None, so that part of Q is damage and not forgetting"
    line = f"{said}: ssd at 0.1 and 0.25; fisher at 0.4."
    assert line in remarks
    whole = Result({}, {}, [replace(game, methods={"retrain": game.methods["retrain"]}) for game in games], sweep="a")
    assert not any("Damaged" in line for line in sweep_verdict(whole).remarks)


def test_a_method_that_is_as_bad_as_its_original_is_not_to_blame():
    assert damage(measured(retrain={"test": 0.5}, none={"test": 0.46}, ssd={"test": 0.455})) is None


def test_the_reference_that_is_there_is_the_yardstick():
    assert damage(measured(retrain={}, none={"unseen": 0.9}, ssd={"unseen": 0.5})) == (
        f"Less accurate than None: ssd by 40.0 points. {DAMAGE}"
    )
    assert damage(measured(ssd={"unseen": 0.5}, fisher={"unseen": 0.9})) is None
