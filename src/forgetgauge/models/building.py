"""Making a model of a name with weights that depend on nothing but a seed."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.errors import UserError, unknown_name

_ONE_AT_A_TIME = threading.RLock()
"""Torch has one generator for all threads: whoever seeds it must not be disturbed before the weights are drawn."""


@contextmanager
def torch_seeded(seed: int) -> Iterator[None]:
    """Torch's global generators begin at a seed, and are left as they were."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() and torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with _ONE_AT_A_TIME:
        states = torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in devices]
        torch.manual_seed(seed)
    try:
        yield
    finally:
        with _ONE_AT_A_TIME:
            torch.set_rng_state(states[0])
            for device, state in zip(devices, states[1], strict=True):
                torch.cuda.set_rng_state(state, device)


def build_model(
    name: str, params: Mapping[str, Any], input_shape: tuple[int, ...], n_classes: int, seed: int
) -> nn.Module:
    """`factory(input_shape, n_classes, **params)` under its own seed; torch's global generator is left as it was."""
    factory = plugins.models.load(name)
    check_params(name, factory, params)
    with _ONE_AT_A_TIME, torch_seeded(seed):
        try:
            model = factory(input_shape, n_classes, **params)
        except (TypeError, ValueError) as error:
            raise UserError(f"model '{name}': {error}") from error
    if not isinstance(model, nn.Module):
        raise UserError(f"model '{name}' made a {type(model).__name__}, not a torch module")
    return model


def check_params(name: str, factory: Any, params: Mapping[str, Any]) -> None:
    """Refuse a parameter the model does not have, naming the nearest one."""
    signature = inspect.signature(factory).parameters
    if any(p.kind is p.VAR_KEYWORD for p in signature.values()):
        return
    for key in params:
        if key not in signature:
            raise UserError(f"model '{name}': " + unknown_name("key", key, list(signature)[2:]))
