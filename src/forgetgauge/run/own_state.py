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

from forgetgauge.code.digest import code_digest
from forgetgauge.plan.jobs import Named
from forgetgauge.probing import attribute
from forgetgauge.run.algorithms import CATALOGUES, code_of_choice


class OwnState:
    """Of a learner or a method, as it is before it is tried; with it, attributes are put back at the end."""

    def __init__(self, what: str, chosen: Named) -> None:
        self._what, self._chosen = what, chosen
        self._thing = CATALOGUES[what].load(chosen.name)
        self._digest = self._digest_now()
        own = {} if isinstance(self._thing, type | ModuleType) else attribute(self._thing, "__dict__", {})
        self._names = set(own)
        self._before: dict[str, tuple[str | None, Any]] = {}
        """Attribute -> its digest, and a copy of it; only of those that can be copied."""
        for name, value in dict(own).items():
            with suppress(Exception):  # what cannot be copied is not put back
                self._before[name] = _digest_of(value), copy.deepcopy(value, {id(self._thing): self._thing})

    def __enter__(self) -> OwnState:
        return self

    def __exit__(self, *error: object) -> None:
        self.put_back()

    def has_changed(self) -> bool:
        """Whether calling it has changed what it reads of itself and of its surroundings, as far as that is known."""
        now = self._digest_now()
        return None not in (now, self._digest) and now != self._digest

    def put_back(self) -> None:
        """Give it the attributes that changed as they were, so that nothing of a handful of points reaches the run."""
        if not self.has_changed():
            return
        if isinstance(self._thing, type | ModuleType):
            return
        own = attribute(self._thing, "__dict__", {})
        for name, (digest, value) in self._before.items():
            if name not in own or digest != _digest_of(own[name]):
                own[name] = value
        for name in set(own) - self._names:
            del own[name]

    def _digest_now(self) -> str | None:
        try:
            return code_of_choice(CATALOGUES[self._what], self._chosen.name, self._chosen.params).digest
        except Exception:  # a file that it names is gone, or what it holds is too deep to be described
            return None


def _digest_of(value: Any) -> str | None:
    try:
        return code_digest(value)
    except Exception:
        return None
