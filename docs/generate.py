"""Writes what can be read from the source into the documentation, so that it cannot go stale.

PACKAGE.md, the README as an index of packages shows it, where links to files of the repository lead nowhere;
docs/methods.md and docs/adversaries.md from the catalogues that `forgetgauge ls` prints; in docs/run-files.md the
tables of keys and of unlearners' parameters; in docs/architecture.md the table of rooms and their picture.

`make docs` runs it; a test compares the committed pages with what it would write.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Container
from pathlib import Path
from typing import Any

import rooms

from forgetgauge import plugins
from forgetgauge.attack.adversary import Need
from forgetgauge.attack.parameters import parameters_of
from forgetgauge.plan.parameters import Parameter
from forgetgauge.plan.runfile import read_run_file
from forgetgauge.plan.spec import DEFAULT_ADVERSARIES, PARAMETERS
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.plugins.catalogue import Catalogue, Entry

DOCS = Path(__file__).parent
BEGIN, END = "<!-- rooms: written by `python docs/generate.py` -->", "<!-- end of rooms -->"
UNLEARNERS = "| unlearner | parameters and defaults |\n|---|---|\n"
MEASURED = "<!-- From here on written by hand: what was measured. -->\n"
KEYS = "<!-- The keys: written by `python docs/generate.py` from plan/spec.py; do not edit. -->\n\n"

METHODS = """\
# Methods

<!-- Written by `python docs/generate.py` from the catalogue; do not edit. -->

What makes a model forget. A method is given the original model and what it needs of the retain set R and the forget
set F, never the unseen set T it is judged on. `retrain` and `none` are the two ends of the scale: what forgetting
everything and forgetting nothing look like. Costs are in gradients of one example. A method's *strength* is the
parameter by which it forgets more and costs more: `strength = "auto"` has its value [chosen by price](frontier.md),
`strength = "published"` takes its authors' settings.

Name them in the run file's table `[unlearners]`, each with [its parameters](run-files.md#parameters-of-what-is-named),
or bring [your own](your-own-method.md). `forgetgauge ls unlearners` prints this list, and adds the methods of other
installed packages.
"""

ADVERSARIES = """\
# Adversaries

<!-- Written by `python docs/generate.py` from the catalogue, down to what was measured; do not edit. -->

Who attacks. An adversary is one function for both sides of a swap pair, fixed before it sees which points are in F.
The data set is cut in two: the retain set R, the forget set F and the unseen set T come from one half; the other, the
*shadow half*, is the attacker's own. *Shadow models* are trained on parts of the shadow half, *reference models* on
random parts of both halves; neither depend on what is in F or T. Q is 1 − the advantage of the best adversary that
was declared, so state the list with every Q that you quote.

