"""The site as `make docs` has just built it, which checks it with this file: it reads without a network."""

from __future__ import annotations

import re

import pytest

from .fences import ROOT


@pytest.fixture(scope="module")
def site():
    built = ROOT / "site"
    assert (built / "index.html").is_file(), "there is no site yet: make docs"
    return built


def test_pages_fetch_nothing_from_elsewhere(site):
    fetched = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+href=\"?(?:https?:)?//|@import")
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 20
    for page in pages:
        assert not fetched.search(page.read_text("utf-8")), page


def test_what_pages_link_to_outside_of_the_docs_is_in_the_site(site):
    assert (site / "examples/competition.toml/index.html").is_file()
    assert (site / "results/dp-digits/index.html").is_file()
    assert (site / "results/dp-digits/result.json").is_file()
    assert "keep" in (site / "src/forgetgauge/plan/digits.toml/index.html").read_text("utf-8")


def test_code_of_the_site_itself_is_not_published(site):
    assert not list(site.rglob("hooks.py"))
    assert not list(site.rglob("generate.py"))
