"""Numbers about a point that a model's outputs for it do not give.

Three need the weights: how steep the loss is at the point, how it rises when the weights are shaken, and what it is
after some training on the adversary's own data. One needs further queries, of which the labels alone are looked at: how
many altered copies of the point are given its label.

Each is given a model, the points that it is asked about, and points of the adversary's own: those of the other half of
the data set, which neither this model was trained on nor the points asked about are among.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from forgetgauge.data.dataset import Points
from forgetgauge.learn.augment import moved
from forgetgauge.learn.descent import Steps, batch_positions, descend
from forgetgauge.learn.predict import BATCH, outputs_of
from forgetgauge.streams import Streams

CHUNK_POINTS, CHUNK_FLOATS = 256, 2**23
"""Gradients of single points that are held at once: so many at most, and so many entries of them (32 MiB of float32;
vmap holds about twice that besides)."""
N_SHAKES, SHAKE = 8, 0.1
"""Each shake adds to every weight tensor normal noise of SHAKE times its own standard deviation."""
RELEARN_LR, RELEARN_BATCH = 0.01, 64
"""Of one epoch of SGD with momentum 0.9, norms keeping their statistics."""
FARTHEST_SHIFT = 2
"""Pixels, down and right added up: 13 shifts, each also mirrored, the image as it is among them."""
N_NOISES, LEAST_NOISE, MOST_NOISE = 26, 0.05, 2.0
"""Copies of an input that is no image: the noise grows from copy to copy, in units of each feature's own deviation."""


CHUNK_NUMBERS = 2**20
"""Numbers of the points themselves: 256 images of 3 × 32 × 32, 6 of 3 × 224 × 224."""


