"""What every unlearner of the catalogue promises."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn.predict import outputs_of
from forgetgauge.streams import Streams
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner, Unlearner
from tests.methods import FOR_ALL

from .world import N_FORGET, N_RETAIN, changed, make_world, state

NORMS = ["batch", "group", "none"]
NAMES = [name for name in FOR_ALL if not hasattr(plugins.unlearners.load(name), "learner")]
"""All but those that bring a learner of their own (sisa), which have tests of their own."""
MODES = {
    "ft-final": ["frozen", "train"],
    "retrain-final": ["frozen", "train"],
    **{
        name: ["frozen", "train"]
        for name in ("neg-grad", "fine-tune", "neg-grad-plus", "random-relabel", "l1-sparse", "bad-teacher", "scrub")
    },
}
N_CLASSES = 4

COST = {
    "retrain": lambda unlearner, world: world.learner.epochs * N_RETAIN,
    "none": lambda unlearner, world: 0,
    "neg-grad": lambda unlearner, world: unlearner.epochs * N_FORGET,
    "ft-final": lambda unlearner, world: unlearner.epochs * N_RETAIN,
    "retrain-final": lambda unlearner, world: unlearner.epochs * N_RETAIN,
    "fisher": lambda unlearner, world: N_CLASSES * N_RETAIN,
    "salun": lambda unlearner, world: N_FORGET + unlearner.epochs * (N_FORGET + N_RETAIN),
    "ssd": lambda unlearner, world: N_FORGET + N_FORGET + N_RETAIN,
    "fine-tune": lambda unlearner, world: unlearner.epochs * N_RETAIN,
    "neg-grad-plus": lambda unlearner, world: unlearner.epochs * (N_RETAIN + 3 * N_FORGET),  # 3 batches of R an epoch
    "random-relabel": lambda unlearner, world: unlearner.epochs * (N_RETAIN + N_FORGET),
    "l1-sparse": lambda unlearner, world: unlearner.epochs * N_RETAIN,
    "bad-teacher": lambda unlearner, world: unlearner.epochs * (N_FORGET + 11),  # 30 % of 37
    "scrub": lambda unlearner, world: unlearner.epochs * N_RETAIN + min(unlearner.msteps, unlearner.epochs) * N_FORGET,
}
"""Per-example gradients, by the table of the paper's sheet."""


def few_epochs(name: str, **settings):
    """The unlearner of that name with settings that take no time and leave partial batches (37 and 13 by 16)."""
    unlearner = plugins.unlearners.load(name)()
    wanted = {"epochs": 3, "batch_size": 16, **settings}
    known = {field.name for field in dataclasses.fields(unlearner)}
    return dataclasses.replace(unlearner, **{key: value for key, value in wanted.items() if key in known})


EVERY = {
    f"{name} {mode}".strip(): few_epochs(name, **({"batch_norm": mode} if mode else {}))
    for name in NAMES
    for mode in MODES.get(name, [""])
}
every_unlearner = pytest.mark.parametrize("unlearner", EVERY.values(), ids=EVERY)
every_norm = pytest.mark.parametrize("norm", NORMS)


class WithDropout(nn.Module):
    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(16, n_classes)

    def forward(self, x):
        return self.head(self.body(x))


def test_every_name_of_the_catalogue_has_its_cost_checked():
    assert set(COST) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_promise_of_an_unlearner_with_its_defaults(name):
    assert isinstance(plugins.unlearners.load(name)(), Unlearner)


@every_unlearner
@every_norm
@pytest.mark.parametrize("training", [False, True])
def test_the_model_given_is_left_untouched(unlearner, norm, training):
    world = make_world(norm)
    model = world.original.train(training)
    before, modes = state(model), [module.training for module in model.modules()]
    result = world.unlearn(unlearner)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert result is not model
    shared = {t.data_ptr() for t in model.state_dict().values()} & {t.data_ptr() for t in result.state_dict().values()}
    assert not shared


@every_unlearner
def test_the_data_are_left_untouched(unlearner):
    world = make_world()
    inputs, labels, index = (
        world.points.whole_inputs.clone(),
        world.points.whole_labels.clone(),
        world.retain.index.copy(),
    )
    world.unlearn(unlearner)
    assert torch.equal(world.points.whole_inputs, inputs)
    assert torch.equal(world.points.whole_labels, labels)
    assert np.array_equal(world.retain.index, index)


