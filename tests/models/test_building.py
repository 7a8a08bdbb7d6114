import textwrap

import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.models.building import build_model, torch_seeded
from tests.models.zoo import SHIPPED, params_of, points_for, shape_of

SHAPES = [(1, 8, 8), (3, 32, 32)]
NORMS = ["batch", "group", "none"]


def same_bits(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(autouse=True)
def _fresh_catalogue(monkeypatch):
    monkeypatch.setattr(plugins.models, "_bound", {})


@pytest.mark.parametrize("name", SHIPPED)
def test_a_models_weights_depend_on_the_seed_alone(name):
    first = build_model(name, params_of(name), shape_of(name), 10, seed=5)
    torch.manual_seed(12345)
    torch.rand(7)
    assert same_bits(build_model(name, params_of(name), shape_of(name), 10, seed=5), first)
    assert not same_bits(build_model(name, params_of(name), shape_of(name), 10, seed=6), first)


@pytest.mark.parametrize("name", SHIPPED)
def test_building_leaves_torchs_own_generator_as_it_was(name):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    build_model(name, params_of(name), shape_of(name), 10, seed=2**63 - 1)
    assert torch.equal(torch.get_rng_state(), before)


def check_logits_and_gradients(model, x, n_classes):
    logits = model(x)
    assert logits.shape == (len(x), n_classes)
    assert torch.isfinite(logits).all()
    nn.functional.cross_entropy(logits, torch.arange(len(x)) % n_classes).backward()
    # Softmax does not feel what is added to all keys alike, so a key's bias has no gradient but rounding errors.
    named = [(name, p) for name, p in model.named_parameters() if not name.endswith("key.bias")]
    assert [name for name, p in named if p.grad is None or not p.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_every_model_turns_points_into_logits_and_gets_gradients_everywhere(name, n_classes):
    model = build_model(name, params_of(name), shape_of(name), n_classes, seed=0)
    check_logits_and_gradients(model, points_for(name), n_classes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("norm", NORMS)
def test_the_small_cnn_turns_images_into_logits_with_every_norm(shape, norm):
    model = build_model("small-cnn", {"norm": norm, "width": 4}, shape, 10, seed=0)
    check_logits_and_gradients(model, torch.randn(5, *shape, generator=torch.Generator().manual_seed(0)), 10)


@pytest.mark.parametrize(("norm", "layer"), [("batch", nn.BatchNorm2d), ("group", nn.GroupNorm), ("none", nn.Identity)])
def test_the_small_cnn_has_the_norm_asked_for_and_no_other(norm, layer):
    layers = [type(m) for m in build_model("small-cnn", {"norm": norm}, (1, 8, 8), 10, 0).modules()]
    normalising = {nn.BatchNorm2d, nn.GroupNorm, nn.Identity}
    assert [kind for kind in layers if kind in normalising] == [layer] * 3


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 9, 13), (3, 32, 32), (2, 7, 30)])
def test_the_small_cnn_takes_images_of_any_size(shape):
    assert build_model("small-cnn", {}, shape, 3, 0)(torch.zeros(2, *shape)).shape == (2, 3)


@pytest.mark.parametrize("name", SHIPPED)
def test_in_eval_mode_a_point_is_answered_the_same_in_any_company(name):
    model = build_model(name, params_of(name), shape_of(name), 10, seed=0).eval()
    x = points_for(name)
    with torch.no_grad():
        torch.testing.assert_close(model(x)[2:3], model(x[2:3]), rtol=1e-4, atol=1e-4)


def test_an_unknown_parameter_is_one_line_with_the_nearest_name():
    with pytest.raises(UserError, match=r"^model 'small-cnn': unknown key 'widht'; did you mean 'width'\?$"):
        build_model("small-cnn", {"widht": 4}, (1, 8, 8), 10, 0)


def test_a_parameter_like_no_other_is_answered_with_the_list_which_leaves_out_shape_and_classes():
    with pytest.raises(UserError, match=r"unknown key 'zzz'; valid: norm, width$"):
        build_model("small-cnn", {"zzz": 4}, (1, 8, 8), 10, 0)


def test_an_unknown_model_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"^unknown model 'small-cnm'; did you mean 'small-cnn'\?$"):
        build_model("small-cnm", {}, (1, 8, 8), 10, 0)


def test_a_value_the_model_refuses_is_one_line_with_its_name():
    with pytest.raises(UserError, match=r"^model 'small-cnn': ") as refusal:
        build_model("small-cnn", {"norm": "group", "width": 6}, (1, 8, 8), 10, 0)  # 4 groups do not divide 6
    assert "\n" not in str(refusal.value)


def test_an_unknown_norm_is_refused():
    with pytest.raises(UserError, match="norm"):
        build_model("small-cnn", {"norm": "layer"}, (1, 8, 8), 10, 0)


@pytest.mark.parametrize("shape", [(64,), (8, 8)])
def test_points_that_are_no_images_are_refused_in_one_line(shape):
    with pytest.raises(UserError, match=r"^model 'small-cnn': "):
        build_model("small-cnn", {}, shape, 10, 0)


def test_an_own_class_is_found_by_module_and_name(tmp_path, monkeypatch):
    (tmp_path / "own_net.py").write_text(
        textwrap.dedent("""
            from torch import nn
            class Net(nn.Sequential):
                def __init__(self, input_shape, n_classes, *, hidden=3):
                    super().__init__(nn.Flatten(), nn.Linear(64, hidden), nn.Linear(hidden, n_classes))
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = build_model("own_net:Net", {"hidden": 5}, (1, 8, 8), 10, seed=1)
    assert model[1].out_features == 5
    assert same_bits(model, build_model("own_net:Net", {"hidden": 5}, (1, 8, 8), 10, seed=1))
    with pytest.raises(UserError, match="did you mean 'hidden'"):
        build_model("own_net:Net", {"hiden": 5}, (1, 8, 8), 10, seed=1)


def test_a_bound_factory_with_open_parameters_gets_them_all():
    def factory(input_shape, n_classes, **params):
        return nn.Linear(params["n_in"], n_classes)

    name = plugins.models.bind(factory)
    assert build_model(name, {"n_in": 7}, (7,), 4, seed=0).in_features == 7


def test_a_factory_that_makes_no_module_is_refused():
    name = plugins.models.bind(lambda input_shape, n_classes: "a model", "mine")
    with pytest.raises(UserError, match="model 'mine' made a str, not a torch module"):
        build_model(name, {}, (1, 8, 8), 10, seed=0)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="GPU: one has a generator of its own")
def test_seeding_gives_torchs_own_numbers_without_the_cost_of_seeding_devices_that_are_not_there(monkeypatch):
    """For a GPU that may yet appear torch notes the whole stack of calls, which takes longer than drawing weights."""
    torch.manual_seed(7)
    expected = torch.rand(3)
    monkeypatch.setattr("traceback.format_stack", lambda *_: pytest.fail("a stack of calls is written down"))
    with torch_seeded(7):
        assert torch.equal(torch.rand(3), expected)
