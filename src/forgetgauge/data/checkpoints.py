"""Where a pretrained checkpoint is: a folder, an installed package, a GGUF file, or the Hugging Face hub's cache."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forgetgauge.data.folders import is_read_only
from forgetgauge.errors import UserError
from forgetgauge.files import parse_json

CHECKPOINT = ("config.json", "model.safetensors")
INDEX = "model.safetensors.index.json"
"""Names the files of weights that are in several."""


def checkpoint_folder(checkpoint: str, *files: str) -> Path:
    """The folder that holds these files of a checkpoint; only a hub name that is not cached is downloaded.

    A GGUF file is unpacked into a folder, once.
    """
    folder = _local_folder(checkpoint)
    if folder is not None and folder.suffix == ".gguf":
        from forgetgauge.data.hugging_face import unpacked_gguf

        folder = unpacked_gguf(folder)
    if folder is None:
        return _hub_folder(checkpoint, files)
    for name in files:
        if not (folder / name).is_file():
            raise UserError(f"checkpoint '{checkpoint}': {folder} has no {name}")
    return folder


def checkpoint_files(params: Any) -> list[Path]:
    """The files of every checkpoint that parameters name, at any depth under the key `checkpoint`."""
    if not isinstance(params, Mapping):
        return []
    found = [file for value in params.values() for file in checkpoint_files(value)]
    checkpoint = params.get("checkpoint")
    if isinstance(checkpoint, str) and checkpoint:
        found += model_files(checkpoint)
    return found


def model_files(checkpoint: str) -> list[Path]:
    """`config.json` of a checkpoint and its weights: one file, or the index of several and these."""
    checkpoint_folder(checkpoint, CHECKPOINT[0])  # where the hub is silent it is not asked for more
    try:
        folder = checkpoint_folder(checkpoint, *CHECKPOINT)
        return [folder / name for name in CHECKPOINT]
    except UserError as absent:
        try:
            index = checkpoint_folder(checkpoint, INDEX) / INDEX
        except UserError:
            raise absent from None
    try:
        parts = sorted({str(name) for name in parse_json(index.read_bytes())["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        parts = []
    if not parts or any(not name.endswith(".safetensors") or Path(name).name != name for name in parts):
        raise UserError(f"checkpoint '{checkpoint}': {index} names no files of weights beside it")
    folder = checkpoint_folder(checkpoint, CHECKPOINT[0], *parts)
    return [folder / name for name in (CHECKPOINT[0], INDEX, *parts)]


def _local_folder(checkpoint: str) -> Path | None:
    package, colon, inside = checkpoint.partition(":")
    folder = Path(checkpoint).expanduser()
    if os.path.isdir(folder):  # unlike is_dir of a path, no error where the name is too long to be one
        return folder
    if checkpoint.endswith(".gguf") and os.path.isfile(folder):
        return folder
    if colon and package.isidentifier():
        spec = importlib.util.find_spec(package)  # finds it without importing it
        if spec is None or not spec.submodule_search_locations:
            raise UserError(f"checkpoint '{checkpoint}': no package '{package}' is installed")
        inside_package = Path(next(iter(spec.submodule_search_locations))) / inside
        if inside.endswith(".gguf") and not inside_package.is_file():
            raise UserError(f"checkpoint '{checkpoint}': {inside_package}: no such file")
        return inside_package
    if checkpoint.startswith((".", "/", "~")) or checkpoint.count("/") > 1 or checkpoint.endswith(".gguf"):
        raise UserError(f"checkpoint '{checkpoint}': no such {'file' if checkpoint.endswith('.gguf') else 'folder'}")
    return None


def _hub_folder(checkpoint: str, files: tuple[str, ...]) -> Path:
    try:
        import huggingface_hub
    except ImportError:
        raise UserError(f"checkpoint '{checkpoint}': no such folder, and the hub needs 'forgetgauge[text]'") from None
    wanted = ["config.json", *files]
    try:
        try:
            found = [Path(huggingface_hub.hf_hub_download(checkpoint, f, local_files_only=True)) for f in wanted]
        except (huggingface_hub.errors.LocalEntryNotFoundError, FileNotFoundError):
            if is_read_only():
                raise UserError(f"checkpoint '{checkpoint}' is not here; a run downloads it from the hub") from None
            found = [Path(huggingface_hub.hf_hub_download(checkpoint, f)) for f in wanted]
    except UserError:
        raise
    except Exception as error:  # no network, no such name, a name the hub refuses: the user mends them the same way
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(
            f"checkpoint '{checkpoint}': no such folder, and not to be had from the hub: {reason}"
        ) from None
    return found[0].parent
