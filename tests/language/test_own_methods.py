"""Methods of a user's own for language models: the base, which all models have in common, stays as it was."""

from __future__ import annotations

import copy

import pytest
import torch

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.models.causal_lm import base_of

from .world import MODEL

GAME = {
    "data": "people",
    "data_params": {"people": 16},
    "by": "group",
    "pairs": 1,
    "shadows": 2,
    "adversaries": ["loss", "calibrated-loss"],
    "learner": {"name": "lora", "model_params": MODEL, "rank": 2, "epochs": 1},
    "executor": "inline",
}


def layer_of(model):
    return model.here.model.layers[0]


def shrinks_the_base(model):
    with torch.no_grad():
        layer_of(model).mlp.down_proj.weight.mul_(0.2)


def shrinks_it_behind_autograd(model):
    layer_of(model).mlp.down_proj.weight.data.mul_(0.2)


def leaves_a_hook(model):
    layer_of(model).register_forward_hook(lambda module, given, made: made * 0.5)


def exchanges_a_layer(model):
    model.here.model.layers[0] = copy.deepcopy(layer_of(model))


def thaws_the_base(model):
    model.here.requires_grad_(True)


def fails_halfway(model):
    shrinks_the_base(model)
    raise RuntimeError("halfway")


CHANGES = [
    shrinks_the_base,
    shrinks_it_behind_autograd,
    leaves_a_hook,
    exchanges_a_layer,
    thaws_the_base,
    fails_halfway,
]


@pytest.fixture(scope="module")
def alone():
    return forgetgauge.evaluate(unlearner=["retrain", "none"], **GAME)


@pytest.mark.parametrize("change", CHANGES)
def test_a_method_that_changes_the_base_is_refused_and_changes_nobody_else(change, alone):
    def mine(model, retain, forget, context):
        model = copy.deepcopy(model)
        change(model)
        return model

    with pytest.raises(UserError, match="halfway" if change is fails_halfway else "it changed the base"):
        forgetgauge.evaluate(unlearner={"mine": mine}, **GAME)
    played = forgetgauge.evaluate(unlearner={"mine": mine, "retrain": {}, "none": {}}, on_failure="record", **GAME)
    assert played.failures
    for name in ("retrain", "none"):
        assert played.methods[name].utility == alone.methods[name].utility
        assert played.methods[name].by_adversary == alone.methods[name].by_adversary


def test_hooks_that_are_taken_off_again_are_welcome_and_what_was_asked_meanwhile_is_not_kept(alone):
    def mine(model, retain, forget, context):
        handle = layer_of(model).register_forward_hook(lambda module, given, made: made * 0.5)
        with torch.no_grad():
            model(forget.x)
        handle.remove()
        return copy.deepcopy(model)

    base_of(**MODEL)._losses.clear()
    played = forgetgauge.evaluate(unlearner={"mine": mine, "none": {}}, **GAME)
    assert played.methods["mine"].by_adversary == alone.methods["none"].by_adversary
