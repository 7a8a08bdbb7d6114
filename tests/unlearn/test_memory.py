"""What methods keep while strengths are tried is what they would find again."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import nn

from forgetgauge.unlearn import fisher
from forgetgauge.unlearn.fisher import Fisher
from forgetgauge.unlearn.memory import Memory, recalled
from forgetgauge.unlearn.ssd import SSD
from forgetgauge.unlearn.unlearner import Request

from .world import changed, make_world


def request_of(world, memory, key="a job", **given):
    context = world.context(key)
    context.memory = memory
    parts = {"model": world.original, "retain": world.retain, "forget": world.forget, **given}
    return Request(context=context, **parts)


def counting(found):
    """(a function that counts its calls and gives copies of `found`, how often it was called)."""
    calls = []

    def compute():
        calls.append(1)
        return found.clone()

    return compute, calls


def test_the_same_is_found_once_and_anything_else_anew():
    world, memory = make_world(), Memory()
    compute, calls = counting(torch.arange(3.0))
    for key in ("weak", "strong"):  # two strengths are two jobs
        assert torch.equal(recalled("it", [request_of(world, memory, key)], compute), torch.arange(3.0))
    assert len(calls) == 1
    moved = copy.deepcopy(world.original)
    with torch.no_grad():
        next(moved.parameters()).view(-1)[0] += 1e-6
    buffered = copy.deepcopy(world.original)
    next(buffered.buffers()).view(-1)[0] += 1
    other_data = world.points.copied()
    others = [
        ("another thing", request_of(world, memory)),
        ("it", request_of(world, memory, model=moved)),
        ("it", request_of(world, memory, model=buffered)),
        ("it", request_of(world, memory, forget=world.retain)),
        ("it", request_of(world, memory, retain=world.retain.subset(world.retain.index[1:]))),
        ("it", request_of(world, memory, retain=other_data.subset(world.retain.index))),
        ("it", request_of(world, None)),
    ]
    for n, (what, request) in enumerate(others, start=2):
        recalled(what, [request], compute)
        assert len(calls) == n
    one = request_of(world, memory)
    recalled("it", [one, one], compute)  # another stack, perhaps with other rounding
    assert len(calls) == len(others) + 2


def test_what_breaks_off_leaves_nothing_behind():
    world, memory = make_world(), Memory()

    def broken():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        recalled("it", [request_of(world, memory)], broken)
    compute, calls = counting(torch.ones(2))
    recalled("it", [request_of(world, memory)], compute)
    assert len(calls) == 1


def test_what_was_not_used_for_longest_makes_room_and_what_is_too_large_is_not_kept():
    world, memory = make_world(), Memory(room=100)
    finds = {name: counting(torch.zeros(10)) for name in "abc"}  # 40 bytes each

    def find(name):
        recalled(name, [request_of(world, memory)], finds[name][0])
        return len(finds[name][1])

    assert [find(name) for name in "ababcab"] == [1, 1, 1, 1, 1, 2, 2]
    memory.room = 30
    assert [find("c"), find("c")] == [2, 3]
    view = torch.zeros(1000)[:2]  # all of what it is a part of stays in memory with it
    memory.room = 100
    calls = []
    n_before = find("a")
    for _ in range(2):
        recalled("view", [request_of(world, memory)], lambda: calls.append(1) or view)
    assert len(calls) == 2
    assert find("a") == n_before  # nothing makes room for what is not kept


class Noisy(nn.Module):
    """Draws random numbers while it is asked."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 0.1 * torch.randn(len(x), 4)


BATCHES, SAMPLES = SSD(alpha=1.2), SSD(alpha=1.2, importance="per-sample")


@pytest.mark.parametrize(
    ("method", "is_noisy"),
    [
        (Fisher(), False),
        (Fisher(labels="sampled"), False),
        (BATCHES, False),
        (SAMPLES, False),
        (BATCHES, True),
        (SAMPLES, True),
    ],
)
def test_a_strength_tried_after_another_makes_the_model_that_it_makes_alone(method, is_noisy):
    world = make_world()
    model = Noisy(world.original) if is_noisy else world.original
    strength = dataclasses.replace(method, alpha=1.05 if isinstance(method, SSD) else 1e-5)
    shared, alone = Memory(), Memory()
    for memory, tried in ((shared, [method, strength]), (alone, [strength])):
        for one in tried:
            request = request_of(world, memory, str(one), model=model)
            made = one.unlearn(request.model, request.retain, request.forget, request.context)
            spent = request.context.n_gradients
        if memory is shared:
            after_another, its_cost = made, spent
    assert changed(made, after_another) == set()
    assert changed(made, model) != set()
    assert spent == its_cost > 0


def test_sampled_labels_are_the_models_own_at_every_strength(monkeypatch):
    world, memory, drawn = make_world(), Memory(), []
    draw = fisher._draw_labels
    monkeypatch.setattr(fisher, "_draw_labels", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    method = Fisher(labels="sampled")
    for alpha in (1e-6, 1e-5):
        one = dataclasses.replace(method, alpha=alpha)
        for kept in (memory, None):  # None: another process, or a method of somebody's that calls this one
            request = request_of(world, kept, str(alpha))
            one.unlearn(request.model, request.retain, request.forget, request.context)
    assert len(drawn) == 3  # the second strength finds what the first one kept
    assert all(torch.equal(labels, drawn[0]) for labels in drawn)
    other = copy.deepcopy(world.original)
    with torch.no_grad():
        next(other.parameters()).view(-1)[0] += 1e-6
    method.unlearn(other, world.retain, world.forget, world.context())
    assert not torch.equal(drawn[3], drawn[0])