Name them in the run file's list `adversaries`, let one attack a finished run with `forgetgauge score DIR --adversary
NAME`, or bring [your own](your-own-attack.md). `forgetgauge ls adversaries` prints this list, and adds
the adversaries of other installed packages. Parameters stand in the run file, as in `[adversaries.lira-online]` with
`references = 32`; an id of your own with `method = "lira-online"` plays one adversary with several settings.
"""


def pages() -> dict[Path, str]:
    """Each generated page and its text."""
    embedded, _ = read_run_file(None)
    return {
        DOCS.parent / "PACKAGE.md": package_readme(),
        DOCS / "methods.md": _page(METHODS, plugins.unlearners, embedded["unlearners"]),
        DOCS / "adversaries.md": _page(ADVERSARIES, plugins.adversaries, DEFAULT_ADVERSARIES) + _measured(),
        DOCS / "architecture.md": _with_table(DOCS / "architecture.md", rooms.table()),
        DOCS / "pictures" / "rooms.svg": rooms.picture(),
        DOCS / "run-files.md": _with_parameters(_with_keys((DOCS / "run-files.md").read_text("utf-8"))),
    }


def _measured() -> str:
    """What is said of adversaries that were measured, which is not written here."""
    return f"\n{MEASURED}" + (DOCS / "adversaries.md").read_text("utf-8").partition(MEASURED)[2]


def package_readme() -> str:
    """The README with links into the repository made whole, where `project.urls` says where it is, or left out."""
    root = DOCS.parent
    home = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {}).get("Source")

    def reaching(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if re.match(r"[a-z]+:", target):
            return match[0]
        return text if home is None or target.startswith("#") else f"[{text}]({home}/blob/main/{target})"

    return re.sub(r"\[([^\]]*)\]\(([^)]+)\)", reaching, (root / "README.md").read_text("utf-8"))


def _with_table(path: Path, table: str) -> str:
    """The page with its table written again; the rest is kept."""
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def _page(opening: str, catalogue: Catalogue, embedded: Container[str]) -> str:
    loaded = {name: catalogue.load(name) for name in catalogue.entries}
    sections = (_section(name, entry, loaded[name], embedded) for name, entry in catalogue.entries.items())
    return "\n".join([opening, *sections])


def _section(name: str, entry: Entry, thing: Any, embedded: Container[str]) -> str:
    facts = [("needs", entry.needs), ("costs", entry.cost), ("published", entry.cites)]
    lines = [f"- {what}: {fact}" for what, fact in facts if fact] + _strength(thing) + _of_adversary(thing)
    if name in embedded:
        lines.append("- in the embedded run")
    return f"## {name}\n\n{entry.summary[0].upper()}{entry.summary[1:]}.\n\n" + "\n".join(lines) + "\n"


def _strength(thing: Any) -> list[str]:
    """Of a method that declares one: from where to where, and what its authors set."""
    strength, published = getattr(thing, "strength", None), getattr(thing, "published", None)
    lines = []
    if isinstance(strength, Strength):
        ends = f"from {strength.weakest:g} (weakest) to {strength.strongest:g}"
        lines.append(f"- strength: `{strength.parameter}`, {ends}")
    if isinstance(published, Published):
        settings = ", ".join(f"{key} = {value}" for key, value in published.params.items())
        lines.append(f"- published settings: {settings} ({published.source})")
    return lines


def _of_adversary(thing: Any) -> list[str]:
    """The parameters that an adversary's table may have."""
    lines = []
    for name, one in parameters_of(thing).items():
        default = ", ".join(one.default) if isinstance(one.default, tuple) else repr(one.default)
        allowed = f" ({one.within})" if one.within else ""
        lines.append(f"- parameter `{name}`: {one.meaning}{allowed}; {default} without it")
    if Need.REFERENCES in getattr(thing, "needs", ()):
        lines.append("- parameter `references`: how many reference models it is shown; `shadows.references` without it")
    return lines


def _with_keys(page: str) -> str:
    """The page with its table of keys, which ends at an empty line, written anew."""
    before, after = page.split(KEYS)
    rows = ["| key | default | meaning |", "|---|---|---|", *map(_row, PARAMETERS.values())]
    return "\n".join([before + KEYS + "\n".join(rows), "", after.split("\n\n", 1)[1]])


def _with_parameters(page: str) -> str:
    """The page with the table of unlearners' parameters written anew."""
    before, after = page.split(UNLEARNERS)
    rows = [f"| `{name}` | {_parameters(plugins.unlearners.load(name))} |" for name in plugins.unlearners.entries]
    return before + UNLEARNERS + "\n".join(rows) + "\n\n" + after.split("\n\n", 1)[1]


def _parameters(method: type) -> str:
    shown = []
    for one in dataclasses.fields(method):
        default = f'"{one.default}"' if isinstance(one.default, str) else repr(one.default).replace("e-05", "e-5")
        shown.append(f"`{one.name} = {default}`")
    return ", ".join(shown) or "–"


def _row(one: Parameter) -> str:
    default = one.written or json.dumps(one.default)
    shown = default if default == "–" or ", " in one.written else f"`{default}`"
    allowed = f"({one.within})" if one.within else ""
    meaning = " ".join(filter(None, [one.meaning, allowed, one.see])).replace("|", "\\|")
    return f"| `{one.key}` | {shown} | {meaning} |"


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
