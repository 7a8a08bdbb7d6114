"""Making a model of a name with weights that depend on nothing but a seed."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.models.outputs import n_tried, with_plain_outputs
from forgetgauge.plugins.catalogue import call_by_name
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

COUNTS = {"n_outputs", "n_classes", "num_classes"}
"""Names of a factory's parameter that is given the number of outputs."""
_ONE_AT_A_TIME = threading.RLock()
"""Torch has one generator for all threads: whoever seeds it must not be disturbed before the weights are drawn."""


@contextmanager
def torch_seeded(seed: int) -> Iterator[None]:
    """Torch's global generators begin at a seed, and are left as they were."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() and torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with _ONE_AT_A_TIME:
        states = torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in devices]
        (torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed)(seed)
    try:
        yield
    finally:
        with _ONE_AT_A_TIME:
            torch.set_rng_state(states[0])
            for device, state in zip(devices, states[1], strict=True):
                torch.cuda.set_rng_state(state, device)


def build_for(points: Points, name: str, params: Mapping[str, Any], seed: int) -> nn.Module:
    """An untrained model for such points, where they are; of the user's own, one that is known to give logits."""
    shape = tuple(points.whole_inputs.shape[1:])
    tried_on = None if name in plugins.models.entries else few_of(points)
    model = build_model(name, params, shape, points.n_outputs, seed, tried_on, points.task).to(points.device)
    if name in plugins.models.entries and not points.are_numbers and not any(map(_takes_ids, model.modules())):
        raise UserError(
            f"model '{name}' takes real numbers, but whole numbers are taken for token ids: give floats, as "
            "x.astype('float32')"
        )
    refuse: Any = getattr(model, "refuse", None)
    if seed == 0 and refuse is not None:  # a mould, of which there is one before anything is trained
        refuse(points.whole_inputs)
    return model


def _takes_ids(part: nn.Module) -> bool:
    return isinstance(part, nn.Embedding)


def few_of(points: Points) -> Tensor:
    """Inputs to try a model on: their shape counts, not which they are."""
    return points.inputs_at(torch.arange(n_tried(points.n_outputs)) % len(points.whole_inputs))


def build_model(
    name: str,
    params: Mapping[str, Any],
    input_shape: tuple[int, ...],
    n_outputs: int,
    seed: int,
    tried_on: Tensor | None = None,
    task: Task = CLASSIFICATION,
) -> nn.Module:
    """The model that a name stands for, under its own seed; torch's global generator is left as it was.

    A class or a function is called with what it asks for: `factory(input_shape, n_outputs, **params)`,
    `factory(n_outputs, **params)`, `factory(**params)`. A module that is made already is the initial state, and copied.
    """
    thing = plugins.models.load(name)
    name = name.partition("@")[0] if plugins.models.is_bound(name) else name  # people need not see the digest
    with _ONE_AT_A_TIME, torch_seeded(seed):
        model = _copied(name, _made(name, thing, params, input_shape, n_outputs))
        return model if tried_on is None else with_plain_outputs(name, model, tried_on, task, n_outputs)


def _made(name: str, thing: Any, params: Mapping[str, Any], input_shape: tuple[int, ...], n_outputs: int) -> Any:
    if isinstance(thing, nn.Module):
        if params:
            raise UserError(f"model '{name}' is a module that is made already: it takes no model_params")
        return thing
    if not callable(thing):
        raise UserError(
            f"model '{name}' is a {type(thing).__name__}, neither a torch module nor something that makes one"
        )
    args, by_name = _arguments(name, thing, params, input_shape, n_outputs)
    try:
        return thing(*args, **by_name) if args else call_by_name(thing, by_name)
    except UserError:
        raise
    except Exception as error:  # whatever a model of the user's raises
        raise UserError(f"model '{name}': {(str(error).splitlines() or [type(error).__name__])[0]}") from error


def _copied(name: str, model: Any) -> nn.Module:
    """A model of its own: a module that is made already, or that a factory hands out twice, is trained once only."""
    if not isinstance(model, nn.Module):
        raise UserError(f"model '{name}' made a {type(model).__name__}, not a torch module")
    if name in plugins.models.entries:
        return model
    try:
        own = copy.deepcopy(model)
    except Exception as error:  # whatever it holds
        raise UserError(f"model '{name}' cannot be copied: {(str(error).splitlines() or [''])[0]}") from error
    own.zero_grad(set_to_none=True)
    return own


def _arguments(
    name: str, factory: Any, params: Mapping[str, Any], input_shape: tuple[int, ...], n_outputs: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What to call it with, by place or by name: `input_shape`, and `n_outputs`, `n_classes` or `num_classes`, go by
    these names, else to its required parameters in this order. A key that it does not have is refused, naming the
    nearest one."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # written in C
        return (input_shape, n_outputs), dict(params)
    kinds = {p.kind for p in signature.parameters.values()}
    named = {key: p for key, p in signature.parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    known = {"input_shape": input_shape, **dict.fromkeys(COUNTS, n_outputs)}
    given = {key: value for key, value in known.items() if key in named and key not in params}
    told = {*given, *params}
    required = [key for key, p in named.items() if p.default is p.empty and key not in told]
    untold: list[Any] = [] if "input_shape" in told else [input_shape]
    untold += [] if told & COUNTS else [n_outputs]
    if len(required) == len(untold):
        given |= zip(required, untold, strict=True)
    unknown = [key for key in params if key not in named]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        valid = [key for key in named if key not in given]
        raise UserError(f"model '{name}': " + unknown_name("key", unknown[0], valid))
    missing = [key for key in required if key not in given]
    if missing:
        raise UserError(
            f"model '{name}': nothing is known to give its parameter '{missing[0]}': set model_params.{missing[0]}, or "
            "let it take (input_shape, n_outputs), (n_outputs) or nothing"
        )
    if not given and inspect.Parameter.VAR_POSITIONAL in kinds:
        return (input_shape, n_outputs), dict(params)
    return (), {**given, **params}
