"""From sentences to token ids of one length: by the most frequent words, or by a checkpoint's own tokeniser.

Id 0 is padding in both. Sentences are cut and padded to one length, so that a data set is one tensor.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from forgetgauge.data.checkpoints import checkpoint_folder
from forgetgauge.errors import UserError

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
        text = (checkpoint_folder(checkpoint, "tokenizer.json") / "tokenizer.json").read_text("utf-8")
        try:
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
