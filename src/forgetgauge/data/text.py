"""SST-5: sentences of film reviews in five classes of sentiment, as token ids (whole sentences, not their phrases).

The paper's 11,855 “training” sentences are the published training, development and test sets together, so by default
they are pooled, and there is no official test set; `pool = "train"` plays on the 8,544 + 1,101 of the first two and
keeps the 2,210 as the test set.

The Stanford Sentiment Treebank is published as Penn-Treebank trees with a label on every node, one a line:
`(3 (2 It) (4 (2 works) (2 .)))` is the sentence `It works .` with root label 3. Only the root's label is used. Brackets
that belong to the sentence are published as `-LRB-` and `-RRB-`, `/` and `*` behind a backslash: they are given back as
they were written.

Sentences become token ids by the most frequent words or by a checkpoint's own tokeniser, cut and padded (id 0 in both)
to one length, so that a data set is one tensor.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch

from forgetgauge.data.checkpoints import checkpoint_folder
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.folders import data_folder, is_read_only, locate, mendable
from forgetgauge.errors import UserError
from forgetgauge.npz import UNREADABLE, read_arrays

# -- trees -------------------------------------------------------------------------------------------------------------

N_CLASSES = 5
_PIECE = re.compile(r"[()]|[^\s()]+")
_ESCAPED = re.compile(r"\\([/*])")
_WRITTEN_OTHERWISE = {"-LRB-": "(", "-RRB-": ")", "-lrb-": "(", "-rrb-": ")"}


def read_trees(path: Path) -> tuple[list[str], npt.NDArray[np.int64]]:
    """(sentences, words joined by single spaces; (n,) root labels 0 … 4), in the file's order."""
    try:
        lines = path.read_text("utf-8").split("\n")  # the text has other signs that Python takes for line ends
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    sentences, labels = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            sentence, label = parse_tree(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
        sentences.append(sentence)
        labels.append(label)
    if not sentences:
        raise UserError(f"{path}: no trees in it")
    return sentences, np.array(labels, dtype=np.int64)


def parse_tree(line: str) -> tuple[str, int]:
    """(sentence, root label) of one tree; ValueError says what is wrong."""
    pieces = _PIECE.findall(line)
    words, depth, previous = [], 0, ""
    for position, piece in enumerate(pieces):
        if depth == 0 and position > 0:
            raise ValueError("more than one tree")
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        elif previous == "(":
            if not (piece.isascii() and piece.isdigit() and int(piece) < N_CLASSES):
                raise ValueError(f"label '{piece}' is not one of 0 to {N_CLASSES - 1}")
        else:
            words.append(_WRITTEN_OTHERWISE.get(piece) or _ESCAPED.sub(r"\1", piece))
        if depth < 0 or (depth == 0 and piece != ")"):
            raise ValueError("not a tree (label word …)")
        previous = piece
    if depth != 0:
        raise ValueError(f"{depth} brackets are not closed")
    if not words:
        raise ValueError("a tree without words")
    return " ".join(words), int(pieces[1])


# -- tokens ------------------------------------------------------------------------------------------------------------

PAD, UNKNOWN, START = 0, 1, 2
Tokens = npt.NDArray[np.int64]


class Tokeniser(Protocol):
    """Turns a sentence into ids; `digest` names all it depends on."""

    digest: str

    def ids(self, sentence: str) -> list[int]:
        """At most as many ids as it was made for, without padding."""
        ...


class Words:
    """The `n_ids` − 3 most frequent words of some sentences (of equally frequent ones, the first by alphabet).

    Words are what spaces separate, in small letters: SST is published with punctuation set apart.
    """

    def __init__(self, sentences: Sequence[str], n_ids: int, length: int) -> None:
        counted = Counter(word for sentence in sentences for word in sentence.lower().split())
        known = sorted(counted, key=lambda word: (-counted[word], word))[: n_ids - 3]
        self._id_of = {word: i for i, word in enumerate(known, START + 1)}
        self._length = length
        self.digest = hashlib.sha256("\n".join(known).encode()).hexdigest()

    def ids(self, sentence: str) -> list[int]:
        """A start mark, on which BERT's pooled output sits, and the words."""
        return [START, *(self._id_of.get(word, UNKNOWN) for word in sentence.lower().split())][: self._length]


class Pretrained:
    """The `tokenizer.json` of a checkpoint, by the library `tokenizers` (a part of the extra `[text]`)."""

    def __init__(self, checkpoint: str, length: int) -> None:
        try:
            import tokenizers
        except ImportError:
            raise UserError("a checkpoint's tokenizer needs the extra: pip install 'forgetgauge[text]'") from None
        file = checkpoint_folder(checkpoint, "tokenizer.json") / "tokenizer.json"
        try:
            text = file.read_text("utf-8")
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library has no exception of its own
            raise UserError(f"checkpoint '{checkpoint}': tokenizer.json: {error}") from None
        if self._tokenizer.token_to_id("[PAD]") != PAD:
            raise UserError(f"checkpoint '{checkpoint}': its tokenizer is not a BERT's: [PAD] is not number {PAD}")
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(length)
        self.digest = hashlib.sha256(text.encode()).hexdigest()

    def ids(self, sentence: str) -> list[int]:
        """[CLS], word pieces, [SEP]; one sentence at a time, since a thread pool does not survive a fork."""
        ids: list[int] = self._tokenizer.encode(sentence).ids
        return ids


def tokenise(tokeniser: Tokeniser, sentences: Sequence[str], length: int) -> Tokens:
    """(n, length) ids, padded at the end."""
    tokens = np.full((len(sentences), length), PAD, dtype=np.int64)
    for row, sentence in enumerate(sentences):
        ids = tokeniser.ids(sentence)
        tokens[row, : len(ids)] = ids
    return tokens


# -- the data set ------------------------------------------------------------------------------------------------------


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
    key = json.dumps([list(sentences), tokeniser.digest, length])
    return kept_once(key, lambda: tokenise(tokeniser, sentences, length), (len(sentences), length))


def kept_once(key: str, make: Callable[[], Tokens], shape: tuple[int | None, ...]) -> Tokens:
    """Tokens, made once and kept in the data folder under a digest of `key`; None in the shape is any number."""
    path = data_folder() / "tokens" / f"{hashlib.sha256(key.encode()).hexdigest()}.npz"
    kept = _read(path, shape)
    if kept is None:
        kept = make()
        if not is_read_only():
            _write(path, kept)
    return kept


def _read(path: Path, shape: tuple[int | None, ...]) -> Tokens | None:
    try:
        tokens = read_arrays(path, ["tokens"])["tokens"]
    except (*UNREADABLE, KeyError):  # absent or broken: made again
        return None
    fits = tokens.ndim == len(shape) and all(own in (n, None) for own, n in zip(shape, tokens.shape, strict=True))
    return tokens.astype(np.int64) if fits and tokens.dtype.kind == "i" else None


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
