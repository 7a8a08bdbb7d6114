"""A BERT encoder with a linear head, through transformers, which is imported only when one is built.

The attention mask is computed inside, from the padding, and handed over ready-made in four dimensions: transformers'
own way to it branches on values, which vmap (and with it per-sample gradients and stacks) cannot follow. Attention is
the plain product, since vmap has no rule for the fused one; at 64 tokens there is little to fuse.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from forgetgauge.data.checkpoints import model_files
from forgetgauge.data.hugging_face import library, pretrained
from forgetgauge.errors import UserError, line_of
from forgetgauge.files import parse_json

_SIZES = {"layers": 2, "hidden": 128, "heads": 2, "vocab": 30522}


class Bert(nn.Module):
    """Token ids in, logits out; what the head sees is BERT's pooled first token (tanh of a linear layer)."""

    def __init__(self, body: nn.Module, n_outputs: int, dropout: float) -> None:
        super().__init__()
        config: Any = body.config
        self.body = body
        self.pad_id = int(config.pad_token_id or 0)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(config.hidden_size, n_outputs)
        nn.init.normal_(self.head.weight, std=config.initializer_range)
        nn.init.zeros_(self.head.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, length) token ids -> (n, n_outputs); padding is not attended to."""
        padding = (tokens == self.pad_id)[:, None, None, :]
        mask = padding * torch.finfo(torch.float32).min  # added to the attention scores
        pooled = self.body(input_ids=tokens, attention_mask=mask).pooler_output
        return cast(Tensor, self.head(self.dropout(pooled)))


def bert(
    input_shape: tuple[int, ...],
    n_outputs: int,
    *,
    checkpoint: str = "",
    layers: int = _SIZES["layers"],
    hidden: int = _SIZES["hidden"],
    heads: int = _SIZES["heads"],
    vocab: int = _SIZES["vocab"],
    dropout: float = 0.1,
) -> Bert:
    """A pretrained body with a head by the seed; without a checkpoint a random one of the given sizes.

    A checkpoint is a folder, `package:folder` of an installed package, or a name on the Hugging Face hub, which is
    asked only where the name is not in its local cache.
    """
    if len(input_shape) != 1:
        raise ValueError(f"wants token ids (length,), the data has the shape {tuple(input_shape)}")
    sizes = {"layers": layers, "hidden": hidden, "heads": heads, "vocab": vocab}
    if checkpoint:
        if sizes != _SIZES:
            raise ValueError("layers, hidden, heads and vocab are those of the checkpoint: leave them out")
        files = model_files(checkpoint)
        facts = [file.stat() for file in files]
        body = copy.deepcopy(_pretrained(checkpoint, files[0].parent, tuple((f.st_mtime_ns, f.st_size) for f in facts)))
    else:
        body = _random(sizes, input_shape[0])
    if input_shape[0] > (longest := body.config.max_position_embeddings):
        raise ValueError(f"sequences of {input_shape[0]} tokens, but the checkpoint takes {longest} at most")
    _set_dropout(body, dropout)
    return Bert(body, n_outputs, dropout)


def _transformers() -> Any:
    return library("model 'bert'")


def _random(sizes: dict[str, int], length: int) -> Any:
    transformers = _transformers()
    if sizes["hidden"] % sizes["heads"]:
        raise ValueError(f"hidden = {sizes['hidden']} is not a multiple of heads = {sizes['heads']}")
    config = transformers.BertConfig(
        vocab_size=sizes["vocab"],
        hidden_size=sizes["hidden"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=4 * sizes["hidden"],
        max_position_embeddings=max(length, 512),
    )
    config._attn_implementation = "eager"
    return transformers.BertModel(config)


@functools.lru_cache(maxsize=1)
def _pretrained(checkpoint: str, folder: Path, stamp: tuple[tuple[int, int], ...]) -> Any:
    """The checkpoint's BERT, read once while its files stay as they are (`stamp`); a pooler it may lack is drawn from a
    seed of its own.

    Safetensors alone: a checkpoint that is a pickle could run code.
    """
    transformers = _transformers()
    _check_kind(checkpoint, folder / "config.json")
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return pretrained(transformers.BertModel, folder, may_lack="pooler.")
    except Exception as error:  # transformers raises whatever the first strange byte of a file makes it raise
        raise UserError(f"checkpoint '{checkpoint}' cannot be loaded: {line_of(error)}") from error


def _check_kind(checkpoint: str, config: Path) -> None:
    """Refuse another architecture, of which transformers would load nothing and only warn."""
    try:
        kind = parse_json(config.read_bytes())["model_type"]
    except (ValueError, KeyError, TypeError, OSError):
        raise UserError(f"checkpoint '{checkpoint}': {config} names no model_type") from None
    if kind != "bert":
        raise UserError(f"checkpoint '{checkpoint}' is a {kind}, not a bert")


def _set_dropout(body: nn.Module, rate: float) -> None:
    if not 0 <= rate < 1:
        raise ValueError(f"dropout = {rate} is not at least 0 and below 1")
    for module in body.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
