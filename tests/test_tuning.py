from __future__ import annotations

import numpy as np
import pytest

from forgetgauge import tuning
from forgetgauge.data.digits import load_digits
from forgetgauge.errors import UserError
from forgetgauge.plan.draws import draw_halves
from forgetgauge.tuning import tune

SMALL = {"alpha": 0.5, "fraction": 0.3, "n_models": 2, "learner": {"epochs": 5}}


def test_the_strongest_harmless_value_is_chosen():
    found = tune("neg-grad", "lr", [0.0, 1e-7, 10.0], **SMALL)
    assert found.chosen == 1e-7
    assert found.trials[0].worst_loss == 0.0
    assert found.trials[2].worst_loss > 0.1


def test_where_every_value_harms_none_is_chosen():
    assert tune("neg-grad", "lr", [10.0], **SMALL).chosen is None


def test_the_target_half_is_never_looked_at(monkeypatch):
    dataset = load_digits()
    target, _ = draw_halves(dataset.digest, len(dataset.points), 0, 0.3)
    seen = []
    real = tuning.logits_of_many

    def watched(models, points):
        seen.extend(p.index for p in points)
        return real(models, points)

    monkeypatch.setattr(tuning, "logits_of_many", watched)
    tune("none", "x", [], **SMALL)
    assert seen
    assert not np.isin(np.concatenate(seen), target).any()


def test_an_unknown_knob_is_one_line():
    with pytest.raises(UserError, match="did you mean 'lr'"):
        tune("neg-grad", "lrr", [1.0], **SMALL)
