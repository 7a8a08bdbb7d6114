"""The record of an erasure test: one page for people, statements for programs, a block for a model card.

The statements are in-toto Statements v1, unsigned: what other programs ask for when they gate on a test result. Two
predicates are on the same subject. The one that everybody reads, test-result v0.1, has room for an outcome and names of
tests; ours holds everything that was measured. The block for a model card is the `model-index` that Hugging Face's hub
reads, and the same in words below it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.report.erasure_test import Tested
from forgetgauge.report.every_eval_ever import every_eval_ever, why_not
from forgetgauge.report.formats import escaped_for_markdown
from forgetgauge.report.html import template
from forgetgauge.report.meaning import meaning

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
STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
OWN_PREDICATE = "urn:forgetgauge:erasure-test:v1"
"""A name and no address, since the project has none of its own to publish a description at."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


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


# -- statements for programs -------------------------------------------------------------------------------------------


def result_statement(test: Tested, subject: Mapping[str, str], url: str | None) -> dict[str, Any]:
    """The statement that other programs read; `subject` is name -> SHA-256 of what was tested."""
    predicate: dict[str, Any] = {
        "result": test.outcome,
        "configuration": _configuration(test),
        **({} if url is None else {"url": url}),
        "passedTests": test.checks_that("PASSED"),
        "warnedTests": test.checks_that("WARNED"),
        "failedTests": test.checks_that("FAILED"),
    }
    return _statement(subject, TEST_RESULT, predicate)


def whole_statement(test: Tested, subject: Mapping[str, str], stated: Mapping[str, str | None]) -> dict[str, Any]:
    """The statement with everything measured, and what the one who made it states."""
    predicate = {
        "kind": test.kind,
        "name": test.name,
        "verdict": test.verdict,
        "resolution": test.resolution,
        "result": test.outcome,
        "checks": test.checks,
        "inWords": test.numbers,
        "doesNotSay": list(test.limits),
        "stated": dict(stated),
        "warnings": test.warnings,
        "data": test.data,
        "digests": test.digests,
        "settings": test.settings,
        "measured": test.measured,
        "environment": test.environment,
    }
    return _statement(subject, OWN_PREDICATE, predicate)


def _statement(subject: Mapping[str, str], kind: str, predicate: dict[str, Any]) -> dict[str, Any]:
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subject.items()],
        "predicateType": kind,
        "predicate": predicate,
    }


def _configuration(test: Tested) -> list[dict[str, Any]]:
    """What the test was computed from, and its settings: each a resource descriptor with a digest."""
    settings = json.dumps(test.settings, sort_keys=True, ensure_ascii=False).encode()
    named = {name: digest for name, digest in test.digests.items() if _SHA256.fullmatch(digest)}
    return [
        *({"name": name, "digest": {"sha256": digest}} for name, digest in named.items()),
        {
            "name": "settings",
            "digest": {"sha256": hashlib.sha256(settings).hexdigest()},
            "mediaType": "application/json",
            "annotations": {"kind": test.kind, "tested": test.name, "forgetgauge": test.environment.get("forgetgauge")},
        },
    ]


# -- the block for a model card ----------------------------------------------------------------------------------------


def model_card(test: Tested, model: str, sha256: str, url: str | None) -> str:
    """Markdown with its YAML in front, if there is a number; `model` is the name of the model in the card."""
    if not test.metrics:
        return _in_words(test, sha256)
    version = test.environment.get("forgetgauge")
    results: dict[str, Any] = {
        "task": {"type": "other", "name": "Erasure test: membership inference on forgotten points"},
        "dataset": {
            "type": re.sub(r"\W+", "-", test.data).strip("-").lower() or "data",
            "name": test.data,
            "args": {"verdict": test.verdict, "tested": test.name, "result_sha256": sha256},
        },
        "metrics": [
            {"type": metric.key, "name": metric.name, "value": metric.value}
            | ({"args": metric.details} if metric.details else {})
            for metric in test.metrics
        ],
    }
    if url is not None:  # a source without an address is refused
        results["source"] = {"name": f"forgetgauge {version}" if version else "forgetgauge", "url": url}
    index = {"model-index": [{"name": model, "results": [results]}]}
    return f"---\n{yaml_text(index)}---\n\n{_in_words(test, sha256)}"


def _in_words(test: Tested, sha256: str) -> str:
    said = escaped_for_markdown
    lines = [
        "## Erasure test",
        "",
        f"**{said(test.name)}: {said(test.verdict)}.** {meaning(test.verdict, test.resolution)}",
        "",
        *(f"- {said(line)}" for line in test.numbers),
        "",
        "| what was tested | |",
        "| --- | --- |",
        *(f"| {said(label)} | {said(text)} |" for label, text in test.scope.items()),
        f"| SHA-256 of the result | {sha256} |",
        "",
        "What it does not say:",
        "",
        *(f"- {said(line)}" for line in test.limits),
        *(f"- Warning: {said(line)}" for line in test.warnings),
    ]
    return "\n".join(lines) + "\n"


def yaml_text(value: Any, indent: int = 0) -> str:
    """Mappings and lists of words and numbers as YAML: one line for each, every word in quotes."""
    pad = "  " * indent
    if isinstance(value, dict):
        return "".join(
            f"{pad}{_key(key)}:\n{yaml_text(inner, indent + 1)}"
            if isinstance(inner, dict | list) and inner
            else f"{pad}{_key(key)}: {_scalar(inner)}\n"
            for key, inner in value.items()
        )
    items = [yaml_text(item, indent + 1) if isinstance(item, dict) and item else None for item in value]
    return "".join(
        f"{pad}- {text[len(pad) + 2 :]}" if text is not None else f"{pad}- {_scalar(item)}\n"
        for item, text in zip(value, items, strict=True)
    )


def _key(key: str) -> str:
    return key if re.fullmatch(r"[a-z][a-z0-9_-]*", key) else _scalar(key)


def _scalar(value: Any) -> str:
    """As JSON has it, and YAML reads it, but for a point in every fraction and no letter that cannot be printed."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, float):
        return re.sub(r"^(-?\d+)(e)", r"\1.0\2", text)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in text)
