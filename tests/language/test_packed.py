"""Tokens without their padding: what lies where, what a stack makes of it, and that nothing of a step waits for the
host."""

from __future__ import annotations

import copy
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn.stacked import trainer
from forgetgauge.learn.stacked.packed import Layout, RecordSizes, Room, roomy
from forgetgauge.learn.stacked.records import LoraStack, only_there, record_stack
from forgetgauge.learn.stacked.trainer import Descent, Feed, batches_of
from forgetgauge.models.causal_lm import Base
from forgetgauge.models.llama import Llama, LlamaSizes
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import AT, CAUSAL_LM

from .world import LORA, losses, people, request

SHARED_HEADS = LlamaSizes(97, 24, 3, 4, 2, 6, 20)
"""Two heads of queries for each of keys."""


def some_codes(k=3, n=5, length=11, vocab=97, seed=0):
    """Records of all lengths: prompts that are read, answers that count, and one record that is all padding."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, vocab, (k, n, length))
    lengths = rng.integers(2, length + 1, (k, n))
    lengths[0, 2] = 0
    codes = np.where(np.arange(length) < (lengths // 2)[..., None], -2 - codes, codes)
    return torch.from_numpy(np.where(np.arange(length) < lengths[..., None], codes, -1).astype(np.int32))


def tight(codes):
    tokens = int((codes != -1).sum((1, 2)).max())
    return Room(tokens, int((codes[..., 1:] >= 0).sum()))


def stack_of(targets=PROJECTIONS, k=3, sizes=SHARED_HEADS):
    torch.manual_seed(0)
    base = Base("random", Llama(sizes))
    models = [LoraModel(base, targets, 4, 6.0) for _ in range(k)]
    for model in models:
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    codes = torch.arange(88, dtype=torch.int32).view(8, 11)  # all tokens count
    points = Points.of(codes[:, None], torch.ones(8, dtype=torch.int64), task=CAUSAL_LM)
    return LoraStack(models, points)


# -- what lies where ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spare", [0, 7])
def test_tokens_lie_one_after_another_and_go_back_to_where_they_were(spare):
    codes = some_codes()
    room = tight(codes)
    layout = Layout(codes, Room(room.tokens + spare, room.counted + spare))
    for k, rows in enumerate(layout.flat.view(3, -1).tolist()):
        there = [code for record in codes[k].tolist() for code in record if code != -1]
        assert rows == there + [-1] * (room.tokens + spare - len(there))
    inside = codes.view(15, 11) != -1
    numbers = torch.arange(15 * 11.0).view(15, 11, 1)
    back = layout.padded(layout.packed(numbers))
    assert torch.equal(back[inside], numbers[inside])
    assert torch.equal(layout.places[layout.there], torch.arange(11).repeat(15)[inside.flatten()])


def test_gradients_of_what_is_moved_are_those_of_plain_indexing():
    codes = some_codes()
    layout, inside = Layout(codes, tight(codes)), codes.view(15, 11) != -1
    torch.manual_seed(0)
    x, weight = torch.randn(15, 11, 2, requires_grad=True), torch.randn(15, 11, 2)
    through = layout.padded(layout.packed(x).square())
    (found,) = torch.autograd.grad((through * weight * inside[..., None]).sum(), x)
    (wanted,) = torch.autograd.grad((x.square() * weight * inside[..., None]).sum(), x)
    torch.testing.assert_close(found, wanted)


def test_sums_of_counted_tokens_are_their_records():
    codes = some_codes()
    layout = Layout(codes, tight(codes))
    states = torch.arange(len(layout.flat), dtype=torch.float32)[:, None]
    chosen, targets = layout.before_counted(states)
    assert targets.tolist() == [code for code in codes[..., 1:].flatten().tolist() if code >= 0]
    assert (layout.flat[chosen[:, 0].long() + 1] == targets).all()
    sums = layout.per_record(targets.float())
    assert torch.equal(sums, (codes[..., 1:].clamp(min=0)).sum(-1).float())


def test_rooms_are_few_and_large_enough():
    sizes = [roomy(n, 5000) for n in range(1, 5001)]
    assert all(n <= size <= 5000 for n, size in enumerate(sizes, 1))
    assert sizes == sorted(sizes)
    assert len(set(sizes)) < 30
    assert np.mean([n / size for n, size in enumerate(sizes, 1)]) > 0.87


def test_what_a_batch_needs_is_counted_for_the_records_that_are_there():
    points = people().points
    sizes = RecordSizes.of(points)
    index, n_valid = np.array([[[0, 5, 9], [7, 7, 3]]]), np.array([[2, 3]], dtype=np.int32)
    tokens, counted = sizes.needed(index, n_valid)
    codes = points.whole_inputs[:, :2]
    own = [[0, 5], [7, 7, 3]]
    assert tokens == max(sum(int((codes[i] != -1).sum(-1).max()) for i in its) for its in own)
    assert counted == sum(int((codes[i, :, 1:] >= 0).sum(-1).max()) for its in own for i in its)


# -- stacks ------------------------------------------------------------------------------------------------------------


SOME = [PROJECTIONS, ("q_proj", "v_proj"), ("k_proj", "up_proj", "down_proj"), ("o_proj",)]


@pytest.mark.parametrize("targets", SOME)
def test_without_padding_losses_and_gradients_are_those_of_each_model(targets):
    stack, codes = stack_of(targets), some_codes()
    for room in (tight(codes), Room(50, 90), None):
        stack.room = room
        found, tokens = stack.losses(codes)
        (gradient,) = torch.autograd.grad((found * torch.linspace(1, 2, 15).view(3, 5)).sum(), stack.weights)
        for k, model in enumerate(stack.members()):
            there = [i for i in range(5) if int((codes[k, i] != -1).sum())]
            wanted, n = losses(model, codes[k, there])
            torch.testing.assert_close(found[k, there].double(), wanted, rtol=1e-4, atol=1e-4)
            assert torch.equal(tokens[k, there].double(), n)
            assert (found[k, [i for i in range(5) if i not in there]] == 0).all()
            weight = torch.linspace(1, 2, 15).view(3, 5)[k, there]
            expected = torch.autograd.grad((wanted * weight).sum(), list(model.parameters()))
            expected = torch.cat([part.flatten() for part in expected])
            assert float((gradient[k] - expected).norm() / expected.norm()) < 1e-3


def test_hidden_states_without_padding_are_those_with_it():
    stack, codes = stack_of(), some_codes()
    with_padding = stack.hidden(codes, 2)
    stack.room = tight(codes)
    found, there = stack.hidden(codes, 2), codes != -1
    torch.testing.assert_close(found[there], with_padding[there], rtol=1e-4, atol=1e-5)


def test_an_adapted_last_layer_is_left_to_corrections():
    sizes = dataclasses.replace(SHARED_HEADS, tied=False)
    stack, codes = stack_of(("q_proj", "lm_head"), sizes=sizes), some_codes()
    assert stack.adapted is None
    found, _ = stack.losses(codes)
    wanted, _ = losses(stack.members()[1], codes[1])
    assert float(torch.autograd.grad(found.sum(), stack.weights)[0][:, -97 * 4 :].norm()) > 1e-2  # the last layer's
    torch.testing.assert_close(found[1].double(), wanted, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        asked = stack.members()[1](codes[1][:, None].expand(-1, 3, -1))
    torch.testing.assert_close(asked[:, AT["loss-sum"]].double(), wanted, rtol=1e-4, atol=1e-4)


def test_of_a_batch_that_is_only_filled_nothing_is_there():
    codes = some_codes()[:, :, None].expand(3, 5, 2, 11)
    there = torch.arange(5) < torch.tensor([[5], [0], [2]])
    kept = only_there(codes, there)
    assert torch.equal(kept[there], codes[there])
    assert (kept[~there] == -1).all()


def test_a_descent_gives_room_for_what_its_batches_have_and_not_much_more(monkeypatch):
    seen = []
    whole = LoraStack.losses

    def watched(self, codes, weights=None):
        needed = tight(codes)
        assert needed.tokens <= self.room.tokens
        assert needed.counted <= self.room.counted
        seen.append((needed.tokens, self.room.tokens, codes[0].numel()))
        return whole(self, codes, weights)

    monkeypatch.setattr(LoraStack, "losses", watched)
    points = people().points
    parts = [points.subset(np.arange(a, b)) for a, b in ((0, 30), (10, 47))]
    dataclasses.replace(LORA, epochs=40).fit_many(parts, [Streams("a"), Streams("b")])
    needed, given, padded = np.array(seen).sum(0)
    assert needed <= given < 0.9 * padded


@pytest.mark.parametrize("name", ["npo", "sim-npo", "rmu", "neg-grad-plus"])
def test_a_member_that_diverged_leaves_the_others_alone(name):
    """Members share rows of one computation, and 0 times NaN is NaN."""
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", lr=1e-3, epochs=2, batch_size=5)
    sound = [request(key="one"), request(key="two", n_retain=13)]
    diverged = request(key="three")
    diverged = dataclasses.replace(diverged, model=copy.deepcopy(diverged.model))
    for parameter in diverged.model.parameters():
        parameter.data.fill_(torch.nan)
    wanted = method.unlearn_many(sound)
    again = [request(key="one"), request(key="two", n_retain=13)]
    lost, *found = method.unlearn_many([diverged, *again])
    assert all(bool(parameter.isnan().all()) for parameter in lost.parameters())
    for one, other in zip(wanted, found, strict=True):
        for name, tensor in one.state_dict().items():
            torch.testing.assert_close(other.state_dict()[name], tensor, rtol=1e-3, atol=1e-5)


def test_after_a_descent_a_larger_batch_is_computed_whole():
    points = people().points
    stack = record_stack([copy.deepcopy(request().model)], points)
    feed = Feed(batches_of(points.subset(np.arange(4)), [np.arange(2), np.arange(2, 4)]), 2)
    Descent(stack, points, [feed], LORA.steps, batch_size=2).run()
    codes = points.whole_inputs[None, :40, 0]
    found, _ = stack.losses(codes)
    wanted, _ = losses(stack.members()[0], codes[0])
    torch.testing.assert_close(found[0].double(), wanted, rtol=1e-4, atol=1e-4)


def test_a_descent_that_goes_on_has_the_rooms_of_one_that_was_not_stopped(monkeypatch):
    """How much a room has space for depends on the steps before, and sizes of products may decide the last bits."""
    codes = torch.full((12, 1, 100), -1, dtype=torch.int32)
    codes[:, 0, :20] = -9
    codes[2:4, 0] = 7  # 99 tokens count
    codes[4:, 0] = torch.tensor([-9] * 90 + [7] * 10)
    points = Points.of(codes, torch.ones(12, dtype=torch.int64), task=CAUSAL_LM)
    seen, plain = [], Descent._step_in

    def watched(self, room, n_steps):
        seen.append((room.tokens, room.counted))
        return plain(self, room, n_steps)

    monkeypatch.setattr(trainer, "CHUNK_STEPS", 2)
    monkeypatch.setattr(Descent, "_step_in", watched)
    monkeypatch.setattr(trainer.State, "take", lambda self, tensors: None)
    rooms = {}
    for n_done in (0, 2):
        kept = (n_done, {}) if n_done else None
        monkeypatch.setattr(
            trainer, "begin", lambda kept=kept: SimpleNamespace(read=lambda _: kept, keep=lambda *_: None)
        )
        stack = record_stack([copy.deepcopy(request().model)], points)
        order = np.arange(12).reshape(6, 2)
        seen.clear()
        Descent(stack, points, [Feed(batches_of(points, order), 6)], LORA.steps, batch_size=2).run()
        rooms[n_done] = list(seen)
    assert rooms[0] == [(200, 198), (64, 64), (200, 198), (200, 198)]  # of two in one piece, the larger is made first
    assert rooms[2] == rooms[0][2:]


# -- nothing waits for the host ----------------------------------------------------------------------------------------

WAITS = ("_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "equal", "lift_fresh", "_unique2")
"""What reads a tensor's value, finds a size by it, or brings numbers from the host: none of it can be captured."""


