"""From tokens and logits to the columns of the task `causal-lm`.

A record is stored as whole numbers (versions, length): a token that is counted is its id ≥ 0, padding is `PADDING`, and
a token that is only read, as those of a prompt are, is −2 − id. Its versions are `GIVEN`, as it was published;
`DECLINED`, the same prompt with a refusal for an answer, for methods that teach it; `PARAPHRASED`, the prompt in other
words, where the data have it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from forgetgauge.tasks.causal_lm import AT, COLUMNS, LOWEST_PERCENT

PADDING = -1
GIVEN, DECLINED, PARAPHRASED = 0, 1, 2

LogitsAt = Callable[[Tensor, Tensor], Tensor]
"""((n, length) ids, (n, m) positions) -> (n, m, vocab) logits of the token after each position."""


def ids_of(codes: Tensor) -> Tensor:
    """(n, length) token ids, 0 for padding."""
    return torch.where(codes < PADDING, -2 - codes, codes.clamp(min=0)).long()


def n_counted(codes: Tensor) -> Tensor:
    """(…) how many tokens of each record are counted; the first token of all has none before it, and never is."""
    return (codes[..., 1:] >= 0).sum(-1)


def counted_places(codes: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """(n, length) -> (n, most) each: the positions before the counted tokens, these tokens, and whether there is one.

    Counted tokens keep their order; `most` is at least as many as a record has.
    """
    counted = codes[:, 1:] >= 0
    order = torch.sort((~counted).to(torch.uint8), dim=1, stable=True).indices[:, :most]
    return order, ids_of(codes)[:, 1:].gather(1, order), counted.gather(1, order)


def token_losses(logits_at: LogitsAt, codes: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """(n,) summed loss of the counted tokens, and (n,) how many they are; differentiable."""
    at, targets, counted = _places(codes, most)
    logits = logits_at(ids_of(codes), at).float()
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
    return (each * counted).sum(1), counted.sum(1).clamp(min=1).to(each.dtype)


def _places(codes: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """`counted_places`, or all positions, for which nothing has to be looked up."""
    if most < codes.shape[1] - 1:
        return counted_places(codes, most)
    targets, counted = ids_of(codes)[:, 1:], codes[:, 1:] >= 0
    return torch.arange(codes.shape[1] - 1, device=codes.device).expand(targets.shape), targets, counted


def loss_columns(loss: Tensor, tokens: Tensor) -> Tensor:
    """(n, columns) with these two, where a gradient is taken."""
    rest = torch.zeros((*loss.shape, len(COLUMNS) - 2), device=loss.device, dtype=loss.dtype)
    return torch.cat([torch.stack([loss, tokens], dim=-1), rest], dim=-1)


@torch.no_grad()
def columns_of(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """(n, m, vocab), (n, m), (n, m) -> (n, columns): those that the model's own logits give, else 0.

    All but `loss-sum` are 0 too for a record without a counted token.
    """
    log_p = logits.float().log_softmax(-1)
    token = log_p.gather(-1, targets[..., None])[..., 0]
    p = log_p.exp()
    mean = (p * log_p).sum(-1)
    deviation = (log_p - mean[..., None]).square_().mul_(p).sum(-1).clamp(min=1e-12).sqrt()
    n = counted.sum(1)
    columns = torch.zeros((len(logits), len(COLUMNS)), device=logits.device)
    columns[:, AT["loss-sum"]], columns[:, AT["tokens"]] = -(token * counted).sum(1), n.clamp(min=1).float()
    for name, values in (("min-k", token), ("min-k++", (token - mean) / deviation)):
        columns[:, AT[f"{name} {LOWEST_PERCENT[0]}"] : AT[f"{name} {LOWEST_PERCENT[-1]}"] + 1] = _lowest(
            values, counted, n
        )
    hit = (log_p.argmax(-1) == targets) & counted
    columns[:, AT["hits"]] = hit.sum(1).float()
    columns[:, AT["prefix"]] = hit.long().cumprod(1).sum(1).float()
    from_end = (hit | ~counted).long().flip(1).cumprod(1)
    columns[:, AT["suffix"]] = (from_end * counted.flip(1)).sum(1).float()
    return columns


def _lowest(values: Tensor, counted: Tensor, n: Tensor) -> Tensor:
    """(n, len(LOWEST_PERCENT)) means of the smallest k % of each record's counted values."""
    ordered = values.masked_fill(~counted, torch.inf).sort(dim=1).values
    sums = ordered.masked_fill(ordered.isinf(), 0.0).cumsum(1)
    wanted = torch.stack([(n * k // 100).clamp(min=1) for k in LOWEST_PERCENT], dim=1)
    return sums.gather(1, wanted - 1) / wanted
