"""The user's own unlearners as objects of the running program: their names decide which results are reused."""

import functools

import pytest

from forgetgauge import plugins


@pytest.fixture(autouse=True)
def _fresh_catalogue(monkeypatch):
    monkeypatch.setattr(plugins.unlearners, "_bound", {})


def ascend(model, retain, forget, context, lr=0.1):
    return model


def with_rate(lr):
    def ascend_at(model, retain, forget, context):
        return ascend(model, retain, forget, context, lr)

    return ascend_at


class Ascend:
    def __init__(self, lr):
        self.lr = lr

    def unlearn(self, model, retain, forget, context):
        return ascend(model, retain, forget, context, self.lr)


def test_a_function_keeps_its_name_while_its_code_is_the_same():
    name = plugins.unlearners.bind(ascend)
    assert plugins.unlearners.bind(ascend) == name
    assert plugins.unlearners.load(name) is ascend


def test_two_functions_have_two_names():
    assert plugins.unlearners.bind(ascend) != plugins.unlearners.bind(with_rate(0.1))


@pytest.mark.parametrize("make", [with_rate, lambda lr: functools.partial(ascend, lr=lr), Ascend])
def test_one_code_with_two_settings_has_two_names_and_neither_replaces_the_other(make):
    gentle, harsh = make(0.1), make(10.0)
    names = plugins.unlearners.bind(gentle), plugins.unlearners.bind(harsh)
    assert plugins.unlearners.load(names[0]) is gentle
    assert plugins.unlearners.load(names[1]) is harsh
