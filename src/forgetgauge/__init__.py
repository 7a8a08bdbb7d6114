"""forgetgauge: after a model was asked to forget some of its training data, how much can an attacker still see?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from forgetgauge.version import VERSION

if TYPE_CHECKING:
    from forgetgauge.attack.score_function import adversary
    from forgetgauge.auditing import audit
    from forgetgauge.evaluation import evaluate
    from forgetgauge.report.interactive import Comparison, Evidence, Result, compare, read_result

__version__ = VERSION
__all__ = [
    "Comparison",
    "Evidence",
    "Result",
    "__version__",
    "adversary",
    "audit",
    "compare",
    "evaluate",
    "read_result",
]
_AT = {
    "forgetgauge.attack.score_function": ("adversary",),
    "forgetgauge.auditing": ("audit",),
    "forgetgauge.evaluation": ("evaluate",),
    "forgetgauge.report.interactive": ("Comparison", "Evidence", "Result", "compare", "read_result"),
}
_HOMES = {name: module for module, names in _AT.items() for name in names}


def __getattr__(name: str) -> Any:
    """Heavy parts are imported when they are first asked for, so that `--help` answers at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'forgetgauge' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What is there to be used, whether it was imported yet or not."""
    return sorted(__all__)
