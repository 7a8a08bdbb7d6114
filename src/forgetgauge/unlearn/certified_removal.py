"""Certified removal (Guo et al. 2020): Newton steps while their residual is affordable, retraining when it is not.

(ε, δ) is promised as long as the gradient that the steps leave is at most σε/√(2 ln(1.5/δ)); the bound on it is
computed, not the gradient itself, which only who knows the perturbation could compute. Beyond the budget the request is
answered by retraining on R with a fresh perturbation: such a model *is* Retrain's.
"""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.certified_linear import CertifiedLinear, Logistic, signed_rows
from forgetgauge.unlearn.removal_path import Bound, Order, RemovalPath, removal_budget, walk
from forgetgauge.unlearn.unlearner import Context

N_PATHS = 1024
"""Paths that a process remembers, 11 kB each on MNIST: the games of a sweep over ε walk each path once per process."""

_paths: OrderedDict[str, RemovalPath] = OrderedDict()


@dataclass(frozen=True)
class CertifiedRemoval:
    """λ, σ and the loss are the learner's."""

    learner: ClassVar[str] = "certified-linear"
    """Whose models it unlearns."""

    epsilon: float = 1.0
    """The ε that is promised."""
    delta: float = 1e-4
    order: Order = "one-by-one"
    """Or `batch`: one step for all of F, whose residual grows with |F|² and so is the larger one."""
    bound: Bound = "data"
    """Or `worst`: the bound that holds for any points, larger by orders of magnitude."""

    def __post_init__(self) -> None:
        if not self.epsilon > 0 or not 0 < self.delta < 1:
            raise ValueError("epsilon must be greater than 0, delta between 0 and 1")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """The end of the path, or a model trained anew on R."""
        learner = context.learner
        if not isinstance(learner, CertifiedLinear) or not isinstance(model, Logistic):
            raise UserError(
                f"certified-removal unlearns models of the learner 'certified-linear', not of {type(learner).__name__}"
            )
        budget = removal_budget(self.epsilon, self.delta, learner.sigma)
        path = self._path(model, retain, forget, learner)
        n_within = path.steps_within(budget)
        affordable = n_within == len(path.bounds)
        context.n_gradients += path.n_gradients
        context.facts.update(
            claimed_epsilon=self.epsilon,
            claimed_delta=self.delta,
            budget=budget,
            residual_bound=float(path.bounds[-1]) if len(path.bounds) else float(model.residual),
            steps_within_budget=n_within,
            retrainings=float(not affordable),
        )
        if not affordable:
            context.n_gradients += learner.n_gradients(len(retain))
            return learner.fit(retain, context.streams)
        result = copy.deepcopy(model).eval()
        with torch.no_grad():
            result.weight.copy_(path.weight)
            result.residual.fill_(context.facts["residual_bound"])
        return result

    def _path(self, model: Logistic, retain: Points, forget: Points, learner: CertifiedLinear) -> RemovalPath:
        rows = signed_rows(retain), signed_rows(forget)
        settings = f"{self.order} {self.bound} {learner.lam} {learner.loss}"
        key = _digest(settings, model.weight.detach(), model.residual, *rows)
        if key not in _paths:
            _paths[key] = walk(model, *rows, learner, order=self.order, bound=self.bound)
            while len(_paths) > N_PATHS:
                _paths.popitem(last=False)
        _paths.move_to_end(key)
        return _paths[key]


def _digest(settings: str, *tensors: Tensor) -> str:
    digest = hashlib.blake2b(settings.encode(), digest_size=20)
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
