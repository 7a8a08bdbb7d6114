"""What Q is about stands beside it, where F is not drawn from all points one by one."""

import pytest

from forgetgauge.report.meaning import forget_set
from forgetgauge.report.rows import _drawn
from forgetgauge.report.settings import _game_settings

PLAIN = {"by": "point", "oracle": "point", "hardest": 1.0, "n_scorers": 16, "n_forget": 25, "sensitivity": {}}


def test_points_drawn_one_by_one_need_no_word():
    assert forget_set(PLAIN) is None
    assert forget_set({}) is None
    assert _drawn({}) == _drawn(PLAIN) == "points"
    assert not {"drawn and forgotten by", "shown to the adversary at once"} & set(_game_settings(PLAIN))
    assert not any("scor" in name or "hardest" in name for name in _game_settings(PLAIN))


@pytest.mark.parametrize(("oracle", "words"), [("point", "one point of a group"), ("group", "all points of a group")])
def test_of_groups_it_says_what_is_shown_and_what_is_counted(oracle, words):
    spec = {**PLAIN, "by": "group", "oracle": oracle, "n_groups": 300}
    said = forget_set(spec)
    assert said.startswith("Whole groups are forgotten, 25 at a time")
    assert words in said
    assert "the group is the unit of all intervals and tests" in said
    settings = _game_settings(spec)
    assert (settings["drawn and forgotten by"], settings["shown to the adversary at once"]) == ("group", oracle)
    assert settings["groups"] == "300"


def test_of_the_hardest_points_it_says_whom_q_is_about():
    spec = {**PLAIN, "hardest": 0.1}
    assert "the 10 % of the points that models memorise most" in forget_set(spec)
    assert _drawn(spec) == "points of the hardest 0.1"
    assert _game_settings(spec)["models that score points for hardness"] == "16"
    assert "of the groups that models memorise most" in forget_set({**spec, "by": "group", "oracle": "group"})


def test_of_weights_it_says_so():
    assert "as game.sensitivity states" in forget_set({**PLAIN, "sensitivity": {"kind": "by-class", "weights": {}}})
    assert forget_set({**PLAIN, "sensitivity": {"kind": "uniform"}}) is None
