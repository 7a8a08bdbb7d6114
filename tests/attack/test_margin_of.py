"""Margins of an attack of the user's own."""

import numpy as np

from forgetgauge.attack.adversary import margin_of
from forgetgauge.attack.signals import Signals


class Own:
    def margin(self, signals):
        return np.array([-np.inf, -1.5, 0.25, np.inf], dtype=np.float32)


def test_single_precision_margins_are_taken_without_a_warning_and_are_finite():
    margins = margin_of(Own(), Signals(np.zeros((4, 2), dtype=np.float32), np.zeros(4, dtype=np.int64)))
    assert margins.dtype == np.float64
    assert margins[1:3].tolist() == [-1.5, 0.25]
    assert np.isfinite(margins).all()
