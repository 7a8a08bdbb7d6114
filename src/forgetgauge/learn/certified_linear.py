"""Linear models that can be unlearned with a certificate: a convex loss with a random linear term (Guo et al. 2020).

    w* = argmin Σ_i [ ℓ(y_i wᵀx_i) + (λ/2)‖w‖² ] + bᵀw,    b ~ N(0, σ²I),  y_i = ±1,  ‖x_i‖ ≤ 1,  no intercept

λ is per point, so removing a point removes its share of it. The perturbation b hides how far a model is from the
optimum it should be at: a gradient of norm r is worth ε = r √(2 ln(1.5/δ)) / σ. For that b must be secret: it is drawn
from the streams and never kept with the model. All in float64: what rounding leaves of the gradient is spent from the
budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.streams import Streams

MAX_STEPS = 500
GRADIENT_TOLERANCE = 1e-10  # of the mean loss, largest entry: the published code's
LARGEST_NORM = 1 + 1e-6  # rows normalised in float32 miss 1 by up to 1e-7


@dataclass(frozen=True)
class Loss:
    """ℓ as a function of the margin z = y wᵀx, with what Newton's step needs of it."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    """ℓ'(z)."""
    curvature: Callable[[Tensor], Tensor]
    """ℓ''(z)."""
    lipschitz: float
    """γ: how fast the curvature can change. For the logistic loss 1/4 as published; the least is 1/(6√3) = 0.096."""


LOSSES = {
    "logistic": Loss(
        value=lambda z: F.softplus(-z),
        slope=lambda z: -torch.sigmoid(-z),
        curvature=lambda z: torch.sigmoid(z) * torch.sigmoid(-z),
        lipschitz=0.25,
    ),
    "squared": Loss(
        value=lambda z: (1 - z).square() / 2,
        slope=lambda z: z - 1,
        curvature=torch.ones_like,
        lipschitz=0.0,  # one Newton step is exact
    ),
}


class Logistic(nn.Module):
    """Two logits −wᵀx/2 and +wᵀx/2: their softmax is the sigmoid of wᵀx."""

    residual: Tensor

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_inputs, dtype=torch.float64))
        self.register_buffer("residual", torch.zeros((), dtype=torch.float64))
        """An upper bound on the norm of the objective's gradient at the weights: what of the budget is spent."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, …) -> (n, 2)."""
        half = x.flatten(1).to(self.weight.dtype) @ self.weight / 2
        return torch.stack([-half, half], dim=1)


@dataclass(frozen=True)
class CertifiedLinear:
    """Trained to the optimum by L-BFGS; the same points under other streams differ by the perturbation alone."""

    needs_classes: ClassVar[bool] = True
    lam: float = 1e-2
    """λ, per point. At the published 1e-3 forgetting a tenth takes ε = 16.8 at σ = 10; at 1e-2 it takes 0.5."""
    sigma: float = 10.0
    """σ of the perturbation: the budget grows with it, and accuracy falls."""
    loss: Literal["logistic", "squared"] = "logistic"

    def __post_init__(self) -> None:
        if not self.lam > 0 or self.sigma < 0:
            raise ValueError("lam must be greater than 0, sigma must not be negative")

    def build(self, points: Points, seed: int) -> Logistic:
        """All weights 0: the objective has one optimum, so the start does not matter."""
        if points.n_classes != 2:
            raise UserError(f"certified-linear tells two classes apart, but the data have {points.n_classes}")
        return Logistic(points.whole_inputs[0].numel()).to(points.device)

    def perturbation(self, n_inputs: int, streams: Streams) -> Tensor:
        """(d,) b."""
        return torch.from_numpy(streams.generator("perturbation").normal(0.0, self.sigma, n_inputs))

    def fit(self, points: Points, streams: Streams) -> Logistic:
        """One model at its optimum; how near is in its `residual`."""
        model, rows = self.build(points, 0), signed_rows(points)
        b = self.perturbation(rows.shape[1], streams).to(rows.device)
        descent = torch.optim.LBFGS(
            [model.weight],
            max_iter=MAX_STEPS,
            tolerance_grad=GRADIENT_TOLERANCE,
            tolerance_change=0.0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )

        def mean_loss() -> Tensor:
            descent.zero_grad()
            w = model.weight
            value = LOSSES[self.loss].value(rows @ w).mean() + self.lam / 2 * w @ w + b @ w / len(rows)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        descent.step(mean_loss)  # type: ignore[no-untyped-call]
        model.zero_grad(set_to_none=True)
        model.residual.copy_(self.gradient(model.weight.detach(), rows, b).norm())
        return model.eval()

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """One after another: each takes milliseconds."""
        return [self.fit(p, s) for p, s in zip(points, streams, strict=True)]

    def n_gradients(self, n_points: int) -> int:
        """At most: L-BFGS stops as soon as the gradient is small, after some twenty to sixty passes."""
        return MAX_STEPS * n_points

    def gradient(self, weight: Tensor, rows: Tensor, b: Tensor) -> Tensor:
        """(d,) of the perturbed objective over the points of these signed rows."""
        return rows.T @ LOSSES[self.loss].slope(rows @ weight) + len(rows) * self.lam * weight + b


def signed_rows(points: Points) -> Tensor:
    """(n, d) y_i x_i with y = ±1, in float64: loss, gradient and Hessian depend on labels through it alone."""
    rows = points.x.flatten(1).double()
    longest = float(rows.norm(dim=1).max()) if len(rows) else 0.0
    if longest > LARGEST_NORM:
        raise UserError(f"certified-linear needs inputs of norm 1 or less, but one has {longest:.3g}; normalise them")
    return rows * (2 * points.y.double() - 1)[:, None]
