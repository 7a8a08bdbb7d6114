import copy
import math

import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn import columns
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of
from forgetgauge.streams import Streams
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.unlearn.fisher import Fisher, _blurred, _draw_labels, noise_variance
from forgetgauge.unlearn.memory import streams_of
from forgetgauge.unlearn.squared_gradients import (
    mean_squares,
    squared_loss_gradient,
    squared_score_under_the_model,
    trainable,
)
from forgetgauge.unlearn.unlearner import Context

from .world import N_RETAIN, changed, make_world, parameters

NORMS = ["batch", "group", "none"]


def information(model, x):
    y = torch.zeros(len(x), dtype=torch.int64)
    return mean_squares(model, trainable(model), x, y, squared_score_under_the_model)


def by_definition(model, x, labels=None):
    """(1/n) Σ_x Σ_y p(y|x) (∂ −log p(y|x))² by one backward pass for each point and label (or for the given labels)."""
    wanted = list(model.parameters())
    total = [torch.zeros_like(p, dtype=torch.float64) for p in wanted]
    for i in range(len(x)):
        log_p = model(x[i : i + 1])[0].log_softmax(0)
        for y in range(len(log_p)) if labels is None else [int(labels[i])]:
            weight = log_p[y].exp().item() if labels is None else 1.0
            for sum_, gradient in zip(total, torch.autograd.grad(log_p[y], wanted, retain_graph=True), strict=True):
                sum_ += weight * gradient.double() ** 2
    return {name: sum_ / len(x) for (name, _), sum_ in zip(model.named_parameters(), total, strict=True)}


def assert_close(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name].double(), other[name], rtol=1e-3, atol=1e-9, msg=name)


def test_softmax_regression_has_the_closed_form():
    torch.manual_seed(0)
    model, x = nn.Linear(5, 4), torch.randn(30, 5)
    p = model(x).softmax(1).detach().double()
    spread = p * (1 - p)  # (n, K)
    expected = torch.einsum("nd,nc->cd", x.double() ** 2, spread) / 30
    found = information(model, x)
    torch.testing.assert_close(found["weight"], expected, rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(found["bias"], spread.mean(0), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_it_is_the_definition_point_by_point_and_label_by_label(norm):
    world = make_world(norm)
    assert_close(information(world.original, world.retain.x), by_definition(world.original, world.retain.x))


@pytest.mark.parametrize("norm", NORMS)
def test_it_is_the_variance_of_the_logit_jacobian(norm):
    world = make_world(norm)
    model, x = world.original, world.retain.x
    weight = model.head.weight
    jacobian = torch.func.jacrev(lambda w: torch.func.functional_call(model, {"head.weight": w}, (x,)))(weight)
    jacobian, p = jacobian.detach().double(), model(x).softmax(1).detach().double()
    mean = torch.einsum("ny,nyij->nij", p, jacobian)
    expected = (torch.einsum("ny,nyij->nij", p, jacobian**2) - mean**2).mean(0)
    torch.testing.assert_close(information(model, x)["head.weight"], expected, rtol=1e-3, atol=1e-9)


def test_the_chunks_do_not_matter(monkeypatch):
    world = make_world()
    whole = information(world.original, world.retain.x)
    for points, floats in ((5, 2**23), (256, 3000), (256, 1)):  # 37 in chunks of 5, of a few, and point by point
        monkeypatch.setattr(columns, "CHUNK_POINTS", points)
        monkeypatch.setattr(columns, "CHUNK_FLOATS", floats)
        assert_close(information(world.original, world.retain.x), whole)


class WithEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 8), nn.Linear(8, 4)

    def forward(self, tokens):
        return self.head(self.embedding(tokens).mean(1))


@pytest.mark.parametrize("points", [1, 256])
def test_what_is_left_out_keeps_no_chunk_in_memory(monkeypatch, points):
    """The embedding wants gradients too: a sum that hangs on it holds every chunk until the end, 115 GiB of a BERT."""
    torch.manual_seed(0)
    model, x = WithEmbedding(), torch.randint(0, 50, (20, 5))
    monkeypatch.setattr(columns, "CHUNK_POINTS", points)
    found = mean_squares(model, _blurred(model), x, torch.zeros(20).long(), squared_loss_gradient(CLASSIFICATION))
    assert set(found) == {"head.weight", "head.bias"}
    assert not any(square.requires_grad for square in found.values())


class Branching(nn.Module):
    """Vmap cannot take it: the flow depends on a value."""

    def __init__(self, input_shape=(1, 8, 8), n_classes=4):
        super().__init__()
        self.head = nn.Linear(64, n_classes)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, x):
        x = x.flatten(1)
        return self.head(x if x.sum().item() > 0 else -x)


