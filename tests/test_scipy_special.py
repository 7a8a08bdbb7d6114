"""What import-linter cannot say: of scipy, the game and its rivals use `scipy.special`, and nothing else."""

import ast
from pathlib import Path

import pytest

import forgetgauge

ROOMS = [
    path for room in ("game", "metrics") for path in sorted((Path(forgetgauge.__file__).parent / room).rglob("*.py"))
]


def parts_of_scipy(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {".".join(name.split(".")[:2]) for name in names if name.split(".")[0] == "scipy"}


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_game_and_its_rivals_use_nothing_of_scipy_but_special(path):
    assert parts_of_scipy(path.read_text("utf-8")) <= {"scipy.special"}


@pytest.mark.parametrize("line", ["from scipy import stats", "import scipy.stats as s", "from scipy.stats import t"])
def test_another_part_of_scipy_would_be_found(line):
    assert parts_of_scipy(line) == {"scipy.stats"}