@every_unlearner
@every_norm
def test_the_result_is_a_model_in_eval_mode_that_can_be_trained_further(unlearner, norm):
    world = make_world(norm)
    model = world.unlearn(unlearner)
    assert type(model) is type(world.original)
    assert state(model).keys() == state(world.original).keys()
    assert not any(module.training for module in model.modules())
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    assert np.isfinite(outputs_of(model, world.points)).all()


@every_unlearner
@every_norm
def test_the_same_inputs_and_streams_give_the_same_bits_whatever_torchs_seed(unlearner, norm):
    world = make_world(norm)
    torch.manual_seed(1)
    first = world.unlearn(unlearner)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert not changed(world.unlearn(unlearner), first)
    assert torch.equal(torch.get_rng_state(), before)


@every_unlearner
def test_a_model_with_dropout_draws_from_the_streams_and_not_from_torchs_seed(unlearner):
    world = make_world(model=plugins.models.bind(WithDropout))
    torch.manual_seed(1)
    first = world.unlearn(unlearner)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert not changed(world.unlearn(unlearner), first)
    assert torch.equal(torch.get_rng_state(), before)


@every_unlearner
def test_points_outside_both_sets_do_not_matter(unlearner):
    world = make_world()
    inputs = world.points.whole_inputs.clone()
    outside = np.setdiff1d(np.arange(len(inputs)), np.concatenate([world.retain.index, world.forget.index]))
    assert len(outside) == 10
    inputs[torch.from_numpy(outside)] = 9.0
    retain, forget = (Points(inputs, world.points.whole_labels, part.index) for part in (world.retain, world.forget))
    assert not changed(world.unlearn(unlearner, retain=retain, forget=forget), world.unlearn(unlearner))


@every_unlearner
@every_norm
def test_a_single_point_can_be_forgotten(unlearner, norm):
    world = make_world(norm)
    model = world.unlearn(unlearner, forget=world.forget.subset(world.forget.index[:1]))
    assert np.isfinite(outputs_of(model, world.points)).all()


@every_unlearner
@every_norm
@pytest.mark.parametrize("n_retain", [17, 33])  # one more than whole batches of 16: no batch of one point may arise
def test_sets_that_are_no_whole_batches_are_no_trouble(unlearner, norm, n_retain):
    world = make_world(norm)
    retain = world.retain.subset(world.retain.index[:n_retain])
    model = world.unlearn(unlearner, retain=retain, forget=world.forget.subset(np.arange(17)))
    assert np.isfinite(outputs_of(model, world.points)).all()


@pytest.mark.parametrize(("label", "unlearner"), EVERY.items(), ids=EVERY)
def test_its_cost_is_reported_exactly_and_added_to_what_was_spent(label, unlearner):
    world, expected = make_world(), COST[label.split()[0]]
    context = Context(world.learner, Streams("a job"), n_gradients=1000)
    unlearner.unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients - 1000 == expected(unlearner, world)
    assert context.n_gradients >= 1000


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(plugins.unlearners.load(n), "unlearn_many")])
@every_norm
def test_many_requests_at_once_are_answered_like_each_alone(name, norm):
    world, unlearner = make_world(norm), few_epochs(name)
    assert isinstance(unlearner, StackedUnlearner)
    other_retain = world.points.subset(np.arange(N_RETAIN))
    requests = [
        Request(copy.deepcopy(world.original), retain, world.forget, world.context(key))
        for retain, key in ((world.retain, "one"), (other_retain, "two"), (world.retain, "three"))
    ]
    together = unlearner.unlearn_many(requests)
    for model, request, key in zip(together, requests, ("one", "two", "three"), strict=True):
        alone = world.unlearn(unlearner, retain=request.retain, key=key)
        for tensor, expected in zip(state(model).values(), state(alone).values(), strict=True):
            torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=2e-5)
        assert request.context.n_gradients == COST[name](unlearner, world)


def test_the_entries_name_the_strength_of_every_shipped_method_that_treats_many_models_at_once():
    for name, entry in plugins.unlearners.entries.items():
        thing = plugins.unlearners.load(name)
        strength = getattr(thing, "strength", None) if hasattr(thing, "unlearn_many") else None
        assert entry.differs_in == ("" if strength is None else strength.parameter)


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("bad", [{"lr": -1.0}, {"epochs": -1}, {"batch_size": 0}])
def test_settings_that_make_no_sense_are_refused(name, bad):
    with pytest.raises(ValueError, match="must not be negative"):
        plugins.unlearners.load(name)(**bad)
