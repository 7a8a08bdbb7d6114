"""Objects of the user's that answer for attributes in ways of their own are looked at all the same."""

from __future__ import annotations

import copy

import pytest

import forgetgauge
from forgetgauge.code import code_digest
from forgetgauge.data.items import has_items
from forgetgauge.probing import attribute, has
from tests.own_code import TINY


class ItemsAsAttributes(dict):
    __getattr__ = dict.__getitem__  # KeyError, where Python expects AttributeError


class Everything(dict):
    def __getattr__(self, name):
        return Everything()


class Refusing:
    def __init__(self, rate):
        self.rate = rate

    def __getattr__(self, name):
        raise RuntimeError(name)


@pytest.mark.parametrize("make", [lambda v: ItemsAsAttributes(rate=v), lambda v: Everything(rate=v), Refusing])
def test_what_answers_for_attributes_itself_counts_by_value(make):
    def method_with(config):
        return lambda: config.rate

    one, same, other = (code_digest(method_with(make(value))) for value in (1, 1, 2))
    assert one == same != other


def test_an_attribute_that_raises_anything_is_not_there():
    for thing in (ItemsAsAttributes(rate=1), Refusing(1)):
        assert (attribute(thing, "rate"), attribute(thing, "gone", 3), has(thing, "gone")) == (1, 3, False)


def test_such_an_object_is_no_data_set_and_may_be_a_parameter():
    assert not has_items(Refusing(1))

    def mine(model, retain, forget, context, config=ItemsAsAttributes(rate=1)):  # noqa: B008
        return copy.deepcopy(model)

    result = forgetgauge.evaluate(unlearner={"mine": mine}, **TINY)
    assert result.methods["mine"].quality is not None
