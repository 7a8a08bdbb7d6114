"""Property suites for authors of their own unlearners and adversaries: what a run takes for granted, checked.

    from forgetgauge.testing import check_unlearner

    def test_my_method_keeps_the_promises_of_an_unlearner():
        check_unlearner(my_method)

Each raises AssertionError with one sentence on the first property that does not hold. The data are made up and tiny.
A suite finds broken promises, not weak methods: it says nothing about how well a method forgets.
"""

from forgetgauge.testing.adversaries import check_adversary
from forgetgauge.testing.unlearners import MODELS, check_unlearner

__all__ = ["MODELS", "check_adversary", "check_unlearner"]
