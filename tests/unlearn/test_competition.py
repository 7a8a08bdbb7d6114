"""Methods in the competition signature: run unmodified, from the job's own randomness, without a look at T."""

import copy
import inspect
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.streams import Streams
from forgetgauge.testing import check_unlearner
from forgetgauge.unlearn.own import CompetitionUnlearner
from forgetgauge.unlearn.unlearner import Context, Unlearner

from .world import changed, make_world

EXAMPLES = Path(__file__).parents[2] / "examples"


def finetune(net, retain_loader, forget_loader, val_loader):
    """As careless as they come: global randomness, batch norm in train mode, the net left there."""
    net.train()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in retain_loader:
        noise = torch.randn_like(x) + float(np.random.rand()) + random.random()  # noqa: NPY002
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(x + 0.01 * noise), y).backward()
        optimiser.step()
    return net


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(EXAMPLES)
    import competition_method

    yield competition_method.unlearning
    sys.modules.pop("competition_method", None)


def context_of(world, key="a job"):
    outside = np.setdiff1d(np.arange(len(world.points)), np.concatenate([world.retain.index, world.forget.index]))
    return Context(world.learner, Streams(key), validation=world.points.subset(outside))


def unlearned(function, world, key="a job", **how):
    context = context_of(world, key)
    return CompetitionUnlearner(function, **how).unlearn(world.original, world.retain, world.forget, context)


def test_loaders_are_given_by_name_and_hold_the_right_points():
    seen = {}

    def look(net, forget_loader, retain_loader, validation_loader, /, note=None):
        loaders = {"retain": retain_loader, "forget": forget_loader, "validation": validation_loader}
        seen.update({name: torch.cat([x for x, _ in loader]) for name, loader in loaders.items()}, note=note)

    world = make_world()
    unlearned(look, world, params={"note": "told"})
    context = context_of(world)
    expected = {"retain": world.retain.x, "forget": world.forget.x, "validation": context.validation.x}
    for name, points in expected.items():
        assert sorted(map(tuple, seen[name].flatten(1).tolist())) == sorted(map(tuple, points.flatten(1).tolist()))
    assert torch.equal(seen["validation"], context.validation.x)
    assert not torch.equal(seen["retain"], world.retain.x)
    assert seen["note"] == "told"


def test_returning_the_net_or_changing_it_in_place_is_the_same():
    def in_place(net, retain_loader, forget_loader, val_loader):
        finetune(net, retain_loader, forget_loader, val_loader)

    world = make_world()
    one, other = unlearned(finetune, world), unlearned(in_place, world)
    assert changed(one, world.original)
    assert not changed(one, other)
    assert not any(module.training for module in other.modules())


def test_what_it_leaves_frozen_and_in_train_mode_is_put_right():
    def freeze(net, retain_loader, forget_loader, val_loader):
        net.train().requires_grad_(False)

    world = make_world()
    model = unlearned(freeze, world)
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert not any(module.training for module in model.modules())


def test_the_streams_decide_and_the_global_generators_are_left_alone():
    world = make_world()
    torch.manual_seed(1)
    first = unlearned(finetune, world)
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    random.seed(2)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    assert not changed(unlearned(finetune, world), first)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert random.getstate() == before[2]
    assert changed(unlearned(finetune, world, key="another job"), first)


def test_no_batch_is_a_single_point_unless_the_set_is_one():
    sizes = []

    def measure(net, retain_loader, forget_loader, val_loader):
        sizes.append([len(x) for x, _ in retain_loader])

    world = make_world()
    for n_points in (1, 16, 17, 33, 37):
        retain = world.retain.subset(world.retain.index[:n_points])
        CompetitionUnlearner(measure, 16).unlearn(world.original, retain, world.forget, context_of(world))
    assert [sum(batches) for batches in sizes] == [1, 16, 17, 33, 37]
    assert sizes[0] == [1]
    assert all(min(batches) > 1 and max(batches) <= 16 for batches in sizes[1:])


def test_its_cost_is_what_the_loaders_served():
    def two_epochs(net, retain_loader, forget_loader, val_loader):
        for _ in range(2):
            finetune(net, retain_loader, forget_loader, val_loader)
        sum(len(x) for x, _ in forget_loader) + sum(len(x) for x, _ in val_loader)

    world = make_world()
    context = context_of(world)
    CompetitionUnlearner(two_epochs).unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 2 * len(world.retain) + len(world.forget)


