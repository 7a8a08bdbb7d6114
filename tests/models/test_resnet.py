import math

import pytest
import torch
from torch import fx, nn

from forgetgauge.errors import UserError
from forgetgauge.models.building import build_model
from forgetgauge.models.resnet import PadShortcut

CIFAR = (3, 32, 32)
COUNTS = {
    "resnet20": 269_722,
    "resnet32": 464_154,
    "resnet44": 658_586,
    "resnet56": 853_018,
    "resnet110": 1_727_962,
    "resnet18": 11_173_962,
}


def n_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def sizes_after_blocks(model, shape):
    """(channels, height) after each block."""
    sizes = []
    for block in model.blocks:
        block.register_forward_hook(lambda _, __, out: sizes.append((out.shape[1], out.shape[2])))
    with torch.no_grad():
        model.eval()(torch.zeros(1, *shape))
    return sizes


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_parameter_counts_are_the_published_ones_with_either_norm(name, count, norm):
    assert n_parameters(build_model(name, {"norm": norm}, CIFAR, 10, 0)) == count


def test_resnet18_with_the_stem_of_imagenet_has_torchvisions_count():
    model = build_model("resnet18", {"stem": "imagenet"}, CIFAR, 10, 0)
    assert n_parameters(model) == 11_181_642
    assert n_parameters(build_model("resnet18", {"stem": "imagenet"}, (3, 224, 224), 1000, 0)) == 11_689_512
    assert sizes_after_blocks(model, (3, 224, 224))[-1] == (512, 7)


def test_a_hundred_classes_add_5850_parameters_and_a_single_channel_saves_288():
    assert n_parameters(build_model("resnet20", {}, CIFAR, 100, 0)) == COUNTS["resnet20"] + 5850
    assert n_parameters(build_model("resnet20", {}, (1, 32, 32), 10, 0)) == COUNTS["resnet20"] - 288


@pytest.mark.parametrize(("name", "n"), [("resnet20", 3), ("resnet32", 5), ("resnet110", 18)])
def test_there_are_three_stages_each_half_the_size_and_twice_as_wide(name, n):
    expected = [(16, 32)] * n + [(32, 16)] * n + [(64, 8)] * n
    assert sizes_after_blocks(build_model(name, {}, CIFAR, 10, 0), CIFAR) == expected


def test_resnet18_for_small_images_ends_at_a_size_of_four():
    sizes = sizes_after_blocks(build_model("resnet18", {}, CIFAR, 10, 0), CIFAR)
    assert sizes == [(64, 32)] * 2 + [(128, 16)] * 2 + [(256, 8)] * 2 + [(512, 4)] * 2


@pytest.mark.parametrize("height", [4, 5])
def test_the_shortcut_takes_every_second_pixel_and_pads_channels_evenly(height):
    x = torch.randn(2, 3, height, 6)
    out = PadShortcut(3, 7)(x)
    assert out.shape == (2, 7, -(-height // 2), 3)
    assert not out[:, :2].any()
    assert not out[:, 5:].any()
    for i, j in [(0, 0), (0, 2), (1, 1)]:
        assert torch.equal(out[:, 2:5, i, j], x[:, :, 2 * i, 2 * j])


def test_a_shortcut_that_cannot_be_even_is_refused():
    with pytest.raises(ValueError, match="3 channels cannot be padded evenly to 6"):
        PadShortcut(3, 6)


@pytest.mark.parametrize("name", ["resnet20", "resnet18"])
def test_group_norm_takes_the_place_of_every_batch_norm_with_opacus_groups(name):
    grouped = [m for m in build_model(name, {"norm": "group"}, CIFAR, 10, 0).modules() if isinstance(m, nn.GroupNorm)]
    batched = [m for m in build_model(name, {}, CIFAR, 10, 0).modules() if isinstance(m, nn.BatchNorm2d)]
    assert [m.num_channels for m in grouped] == [m.num_features for m in batched]
    assert all(m.num_groups == math.gcd(32, m.num_channels) for m in grouped)


@pytest.mark.parametrize("name", ["resnet20", "resnet18"])
def test_convolutions_and_head_begin_he_normal(name):
    model = build_model(name, {}, CIFAR, 100, 0)
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            fan_in = module.weight[0].numel()
            wanted, error = math.sqrt(2 / fan_in), 4 / math.sqrt(2 * module.weight.numel())
            assert module.weight.std().item() == pytest.approx(wanted, rel=error)
        if isinstance(module, nn.Conv2d):
            assert module.bias is None


class Tracer(fx.Tracer):
    def is_leaf_module(self, module, name):
        return isinstance(module, PadShortcut) or super().is_leaf_module(module, name)


@pytest.mark.parametrize("norm", ["batch", "group"])
@pytest.mark.parametrize("name", ["resnet20", "resnet18"])
def test_the_forward_is_traced_to_modules_and_sums_alone(name, norm):
    model = build_model(name, {"norm": norm}, CIFAR, 10, 0).eval()
    graph = Tracer().trace(model)
    called = {node.target for node in graph.nodes if node.op == "call_function"}
    assert {target.__name__ for target in called} == {"add"}
    assert not [node for node in graph.nodes if node.op in ("call_method", "get_attr")]
    x = torch.randn(2, *CIFAR)
    assert torch.equal(fx.GraphModule(model, graph)(x), model(x))
    assert not any(module.inplace for module in model.modules() if isinstance(module, nn.ReLU))


@pytest.mark.parametrize(
    ("name", "params", "shape", "line"),
    [
        ("resnet20", {"norm": "layer"}, CIFAR, "norm = 'layer' is none of 'batch', 'group'"),
        ("resnet18", {"stem": "mnist"}, CIFAR, "stem = 'mnist' is none of 'cifar', 'imagenet'"),
        ("resnet20", {}, (64,), r"wants images \(channels, height, width\), the data has the shape \(64,\)"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(name, params, shape, line):
    with pytest.raises(UserError, match=f"^model '{name}': {line}$"):
        build_model(name, params, shape, 10, 0)
