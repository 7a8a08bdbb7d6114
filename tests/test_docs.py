"""What the README and the docs say is what the code does."""

from __future__ import annotations

import dataclasses
import html
import re
import tomllib
from pathlib import Path

import pytest

from forgetgauge import plugins
from forgetgauge.plan.spec import RunSpec
from forgetgauge.report.html import render_report
from forgetgauge.results.record import read_result

ROOT = Path(__file__).parents[1]
RUN_FILES = (ROOT / "docs/run-files.md").read_text()


def spec_keys(kind=RunSpec, prefix=""):
    for field in dataclasses.fields(kind):
        made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        nested = dataclasses.is_dataclass(made) and field.name != "sensitivity"
        yield from spec_keys(type(made), f"{prefix}{field.name}.") if nested else [(f"{prefix}{field.name}", made)]


@pytest.mark.parametrize(("key", "default"), list(spec_keys()))
def test_every_key_of_a_run_file_is_documented_with_its_default(key, default):
    row = re.search(rf"^\| `{re.escape(key)}[`.].*$", RUN_FILES, re.M)
    assert row, key
    if isinstance(default, bool | int | float | str):
        shown = str(default).lower() if isinstance(default, bool) else repr(default).replace("'", '"')
        assert f"| `{shown}` |" in row[0]


@pytest.mark.parametrize("name", plugins.unlearners.entries)
def test_every_parameter_of_every_unlearner_is_documented_with_its_default(name):
    found = re.search(rf"^\| `{name}` \|.*$", RUN_FILES, re.M)
    assert found, f"docs/run-files.md has no row for {name}: run `python docs/generate.py`"
    row = found[0]
    for field in dataclasses.fields(plugins.unlearners.load(name)):
        value = f'"{field.default}"' if isinstance(field.default, str) else f"{field.default!r}".replace("e-05", "e-5")
        assert f"`{field.name} = {value}`" in row


DOCUMENTED = [*(("data", name) for name in plugins.data.entries), *(("tasks", name) for name in plugins.tasks.entries)]


@pytest.mark.parametrize(("page", "name"), DOCUMENTED)
def test_every_data_set_and_task_is_documented(page, name):
    assert f"| `{name}` |" in (ROOT / f"docs/{page}.md").read_text(), f"docs/{page}.md has no row for {name}"


def test_a_report_cites_the_software_as_the_citation_file_does():
    cited, result = (ROOT / "CITATION.cff").read_text(), read_result(ROOT / "results/rivals-digits/result.json")
    entry = html.unescape(render_report(result)).partition("@software{forgetgauge,")[2]
    author, year = (re.search(rf"{key}: (.+)", cited.partition("references:")[2])[1] for key in ("name", "year"))
    assert f"author  = {{{{{author}}}}}," in entry
    assert f"year    = {{{year}}}," in entry
    assert f"version = {{{result.environment['forgetgauge']}}}," in entry


def test_what_a_package_index_shows_links_to_nothing_that_it_does_not_have():
    shown = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"]
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / shown).read_text())
    assert links
    assert all(link.startswith("https://") for link in links)


@pytest.mark.parametrize("document", ["README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))])
def test_links_between_documents_lead_somewhere(document):
    text = (ROOT / document).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert ((ROOT / document).parent / target).exists(), target


def test_the_way_of_a_number_names_types_and_modules_that_are_there():
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| `([\w/]+\.py)` \| (.*) \|$", page, re.M)
    assert len(rows) > 9
    source = ROOT / "src/forgetgauge"
    for types, module, beside in rows:
        classes = re.findall(r"^class (\w+)", (source / module).read_text(), re.M)
        assert set(re.findall(r"\w+", types)) <= set(classes), module
        assert all((source / other).exists() for other in re.findall(r"`([\w/]+\.py)`", beside)), module


def test_every_page_stands_in_the_sites_contents():
    """The strict build refuses what does not, minutes later."""
    docs = ROOT / "docs"
    contents = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [path.relative_to(docs).as_posix() for path in (*docs.glob("*.md"), *docs.glob("decisions/*.md"))]
    assert [page for page in pages if not re.search(rf"[ :]{re.escape(page)}$", contents, re.MULTILINE)] == []
