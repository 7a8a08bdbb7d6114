"""SST-5: sentences of film reviews in five classes of sentiment, as token ids (whole sentences, not their phrases).

The paper's 11,855 “training” sentences are the published training, development and test sets together, so by default
they are pooled, and there is no official test set; `pool = "train"` plays on the 8,544 + 1,101 of the first two and
keeps the 2,210 as the test set.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from forgetgauge.data.dataset import Dataset
from forgetgauge.data.folders import data_folder, is_read_only, locate, mendable
from forgetgauge.data.tokenising import Pretrained, Tokeniser, Tokens, Words, tokenise
from forgetgauge.data.trees import read_trees
from forgetgauge.errors import UserError


def load_sst5(
    *, tokenizer: str = "words", max_length: int = 64, vocab: int = 8192, pool: Literal["all", "train"] = "all"
) -> Dataset:
    """Token ids (n, max_length) and labels 0 (very negative) to 4 (very positive).

    `tokenizer`: `words` (the `vocab` − 3 most frequent words of the published training set) or a checkpoint: a folder,
    `package:folder` or a hub name. 64 tokens cut 4 of the 11,855 sentences short with BERT's word pieces, and none with
    words.
    """
    if pool not in ("all", "train"):
        raise UserError(f"data 'sst5': pool = {pool!r} is neither 'all' nor 'train'")
    for key, value, least in (("max_length", max_length, 2), ("vocab", vocab, 4)):
        if not isinstance(value, int) or value < least:
            raise UserError(f"data 'sst5': {key} = {value!r} is not a whole number of at least {least}")
    folder = locate("sst5")
    with mendable("sst5"):
        parts = [read_trees(folder / f"{part}.txt") for part in ("train", "dev", "test")]
    tokeniser: Tokeniser = (
        Words(parts[0][0], vocab, max_length) if tokenizer == "words" else Pretrained(tokenizer, max_length)
    )
    tokens = tokenise_once(tokeniser, [sentence for sentences, _ in parts for sentence in sentences], max_length)
    inputs = torch.from_numpy(tokens)
    labels = torch.from_numpy(np.concatenate([labels for _, labels in parts]))
    if pool == "all":
        return Dataset.of("sst5", inputs, labels)
    n_train = len(inputs) - len(parts[2][0])
    return Dataset.of("sst5", inputs[:n_train], labels[:n_train], test=(inputs[n_train:], labels[n_train:]))


def tokenise_once(tokeniser: Tokeniser, sentences: Sequence[str], length: int) -> Tokens:
    """`tokenise`, kept in the data folder under a digest of the sentences, the tokeniser and the length."""
    name = hashlib.sha256(json.dumps([list(sentences), tokeniser.digest, length]).encode()).hexdigest()
    path = data_folder() / "tokens" / f"{name}.npz"
    kept = _read(path, (len(sentences), length))
    if kept is None:
        kept = tokenise(tokeniser, sentences, length)
        if not is_read_only():
            _write(path, kept)
    return kept


def _read(path: Path, shape: tuple[int, int]) -> Tokens | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            tokens = arrays["tokens"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):  # absent or broken: made again
        return None
    return tokens.astype(np.int64) if tokens.shape == shape else None


def _write(path: Path, tokens: Tokens) -> None:
    """Whole or not at all, as several processes may write it at once; a folder that is read-only keeps nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez_compressed(file, tokens=tokens.astype(np.int32))
        part.replace(path)
    except OSError:
        return
