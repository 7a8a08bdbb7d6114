"""A model's tensors in one piece of each type: what comes out is what went in, to the bit. On a CPU, not a GPU."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from forgetgauge.models import transfer
from forgetgauge.models.resnet import resnet20
from forgetgauge.models.small_cnn import SmallCNN
from forgetgauge.models.transfer import pour_weights, sent, weights_of


class Mixed(nn.Module):
    """Doubles, whole numbers, a buffer that is not stored, a weight that two layers share."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
        self.other.weight = self.one.weight
        self.wide = nn.Parameter(torch.randn(2, 2, dtype=torch.float64))
        self.register_buffer("count", torch.tensor(7))
        self.register_buffer("unstored", torch.randn(3), persistent=False)


class Empty(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.nothing, self.something = nn.Parameter(torch.zeros(0, 2)), nn.Parameter(torch.randn(2))


MODELS = {
    "resnet20": lambda: resnet20((3, 8, 8), 4),
    "small-cnn": lambda: SmallCNN((1, 8, 8), 4, norm="batch"),
    "mixed": Mixed,
    "channels last": lambda: resnet20((3, 8, 8), 4).to(memory_format=torch.channels_last),
    "weights made of others": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 2)), nn.BatchNorm1d(2)),
    "no tensors": nn.Identity,
    "an empty tensor": lambda: Empty(),
}


def stirred(model: nn.Module) -> nn.Module:
    """With weights and statistics that no model begins with."""
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.is_floating_point():
                tensor.add_(torch.randn_like(tensor).abs())
            else:
                tensor.add_(3)
    return model


@pytest.fixture
def cpu_is_gpu(monkeypatch):
    monkeypatch.setattr(transfer, "GPU", "cpu")


@pytest.mark.usefixtures("cpu_is_gpu")
@pytest.mark.parametrize("name", MODELS)
def test_weights_that_are_poured_are_those_that_were_taken(name):
    original, other = stirred(MODELS[name]()), stirred(MODELS[name]()).train()
    arrays = weights_of(original)
    assert list(arrays) == list(original.state_dict())
    pour_weights(other, {key: array.copy() for key, array in arrays.items()})
    assert not other.training
    for key, tensor in original.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[key])
        assert np.array_equal(arrays[key], tensor.numpy())


@pytest.mark.usefixtures("cpu_is_gpu")
def test_the_quick_way_is_taken_for_models_whose_state_is_their_own(monkeypatch):
    taken = []

    def noted(self, *given):
        taken.append(type(self).__name__)

    noted.__module__ = "torch.nn.modules.module"  # as the method has in whose place it stands
    monkeypatch.setattr(nn.Module, "_load_from_state_dict", noted)
    for name in ("resnet20", "mixed", "an empty tensor"):
        pour_weights(model := MODELS[name](), weights_of(copy.deepcopy(model)))
    assert taken == ["Empty"]


class Derived(nn.Module):
    """Keeps a number that it makes of its weight, anew whenever the weight is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("total", self.weight.detach().sum(), persistent=False)


def refresh(module, keys):
    module.total.copy_(module.weight.detach().sum())


class ByHook(Derived):
    def __init__(self) -> None:
        super().__init__()
        self.register_load_state_dict_post_hook(refresh)


class ByMethod(Derived):
    def load_state_dict(self, *given, **named):
        found = super().load_state_dict(*given, **named)
        self.total.copy_(self.weight.detach().sum())
        return found


class ByPart(Derived):
    def _load_from_state_dict(self, *given):
        super()._load_from_state_dict(*given)
        self.total.copy_(self.weight.detach().sum())


@pytest.mark.usefixtures("cpu_is_gpu")
@pytest.mark.parametrize("kind", [ByHook, ByMethod, ByPart])
def test_what_a_model_does_besides_when_it_is_loaded_is_done(kind):
    original, other = kind(), nn.Sequential(kind()) if kind is not ByMethod else kind()
    whole = nn.Sequential(original) if kind is not ByMethod else original
    pour_weights(other, weights_of(whole))
    inner = other if kind is ByMethod else other[0]
    assert torch.equal(inner.weight, original.weight)
    assert torch.equal(inner.total, original.weight.detach().sum())


@pytest.mark.usefixtures("cpu_is_gpu")
def test_what_does_not_fit_is_refused_by_name():
    arrays = weights_of(resnet20((3, 8, 8), 4))
    with pytest.raises(RuntimeError, match=r"size mismatch for head\.weight"):
        pour_weights(resnet20((3, 8, 8), 5), arrays)
    del arrays["head.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key.*head\.bias"):
        pour_weights(resnet20((3, 8, 8), 4), arrays)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_sent_keeps_every_tensor(name):
    model = stirred(MODELS[name]())
    before = copy.deepcopy(model)
    tensors = [*model.parameters(), *model.buffers()]
    gone = sent(model, torch.device("cpu"))
    assert gone is model
    after = [*gone.parameters(), *gone.buffers()]
    assert [type(tensor) for tensor in after] == [type(tensor) for tensor in tensors]
    wanted = [*before.parameters(), *before.buffers()]
    assert all(torch.equal(a, b) for a, b in zip(after, wanted, strict=True))
    assert all(a.requires_grad == b.requires_grad for a, b in zip(after, wanted, strict=True))


def test_weights_on_a_gpu_are_taken_in_one_piece_of_each_type():
    kinds = transfer._by_kind({**Mixed().state_dict(), "far": torch.zeros(2, device="meta")})
    assert [sorted(alike) for alike in kinds] == [
        ["wide"],
        ["count"],
        ["one.bias", "one.weight", "other.bias", "other.weight"],
        ["far"],
    ]
