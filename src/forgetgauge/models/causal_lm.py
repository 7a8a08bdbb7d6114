"""Causal language models: a checkpoint, or a small random Llama, that gives the columns of the task for a record.

`causal_lm` makes one whose weights are all its own, for full fine-tuning. What many models begin from is a `Base`: read
once in a process, shared, and never changed; adapters (`lora.py`) are trained on it, and it says what a record costs
who knows nothing of the data.
"""

from __future__ import annotations

import copy
import functools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from forgetgauge.data.checkpoints import model_files
from forgetgauge.data.dataset import fingerprint
from forgetgauge.data.hugging_face import other_architecture
from forgetgauge.errors import UserError
from forgetgauge.files import parse_json
from forgetgauge.models import condensed
from forgetgauge.models.condensed import GIVEN, PARAPHRASED, LogitsAt
from forgetgauge.models.llama import Llama, LlamaSizes, sizes_in
from forgetgauge.tasks.causal_lm import AT
from forgetgauge.tasks.task import Ints
from forgetgauge.wording import shortened

_SIZES = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 1024}
LOGITS_AT_ONCE = {"cpu": 2**24, "cuda": 2**29}
"""Numbers at most: a record of 128 counted tokens and a vocabulary of 49,152 has 6 million."""
BYTES_A_LOGIT = 40
"""Of a GPU's memory: five arrays in float32 are there at once, and as much again is left to the model and its room."""
TOKENS_AT_ONCE = {"cpu": 2**13, "cuda": 2**16}
PADDED, WORTHWHILE = 1.15, 1 / 16
"""Records go on being taken together while padding adds less than this, or there are fewer tokens than this share of
what is taken at once: products of few tokens take as long as those of more."""


