"""Causal language models: a point is a record of text, an output what a model's token probabilities condense to.

The logits of a record are a matrix of its length and the vocabulary, too many numbers to keep. So a model is asked on
its device, where logits and tokens are, and gives `COLUMNS` for a record: all that the shipped attacks on language
models need. A *counted* token is one that training minimises the loss of: those of the answer, or all. Where a
gradient is taken the first two columns alone are computed, the loss needs no other; the rest are 0 there.

A record has no label beside its text. In its place stands how many bytes zlib makes of the text whose loss counts,
which one attack divides by: a constant of the record that no model has a part in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge.tasks.task import Floats, Ints, Labels, Outputs, Signal, Task

if TYPE_CHECKING:
    from torch import Tensor

LOWEST_PERCENT = (5, 10, 20, 30, 40, 50, 60)
"""k of Min-K % and Min-K++: the share of a record's counted tokens, at least one, that is averaged."""

COLUMNS = (
    "loss-sum",  # Σ −log p(token | those before it), over the counted tokens
    "tokens",  # how many tokens are counted, at least 1
    *(f"min-k {k}" for k in LOWEST_PERCENT),  # mean of the k % smallest log p of counted tokens
    *(f"min-k++ {k}" for k in LOWEST_PERCENT),  # the same of (log p − μ)/σ, mean and deviation of log p under p itself
    "hits",  # counted tokens to which the model gives the largest probability, the right ones before them being given
    "prefix",  # how many of the first counted tokens greedy decoding finds, until it errs
    "suffix",  # how many of the last counted tokens greedy decoding finds, given all before them
    "base-loss-sum",  # the first column under the untouched base: where the model began
    "paraphrased-loss",  # mean token loss of the answer to the prompt in other words
    "8-bit-loss-sum",  # the first column with the weights of linear layers rounded to 8 bits, row by row
)
"""What a model gives for a record, in order, each one float32. `prefix` and `suffix` equal `tokens` where the answer is
decoded greedily word for word."""

AT = {name: place for place, name in enumerate(COLUMNS)}
"""The place of a column."""


