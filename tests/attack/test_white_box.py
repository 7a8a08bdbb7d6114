import dataclasses

import numpy as np
import pytest

from forgetgauge.attack.adversary import TargetContext
from forgetgauge.attack.threshold import GRADIENT_NORM, LANDSCAPE, best_threshold

from .worlds import N_CLASSES, auc, draw_world

TARGET = TargetContext(N_CLASSES)
both = pytest.mark.parametrize("adversary", [GRADIENT_NORM, LANDSCAPE], ids=["gradient-norm", "loss-landscape"])


@both
def test_small_is_member_like_with_a_threshold_per_class(adversary):
    world = draw_world(70)
    attack = adversary.fit(world.shadows, TARGET)
    assert attack.sign == -1
    signals, member = world.shadows.rows
    score = -signals.columns[adversary.scorer.name].astype(float)
    for label in range(N_CLASSES):
        of_class = signals.labels == label
        assert attack.thresholds[label] == best_threshold(score[of_class & member], score[of_class & ~member])


@both
def test_where_forgetting_turned_it_round_large_is_member_like(adversary):
    """The orientation is that of the shadows, whatever the target looks like."""
    world = draw_world(71, boost=3.0)
    round_about = {name: -column for name, column in world.shadows.columns.items()}
    attack = adversary.fit(dataclasses.replace(world.shadows, columns=round_about), TARGET)
    assert attack.sign == 1
    turned = dataclasses.replace(world.target, columns={n: -column for n, column in world.target.columns.items()})
    assert auc(attack.score(turned), world.member) > 0.6
    assert auc(attack.score(world.target), world.member) < 0.4


@both
def test_a_missing_column_is_named_in_one_line(adversary):
    world = draw_world(72)
    attack = adversary.fit(world.shadows, TARGET)
    with pytest.raises(ValueError, match=f"'{adversary.scorer.name}' is missing") as refused:
        attack.decide(dataclasses.replace(world.target, columns={}))
    assert "\n" not in str(refused.value)


@both
def test_a_column_that_overflowed_is_large_and_one_that_is_no_number_is_refused(adversary):
    world = draw_world(73)
    attack = adversary.fit(world.shadows, TARGET)
    column = world.target.columns[adversary.scorer.name].copy()
    column[0] = np.inf
    overflowed = dataclasses.replace(world.target, columns={adversary.scorer.name.value: column})
    assert np.isfinite(attack.margin(overflowed)).all()
    assert not attack.decide(overflowed)[0]
    column[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        attack.decide(overflowed)
