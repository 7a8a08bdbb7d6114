"""The record of an erasure test: one page for people, statements for programs, a block for a model card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.report.attestation import result_statement, whole_statement
from forgetgauge.report.every_eval_ever import every_eval_ever, why_not
from forgetgauge.report.html import template
from forgetgauge.report.meaning import meaning
from forgetgauge.report.model_card import model_card
from forgetgauge.report.tested import Tested

MOST_LETTERS = {"--asked": 600, "--by": 200}
"""So that the page stays one page."""
MOST_WARNINGS = 3
MOST_MODELS = 3
"""On the page; the others are counted."""
RAN = {
    "date": "when",
    "forgetgauge": "forgetgauge",
    "commit": "commit",
    "command": "command",
    "cpu": "processor",
    "device": "device",
    "platform": "system",
    "machine": "machine",
}
"""What the page says of the machine and the program -> how it calls it."""


@dataclass(frozen=True)
class Stated:
    """What only the one who makes the record knows; None is not stated."""

    asked: str | None = None
    by: str | None = None
    url: str | None = None
    model_id: str | None = None
    relationship: str | None = None

    def __post_init__(self) -> None:
        for option, text in {"--asked": self.asked, "--by": self.by}.items():
            if text is not None and len(text) > MOST_LETTERS[option]:
                raise UserError(
                    f"{option} has {len(text)} letters, but the record is one page: at most {MOST_LETTERS[option]}"
                )


FILES = ("record.html", "statement.json", "statement-forgetgauge.json", "model-card.md", "every-eval-ever.json")
"""What a record may have; the last one only where all is known that it asks for."""


def record_files(
    test: Tested, source: str, sha256: str, models: Mapping[str, str], stated: Stated, made_at: float
) -> tuple[dict[str, str], list[str]]:
    """(file name -> text, what is not among them and why); `models` are names of files -> SHA-256."""
    subject = {source: sha256, **models}
    said = {"asked": stated.asked, "by": stated.by}
    files = {
        "record.html": render_record(test, source, sha256, models, stated),
        "statement.json": _json(result_statement(test, subject, stated.url)),
        "statement-forgetgauge.json": _json(whole_statement(test, subject, said)),
        "model-card.md": model_card(test, stated.model_id or test.name, sha256, stated.url),
    }
    reason = why_not(test, stated.model_id, stated.by, stated.relationship)
    if reason is not None:
        return files, [f"every-eval-ever.json is not written: {reason}"]
    assert stated.model_id is not None
    assert stated.by is not None
    assert stated.relationship is not None
    eee = every_eval_ever(
        test,
        model_id=stated.model_id,
        by=stated.by,
        relationship=stated.relationship,
        sha256=sha256,
        made_at=made_at,
    )
    return files | {"every-eval-ever.json": _json(eee)}, []


def render_record(test: Tested, source: str, sha256: str, models: Mapping[str, str], stated: Stated) -> str:
    """The page: it loads nothing, runs nothing, and the same test gives the same bytes."""
    return template("record.html.j2").render(
        test=test,
        source=source,
        sha256=sha256,
        models=models,
        stated=stated,
        meaning=meaning(test.verdict, test.resolution),
        ran={label: test.environment[key] for key, label in RAN.items() if key in test.environment},
        warnings=test.warnings[:MOST_WARNINGS],
        most_models=MOST_MODELS,
        is_full=len(stated.asked or "") > 300 or len(test.warnings) > 1 or len(models) > 1,
        n_more=max(0, len(test.warnings) - MOST_WARNINGS),
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
