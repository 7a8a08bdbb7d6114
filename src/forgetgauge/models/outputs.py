"""What users' models give back, as plain outputs: whatever else calls a model may rely on a tensor (n, n_outputs).

A model may give an object with `.logits`, a mapping with "logits", a tuple that begins with them, or a tensor of
another shape that the task understands, as one logit a point is for two classes. A forward hook on the model itself
puts these right, so that its class, its parameters' names and its last layer stay what the user wrote; a model that
gives plain outputs is left alone. The user's own unlearning methods see the model without the hook.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from forgetgauge.errors import UserError
from forgetgauge.probing import attribute
from forgetgauge.tasks.task import Task

_NOISE = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0) * 2
"""Of weights, in multiples of their own size, by which a sigmoid is told from logits that only start in [0, 1]."""


class _ToPlainOutputs:
    """The hook."""

    def __init__(self, task: Task, n_outputs: int) -> None:
        self.task, self.n_outputs = task, n_outputs

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Tensor:
        found = _tensor_in(output)
        if found is None:
            raise TypeError(f"{type(module).__name__} gave a {type(output).__name__}, in which there are no logits")
        rows = found if found.dim() else found.reshape(1)  # of one point, squeezed
        plain = self.task.plain_outputs(rows, len(rows), self.n_outputs)
        return found if plain is None else plain


def n_tried(n_outputs: int) -> int:
    """How many points a model is tried on: never as many as it has outputs, so that rows and columns differ."""
    return 3 if n_outputs != 3 else 4


def with_plain_outputs(name: str, model: nn.Module, x: Tensor, task: Task, n_outputs: int) -> nn.Module:
    """The model, with the hook where its answers on x (n, …) need it; refused in one line where nothing helps."""
    first = next(model.parameters(), None)
    x = x.to(first.device if first is not None else "cpu")
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        _answer(name, model.eval(), x)  # lazy layers take their shapes, and draw their weights, on the first call
    answers = [_answer(name, copy.deepcopy(model).train(mode), x) for mode in (False, True)]
    for answer, training in zip(answers, (False, True), strict=True):
        found = _checked(name, answer, len(x), task, n_outputs)
        if task.has_classes and _within_one(found):
            _refuse_probabilities(name, copy.deepcopy(model).train(training), x, found)
    if not all(isinstance(answer, Tensor) and answer.shape == (len(x), n_outputs) for answer in answers):
        model.register_forward_hook(_ToPlainOutputs(task, n_outputs))
    return model


@contextmanager
def as_written(model: nn.Module) -> Iterator[None]:
    """The model as its author wrote it, without the hook."""
    hooks = {key: hook for key, hook in model._forward_hooks.items() if isinstance(hook, _ToPlainOutputs)}
    for key in hooks:
        del model._forward_hooks[key]
    try:
        yield
    finally:
        model._forward_hooks.update(hooks)


def answering_like(result: Any, model: nn.Module) -> Any:
    """What a user's method made of a model, with that model's hook, where it had one."""
    hooks, own = (
        [hook for hook in getattr(one, "_forward_hooks", {}).values() if isinstance(hook, _ToPlainOutputs)]
        for one in (model, result)
    )
    if hooks and not own and isinstance(result, nn.Module):
        result.register_forward_hook(copy.copy(hooks[0]))
    return result


def has_hooks(model: nn.Module) -> bool:
    """Whether a trace of the layers would not be all that the model does."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def _tensor_in(output: Any) -> Tensor | None:
    if isinstance(output, Tensor):
        return output
    found = attribute(output, "logits")
    if found is None and isinstance(output, Mapping):
        found = output.get("logits")
    if found is None and isinstance(output, tuple | list) and output:
        found = output[0]
    return found if isinstance(found, Tensor) else None


def _answer(name: str, model: nn.Module, x: Tensor) -> Any:
    try:
        with torch.no_grad():
            return model(x)
    except Exception as error:  # whatever a model of the user's raises
        line = (str(error).splitlines() or [""])[0]
        shape, kind = tuple(x.shape), str(x.dtype).removeprefix("torch.")
        raise UserError(
            f"model '{name}' cannot be given points of the data, {shape} {kind}: {type(error).__name__}: {line}"
        ) from error


def _checked(name: str, answer: Any, n: int, task: Task, n_outputs: int) -> Tensor:
    """The outputs of each point in an answer; refused where there are none."""
    found = _tensor_in(answer)
    if found is None:
        raise UserError(
            f"model '{name}' gives a {type(answer).__name__}, in which there are no logits: it should give a tensor "
            "(n, n_classes), a tuple that begins with one, or an object with .logits"
        )
    if not found.is_floating_point():
        raise UserError(f"model '{name}' gives {str(found.dtype).removeprefix('torch.')}, not floating-point logits")
    if task.plain_outputs(found, n, n_outputs) is None:
        raise UserError(f"model '{name}'{task.why_unfit(found, n, n_outputs)}")
    return found


def _refuse_probabilities(name: str, model: nn.Module, x: Tensor, found: Tensor) -> None:
    """A sigmoid or a softmax at the end keeps to [0, 1] whatever the weights are; logits do so for a few by chance.

    A last layer that starts at zero answers 0 (or its bias) to everything, but with other weights it leaves [0, 1].
    ``found`` is what the model, a copy to be spoilt, gave on x.
    """
    generator, seen = torch.Generator().manual_seed(0), []
    weights = [(weight, weight.detach().clone()) for weight in model.parameters() if weight.numel()]
    for size in _NOISE:
        for weight, start in weights:
            own = max(0.1, float(start.float().square().mean().sqrt()))
            weight.data = start + size * own * torch.randn(start.shape, generator=generator).to(start)
        try:
            answer = _tensor_in(_answer(name, model, x))
        except UserError:  # it checks its own numbers: nothing is shown
            return
        if answer is None or not _within_one(answer):
            return
        if answer.isfinite().all():
            seen.append(answer)
    if len(seen) < len(_NOISE) // 2 or all(torch.equal(answer, found) for answer in seen):
        return  # too few answers are numbers, or the weights have no part in them: nothing is shown
    of_rows = found.dim() == 2 and found.shape[1] > 1 and bool((found.float().sum(1) - 1).abs().max() < 1e-2)
    raise UserError(
        f"model '{name}' gives probabilities (its outputs lie in [0, 1] whatever its weights are), but logits are "
        f"needed: leave out the {'softmax' if of_rows else 'sigmoid'} at its end"
    )


def _within_one(outputs: Tensor) -> bool:
    """Whether no output lies outside [0, 1]; what is not a number says nothing."""
    return not bool(((outputs < 0) | (outputs > 1)).any())
