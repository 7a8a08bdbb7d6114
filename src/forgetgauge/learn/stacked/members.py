"""What the members of a stack must have in common, and what each has of its own.

Members are models of one architecture on one data set. They share the tensor of inputs; each may have been taught
labels of its own. What cannot be stacked is refused by `NotStackable`, which is caught where it is decided whether
models are made one by one or as a stack.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec

import torch
import torch.fx
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.models.outputs import has_hooks
from forgetgauge.models.resnet import PadShortcut
from forgetgauge.streams import Streams

_Arguments = ParamSpec("_Arguments")


class NotStackable(Exception):
    """Models cannot be members of one stack; `reason` says why, in one line for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_against(
    attempt: Callable[_Arguments, object], *arguments: _Arguments.args, **named: _Arguments.kwargs
) -> str | None:
    """Whether something can be stacked: None where the attempt succeeds, else the reason of its `NotStackable`."""
    try:
        attempt(*arguments, **named)
    except NotStackable as refusal:
        return refusal.reason
    return None


def check_points(points: Sequence[Points]) -> None:
    """Refuse points on which models cannot be members of one stack, whatever their architecture."""
    first = points[0]
    if any(p.whole_inputs is not first.whole_inputs for p in points):
        raise NotStackable("the points are of different data sets")
    if any(p.whole_labels is not first.whole_labels and p.n_outputs != first.n_outputs for p in points):
        raise NotStackable("the points have different numbers of classes")


def check_alike(models: Sequence[nn.Module]) -> None:
    """Refuse models that one graph does not serve: a batch and a group norm have equal parameters, but print apart."""
    if len({str(model) for model in models}) > 1:
        raise NotStackable("the models are of different architectures")


def own_labels(points: Sequence[Points]) -> Callable[[Tensor], Tensor]:
    """(K, B) positions in the whole data set -> (K, B) labels, each row by its member's own version of them.

    Where all members share one version, nothing is copied; else the versions are laid out as one (K, n_all) table, so
    that a step is one operation however many there are.
    """
    whole = points[0].whole_labels
    if all(p.whole_labels is whole for p in points):
        return lambda at: whole[at]
    table = torch.stack([p.whole_labels for p in points])
    return lambda at: table.gather(1, at.to(table.device))


def fit_alike(
    keys: Sequence[int],
    points: Sequence[Points],
    streams: Sequence[Streams],
    fit: Callable[[Sequence[Points], Sequence[Streams]], list[nn.Module]],
) -> list[nn.Module]:
    """Fit the members with equal keys at once, key by key; the models in the order of the points."""
    fitted: dict[int, nn.Module] = {}
    for key in sorted(set(keys)):
        members = [i for i, own in enumerate(keys) if own == key]
        fitted.update(zip(members, fit([points[i] for i in members], [streams[i] for i in members]), strict=True))
    return [fitted[i] for i in range(len(points))]


@torch.no_grad()
def unstack(models: Sequence[nn.Module], stacked: Mapping[str, Tensor]) -> list[nn.Module]:
    """The models, each with its slice of the parameters and buffers that are stacked, (K, *shape) by name."""
    own = [dict(itertools.chain(model.named_parameters(), model.named_buffers())) for model in models]
    for name, tensor in stacked.items():
        torch._foreach_copy_([named[name] for named in own], list(tensor.unbind()))  # one call for all members
    return list(models)


class _Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, PadShortcut) or super().is_leaf_module(m, module_qualified_name)


def trace(model: nn.Module) -> torch.fx.GraphModule:
    """The graph of a model with one input, which all members share."""
    if has_hooks(model):
        raise NotStackable("it has forward hooks, which torch.fx does not see")
    try:
        graph = torch.fx.GraphModule(model, _Tracer().trace(model))
    except Exception as error:  # fx raises many kinds
        raise NotStackable(f"torch.fx cannot trace it: {str(error).splitlines()[0]}") from None
    if sum(node.op == "placeholder" for node in graph.graph.nodes) != 1:
        raise NotStackable("its forward takes more than one argument")
    return graph