class Base:
    """An untouched language model; models hold it in common, and copies of them too."""

    def __init__(self, name: str, body: nn.Module) -> None:
        self.name, self._body = name, body.requires_grad_(False).eval()
        self._elsewhere: dict[tuple[torch.device, torch.dtype], Any] = {}
        self._untouched: dict[tuple[torch.device, torch.dtype], Any] = {}
        self._losses: dict[bytes, float] = {}
        _HELD.add(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Base:
        return self

    def __repr__(self) -> str:
        return self.name

    def on(self, device: torch.device, dtype: torch.dtype = torch.float32) -> Any:
        """The model there and in this precision, moved once."""
        where = device, dtype
        if where not in self._elsewhere:
            body = self._body if where == (torch.device("cpu"), torch.float32) else copy.deepcopy(self._body)
            self._elsewhere[where] = body.to(device, dtype)
            self._untouched[where] = _state_of(self._elsewhere[where])
        return self._elsewhere[where]

    @property
    def is_untouched(self) -> bool:
        """Whether it is everywhere as it was when it was moved there."""
        return all(_state_of(body) == self._untouched[where] for where, body in self._elsewhere.items())

    def losses(self, codes: Tensor) -> Tensor:
        """(n, length) -> (n,) summed loss of each record's counted tokens, computed once in a process."""
        keys = [row.tobytes() for row in codes.to(torch.int32).cpu().numpy()]
        new = [row for row, key in enumerate(keys) if key not in self._losses]
        if new:
            found = _sums(self.on(codes.device), codes[new], self)[0]
            self._losses |= zip([keys[row] for row in new], found.tolist(), strict=True)
        return torch.tensor([self._losses[key] for key in keys], device=codes.device)


_HELD: weakref.WeakSet[Base] = weakref.WeakSet()


def _state_of(body: nn.Module) -> Any:
    """Changes when a weight, a layer, a hook or a mode of the model does."""
    hooks = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
    layers = [
        (name, id(one), one.training, "forward" in vars(one), [list(vars(one)[kind]) for kind in hooks])
        for name, one in body.named_modules()
    ]
    weights = {name: fingerprint(tensor) for name, tensor in body.state_dict().items()}
    return layers, weights, [parameter.requires_grad for parameter in body.parameters()]


@contextmanager
def bases_lent() -> Iterator[None]:
    """While somebody else's code has models of these bases: UserError where one is not left as it was; whoever comes
    next reads it anew."""
    known = {base: dict(base._losses) for base in _HELD}
    try:
        yield
    finally:
        changed = [base for base in _HELD if not base.is_untouched]
        for base in _HELD:  # what it costs to know nothing may have been asked while it was changed
            base._losses = known.get(base, {})
        if changed:
            _random.cache_clear()
            _pretrained.cache_clear()
            _HELD.difference_update(changed)
    if changed:
        raise UserError(
            f"it changed the base '{changed[0]}' in place, which all models have in common; change the parameters of "
            "the model, or copies of layers, and take hooks off again"
        )


class RecordModel(nn.Module, ABC):
    """A language model that is asked about records (n, versions, length) and gives the columns of the task."""

    base: Base

    @abstractmethod
    def logits_at(self, ids: Tensor, at: Tensor) -> Tensor:
        """(n, length) ids and (n, m) positions -> (n, m, vocab) logits of the token after each position."""

    @property
    @abstractmethod
    def here(self) -> nn.Module:
        """What answers, given the weights of its linear layers."""

    @abstractmethod
    def merged(self) -> dict[str, Tensor]:
        """The weights of its linear layers by the name of the parameter, for many records one after another."""

    def refuse(self, codes: Tensor) -> None:
        """UserError where records have tokens that the model does not know, or padding elsewhere than at their end."""
        largest, vocab = int(condensed.ids_of(codes).max()), self.base.on(torch.device("cpu")).sizes.vocab
        if largest >= vocab:
            raise UserError(f"the data have token {largest}, but the model knows {vocab}: use its own tokenizer")
        most = getattr(self.base.on(torch.device("cpu")).sizes, "places", None)
        if most is not None and codes.shape[-1] > most:
            raise UserError(f"the data have records of {codes.shape[-1]} tokens, but the model reads {most}: cut them")
        is_padding = codes == condensed.PADDING
        if bool((is_padding[..., :-1] & ~is_padding[..., 1:]).any()):
            raise UserError("the data have records with padding before a token: put it at their end")

    def forward(self, x: Tensor) -> Tensor:
        """(n, versions, length) -> (n, columns); where a gradient is taken, the loss and the number of tokens alone."""
        if torch.is_grad_enabled():
            return condensed.loss_columns(*condensed.token_losses(self.logits_at, x[:, GIVEN], x.shape[-1]))
        weights = self.merged()
        columns = self._own_columns(x, weights)
        columns[:, AT["base-loss-sum"]] = self.base.losses(x[:, GIVEN])
        total, tokens = _sums(self._with(weights), x[:, PARAPHRASED if x.shape[1] > PARAPHRASED else GIVEN], self.base)
        columns[:, AT["paraphrased-loss"]] = total / tokens
        columns[:, AT["8-bit-loss-sum"]] = _sums(self.rounded(weights), x[:, GIVEN], self.base)[0]
        return columns

    @torch.no_grad()
    def own_columns(self, x: Tensor) -> Tensor:
        """(n, versions, length) -> (n, columns): those of the records as they were given, which show what a model is
        good for; the others, which take as many passes again, are 0."""
        return self._own_columns(x, self.merged())

    def rounded(self, weights: Mapping[str, Tensor]) -> LogitsAt:
        """The model with these weights of its linear layers rounded to 8 bits, output by output."""
        if not weights:
            raise UserError(f"model '{self.base}' has no linear layers whose weights could be rounded to 8 bits")
        return self._with({name: self._rounded(name, weight) for name, weight in weights.items()})

    def _rounded(self, name: str, weight: Tensor) -> Tensor:
        layer = self.here.get_submodule(name.rpartition(".")[0])
        by_inputs = is_stored_by_inputs(layer) or getattr(layer, "is_transposed", False)  # the latter of experts
        return to_8_bits(weight.mT).mT if by_inputs else to_8_bits(weight)

    def _own_columns(self, x: Tensor, weights: dict[str, Tensor]) -> Tensor:
        asked, columns = self._with(weights), torch.zeros((len(x), len(AT)), device=x.device)
        for rows, codes, most in _portions(x[:, GIVEN], self.base):
            at, targets, counted = condensed.counted_places(codes, most)
            columns[rows] = condensed.columns_of(asked(condensed.ids_of(codes), at), targets, counted)
        return columns

    def _with(self, weights: dict[str, Tensor]) -> LogitsAt:
        body = self.here  # where the last layer is the embedding, an adapted last layer leaves the embedding as it was
        return lambda ids, at: functional_call(body, weights, (ids, at), tie_weights=False)


class CausalLM(RecordModel):
    """All weights its own."""

    def __init__(self, body: nn.Module, base: Base) -> None:
        super().__init__()
        self.body, self.base = body, base

    def logits_at(self, ids: Tensor, at: Tensor) -> Tensor:
        """The body's."""
        logits: Tensor = self.body(ids, at)
        return logits

    @property
    def here(self) -> nn.Module:
        """The body."""
        return self.body

    def merged(self) -> dict[str, Tensor]:
        """The body's own."""
        return linear_weights(self.body)


def causal_lm(
    input_shape: tuple[int, ...],
    n_outputs: int,
    *,
    checkpoint: str = "",
    layers: int = _SIZES["layers"],
    hidden: int = _SIZES["hidden"],
    heads: int = _SIZES["heads"],
    vocab: int = _SIZES["vocab"],
) -> CausalLM:
    """A checkpoint's model; without one, a random Llama of the given sizes.

    A checkpoint is a folder, `package:folder` of an installed package, a name on the Hugging Face hub, or a file
    `….gguf`, in a package too.
    """
    if len(input_shape) != 2:
        raise ValueError(f"wants records of the task causal-lm, (versions, length), but the data are {input_shape}")
    base = base_of(checkpoint=checkpoint, layers=layers, hidden=hidden, heads=heads, vocab=vocab)
    own = base.on(torch.device("cpu"))
    body = copy.deepcopy(own) if checkpoint else Llama(own.sizes)
    return CausalLM(body.requires_grad_(True), base)


def base_of(
    *,
    checkpoint: str = "",
    layers: int = _SIZES["layers"],
    hidden: int = _SIZES["hidden"],
    heads: int = _SIZES["heads"],
    vocab: int = _SIZES["vocab"],
) -> Base:
    """The untouched model that these parameters stand for; a random one is always the same."""
    sizes = {"layers": layers, "hidden": hidden, "heads": heads, "vocab": vocab}
    if checkpoint:
        if sizes != _SIZES:
            raise ValueError("layers, hidden, heads and vocab are those of the checkpoint: leave them out")
        files = model_files(checkpoint)
        facts = [file.stat() for file in files]
        return _pretrained(checkpoint, tuple(files), tuple((f.st_mtime_ns, f.st_size) for f in facts))
    if min(sizes.values()) < 1 or hidden % heads or hidden // heads % 2:
        raise ValueError(f"hidden = {hidden} is not an even multiple of heads = {heads}, or a size is below 1")
    return _random(LlamaSizes(vocab, hidden, layers, heads, heads, hidden // heads, 3 * hidden))


@functools.lru_cache(maxsize=2)
def _random(sizes: LlamaSizes) -> Base:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Base(f"a random Llama of {sizes}", Llama(sizes))


@functools.lru_cache(maxsize=1)
def _pretrained(checkpoint: str, files: tuple[Path, ...], stamp: tuple[tuple[int, int], ...]) -> Base:
    """Read once while its files stay as they are. Safetensors alone: a checkpoint that is a pickle could run code."""
    try:
        config = parse_json(files[0].read_bytes())
        sizes = sizes_in(config) if isinstance(config, Mapping) else None
        if sizes is None:
            return Base(checkpoint, other_architecture(checkpoint, files[0].parent))
        with torch.device("meta"):  # random weights that nobody needs took longer than reading these
            body = Llama(sizes)
        body, weights = body.to_empty(device="cpu"), _weights(files)
        if body.lm_head is None:
            weights.pop("lm_head.weight", None)  # some files have the embedding a second time
        body.load_state_dict(weights)
        return Base(checkpoint, body)
    except UserError:
        raise
    except Exception as error:  # whatever a strange file makes json, safetensors or torch raise
        line = shortened(" ".join(str(error).split()) or type(error).__name__, 300)
        raise UserError(f"checkpoint '{checkpoint}' cannot be loaded: {line}") from error


def _weights(files: Sequence[Path]) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    parts = [load_file(file) for file in files if file.suffix == ".safetensors"]
    return {name: tensor.float() for part in parts for name, tensor in part.items() if "rotary_emb" not in name}


# -- linear layers -----------------------------------------------------------------------------------------------------

Correction = Callable[[Tensor, Tensor], Tensor]
"""((n, length, in) what a layer is given, (n, length, out) what it gives) -> what it should give instead."""


@contextmanager
def corrected(body: nn.Module, corrections: Mapping[str, Correction]) -> Iterator[None]:
    """Layers by name give something else, within the block."""
    handles = []
    for name, correction in corrections.items():

        def correct(module: nn.Module, given: tuple[Any, ...], made: Tensor, own: Correction = correction) -> Tensor:
            return own(given[0], made)

        handles.append(body.get_submodule(name).register_forward_hook(correct))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def linear_weights(body: nn.Module) -> dict[str, Tensor]:
    """The matrices of all linear layers but the last, by the name of the parameter, and of experts that are kept as one
    array; embeddings are none, and a last layer that is one is not either."""
    embeddings = {id(module.weight) for module in body.modules() if isinstance(module, nn.Embedding)}
    last = ("lm_head.weight", "embed_out.weight")
    found = {}
    for name, module in body.named_modules():
        if isinstance(module, nn.Linear) or is_stored_by_inputs(module):
            found[f"{name}.weight"] = module.weight  # `get_parameter` takes none that stands in for the module's own
        elif not isinstance(module, nn.modules.conv._ConvNd):
            own = module.named_parameters(recurse=False)
            found |= {f"{name}.{called}": weight for called, weight in own if weight.dim() == 3}
    return {name: weight for name, weight in found.items() if not name.endswith(last) and id(weight) not in embeddings}


def is_stored_by_inputs(layer: nn.Module) -> bool:
    """Whether a linear layer's weight is (in, out), as in transformers' `Conv1D`, which GPT-2 is made of."""
    return type(layer).__name__ == "Conv1D" and hasattr(layer, "nf")


def to_8_bits(weight: Tensor) -> Tensor:
    """(…, out, in) each row as whole numbers from −127 to 127 times its largest weight / 127, in floats again."""
    scale = weight.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 127
    return (weight / scale).round() * scale


# -- many records ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def _sums(logits_at: LogitsAt, codes: Tensor, base: Base | None = None) -> tuple[Tensor, Tensor]:
    """(n,) summed losses and (n,) numbers of counted tokens, as many records at once as there is room for."""
    found = torch.zeros((2, len(codes)), device=codes.device)
    for rows, part, most in _portions(codes, base):
        found[:, rows] = torch.stack(condensed.token_losses(logits_at, part, most))
    return found[0], found[1]


def _portions(codes: Tensor, base: Base | None) -> Iterator[tuple[Tensor, Tensor, int]]:
    """(rows, their codes without most of the padding, counted tokens at most) of all records, those of like lengths
    together."""
    asked = None if base is None else base.on(torch.device("cpu"))
    vocab = 2**16 if asked is None else asked.sizes.vocab
    gives_all = getattr(asked, "gives_all_logits", False)
    logits, tokens = _logits_at_once(codes.device), TOKENS_AT_ONCE[codes.device.type]
    sizes = torch.stack([(codes != condensed.PADDING).sum(1), condensed.n_counted(codes)])
    lengths, counted = sizes.clamp(min=1).cpu().numpy()
    order = np.lexsort([counted, lengths])
    first, most, total = 0, 0, 0
    for place, row in enumerate(order.tolist()):
        most, total, n = max(most, int(counted[row])), total + int(lengths[row]), place - first + 1
        places = n * int(lengths[row])
        too_many = (places if gives_all else n * most) * vocab > logits or places > tokens
        if n > 1 and (too_many or (places > PADDED * total and total > WORTHWHILE * tokens)):
            yield _portion(codes, order[first:place], lengths, counted)
            first, most, total = place, int(counted[row]), int(lengths[row])
    yield _portion(codes, order[first:], lengths, counted)


def _logits_at_once(device: torch.device) -> int:
    """Models are asked one by one: what is too much for the memory here cannot be halved by asking fewer."""
    most = LOGITS_AT_ONCE[device.type]
    if device.type != "cuda":
        return most
    return min(most, int(torch.cuda.get_device_properties(device).total_memory) // BYTES_A_LOGIT)


def _portion(codes: Tensor, rows: Ints, lengths: Ints, counted: Ints) -> tuple[Tensor, Tensor, int]:
    at = torch.from_numpy(rows).to(codes.device)
    longest = max(2, int(lengths[rows].max()))  # a record of one token has none that counts, and is told so
    return at, codes[at, :longest], int(counted[rows].max())
