"""Language models on a GPU: what they are on a CPU up to rounding, captured as step by step, near it in bfloat16."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.learn.descent import Steps
from forgetgauge.learn.device import choose_device
from forgetgauge.learn.predict import outputs_of, outputs_of_many
from forgetgauge.learn.stacked import adapted, records
from forgetgauge.learn.stacked.records import LoraStack
from forgetgauge.learn.stacked.trainer import Descent
from forgetgauge.models.causal_lm import Base
from forgetgauge.models.llama import Llama, LlamaSizes
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import AT

from .test_packed import METHODS, Room, some_codes, tight
from .world import LORA, original, people, request

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")


@pytest.fixture(autouse=True)
def _plain_floats():
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def on_gpu(asked):
    device = choose_device("cuda")
    points = asked.retain.on(device)
    parts = [points.subset(part.index) for part in (asked.retain, asked.forget)]
    return dataclasses.replace(asked, model=copy.deepcopy(asked.model).to(device), retain=parts[0], forget=parts[1])


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
    there = people().points.on(choose_device("cuda"))
    on_cpu = learner.fit_many(three_parts(people().points), streams())
    captured = learner.fit_many(three_parts(there), streams())
    monkeypatch.setattr(Descent, "_is_worth_capturing", lambda self, n_steps: False)
    stepwise = learner.fit_many(three_parts(there), streams())
    for cpu, replayed, plain in zip(on_cpu, captured, stepwise, strict=True):
        outputs = [outputs_of(model, its) for model, its in ((cpu, people().points), (replayed, there), (plain, there))]
        losses = [found[:, AT["loss-sum"]] for found in outputs]
        np.testing.assert_allclose(losses[1], losses[2], rtol=2e-2)
        assert np.corrcoef(losses[0], losses[1])[0, 1] > 0.999


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_the_models_that_it_makes_on_a_cpu(name):
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=9, batch_size=5)
    requests = [request(key="one"), request(key="two", n_retain=13)]
    there = [on_gpu(asked) for asked in requests]
    points = people().points
    for cpu, gpu in zip(method.unlearn_many(requests), method.unlearn_many(there), strict=True):
        wanted, found = outputs_of(cpu, points), outputs_of(gpu, points.on(choose_device("cuda")))
        np.testing.assert_allclose(found[:, :2], wanted[:, :2], rtol=3e-2)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_in_bfloat16_and_moves(name):
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=9, batch_size=5)
    low = dataclasses.replace(LORA, precision="bfloat16")
    requests = [on_gpu(request(key="one")), on_gpu(request(key="two", n_retain=13))]
    for asked in requests:
        asked.context.learner = low
    for asked, model in zip(requests, method.unlearn_many(requests), strict=True):
        state = model.state_dict()
        assert all(bool(torch.isfinite(tensor).all()) for tensor in state.values())
        assert any(not torch.equal(tensor, state[key]) for key, tensor in asked.model.state_dict().items())


def test_signals_are_those_of_a_cpu():
    model, points = original(), people().points
    wanted = outputs_of(model, points)
    device = choose_device("cuda")
    (found,) = outputs_of_many([copy.deepcopy(model).to(device)], [points.on(device)])
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-2)


def test_a_descent_on_an_empty_stack_of_steps_does_nothing():
    stack = wide_stack("bfloat16", choose_device("cuda"))
    before = stack.weights.detach().clone()
    Descent(stack, people().points.on(stack.device), [], Steps(1e-3, optimiser="adamw"), batch_size=4).run()
    assert torch.equal(stack.weights.detach(), before)
