"""A digest of code changes with everything that changes what the code does, and with nothing else."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

from forgetgauge import plugins
from forgetgauge.code import code_digest

BEFORE = """
FACTOR = 1.0
def helper(x):
    return x * 2
def method(model, retain, forget, context):
    return helper(model) * FACTOR
class Base:
    def run(self):
        return 1
class Net(Base):
    width = 3
    def forward(self, x):
        return helper(x)
"""


def module_of(text: str) -> types.ModuleType:
    module = types.ModuleType("users_module")
    exec(text, module.__dict__)
    return module


@pytest.mark.parametrize("name", ["method", "Net"])
@pytest.mark.parametrize(
    ("old", "new", "touches"),
    [
        ("x * 2", "x * 3", {"method", "Net"}),
        ("FACTOR = 1.0", "FACTOR = 0.0", {"method"}),
        ("return helper(model)", "return -helper(model)", {"method"}),
        ("return helper(x)", "return -helper(x)", {"Net"}),
        ("return 1", "return 2", {"Net"}),
        ("width = 3", "width = 4", {"Net"}),
        ("\nFACTOR", "\n# a comment\n\nFACTOR", set()),
    ],
)
def test_what_code_leans_on_counts_and_comments_do_not(name, old, new, touches):
    assert old in BEFORE
    before, after = (getattr(module_of(text), name) for text in (BEFORE, BEFORE.replace(old, new)))
    assert (code_digest(before) != code_digest(after)) == (name in touches)


def test_two_lambdas_on_one_line_are_two():
    one, two = (lambda x: x * 1.0), (lambda x: x * 0.0)
    assert code_digest(one) != code_digest(two)
    assert plugins.unlearners.bind(one) != plugins.unlearners.bind(two)


def test_settings_count_wherever_they_are_kept():
    def scaled(factor):
        return lambda x: x * factor

    class Holder:
        def __init__(self, values):
            self.values = values

    pairs = [
        (scaled(1), scaled(2)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (Holder(np.arange(3)), Holder(np.arange(4))),
        (Holder(1).__init__, Holder(2).__init__),
    ]
    for one, two in pairs:
        assert code_digest(one) != code_digest(two)
    assert code_digest(scaled(1)) == code_digest(scaled(1))


def test_what_holds_itself_can_be_described():
    class Ring:
        pass

    ring = Ring()
    ring.itself = ring
    assert code_digest(ring) == code_digest(ring)
