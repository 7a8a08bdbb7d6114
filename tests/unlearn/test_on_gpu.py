"""On a GPU every unlearner makes the model that it makes on a CPU, up to rounding: all its randomness is the CPU's."""

import copy

import pytest
import torch

from forgetgauge.learn.device import choose_device
from forgetgauge.learn.sisa import Sisa
from forgetgauge.streams import Streams
from forgetgauge.unlearn.fisher import Fisher
from forgetgauge.unlearn.own import CompetitionUnlearner
from forgetgauge.unlearn.sisa import RetrainShards
from forgetgauge.unlearn.ssd import SSD
from forgetgauge.unlearn.unlearner import Context

from .test_every_unlearner import EVERY, few_epochs
from .world import World, make_world, state

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")

METHODS = {
    **EVERY,
    "salun frozen": few_epochs("salun", batch_norm="frozen"),
    "fisher sampled": Fisher(labels="sampled"),
    "ssd that selects": SSD(alpha=1.5),
    "ssd by equal batches": SSD(alpha=1.5, importance="equal-batches", batch_size=8),
    "ssd by the published batches": SSD(alpha=1.5, importance="published-batches", batch_size=8),
}


@pytest.fixture(autouse=True)
def _plain_floats():
    """TF32 rounds to ten bits: what is compared here is the method, not the precision."""
    places = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [place.allow_tf32 for place in places]
    for place in places:
        place.allow_tf32 = False
    yield
    for place, allowed in zip(places, before, strict=True):
        place.allow_tf32 = allowed


def moved(world: World) -> World:
    device = choose_device("cuda")
    points = world.points.on(device)
    retain, forget = points.subset(world.retain.index), points.subset(world.forget.index)
    return World(world.learner, points, retain, forget, copy.deepcopy(world.original).to(device))


def assert_same_on_both(on_cpu, on_gpu, tolerance):
    assert {tensor.device.type for tensor in on_gpu.state_dict().values()} == {"cuda"}
    found = {name: tensor.cpu() for name, tensor in state(on_gpu).items()}
    for name, tensor in state(on_cpu).items():
        torch.testing.assert_close(
            found[name], tensor, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("unlearner", METHODS.values(), ids=METHODS)
def test_every_unlearner_gives_the_same_weights(unlearner):
    world = make_world("batch")
    theirs = moved(world)
    before = state(theirs.original)
    on_cpu, on_gpu = world.unlearn(unlearner), theirs.unlearn(unlearner)
    # Adam divides a gradient by its own size: rounding in a gradient near 0 moves a weight by up to lr a step.
    assert_same_on_both(
        on_cpu, on_gpu, 2e-3 if hasattr(unlearner, "lr") and not hasattr(unlearner, "momentum") else 1e-3
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in state(theirs.original).items())


def test_shards_are_retrained_alike():
    world = make_world("batch")
    learner = Sisa(n_shards=3, model_params={"width": 4}, epochs=2, batch_size=16)
    known = world.points.subset([*world.retain.index, *world.forget.index])
    theirs = moved(world)
    models = []
    for where, points in ((world, known), (theirs, theirs.points.subset(known.index))):
        original = learner.fit(points, Streams("original"))
        models.append(RetrainShards().unlearn(original, where.retain, where.forget, Context(learner, Streams("a job"))))
    assert_same_on_both(*models, 1e-3)


def ascend(net, retain_loader, forget_loader, val_loader):
    """As competition code is written: the batches go to the net as they come."""
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)
    for x, y in forget_loader:
        optimiser.zero_grad()
        (-torch.nn.functional.cross_entropy(net(x), y)).backward()
        optimiser.step()


def test_a_competition_method_runs_where_the_model_is():
    world = make_world("batch")
    theirs, models = moved(world), []
    for where in (world, theirs):
        context = Context(where.learner, Streams("a job"), validation=where.points)
        models.append(CompetitionUnlearner(ascend, 4).unlearn(where.original, where.retain, where.forget, context))
    assert_same_on_both(*models, 1e-3)
