"""What every adversary of the catalogue promises."""

import io
import math

import numpy as np
import pytest

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Shadows, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.game.adversary import Access

from .worlds import N_CLASSES, draw_shadows, draw_signals, rows

TARGET = TargetContext(N_CLASSES)
every_adversary = pytest.mark.parametrize(
    "adversary",
    [plugins.adversaries.load(name) for name in plugins.adversaries.entries],
    ids=[*plugins.adversaries.entries],
)


def same_arrays(one, other) -> bool:
    a, b = one.arrays(), other.arrays()
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@every_adversary
def test_it_keeps_the_promise_of_an_adversary_and_sees_answers_only(adversary):
    assert isinstance(adversary, Adversary)
    assert adversary.access is Access.BLACK_BOX


@every_adversary
def test_it_says_yes_or_no_and_gives_a_finite_score_for_each_point(adversary, shadows, seen):
    attack = adversary.fit(shadows, TARGET)
    assert attack.decide(seen).shape == attack.score(seen).shape == (len(seen),)
    assert attack.decide(seen).dtype == np.bool_
    assert np.isfinite(attack.score(seen)).all()


@every_adversary
def test_what_it_learned_survives_the_disk(adversary, shadows, seen):
    attack, file = adversary.fit(shadows, TARGET), io.BytesIO()
    np.savez(file, **attack.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        again = adversary.load(dict(stored))
    assert np.array_equal(again.decide(seen), attack.decide(seen))
    assert np.array_equal(again.score(seen), attack.score(seen))
    assert same_arrays(again, attack)


@every_adversary
def test_the_order_of_the_points_does_not_matter(adversary, shadows, seen):
    attack, order = adversary.fit(shadows, TARGET), np.random.default_rng(0).permutation(len(seen))
    assert np.array_equal(attack.decide(rows(seen, order)), attack.decide(seen)[order])
    assert np.array_equal(attack.score(rows(seen, order)), attack.score(seen)[order])


@every_adversary
def test_points_asked_twice_are_answered_twice_alike(adversary, shadows, seen):
    attack, twice = adversary.fit(shadows, TARGET), np.repeat(np.arange(len(seen)), 2)
    assert np.array_equal(attack.decide(rows(seen, twice)), attack.decide(seen)[twice])


@every_adversary
@pytest.mark.parametrize("cut", [0, 1, 120])
def test_batches_are_answered_like_the_whole(adversary, shadows, seen, cut):
    attack, all_rows = adversary.fit(shadows, TARGET), np.arange(len(seen))
    parts = [attack.decide(rows(seen, part)) for part in (all_rows[:cut], all_rows[cut:])]
    assert np.array_equal(np.concatenate(parts), attack.decide(seen))


@every_adversary
def test_one_point_alone_is_answered_as_in_company(adversary, shadows, seen):
    attack = adversary.fit(shadows, TARGET)
    alone = [bool(attack.decide(rows(seen, np.array([i])))[0]) for i in range(len(seen))]
    assert alone == attack.decide(seen).tolist()


@every_adversary
def test_the_order_of_the_shadow_rows_does_not_matter(adversary, shadows):
    order = np.random.default_rng(1).permutation(len(shadows.member))
    shuffled = Shadows(rows(shadows.signals, order), shadows.member[order])
    assert same_arrays(adversary.fit(shuffled, TARGET), adversary.fit(shadows, TARGET))


@every_adversary
def test_fitting_twice_gives_the_same_and_leaves_the_shadows_as_they_were(adversary, shadows):
    logits, member = shadows.signals.logits.copy(), shadows.member.copy()
    assert same_arrays(adversary.fit(shadows, TARGET), adversary.fit(shadows, TARGET))
    assert np.array_equal(shadows.signals.logits, logits)
    assert np.array_equal(shadows.member, member)


@every_adversary
def test_a_class_that_no_shadow_shows_is_decided_all_the_same(adversary):
    shadows = draw_shadows(200, 5)
    some = np.flatnonzero(shadows.signals.labels != 2)
    attack = adversary.fit(Shadows(rows(shadows.signals, some), shadows.member[some]), TARGET)
    signals = draw_signals(200, 6)
    assert attack.decide(rows(signals, np.flatnonzero(signals.labels == 2))).dtype == np.bool_


@every_adversary
def test_nan_logits_reach_no_adversary(adversary, shadows):
    attack = adversary.fit(shadows, TARGET)
    with pytest.raises(ValueError, match="NaN"):
        attack.decide(Signals(np.full((2, N_CLASSES), np.nan, dtype=np.float32), np.zeros(2, dtype=np.int64)))


@every_adversary
def test_no_points_get_no_answers(adversary, shadows, seen):
    assert adversary.fit(shadows, TARGET).decide(rows(seen, np.arange(0))).shape == (0,)


@every_adversary
def test_where_there_is_nothing_to_see_the_advantage_is_nothing(adversary):
    """Fitted on noise, played on noise: the mean over 20 games of 2 × 500 points lies within 4 standard errors of 0."""
    advantages = []
    for game in range(20):
        attack = adversary.fit(draw_shadows(200, 10 * game, boost=0.0), TARGET)
        says = attack.decide(draw_signals(1000, 10 * game + 5))
        advantages.append(says[:500].mean() - says[500:].mean())
    worst_sd = math.sqrt(2 * 0.25 / 500)
    assert abs(np.mean(advantages)) <= 4 * worst_sd / math.sqrt(20)


@every_adversary
def test_where_there_is_much_to_see_the_advantage_is_much(adversary):
    attack = adversary.fit(draw_shadows(2000, 0, boost=4.0), TARGET)
    forget, unseen = draw_signals(500, 1, member_boost=4.0), draw_signals(500, 2)
    assert attack.decide(forget).mean() - attack.decide(unseen).mean() > 0.3
