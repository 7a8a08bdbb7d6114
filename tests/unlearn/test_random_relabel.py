import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import chisquare

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.streams import Streams
from forgetgauge.unlearn.random_relabel import RandomRelabel, wrong_labels

from .world import N_FORGET, N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}, {"epochs": 0, "batch_norm": "train"}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(RandomRelabel(**nothing)), world.original)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_new_label_is_never_the_true_one_and_every_wrong_one_is_as_likely(n_classes):
    labels = torch.arange(9000) % n_classes
    drawn = wrong_labels(Points.of(torch.zeros(9000, 1), labels), np.random.default_rng(0))
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (labels.numpy(), drawn.numpy()), 1)
    assert drawn.dtype == labels.dtype
    assert (np.diag(counts) == 0).all()
    for label, row in enumerate(counts):
        assert n_classes == 2 or chisquare(np.delete(row, label)).pvalue > 1e-4


def test_with_one_class_no_label_is_wrong():
    with pytest.raises(UserError, match="one class only"):
        wrong_labels(Points.of(torch.zeros(3, 1), torch.zeros(3, dtype=torch.int64)), np.random.default_rng(0))


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_it_is_adam_on_both_sets_shuffled_together(mode):
    world, streams = make_world("batch"), Streams("a job")
    model = world.unlearn(RandomRelabel(lr=0.01, epochs=2, batch_size=25, batch_norm=mode))
    x = torch.cat([world.forget.x, world.retain.x])
    y = torch.cat([wrong_labels(world.forget, streams.generator("labels")), world.retain.y])
    reference, rng = copy.deepcopy(world.original).train(mode == "train"), streams.generator("order")
    optimiser = torch.optim.Adam(reference.parameters(), lr=0.01)
    for _ in range(2):
        for at in np.split(rng.permutation(50), 2):
            optimiser.zero_grad()
            F.cross_entropy(reference(x[at]), y[at]).backward()
            optimiser.step()
    for tensor, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-3, atol=1e-4)


def test_trained_for_long_it_says_the_wrong_labels_on_the_forget_set_and_the_right_ones_elsewhere():
    world = make_world("batch")
    model = world.unlearn(RandomRelabel(lr=0.01, epochs=150, batch_size=50))
    wrong = wrong_labels(world.forget, Streams("a job").generator("labels"))
    assert torch.equal(model(world.forget.x).argmax(1), wrong)
    assert torch.equal(model(world.retain.x).argmax(1), world.retain.y)


def test_other_streams_draw_other_labels():
    world = make_world()
    drawn = {tuple(wrong_labels(world.forget, Streams(str(i)).generator("labels")).tolist()) for i in range(5)}
    assert len(drawn) == 5


@pytest.mark.parametrize(("mode", "moves_statistics"), [("frozen", False), ("train", True)])
def test_running_statistics_move_in_train_mode_only(mode, moves_statistics):
    world = make_world("batch")
    moved = changed(world.unlearn(RandomRelabel(lr=0.01, batch_norm=mode)), world.original)
    assert moved == parameters(world.original) | (buffers(world.original) if moves_statistics else set())


def test_its_cost_is_a_pass_over_both_sets_per_epoch():
    world, context = make_world(), make_world().context()
    RandomRelabel(batch_size=16).unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 3 * (N_RETAIN + N_FORGET)


@pytest.mark.parametrize("bad", [{"lr": -1.0}, {"epochs": -1}, {"batch_size": 0}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="must not be negative"):
        RandomRelabel(**bad)
