"""Many requests of one method at once: what the methods share where the requests' models are one stack.

A method brings a function that moves all members of a stack. Where the models or the function are `NotStackable`, each
request is answered alone. Orders, labels and noise come from the same streams either way, so a model differs by
rounding only (and on a GPU by the learner's precision, in which a stack computes). `Passes` is the descent that most
methods are, of one model or of all members of a stack.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Positions, Steps, batch_positions, batches_per_epoch, descend, own_randomness
from forgetgauge.learn.device import products_in
from forgetgauge.learn.stacked.members import NotStackable, check_alike, own_labels
from forgetgauge.learn.stacked.records import LoraStack, record_stack
from forgetgauge.learn.stacked.traced import Precision, TracedStack
from forgetgauge.learn.stacked.trainer import AfterStep, Descent, Feed, Stack, batches_of, rectangle
from forgetgauge.models.causal_lm import RecordModel
from forgetgauge.models.head import head_of
from forgetgauge.unlearn.unlearner import Context, Request, Unlearner, one_by_one

DEVICES: tuple[str, ...] = ("cuda",)
"""Where stacks are made: their kernels are for a GPU. On a CPU they work too, which is how they are tested."""

FEATURES_AT_ONCE = 256

Stacked = Callable[[Any, Sequence[Request]], list[nn.Module]]
"""Moves the members of a stack, which are copies of the requests' models, and returns them."""


def unlearn_stacked(
    requests: Sequence[Request],
    unlearner: Unlearner,
    stacked: Stacked,
    precision: Precision | None = None,
    *,
    of_records: bool = False,
    of_originals: bool = False,
) -> list[nn.Module]:
    """By `stacked` where the models can be one stack, else one after another; `of_records` where it moves stacks of
    language models too, `of_originals` where it wants each model that is asked about once."""
    with suppress(NotStackable):
        if of_records and len(requests) > 1 and isinstance(requests[0].model, RecordModel):
            return moved_records(requests, stacked)
        stack = stack_of(originals_of(requests)[0] if of_originals else requests, precision)
        done = [model.eval() for model in stacked(stack, requests)]
        for request in requests:
            request.context.engine = "traced"
        return done
    with products_of(requests, precision):
        return one_by_one(unlearner, requests)


def products_of(requests: Sequence[Request], precision: Precision | None = None) -> AbstractContextManager[None]:
    """What shipped methods compute in where they take one model after another: on a GPU in TF32's products where the
    learner trained in less than float32, as a stack would compute in the learner's precision; else in float32."""
    return products_in(tf32=bool(requests) and (precision or _precision_of(requests[0])) != "float32")


def originals_of(requests: Sequence[Request]) -> tuple[list[Request], list[int]]:
    """(A request for each model that is asked about with the same points, which of these each request is like):
    requests that differ in strength alone are about one model."""
    found: dict[tuple[int, bytes, bytes], int] = {}
    firsts, place = list[Request](), list[int]()
    for request in requests:
        about = id(request.model), request.retain.index.tobytes(), request.forget.index.tobytes()
        if about not in found:
            found[about] = len(firsts)
            firsts.append(request)
        place.append(found[about])
    return firsts, place


def moved_records(requests: Sequence[Request], stacked: Stacked) -> list[nn.Module]:
    """Language models moved by `stacked` as one stack, or alone as a stack of one; others are `NotStackable`."""
    _check_points(requests)
    models = [copy.deepcopy(r.model).eval() for r in requests]
    stack = record_stack(models, requests[0].retain, _precision_of(requests[0]))
    for request in requests:
        request.context.engine = "lora" if isinstance(stack, LoraStack) else "vmap" if len(requests) > 1 else "solo"
    with products_in(tf32=_precision_of(requests[0]) == "tf32"):
        return [model.eval() for model in stacked(stack, requests)]


def stack_of(requests: Sequence[Request], precision: Precision | None = None) -> TracedStack:
    """Of copies of the requests' models, in the learner's precision unless another is named."""
    if not requests:
        raise NotStackable("nothing is requested")
    if requests[0].retain.device.type not in DEVICES:
        raise NotStackable("the kernels are for a GPU")
    _check_points(requests)
    _check_models([r.model for r in requests])
    return TracedStack([copy.deepcopy(r.model) for r in requests], precision or _precision_of(requests[0]))


def _check_points(requests: Sequence[Request]) -> None:
    """One tensor of inputs for all of them, and for each request one version of the labels, whichever it is."""
    first = requests[0].retain
    for r in requests:
        for p in (r.retain, r.forget):
            if p.whole_inputs is not first.whole_inputs or p.scaling != first.scaling:
                raise NotStackable("the points are of different data sets")
            if p.whole_labels is not r.retain.whole_labels:
                raise NotStackable("the points to keep and those to forget are labelled differently")


def _check_models(models: Sequence[nn.Module]) -> None:
    """One graph serves them all, and every weight may move: a stack has no frozen weights, and no doubles."""
    shapes = [[(name, p.shape, p.device) for name, p in model.named_parameters()] for model in models]
    if any(other != shapes[0] for other in shapes):
        raise NotStackable("the models are of different architectures")
    check_alike(models)
    if not all(p.requires_grad and p.dtype == torch.float32 for model in models for p in model.parameters()):
        raise NotStackable("some parameters are frozen, or not float32")


