import pytest
import torch
from torch import nn

from forgetgauge.errors import UserError
from forgetgauge.models.building import build_model
from forgetgauge.models.head import features_of, head_of
from tests.models.zoo import SHIPPED, params_of, points_for, shape_of


class Named(nn.Module):
    """A body, a head of a given name, and after it a linear layer that only training would use."""

    def __init__(self, name, bias=True):
        super().__init__()
        self.body = nn.Linear(6, 4)
        setattr(self, name, nn.Linear(4, 3, bias=bias))
        self.auxiliary = nn.Linear(4, 3)
        self._name = name

    def forward(self, x):
        return getattr(self, self._name)(torch.tanh(self.body(x)))


@pytest.mark.parametrize("name", ["head", "fc", "classifier", "linear"])
def test_a_head_of_a_usual_name_is_found_though_other_layers_have_its_shape(name):
    model = Named(name)
    assert head_of(model) is getattr(model, name)


def test_without_a_usual_name_the_last_linear_layer_is_the_head():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3), nn.Identity())
    assert head_of(model) is model[2]


def test_a_usual_name_that_is_no_linear_layer_is_searched_inside():
    model = nn.Module()
    model.body = nn.Linear(3, 3)
    model.classifier = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    assert head_of(model) is model.classifier[2]


def test_a_model_without_a_linear_layer_is_refused():
    with pytest.raises(UserError, match="Conv2d has no linear layer to call its head"):
        head_of(nn.Conv2d(1, 1, 1))


OWN = {
    "fc": Named("fc"),
    "no bias": Named("head", bias=False),
    "sequence": nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)),
}


def check_features(model, x):
    features, head = features_of(model.eval(), x), head_of(model)
    assert features.shape == (len(x), head.in_features)
    logits = features @ head.weight.T + (0 if head.bias is None else head.bias)
    torch.testing.assert_close(logits, model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", OWN.values(), ids=OWN)
def test_features_times_the_heads_weights_are_the_logits(model):
    check_features(model, torch.randn(9, 6, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_head_of_every_shipped_model_is_found_and_makes_the_logits(name):
    model = build_model(name, params_of(name), shape_of(name), 7, 0)
    assert head_of(model) is model.head
    assert head_of(model).out_features == 7
    check_features(model, points_for(name))


def test_taking_features_leaves_no_hook_no_gradient_and_no_trace_in_eval_mode():
    model = build_model("small-cnn", {}, (1, 8, 8), 10, 0).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    features = features_of(model, torch.randn(4, 1, 8, 8))
    assert not features.requires_grad
    assert not head_of(model)._forward_pre_hooks
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_the_hook_goes_even_when_the_model_raises():
    model = Named("head")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        features_of(model, torch.zeros(2, 5))
    assert not head_of(model)._forward_pre_hooks
