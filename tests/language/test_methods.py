"""What language models unlearn by: each one-step gradient against autograd on the formula; many at once as alone."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.stacked.records import record_stack
from forgetgauge.unlearn.neg_grad import NegGrad
from forgetgauge.unlearn.neg_grad_plus import NegGradPlus
from forgetgauge.unlearn.paired import Step
from forgetgauge.unlearn.task_vector import TaskVector
from forgetgauge.unlearn.unlearner import Request
from tests.methods import FOR_RECORDS

from .world import LORA, WHOLE, losses, people, request

NAMES = sorted(FOR_RECORDS)
PLAIN_STEP = {"optimiser": "sgd", "lr": 1.0, "epochs": 1, "batch_size": 32}
"""One step with all of F and R, after which weights have moved by minus the gradient."""
every_learner = pytest.mark.parametrize("learner", [LORA, WHOLE], ids=["adapters", "whole models"])


def hidden(model, codes, n_layers):
    """(n, length, d) states after so many blocks, and (n, length) whether a token is there."""
    ids = torch.where(codes < -1, -2 - codes, codes.clamp(min=0)).long()
    if learner_is_lora(model):
        body = copy.deepcopy(model.base.on(torch.device("cpu")))
        states = torch.func.functional_call(body, merged(model), (ids, None, n_layers))
    else:
        states = model.body(ids, None, n_layers)
    return states.double(), codes != -1


def learner_is_lora(model):
    return hasattr(model, "down")


def merged(model):
    """W + (α/r) B A, differentiable."""
    weights = dict(model.base.on(torch.device("cpu")).named_parameters())
    for key, down in model.down.items():
        name = key.replace("/", ".") + ".weight"
        weights[name] = weights[name] + model.alpha / model.rank * model.up[key] @ down
    return weights


def npo(method, model, before, asked):
    (on_forget, _), (was, _) = losses(model, asked.forget.x[:, 0]), losses(before, asked.forget.x[:, 0])
    ratio = torch.exp(was.detach() - on_forget)  # π / π₀
    forgetting = -2 / method.beta * torch.log(1 / (1 + ratio**method.beta))
    return forgetting.mean() + method.retain_weight * mean_loss(model, asked.retain.x[:, 0])


def sim_npo(method, model, before, asked):
    total, tokens = losses(model, asked.forget.x[:, 0])
    inner = -method.beta / tokens * -total - method.gamma
    forgetting = -2 / method.beta * torch.log(1 / (1 + torch.exp(-inner)))
    return forgetting.mean() + method.retain_weight * mean_loss(model, asked.retain.x[:, 0])


def i_dont_know(method, model, before, asked):
    return mean_loss(model, asked.forget.x[:, 1]) + method.retain_weight * mean_loss(model, asked.retain.x[:, 0])


def rmu(method, model, before, asked):
    n_layers = 1  # a quarter of two blocks, at least one
    drawn = torch.from_numpy(asked.context.streams.generator("direction").random(16))
    means, norms, n_tokens = {}, 0.0, 0
    for codes in (asked.forget.x[:, 0], asked.retain.x[:, 0]):
        was, there = hidden(before, codes, n_layers)
        norms += float(was.detach().norm(dim=-1)[there].sum())
        n_tokens += int(there.sum())
    aim = method.coefficient * norms / n_tokens * drawn / drawn.norm()
    for name, codes in (("forget", asked.forget.x[:, 0]), ("retain", asked.retain.x[:, 0])):
        states, there = hidden(model, codes, n_layers)
        wanted = aim.expand(states.shape) if name == "forget" else hidden(before, codes, n_layers)[0].detach()
        squares = ((states - wanted) ** 2).mean(-1)
        means[name] = torch.stack([row[own].mean() for row, own in zip(squares, there, strict=True)]).mean()
    return means["forget"] + method.retain_weight * means["retain"]


def neg_grad(method, model, before, asked):
    return -mean_loss(model, asked.forget.x[:, 0])


def neg_grad_plus(method, model, before, asked):
    on_retain, on_forget = (mean_loss(model, part.x[:, 0]) for part in (asked.retain, asked.forget))
    return method.beta * on_retain - (1 - method.beta) * on_forget


def task_vector(method, model, before, asked):
    """A step down on L_F, reversed and scaled, is a step up."""
    return -method.scale * mean_loss(model, asked.forget.x[:, 0])


def mean_loss(model, codes):
    total, tokens = losses(model, codes)
    return (total / tokens).mean()


FORMULAS = {
    "npo": (npo, {"beta": 0.3, "retain_weight": 0.7}),
    "sim-npo": (sim_npo, {"beta": 2.0, "gamma": 0.4, "retain_weight": 0.7}),
    "i-dont-know": (i_dont_know, {"retain_weight": 0.7}),
    "rmu": (rmu, {"retain_weight": 3.0}),
    "task-vector": (task_vector, {"scale": 0.6}),
    "neg-grad": (neg_grad, {"momentum": 0.0}),
    "neg-grad-plus": (neg_grad_plus, {"beta": 0.7, "momentum": 0.0}),
}


def moved(before, after):
    pairs = zip(after.parameters(), before.parameters(), strict=True)
    return torch.cat([(a - b).detach().double().flatten() for a, b in pairs])


def gradient_of(value, model):
    found = torch.autograd.grad(value, list(model.parameters()), materialize_grads=True)
    return torch.cat([part.flatten() for part in found])


def test_every_method_for_language_models_has_its_formula_here():
    assert set(NAMES) <= set(FORMULAS)


@every_learner
@pytest.mark.parametrize("name", FORMULAS)
def test_one_step_is_minus_the_gradient_that_autograd_takes_of_the_formula(name, learner):
    formula, settings = FORMULAS[name]
    method = plugins.unlearners.load(name)(**{**PLAIN_STEP, **settings})
    asked, other = request(learner), request(learner, "another job", n_retain=9)
    (_, after) = method.unlearn_many([other, asked])
    model = copy.deepcopy(asked.model)
    value = formula(method, model, asked.model, asked)
    wanted = -gradient_of(value, model)
    found = moved(asked.model, after)
    assert float(wanted.norm()) > 1e-4
    assert float((found - wanted.double()).norm() / wanted.norm()) < 2e-3


@pytest.mark.parametrize("name", ["npo", "rmu"])
@every_learner
def test_away_from_the_original_too_what_is_minimised_is_the_formula(name, learner):
    """Where a model has not moved yet, it does not differ from the original that the formula compares it with."""
    formula, settings = FORMULAS[name]
    method = plugins.unlearners.load(name)(**settings)
    asked, points = request(learner), people().points
    stack = record_stack([copy.deepcopy(asked.model)], points)
    objective = method.objective(stack, [asked])
    model = copy.deepcopy(asked.model)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        stack.weights.copy_(torch.cat([p.flatten() for p in model.parameters()])[None])
    index = torch.from_numpy(np.concatenate([asked.forget.index, asked.retain.index]))[None]
    lost = torch.arange(index.shape[1])[None] < len(asked.forget)
    found = objective(Step(points.inputs_at(index), lost, ~lost))
    wanted = formula(method, model, asked.model, asked)
    assert found.item() == pytest.approx(wanted.item(), rel=1e-4)
    (gradient,) = torch.autograd.grad(found.sum(), stack.weights)
    expected = gradient_of(wanted, model)
    assert float((gradient[0] - expected).norm() / expected.norm()) < 2e-3


@every_learner
@pytest.mark.parametrize("name", [*NAMES, "neg-grad", "neg-grad-plus", "fine-tune", "retrain", "none"])
def test_many_requests_at_once_are_answered_like_each_alone_and_nothing_else_is_touched(name, learner):
    if name in ("retrain", "none"):
        method = plugins.unlearners.load(name)()
    else:
        method = dataclasses.replace(
            plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=2, batch_size=5
        )
    requests = [request(learner, "one"), request(learner, "two", n_retain=13, model="another")]
    before = [copy.deepcopy(r.model.state_dict()) for r in requests]
    if hasattr(method, "unlearn_many"):
        together = method.unlearn_many(requests)
    else:
        together = [method.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]
    for r, model, was in zip(requests, together, before, strict=True):
        again = request(learner, r.context.streams.key, len(r.retain))
        alone = method.unlearn(r.model, r.retain, r.forget, again.context)
        assert again.context.n_gradients == r.context.n_gradients
        assert all(torch.equal(t, was[name]) for name, t in r.model.state_dict().items())
        assert not model.training
        found, wanted = (outputs_of(one, people().points)[:, :2] for one in (model, alone))
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


WITH_STRENGTHS = [*NAMES, "neg-grad", "neg-grad-plus", "fine-tune"]


@pytest.mark.parametrize("name", WITH_STRENGTHS)
def test_members_of_one_stack_may_have_strengths_of_their_own(name):
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=2, batch_size=5)
    parameter = type(method).strength.parameter
    asked = request(key="one")
    values = {"lr": (1e-4, 1e-3, 1e9), "scale": (0.5, 5.0, 1e30)}[parameter]  # the last ruins its model, and no other
    requests = [
        dataclasses.replace(asked, context=request(key=f"at {value}").context, strength=value) for value in values
    ]
    together = method.unlearn_many(requests)
    for r, model in zip(requests[:2], together, strict=False):
        at = dataclasses.replace(method, **{parameter: r.strength})
        (alone,) = at.unlearn_many([dataclasses.replace(r, context=request(key=f"at {r.strength}").context)])
        found, wanted = (outputs_of(one, people().points)[:, :2] for one in (model, alone))
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
    before, after = (outputs_of(one, people().points)[:, :2] for one in (asked.model, together[1]))
    assert not np.allclose(before, after, rtol=1e-4)


def test_the_first_step_of_npo_is_that_of_ascent():
    """At the original the ratio is 1, and the gradient of −(2/β) log σ(−β log 1) is that of log π."""
    asked = request()
    npo_step = plugins.unlearners.load("npo")(**PLAIN_STEP, retain_weight=0.0, beta=0.1)
    model = copy.deepcopy(asked.model)
    wanted = torch.autograd.grad(losses(model, asked.forget.x[:, 0])[0].mean(), list(model.parameters()))
    found = moved(asked.model, npo_step.unlearn(asked.model, asked.retain, asked.forget, asked.context))
    torch.testing.assert_close(found, torch.cat([g.flatten() for g in wanted]).double(), rtol=2e-3, atol=1e-4)


def test_the_cost_of_each_is_the_gradients_it_takes():
    asked = request()
    for method, n in (
        (plugins.unlearners.load("npo")(epochs=2, batch_size=5), 2 * 12 + 2 * 3 * 5),
        (TaskVector(epochs=3), 36),
        (NegGrad(epochs=2), 24),
        (NegGradPlus(epochs=1, batch_size=10), 20 + 2 * 6),
    ):
        asked = request()
        method.unlearn(asked.model, asked.retain, asked.forget, asked.context)
        assert asked.context.n_gradients == n


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("npo", {"beta": 0.0}),
        ("npo", {"retain_weight": -1.0}),
        ("sim-npo", {"gamma": -1.0}),
        ("rmu", {"depth": 0.0}),
        ("task-vector", {"scale": -1.0}),
        ("i-dont-know", {"lr": -1.0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, wrong):
    with pytest.raises(ValueError, match="must"):
        plugins.unlearners.load(name)(**wrong)


def test_a_method_for_language_models_leaves_others_alone():
    asked = request()
    strange = Request(torch.nn.Linear(2, 2), asked.retain, asked.forget, asked.context)
    with pytest.raises(Exception, match="not all language models"):
        plugins.unlearners.load("npo")().unlearn_many([strange])
