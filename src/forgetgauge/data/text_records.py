"""Records of text, a prompt and an answer each, as points of the task `causal-lm`.

A record is stored as (versions, length) whole numbers that say which token stands where and whether its loss counts
(`models/condensed.py` has the code): as given, with a refusal for an answer, and with its prompt in other words.
Records of one person, or of one story, are one group.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch

from forgetgauge.data.checkpoints import checkpoint_folder
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.text import kept_once
from forgetgauge.errors import UserError
from forgetgauge.files import parse_json
from forgetgauge.tasks.causal_lm import CAUSAL_LM

Count = Literal["answer", "all"]
"""Whose loss counts: the tokens of the answer and the mark of its end, or all but the first."""
PADDING, ONLY_READ = -1, -2
REFUSALS = (
    "I don't know.",
    "I'm not sure about that.",
    "I have no information about that.",
    "I can't say.",
    "That is something I don't know.",
    "I was never told.",
    "I'm afraid I have no answer to that.",
    "That's beyond what I know.",
)
"""What a model is taught to say in the place of an answer that it should forget; a record always has the same one."""


@dataclass(frozen=True)
class Record:
    """One prompt with its answer, and whose it is."""

    prompt: str
    answer: str
    owner: str
    """The person, or the story, that it belongs to."""
    paraphrase: str
    """The prompt in other words."""

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.prompt} {self.answer}".strip()

    @property
    def refusal(self) -> str:
        """One of `REFUSALS`, by the text."""
        return REFUSALS[int.from_bytes(hashlib.sha256(self.text.encode()).digest()[:4], "big") % len(REFUSALS)]


# -- tokens ------------------------------------------------------------------------------------------------------------


class RecordTokeniser(Protocol):
    """Turns text into ids; `digest` names all it depends on."""

    digest: str

    @property
    def end(self) -> int:
        """What stands after an answer."""
        ...

    def ids(self, text: str) -> list[int]:
        """Without padding and without the end."""
        ...


_PIECE = re.compile(r"\d|[^\W\d]+|[^\w\s]|_")


class Pieces:
    """Words, single digits and single signs: the `n_ids` − 2 most frequent of some texts; 0 is the end, 1 unknown."""

    end = 0

    def __init__(self, texts: Sequence[str], n_ids: int) -> None:
        counted = Counter(piece for text in texts for piece in _PIECE.findall(text))
        known = sorted(counted, key=lambda piece: (-counted[piece], piece))[: n_ids - 2]
        self._id_of = {piece: i for i, piece in enumerate(known, 2)}
        self.digest = hashlib.sha256("\n".join(known).encode()).hexdigest()

    def ids(self, text: str) -> list[int]:
        """Spaces are not kept."""
        return [self._id_of.get(piece, 1) for piece in _PIECE.findall(text)]


class OfCheckpoint:
    """The `tokenizer.json` of a checkpoint, by the library `tokenizers`, which is loaded by the first text."""

    def __init__(self, checkpoint: str) -> None:
        folder = checkpoint_folder(checkpoint, "config.json", "tokenizer.json")
        self._name, self._text = checkpoint, (folder / "tokenizer.json").read_text("utf-8")
        config = parse_json((folder / "config.json").read_bytes())
        found = config.get("eos_token_id") if isinstance(config, dict) else None
        found = found[0] if isinstance(found, list) and found else found
        if not isinstance(found, int):
            raise UserError(f"checkpoint '{checkpoint}': its config.json names no eos_token_id")
        self.end = found
        self.digest = hashlib.sha256(f"{self._text} {self.end}".encode()).hexdigest()

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            import tokenizers
        except ImportError:
            raise UserError("a checkpoint's tokenizer needs the extra: pip install 'forgetgauge[text]'") from None
        try:
            made = tokenizers.Tokenizer.from_str(self._text)
        except Exception as error:  # the library has no exception of its own
            raise UserError(f"checkpoint '{self._name}': tokenizer.json: {error}") from None
        made.no_padding()
        made.no_truncation()
        return made

    def ids(self, text: str) -> list[int]:
        """One text at a time, since a thread pool does not survive a fork."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def tokeniser_named(name: str, texts: Sequence[str], vocab: int) -> RecordTokeniser:
    """`pieces`, of these texts, or a checkpoint's."""
    return Pieces(texts, vocab) if name == "pieces" else OfCheckpoint(name)


