"""Making a model of a name with weights that depend on nothing but a seed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.errors import UserError, unknown_name


def build_model(
    name: str, params: Mapping[str, Any], input_shape: tuple[int, ...], n_classes: int, seed: int
) -> nn.Module:
    """`factory(input_shape, n_classes, **params)` under its own seed; torch's global generator is left as it was."""
    factory = plugins.models.load(name)
    check_params(name, factory, params)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
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
