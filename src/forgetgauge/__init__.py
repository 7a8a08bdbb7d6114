"""forgetgauge: after a model was asked to forget some of its training data, how much can an attacker still see?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forgetgauge.version import VERSION

__version__ = VERSION
__all__ = ["Result", "__version__", "evaluate"]

if TYPE_CHECKING:
    from forgetgauge.evaluation import evaluate
    from forgetgauge.results.record import Result


def __getattr__(name: str) -> Any:
    """Heavy parts are imported when they are first asked for, so that `--help` answers at once."""
    if name == "evaluate":
        from forgetgauge.evaluation import evaluate

        return evaluate
    if name == "Result":
        from forgetgauge.results.record import Result

        return Result
    raise AttributeError(f"module 'forgetgauge' has no attribute '{name}'")
