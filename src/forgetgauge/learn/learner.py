"""What every learner promises: the same points and the same streams give the same model; and what is refused of one of
the user's own, in one line, before its models are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError, WrongOutput
from forgetgauge.streams import Streams

VERBS = ("build", "fit", "fit_many", "n_gradients")
"""What every learner does."""


@runtime_checkable
class Learner(Protocol):
    """Lr of the paper: takes a data set, gives a model.

    A learner may also have `facts_of(model) -> dict[str, float]`: numbers about a model it made (a privacy budget
    spent, say) that should stand in the result; the model must carry them in its buffers.

    Your own learner needs these four methods and no base class::

        class Mine:
            def build(self, points, seed):  # an untrained model, also the mould that stored weights are poured into
                torch.manual_seed(seed)
                return MyNet(points.n_classes)
            def fit(self, points, streams):
                model = self.build(points, streams.seed("init"))
                ...  # train on points.x, points.y; draw from streams.generator("order")
                return model
            def fit_many(self, points, streams):
                return [self.fit(p, s) for p, s in zip(points, streams)]
            def n_gradients(self, n_points):
                return 10 * n_points
    """

    def build(self, points: Points, seed: int) -> nn.Module:
        """An untrained model for such points."""
        ...

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One trained model."""
        ...

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """One trained model for each set of points, as a stack where that is faster.

        The sets are of one data set, but may differ in size and, in the IC test, in what their points are labelled.
        """
        ...

    def n_gradients(self, n_points: int) -> int:
        """How many per-example gradients a fit on so many points evaluates: its cost."""
        ...


def is_ours(learner: Any) -> bool:
    """Whether we wrote it."""
    return type(learner).__module__.startswith("forgetgauge.")


def refuse_incomplete(name: str, thing: Any) -> None:
    """UserError that names the methods which a learner lacks."""
    lacking = [verb for verb in VERBS if not callable(getattr(thing, verb, None))]
    if lacking:
        raise UserError(f"learner '{name}' lacks {', '.join(lacking)}: a learner has the methods {', '.join(VERBS)}")


def fitted_many(learner: Learner, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
    """What its `fit_many` gives: one trained model for each set of points, or WrongOutput."""
    models: Any = learner.fit_many(points, streams)
    if is_ours(learner):
        return list(models)
    if not isinstance(models, list | tuple):
        raise WrongOutput(f"fit_many gave back a {type(models).__name__}, not a list of models")
    if len(models) != len(points):
        raise WrongOutput(f"fit_many was given {len(points)} sets of points and gave back {len(models)} models")
    for model in models:
        if not isinstance(model, nn.Module):
            raise WrongOutput(f"it trained a {type(model).__name__}: fit must return a torch module, the trained model")
    if (n_different := len({id(model) for model in models})) < len(models):
        raise WrongOutput(
            f"it gave back {n_different} different models for {len(models)} sets of points: make each anew"
        )
    return list(models)


def refuse_mixed_up(learner: Learner, points: tuple[Points, Points], streams: tuple[Streams, Streams]) -> None:
    """WrongOutput where `fit_many` gives fewer models than sets, or gives the second set's model in the first place."""
    first, second = fitted_many(learner, points, streams)
    alone = learner.fit(points[0], streams[0])
    if isinstance(alone, nn.Module) and are_alike(second, alone) and not are_alike(first, alone):
        raise WrongOutput("fit_many gives its models in another order than the sets of points it was given")


def same_again(
    learner: Learner,
    points: tuple[Points, Points],
    streams: tuple[Streams, Streams],
    seeded: Callable[[], AbstractContextManager[None]],
    *,
    to_the_bit: bool,
) -> bool:
    """Whether `fit` gives the same model of the same points and streams after it has trained another one.

    On a CPU it does to the last bit; elsewhere sums may be rounded in another order.
    """
    models = []
    for which in (0, 1, 0):
        with seeded():
            models.append(learner.fit(points[which], streams[which]))
    first, _, again = models
    if not isinstance(first, nn.Module) or not isinstance(again, nn.Module):
        return True  # what it gives is looked at, and refused, elsewhere
    return are_alike(first, again, 0.0, 0.0) if to_the_bit else are_alike(first, again, 1e-2, 1e-4)


def are_alike(one: nn.Module, other: nn.Module, rtol: float = 1e-4, atol: float = 1e-6) -> bool:
    """Whether two models have the same weights, but for what rounding makes of them in a stack."""
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(
        a[name].shape == b[name].shape
        and torch.allclose(a[name].double().cpu(), b[name].double().cpu(), rtol, atol, equal_nan=True)
        for name in a
    )
