"""All of a model's tensors from a GPU to the host and back, in one piece of each type.

A model of a hundred tensors takes a hundred small copies else, and each waits for its turn on a GPU that others use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

GPU = "cuda"
Arrays = dict[str, npt.NDArray[Any]]
Model = TypeVar("Model", bound=nn.Module)


def weights_of(model: nn.Module) -> Arrays:
    """All of a model's state as arrays."""
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    if all(tensor.device.type == "cpu" for tensor in state.values()):
        return {name: tensor.numpy() for name, tensor in state.items()}
    found: Arrays = {}
    for alike in _by_kind(state):
        flat = torch.cat([tensor.flatten() for tensor in alike.values()]).cpu().numpy()
        ends = np.cumsum([tensor.numel() for tensor in alike.values()])[:-1]
        parts = zip(alike.items(), np.split(flat, ends), strict=True)
        found |= {name: part.reshape(tensor.shape) for (name, tensor), part in parts}
    return {name: found[name] for name in state}


@torch.no_grad()
def pour_weights(model: nn.Module, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Arrays that `weights_of` gave into a model of the same architecture, which is put into eval mode."""
    state = model.state_dict()
    if _is_plain(model, state) and {name: tensor.shape for name, tensor in state.items()} == {
        name: array.shape for name, array in arrays.items()
    }:
        for alike in _by_kind(state):
            _fill(list(alike.values()), [torch.from_numpy(arrays[name]) for name in alike])
    else:  # which says what does not fit, or knows how to load what is no tensor of its own
        model.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    model.eval()


@torch.no_grad()
def sent(model: Model, device: torch.device) -> Model:
    """The model, of which the host has all tensors, on a GPU."""
    before = [tensor.detach() for tensor in _tensors_of(model)]
    model = model.to_empty(device=device)
    for alike in _by_kind(dict(enumerate(_tensors_of(model)))):
        _fill(list(alike.values()), [before[place] for place in alike])
    return model


def _fill(targets: list[Tensor], sources: list[Tensor]) -> None:
    """Copy tensors of the host into some of a GPU, all of one type."""
    flat = torch.cat([source.reshape(-1) for source in sources]).to(targets[0].device, targets[0].dtype)
    parts = torch.split(flat, [target.numel() for target in targets])
    torch._foreach_copy_(targets, [part.view(target.shape) for part, target in zip(parts, targets, strict=True)])


def _tensors_of(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def _by_kind(tensors: Mapping[Any, Tensor]) -> list[dict[Any, Tensor]]:
    """Those of one type on one device together."""
    found: dict[tuple[torch.dtype, torch.device], dict[Any, Tensor]] = {}
    for name, tensor in tensors.items():
        found.setdefault((tensor.dtype, tensor.device), {})[name] = tensor
    return list(found.values())


def _loads_plainly(module: nn.Module) -> bool:
    """Whether it loads as torch's own modules do, without hooks."""
    hooked = module._load_state_dict_pre_hooks or module._load_state_dict_post_hooks
    ways = (module.load_state_dict, module._load_from_state_dict)
    return not hooked and all(getattr(way, "__module__", "").startswith("torch.") for way in ways)


def _is_plain(model: nn.Module, state: Mapping[str, Any]) -> bool:
    """Whether its state is its parameters and buffers themselves, on a GPU, and to load it is to fill them: what a
    model makes up for its state, keeps elsewhere, or does besides when it is loaded, is its own to do."""
    own = {tensor.data_ptr() for tensor in _tensors_of(model)}
    return all(map(_loads_plainly, model.modules())) and all(
        isinstance(tensor, Tensor) and tensor.device.type == GPU and tensor.data_ptr() in own and tensor.numel() > 0
        for tensor in state.values()
    )
