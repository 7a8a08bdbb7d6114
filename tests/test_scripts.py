"""A script beside the package takes from it only what is there: nothing else imports the scripts, and names move."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module, util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path for room in ("benchmarks", "docs", "examples", "results", "tools") for path in (ROOT / room).rglob("*.py")
]


def missing(source: str) -> list[str]:
    """What a script imports of this package, and what is not there."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {(alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named |= {(node.module, alias.name) for alias in node.names}
    ours = sorted((pair for pair in named if pair[0].partition(".")[0] == "forgetgauge"), key=str)
    return [f"{module}: {name}" for module, name in ours if not is_there(module, name)]


def is_there(module: str, name: str | None) -> bool:
    try:
        found = import_module(module)
        return name is None or hasattr(found, name) or bool(util.find_spec(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


def test_every_script_imports_what_is_there():
    assert len(SCRIPTS) > 30
    assert {str(path.relative_to(ROOT)): lost for path in SCRIPTS if (lost := missing(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    "line", ["import forgetgauge.gone", "from forgetgauge.gone import x", "from forgetgauge.streams import gone"]
)
def test_what_is_gone_is_found(line):
    assert (
        len(missing(f"import numpy\n{line}\nfrom forgetgauge.streams import Streams\nfrom forgetgauge import game"))
        == 1
    )


def answers_help(source: str) -> bool:
    """Whether a script that may be run says what it is for, where it is asked, before it does anything."""
    main = next((node for node in ast.parse(source).body if isinstance(node, ast.If) and is_main(node.test)), None)
    called = [] if main is None else [ast.unparse(node.value) for node in main.body if isinstance(node, ast.Expr)]
    return main is None or "argparse" in source or called[:1] == ["show_help(__doc__)"]


def is_main(test: ast.expr) -> bool:
    return ast.unparse(test) == "__name__ == '__main__'"


def test_every_benchmark_that_is_asked_for_help_gives_it_and_does_nothing(tmp_path):
    scripts = sorted((ROOT / "benchmarks").glob("*.py"))
    assert [path.name for path in scripts if not answers_help(path.read_text("utf-8"))] == []
    asked = [sys.executable, str(ROOT / "benchmarks/same_numbers.py"), "--help"]
    said = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.startswith("Whether a change of the code left all numbers as they were")
    assert list(tmp_path.iterdir()) == []
