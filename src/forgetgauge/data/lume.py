"""LUME (SemEval-2025 Task 4): synthetic people, short stories and biographies, as records that can be forgotten.

500 synthetic people have six records each: a short biography with address, phone and number, cut in two, and five
questions. 489 stories and 744 biographies of real people have two each. The benchmark publishes a forget and a retain
set; here both are one pool, and the game draws its own. No record of a person is in both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from forgetgauge.data.dataset import Dataset
from forgetgauge.data.folders import locate, mendable
from forgetgauge.data.text import read_trees
from forgetgauge.data.text_records import Count, Encoding, Record, dataset_of_records
from forgetgauge.errors import UserError
from forgetgauge.files import parse_json

Part = Literal["all", "people", "stories", "biographies"]
_TASKS = {"Task1": "stories", "Task2": "people", "Task3": "biographies"}
_ID = re.compile(r'"?(?P<owner>.+?)"?(?P<kind>sc|qa)\d+')
N_OUTSIDE = 500
"""Sentences of SST-5 on which perplexity is measured: the first of its published test set."""

_IN_OTHER_WORDS = (
    (r"What is the birth date of (.+)\?", r"When was \1 born?"),
    (r"What is (.+)'s Social Security Number\?", r"Which Social Security Number does \1 have?"),
    (r"What is (.+)'s phone number\?", r"By which phone number can \1 be reached?"),
    (r"What is (.+)'s email address\?", r"At which email address can \1 be reached?"),
    (r"What is the home address of (.+)\?", r"Where does \1 live?"),
)


def load_lume(
    *,
    part: Part = "all",
    first: int = 0,
    tokenizer: str = "pieces",
    max_length: int = 0,
    count: Count = "answer",
    vocab: int = 8192,
    template: str = "{prompt}",
    separator: str = " ",
    end: str = "",
    outside: Literal["none", "sst5"] = "none",
) -> Dataset:
    """Records as tokens, the records of one person (or story) a group.

    `part` is `people`, `stories`, `biographies` or `all`; `first` takes the first so many groups, 0 all of them;
    `tokenizer` is `pieces` (words and digits, the `vocab` most frequent) or a checkpoint; `template`, `separator` and
    `end` say what stands around prompt and answer (`Encoding`); `count` says whether the loss
    of the answer or of all tokens counts; `outside = "sst5"` measures perplexity on 500 sentences of film reviews too.
    """
    if part not in ("all", *_TASKS.values()):
        raise UserError(f"data 'lume': part = {part!r} is none of all, people, stories, biographies")
    if outside not in ("none", "sst5"):
        raise UserError(f"data 'lume': outside = {outside!r} is neither 'none' nor 'sst5'")
    if not isinstance(first, int) or first < 0:
        raise UserError(f"data 'lume': first = {first!r} is not a whole number of at least 0")
    encoding = Encoding(tokenizer, max_length, count, vocab, template, separator, end)
    folder = locate("lume")
    with mendable("lume"):
        records = [record for name in ("forget", "retain") for record in read_lume(folder / f"{name}.jsonl", part)]
    if first:
        owners = set(list(dict.fromkeys(record.owner for record in records))[:first])
        records = [record for record in records if record.owner in owners]
    sentences = read_trees(locate("sst5") / "test.txt")[0][:N_OUTSIDE] if outside == "sst5" else []
    return dataset_of_records("lume", records, encoding, sentences)


def read_lume(file: Path, part: Part = "all") -> list[Record]:
    """The records of one of the two published files, in its order."""
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line.encode())
            task, named = _TASKS[row["task"]], _ID.fullmatch(row["id"])
            prompt, answer = row["input"].strip(), row["output"].strip()
        except (ValueError, KeyError, TypeError, AttributeError):
            named = None
        if named is None or not prompt or not answer:
            raise UserError(f"{file}, line {number}: not a record with id, input, output and task")
        if part in ("all", task):
            found.append(Record(prompt, answer, f"{task} {named['owner']}", in_other_words(prompt, named["kind"])))
    if not found:
        raise UserError(f"{file}: no records in it")
    return found


def in_other_words(prompt: str, kind: str) -> str:
    """A question asked otherwise; one that is not known, or a text to go on with, behind a request to do so."""
    for pattern, other in _IN_OTHER_WORDS:
        if re.fullmatch(pattern, prompt):
            return re.sub(pattern, other, prompt)
    return f"Please answer this question. {prompt}" if kind == "qa" else f"Please go on with this text. {prompt}"