def _precision_of(request: Request) -> Precision:
    """The learner's where it has one; a CPU computes in float32."""
    wanted: Precision = getattr(request.context.learner, "precision", "float32")
    return wanted if request.retain.device.type == "cuda" and wanted in get_args(Precision) else "float32"


# -- descents ----------------------------------------------------------------------------------------------------------


def descended(
    stack: Stack,
    parts: Sequence[Points],
    feeds: Sequence[Feed],
    steps: Steps,
    *,
    batch_size: int,
    train: bool,
    sign: float = 1.0,
    after_step: AfterStep | None = None,
) -> list[nn.Module]:
    """The members after their feeds, whose batches are of these parts; with `train`, batch norms moved too."""
    widest = min(batch_size, max(len(part) for part in parts))
    Descent(stack, parts[0], feeds, steps, batch_size=widest, train=train, sign=sign, after_step=after_step).run()
    return stack.members([feed.n_steps for feed in feeds] if train else None)


@dataclass(frozen=True)
class Passes:
    """So many passes over one part of the data: how often, in what batches, and by which steps.

    Orders and dropout come from the streams of the request either way, and the gradients are counted in its context.
    """

    epochs: int
    batch_size: int
    steps: Steps

    def alone(
        self, loss: Callable[[Tensor], Tensor], parameters: Iterable[Tensor], part: Points, context: Context
    ) -> None:
        """Minimise `loss(positions in the part)`, changing the parameters in place."""
        with own_randomness(context.streams):
            descend(loss, parameters, self._order(part, context), self.steps, n_steps=self._n_steps(part))
        context.n_gradients += self.epochs * len(part)

    def stacked(
        self,
        stack: Stack,
        requests: Sequence[Request],
        parts: Sequence[Points],
        *,
        train: bool,
        sign: float = 1.0,
        labels: Sequence[Positions] | None = None,
        by_rate: bool = False,
    ) -> list[nn.Module]:
        """Minimise sign · (mean loss of a batch), each member over its own part; the members come back.

        `labels` are (n,) for each part, where others are to be learnt than the part's own. With `by_rate` the rate is
        the method's strength, of which each request may have its own.
        """
        feeds = []
        for k, (request, part) in enumerate(zip(requests, parts, strict=True)):
            batches = batches_of(part, self._order(part, request.context), None if labels is None else labels[k])
            feeds.append(Feed(batches, self._n_steps(part), lr=request.strength if by_rate else None))
            request.context.n_gradients += self.epochs * len(part)
        return descended(stack, parts, feeds, self.steps, batch_size=self.batch_size, train=train, sign=sign)

    def _order(self, part: Points, context: Context) -> Iterator[Positions]:
        return batch_positions(len(part), self.batch_size, self.epochs, context.streams.generator("order"))

    def _n_steps(self, part: Points) -> int:
        return self.epochs * batches_per_epoch(len(part), self.batch_size)


# -- gradients and features --------------------------------------------------------------------------------------------


def stacked_gradients(
    stack: TracedStack, points: Sequence[Points], batches: Sequence[Sequence[Positions]]
) -> Iterator[Tensor]:
    """(K, P) for each place in the members' lists: the gradient of that batch's summed loss, in eval mode.

    `points` is for each member any part of its data, with the labels it was taught. 0 for a member whose list has
    ended. The tensor is the stack's own, and overwritten by the next.
    """
    nothing, labels = np.zeros(0, dtype=np.int64), own_labels(points)
    for place in range(max(len(own) for own in batches)):
        here = [own[place] if place < len(own) else nothing for own in batches]
        at, n_valid = rectangle(here, stack.device)
        outputs, tape = stack.forward(points[0].inputs_at(at), n_valid, keep=True)
        valid = torch.arange(at.shape[1], device=stack.device) < n_valid[:, None]
        stack.backward(tape, points[0].task.loss_gradient(outputs, labels(at)) * valid[..., None])
        del tape  # or it would stand beside the next
        yield stack.gradient


def stacked_features(stack: TracedStack, parts: Sequence[Points]) -> Tensor:
    """(Σ n, d) what the head is given, in eval mode: the points of the first member's part, then the second's, …"""
    last: Any = stack.steps[-1]
    model = stack.models[0]
    head = next(name for name, module in model.named_modules() if module is head_of(model))
    if getattr(last, "weight", None) is not stack.slots[f"{head}.weight"]:
        raise NotStackable("its head is not its last layer")
    at, _ = rectangle([part.index for part in parts], stack.device)
    caught = []
    for some in torch.split(at, FEATURES_AT_ONCE, dim=1):
        _, tape = stack.forward(parts[0].inputs_at(some))
        caught.append(tape.read(last.reads).float())
    features = torch.cat(caught, dim=1)  # (K, longest, d)
    return torch.cat([features[k, : len(part)] for k, part in enumerate(parts)])
