"""The changes of which `benchmarks/mutation.py` asks whether the tests notice them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

SOURCE = '''
"""A docstring of 1."""
import functools
LIMIT: "1 + 1" = 2
if TYPE_CHECKING:
    NEVER = 3

@functools.lru_cache(maxsize=4)
def f(a: "5 < 6", b=True) -> "7":
    """Another of 8."""
    if not a <= b and a in b:
        raise ValueError(f"no {a + 9} in 10")
    a += -b
    print(a)
    return a // b
'''


@pytest.fixture(scope="module")
def mutants():
    path = Path(__file__).parent.parent / "benchmarks" / "mutants.py"
    spec = importlib.util.spec_from_file_location("mutants", path)
    sys.modules["mutants"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


def test_every_place_that_computes_is_changed_and_texts_annotations_and_decorators_are_let_be(mutants, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    found = {mutant.name: mutant for mutant in mutants.mutants_of(path, "module.py")}
    assert list(found) == [
        "module.py (module): LIMIT: '1 + 1' = 2 → LIMIT: '1 + 1' = 3",
        "module.py f: a: '5 < 6', b=True → a: '5 < 6', b=False",
        "module.py f: not a <= b and a in b → not a <= b or a in b",
        "module.py f: not a <= b → a <= b",
        "module.py f: a <= b → a < b",
        "module.py f: a in b → a not in b",
        "module.py f: raise ValueError(f'no {a + 9} in 10') → pass",
        "module.py f: a += -b → a -= -b",
        "module.py f: a += -b → pass",
        "module.py f: -b → b",
        "module.py f: print(a) → pass",
        "module.py f: return a // b → return None",
        "module.py f: a // b → a / b",
    ]
    assert [name for name, mutant in found.items() if not mutant.within] == list(found)[:2]
    clean = ast.unparse(ast.parse(SOURCE))
    for mutant in found.values():
        tree = ast.parse(SOURCE)
        change = list(mutants.changes(tree))[mutant.number]
        change.put(change.new)
        before, _, after = mutant.name.partition(": ")[2].partition(" → ")
        assert ast.unparse(tree) == clean.replace(before, after, 1)
        assert SOURCE.splitlines()[mutant.line - 1].strip()
        mutants.mutated(path, mutant)


def test_a_changed_function_is_put_into_the_one_that_is_loaded(mutants, tmp_path, monkeypatch):
    path = tmp_path / "module.py"
    path.write_text("def half(n):\n    return n // 2\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    (change,) = [m for m in mutants.mutants_of(path, "module.py") if m.name.endswith("n // 2 → n // 3")]
    monkeypatch.setattr(mutants, "FUNCTIONS", [])
    monkeypatch.setattr(mutants, "CACHES", [])
    mutants.find_functions(tmp_path)
    held = namespace["half"]
    mutants.put_into_functions(mutants.mutated(path, change))
    assert held(12) == 4
