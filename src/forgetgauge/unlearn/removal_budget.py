"""The arithmetic of certified removal (Guo et al. 2020): what a Newton step may leave, and how much ε pays for."""

from __future__ import annotations

import math


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