def test_a_model_that_vmap_cannot_take_is_differentiated_point_by_point():
    torch.manual_seed(0)
    model, x = Branching(), torch.randn(7, 1, 8, 8)
    found = information(model, x)
    assert torch.equal(found.pop("unused"), torch.zeros(3, dtype=torch.float64))
    model.unused = None
    assert_close(found, by_definition(model, x))
    world = make_world(model=plugins.models.bind(Branching))
    assert changed(world.unlearn(Fisher()), world.original) == {"head.weight", "head.bias", "unused"}


@pytest.mark.parametrize("norm", NORMS)
def test_no_information_is_negative_even_of_a_model_that_is_certain(norm):
    world = make_world(norm)
    with torch.no_grad():
        world.original.head.weight *= 300
    found = information(world.original, world.retain.x)
    assert all(torch.isfinite(tensor).all() and (tensor >= 0).all() for tensor in found.values())


@pytest.mark.parametrize("norm", NORMS)
def test_alpha_0_is_the_identity(norm):
    world = make_world(norm)
    assert not changed(world.unlearn(Fisher(alpha=0.0)), world.original)


@pytest.mark.parametrize("norm", NORMS)
def test_parameters_move_and_buffers_do_not(norm):
    world = make_world(norm)
    assert changed(world.unlearn(Fisher()), world.original) == parameters(world.original)


def expected_deviation(model, alpha, power=1.0):
    """The sheet's steps, tensor by tensor, on the Fisher information by definition."""
    fisher, deviation = by_definition(model, make_world().retain.x), {}
    for name, f in fisher.items():
        head = name.startswith("head.")
        variance = torch.minimum((f + 1e-8) ** -power, torch.tensor(1e2 if head else 1e3))
        variance = alpha * variance
        if f.dim() > 1:
            variance = torch.zeros_like(variance) + variance.mean(1, keepdim=True)
        deviation[name] = (variance * (10 if head or f.dim() == 1 else 1)).sqrt()
    return deviation


def test_the_noise_has_the_sheets_deviation_in_every_tensor():
    world, n_seeds = make_world(), 60
    deviation, squares = expected_deviation(world.original, 1e-6), {}
    for seed in range(n_seeds):
        blurred = world.unlearn(Fisher(), key=str(seed))
        for (name, new), old in zip(blurred.named_parameters(), world.original.parameters(), strict=True):
            noise = (new - old).detach() / deviation[name]
            squares[name] = squares.get(name, 0) + noise**2
    for name, square in squares.items():
        n = n_seeds * square.numel()
        assert square.sum().item() / n == pytest.approx(1, abs=5 * math.sqrt(2 / n)), name
        assert square.max().item() / n_seeds < 1 + 7 * math.sqrt(2 / n_seeds), name


def test_the_noise_grows_with_the_root_of_alpha_and_differs_from_seed_to_seed():
    world = make_world("none")
    old = world.original.head.weight
    one, four = (world.unlearn(Fisher(alpha=alpha)).head.weight - old for alpha in (1e-4, 4e-4))
    torch.testing.assert_close(four, 2 * one, rtol=1e-3, atol=1e-6)
    assert changed(world.unlearn(Fisher(), key="other"), world.unlearn(Fisher())) == parameters(world.original)


def test_caps_means_and_the_tenfold_by_hand():
    information = torch.tensor([[0.0, 1.0], [0.5, 0.25]], dtype=torch.float64)
    body = noise_variance(information, 2.0, 1.0, in_head=False)
    torch.testing.assert_close(body, torch.tensor([[1001.0, 1001.0], [6.0, 6.0]], dtype=torch.float64))
    head = noise_variance(information, 2.0, 1.0, in_head=True)
    torch.testing.assert_close(head, torch.tensor([[1010.0, 1010.0], [60.0, 60.0]], dtype=torch.float64))
    vector = noise_variance(information[1], 2.0, 1.0, in_head=False)
    torch.testing.assert_close(vector, torch.tensor([40.0, 80.0], dtype=torch.float64))
    root = noise_variance(information[1], 2.0, 0.5, in_head=False)
    torch.testing.assert_close(root, torch.tensor([20 * 2**0.5, 40.0], dtype=torch.float64))


