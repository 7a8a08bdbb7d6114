"""Python leaves asserts out with -O: those of the shipped code tell a type checker what it cannot see, and no more."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHIPPED = sorted(path for room in ("src", "benchmarks", "docs", "tools") for path in (ROOT / room).rglob("*.py"))


def only_narrows(test: ast.expr) -> bool:
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    is_not_none = isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.IsNot]
    return is_not_none and isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None


def checks(source: str) -> list[int]:
    """The lines of asserts that check something."""
    found = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert))
    return [node.lineno for node in found if not only_narrows(node.test)]


def test_no_check_rests_on_an_assert():
    assert len(SHIPPED) > 200
    assert {str(path): lines for path in SHIPPED if (lines := checks(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize("checked", ["x > 0", "is_sound(x)", "x is None", "x is not y", "x"])
def test_a_check_is_told_from_a_type(checked):
    assert checks(f"assert {checked}") == [1]
    assert checks("assert x is not None\nassert isinstance(x, int)") == []