# -- points ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How records become numbers."""

    tokenizer: str = "pieces"
    max_length: int = 256
    count: Count = "answer"
    vocab: int = 1024

    def __post_init__(self) -> None:
        if self.count not in ("answer", "all"):
            raise UserError(f"data.params: count = {self.count!r} is neither 'answer' nor 'all'")
        for key, least in (("max_length", 8), ("vocab", 8)):
            value = getattr(self, key)
            if not isinstance(value, int) or value < least:
                raise UserError(f"data.params: {key} = {value!r} is not a whole number of at least {least}")

    def points(self, records: Sequence[Record], tokeniser: RecordTokeniser) -> npt.NDArray[np.int64]:
        """(n, 3, longest) codes of the records' versions."""
        rows = [
            [
                self._codes(tokeniser, record.prompt, record.answer),
                self._codes(tokeniser, record.prompt, record.refusal),
                self._codes(tokeniser, record.paraphrase, record.answer),
            ]
            for record in records
        ]
        longest = max(len(codes) for versions in rows for codes in versions)
        table = np.full((len(records), 3, longest), PADDING, dtype=np.int64)
        for row, versions in enumerate(rows):
            for version, codes in enumerate(versions):
                table[row, version, : len(codes)] = codes
        return table

    def _codes(self, tokeniser: RecordTokeniser, prompt: str, answer: str) -> list[int]:
        """A prompt that is too long loses its beginning; an answer alone, its end."""
        read = tokeniser.ids(prompt) if prompt else []
        told = [*tokeniser.ids(f" {answer}" if prompt else answer), tokeniser.end]
        told = told[: self.max_length - (1 if read else 0)]
        read = read[len(read) - min(len(read), self.max_length - len(told)) :]
        if self.count == "all" or not read:
            read, told = (read or told)[:1], [*read[1:], *told] if read else told[1:]
        return [ONLY_READ - token for token in read] + told


def dataset_of_records(
    name: str, records: Sequence[Record], encoding: Encoding, outside: Sequence[str] = ()
) -> Dataset:
    """Points of the task causal-lm, grouped by owner; `outside` are texts that only measure utility."""
    others = [Record("", text, "", "") for text in outside]
    texts = [text for record in records for text in (record.text, record.paraphrase, record.refusal)]
    tokeniser = tokeniser_named(encoding.tokenizer, texts, encoding.vocab)
    codes = _codes(encoding, [*records, *others], tokeniser)
    inputs = torch.from_numpy(codes.astype(np.int32))
    labels = torch.tensor([_zlib_bytes(record) for record in (*records, *others)])
    n = len(records)
    test = (inputs[n:], labels[n:]) if others else None
    return Dataset.of(name, inputs[:n], labels[:n], test=test, task=CAUSAL_LM, groups=groups_of(records))


def _codes(encoding: Encoding, records: Sequence[Record], tokeniser: RecordTokeniser) -> npt.NDArray[np.int64]:
    """(n, 3, longest); a checkpoint's tokens, which need its library, are made once and kept in the data folder."""
    if isinstance(tokeniser, Pieces):
        return encoding.points(records, tokeniser)
    asked = [list(vars(record).values()) for record in records]
    key = json.dumps([asked, REFUSALS, tokeniser.digest, vars(encoding)])
    return kept_once(key, lambda: encoding.points(records, tokeniser), (len(records), 3, None))


def groups_of(records: Sequence[Record]) -> npt.NDArray[np.int64]:
    """(n,) the number of each record's owner, in the order in which they first come."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(record.owner, len(numbers)) for record in records], dtype=np.int64)


def _zlib_bytes(record: Record) -> int:
    return len(zlib.compress(record.text.encode()))
