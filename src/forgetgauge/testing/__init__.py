"""Property suites for authors of their own unlearners and adversaries: what a run takes for granted, checked.

    from forgetgauge.testing import check_unlearner

    def test_my_method_keeps_the_promises_of_an_unlearner():
        check_unlearner(my_method)

Each raises AssertionError with one sentence on the first property that does not hold. The data are made up and tiny.
A suite finds broken promises, not weak methods: it says nothing about how well a method forgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forgetgauge.errors import require_torch
from forgetgauge.testing.adversaries import check_adversary

if TYPE_CHECKING:
    from forgetgauge.testing.unlearners import MODELS, check_unlearner

__all__ = ["MODELS", "check_adversary", "check_unlearner"]


def __getattr__(name: str) -> Any:
    """What is asked of unlearners needs torch, what is asked of adversaries does not."""
    if name not in __all__:
        raise AttributeError(f"module 'forgetgauge.testing' has no attribute '{name}'")
    require_torch()
    from forgetgauge.testing import unlearners

    return getattr(unlearners, name)