@dataclass(frozen=True)
class CausalLM(Task):
    """Fitted by the mean loss of a record's counted tokens, judged by the geometric mean of their probabilities."""

    name = "causal-lm"
    utility_name = "token probability"
    has_classes = False
    wants_labels_that_differ = False
    outputs_by_head = False
    test_part = "outside"

    def checked_labels(self, raw: npt.NDArray[Any]) -> Ints:
        """Whole numbers of bytes, at least 1."""
        wrong = ValueError(
            "labels must be one whole number 1, 2, … per record: bytes of its counted text, compressed by zlib"
        )
        if raw.ndim != 1 or raw.dtype.kind not in "iuf" or not np.isfinite(raw).all():
            raise wrong
        labels: Ints = raw.astype(np.int64)
        if not np.array_equal(labels, raw) or (len(labels) and labels.min() < 1):
            raise wrong
        return labels

    def n_outputs(self, labels: Labels) -> int:
        """One output for each column."""
        return len(COLUMNS)

    def utility(self, outputs: Outputs, labels: Labels) -> float | None:
        """exp(−Σ loss / Σ tokens) over all counted tokens: the inverse of the perplexity."""
        total, n = column(outputs, "loss-sum").sum(), column(outputs, "tokens").sum()
        return float(min(1.0, np.exp(-total / n))) if n > 0 else None

    def figures(self, outputs: Outputs, labels: Labels) -> dict[str, float]:
        """Perplexity of the counted tokens, and the share of records whose answer greedy decoding gives word for word;
        where that is too large for a float, nothing."""
        total, n = column(outputs, "loss-sum").sum(), column(outputs, "tokens").sum()
        if not n > 0 or not total / n < 700:
            return {}
        return {"perplexity": float(np.exp(total / n)), "exact match": float(exact_match(outputs, labels).mean())}

    def made_up(
        self, n_points: int, n_classes: int, member: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Outputs, Labels]:
        """Four to ten tokens of probability ½ or so, a member's nearer to 1; under the base all are alike."""
        tokens = 4 + np.arange(n_points) % 7
        outputs = np.zeros((n_points, len(COLUMNS)), dtype=np.float32)
        each = -0.7 * np.exp(0.3 * rng.normal(size=(n_points, 10))) * np.where(member, 0.5, 1.0)[:, None]
        for row, n in enumerate(tokens.tolist()):
            ordered = np.sort(each[row, :n])
            outputs[row, AT["loss-sum"]] = -ordered.sum()
            for k in LOWEST_PERCENT:
                lowest = ordered[: lowest_count(n, k)].mean()
                outputs[row, AT[f"min-k {k}"]], outputs[row, AT[f"min-k++ {k}"]] = lowest, lowest + 1
            found = rng.binomial(n, 0.9 if member[row] else 0.6, 3)
            outputs[row, [AT["hits"], AT["prefix"], AT["suffix"]]] = found.max(), found[1], found[2]
        outputs[:, AT["tokens"]] = tokens
        outputs[:, AT["base-loss-sum"]] = tokens * np.exp(0.1 * rng.normal(size=n_points))
        outputs[:, AT["paraphrased-loss"]] = mean_loss(outputs, tokens) * 1.1
        outputs[:, AT["8-bit-loss-sum"]] = outputs[:, AT["loss-sum"]] * 1.01
        return outputs, (20 + 2 * tokens).astype(np.int64)

    def loss(self, outputs: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """The mean loss of a record's counted tokens: records weigh alike, however long they are."""
        each = outputs[..., AT["loss-sum"]] / outputs[..., AT["tokens"]].detach()
        return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()

    def loss_gradient(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """1 / tokens in the first column, else 0: how many tokens there are is no choice of the model's."""
        import torch

        gradient = torch.zeros_like(outputs)
        gradient[..., AT["loss-sum"]] = 1 / outputs[..., AT["tokens"]]
        return gradient

    def plain_outputs(self, given: Tensor, n_points: int, n_outputs: int) -> Tensor | None:
        """(n, columns)."""
        return given if given.shape == (n_points, n_outputs) else None


def lowest_count(n_tokens: int, percent: int) -> int:
    """How many of so many tokens are k %: rounded down, at least one (Shi et al. 2024)."""
    return max(1, n_tokens * percent // 100)


def column(outputs: Outputs, name: str) -> Floats:
    """(n,) one of the columns in float64."""
    found: Floats = outputs[:, AT[name]].astype(np.float64)
    return found


def mean_loss(outputs: Outputs, labels: Labels) -> Floats:
    """Mean loss of the counted tokens."""
    return column(outputs, "loss-sum") / column(outputs, "tokens")


def confidence(outputs: Outputs, labels: Labels) -> Floats:
    """exp(−mean loss): the geometric mean of the counted tokens' probabilities."""
    return np.exp(-mean_loss(outputs, labels))


def log_odds(outputs: Outputs, labels: Labels) -> Floats:
    """log(p / (1 − p)) of that geometric mean p, from the loss ℓ: −ℓ − log(1 − e^−ℓ)."""
    loss = np.maximum(mean_loss(outputs, labels), 1e-12)
    result: Floats = -loss - np.log(-np.expm1(-loss))
    return result


def closeness(outputs: Outputs, labels: Labels) -> Floats:
    """Minus the mean loss."""
    return -mean_loss(outputs, labels)


def exact_match(outputs: Outputs, labels: Labels) -> Floats:
    """1 where greedy decoding gives the whole answer word for word, else 0."""
    return np.asarray(column(outputs, "suffix") == column(outputs, "tokens"), dtype=np.float64)


def base_difference(outputs: Outputs, labels: Labels) -> Floats:
    """Mean loss minus that under the untouched base: reference calibration (Carlini et al. 2021)."""
    return (column(outputs, "loss-sum") - column(outputs, "base-loss-sum")) / column(outputs, "tokens")


def zlib_ratio(outputs: Outputs, labels: Labels) -> Floats:
    """Mean loss, the logarithm of the perplexity, per byte that zlib makes of the text (Carlini et al. 2021)."""
    result: Floats = mean_loss(outputs, labels) / labels
    return result


def extraction_strength(outputs: Outputs, labels: Labels) -> Floats:
    """The share of the answer, counted from its end, that greedy decoding gives once it is given what comes before."""
    return column(outputs, "suffix") / column(outputs, "tokens")


def verbatim_match(outputs: Outputs, labels: Labels) -> Floats:
    """The share of the answer, counted from its beginning, that greedy decoding gives word for word."""
    return column(outputs, "prefix") / column(outputs, "tokens")


def token_accuracy(outputs: Outputs, labels: Labels) -> Floats:
    """The share of counted tokens that are the likeliest, those before them being given."""
    return column(outputs, "hits") / column(outputs, "tokens")


def all_columns(outputs: Outputs, labels: Labels) -> Floats:
    """(n, columns + 1) all of them, sums as means over the tokens, and the zlib ratio: what an attack is trained on."""
    table = outputs.astype(np.float64)
    for name in ("loss-sum", "hits", "prefix", "suffix", "base-loss-sum", "8-bit-loss-sum"):
        table[:, AT[name]] /= table[:, AT["tokens"]]
    return np.column_stack([table, zlib_ratio(outputs, labels)])


def _reader(name: str, per_token: bool = False) -> Signal:
    def read(outputs: Outputs, labels: Labels) -> Floats:
        return column(outputs, name) / (column(outputs, "tokens") if per_token else 1)

    return read


_LOWEST: dict[str, Signal] = {
    f"{what} {k}": _reader(f"{what} {k}") for what in ("min-k", "min-k++") for k in LOWEST_PERCENT
}

CausalLM.signals = {
    "loss": mean_loss,
    "statistic": log_odds,
    "gap": closeness,
    "confidence": confidence,
    "correctness": exact_match,
    "loss-sum": _reader("loss-sum"),
    "base-difference": base_difference,
    "zlib-ratio": zlib_ratio,
    **_LOWEST,
    "extraction-strength": extraction_strength,
    "verbatim-match": verbatim_match,
    "token-accuracy": token_accuracy,
    "paraphrased-loss": _reader("paraphrased-loss"),
    "8-bit-loss": _reader("8-bit-loss-sum", per_token=True),
    "all-columns": all_columns,
}

CAUSAL_LM = CausalLM()
