"""What needs the library transformers (the extra `[text]`): GGUF files, and architectures that are not built here.

It is imported by `library` alone, and when something of it is first used.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from forgetgauge.code.files import file_digest
from forgetgauge.data.folders import data_folder, is_read_only
from forgetgauge.errors import UserError


def library(what: str) -> Any:
    """transformers; `what` needs it."""
    try:
        import transformers
    except ImportError as error:
        raise UserError(f"{what} needs transformers: pip install 'forgetgauge[text]'") from error
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers


def pretrained(kind: Any, folder: Path, may_lack: str = "") -> Any:
    """A model of one of transformers' classes, in float32 and eval mode; safetensors alone.

    ValueError where transformers would draw weights at random, since the folder has none, but for one part.
    """
    how = {"local_files_only": True, "use_safetensors": True, "output_loading_info": True}
    log = library("a checkpoint").utils.logging
    before = log.get_verbosity()
    log.set_verbosity_error()  # it would tell of missing weights in a table, and go on
    try:
        found, told = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **how)
    finally:
        log.set_verbosity(before)
    refuse_missing(told, may_lack)
    return found


def refuse_missing(told: Any, may_lack: str = "") -> None:
    """ValueError where weights of a model were drawn at random, but for those of one part."""
    missing = sorted(name for name in told["missing_keys"] if not (may_lack and name.startswith(may_lack)))
    if missing:
        raise ValueError(f"it lacks {len(missing)} weights of the model, such as {missing[0]}")


# -- GGUF --------------------------------------------------------------------------------------------------------------


def unpacked_gguf(file: Path) -> Path:
    """A folder with the model of a GGUF file as a checkpoint in float32, made once and kept in the data folder; where
    nothing may be written there, elsewhere, until the program ends."""
    digest = file_digest(file)  # asked for with every model that is made
    folder = data_folder() / "checkpoints" / digest
    if not (folder / "model.safetensors").is_file() and is_read_only():
        folder = _elsewhere() / digest
    if (folder / "model.safetensors").is_file():
        return folder
    _unpack(file, folder)
    return folder


@functools.cache
def _elsewhere() -> Path:
    folder = tempfile.mkdtemp(prefix="forgetgauge-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _unpack(file: Path, folder: Path) -> None:
    transformers = library("a GGUF file")
    try:
        how = {"gguf_file": file.name, "local_files_only": True}
        with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that nothing turns off
            model, told = transformers.AutoModelForCausalLM.from_pretrained(
                file.parent, dtype=torch.float32, output_loading_info=True, **how
            )
        refuse_missing(told)
        tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **how)
    except Exception as error:  # whatever transformers, gguf and accelerate raise, or that one of them is missing
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"checkpoint '{file}' cannot be loaded: {line}") from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        tokenizer.save_pretrained(part)
        _save(model, Path(part))
        shutil.copytree(part, folder, dirs_exist_ok=True)


def _save(model: Any, folder: Path) -> None:
    """Config and weights, which transformers refuses to save of a model that was read from GGUF."""
    config = {name: value for name, value in model.config.to_dict().items() if name != "quantization_config"}
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if config.get("tie_word_embeddings"):
        weights.pop("lm_head.weight", None)
    (folder / "config.json").write_text(json.dumps(config, indent=2, default=str), "utf-8")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


# -- other architectures -----------------------------------------------------------------------------------------------


class OtherArchitecture(nn.Module):
    """Any causal language model of transformers, asked like a `Llama`."""

    gives_all_logits = True
    """Whether logits of all positions are there at once, and not only of those that are asked for."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        for module in inner.modules():
            if isinstance(module, nn.Embedding):  # records are padded where nobody looks, and vmap forgets it
                module.padding_idx = None
        vocab, hidden = int(inner.config.vocab_size), int(inner.config.hidden_size)
        self.sizes = SimpleNamespace(
            vocab=vocab, hidden=hidden, places=getattr(inner.config, "max_position_embeddings", None)
        )
        self.blocks = _blocks_of(inner)

    @property
    def n_layers(self) -> int:
        """How many blocks there are."""
        return int(self.inner.config.num_hidden_layers)

    def forward(self, ids: Tensor, at: Tensor | None, n_layers: int | None = None) -> Tensor:
        """(n, length) ids and (n, m) positions -> (n, m, vocab); without positions, states after so many blocks."""
        if at is None:
            return self._hidden(ids, self.n_layers if n_layers is None else n_layers)
        logits: Tensor = self.inner(input_ids=ids, use_cache=False).logits
        return logits.gather(1, at[..., None].expand(-1, -1, logits.shape[-1]))

    def _hidden(self, ids: Tensor, n_layers: int) -> Tensor:
        """What the block gives. The list of hidden states that transformers returns has the last one normalised."""
        if not self.blocks:
            raise UserError(f"{type(self.inner).__name__}: its blocks were not found, whose states the method needs")
        found: list[Tensor] = []
        with _kept(self.inner.get_submodule(self.blocks)[n_layers - 1], found):
            self.inner(input_ids=ids, use_cache=False)
        return found[0]


@torch.no_grad()
def _blocks_of(inner: Any) -> str:
    """The name of the list of modules whose outputs are the hidden states that transformers returns, but for the last;
    empty where there is none. Found once, with no hook or vmap about."""
    ids = torch.arange(4)[None] % int(inner.config.vocab_size)
    states = inner(input_ids=ids, use_cache=False, output_hidden_states=True).hidden_states or ()
    for name, blocks in inner.named_modules():
        if not isinstance(blocks, nn.ModuleList) or len(blocks) != len(states) - 1:
            continue
        found: list[Tensor] = []
        with contextlib.ExitStack() as hooks:
            for block in blocks:
                hooks.enter_context(_kept(block, found))
            inner(input_ids=ids, use_cache=False)
        pairs = list(zip(found[:-1], states[1:-1], strict=False))
        if len(found) == len(blocks) and all(a.shape == b.shape and torch.allclose(a, b, atol=1e-4) for a, b in pairs):
            return str(name)
    return ""


@contextlib.contextmanager
def _kept(block: nn.Module, found: list[Tensor]) -> Iterator[None]:
    """What a block gives is appended, within."""

    def keep(module: nn.Module, given: Any, made: Any) -> None:
        found.append(made if isinstance(made, Tensor) else made[0])

    handle = block.register_forward_hook(keep)
    try:
        yield
    finally:
        handle.remove()


def other_architecture(checkpoint: str, folder: Path) -> OtherArchitecture:
    """The causal language model in a folder, whatever it is; code that comes with it is not run."""
    transformers = library(f"checkpoint '{checkpoint}'")
    made = OtherArchitecture(pretrained(transformers.AutoModelForCausalLM, folder))
    _refuse_ahead(made)
    return made


@torch.no_grad()
def _refuse_ahead(model: OtherArchitecture) -> None:
    """ValueError where a token moves what is expected before it: such a model was not made to go on with a text."""
    ids = torch.arange(1, 9).repeat(2, 1) % model.sizes.vocab
    ids[1, 5:] = torch.arange(9, 12) % model.sizes.vocab
    one, other = model(ids, torch.arange(5).expand(2, -1))
    if not torch.allclose(one, other, atol=1e-4 * float(one.abs().max()), rtol=0):
        raise ValueError("it is no causal language model: what it expects of a token changes with later ones")
