"""Ul of the paper: a model, what it should keep, what it should forget; out comes another model.

The set T of the game is not an argument: `retain.x` and `forget.x` hold nothing of it. Of the model that comes out the
weights and buffers are kept (its `state_dict`), poured into the learner's architecture: another architecture, or a
`forward` replaced on the object, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast, runtime_checkable

from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.learner import Learner
from forgetgauge.models.outputs import answering_like, as_written
from forgetgauge.plan.strength import Value
from forgetgauge.streams import Streams
from forgetgauge.unlearn.memory import Memory
from forgetgauge.unlearn.signatures import call


@dataclass
class Context:
    """What an unlearner may know besides the model and its data."""

    learner: Learner
    """The recipe that trained the model."""
    streams: Streams
    """All the randomness it may use."""
    validation: Points | None = None
    """Points of the half that the model knows nothing of, for methods that want to watch utility; never of T."""
    n_gradients: int = 0
    """Per-example gradients evaluated; an unlearner adds to it what it spends."""
    facts: dict[str, float] = field(default_factory=dict)
    """Numbers about what was done, by name, that should stand in the result (averaged over models)."""
    engine: str = ""
    """What many requests were answered with, where an unlearner says so (learn/stacked/engines.py has the names)."""
    memory: Memory | None = None
    """Where shipped methods keep what their strength does not change, while strengths are tried."""


def one_by_one(unlearner: Unlearner, requests: Sequence[Request]) -> list[nn.Module]:
    """Models one after another, each by points of its own, whose inputs go with them: those of all members of a stack,
    as floats four times what is stored, would stay until the last is done."""
    return [
        _with_strength_of(r, unlearner).unlearn(
            r.model, r.retain.subset(r.retain.index), r.forget.subset(r.forget.index), r.context
        )
        for r in requests
    ]


def _with_strength_of(request: Request, unlearner: Any) -> Unlearner:
    named = {} if request.strength is None else {unlearner.strength.parameter: request.strength}
    found: Unlearner = replace(unlearner, **named) if named else unlearner
    return found


@runtime_checkable
class Unlearner(Protocol):
    """Unlearn F from a model.

    Your own method is a function of this signature; no class is needed::

        def my_method(model, retain, forget, context):
            model = copy.deepcopy(model)  # the original belongs to the caller
            ...  # retain.x, retain.y, forget.x, forget.y are tensors
            return model
    """

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """A new model; the one given is not changed."""
        ...


@dataclass(frozen=True)
class Request:
    """One model and what it is asked to forget."""

    model: nn.Module
    retain: Points
    forget: Points
    context: Context
    strength: Value | None = None
    """The method's strength for this model, where each member of a stack has its own; the method's without it."""

    def strength_or(self, own: Value) -> Value:
        """Its own strength, or the method's."""
        return own if self.strength is None else self.strength


@dataclass(frozen=True)
class FunctionUnlearner:
    """A plain function of the user's as an Unlearner."""

    function: Callable[..., nn.Module]
    params: dict[str, Any] = field(default_factory=dict)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Call the function with the model as its author wrote it."""
        with as_written(model):
            result = call(self.function, (model, retain, forget, context), self.params)
        return cast(nn.Module, answering_like(result, model))


@runtime_checkable
class StackedUnlearner(Protocol):
    """An unlearner that treats many models at once; being one of many may change a model by a rounding error."""

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """One new model for each request."""
        ...
