"""Scores of texts as their papers have them, record by record from token probabilities: the second way to each column.

Nothing here is shared with the code that is tested. A record is given by the log-probabilities of the whole vocabulary
at each of its tokens, (n_tokens, vocab), and by these tokens.
"""

import zlib

import numpy as np


def token_log_probs(log_p: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    return np.array([log_p[place, token] for place, token in enumerate(tokens)])


def loss_sum(log_p, tokens) -> float:
    return -float(sum(token_log_probs(log_p, tokens)))


def _lowest_mean(values, percent: int) -> float:
    return float(np.mean(sorted(values)[: max(1, int(len(values) * percent / 100 + 1e-9))]))


def min_k(log_p, tokens, percent: int) -> float:
    """Shi et al. 2024: the mean log-likelihood of the k % of tokens with the least."""
    return _lowest_mean(token_log_probs(log_p, tokens), percent)


def min_k_plus_plus(log_p, tokens, percent: int) -> float:
    """Zhang J. et al. 2024: each log-likelihood less its mean under the model's own law, over its deviation."""
    scores = []
    for row, value in zip(log_p, token_log_probs(log_p, tokens), strict=True):
        mean = float(np.sum(np.exp(row) * row))
        variance = float(np.sum(np.exp(row) * (row - mean) ** 2))
        scores.append((value - mean) / np.sqrt(variance))
    return _lowest_mean(scores, percent)


def zlib_ratio(log_p, tokens, text: str) -> float:
    """Carlini et al. 2021: log-perplexity over the bits, here bytes, of the compressed text."""
    return loss_sum(log_p, tokens) / len(tokens) / len(zlib.compress(text.encode()))


def is_right(log_p, tokens) -> list[bool]:
    return [int(np.argmax(row)) == token for row, token in zip(log_p, tokens, strict=True)]


def extraction_strength(right: list[bool]) -> float:
    """1 − the share of the shortest beginning from which on every token is found."""
    shortest = min(k for k in range(len(right) + 1) if all(right[k:]))
    return 1 - shortest / len(right)


def verbatim_match(right: list[bool]) -> float:
    return max(k for k in range(len(right) + 1) if all(right[:k])) / len(right)
