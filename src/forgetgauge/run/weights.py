"""Between a model and its artefact: all of its state as arrays, and back into a model of the same architecture."""

from __future__ import annotations

import copy
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError, WrongOutput
from forgetgauge.learn.learner import Learner
from forgetgauge.models.building import few_of, torch_seeded
from forgetgauge.models.outputs import answering_like, with_plain_outputs
from forgetgauge.store.objects import Artefact


def untrained(learner: Learner, points: Points, n_models: int) -> list[nn.Module]:
    """Models to pour weights into: drawn once and copied, for 11 million random numbers take a tenth of a second."""
    first = mould(learner, points)
    return [first, *(copy.deepcopy(first) for _ in range(n_models - 1))]


def mould(learner: Learner, points: Points) -> nn.Module:
    """A model to pour weights into, which gives plain outputs whoever wrote the learner."""
    model = learner.build(points, 0)
    if not isinstance(model, nn.Module):
        raise UserError(f"learner '{type(learner).__name__}' built a {type(model).__name__}, not a torch module")
    model = model.to(points.device)
    if type(learner).__module__.startswith("forgetgauge."):
        return model
    with torch_seeded(0):
        return with_plain_outputs(type(model).__name__, model, few_of(points), points.task, points.n_outputs)


def weights_of(model: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """All of a model's state as arrays."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}


def checked_weights(model: Any, original: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """The weights of what an unlearner gave back, which must be a model of the same architecture."""
    if not isinstance(model, nn.Module):
        raise WrongOutput(f"the unlearner gave back a {type(model).__name__}, not a model")
    if "forward" in vars(model):
        raise WrongOutput("the unlearner replaced the model's forward: only its weights and buffers are kept")
    shapes = {name: tensor.shape for name, tensor in original.state_dict().items()}
    if {name: tensor.shape for name, tensor in model.state_dict().items()} != shapes:
        raise WrongOutput("the unlearner gave back a model of another architecture")
    return weights_of(model)


@torch.no_grad()
def refuse_what_is_not_kept(model: nn.Module, fresh: nn.Module, x: Tensor) -> None:
    """WrongOutput where a model answers otherwise than one of its architecture with its weights and buffers.

    These alone are stored: a hook, an exchanged layer or an attribute that forward reads would be lost without a word,
    and the model that is attacked would not be the one that was made.
    """
    fresh.load_state_dict(model.state_dict())
    model = answering_like(model, fresh)
    first = next(model.parameters(), None)
    here = x if first is None else x.to(first.device)
    answers, again, kept = model.eval()(here).cpu(), model(here).cpu(), fresh.eval()(x).cpu()
    if not torch.equal(answers.nan_to_num(), again.nan_to_num()):
        return  # it answers at random
    size = float(kept.nan_to_num().abs().max()) + 1e-6
    if answers.shape != kept.shape or not torch.allclose(answers, kept, rtol=1e-3, atol=1e-3 * size, equal_nan=True):
        raise WrongOutput(
            "the model answers otherwise than its weights and buffers say, and these alone are kept: put what hooks, "
            "exchanged layers, attributes or buffers with persistent=False do into parameters or persistent buffers"
        )


def pour_weights(model: nn.Module, weights: Artefact) -> None:
    """Stored weights into a model of the same architecture."""
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.arrays.items()})
    model.eval()
