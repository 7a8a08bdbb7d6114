"""The documents, and the fenced blocks in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "results").rglob("*.md")))
]
FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.M | re.S,
)
NOT_RUN = "not run: "  # then a reason, in the comment above a block


@dataclass(frozen=True)
class Block:
    """A fenced block; `title` is the file it stands for, `note` the comment above it."""

    language: str
    text: str
    title: str
    note: str


def blocks_of(document: str, language: str | None = None) -> list[Block]:
    """The blocks of a document that are not marked as not to be run."""
    found = FENCE.finditer((ROOT / document).read_text("utf-8"))
    blocks = [Block(*(match[name] or "" for name in ("language", "text", "title", "note"))) for match in found]
    return [block for block in blocks if language in (None, block.language) and not block.note.startswith(NOT_RUN)]


def with_blocks(language: str) -> list[str]:
    """The documents that have blocks in this language."""
    return [document for document in DOCUMENTS if blocks_of(document, language)]


def commands_in(text: str) -> list[list[str]]:
    """The simple commands of a few lines of shell, in words; a `$ ` prompt, comments and `> file` are left out."""
    joined = re.sub(r"^\$ ", "", text.replace("\\\n", " "), flags=re.M)
    words = shlex.shlex(joined, posix=True, punctuation_chars="\n&;|")
    words.whitespace, words.whitespace_split, words.commenters = " \t", True, ""
    commands: list[list[str]] = [[]]
    comment = False
    for word in words:
        if set(word) <= set("\n&;|"):
            comment = comment and "\n" not in word
            commands.append([])
        elif comment or word.startswith("#"):
            comment = True
        else:
            commands[-1].append(word)
    return [command[: command.index(">")] if ">" in command else command for command in commands if command]
