"""What people read is in the field's words: terms that only this project used do not come back."""

from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from forgetgauge.cli import app
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.record import read_result

from .fences import DOCUMENTS, ROOT

OURS = re.compile(
    r"\b(grounded|outsiders?|yardsticks?|sittings?|rivals?(?!-digits|-epochs)|holds 1|needs background)\b", re.I
)
"""Say instead: at its ideal value; models that did not see the point; what Retrain gives; other metrics; contains 1."""
READ = [name for name in DOCUMENTS if name.split("/")[0] != "results" and "/decisions/" not in name]


@pytest.mark.parametrize("document", READ)
def test_documents_use_the_words_of_the_field(document):
    assert not OURS.search((ROOT / document).read_text("utf-8"))


def test_reports_use_the_words_of_the_field():
    result = read_result(ROOT / "results/rivals-digits/result.json")
    page = re.sub(r"<style>.*?</style>|<[^>]+>", " ", render_report(result), flags=re.S)
    for text in (page, render_table(result)):
        assert not OURS.search(text)


def test_help_and_lists_use_the_words_of_the_field():
    top = typer.main.get_command(app).commands
    commands = [
        [name, *inner] for name, one in top.items() for inner in ([[n] for n in getattr(one, "commands", ())] or [[]])
    ]
    for words in [*([*command, "--help"] for command in commands), ["ls"]]:
        shown = CliRunner().invoke(app, words)
        assert shown.exit_code == 0
        assert not OURS.search(shown.output), words