def gradients_at_once(n_weights: int, device: torch.device, point_size: int = 1) -> int:
    """Of how many points the gradients are held at once. A GPU takes as many as fill an eighth of its memory, whatever
    else is on it: with other chunks sums would round otherwise. What layers make of a large point has to fit too."""
    floats = CHUNK_FLOATS
    if device.type == "cuda":
        bytes_each = 4 * (1 + 4)  # of float32, and twice what vmap was seen to hold besides
        floats = max(floats, torch.cuda.get_device_properties(device).total_memory // 8 // bytes_each)
    return max(1, min(CHUNK_POINTS, floats // max(1, n_weights), CHUNK_NUMBERS // max(1, point_size)))


def gradient_norm(model: nn.Module, points: Points, own: Points) -> npt.NDArray[np.float32]:
    """(n,) ‖∂ loss(x, y) / ∂θ‖₂ in eval mode."""
    model.eval()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def norm(x: Tensor, y: Tensor) -> Tensor:
        def loss(parameters: dict[str, Tensor]) -> Tensor:
            return points.task.loss(functional_call(model, (parameters, buffers), (x[None],)), y[None])

        return torch.stack([g.square().sum() for g in grad(loss)(parameters).values()]).sum().sqrt()

    size = gradients_at_once(sum(p.numel() for p in parameters.values()), points.device, points.whole_inputs[0].numel())
    chunks = zip(torch.split(points.x, size), torch.split(points.y, size), strict=True)
    parts = [vmap(norm)(x, y) for x, y in chunks]
    return np.asarray(torch.cat(parts).detach().cpu().numpy(), dtype=np.float32)


@torch.no_grad()
def landscape(model: nn.Module, points: Points, own: Points) -> npt.NDArray[np.float32]:
    """(n,) mean rise of the loss over N_SHAKES random shakes of the weights; a memorised point lies in a sharp pit."""
    model.eval()
    weights, buffers = {name: p.detach() for name, p in model.named_parameters()}, dict(model.named_buffers())
    generator = torch.Generator().manual_seed(Streams("landscape").seed("shake"))  # the same shakes for every model

    def losses(parameters: dict[str, Tensor]) -> Tensor:
        parts = [
            points.task.loss(functional_call(model, (parameters, buffers), (x,)), y, reduction="none")
            for x, y in zip(torch.split(points.x, BATCH), torch.split(points.y, BATCH), strict=True)
        ]
        return torch.cat(parts)

    rise = torch.zeros(len(points), device=points.device)
    for _ in range(N_SHAKES):
        shaken = {
            name: w + SHAKE * (w.std() if w.numel() > 1 else w.abs()) * noise_like(w, generator)
            for name, w in weights.items()
        }
        rise += losses(shaken) / N_SHAKES
    return np.asarray((rise - losses(weights)).cpu().numpy(), dtype=np.float32)


def relearned(model: nn.Module, points: Points, own: Points) -> npt.NDArray[np.float32]:
    """(n,) loss(x, y) of a copy of the model that was trained for an epoch on the adversary's own points."""
    learner, streams = copy.deepcopy(model).eval(), Streams("relearned")
    parameters = [p.requires_grad_(True) for p in learner.parameters()]

    def loss(at: Tensor) -> Tensor:
        chosen = torch.from_numpy(own.index)[at]
        return points.task.loss(learner(own.inputs_at(chosen)), own.whole_labels[chosen])

    batches = [*batch_positions(len(own), RELEARN_BATCH, 1, streams.generator("order"))]
    descend(loss, parameters, batches, Steps(RELEARN_LR, momentum=0.9), n_steps=len(batches))
    outputs = torch.from_numpy(outputs_of(learner, points)).to(points.device)
    losses = points.task.loss(outputs, points.y, reduction="none").detach().cpu().numpy()
    return np.nan_to_num(np.asarray(losses, dtype=np.float32), nan=np.inf)  # what diverged is as large as can be


@torch.no_grad()
def augmented(model: nn.Module, points: Points, own: Points) -> npt.NDArray[np.float32]:
    """(n,) the share of altered copies of each point that the model gives the point's label."""
    if not points.are_numbers:
        raise ValueError("altered copies can be made of images and of real numbers, not of such inputs as token ids")
    model.eval()
    copies = [*(_moved_copies if points.whole_inputs.ndim == 4 else _noisy_copies)(points)]
    right = torch.zeros(len(points), device=points.device)
    batches = [torch.from_numpy(at) for at in np.split(points.index, range(BATCH, len(points), BATCH))]
    for altered in copies:
        right += torch.cat([model(altered(at)).argmax(1) for at in batches]) == points.y
    return np.asarray((right / len(copies)).cpu().numpy(), dtype=np.float32)


Copy = Callable[[Tensor], Tensor]
"""From positions in the whole data set to what a model is given in the place of these points."""


def _moved_copies(points: Points) -> Iterator[Copy]:
    """(n, channels, height, width): shifted by a pixel or two, what comes in from outside being 0, and mirrored."""
    reach = range(-FARTHEST_SHIFT, FARTHEST_SHIFT + 1)
    moves = [(m, i, j) for m in (0, 1) for i in reach for j in reach if abs(i) + abs(j) <= FARTHEST_SHIFT]
    for move in moves:
        yield partial(_moved, points, torch.tensor(move, device=points.device))


def _moved(points: Points, move: Tensor, at: Tensor) -> Tensor:
    return points.scaled(moved(points.stored_at(at), move.expand(len(at), 3)))


def _noisy_copies(points: Points) -> Iterator[Copy]:
    """(n, …): noise that is the same for every point, model and device."""
    deviation = points.scaled(points.whole_inputs).std(dim=0)
    generator = torch.Generator().manual_seed(Streams("augmented").seed("noise"))
    for scale in np.geomspace(LEAST_NOISE, MOST_NOISE, N_NOISES):
        yield partial(_noisy, points, float(scale) * deviation * noise_like(deviation, generator))


def _noisy(points: Points, noise: Tensor, at: Tensor) -> Tensor:
    return points.inputs_at(at) + noise


def noise_like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Normal noise of the tensor's shape, drawn on the CPU: the same on every device."""
    return torch.randn(tensor.shape, generator=generator).to(tensor.device)


COLUMNS: dict[str, Callable[[nn.Module, Points, Points], npt.NDArray[np.float32]]] = {
    "gradient-norm": gradient_norm,
    "landscape": landscape,
    "relearned": relearned,
    "augmented": augmented,
}
