"""Models of the user's own: how they are made, and what they may give back."""

import copy
import functools
import sys
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import forgetgauge
from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.columns import COLUMNS
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.stacked.ghost import check_ghost
from forgetgauge.learn.stacked.members import reason_against
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.models.building import build_for
from forgetgauge.models.head import head_of
from forgetgauge.models.outputs import as_written
from forgetgauge.run.algorithms import CodeCheck, make_learner
from forgetgauge.run.resolve import resolve
from forgetgauge.streams import Streams
from forgetgauge.testing import check_unlearner
from forgetgauge.unlearn.unlearner import Context
from tests.methods import FOR_ALL

SMALL = {"pairs": 2, "shadows": 2, "fraction": 0.3, "adversaries": ["confidence"], "data": "digits-3-8"}
RECIPE = {"epochs": 2, "batch_size": 16}


@pytest.fixture(autouse=True)
def _fresh_catalogue(monkeypatch):
    monkeypatch.setattr(plugins.models, "_bound", {})


class Named(NamedTuple):
    logits: torch.Tensor
    hidden: torch.Tensor


class Net(nn.Module):
    """One hidden layer, batch norm, and an answer of the given shape."""

    def __init__(self, answer=lambda logits: logits, n_out=2):
        super().__init__()
        self.answer = answer
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, n_out)

    def forward(self, x):
        return self.answer(self.head(self.body(x)))


ANSWERS = {
    "an object with logits": (lambda z: SimpleNamespace(logits=z, loss=None), 2),
    "a named tuple": (lambda z: Named(hidden=z.sum(1), logits=z), 2),
    "a mapping": (lambda z: {"logits": z}, 2),
    "a tuple": (lambda z: (z, z.sum()), 2),
    "one logit a point in a column": (lambda z: z, 1),
    "one logit a point": (lambda z: z[:, 0], 1),
    "a squeezed logit": (lambda z: z.squeeze(), 1),
    "one logit in a tuple": (lambda z: (z,), 1),
}


def points(n_classes=2, n=40):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % n_classes
    inputs = rng.standard_normal((n, 1, 8, 8)) + labels[:, None, None, None]
    return Points.of(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))


def built(thing, n_classes=2, params=None, seed=0):
    return build_for(points(n_classes), plugins.models.bind(thing), params or {}, seed)


# -- what a model gives back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ANSWERS)
def test_logits_are_found_in_what_a_model_gives(kind):
    answer, n_out = ANSWERS[kind]
    model, x = built(functools.partial(Net, answer, n_out)).eval(), points().x
    made = model.head(model.body(x))
    expected = made if n_out == 2 else torch.cat([torch.zeros_like(made), made], dim=1)
    for n in (1, 2, 5, 40):
        torch.testing.assert_close(model(x[:n]), expected[:n])
    with as_written(model):
        assert type(model(x)) is type(answer(made))
    assert model(x).shape == (40, 2)
    assert copy.deepcopy(model)(x).shape == (40, 2)


def test_one_logit_is_the_sigmoid_of_its_class():
    model, x = built(functools.partial(Net, n_out=1)).eval(), points().x
    with as_written(model):
        p = torch.sigmoid(model(x)[:, 0])
    torch.testing.assert_close(model(x).softmax(1), torch.stack([1 - p, p], dim=1))


def test_a_model_that_gives_logits_is_left_alone():
    model = built(Net)
    assert not model._forward_hooks
    assert type(model) is Net


def test_logits_that_come_in_a_tuple_while_training_only_are_found_too():
    class Auxiliary(Net):
        def forward(self, x):
            z = self.head(self.body(x))
            return Named(z, z) if self.training else z

    model, x = built(Auxiliary), points().x
    assert model.train()(x).shape == (40, 2)
    assert model.eval()(x).shape == (40, 2)


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_model_is_trained_alike_whatever_its_logits_come_in_alone_and_in_a_stack(kind):
    answer, n_out = ANSWERS[kind]

    def plain(z):
        return z if n_out == 2 else torch.cat([torch.zeros_like(z), z], dim=1)

    sets, streams = [points().subset(np.arange(30)), points().subset(np.arange(10, 40))], [Streams("a"), Streams("b")]
    theirs, ours = (
        Minibatch(model=plugins.models.bind(functools.partial(Net, how, n_out)), **RECIPE) for how in (answer, plain)
    )
    expected = [ours.fit(p, s) for p, s in zip(sets, streams, strict=True)]
    for models in (theirs.fit_many(sets, streams), [theirs.fit(p, s) for p, s in zip(sets, streams, strict=True)]):
        for model, other in zip(models, expected, strict=True):
            assert model.state_dict().keys() == other.state_dict().keys()
            np.testing.assert_allclose(outputs_of(model, points()), outputs_of(other, points()), atol=1e-4)


