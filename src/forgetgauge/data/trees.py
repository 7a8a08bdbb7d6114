"""Penn-Treebank trees with a label on every node, as the Stanford Sentiment Treebank is published: one a line.

`(3 (2 It) (4 (2 works) (2 .)))` is the sentence `It works .` with root label 3. Only the root's label is used. Brackets
that belong to the sentence are published as `-LRB-` and `-RRB-`, `/` and `*` behind a backslash: they are given back as
they were written.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from forgetgauge.errors import UserError

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
