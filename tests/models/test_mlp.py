import pytest
import torch
from torch import nn

from forgetgauge.models.building import build_model


@pytest.mark.parametrize("shape", [(7,), (1, 8, 8), (2, 3, 4, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_linear_model_is_a_matrix_on_the_flattened_point(shape, bias):
    model = build_model("linear", {"bias": bias}, shape, 3, 0)
    x = torch.randn(4, *shape)
    wanted = x.flatten(1) @ model.head.weight.T + (model.head.bias if bias else 0)
    torch.testing.assert_close(model(x), wanted)
    assert sum(1 for _ in model.parameters()) == 1 + bias


@pytest.mark.parametrize("hidden", [[], [5], [9, 4, 6]])
def test_the_perceptron_has_the_hidden_layers_asked_for(hidden):
    model = build_model("mlp", {"hidden": hidden}, (1, 8, 8), 3, 0)
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    assert [layer.out_features for layer in layers] == [*hidden, 3]
    assert layers[0].in_features == 64
    assert sum(isinstance(module, nn.ReLU) for module in model.modules()) == len(hidden)
