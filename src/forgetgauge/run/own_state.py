"""What an object of the user's keeps from one call to the next: its numbers would depend on what it was asked before.

Its attributes, the globals of its code and what its functions close over count in its digest (`code/`), so a call
that changes any of them leaves another digest. What code does not tell, such as a generator that seeds itself, is found
by calling it twice.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from types import ModuleType
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import Named
from forgetgauge.probing import attribute
from forgetgauge.run.algorithms import CATALOGUES, code_of_choice


class OwnState:
    """Of a learner or a method, as it is before it is tried."""

    def __init__(self, what: str, chosen: Named) -> None:
        self._what, self._chosen = what, chosen
        self._thing = CATALOGUES[what].load(chosen.name)
        self._digest = self._digest_now()
        self._attributes: dict[str, Any] | None = None
        if not isinstance(self._thing, type | ModuleType):
            with suppress(Exception):  # what cannot be copied is not put back
                self._attributes = copy.deepcopy(dict(attribute(self._thing, "__dict__", {})))

    def has_changed(self) -> bool:
        """Whether calling it has changed what it reads of itself and of its surroundings."""
        return self._digest_now() != self._digest

    def put_back(self) -> None:
        """Give it the attributes that it had, so that nothing of a handful of points reaches the run."""
        if self._attributes is not None:
            with suppress(Exception):
                own = self._thing.__dict__
                own.clear()
                own.update(self._attributes)

    def _digest_now(self) -> str:
        try:
            return code_of_choice(CATALOGUES[self._what], self._chosen.name, self._chosen.params).digest
        except UserError:  # a file that it names, say, is gone
            return ""
