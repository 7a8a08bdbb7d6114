"""How a run is done, as against what is measured: built once where a user asks for a run, and handed down whole."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forgetgauge import plugins
from forgetgauge.errors import UserError

if TYPE_CHECKING:
    from forgetgauge.progress import Progress


def _warn(line: str) -> None:
    warnings.warn(line, RuntimeWarning, stacklevel=2)


@dataclass(frozen=True)
class RunOptions:
    """None of this is in a job's key: a run may go on with other options, on another machine."""

    executor: str = "inline"
    """Who does the work: a name of the catalogue of executors, or `module:attribute`."""
    device: str = "auto"
    """`auto` (every GPU, the CPU where there is none), `cpu`, `cuda` (every GPU), `cuda:1` or `cuda:0,cuda:2`; an
    executor that works in this process takes the first."""
    deterministic: bool = False
    """Whether every model is made alone, so that its bits do not depend on what else is in the run."""
    time_limit_s: float | None = None
    """Stop at a job boundary before this; None: when everything is done."""
    trial: bool = True
    """Whether code that is not ours is tried on a handful of points first, where a UserError says what fails; without
    it, failures are recorded job by job."""
    progress: Callable[[Progress], None] = lambda _: None
    """Called with the progress after every assignment."""
    tell: Callable[[str], None] = _warn
    """Called at once with what the user should know before the work goes on: it may end badly."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the executor, by the names of its own arguments; None where the user says nothing."""

    def __post_init__(self) -> None:
        """Refuse an unknown executor, and settings without names, before anything is planned."""
        plugins.executors.check(self.executor)
        if not isinstance(self.settings, Mapping):
            raise UserError(f"the settings of executor '{self.executor}' are no mapping of names to values")

    def load_executor(self) -> Any:
        """The class that makes the executor; refused where it cannot do what every executor does, or was asked for."""
        from forgetgauge.run.executors import Executor

        made_by = plugins.executors.load(self.executor)
        for verb in vars(Executor):
            if not verb.startswith("_") and not hasattr(made_by, verb):
                raise UserError(f"executor '{self.executor}' has no {verb}, so it is not an executor")
        taken = inspect.signature(made_by).parameters if self.given else {}
        for name in self.given:
            if name not in taken:
                raise UserError(f"executor '{self.executor}' takes no --{name.replace('_', '-')}")
        return made_by

    def without_limit(self, job_seconds: float | None) -> str:
        """What is to be said of a limit that this executor cannot keep; nothing where it can, or there is none."""
        if job_seconds is None or not getattr(self.load_executor(), "in_this_process", False):
            return ""
        return (
            f"limits.job_seconds = {job_seconds:g} has no effect with executor '{self.executor}', which cannot end a "
            "job: 'processes' can"
        )

    @property
    def given(self) -> dict[str, Any]:
        """The settings that somebody gave."""
        return {name: value for name, value in self.settings.items() if value is not None}


DEFAULTS = RunOptions()
"""What is done where nothing is asked for: everything in this process, to the end."""