def test_the_head_is_found_by_module_and_not_by_its_number_of_rows():
    def square(input_shape, n_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes), nn.ReLU(), nn.Linear(n_classes, n_classes))

    world = make_world(model=plugins.models.bind(square))
    moved = [
        (a - b).detach()
        for key in range(60)
        for a, b in [(world.unlearn(Fisher(alpha=1.0), key=str(key))[1].weight, world.original[1].weight)]
    ]
    found = information(world.original, world.retain.x)["1.weight"]
    as_body = (found + 1e-8).reciprocal().clamp(max=1e3).mean(1)  # no tenfold, the larger cap
    measured = torch.stack(moved).double().square().mean((0, 2))
    torch.testing.assert_close(measured, as_body, rtol=5 * math.sqrt(2 / (60 * 64)), atol=0)


class Reader(nn.Module):
    """Tokens to classes; the rows of tokens that no text has are without information."""

    def __init__(self, tied=False):
        super().__init__()
        self.embedding = nn.Embedding(4, 6)
        self.head = nn.Linear(6, 4, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.embedding(x).mean(1))


@pytest.mark.parametrize(("tied", "moving"), [(False, {"head.weight"}), (True, {"embedding.weight", "head.weight"})])
def test_embeddings_are_left_alone_unless_they_are_the_head(tied, moving):
    torch.manual_seed(0)
    points, model = Points.of(torch.randint(3, (12, 5)), torch.arange(12) % 4), Reader(tied)
    blurred = Fisher().unlearn(model, points, points, Context(Minibatch(), Streams("a job")))
    assert changed(blurred, model) == moving


def test_frozen_parameters_stay_and_stay_frozen():
    world = make_world()
    world.original.body.requires_grad_(False)
    blurred = world.unlearn(Fisher())
    assert changed(blurred, world.original) == {"head.weight", "head.bias"}
    flags = [p.requires_grad for p in world.original.parameters()]
    assert [p.requires_grad for p in blurred.parameters()] == flags


def test_the_forget_set_is_not_looked_at():
    world = make_world()
    assert not changed(world.unlearn(Fisher(), forget=world.points.subset([0])), world.unlearn(Fisher()))


def test_all_labels_cost_k_gradients_a_point_and_sampled_ones_one():
    world = make_world()
    for labels, cost in (("all", 4 * N_RETAIN), ("sampled", N_RETAIN)):
        context = world.context()
        Fisher(labels=labels).unlearn(world.original, world.retain, world.forget, context)
        assert context.n_gradients == cost


def test_sampled_labels_are_right_on_average():
    world = make_world("none")
    model, retain = copy.deepcopy(world.original), world.retain
    found = []
    for seed in range(100):
        drawn = _draw_labels(outputs_of(model, retain), Streams(str(seed)))
        found.append(mean_squares(model, trainable(model), retain.x, drawn, squared_loss_gradient(retain.task)))
    expected = by_definition(model, retain.x)
    for name in expected:
        draws = torch.stack([f[name] for f in found])
        error = draws.std(0) / math.sqrt(len(draws)) + 1e-9
        assert (((draws.mean(0) - expected[name]) / error) ** 2).mean().item() < 2, name


def test_one_drawn_label_gives_the_squared_gradient_of_its_loss():
    world = make_world("none")
    model = copy.deepcopy(world.original)
    found = Fisher(labels="sampled")._information(model, trainable(model), world.forget)
    streams = streams_of("labels of Fisher forgetting", model, world.forget)
    generator = torch.Generator().manual_seed(streams.seed("labels"))
    p = model(world.forget.x).detach().double().softmax(1)
    drawn = torch.multinomial(p, 1, generator=generator)[:, 0]
    assert_close(found, by_definition(model, world.forget.x, drawn))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"alpha": -1e-9}, "must not be negative"),
        ({"alpha": math.nan}, "must be finite"),
        ({"power": -1.0}, "must not be negative"),
        ({"power": math.inf}, "must be finite"),
        ({"labels": "some"}, "neither 'all' nor 'sampled'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        Fisher(**bad)
