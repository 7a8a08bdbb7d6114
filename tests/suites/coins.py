"""A world without training: point i is called forgotten with chance p_i where it is forgotten, q_i where it is unseen.

All coins are independent. With S² the variances over D (divisor N − 1), k = |F| = |T| and the coins' own noise
c = (mean p(1 − p) + mean q(1 − q))/k, sampling without replacement gives

    Var ½(Adv_s + Adv_s')   = ½[(1/k − 2/N) S²_{p−q} + c]
    Var ½(Adv_s₁ + Adv_s₂) = ½[(1/k − 1/N)(S²_p + S²_q) + 2 S_pq/N + c]

so on swap pairs only what differs between forgotten and unseen counts; for Retrain, p = q, nothing but the coins.
"""

from __future__ import annotations

import numpy as np

from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.splits import Split


def swap_variance(p, q, k):
    noise = (np.mean(p * (1 - p)) + np.mean(q * (1 - q))) / k
    return ((1 / k - 2 / len(p)) * np.var(p - q, ddof=1) + noise) / 2


def random_variance(p, q, k):
    n, covariance = len(p), np.cov(p, q)[0, 1]
    noise = (np.mean(p * (1 - p)) + np.mean(q * (1 - q))) / k
    points = (1 / k - 1 / n) * (np.var(p, ddof=1) + np.var(q, ddof=1)) + 2 * covariance / n
    return (points + noise) / 2


def advantage(split: Split, p, q, rng=None) -> float:
    """Adv_s in expectation over coins, or of coins thrown."""
    points = np.concatenate([split.forget, split.unseen])
    in_forget = np.isin(points, split.forget)
    chance = np.where(in_forget, p[points], q[points])
    says_forget = chance if rng is None else rng.random(len(points)) < chance
    return signed_advantage(says_forget, in_forget, np.ones(len(points)))
