"""Language models on a GPU: what they are on a CPU up to rounding, captured as step by step, near it in bfloat16."""

from __future__ import annotations

import copy
import dataclasses
import functools

import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.learn.descent import Steps, batch_positions
from forgetgauge.learn.device import choose_device
from forgetgauge.learn.predict import outputs_of, outputs_of_many
from forgetgauge.learn.stacked import adapted, records
from forgetgauge.learn.stacked.records import LoraStack
from forgetgauge.learn.stacked.trainer import Descent, Feed, batches_of
from forgetgauge.models.causal_lm import Base
from forgetgauge.models.llama import Llama, LlamaSizes
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import AT, COLUMNS

from .test_packed import METHODS, Room, some_codes, tight
from .world import LORA, original, people, request

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")


@pytest.fixture(autouse=True)
def _plain_floats():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@functools.cache
def people_there():
    """Sent over once, as a worker does: requests on tensors of their own cannot be one stack."""
    return people().points.on(choose_device("cuda"))


def on_gpu(asked):
    parts = [people_there().subset(part.index) for part in (asked.retain, asked.forget)]
    model = copy.deepcopy(asked.model).to(choose_device("cuda"))
    return dataclasses.replace(asked, model=model, retain=parts[0], forget=parts[1])


def weights_of(model):
    return torch.cat([tensor.flatten() for tensor in model.state_dict().values()]).double().cpu()


def likeness(one, other):
    """The cosine between two moves: what a method does to a model is small beside the model."""
    return float(one @ other / (one.norm() * other.norm()))


def three_parts(points):
    return [points.subset(np.arange(a, b)) for a, b in ((0, 30), (10, 47), (20, 29))]


def streams():
    return [Streams(f"member {k}") for k in range(3)]


def wide_stack(precision, device):
    """Of SmolLM2's widths, two layers deep."""
    torch.manual_seed(0)
    base = Base("random", Llama(LlamaSizes(4099, 576, 2, 9, 3, 64, 1536)))
    models = [LoraModel(base, PROJECTIONS, 16, 32.0) for _ in range(3)]
    for model in models:
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
    return LoraStack([model.to(device) for model in models], people().points.on(device), precision)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("bfloat16", 0.04)])
@pytest.mark.parametrize("is_packed", [True, False])
def test_losses_and_gradients_of_a_stack_are_those_of_a_cpu(precision, tolerance, is_packed):
    codes = some_codes(3, 6, 140, vocab=4099)
    room = tight(codes) if is_packed else None
    found = []
    for device, own in ((torch.device("cpu"), "float32"), (choose_device("cuda"), precision)):
        stack = wide_stack(own, device)
        stack.room = None if room is None else Room(room.tokens + 5, room.counted + 9)
        loss, _ = stack.losses(codes.to(device))
        (gradient,) = torch.autograd.grad(loss.sum(), stack.weights)
        found.append((loss.detach().cpu().double(), gradient.cpu().double()))
    for wanted, here in zip(*found, strict=True):
        assert float((here - wanted).norm() / wanted.norm()) < tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_between_products_are_plain_torch(dtype, monkeypatch):
    device = choose_device("cuda")
    torch.manual_seed(0)
    x, gate = torch.randn(50, 15, 64, device=device, dtype=dtype), torch.randn(50, 3072, device=device, dtype=dtype)
    angles = torch.randn(50, 32, device=device)
    turn = [torch.cat([angles.cos()] * 2, 1).to(dtype), torch.cat([-angles.sin(), angles.sin()], 1).to(dtype)]
    states, head = torch.randn(70, 576, device=device, dtype=dtype), torch.randn(49152, 576, device=device, dtype=dtype)
    targets = torch.randint(0, 49152, (70,), device=device)

    def all_of_them():
        given = [tensor.clone().requires_grad_() for tensor in (x, gate, states)]
        made = [
            adapted.turned_heads(given[0], turn, 12),
            adapted.gated(given[1]),
            records.losses_under_frozen_head(given[2] / 24, head, targets),
        ]
        gradients = torch.autograd.grad([part.float().square().sum() for part in made], given)
        return [*(part.detach() for part in made), *gradients]

    by_kernels = all_of_them()
    for module in (adapted, records):
        monkeypatch.setattr(module, "kernels_on", lambda device, name: None)
    for found, wanted in zip(by_kernels, all_of_them(), strict=True):
        assert float((found - wanted).float().norm() / wanted.float().norm()) < (
            1e-4 if dtype == torch.float32 else 2e-2
        )


