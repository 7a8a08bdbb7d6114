"""The site builds without a warning and reads without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from .fences import ROOT

pytest.importorskip("material", reason="MkDocs Material is not installed: python tools/install.py dev")


QUIET = {"NO_MKDOCS_2_WARNING": "1"}  # as in the Makefile: news about the tool, not about the site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | QUIET)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return target


def test_pages_fetch_nothing_from_elsewhere(site):
    fetched = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+href=\"?(?:https?:)?//|@import")
    for page in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert not fetched.search(page.read_text("utf-8")), page


def test_what_pages_link_to_outside_of_the_docs_is_in_the_site(site):
    assert (site / "examples/competition.toml/index.html").is_file()
    assert (site / "results/dp-digits/index.html").is_file()
    assert (site / "results/dp-digits/result.json").is_file()
    assert "keep" in (site / "src/forgetgauge/plan/digits.toml/index.html").read_text("utf-8")


def test_code_of_the_site_itself_is_not_published(site):
    assert not list(site.rglob("hooks.py"))
    assert not list(site.rglob("generate.py"))