class NothingWaits(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        by_mask = name in ("index", "index_put", "index_put_") and any(
            i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]
        )
        ragged = name == "repeat_interleave" and func._overloadname == "Tensor"
        if name in WAITS or by_mask or ragged:
            raise AssertionError(f"a step waits for the host: {func}")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def _steps_watched(monkeypatch):
    plain = Descent._step

    def step(self):
        with NothingWaits():
            plain(self)

    monkeypatch.setattr(Descent, "_step", step)


def test_the_watch_sees_what_waits():
    x = torch.arange(3)
    for waits in (lambda: x.sum().item(), lambda: x[x > 1], lambda: bool(x[0]), lambda: x + torch.tensor(1)):
        with pytest.raises(AssertionError, match="waits"), NothingWaits():
            waits()


METHODS = ["npo", "sim-npo", "i-dont-know", "rmu", "task-vector", "neg-grad", "neg-grad-plus", "fine-tune"]


@pytest.mark.usefixtures("_steps_watched")
@pytest.mark.parametrize("name", METHODS)
def test_no_step_of_a_method_waits_for_the_host(name):
    method = dataclasses.replace(plugins.unlearners.load(name)(), optimiser="adamw", epochs=1, batch_size=5)
    method.unlearn_many([request(key="one"), request(key="two", n_retain=13)])


