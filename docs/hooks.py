"""The site has what its pages link to outside of docs/: run files and code as pages, results as they are; notebooks
are pages with their outputs.

A link in a page is a path in the repository, so that it works where the page is read as a file too. Here it is followed
to its end, and turned into a path in the site.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import notebooks

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()[^)#\s]+")
SHOWN = {".toml": "toml", ".py": "python", ".txt": "text"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, what is linked to, what that links to, and so on."""
    for path in sorted(notebooks.FOLDER.glob("*.ipynb")):
        text = notebooks.page(notebooks.read(path), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
    waiting = [page.src_uri for page in files.documentation_pages()]
    while waiting:
        uri = waiting.pop()
        for target in _targets(uri, files.get_file_from_path(uri).content_string):
            outside = _site_uri(target)
            if target.is_relative_to(ROOT / "docs") or files.get_file_from_path(outside) or not target.is_file():
                continue
            files.append(_file(target, outside, config))
            if target.suffix == ".md":
                waiting.append(outside)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at paths of the site."""

    def repointed(match: re.Match[str]) -> str:
        target = _target(page.file.src_uri, match[0])
        if target is None or not target.is_file():
            return match[0]  # MkDocs complains where it leads nowhere
        return os.path.relpath(_site_uri(target), PurePosixPath(page.file.src_uri).parent)

    return LINK.sub(repointed, markdown)


def _targets(uri: str, markdown: str) -> list[Path]:
    found = (_target(uri, link) for link in LINK.findall(markdown))
    return [target for target in found if target is not None]


def _target(uri: str, link: str) -> Path | None:
    """The file of the repository that a link on a page leads to; a folder stands for its README."""
    if re.match(r"[a-z]+:", link):
        return None
    home = ROOT / "docs" / uri if (ROOT / "docs" / uri).exists() else ROOT / uri
    target = Path(os.path.normpath(home.parent / link))
    return target / "README.md" if target.is_dir() else target


def _site_uri(target: Path) -> str:
    base = ROOT / "docs" if target.is_relative_to(ROOT / "docs") else ROOT
    uri = target.relative_to(base).as_posix() if target.is_relative_to(base) else target.name
    if target.suffix == ".ipynb":
        return uri.removesuffix(".ipynb") + ".md"
    return f"{uri}.md" if target.suffix in SHOWN else uri


def _file(target: Path, uri: str, config: MkDocsConfig) -> File:
    if target.suffix not in SHOWN:
        return File.generated(config, uri, abs_src_path=str(target))
    name = target.relative_to(ROOT).as_posix()
    fenced = f"# {name}\n\n````{SHOWN[target.suffix]}\n{target.read_text('utf-8')}````\n"
    return File.generated(config, uri, content=fenced)