@pytest.mark.parametrize("name", sorted(set(FOR_ALL) - {"sisa", "certified-removal", "retrain"}))
@pytest.mark.parametrize("kind", ["an object with logits", "one logit a point in a column"])
def test_every_method_unlearns_such_a_model(name, kind):
    answer, n_out = ANSWERS[kind]
    learner = Minibatch(model=plugins.models.bind(functools.partial(Net, answer, n_out)), **RECIPE)
    model = learner.fit(points().subset(np.arange(30)), Streams("original"))
    unlearner = plugins.unlearners.load(name)()
    retain, forget = points().subset(np.arange(20)), points().subset(np.arange(20, 30))
    made = unlearner.unlearn(model, retain, forget, Context(learner, Streams("a job")))
    assert head_of(made).out_features == n_out
    assert np.isfinite(outputs_of(made, points())).all()
    assert outputs_of(made, points()).shape == (40, 2)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_white_box_columns_are_those_of_the_plain_logits(kind, column):
    answer, n_out = ANSWERS[kind]
    model = built(functools.partial(Net, answer, n_out))
    plain = Net(lambda z: z if n_out == 2 else torch.cat([torch.zeros_like(z), z], dim=1), n_out)
    plain.load_state_dict(model.state_dict())
    asked = points(), points()
    np.testing.assert_allclose(COLUMNS[column](model, *asked), COLUMNS[column](plain, *asked), rtol=1e-3, atol=1e-5)


def test_no_trace_is_made_of_a_model_with_hooks():
    class Plain(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Flatten(), nn.Linear(64, 2))

    model = Plain()
    assert reason_against(TracedStack, [model]) is None
    assert reason_against(check_ghost, model, points().x[:1]) is None
    model.register_forward_hook(lambda module, args, output: 2 * output)
    assert "hooks" in reason_against(TracedStack, [model])
    assert "hooks" in reason_against(check_ghost, model, points().x[:1])


@pytest.mark.parametrize(
    ("answer", "n_out", "line"),
    [
        (lambda z: z, 3, "gives 3 outputs for each point, but the data have 10 classes"),
        (lambda z: z, 1, "gives 1 output for each point, but the data have 10 classes"),
        (lambda z: z[:, 0], 1, "gives 1 output for each point, but the data have 10 classes"),
        (lambda z: z.argmax(1), 10, "gives int64, not floating-point logits"),
        (lambda z: z.mean(0), 10, r"given 3 points, gives a tensor of shape \(10,\), not \(3, 10\) logits"),
        (lambda z: z[:, :, None], 10, r"gives a tensor of shape \(3, 10, 1\)"),
        (lambda z: z.T, 10, r"gives a tensor of shape \(10, 3\)"),
        (lambda z: None, 10, "gives a NoneType, in which there are no logits"),
        (lambda z: {"output": z}, 10, "gives a dict, in which there are no logits"),
        (lambda z: ("loss", z), 10, "gives a tuple, in which there are no logits"),
        (lambda z: z @ z, 10, "cannot be given points of the data, .* float32: RuntimeError"),
    ],
)
def test_what_holds_no_logits_is_refused_in_one_line(answer, n_out, line):
    with pytest.raises(UserError, match=line) as refusal:
        built(functools.partial(Net, answer, n_out), n_classes=10)
    assert str(refusal.value).startswith("model '")
    assert "\n" not in str(refusal.value)


SIGMOIDS = {
    "a column": (torch.sigmoid, 1),
    "a number a point": (lambda z: torch.sigmoid(z[:, 0]), 1),
    "in a tuple": (lambda z: (torch.sigmoid(z),), 1),
    "of a large logit": (lambda z: torch.sigmoid(30 * z), 1),
    "for each class": (torch.sigmoid, 2),
    "clipped": (lambda z: (z + 0.5).clamp(0, 1), 1),
}


