"""A method of the user's own, in whatever form, as an Unlearner: a class, an object, or a function in one of two
signatures, ours and that of public unlearning competitions, `unlearning(net, retain, forget, validation)`.

A function in the competition signature is run unmodified: it is given three loaders, and returns the net or changes it
in place. It draws from the global generators of torch, numpy and Python. They are seeded from the job's own streams
while it runs and put back afterwards, so the same inputs and streams give the same model. The loaders are plain
`DataLoader`s over tensors; their order is the job's own too. What it costs is counted by the loaders: one gradient for
each example they hand out of R or F.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError, WrongOutput
from forgetgauge.models.outputs import answering_like, as_written
from forgetgauge.probing import attribute, has
from forgetgauge.unlearn.signatures import call, function_of, parameters_of, signature_of
from forgetgauge.unlearn.unlearner import Context, FunctionUnlearner, Request, Unlearner

_PLACES = {"image": 0, "label": 1, "age_group": 1}
"""The names under which a batch's inputs and labels are found too, as in the competition on faces and ages."""
MIXED_UP = "unlearn_many gives its models in another order than the requests it was given"


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
            made = list(self.thing.unlearn_many(requests))
        if len({id(model) for model in made}) != len(requests):
            raise WrongOutput(
                f"unlearn_many was given {len(requests)} requests and gave back {len({*map(id, made)})} models"
            )
        return [answering_like(model, r.model) for model, r in zip(made, requests, strict=True)]


# -- the competition signature -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CompetitionUnlearner:
    """A function in the competition signature as an Unlearner."""

    function: Callable[..., nn.Module | None]
    batch_size: int = 64
    """At most so many examples in a batch; fewer where a single one would be left over, which breaks batch norm."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the function, by name."""

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError("batch_size must be at least 1")

    @staticmethod
    def of(function: Callable[..., nn.Module | None], params: Mapping[str, Any]) -> CompetitionUnlearner:
        """With the parameters of a run file: `batch_size` is the loaders', unless the function has one of its own."""
        given = dict(params)
        if "batch_size" in given and "batch_size" not in parameters_of(function):
            return CompetitionUnlearner(function, given.pop("batch_size"), given)
        return CompetitionUnlearner(function, params=given)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Call the function with a copy of the model, in eval mode, and with three loaders."""
        if context.validation is None:
            raise UserError("a competition method needs validation points, but this context has none")
        streams = context.streams
        with as_written(model):
            net = copy.deepcopy(model).eval()
        served = _Served(retain.x, retain.y), _Served(forget.x, forget.y)
        watched = TensorDataset(context.validation.x, context.validation.y)
        with seeded_globally(*map(streams.seed, ("torch", "numpy", "python"))):
            loaders = (
                self._loader(served[0], streams.seed("retain order")),
                self._loader(served[1], streams.seed("forget order")),
                self._loader(watched, streams.seed("order"), shuffle=False),
            )
            result = call(self.function, (net, *loaders), self.params)
        context.n_gradients += sum(data.n_served for data in served)
        if result is not None and not isinstance(result, nn.Module):
            raise TypeError(f"{_name(self.function)} returned a {type(result).__name__}, not a model or None")
        return _as_given(net if result is None else result, model)

    def _loader(self, data: TensorDataset, seed: int, *, shuffle: bool = True) -> DataLoader[Any]:
        size = self.batch_size
        while size > 2 and len(data) % size == 1:
            size -= 1
        generator = torch.Generator().manual_seed(seed)
        return DataLoader(data, batch_size=size, shuffle=shuffle, generator=generator, collate_fn=_Batch.of)


class _Batch(list[Tensor]):
    """[inputs, labels], which are found by name too: `batch["image"]`, `batch["label"]`."""

    @staticmethod
    def of(samples: list[tuple[Tensor, ...]]) -> _Batch:
        """A batch from single points."""
        return _Batch(default_collate(samples))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key not in _PLACES:
            raise KeyError(f"{key!r}: a batch is (inputs, labels), by name {', '.join(map(repr, _PLACES))}")
        return super().__getitem__(_PLACES[key] if isinstance(key, str) else key)


class _Served(TensorDataset):
    """Counts the examples it hands out."""

    def __init__(self, *tensors: Tensor) -> None:
        super().__init__(*tensors)
        self.n_served = 0

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        self.n_served += 1
        item: tuple[Tensor, ...] = super().__getitem__(index)  # type: ignore[no-untyped-call]
        return item


@contextmanager
def seeded_globally(for_torch: int, for_numpy: int, for_python: int) -> Iterator[None]:
    """The three global generators under these seeds; afterwards they are as they were."""
    pythons, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002 (other people's code draws from it)
    with torch.random.fork_rng(devices=[]):
        try:
            torch.manual_seed(for_torch)
            np.random.seed(for_numpy % 2**32)  # noqa: NPY002
            random.seed(for_python)
            yield
        finally:
            random.setstate(pythons)
            np.random.set_state(numpys)  # noqa: NPY002


def _as_given(net: nn.Module, model: nn.Module) -> nn.Module:
    """Where the model was, in eval mode, and no parameter left frozen that was not."""
    trainable = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(trainable.get(name, True))
        parameter.grad = None
    first = next(model.parameters(), None)
    placed: nn.Module = net.to(first.device if first is not None else "cpu").eval()
    return cast(nn.Module, answering_like(placed, model))


def _name(function: Any) -> str:
    return str(attribute(function, "__name__", type(function).__name__))
