"""Records of text, a prompt and an answer each, as points of the task `causal-lm`.

A record is stored as (versions, length) whole numbers that say which token stands where and whether its loss counts
(`models/condensed.py` has the code): as given, with a refusal for an answer, and with its prompt in other words.
Records of one person, or of one story, are one group.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch

from forgetgauge.data.checkpoints import checkpoint_folder
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.text import kept_once
from forgetgauge.errors import UserError
from forgetgauge.files import parse_json
from forgetgauge.game.parts import TEXT
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.wording import shortened

Count = Literal["answer", "all"]
"""Whose loss counts: the tokens of the answer and the mark of its end, or all but the first."""
PADDING, ONLY_READ = -1, -2
ENCODED = 2
"""Raised when the same text is made into other tokens, so that those that are kept are made anew."""
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
    """The prompt in other words; empty where no record has one."""

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
    """Turns text into ids."""

    @property
    def digest(self) -> str:
        """Names all that ids depend on."""
        ...

    @property
    def before(self) -> Sequence[int]:
        """What stands before every text, such as a mark of its beginning; often nothing."""
        ...

    @property
    def end(self) -> int:
        """What stands after an answer."""
        ...

    def encode(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text without padding and marks, and up to which character of the text each of them reaches."""
        ...


_PIECE = re.compile(r"\d|[^\W\d]+|[^\w\s]|_")


class Pieces:
    """Words, single digits and single signs: the `n_ids` − 2 most frequent of some texts; 0 is the end, 1 unknown."""

    end, before = 0, ()

    def __init__(self, texts: Sequence[str], n_ids: int) -> None:
        counted = Counter(piece for text in texts for piece in _PIECE.findall(text))
        known = sorted(counted, key=lambda piece: (-counted[piece], piece))[: n_ids - 2]
        self._id_of = {piece: i for i, piece in enumerate(known, 2)}
        self.digest = hashlib.sha256("\n".join(known).encode()).hexdigest()

    def encode(self, text: str) -> tuple[list[int], list[int]]:
        """Spaces are not kept."""
        found = list(_PIECE.finditer(text))
        return [self._id_of.get(piece[0], 1) for piece in found], [piece.end() for piece in found]


class OfCheckpoint:
    """The `tokenizer.json` of a checkpoint, by the library `tokenizers`, which is loaded by the first text."""

    def __init__(self, checkpoint: str, end: str = "") -> None:
        self._folder = checkpoint_folder(checkpoint, "config.json", "tokenizer.json")
        self._name, self._end = checkpoint, end
        self._text = (self._folder / "tokenizer.json").read_text("utf-8")

    @cached_property
    def end(self) -> int:
        """What was named, else what the checkpoint's config names."""
        if not self._end:
            return _end_in(self._folder, self._name)
        found: int | None = self._tokenizer.token_to_id(self._end)
        if found is None:
            raise UserError(
                f"checkpoint '{self._name}': its tokenizer has no token {self._end!r} to end an answer with"
            )
        return found

    @cached_property
    def digest(self) -> str:
        """Of the tokenizer's file and the mark of the end."""
        return hashlib.sha256(f"{self._text} {self._end or self.end}".encode()).hexdigest()

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

    @cached_property
    def before(self) -> Sequence[int]:
        """The marks that the tokenizer itself puts before a text, as Llama's does."""
        marked = self._tokenizer.encode("a", add_special_tokens=True)
        with_marks = zip(marked.ids, marked.special_tokens_mask, strict=True)
        return tuple(mark for mark, _ in itertools.takewhile(lambda one: one[1], with_marks))

    def encode(self, text: str) -> tuple[list[int], list[int]]:
        """One text at a time, since a thread pool does not survive a fork."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return found.ids, [end for _, end in found.offsets]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without marks."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text


def _end_in(folder: Path, checkpoint: str) -> int:
    """The mark of the end that the config of a checkpoint names."""
    config = parse_json((folder / "config.json").read_bytes())
    named = config.get("eos_token_id") if isinstance(config, dict) else None
    allowed = [one for one in (named if isinstance(named, list) else [named]) if type(one) is int and one >= 0]
    if not allowed:
        raise UserError(f"checkpoint '{checkpoint}': its config.json names no eos_token_id, a number of 0 or more")
    if len(allowed) > 1:
        raise UserError(
            f"checkpoint '{checkpoint}': its config.json names {len(allowed)} marks of an end; set data.params.end "
            'to the one that an answer ends with, e.g. "<|im_end|>"'
        )
    return allowed[0]


def tokeniser_of(encoding: Encoding, texts: Sequence[str]) -> RecordTokeniser:
    """`pieces`, of these texts, or a checkpoint's."""
    if encoding.tokenizer == "pieces":
        return Pieces(texts, encoding.vocab)
    return OfCheckpoint(encoding.tokenizer, encoding.end)


