"""What a model is asked: records of like lengths together, without most of their padding, and no more than needed."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import forgetgauge
from forgetgauge import plugins
from forgetgauge.attack.adversary import Need
from forgetgauge.learn.columns import N_SHAKES, SHAKE, gradient_norm, landscape, noise_like
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, outputs_of_many
from forgetgauge.models import causal_lm
from forgetgauge.models.llama import Llama
from forgetgauge.plan.game import PlannedAdversary
from forgetgauge.plan.graph import PLAINLY, SHADOW_HALF, build_graph
from forgetgauge.plan.jobs import Named
from forgetgauge.run import model_jobs
from forgetgauge.run.model_jobs import _products_of
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import AT, CAUSAL_LM, COLUMNS
from tests.plan.test_graph import GAME

from .world import LORA, MODEL, WHOLE, losses, original, people

TF32 = torch.backends.cuda.matmul
OWN = [place for name, place in AT.items() if not name.startswith(("base", "paraphrased", "8-bit"))]


def mixed():
    """Short records and long ones, in turns."""
    points = people().points
    long = points.whole_inputs.clone()
    n, length = len(long), long.shape[-1]
    wide = torch.cat([long, torch.full((n, 3, 2 * length), -1, dtype=long.dtype)], dim=-1)
    wide[::3] = torch.randint(0, 192, (len(wide[::3]), 3, 3 * length), dtype=long.dtype)
    return wide


@pytest.mark.parametrize("learner", [LORA, WHOLE], ids=["adapters", "whole models"])
@pytest.mark.parametrize("room", [None, 192 * 40])
def test_records_together_are_told_of_as_each_alone(learner, room, monkeypatch):
    if room is not None:
        monkeypatch.setitem(causal_lm.LOGITS_AT_ONCE, "cpu", room)
        monkeypatch.setitem(causal_lm.TOKENS_AT_ONCE, "cpu", 100)
    torch.manual_seed(0)
    model, codes = original(learner), mixed()[:18]
    with torch.no_grad():
        together, alone = model(codes), torch.cat([model(codes[i : i + 1]) for i in range(len(codes))])
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-3)


def test_records_of_one_token_have_nothing_that_counts():
    codes = torch.full((4, 3, 9), -1, dtype=torch.int32)
    codes[..., 0] = 7
    with torch.no_grad():
        told = original()(codes)
    assert (told[:, AT["loss-sum"]] == 0).all()
    assert (told[:, AT["hits"]] == 0).all()


def test_few_of_the_tokens_that_a_model_is_given_are_padding(monkeypatch):
    given, whole = [], Llama.forward

    def watched(self, ids, at, n_layers=None):
        given.append(ids.numel())
        return whole(self, ids, at, n_layers)

    monkeypatch.setattr(Llama, "forward", watched)
    monkeypatch.setitem(causal_lm.TOKENS_AT_ONCE, "cpu", 400)
    codes = mixed()
    original().own_columns(codes)
    there = int((codes[:, 0] != -1).sum())
    assert there <= sum(given) < 1.4 * there < 0.75 * codes[:, 0].numel()


def test_plainly_a_model_is_not_asked_in_other_words_or_with_rounded_weights(monkeypatch):
    points, model = people().points, original()
    fully = outputs_of(model, points)
    monkeypatch.setattr(type(model), "rounded", lambda self, weights: pytest.fail("it was rounded"))
    (found,) = outputs_of_many([model], [points], plainly=True)
    np.testing.assert_allclose(found[:, OWN], fully[:, OWN], rtol=1e-5)
    assert (np.delete(found, OWN, axis=1) == 0).all()
    assert len(OWN) == len(COLUMNS) - 3


def test_shipped_adversaries_read_nothing_else_of_the_points_that_a_model_is_compared_on():
    """There it is asked plainly."""
    outputs, labels = CAUSAL_LM.made_up(40, 0, np.arange(40) < 20, np.random.default_rng(0))
    plain = outputs.copy()
    plain[:, np.setdiff1d(np.arange(len(COLUMNS)), OWN)] = 0
    shipped = [plugins.adversaries.load(name) for name in plugins.adversaries.entries]
    comparing = [one for one in shipped if Need.BACKGROUND in one.needs and one.reads <= set(CAUSAL_LM.signals)]
    assert len(comparing) >= 3
    for signal in set().union(*(one.reads for one in comparing)):
        read = CAUSAL_LM.signals[signal]
        np.testing.assert_array_equal(read(plain, labels), read(outputs, labels))


def test_the_shadow_half_is_asked_plainly_but_for_adversaries_of_the_users_own():
    needs = ("background",)
    planned = {"shipped": PlannedAdversary(Named("a"), needs), "own": PlannedAdversary(Named("b", {}, "c0de"), needs)}
    for task, expected in (("causal-lm", PLAINLY), ("classification", SHADOW_HALF)):
        jobs = build_graph(replace(GAME, task=task, adversaries=planned)).jobs.values()
        asked = {j.adversary.name: job_of(jobs, j.inputs["background"]).look_at for j in jobs if j.kind == "decide"}
        assert asked == {"a": expected, "b": SHADOW_HALF}


def job_of(jobs, key):
    return next(job for job in jobs if job.key == key)


def test_on_the_shadow_half_a_model_is_asked_once(tmp_path, monkeypatch):
    asked = []

    def watched(models, points, *, plainly=False):
        asked.append((len(points[0]), plainly))
        return outputs_of_many(models, points, plainly=plainly)

    monkeypatch.setattr(model_jobs, "outputs_of_many", watched)
    learner = {"name": "lora", "model_params": MODEL, "rank": 2, "epochs": 1}
    settings = {"data_params": {"people": 16}, "by": "group", "pairs": 1, "shadows": 2, "learner": learner}
    forgetgauge.evaluate(unlearner=["none"], data="people", adversaries=["rmia-offline"], executor="inline", **settings)
    assert (32, True) in asked  # targets on the shadow half
    assert (32, False) in asked  # shadow models, by which attacks are taught


@pytest.mark.parametrize(("precision", "is_tf32"), [("float32", False), ("bfloat16", True), ("tf32", True)])
def test_who_was_trained_in_less_than_float32_is_asked_with_products_of_tf32(precision, is_tf32):
    before = TF32.allow_tf32
    with _products_of(replace(LORA, precision=precision), original()):
        assert TF32.allow_tf32 == is_tf32
    with _products_of(Minibatch(precision=precision), torch.nn.Linear(2, 2)):
        assert TF32.allow_tf32 == before


# -- white box ---------------------------------------------------------------------------------------------------------


def mean_losses(model, codes):
    total, n = losses(model, codes)
    return total / n


@pytest.mark.parametrize("learner", [LORA, WHOLE], ids=["adapters", "whole models"])
def test_white_boxes_see_the_gradient_and_the_landscape_of_a_records_mean_loss(learner):
    model, some = copy.deepcopy(original(learner)), people().points.subset(np.arange(28, 36))
    codes, norms = some.x[:, 0], []
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # of adapters that hardly move anything little is seen
    for row in range(len(codes)):
        loss = mean_losses(model, codes[row : row + 1]).sum()
        gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        norms.append(float(sum((g.square().sum() for g in gradients if g is not None), torch.zeros(())).sqrt()))
    np.testing.assert_allclose(gradient_norm(model, some, some), norms, rtol=1e-3)

    found, before = landscape(model, some, some), mean_losses(model, codes).detach()
    generator = torch.Generator().manual_seed(Streams("landscape").seed("shake"))
    rise = torch.zeros(len(codes))
    for _ in range(N_SHAKES):
        shaken = copy.deepcopy(model)
        with torch.no_grad():
            for own in shaken.parameters():
                own += SHAKE * own.std() * noise_like(own, generator)
        rise += (mean_losses(shaken, codes).detach() - before).float() / N_SHAKES
    np.testing.assert_allclose(found, rise.numpy(), rtol=1e-3, atol=2e-4)
    assert np.abs(found).max() > 0.01
