"""Certified removal (Guo et al. 2020): Newton steps while their residual is affordable, retraining when it is not.

(ε, δ) is promised as long as the gradient that the steps leave is at most σε/√(2 ln(1.5/δ)); the bound on it is
computed, not the gradient itself, which only who knows the perturbation could compute. Beyond the budget the request is
answered by retraining on R with a fresh perturbation: such a model *is* Retrain's.

Removing the points M from a model at w, the rest having signed rows X (q = |M|, n − q rows):

    Δ = Σ_{i∈M} ∇ℓ_i(w) + qλw,    H = Xᵀ diag(ℓ'') X + (n − q)λI  at w,    w⁻ = w + s,  Hs = Δ

After it the gradient has grown by at most ‖Hs − Δ‖ (what the solver leaves) plus the residual bound of the step. None
of it depends on ε, so a path is walked once and looked at for every budget.

Factorising H for each of q removals would cost q·n·d²: 0.2 s each on MNIST. H changes by a few thousandths between
removals, so a factor that is up to REFRESH removals old is the preconditioner of conjugate gradients, which then take a
handful of products with X. ‖X‖₂ only shrinks as rows go, so the value at the last refresh bounds it from above.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.certified_linear import LOSSES, CertifiedLinear, Logistic, signed_rows
from forgetgauge.unlearn.unlearner import Context

Order = Literal["one-by-one", "batch"]
Bound = Literal["data", "worst"]

REFRESH = 64
RELATIVE_TOLERANCE = 1e-10
MAX_ITERATIONS = 200
N_PATHS = 1024
"""Paths that a process remembers, 11 kB each on MNIST: the games of a sweep over ε walk each path once per process."""

_paths: OrderedDict[str, RemovalPath] = OrderedDict()


@dataclass(frozen=True)
class CertifiedRemoval:
    """λ, σ and the loss are the learner's."""

    learner: ClassVar[str] = "certified-linear"
    """The learner whose models it unlearns."""

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


# -- the path ----------------------------------------------------------------------------------------------------------


def removal_budget(epsilon: float, delta: float, sigma: float) -> float:
    """σε / √(2 ln(1.5/δ)): gradients of no larger norm are hidden by the perturbation, up to (ε, δ)."""
    return sigma * epsilon / math.sqrt(2 * math.log(1.5 / delta))


def data_bound(lipschitz: float, spectral_norm: float, step_norm: float, seen_step_norm: float) -> float:
    """γ‖X‖₂‖s‖‖Xs‖: the gradient that the step s leaves at most, X the points that stay."""
    return lipschitz * spectral_norm * step_norm * seen_step_norm


def worst_bound(lipschitz: float, lam: float, n_left: int, n_removed: int, weight_norm: float) -> float:
    """4γC²q² / (λ²(n − q)) with C = 1, as published, whatever the points are.

    It takes ‖Δ‖ ≤ q(C + λ‖w‖) ≤ 2qC, but the perturbation can pull ‖w‖ beyond C/λ; then the middle term is used.
    """
    pull = n_removed * (1 + max(1.0, lam * weight_norm))
    return lipschitz * pull**2 / (lam**2 * n_left)


@dataclass(frozen=True)
class RemovalPath:
    """Where the steps lead."""

    weight: Tensor
    """(d,) after the last step."""
    bounds: npt.NDArray[np.float64]
    """(steps,) upper bound on the gradient's norm after each step; it never falls."""
    n_gradients: int
    """Per-point first and second derivatives evaluated."""

    def steps_within(self, budget: float) -> int:
        """How many steps it affords."""
        return int(np.searchsorted(self.bounds, budget, side="right"))


def walk(
    model: Logistic, retain: Tensor, forget: Tensor, learner: CertifiedLinear, *, order: Order, bound: Bound
) -> RemovalPath:
    """Remove the signed rows `forget` from a model; the bounds begin at its own residual."""
    steps = [1] * len(forget) if order == "one-by-one" else [len(forget)] * bool(len(forget))
    rows = torch.cat([forget, retain])  # those that go come first: what stays after a step is a slice, not a copy
    walker = _Walker(rows, model, learner, bound)
    for n_removed in steps:
        walker.remove(n_removed)
    return RemovalPath(walker.weight, np.array(walker.bounds), walker.n_gradients)