@pytest.mark.usefixtures("_steps_watched")
def test_no_step_of_training_waits_for_the_host():
    points = people().points
    LORA.fit_many([points.subset(np.arange(30)), points.subset(np.arange(9))], [Streams("a"), Streams("b")])


# -- captures, which a CPU only pretends -------------------------------------------------------------------------------


def pretended(seen):
    """Tries the step out as a capture does, and replays it by doing it."""

    def capture(step, device, *, n_trials, pool=None):
        for _ in range(n_trials):
            step()
        seen.append(pool)
        return SimpleNamespace(replay=step, pool=lambda: "a pool")

    return capture


def test_what_is_tried_out_before_captures_changes_nothing(monkeypatch):
    """Also where a room is first needed in the middle of a descent, whose moments are then not 0."""
    points = people().points
    parts = [points.subset(np.arange(a, b)) for a, b in ((0, 30), (10, 47), (20, 29))]
    learner, streams = dataclasses.replace(LORA, epochs=45), [Streams(f"member {k}") for k in range(3)]
    plain = learner.fit_many(parts, streams)
    seen = []
    monkeypatch.setattr(Descent, "_is_worth_capturing", lambda self, n_steps: True)
    monkeypatch.setattr(trainer, "capture", pretended(seen))
    captured = learner.fit_many(parts, streams)
    for one, other in zip(plain, captured, strict=True):
        assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in one.state_dict().items())
    assert seen[0] is None
    assert 1 < len(seen) < 12
    assert set(seen[1:]) == {"a pool"}


