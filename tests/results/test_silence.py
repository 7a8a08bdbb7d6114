"""Adversaries that answer the same of all points: when that is an answer, and when it measures nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from forgetgauge.game.advantage import outcome_of_decisions
from forgetgauge.game.permutation import noise_floors
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results import margin_warnings
from forgetgauge.results.game import judge, judged_again, rules_of
from forgetgauge.results.margin_warnings import MarginEvidence
from forgetgauge.results.record import Result
from forgetgauge.results.resolution import resolution_on
from forgetgauge.results.verdict import LIKE_RETRAIN, reservations, verdict

NAMES = ("loss", "min-k")
FINE = {"retain": [0.9, 0.91, 0.9], "unseen": [0.5, 0.51, 0.49]}
RUINED = {"retain": [0.1, 0.11, 0.09], "unseen": [0.1, 0.11, 0.09]}
FORGETFUL = {**FINE, "retain": RUINED["retain"]}
UNCERTAIN = {**FINE, "unseen": [0.52, 0.44, 0.54]}


def outcomes(answer, *, pairs=3, k=4):
    """Of each pair what `answer(adversary, in_forget of a model)` says of its points."""
    in_forget = np.repeat([True, False], k)
    sides = [
        np.stack([np.broadcast_to(answer(name, side), side.shape) for name in NAMES], axis=1)[None]
        for side in (in_forget, ~in_forget)
    ]
    return {pair: outcome_of_decisions(*sides, in_forget, np.ones(2 * k)) for pair in range(pairs)}


def seen(_name, in_forget):
    return in_forget


def never(_name, in_forget):
    return np.zeros_like(in_forget)


def always(_name, in_forget):
    return np.ones_like(in_forget)


def one_point(_name, in_forget):
    return np.arange(len(in_forget)) == 0


def half(name, in_forget):
    """The first adversary is silent; the other is right of half of F."""
    return never(name, in_forget) if name == NAMES[0] else in_forget & (np.arange(len(in_forget)) % 2 == 0)


@dataclass
class Played:
    outcomes: dict
    utility: dict = field(default_factory=dict)
    apart: dict = field(default_factory=dict)
    adversaries = NAMES
    columns: dict = field(default_factory=dict)

    def margin_warnings(self, methods):
        return []

    def told_apart(self, method, level):
        return self.apart.get(method, [])

    def missed(self, methods):
        return {}

    def diagnostics(self, method, adversary):
        return None

    def strong(self, method, adversary):
        return []

    def roc(self, method, adversary, level):
        return None

    def codes(self, method, pair):
        return {}

    def details(self, method):
        by_pair = self.utility.get(method, {})
        utility = {part: float(np.mean(found)) for part, found in by_pair.items()}
        return {"utility": utility, "utility_by_pair": by_pair, "n_gradients": None, "seconds": None}


def game(answers, *, pairs=3, k=4, **known):
    spec = {"pairs": pairs, "n_forget": k, "seed": 0, "level": 0.95, "delta": 1e-5, "interval": "student"}
    played = Played({name: outcomes(answer, pairs=pairs, k=k) for name, answer in answers.items()}, **known)
    found = judge(played, rules_of(spec, answers), spec=spec, utility_name="token probability")
    assert judged_again(found).methods == found.methods  # what verify does
    return found


def test_retrained_models_of_which_all_attacks_say_unseen_have_a_q_of_one_with_room_below():
    """Four people of eight, three pairs: of 24 that showed nothing, 14 % could."""
    found = game({"retrain": never, "none": seen})
    retrain = found.methods["retrain"]
    assert (retrain.quality, retrain.silence_counts, retrain.decided_nothing) == (1, list(NAMES), [])
    assert retrain.interval == pytest.approx((1 - 0.1425, 1), abs=1e-3)
    assert retrain.verdict == LIKE_RETRAIN
    assert found.methods["none"].interval[1] < 0.5
    (said,) = set(found.warnings) - set(game({"none": seen}).warnings)
    assert said.startswith("retrain: loss and min-k call every point of every model unseen, which counts")
    assert "on another scale" in said  # nobody knows what they are worth
    said = "call every point of retrain’s models unseen, and None’s forgotten points seen"
    result = Result({}, {"data": "0", "decisions": "0"}, [found])
    assert said in render_table(result)
    assert said in render_report(result)
    assert any("so its Q should be 1: its interval" in line for line in verdict(found).remarks)


def test_the_silence_of_sound_retrained_models_is_no_warning_and_that_of_ruined_ones_measures_nothing():
    known = {"retrain": {**FINE, "retain": [0.6, 0.62, 0.58]}, "none": FINE}  # it had fewer points to learn from
    sound = game({"retrain": never, "none": seen}, utility=known)
    assert sound.methods["retrain"].quality == 1
    assert not any(line.startswith("retrain:") for line in sound.warnings)
    ruined = game({"retrain": never, "none": seen}, utility={**known, "retrain": RUINED})
    assert (ruined.methods["retrain"].quality, ruined.methods["retrain"].silence_counts) == (None, [])


def test_a_method_is_not_sound_for_being_no_worse_than_ruined_retrained_models():
    for retrained in (RUINED, {**RUINED, "retain": [0.5, 0.5, 0.5]}):
        known = {"utility": {"mine": RUINED, "retrain": retrained, "none": FINE}}
        mine = game({"mine": never, "retrain": never, "none": seen}, **known).methods["mine"]
        assert (mine.quality, mine.silence_counts) == (None, [])


def test_what_is_small_is_lost_by_a_tenth_and_not_by_two_points():
    low = {"retain": [0.018] * 3, "unseen": [0.012] * 3}
    for own, counts in (({"retain": [1e-4] * 3, "unseen": [1e-4] * 3}, False), (low, True)):
        known = {"utility": {"mine": own, "retrain": low, "none": low}}
        mine = game({"mine": never, "retrain": never, "none": seen}, **known).methods["mine"]
        assert (mine.quality == 1) is counts


def test_scores_tell_f_apart_by_the_bar_that_none_is_seen_by(monkeypatch):
    """Every score right of two people in each of two pairs is far below three standard deviations of chance."""
    evidence = MarginEvidence(NAMES, [], [], [], [None, None])
    monkeypatch.setattr(margin_warnings, "z_over_pairs", lambda _: np.array([2.4, -2.1]))
    assert margin_warnings.told_apart(evidence, 0.95) == [NAMES[0]]  # 2.24 of two adversaries, two-sided
    monkeypatch.setattr(margin_warnings, "z_over_pairs", lambda _: np.array([2.1, -2.4]))
    assert margin_warnings.told_apart(evidence, 0.95) == [NAMES[1]]


def test_over_pairs_the_interval_of_silence_is_the_one_without_a_distribution():
    found = game({"retrain": never, "none": seen}, pairs=6)
    assert found.methods["retrain"].interval == pytest.approx((0.502, 1), abs=1e-3)


@pytest.mark.parametrize(("pairs", "k"), [(3, 4), (6, 8)])
def test_what_would_have_been_seen_is_seen_in_four_of_five_games(pairs, k):
    """An attack that calls a share of F seen, and nobody of T, is told from chance by relabelling that often."""
    share = resolution_on(game({"retrain": never, "none": seen}, pairs=pairs, k=k), "retrain")
    rng = np.random.default_rng(0)

    def some(name, side):
        return side & (rng.random(len(side)) < share) & (name == NAMES[0])

    games = []
    for _ in range(150):
        each = [outcomes(some, pairs=1, k=k)[0] for _ in range(pairs)]
        (found,) = noise_floors([each], rng)
        games.append(found.p_value <= 0.05)
    assert np.mean(games) == pytest.approx(0.8, abs=0.1)


def test_too_few_people_to_see_none_by_are_too_few_for_silence_to_count():
    assert game({"retrain": never, "none": seen}, pairs=1, k=2).methods["retrain"].quality is None


@pytest.mark.parametrize(
    ("answers", "known"),
    [
        ({"retrain": always, "none": seen}, {}),  # on another scale: everybody is called seen
        ({"retrain": never, "none": never}, {}),  # attacks that see nothing of None either
        ({"retrain": never, "none": one_point}, {}),  # nor beyond chance
        ({"retrain": never, "none": lambda name, side: ~side}, {}),  # nor the right way round
        ({"retrain": never}, {}),
        ({"retrain": never, "none": seen}, {"apart": {"retrain": NAMES}}),  # thresholds miss what scores tell
    ],
)
def test_other_silence_measures_nothing_of_retrain(answers, known):
    retrain = game(answers, **known).methods["retrain"]
    assert (retrain.quality, retrain.silence_counts, retrain.decided_nothing) == (None, [], list(NAMES))


@pytest.mark.parametrize(
    ("utility", "retrained", "apart", "counts"),
    [
        (FINE, never, {}, True),
        (RUINED, never, {}, False),  # damaged models answer on another scale
        (FORGETFUL, never, {}, False),  # though there was nothing to lose on T
        (UNCERTAIN, never, {}, False),  # that nothing is noticed shows no models undamaged
        ({"unseen": FINE["unseen"]}, never, {}, False),
        ({}, never, {}, False),  # and nobody would tell
        (FINE, one_point, {}, False),  # Retrain's models are not answered like that
        (FINE, never, {"mine": NAMES}, False),  # the scores tell F from T
    ],
)
def test_silence_about_a_method_counts_where_it_is_that_about_retrain_and_nothing_is_damaged(
    utility, retrained, apart, counts
):
    known = {"utility": {"mine": utility, "retrain": FINE, "none": FINE}, "apart": apart}
    found = game({"mine": never, "retrain": retrained, "none": seen}, **known)
    mine = found.methods["mine"]
    assert (mine.quality == 1) is counts
    assert (mine.silence_counts == list(NAMES)) is counts
    said = "mine: loss and min-k call every point of every model unseen, as they do of Retrain’s"
    assert any(line.startswith(said) for line in reservations(found)) is counts  # never without a word
    assert any("so nothing was measured" in line for line in found.warnings) is not counts


def test_silence_on_some_of_the_pairs_counts_for_nobody():
    answers = {"retrain": outcomes(never, pairs=2), "none": outcomes(seen)}
    spec = {"pairs": 3, "n_forget": 4, "seed": 0, "level": 0.95, "delta": 1e-5, "interval": "student"}
    found = judge(Played(answers), rules_of(spec, answers), spec=spec)
    assert (found.methods["retrain"].quality, found.methods["retrain"].silence_counts) == (None, [])


def test_ruined_models_that_one_attack_tells_apart_are_said_to_be_damaged():
    known = {"utility": {"mine": RUINED, "retrain": FINE, "none": FINE}}
    found = game({"mine": half, "retrain": never, "none": seen}, **known)
    assert found.methods["mine"].decided_nothing == [NAMES[0]]
    assert any("part of such a Q is damage" in line for line in reservations(found))


def test_attackers_who_hardly_speak_see_no_more_than_would_have_broken_the_silence_on_retrain():
    known = {"utility": dict.fromkeys(("mine", "retrain", "none"), FINE)}

    def hardly(name, side):
        return one_point(name, side) & side

    found = game({"mine": hardly, "retrain": never, "none": seen}, **known)
    assert resolution_on(found, "mine") >= resolution_on(found, "retrain") > 0.3


def test_what_nobody_is_silent_about_is_as_it_was():
    found = game({"mine": half, "retrain": half, "none": seen})
    alone = game({"mine": half})
    for part in ("quality", "interval", "p_value", "epsilon", "noise_floor", "adversary"):
        assert getattr(found.methods["mine"], part) == getattr(alone.methods["mine"], part)


def test_one_retrained_model_for_both_sides_shows_nothing_by_its_silence():
    found = game({"retrain": never, "none": seen})
    shared = replace(found, spec={**found.spec, "share_retrain": True})
    assert resolution_on(shared, "retrain") == 1.0


def test_the_silence_of_one_retrained_model_for_both_sides_does_not_blind_the_others():
    rng = np.random.default_rng(0)
    alone = game({"retrain": never, "none": seen, "mine": lambda _, side: rng.random(len(side)) < 0.5}, pairs=6, k=100)
    shared = replace(alone, spec={**alone.spec, "share_retrain": True})
    assert resolution_on(alone, "mine") == resolution_on(shared, "mine") < 0.1