class _Walker:
    """The state between two steps."""

    def __init__(self, rows: Tensor, model: Logistic, learner: CertifiedLinear, bound: Bound) -> None:
        self.rows, self.bound, self.lam, self.loss = rows, bound, learner.lam, LOSSES[learner.loss]
        self.weight, self.spent = model.weight.detach(), float(model.residual)
        self.margins = rows @ self.weight
        self.gram = rows.T @ rows
        self.gone_since: list[Tensor] = []
        self.bounds: list[float] = []
        self.n_gradients = 0

    def remove(self, n_removed: int) -> None:
        """One Newton step that takes the first rows out."""
        gone, self.rows = self.rows[:n_removed], self.rows[n_removed:]
        slope, self.margins = self.loss.slope(self.margins[:n_removed]), self.margins[n_removed:]
        delta = gone.T @ slope + n_removed * self.lam * self.weight
        self.gone_since.append(gone)
        hessian = _Hessian(self.rows, self.loss.curvature(self.margins), len(self.rows) * self.lam)
        if len(self.bounds) % REFRESH == 0:
            self._refresh(hessian)
        step, seen, unsolved = solved(hessian, self.factor, delta)
        self.spent += unsolved + self._residual_bound(step, seen, n_removed)
        self.weight, self.margins = self.weight + step, self.margins + seen
        self.bounds.append(self.spent)
        self.n_gradients += n_removed + len(self.rows)

    def _refresh(self, hessian: _Hessian) -> None:
        gone = torch.cat(self.gone_since)
        self.gone_since = []
        self.gram = self.gram - gone.T @ gone
        self.spectral_norm = float(torch.linalg.eigvalsh(self.gram)[-1].clamp(min=0).sqrt())
        self.factor = torch.linalg.cholesky(hessian.matrix())

    def _residual_bound(self, step: Tensor, seen: Tensor, n_removed: int) -> float:
        if self.bound == "data":
            return data_bound(self.loss.lipschitz, self.spectral_norm, float(step.norm()), float(seen.norm()))
        return worst_bound(self.loss.lipschitz, self.lam, len(self.rows), n_removed, float(self.weight.norm()))


@dataclass(frozen=True)
class _Hessian:
    """Xᵀ diag(c) X + rI."""

    rows: Tensor
    curvature: Tensor
    ridge: float

    def matrix(self) -> Tensor:
        identity = torch.eye(self.rows.shape[1], dtype=self.rows.dtype, device=self.rows.device)
        return self.rows.T @ (self.curvature[:, None] * self.rows) + self.ridge * identity

    def pulled_back(self, seen: Tensor, vector: Tensor) -> Tensor:
        """The product with a vector of which X gave `seen`."""
        return self.rows.T @ (self.curvature * seen) + self.ridge * vector


def solved(hessian: _Hessian, factor: Tensor, target: Tensor) -> tuple[Tensor, Tensor, float]:
    """(s, Xs, ‖Hs − target‖), by conjugate gradients preconditioned with the Cholesky factor of a nearby H."""

    def precondition(vector: Tensor) -> Tensor:
        return torch.cholesky_solve(vector[:, None], factor)[:, 0]

    tolerance = RELATIVE_TOLERANCE * float(target.norm())
    step, rest, seen = torch.zeros_like(target), target, torch.zeros_like(hessian.curvature)
    direction = guess = precondition(rest)
    energy = rest @ guess
    for _ in range(MAX_ITERATIONS):
        if float(rest.norm()) <= tolerance:
            break
        shown = hessian.rows @ direction
        image = hessian.pulled_back(shown, direction)
        length = energy / (direction @ image)
        step, rest, seen = step + length * direction, rest - length * image, seen + length * shown
        guess = precondition(rest)
        energy, previous = rest @ guess, energy
        direction = guess + energy / previous * direction
    return step, seen, float((target - hessian.pulled_back(seen, step)).norm())