def tokens_are_of(checkpoint: str, dataset: Dataset) -> bool:
    """Whether the tokens of records are those of a checkpoint: its tokenizer must read most words of what they say.

    Other tokens are numbers that a model knows as well, but as other words: it would be taught gibberish. True where
    that cannot be told, since the checkpoint has no tokenizer.
    """
    try:
        tokeniser = OfCheckpoint(checkpoint)
        tokeniser.decode([])
    except UserError:
        return True
    every = np.unique(np.linspace(0, len(dataset.points) - 1, 32).astype(int))
    codes = dataset.points.whole_inputs[torch.from_numpy(every), 0].numpy()
    ids = np.where(codes < PADDING, ONLY_READ - codes, codes)
    read = ["".join(_plain(tokeniser.decode(row[row >= 0].tolist())).split()) for row in ids]
    words = [_plain(str(text)).split() for text in dataset.columns[TEXT][every]]
    found = [sum(word in text for word in said) >= len(said) / 2 for text, said in zip(read, words, strict=True)]
    return 2 * sum(found) >= len(every)


def _plain(text: str) -> str:
    """The text without what tokenizers change: capitals, accents, signs for spaces."""
    letters = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


# -- points ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Encoding:
    """How records become numbers."""

    tokenizer: str = "pieces"
    """`pieces`, or a checkpoint: that of the model."""
    max_length: int = 0
    """Most tokens of a record; a prompt that is too long loses its beginning. 0: as many as it has."""
    count: Count = "answer"
    vocab: int = 1024
    """Of `pieces`: how many there are."""
    template: str = "{prompt}"
    """What the model is given of a prompt, e.g. a turn of a chat."""
    separator: str = " "
    """What stands between that and the answer."""
    end: str = ""
    """The token that ends an answer, where the checkpoint allows several."""

    def __post_init__(self) -> None:
        for key in ("tokenizer", "separator", "end"):
            if not isinstance(value := getattr(self, key), str):
                raise UserError(f"data.params: {key} = {value!r} is no text")
        if self.count not in ("answer", "all"):
            raise UserError(f"data.params: count = {self.count!r} is neither 'answer' nor 'all'")
        for key, or_0 in (("max_length", ", or 0"), ("vocab", "")):
            value = getattr(self, key)
            if not isinstance(value, int) or not (value >= 8 or (or_0 and value == 0)):
                raise UserError(f"data.params: {key} = {value!r} is not a whole number of at least 8{or_0}")
        if not isinstance(self.template, str) or self.template.count("{prompt}") != 1:
            raise UserError(f"data.params: template = {self.template!r} must have {{prompt}} in it once")
        if self.end and self.tokenizer == "pieces":
            raise UserError("data.params: end names a token of a checkpoint's tokenizer; that of 'pieces' is fixed")

    def points(self, records: Sequence[Record], tokeniser: RecordTokeniser) -> npt.NDArray[np.int64]:
        """(n, versions, longest) codes: 3 versions, or 2 without paraphrases. Of a refusal, and after a paraphrase, the
        answer counts."""
        rows = [
            [
                self._codes(tokeniser, record.prompt, record.answer, self.count),
                self._codes(tokeniser, record.prompt, record.refusal, "answer"),
                self._codes(tokeniser, record.paraphrase, record.answer, "answer"),
            ][: _n_versions(records)]
            for record in records
        ]
        longest = max(len(codes) for versions in rows for codes in versions)
        if self.max_length and (needed := longest) > self.max_length:
            n_cut = sum(any(len(codes) > self.max_length for codes in versions) for versions in rows)
            raise UserError(
                f"data.params: max_length = {self.max_length} would cut the answers of {n_cut} of {len(rows)} records; "
                f"the longest needs {needed} tokens, and 0 keeps all"
            )
        table = np.full((len(records), _n_versions(records), longest), PADDING, dtype=np.int64)
        for row, versions in enumerate(rows):
            for version, codes in enumerate(versions):
                table[row, version, : len(codes)] = codes
        return table

    def before(self, prompt: str) -> str:
        """What stands before an answer; nothing where there is no prompt."""
        return self.template.replace("{prompt}", prompt) + self.separator if prompt else ""

    def _codes(self, tokeniser: RecordTokeniser, prompt: str, answer: str, count: Count) -> list[int]:
        """A prompt that is too long loses its beginning; more tokens than `max_length` are what must not be cut.

        The text is made into tokens as a whole, as a model meets it; a token with something of the answer in it is the
        answer's, and the others are read alone.
        """
        before, marks = self.before(prompt), list(tokeniser.before)
        ids, reached = tokeniser.encode(before + answer)
        if marks and ids[: len(marks)] == marks:  # the template has them as well
            ids, reached = ids[len(marks) :], reached[len(marks) :]
        n_asked = sum(place <= len(before) for place in reached) if prompt else 0
        read, told = ids[:n_asked], [*ids[n_asked:], tokeniser.end]
        if self.max_length:
            room = self.max_length - len(tokeniser.before) - len(told)
            read = read[len(read) - min(len(read), max(1, room)) :]
        read = [*tokeniser.before, *read]
        if count == "all":
            read, told = [*tokeniser.before], [*read[len(tokeniser.before) :], *told]
        if not read:
            read, told = told[:1], told[1:]
        return [ONLY_READ - token for token in read] + told


