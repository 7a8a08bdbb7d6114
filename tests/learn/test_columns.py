"""Answers for altered copies, against copies that are made by hand, one point and one copy at a time."""

import types

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge.data.dataset import Points, Scaling
from forgetgauge.learn import columns
from forgetgauge.learn.columns import COLUMNS, N_NOISES, augmented, relearned


class Linear(nn.Module):
    def __init__(self, n_inputs: int, n_classes: int = 3) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.head = nn.Linear(n_inputs, n_classes)
        with torch.no_grad():
            self.head.weight.copy_(torch.randn(n_classes, n_inputs, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.flatten(1))


def images(scaling: Scaling | None = None) -> Points:
    generator = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (40, 2, 6, 5), generator=generator)
    stored = pixels.to(torch.uint8) if scaling else pixels.float() / 255 - 0.5
    return Points.of(stored, torch.arange(40) % 3, scaling)


def shifted(image: np.ndarray, down: int, right: int, mirrored: bool) -> np.ndarray:
    """Pixel (i, j) of the copy is pixel (i + down, j' + right) of the image, or 0 outside."""
    copy = np.zeros_like(image)
    _, height, width = image.shape
    for i in range(height):
        for j in range(width):
            row, column = i + down, (width - 1 - j if mirrored else j) + right
            if 0 <= row < height and 0 <= column < width:
                copy[:, i, j] = image[:, row, column]
    return copy


@pytest.mark.parametrize("scaling", [None, Scaling((0.4, 0.5), (0.2, 0.3))], ids=["real numbers", "bytes"])
def test_images_are_shifted_by_two_pixels_at_most_and_mirrored(scaling):
    points = images(scaling)
    model = Linear(60).eval()
    moves = [(i, j, m) for m in (False, True) for i in range(-2, 3) for j in range(-2, 3) if abs(i) + abs(j) <= 2]
    assert len(moves) == 26
    expected = []
    for which in range(40):
        stored = points.whole_inputs[which].numpy()
        copies = torch.stack([torch.from_numpy(shifted(stored, *move)) for move in moves])
        with torch.no_grad():
            answers = model(points.scaled(copies)).argmax(1)
        expected.append(float((answers == points.whole_labels[which]).float().mean()))
    np.testing.assert_allclose(augmented(model, points, points), expected, atol=1e-6)


def test_other_inputs_have_noise_and_a_point_far_from_the_boundary_keeps_its_label_longer():
    x = torch.tensor([[0.05], [0.3], [1.0], [6.0]]).repeat(50, 1) * torch.tensor([1.0, -1.0]).repeat(100)[:, None]
    points = Points.of(x, (x[:, 0] > 0).long())
    model = Linear(1, 2)
    with torch.no_grad():
        model.head.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        model.head.bias.zero_()
    share = augmented(model, points, points)
    near, far = share[(x[:, 0].abs() < 0.1).numpy()].mean(), share[(x[:, 0].abs() > 5).numpy()].mean()
    assert near < 0.9 < far
    assert np.allclose(share * N_NOISES, np.round(share * N_NOISES), atol=1e-4)


@pytest.mark.parametrize("name", COLUMNS)
def test_each_point_is_answered_by_itself_and_the_same_way_twice(name):
    points, model, own = images(), Linear(60), images().subset(np.arange(20, 40))
    before = [p.clone() for p in model.parameters()]
    whole = COLUMNS[name](model, points, own)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(COLUMNS[name](model, points.subset(order), own), whole[order], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(COLUMNS[name](model, points.subset(np.arange(3)), own), whole[:3], rtol=1e-5, atol=1e-6)
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


def test_relearning_is_an_epoch_of_descent_written_out():
    """θ ← θ − 0.01 g on softmax regression, whose gradient g is the mean of (p − e_y) xᵀ; in float64."""
    points, model = images(), Linear(60)
    own = points.subset(np.arange(10))  # one batch, whatever its order
    found = relearned(model, points, own)
    weight, bias = (p.detach().double().numpy().copy() for p in (model.head.weight, model.head.bias))
    x, y = points.x.flatten(1).double().numpy(), points.y.numpy()

    def posterior(at: np.ndarray) -> np.ndarray:
        z = at @ weight.T + bias
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    error = (posterior(x[:10]) - np.eye(3)[y[:10]]) / 10
    by_weight, by_bias = error.T @ x[:10], error.sum(axis=0)
    weight -= 0.01 * by_weight
    bias -= 0.01 * by_bias
    np.testing.assert_allclose(found, -np.log(posterior(x)[np.arange(40), y]), rtol=1e-4, atol=1e-5)


def test_token_ids_are_refused_in_one_line():
    points = Points.of(torch.zeros((4, 7), dtype=torch.int64), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="not of such inputs as token ids") as refused:
        augmented(Linear(7), points, points)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("points", "floats"), [(256, 2**23), (7, 2**23), (256, 400), (256, 1)])
def test_the_norm_of_a_points_gradient_is_autograds_however_many_are_held_at_once(monkeypatch, points, floats):
    monkeypatch.setattr(columns, "CHUNK_POINTS", points)
    monkeypatch.setattr(columns, "CHUNK_FLOATS", floats)
    asked, model = images(), Linear(60).eval()
    expected = []
    for x, y in zip(asked.x, asked.y, strict=True):
        loss = nn.functional.cross_entropy(model(x[None]), y[None])
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        expected.append(float(torch.cat([g.flatten() for g in gradients]).norm()))
    np.testing.assert_allclose(columns.gradient_norm(model, asked, asked), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("gib", "weights", "points"),
    [
        (140, 270_000, 256),
        (140, 10_797_317, 87),
        (8, 10_797_317, 4),
        (1, 10**7, 1),
        (8, 10**9, 1),
        (None, 10_797_317, 1),
    ],
)
def test_a_gpu_holds_as_many_gradients_as_fill_an_eighth_of_its_memory(monkeypatch, gib, weights, points):
    device = torch.device("cuda" if gib else "cpu")
    facts = types.SimpleNamespace(total_memory=(gib or 0) * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda asked: facts)
    assert columns.gradients_at_once(weights, device) == points
