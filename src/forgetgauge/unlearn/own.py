"""A method of the user's own, in whatever form, as an Unlearner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from torch import nn

from forgetgauge.models.outputs import answering_like, as_written
from forgetgauge.probing import has
from forgetgauge.unlearn.competition import CompetitionUnlearner
from forgetgauge.unlearn.signatures import function_of, signature_of
from forgetgauge.unlearn.unlearner import FunctionUnlearner, Request, Unlearner


def as_unlearner(thing: Any, params: Mapping[str, Any]) -> Unlearner:
    """A class of ours or of the user's, an object with `unlearn`, or a function in either signature.

    `signature` among the parameters says which of them, for functions that do not tell.
    """
    given = dict(params)
    if isinstance(thing, type):
        thing, given = thing(**given), {}
    if isinstance(thing, Unlearner) and str(getattr(thing.unlearn, "__module__", "")).startswith("forgetgauge."):
        return thing
    if has(thing, "unlearn_many"):
        return _Stacked(thing)
    stated = given.pop("signature", None)
    if signature_of(thing, stated, given) == "competition":
        return CompetitionUnlearner.of(function_of(thing), given)
    return FunctionUnlearner(function_of(thing), given)


@dataclass(frozen=True)
class _Stacked:
    """An object of the user's that treats many models at once, which it sees as their author wrote them."""

    thing: Any

    def unlearn(self, model: nn.Module, retain: Any, forget: Any, context: Any) -> nn.Module:
        """One of them."""
        return FunctionUnlearner(self.thing.unlearn).unlearn(model, retain, forget, context)

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them."""
        with ExitStack() as written:
            for request in requests:
                written.enter_context(as_written(request.model))
            made = self.thing.unlearn_many(requests)
        return [answering_like(model, r.model) for model, r in zip(made, requests, strict=True)]
