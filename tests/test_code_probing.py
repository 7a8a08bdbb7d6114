"""Objects of the user's that answer for attributes in ways of their own are looked at all the same."""

from __future__ import annotations

import copy

import pytest
import torch

import forgetgauge
from forgetgauge.code import code_digest, code_of
from forgetgauge.data.items import has_items
from forgetgauge.errors import UserError
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


@pytest.mark.filterwarnings("ignore:.*nested tensors.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*Sparse.*:UserWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.nested.nested_tensor([torch.rand(2), torch.rand(3)]),
        lambda: torch.empty(3, device="meta"),
        lambda: torch.nn.LazyLinear(3),
    ],
    ids=["coo", "csr", "nested", "meta", "lazy"],
)
def test_a_tensor_whose_values_cannot_be_read_is_listed_as_not_covered(make):
    held = make()

    def mine(model):
        return held

    kinds = ("(Tensor)", "(UninitializedParameter)")
    assert any(line.endswith(kinds) for line in code_of(mine).not_covered)


def test_a_conjugated_view_counts_by_its_values():
    first, other = torch.tensor([1 + 2j]), torch.tensor([1 - 2j])
    digests = [code_digest(lambda held=held: held) for held in (first, other.conj(), first.conj())]
    assert digests[0] == digests[1] != digests[2]


class Scheduled(torch.nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.flat, self.linear = torch.nn.Flatten(), torch.nn.Linear(64, n_classes)

    def forward(self, x):
        return self.linear(self.flat(x))

    def get_extra_state(self):
        return {"scale": 1.0}

    def set_extra_state(self, state):
        pass


def test_a_model_of_which_something_cannot_be_kept_is_refused_in_one_line():
    learner = {key: value for key, value in TINY["learner"].items() if key != "model"}
    with pytest.raises(UserError, match="'_extra_state' is no tensor but a dict") as caught:
        forgetgauge.evaluate(unlearner="none", model=Scheduled, **{**TINY, "learner": learner})
    assert "\n" not in str(caught.value)
