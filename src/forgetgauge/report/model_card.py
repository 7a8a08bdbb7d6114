"""A block for a model card: the `model-index` that Hugging Face's hub reads, and the same in words below it."""

from __future__ import annotations

import json
import re
from typing import Any

from forgetgauge.report.formats import escaped_for_markdown
from forgetgauge.report.meaning import meaning
from forgetgauge.report.tested import Tested


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
