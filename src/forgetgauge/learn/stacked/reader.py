"""From the graph of a model to the steps that a stack of such models computes, read node by node."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.learn.stacked.convolution import BatchNorm, ConvNorm
from forgetgauge.learn.stacked.group_norm import Groups
from forgetgauge.learn.stacked.members import NotStackable
from forgetgauge.learn.stacked.patches import window_of
from forgetgauge.learn.stacked.steps import GroupNorm, Linear, Other, Shortcut, Slot, Step
from forgetgauge.models.resnet import PadShortcut

if TYPE_CHECKING:
    from forgetgauge.learn.stacked.traced import TracedStack


def flatten(x: Tensor) -> Tensor:
    """(K, B, …, C) -> (K, B, C · …), in the order of a model alone."""
    return x.movedim(-1, 2).flatten(2)


def average(x: Tensor) -> Tensor:
    """(K, B, H, W, C) -> (K, B, 1, 1, C) float32."""
    return x.float().mean((2, 3), keepdim=True)


def max_pool(module: nn.MaxPool2d) -> Callable[[Tensor], Tensor]:
    """Members and examples are one batch to it."""

    def pool(x: Tensor) -> Tensor:
        k, n = x.shape[:2]
        pooled: Tensor = module(x.flatten(0, 1).permute(0, 3, 1, 2))
        return pooled.permute(0, 2, 3, 1).reshape(k, n, *pooled.shape[2:], pooled.shape[1])

    return pool


class Reader:
    """From a traced graph to steps; a batch norm, an addition and a ReLU that follow a convolution join its step."""

    def __init__(self, stack: TracedStack, graph: torch.fx.GraphModule) -> None:
        self.stack, self.graph = stack, graph
        self.steps: list[Step] = []
        self.maker: dict[str, Step] = {}
        self.alias: dict[str, str] = {}

    def read(self) -> list[Step]:
        for node in self.graph.graph.nodes:
            if node.op == "output":
                self._check_output(node)
            elif node.op != "placeholder":
                self._read(node)
        return self.steps

    def _check_output(self, node: torch.fx.Node) -> None:
        """The logits are what the last step makes."""
        made = node.args[0]
        name = self.alias.get(made.name, made.name) if isinstance(made, torch.fx.Node) else ""
        if not self.steps or name != self.steps[-1].makes:
            raise NotStackable("its output is not the one tensor that its last part makes")

    def _read(self, node: torch.fx.Node) -> None:
        by_name = set(node.kwargs.items()) - {("inplace", False)}
        if by_name or not node.args or not isinstance(node.args[0], torch.fx.Node):
            raise NotStackable(f"{node.name} reads no tensor first, or is given arguments by name")
        reads = [self.alias.get(arg.name, arg.name) for arg in node.args if isinstance(arg, torch.fx.Node)]
        if node.op == "call_module":
            name = str(node.target)
            self._module(node, name, self.graph.get_submodule(name), reads[0])
        elif node.op == "call_function" and node.target in (operator.add, torch.add) and len(reads) == 2:
            self._addition(node, reads)
        elif node.op == "call_function" and node.target in (F.relu, torch.relu):
            self._relu(node, reads[0])
        elif node.op == "call_function" and node.target is torch.flatten and node.args[1:] == (1,):
            self._other(node, reads, flatten)
        else:
            raise NotStackable(f"{node.op} {node.target} is not known to the engine")

    def _module(self, node: torch.fx.Node, name: str, module: nn.Module, reads: str) -> None:
        match module:
            case nn.Conv2d():
                self._append(self._convolution(node, name, module, reads))
            case nn.BatchNorm2d():
                self._batch_norm(node, name, module, reads)
            case nn.GroupNorm() if module.affine:
                groups = Groups(module.num_groups, module.eps)
                self._append(GroupNorm(reads, node.name, groups, *self._slots(name, module, "weight", "bias")))
            case nn.ReLU():
                if module.inplace and self._n_users(reads) > 1:
                    raise NotStackable(f"{name} changes a tensor in place that is read elsewhere")
                self._relu(node, reads)
            case nn.Linear():
                slots = self._slots(name, module, "weight")
                bias = self._slots(name, module, "bias")[0] if module.bias is not None else None
                self._append(Linear(reads, node.name, slots[0], bias))
            case nn.Flatten() if module.start_dim == 1 and module.end_dim == -1:
                self._other(node, [reads], flatten)
            case nn.AdaptiveAvgPool2d() if module.output_size in (1, (1, 1)):
                self._other(node, [reads], average)
            case nn.MaxPool2d() if module.dilation == 1 and not module.return_indices:
                self._other(node, [reads], max_pool(module))
            case nn.Identity():
                self.alias[node.name] = reads
            case nn.Dropout() if module.p == 0:
                self.alias[node.name] = reads
            case PadShortcut():
                side = (module.channels_out - module.channels_in) // 2
                self._append(Shortcut(reads, node.name, module.stride, side))
            case _:
                raise NotStackable(f"{name} is a {type(module).__name__}, which is not known to the engine")

    def _convolution(self, node: torch.fx.Node, name: str, module: nn.Conv2d, reads: str) -> ConvNorm:
        window = window_of(name, module)
        if len({*window.stride}) > 1 or len({*window.padding}) > 1:
            raise NotStackable(f"{name} is a convolution whose strides or paddings differ by direction")
        weight = self.stack.add_slot(f"{name}.weight", module.weight, (2, 3, 1, 0))
        bias = self.stack.add_slot(f"{name}.bias", module.bias) if module.bias is not None else None
        return ConvNorm(reads, node.name, window, weight, bias)

    def _batch_norm(self, node: torch.fx.Node, name: str, module: nn.BatchNorm2d, reads: str) -> None:
        before = self.maker.get(reads)
        bare = isinstance(before, ConvNorm) and before.norm is None and before.residual is None and not before.relu
        if not bare or before.bias is not None or self._n_users(reads) > 1:  # type: ignore[union-attr]
            raise NotStackable(f"{name} does not follow a convolution without bias")
        if not module.affine or not module.track_running_stats or module.momentum is None:
            raise NotStackable(f"{name} has no scale, no running statistics or no momentum")
        assert isinstance(before, ConvNorm)
        gamma, beta = self._slots(name, module, "weight", "bias")
        self.stack.add_statistics(name)
        before.norm = BatchNorm(name, gamma, beta, module.momentum, module.eps)
        self._rename(before, node.name)

    def _addition(self, node: torch.fx.Node, reads: list[str]) -> None:
        """Joins the latest convolution it reads, if nothing else reads that one; later steps then come before it."""
        order = {step.makes: place for place, step in enumerate(self.steps)}
        for mine, other in (reads, reads[::-1]):
            step = self.maker.get(mine)
            joins = isinstance(step, ConvNorm) and step.residual is None and not step.relu
            if joins and mine != other and self._n_users(mine) == 1:
                assert isinstance(step, ConvNorm)
                if order.get(other, -1) > order[mine]:  # the other summand is made later: wait for it
                    self.steps.remove(step)
                    self.steps.append(step)
                step.residual = other
                self._rename(step, node.name)
                return
        self._other(node, reads, operator.add)

    def _relu(self, node: torch.fx.Node, reads: str) -> None:
        step = self.maker.get(reads)
        if isinstance(step, ConvNorm) and not step.relu and self._n_users(reads) == 1:
            step.relu = True
            self._rename(step, node.name)
        else:
            self._other(node, [reads], torch.relu)

    def _other(self, node: torch.fx.Node, reads: Sequence[str], function: Callable[..., Tensor]) -> None:
        self._append(Other(tuple(reads), node.name, function))

    def _slots(self, name: str, module: nn.Module, *which: str) -> tuple[Slot, ...]:
        return tuple(self.stack.add_slot(f"{name}.{part}", getattr(module, part)) for part in which)

    def _append(self, step: Step) -> None:
        self.steps.append(step)
        self.maker[step.makes] = step

    def _rename(self, step: Step, name: str) -> None:
        del self.maker[step.makes]
        step.makes = name
        self.maker[name] = step

    def _n_users(self, name: str) -> int:
        """How many parts read a value, directly or through something that passes it on as it is."""

        def count(node: torch.fx.Node) -> int:
            return sum(count(user) if self._passes_on(user) else 1 for user in node.users)

        return next(count(node) for node in self.graph.graph.nodes if node.name == name)

    def _passes_on(self, node: torch.fx.Node) -> bool:
        if node.op != "call_module":
            return False
        module = self.graph.get_submodule(str(node.target))
        return isinstance(module, nn.Identity) or (isinstance(module, nn.Dropout) and module.p == 0)