class AsTrained(Net):
    """A sigmoid in one of the modes."""

    def __init__(self, mode):
        super().__init__(n_out=1)
        self.mode = mode

    def forward(self, x):
        z = super().forward(x)
        return torch.sigmoid(z) if self.training == self.mode else z


@pytest.mark.parametrize("kind", SIGMOIDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_sigmoid_in_the_place_of_a_logit_is_refused_in_one_line(kind, seed):
    with pytest.raises(UserError, match=r"^model '.*' gives probabilities .*: leave out the sigmoid at its end$"):
        built(functools.partial(Net, *SIGMOIDS[kind]), seed=seed)


def test_a_sigmoid_behind_a_last_layer_that_starts_at_zero_is_refused_too():
    with pytest.raises(UserError, match="leave out the sigmoid"):
        built(functools.partial(Starting, 0.0, 0.0, torch.sigmoid))


@pytest.mark.parametrize("training", [False, True])
def test_a_sigmoid_in_one_of_the_modes_is_refused(training):
    with pytest.raises(UserError, match="leave out the sigmoid"):
        built(functools.partial(AsTrained, training))


def test_a_softmax_is_named_as_such():
    with pytest.raises(UserError, match="leave out the softmax at its end"):
        built(functools.partial(Net, lambda z: z.softmax(1), 4), n_classes=4)


class Starting(Net):
    """A last layer that starts at one number."""

    def __init__(self, weight, bias, answer=lambda z: z, n_out=1):
        super().__init__(answer, n_out)
        nn.init.constant_(self.head.weight, weight)
        nn.init.constant_(self.head.bias, bias)


@pytest.mark.parametrize("bias", [0.0, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("weight", [0.0, 1e-3])
@pytest.mark.parametrize("n_out", [1, 2])
def test_logits_that_lie_between_0_and_1_at_the_start_are_logits(weight, bias, n_out):
    """A last layer that starts at zero, or at the share of a class, answers so whatever it is given."""
    x = points().x
    model = built(functools.partial(Starting, weight, bias, n_out=n_out)).eval()
    assert ((model(x)[:, -1] >= 0) & (model(x)[:, -1] <= 1)).all()
    assert torch.equal(model.head.bias, torch.full((n_out,), bias))


class Kept(nn.Module):
    """Of a learner that keeps what it learns in a buffer."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(3))
        self.register_buffer("weight", torch.full((64,), 1e-4))

    def forward(self, x):
        return 0.5 + x.flatten(1) @ self.weight


class NotANumber(Starting):
    """Overflows as soon as its weights are not the first ones."""

    def forward(self, x):
        return super().forward(x) + (0.0 if bool((self.head.weight == 0.0).all()) else float("nan"))


@pytest.mark.parametrize("model", [Kept, functools.partial(NotANumber, 0.0, 0.5)])
def test_where_nothing_is_shown_nothing_is_refused(model):
    assert built(model)(points().x).shape == (40, 2)


def test_no_single_logit_is_taken_for_a_sigmoid_under_any_seed():
    for seed in range(60):
        built(functools.partial(Net, n_out=1), seed=seed)


def test_such_a_model_is_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(UserError, match="gives 3 outputs for each point, but the data have 2 classes"):
        forgetgauge.evaluate(model=functools.partial(Net, n_out=3), out=tmp_path / "run", **SMALL)


# -- how a model is made -----------------------------------------------------------------------------------------------


class AsksForBoth(Net):
    def __init__(self, input_shape, n_classes, width=8):
        super().__init__(n_out=n_classes)
        self.asked = input_shape, n_classes, width


class AsksForClasses(Net):
    def __init__(self, width=8, *, num_classes=1000):
        super().__init__(n_out=num_classes)
        self.asked = num_classes, width


class AsksForNothing(Net):
    def __init__(self, width=8, depth=2):
        super().__init__(n_out=4)
        self.asked = width, depth


def by_other_names(shape, k, width=8):
    return AsksForBoth(shape, k, width)


def by_place(input_shape, n_classes, /, width=8):
    return AsksForBoth(input_shape, n_classes, width)


def turned_round(n_classes, input_shape):
    return AsksForBoth(input_shape, n_classes)


def with_anything(*args, **params):
    return AsksForBoth(*args, **params)


@pytest.mark.parametrize(
    ("thing", "params", "asked"),
    [
        (AsksForBoth, {}, ((1, 8, 8), 4, 8)),
        (AsksForBoth, {"width": 3}, ((1, 8, 8), 4, 3)),
        (by_other_names, {"width": 3}, ((1, 8, 8), 4, 3)),
        (by_place, {"width": 3}, ((1, 8, 8), 4, 3)),
        (turned_round, {}, ((1, 8, 8), 4, 8)),
        (with_anything, {"width": 3}, ((1, 8, 8), 4, 3)),
        (AsksForClasses, {}, (4, 8)),
        (AsksForClasses, {"width": 3}, (4, 3)),
        (AsksForNothing, {}, (8, 2)),
        (AsksForNothing, {"depth": 3}, (8, 3)),
        (lambda: AsksForNothing(), {}, (8, 2)),
        (functools.partial(AsksForNothing, 5), {}, (5, 2)),
    ],
)
def test_a_class_or_function_is_called_with_what_it_asks_for(thing, params, asked):
    assert built(thing, 4, params).asked == asked


def test_a_parameter_that_nothing_gives_is_one_line():
    with pytest.raises(UserError, match=r"^model .*: nothing is known to give its parameter 'width': set model_params"):
        built(lambda width: Net(), 4)
    with pytest.raises(UserError, match="parameter 'teacher'"):
        built(lambda input_shape, n_classes, teacher: Net(), 4)


def test_an_unknown_parameter_of_a_users_model_is_answered_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'width'"):
        built(AsksForNothing, 4, {"widht": 3})


@pytest.mark.parametrize("thing", [3, {"layers": 2}, None])
def test_what_is_neither_module_nor_callable_is_refused(thing):
    with pytest.raises(UserError, match="neither a torch module nor something that makes one"):
        built(thing)


def test_whatever_a_constructor_raises_is_one_line():
    def broken(input_shape, n_classes):
        raise RuntimeError("no weights here\nat all")

    with pytest.raises(UserError, match=r"^model '.*': no weights here$"):
        built(broken)


def test_an_instance_is_the_initial_state_of_every_training_and_is_not_trained_itself():
    instance = Net().requires_grad_(True)
    instance(points().x).sum().backward()
    before = copy.deepcopy(instance.state_dict())
    learner = Minibatch(model=plugins.models.bind(instance), **RECIPE)
    for seed in (0, 1):
        model = learner.build(points(), seed)
        assert model is not instance
        assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
        assert all(p.grad is None for p in model.parameters())
    learner.fit_many([points(), points()], [Streams("a"), Streams("b")])
    assert all(torch.equal(t, before[name]) for name, t in instance.state_dict().items())


def test_a_factory_that_hands_out_one_module_twice_gives_two_models():
    instance = Net()
    one, other = (built(lambda: instance) for _ in range(2))
    assert one.head.weight.data_ptr() != other.head.weight.data_ptr()


def test_an_instance_with_other_weights_is_another_model():
    instance = Net()
    name = plugins.models.bind(instance)
    with torch.no_grad():
        instance.head.bias += 1
    assert plugins.models.bind(instance) != name


def test_an_instance_takes_no_parameters():
    with pytest.raises(UserError, match="takes no model_params"):
        built(Net(), params={"width": 3})


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_lazy_layers_take_their_shapes_from_the_data_and_their_weights_from_the_seed():
    def lazy():
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))

    one, again, other = (built(lazy, seed=seed) for seed in (1, 1, 2))
    assert one[1].in_features == 64
    assert torch.equal(one[3].weight, again[3].weight)
    assert not torch.equal(one[3].weight, other[3].weight)


# -- whole games -------------------------------------------------------------------------------------------------------


def with_logits(model, retain, forget, context):
    model = copy.deepcopy(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimiser.zero_grad()
        F.cross_entropy(model.train()(retain.x).logits, retain.y).backward()
        optimiser.step()
    return model


def with_logits_in_competition(net, retain_loader, forget_loader, val_loader):
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in retain_loader:
        optimiser.zero_grad()
        F.cross_entropy(net(x).logits, y).backward()
        optimiser.step()


class Unlearns:
    def unlearn(self, model, retain, forget, context):
        return with_logits(model, retain, forget, context)


class UnlearnsMany(Unlearns):
    def unlearn_many(self, requests):
        return [self.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]


WRITTEN_FOR_OBJECTS = [with_logits, with_logits_in_competition, Unlearns(), UnlearnsMany, UnlearnsMany()]


def test_ones_own_methods_see_the_model_as_it_was_written_and_ours_see_logits():
    answer, n_out = ANSWERS["an object with logits"]
    *once, _ = WRITTEN_FOR_OBJECTS  # the last is the one before it, made
    methods = {f"mine-{i}": method for i, method in enumerate(once)}
    result = forgetgauge.evaluate(
        unlearner={**methods, "retrain": {}, "none": {}, "ssd": {"alpha": 1.5}, "ft-final": {"epochs": 1}},
        model=functools.partial(Net, answer, n_out),
        learner=RECIPE,
        **SMALL,
    )
    assert result.failures == []
    assert all(0 <= method.quality <= 1 for method in result.methods.values())


@pytest.mark.parametrize("method", WRITTEN_FOR_OBJECTS)
def test_the_contract_checks_them_on_such_a_model(method):
    def model(input_shape, n_classes):
        return Net(ANSWERS["an object with logits"][0], n_classes)

    check_unlearner(method, models={"logits": model})


def test_a_model_of_one_logit_plays_a_whole_game():
    result = forgetgauge.evaluate(
        model=functools.partial(Net, n_out=1), learner=RECIPE, unlearner=["retrain", "none", "ssd"], **SMALL
    )
    assert result.failures == []


class OwnLearner:
    """Trains its model as the model is written."""

    def __init__(self, answer):
        self.answer = answer

    def build(self, points, seed):
        torch.manual_seed(seed % 2**32)
        return Net(self.answer)

    def fit(self, points, streams):
        model = self.build(points, streams.seed("init"))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        F.cross_entropy(model(points.x).logits, points.y).backward()
        optimiser.step()
        return model

    def fit_many(self, points, streams):
        return [self.fit(p, s) for p, s in zip(points, streams, strict=True)]

    def n_gradients(self, n_points):
        return n_points


def test_the_models_of_ones_own_learner_may_give_objects_too():
    learner = OwnLearner(ANSWERS["an object with logits"][0])
    methods = {"retrain": {}, "none": {}, "ssd": {}, "mine": with_logits}
    result = forgetgauge.evaluate(learner=learner, unlearner=methods, **SMALL)
    assert result.failures == []
    with pytest.raises(UserError, match="model 'Net' gives a str, in which there are no logits"):
        forgetgauge.evaluate(learner=OwnLearner(str), **SMALL)


def test_an_instance_plays_a_whole_game():
    torch.manual_seed(0)
    result = forgetgauge.evaluate(model=Net(), learner=RECIPE, unlearner=["retrain", "none"], **SMALL)
    assert result.failures == []


def test_an_instance_of_a_module_that_comes_out_otherwise_in_another_process_is_refused(tmp_path, monkeypatch):
    (tmp_path / "own_instance.py").write_text(
        "from torch import nn\nnet = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    raw = {"data": {"name": "digits-3-8"}, "learner": {"model": "own_instance:net"}, "unlearners": ["none"]}
    resolved = resolve({**raw, "adversaries": ["confidence"]}, "a test")
    learner = resolved.games[0].learner
    job = SimpleNamespace(kind="train", choices=[("learner", learner)])
    assert make_learner(learner).build(points(), 0)[1].out_features == 2
    CodeCheck(resolved.sources.own_code).check(job)
    del sys.modules["own_instance"]  # as in another process
    with pytest.raises(UserError, match="it draws random numbers when it is imported"):
        CodeCheck(resolved.sources.own_code).check(job)


def test_the_model_is_given_once():
    with pytest.raises(UserError, match="given twice"):
        forgetgauge.evaluate(model=Net, learner={"model": "mlp"})
    with pytest.raises(UserError, match="brings its own model"):
        forgetgauge.evaluate(model=Net, learner=Minibatch())