def test_a_short_descent_has_one_room(monkeypatch):
    seen = []
    monkeypatch.setattr(Descent, "_is_worth_capturing", lambda self, n_steps: True)
    monkeypatch.setattr(trainer, "capture", pretended(seen))
    plugins.unlearners.load("npo")(epochs=4, batch_size=3).unlearn_many([request(key="one"), request(key="two")])
    assert seen == [None]


def test_whole_models_have_no_rooms():
    from .world import WHOLE, original

    stack = record_stack([copy.deepcopy(original(WHOLE))], people().points)
    assert stack.sizes is None


# -- in bfloat16, as on a GPU ------------------------------------------------------------------------------------------


def test_in_bfloat16_losses_and_gradients_are_near_those_in_float32():
    """The base and the activations are low, losses and the gradient of adapters float32: on a CPU too, where it is not
    used, nothing mixes them wrongly."""
    codes, found = some_codes(), []
    for dtype in (torch.float32, torch.bfloat16):
        stack = stack_of()
        stack.body = stack.first.base.on(torch.device("cpu"), dtype)
        stack.adapted = type(stack.adapted)(stack.body, stack.first)
        for room in (tight(codes), None):
            stack.room = room
            loss, _ = stack.losses(codes)
            states = stack.hidden(codes, 2)
            assert states.dtype == dtype
            (gradient,) = torch.autograd.grad(loss.sum() + states.float().square().mean(), stack.weights)
            assert loss.dtype == gradient.dtype == torch.float32
            found.append((loss.detach(), gradient))
    for loss, gradient in found[1:]:
        assert float((loss - found[0][0]).norm() / found[0][0].norm()) < 0.02
        assert float((gradient - found[0][1]).norm() / found[0][1].norm()) < 0.1