def test_training_is_that_of_a_cpu_and_a_captured_step_is_the_step(monkeypatch):
    """More than one piece of steps, several rooms, a member that ends early."""
    learner = dataclasses.replace(LORA, epochs=40, lr=1e-3)
    there = people_there()
    begun = [weights_of(learner.build(people().points, own.seed("init"))) for own in streams()]
    on_cpu = learner.fit_many(three_parts(people().points), streams())
    captured = learner.fit_many(three_parts(there), streams())
    monkeypatch.setattr(Descent, "_is_worth_capturing", lambda self, n_steps: False)
    stepwise = learner.fit_many(three_parts(there), streams())
    for start, *models in zip(begun, on_cpu, captured, stepwise, strict=True):
        cpu, replayed, plain = (weights_of(model) - start for model in models)
        assert likeness(replayed, plain) > 0.99
        assert likeness(replayed, cpu) > 0.99
        losses = [
            outputs_of(model, its)[:, AT["loss-sum"]]
            for model, its in zip(models, (people().points, there, there), strict=True)
        ]
        np.testing.assert_allclose(losses[1], losses[0], rtol=2e-3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_the_models_that_it_makes_on_a_cpu(name):
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=9, batch_size=5)
    requests = [request(key="one"), request(key="two", n_retain=13)]
    there = [on_gpu(request(key="one")), on_gpu(request(key="two", n_retain=13))]
    models = zip(method.unlearn_many(requests), method.unlearn_many(there), strict=True)
    for asked, both in zip(there, models, strict=True):
        wanted, found = (weights_of(model) - weights_of(asked.model) for model in both)
        assert asked.context.engine == "lora"  # all as one stack
        assert float((found - wanted).norm() / wanted.norm()) < 0.1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_in_bfloat16_and_moves(name):
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=9, batch_size=5)
    low = dataclasses.replace(LORA, precision="bfloat16")
    requests = [on_gpu(request(key="one")), on_gpu(request(key="two", n_retain=13))]
    for asked in requests:
        asked.context.learner = low
    on_cpu = method.unlearn_many([request(key="one"), request(key="two", n_retain=13)])
    for asked, cpu, model in zip(requests, on_cpu, method.unlearn_many(requests), strict=True):
        assert asked.context.engine == "lora"
        found, wanted = (weights_of(one) - weights_of(asked.model) for one in (model, cpu))
        assert likeness(found, wanted) > 0.9  # AdamW takes steps of one size along gradients that are rounded


def test_signals_are_those_of_a_cpu():
    model, points = copy.deepcopy(original()), people().points
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # so that adapters show
    wanted = outputs_of(model, points)
    model.base._losses.clear()  # else those of the CPU are given
    (found,) = outputs_of_many([copy.deepcopy(model).to(choose_device("cuda"))], [people_there()])
    assert float(np.abs(wanted[:, AT["loss-sum"]] / wanted[:, AT["base-loss-sum"]] - 1).mean()) > 4e-3
    deviates = [name.startswith("min-k++") for name in COLUMNS]  # over a small deviation
    np.testing.assert_allclose(found[:, ~np.array(deviates)], wanted[:, ~np.array(deviates)], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[:, deviates], wanted[:, deviates], rtol=2e-2, atol=2e-2)


def test_a_captured_step_at_smollm2s_widths_is_the_step(monkeypatch):
    """In bfloat16, where several heads of queries share one of keys."""
    moves = []
    for is_captured in (True, False):
        monkeypatch.setattr(Descent, "_is_worth_capturing", lambda self, n_steps, yes=is_captured: yes)
        stack, points = wide_stack("bfloat16", choose_device("cuda")), people_there()
        orders = [batch_positions(32, 4, 4, np.random.default_rng(k)) for k in range(3)]
        feeds = [Feed(batches_of(points, order), 32) for order in orders]
        before = stack.weights.detach().clone()
        Descent(stack, points, feeds, Steps(1e-3, optimiser="adamw"), batch_size=4).run()
        moves.append((stack.weights.detach() - before).flatten().double().cpu())
    assert likeness(*moves) > 0.9


def test_a_descent_on_an_empty_stack_of_steps_does_nothing():
    stack = wide_stack("bfloat16", choose_device("cuda"))
    before = stack.weights.detach().clone()
    Descent(stack, people().points.on(stack.device), [], Steps(1e-3, optimiser="adamw"), batch_size=4).run()
    assert torch.equal(stack.weights.detach(), before)