def dataset_of_records(
    name: str, records: Sequence[Record], encoding: Encoding, outside: Sequence[str] = ()
) -> Dataset:
    """Points of the task causal-lm, grouped by owner; `outside` are texts that only measure utility."""
    if not records:
        raise UserError(f"data '{name}': no records")
    for number, record in enumerate(records):
        if not isinstance(record, Record):
            raise UserError(
                f"data '{name}': record {number} is a {type(record).__name__}, not a Record: Record(prompt, answer, "
                "owner, paraphrase)"
            )
    paraphrased = _n_versions(records) > 2
    for number, record in enumerate(records):
        if said := _problem(record, encoding, paraphrased):
            raise UserError(f"data '{name}': record {number} {said}")
    others = [Record("", text, "", "") for text in outside]
    texts = [text for record in records for text in (record.text, record.paraphrase, record.refusal)]
    codes = _codes(encoding, [*records, *others], tokeniser_of(encoding, texts))
    inputs = torch.from_numpy(codes.astype(np.int32))
    labels = torch.tensor([_zlib_bytes(record, encoding) for record in (*records, *others)])
    n = len(records)
    test = (inputs[n:], labels[n:]) if others else None
    columns = {TEXT: np.array([record.text for record in records])}
    return Dataset.of(
        name, inputs[:n], labels[:n], test=test, task=CAUSAL_LM, groups=groups_of(records), columns=columns
    )


def _n_versions(records: Sequence[Record]) -> int:
    """3 where there are prompts in other words, else 2."""
    return 3 if any(str(record.paraphrase).strip() for record in records) else 2


def _problem(record: Record, encoding: Encoding, paraphrased: bool) -> str:
    """What a record lacks, if anything."""
    for part, value in vars(record).items():
        if not isinstance(value, str):
            return f"has no text for its {part} but {shortened(repr(value), 40)}"
    if not record.answer.strip():
        return "has no answer: there is nothing of it to forget"
    if not record.owner.strip():
        return "has no owner: whose is it? Each person is forgotten as a whole"
    if not record.prompt.strip() and encoding.template != "{prompt}":
        return "has no prompt to put into data.params.template"
    if paraphrased and record.prompt.strip() and not record.paraphrase.strip():
        return "has no paraphrase, and others have: give all prompts in other words, or none"
    return ""


def _codes(encoding: Encoding, records: Sequence[Record], tokeniser: RecordTokeniser) -> npt.NDArray[np.int64]:
    """(n, 3, longest); a checkpoint's tokens, which need its library, are made once and kept in the data folder."""
    if isinstance(tokeniser, Pieces):
        return encoding.points(records, tokeniser)
    asked = [list(vars(record).values()) for record in records]
    key = json.dumps([asked, REFUSALS, tokeniser.digest, vars(encoding), ENCODED])
    return kept_once(key, lambda: encoding.points(records, tokeniser), (len(records), _n_versions(records), None))


def groups_of(records: Sequence[Record]) -> npt.NDArray[np.int64]:
    """(n,) the number of each record's owner, in the order in which they first come."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(record.owner, len(numbers)) for record in records], dtype=np.int64)


def _zlib_bytes(record: Record, encoding: Encoding) -> int:
    """Of the text whose loss counts: what the loss is compared with must be of the same text."""
    text = record.answer if encoding.count == "answer" else (encoding.before(record.prompt) + record.answer).strip()
    return len(zlib.compress(text.encode()))
