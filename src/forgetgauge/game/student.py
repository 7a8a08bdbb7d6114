"""Student's t distribution: distribution function and quantile for any real number of degrees of freedom.

Promise: absolute error below 1e-9 in probability and relative error below 1e-9 in the quantile, for 0.5 ≤ df ≤ 1e6 and
probabilities between 1e-6 and 1 − 1e-6. It is plain Python, made for a few hundred calls, not for arrays.
"""

import math
from functools import lru_cache

_TINY = 1e-300
_ENOUGH_TERMS = 20_000


def cdf(t: float, df: float) -> float:
    """P(X ≤ t) for X ~ t with ``df`` degrees of freedom."""
    _check_df(df)
    tail = _upper_tail(abs(t), df)
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def quantile(p: float, df: float) -> float:
    """The t with P(X ≤ t) = p, for 0 < p < 1."""
    _check_df(df)
    if not 0 < p < 1:
        raise ValueError(f"a quantile needs a probability strictly between 0 and 1, not {p}")
    if p == 0.5:
        return 0.0
    size = _upper_tail_quantile(min(p, 1 - p), df)
    return size if p > 0.5 else -size


def _upper_tail_quantile(tail: float, df: float) -> float:
    """The t > 0 with P(X > t) = ``tail`` < ½: double until it is bracketed, then bisect down to rounding."""
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > tail:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if _upper_tail(middle, df) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _upper_tail(t: float, df: float) -> float:
    """P(X > t) for t ≥ 0: ½ I_x(df/2, ½) at x = df/(df + t²)."""
    if t == 0:
        return 0.5
    if math.isinf(t):
        return 0.0
    ratio = t / math.sqrt(df) * t / math.sqrt(df)  # t²/df
    x, y = 1 / (1 + ratio), ratio / (1 + ratio) if ratio < 1e300 else 1.0
    a = df / 2
    log_x = -math.log1p(ratio)
    log_y = -math.log1p(1 / ratio) if ratio > _TINY else math.log(_TINY)
    # x^a y^b / B(a, b) with b = ½ and Γ(½) = √π
    front = math.exp(a * log_x + log_y / 2 + _log_gamma_half_step(a)) / math.sqrt(math.pi)
    if x < (a + 1) / (a + 2.5):
        return front * _continued_fraction(x, a, 0.5) / (2 * a)
    return 0.5 - front * _continued_fraction(y, 0.5, a)


def _log_gamma_half_step(a: float) -> float:
    """ln Γ(a + ½) − ln Γ(a); by its asymptotic series where subtracting two large logarithms would lose digits."""
    if a < 15:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    inverse = 1 / a
    square = inverse * inverse
    series = inverse * (-1 / 8 + square * (1 / 192 + square * (-1 / 640 + square * (17 / 14336))))
    return math.log(a) / 2 + series


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function I_x(a, b), evaluated from the front (modified Lentz)."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _ENOUGH_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _away_from_zero(1 + even * d), _away_from_zero(1 + even / c)
        value *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _away_from_zero(1 + odd * d), _away_from_zero(1 + odd / c)
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _check_df(df: float) -> None:
    if not 0 < df < math.inf:
        raise ValueError(f"degrees of freedom must be positive and finite, but they are {df}")