def test_parameters_of_a_run_file_go_to_the_loaders_or_to_the_function():
    def own_size(net, retain_loader, forget_loader, val_loader, batch_size=4):
        return net

    assert CompetitionUnlearner.of(finetune, {"batch_size": 8}) == CompetitionUnlearner(finetune, 8)
    assert CompetitionUnlearner.of(own_size, {"batch_size": 8}).params == {"batch_size": 8}
    assert isinstance(CompetitionUnlearner(finetune), Unlearner)
    with pytest.raises(ValueError, match="batch_size"):
        CompetitionUnlearner(finetune, 0)


def test_without_validation_points_it_says_so():
    world = make_world()
    with pytest.raises(UserError, match="needs validation points"):
        CompetitionUnlearner(finetune).unlearn(world.original, world.retain, world.forget, world.context())


def test_a_result_that_is_no_model_is_refused():
    def accuracy(net, retain_loader, forget_loader, val_loader):
        return 0.9

    with pytest.raises(TypeError, match="accuracy returned a float"):
        unlearned(accuracy, make_world())


def test_it_keeps_the_promises_of_an_unlearner():
    check_unlearner(finetune)


def test_the_example_is_in_exactly_that_signature_and_keeps_the_promises(example):
    names = [p.name for p in inspect.signature(example).parameters.values()]
    assert names == ["net", "retain_loader", "forget_loader", "val_loader"]
    assert "forgetgauge" not in inspect.getsource(sys.modules["competition_method"])
    check_unlearner(example)


def test_the_example_runs_unmodified_from_its_run_file(example, tmp_path):
    from forgetgauge.plan.runfile import apply_settings, read_run_file
    from forgetgauge.run.campaign import Campaign, play
    from forgetgauge.run.resolve import resolve
    from forgetgauge.store.runfolder import RunFolder

    small = ["game.pairs=2", "data.fraction=0.2", "learner.epochs=1", "shadows.count=2", 'adversaries=["confidence"]']
    raw, source = read_run_file(EXAMPLES / "competition.toml")
    ending, result = play(Campaign.plan(resolve(apply_settings(raw, small), source)), RunFolder(tmp_path / "run"))
    assert ending.failed == {}
    found = result.methods["competition"]
    assert found.n_pairs == 2
    k, n = result.games[0].spec["n_forget"], result.games[0].spec["n_retain"]
    assert found.n_gradients == k + 3 * n


def test_a_function_of_the_running_program_is_known_by_its_signature_too():
    settings = {"pairs": 1, "fraction": 0.2, "shadows": 2, "learner": {"epochs": 1}, "alpha": 0.5}
    result = forgetgauge.evaluate(unlearner=[copy.copy(finetune)], adversaries=["confidence"], **settings)
    assert result.failures == []
    assert 0 <= result.methods["finetune"].quality <= 1


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def unlearning(net, retain, forget, validation):
    """In the shape of a public starting kit: three loaders by position, a device of the module's, a schedule."""
    epochs = 2
    criterion = torch.nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs)
    net.train()
    for _ in range(epochs):
        for inputs, targets in retain:
            inputs, targets = inputs.to(DEVICE), targets.to(DEVICE)
            optimiser.zero_grad()
            criterion(net(inputs), targets).backward()
            optimiser.step()
        scheduler.step()
    net.eval()
    return net


def unlearning_by_name(net, retain_loader, forget_loader, val_loader):
    """The same with batches that are read by name."""
    net.train()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.001)
    for sample in retain_loader:
        inputs, targets = sample["image"].to(DEVICE), sample["age_group"].to(DEVICE)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs), targets).backward()
        optimiser.step()
    net.eval()


SMALL = {"pairs": 2, "fraction": 0.2, "shadows": 2, "learner": {"epochs": 1}, "adversaries": ["confidence"]}


@pytest.mark.parametrize("function", [unlearning, unlearning_by_name])
def test_a_starting_kits_function_runs_unmodified(function):
    result = forgetgauge.evaluate(unlearner=[function], **SMALL)
    assert result.failures == []
    assert result.methods[function.__name__].n_pairs == 2
    check_unlearner(function)


def test_it_gets_loaders_by_place():
    seen = []

    def look(net, retain, forget, validation):
        seen.extend([len(retain.dataset), len(forget.dataset), len(validation.dataset)])
        assert all(loader.batch_size == 8 and len(loader) >= 1 for loader in (retain, forget, validation))

    world = make_world()
    unlearned(look, world, batch_size=8)
    assert seen == [len(world.retain), len(world.forget), len(world.points) - len(world.retain) - len(world.forget)]


def test_a_batch_is_a_list_with_names():
    def look(net, retain, forget, validation):
        for batch in retain:
            x, y = batch
            assert len(batch) == 2
            assert batch[0] is batch["image"] is x
            assert batch[1] is batch["label"] is batch["age_group"] is y
            with pytest.raises(KeyError, match="'image', 'label'"):
                batch["pixels"]

    unlearned(look, make_world())
