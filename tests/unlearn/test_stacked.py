"""Many requests as one stack: what each gets is what it gets alone, up to rounding. On a CPU, in float32."""

import copy
import dataclasses
import functools

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.stacked import trainer
from forgetgauge.learn.stacked.members import reason_against
from forgetgauge.learn.stacked.trainer import stacked_squares
from forgetgauge.models.resnet import BasicBlock, PadShortcut, ResNet
from forgetgauge.models.small_cnn import SmallCNN
from forgetgauge.streams import Streams
from forgetgauge.tasks.regression import REGRESSION
from forgetgauge.unlearn import stacked
from forgetgauge.unlearn.fine_tune import FineTune
from forgetgauge.unlearn.fisher import Fisher
from forgetgauge.unlearn.neg_grad import NegGrad
from forgetgauge.unlearn.salun import SalUn
from forgetgauge.unlearn.ssd import SSD
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner

from .test_every_unlearner import WithDropout, few_epochs
from .world import changed, state

SIZES = [(37, 13), (30, 9), (23, 5)]
"""(|R|, |F|) of the members: 3, 2 and 2 batches of at most 16 points an epoch of R."""
TOLERANCE = 1e-4


def little_resnet(input_shape, n_classes):
    """Stem, a plain block, and one that halves the image and doubles the channels."""
    stem = nn.Sequential(nn.Conv2d(input_shape[0], 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    blocks = [BasicBlock(4, 4, 1, "batch", nn.Identity()), BasicBlock(4, 8, 2, "batch", PadShortcut(4, 8))]
    return ResNet(stem, blocks, 8, n_classes)


MODELS = {
    "batch norm": functools.partial(SmallCNN, width=4, norm="batch"),
    "no norm": functools.partial(SmallCNN, width=4, norm="none"),
    "resnet": little_resnet,
}
GROUP_NORM = functools.partial(SmallCNN, width=4, norm="group")

DESCENTS = {
    "neg-grad": few_epochs("neg-grad", batch_size=4),
    "neg-grad train": few_epochs("neg-grad", batch_size=4, batch_norm="train"),
    "fine-tune": few_epochs("fine-tune", weight_decay=0.01),
    "fine-tune train": few_epochs("fine-tune", batch_norm="train"),
    "random-relabel": few_epochs("random-relabel"),
    "random-relabel train": few_epochs("random-relabel", batch_norm="train"),
    "salun": few_epochs("salun"),
    "salun frozen": few_epochs("salun", batch_norm="frozen", fraction=0.3),
    "ft-final": few_epochs("ft-final", weight_decay=0.01),
    "retrain-final": few_epochs("retrain-final"),
    "ssd by equal batches": SSD(alpha=1.5, importance="equal-batches", batch_size=4),
    "ssd by the published batches": SSD(alpha=1.5, importance="published-batches", batch_size=4),
}
SQUARES = {
    "fisher": Fisher(alpha=1e-5),
    "fisher sampled": Fisher(labels="sampled"),
    "ssd": SSD(alpha=1.5),
}
METHODS = {**DESCENTS, **SQUARES}


@pytest.fixture
def stacks_on_cpu(monkeypatch):
    monkeypatch.setattr(stacked, "DEVICES", ("cuda", "cpu"))


@functools.cache
def _members(name):
    factory = {**MODELS, "group norm": GROUP_NORM, "dropout": WithDropout}[name]
    learner = Minibatch(model=plugins.models.bind(factory), epochs=2, batch_size=16)
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 4
    inputs = rng.standard_normal((60, 1, 8, 8)) + labels[:, None, None, None] / 2
    points = Points.of(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))
    members = []
    for k, (n_retain, n_forget) in enumerate(SIZES):
        known = rng.permutation(60)[: n_retain + n_forget]
        original = learner.fit(points.subset(known), Streams(f"original {k}"))
        members.append((original, points.subset(known[:n_retain]), points.subset(known[n_retain:])))
    return learner, members


def requests_on(name):
    learner, members = _members(name)
    return [
        Request(copy.deepcopy(model), retain, forget, Context(learner, Streams(f"job {k}"), n_gradients=7))
        for k, (model, retain, forget) in enumerate(members)
    ]


def alone(unlearner, requests):
    contexts = [dataclasses.replace(r.context) for r in requests]
    models = [unlearner.unlearn(r.model, r.retain, r.forget, c) for r, c in zip(requests, contexts, strict=True)]
    return models, [context.n_gradients for context in contexts]


def in_a_stack(unlearner, requests, monkeypatch):
    """What the stack makes; falling back to `unlearn` fails."""
    with monkeypatch.context() as patch:
        patch.setattr(type(unlearner), "unlearn", None)
        models = unlearner.unlearn_many(requests)
    return models, [r.context.n_gradients for r in requests]


def farthest(models, others):
    """The largest difference in any weight or buffer."""
    return max(
        (a.double() - b.double()).abs().max().item()
        for one, other in zip(models, others, strict=True)
        for a, b in zip(state(one).values(), state(other).values(), strict=True)
    )


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_a_member_of_a_stack_is_unlearned_as_if_alone(method, model, monkeypatch):
    unlearner, requests = METHODS[method], requests_on(model)
    expected, cost = alone(unlearner, requests)
    assert farthest(expected, [r.model for r in requests]) > 10 * TOLERANCE, "the method does nothing here"
    found, spent = in_a_stack(unlearner, requests, monkeypatch)
    assert farthest(found, expected) < TOLERANCE
    assert spent == cost


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", METHODS)
def test_the_models_given_are_left_untouched(method, monkeypatch):
    requests = requests_on("batch norm")
    before = [state(r.model) for r in requests]
    found, _ = in_a_stack(METHODS[method], requests, monkeypatch)
    for request, tensors, result in zip(requests, before, found, strict=True):
        assert all(torch.equal(tensor, tensors[name]) for name, tensor in request.model.state_dict().items())
        assert all(p.requires_grad and p.grad is None for p in request.model.parameters())
        assert not {t.data_ptr() for t in request.model.state_dict().values()} & {
            t.data_ptr() for t in result.state_dict().values()
        }
        assert type(result) is type(request.model)
        assert not any(module.training for module in result.modules())
        assert all(p.requires_grad and p.is_leaf for p in result.parameters())


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", ["fine-tune train", "salun", "ft-final", "fisher", "ssd"])
def test_a_stack_of_one_is_a_stack(method, monkeypatch):
    requests = requests_on("resnet")[1:2]
    expected, _ = alone(METHODS[method], requests)
    assert farthest(in_a_stack(METHODS[method], requests, monkeypatch)[0], expected) < TOLERANCE


STRENGTHS = {"lr": [0.0, 3e-4, 0.02], "alpha": [1e-6, 1.1, 3.0]}


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", [name for name in METHODS if not name.startswith(("ft-final", "retrain-final"))])
@pytest.mark.parametrize("model", ["batch norm", "no norm"])
def test_members_of_one_stack_may_have_strengths_of_their_own(method, model, monkeypatch):
    """Each model at each strength is as if alone at that strength; those that are given twice are left untouched."""
    unlearner = METHODS[method]
    parameter = type(unlearner).strength.parameter
    requests = [
        dataclasses.replace(r, strength=value, context=Context(r.context.learner, Streams(f"{k} at {value}")))
        for k, r in enumerate(requests_on(model))
        for value in STRENGTHS[parameter]
    ]
    before = [state(r.model) for r in requests]
    expected, cost = [], []
    for r in requests:
        made, spent = alone(dataclasses.replace(unlearner, **{parameter: r.strength}), [r])
        expected, cost = expected + made, cost + spent
    found, spent = in_a_stack(unlearner, requests, monkeypatch)
    assert farthest(found, expected) < TOLERANCE
    assert spent == cost
    assert len({id(one) for one in found}) == len(requests)
    for request, tensors in zip(requests, before, strict=True):
        assert all(torch.equal(tensor, tensors[name]) for name, tensor in request.model.state_dict().items())
    n = len(STRENGTHS[parameter])
    assert farthest(found[:1], found[n - 1 : n]) > 10 * TOLERANCE, "the strength does nothing here"


def test_every_shipped_method_that_may_differ_in_a_stack_is_tested_there():
    """One that did not heed the strengths of its requests would unlearn all models at the first one's."""
    from tests.language.test_methods import WITH_STRENGTHS

    tested = {type(unlearner) for unlearner in METHODS.values()} | set(map(plugins.unlearners.load, WITH_STRENGTHS))
    entries = plugins.unlearners.entries
    assert {plugins.unlearners.load(name) for name, entry in entries.items() if entry.differs_in} <= tested


def test_methods_without_a_stack_heed_the_strengths_of_their_requests_too():
    requests = [dataclasses.replace(r, strength=0.01 * k) for k, r in enumerate(requests_on("dropout"))]
    found = FineTune(epochs=1).unlearn_many(requests)
    for model, r in zip(found, requests_on("dropout"), strict=True):
        (wanted,), _ = alone(FineTune(epochs=1, lr=0.01 * found.index(model)), [r])
        assert not changed(model, wanted)


def test_importances_are_computed_once_for_a_model_at_many_strengths(monkeypatch):
    monkeypatch.setattr(stacked, "DEVICES", ("cuda", "cpu"))
    widths = []
    squares = stacked_squares
    for module in ("fisher", "ssd"):
        monkeypatch.setattr(
            f"forgetgauge.unlearn.{module}.stacked_squares",
            lambda stack, parts, *rest, **how: widths.append(len(parts)) or squares(stack, parts, *rest, **how),
        )
    for unlearner in (Fisher(), SSD(importance="per-sample")):
        requests = [dataclasses.replace(r, strength=s) for r in requests_on("resnet") for s in (1e-6, 1e-5, 2.0)]
        unlearner.unlearn_many(requests)
    assert widths == [3, 3, 3]  # of SSD on F, and on R and F


@pytest.mark.parametrize(("precision", "rounds"), [("bfloat16", True), ("tf32", True), ("float32", False)])
@pytest.mark.parametrize("name", ["fine-tune", "neg-grad-plus", "fisher", "ft-final"])
def test_what_is_unlearned_alone_is_computed_in_what_the_learner_trained_in(name, precision, rounds, monkeypatch):
    """As far as TF32 goes; a last layer is float32 always."""
    monkeypatch.setattr(stacked, "_precision_of", lambda request: precision)
    unlearner, seen = few_epochs(name), []

    def noted(model, *given):
        seen.append((torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32))
        return model

    with monkeypatch.context() as patch:
        patch.setattr(type(unlearner), "unlearn", lambda self, *given: noted(*given))
        before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        unlearner.unlearn_many(requests_on("dropout"))
    assert set(seen) == {(rounds and name != "ft-final",) * 2}
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before


def taught_otherwise(request, k):
    """The same request on the same inputs, every point labelled k classes further."""
    labels = (request.retain.whole_labels + k) % 4
    retain, forget = (dataclasses.replace(part, whole_labels=labels) for part in (request.retain, request.forget))
    return dataclasses.replace(request, retain=retain, forget=forget)


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", METHODS)
def test_each_member_of_a_stack_has_the_labels_it_was_taught(method, monkeypatch):
    unlearner, requests = METHODS[method], [taught_otherwise(r, k) for k, r in enumerate(requests_on("no norm"))]
    expected, cost = alone(unlearner, requests)
    found, spent = in_a_stack(unlearner, requests, monkeypatch)
    assert farthest(found, expected) < TOLERANCE
    assert spent == cost
    as_the_first, _ = in_a_stack(unlearner, requests_on("no norm"), monkeypatch)
    labels_matter = not method.startswith("fisher")  # whose labels are the model's own
    assert (farthest(found[1:], as_the_first[1:]) > 10 * TOLERANCE) is labels_matter


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", METHODS)
def test_group_norms_stack(method, monkeypatch):
    requests = requests_on("group norm")
    expected, cost = alone(METHODS[method], requests)
    found, spent = in_a_stack(METHODS[method], requests, monkeypatch)
    assert farthest(found, expected) < TOLERANCE
    assert spent == cost


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", [name for name, how in METHODS.items() if not getattr(how, "needs_classes", False)])
def test_a_real_number_to_be_learnt_is_unlearned_as_if_alone(method, monkeypatch):
    """Whatever a stack makes of its members' points, the task is theirs."""
    _, members = _members("no norm")
    inputs = members[0][1].whole_inputs
    points = Points.of(inputs, inputs.mean((1, 2, 3)) * 4, task=REGRESSION)
    learner = Minibatch(model=plugins.models.bind(MODELS["no norm"]), lr=0.01, epochs=2, batch_size=16)
    requests = []
    for k, (_, *parts) in enumerate(members):
        retain, forget = (points.subset(part.index) for part in parts)
        context = Context(learner, Streams(f"job {k}"))
        requests.append(Request(learner.fit(retain, Streams(f"original {k}")), retain, forget, context))
    expected, cost = alone(METHODS[method], requests)
    assert farthest(expected, [r.model for r in requests]) > 10 * TOLERANCE, "the method does nothing here"
    found, spent = in_a_stack(METHODS[method], requests, monkeypatch)
    assert farthest(found, expected) < TOLERANCE
    assert spent == cost


def assert_alone(unlearner, requests):
    """To the bit, and what was spent on the way to the answer is not counted."""
    expected, cost = alone(unlearner, requests)
    found = unlearner.unlearn_many(requests)
    assert not any(changed(one, other) for one, other in zip(found, expected, strict=True))
    assert [r.context.n_gradients for r in requests] == cost


def test_on_a_cpu_there_is_no_stack():
    assert reason_against(stacked.stack_of, requests_on("batch norm")) == "the kernels are for a GPU"
    assert all(isinstance(unlearner, StackedUnlearner) for unlearner in METHODS.values())


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("method", ["fine-tune", "ft-final", "fisher"])
def test_an_architecture_without_a_stack_is_unlearned_alone(method):
    assert_alone(METHODS[method], requests_on("dropout"))


@pytest.mark.usefixtures("stacks_on_cpu")
def test_requests_that_differ_in_more_than_their_sets_cannot_be_stacked():
    requests = requests_on("batch norm")
    assert reason_against(stacked.stack_of, requests) is None
    assert reason_against(stacked.stack_of, []) == "nothing is requested"
    frozen = requests_on("batch norm")
    frozen[1].model.head.weight.requires_grad_(False)
    assert "frozen" in reason_against(stacked.stack_of, frozen)
    stacked.stack_of([taught_otherwise(r, k) for k, r in enumerate(requests)])
    relabelled = dataclasses.replace(requests[2].forget, whole_labels=requests[2].forget.whole_labels.clone())
    mixed = [*requests[:2], dataclasses.replace(requests[2], forget=relabelled)]
    assert "labelled differently" in reason_against(stacked.stack_of, mixed)
    assert "different" in reason_against(stacked.stack_of, [requests[0], requests_on("resnet")[1]])
    doubles = [dataclasses.replace(r, model=r.model.double()) for r in requests]
    assert "not float32" in reason_against(stacked.stack_of, doubles)


@pytest.mark.usefixtures("stacks_on_cpu")
def test_a_frozen_weight_stays_frozen_in_a_stack():
    requests = requests_on("batch norm")
    requests[0].model.body[0].weight.requires_grad_(False)
    assert_alone(FineTune(epochs=1), requests)


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("model", MODELS)
def test_each_member_of_salun_keeps_its_own_weights_outside_its_mask_to_the_bit(fraction, model, monkeypatch):
    requests, how = requests_on(model), SalUn(fraction=fraction, epochs=2, batch_size=8, weight_decay=0.1)
    n_weights = sum(p.numel() for p in requests[0].model.parameters())
    stack = stacked.stack_of(requests)
    masks = how._masks(stack, requests)
    assert masks.sum(1).tolist() == [int(fraction * n_weights)] * 3
    assert not masks[:, ~stack.is_weight].any()
    found, _ = in_a_stack(how, requests, monkeypatch)
    for result, request, mask in zip(found, requests, stack.tables_of(masks), strict=True):
        for name, parameter in result.named_parameters():
            original = request.model.get_parameter(name)
            assert torch.equal(parameter[~mask[name]], original[~mask[name]])


@pytest.mark.usefixtures("stacks_on_cpu")
def test_of_equal_gradients_the_first_of_the_models_own_order_are_kept():
    requests = requests_on("no norm")
    for request in requests:
        with torch.no_grad():
            request.model.head.weight.zero_()  # nothing reaches the body, whose gradients are all 0
    stack = stacked.stack_of(requests)
    masks = SalUn(fraction=0.5)._masks(stack, requests)
    for table in stack.tables_of(masks):
        assert table["body.0.weight"].all()  # registered first
        assert table["body.0.bias"].all()
        assert table["head.bias"].all()  # its gradient is not 0
        assert not table["body.6.weight"].all()


@pytest.mark.usefixtures("stacks_on_cpu")
def test_salun_answers_alone_where_a_batch_of_one_point_must_not_move_statistics(monkeypatch):
    requests = requests_on("batch norm")
    requests[1] = dataclasses.replace(requests[1], forget=requests[1].forget.subset(requests[1].forget.index[:1]))
    assert_alone(SalUn(epochs=2, batch_size=8), requests)
    frozen, plain = SalUn(epochs=2, batch_size=8, batch_norm="frozen"), requests_on("no norm")
    plain[1] = dataclasses.replace(plain[1], forget=plain[1].forget.subset(plain[1].forget.index[:1]))
    for how, asked in ((frozen, requests), (SalUn(epochs=2, batch_size=8), plain)):
        expected, _ = alone(how, asked)
        assert farthest(in_a_stack(how, asked, monkeypatch)[0], expected) < TOLERANCE


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("name", ["ft-final", "retrain-final"])
def test_only_the_heads_change(name, monkeypatch):
    requests = requests_on("resnet")
    for result, request in zip(in_a_stack(few_epochs(name), requests, monkeypatch)[0], requests, strict=True):
        assert changed(result, request.model) == {"head.weight", "head.bias"}


@pytest.mark.usefixtures("stacks_on_cpu")
def test_heads_are_tuned_alone_where_the_bodies_statistics_move():
    assert_alone(few_epochs("ft-final", batch_norm="train"), requests_on("batch norm"))


class NotItsLast(SmallCNN):
    """Goes on after its head."""

    def forward(self, x):
        return torch.relu(super().forward(x))


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize("name", ["ft-final", "retrain-final"])
def test_heads_are_tuned_alone_where_they_are_not_the_last_layer(name):
    requests = []
    for request in requests_on("no norm"):
        model = NotItsLast((1, 8, 8), 4, width=4, norm="none")
        model.load_state_dict(request.model.state_dict())
        requests.append(dataclasses.replace(request, model=model))
    stacked.stack_of(requests)
    assert_alone(few_epochs(name), requests)


@pytest.mark.usefixtures("stacks_on_cpu")
def test_a_head_without_bias_is_tuned_too(monkeypatch):
    requests = requests_on("no norm")
    for request in requests:
        request.model.head = nn.Linear(request.model.head.in_features, 4, bias=False)
    how = few_epochs("retrain-final")
    expected, _ = alone(how, requests)
    assert farthest(in_a_stack(how, requests, monkeypatch)[0], expected) < TOLERANCE


@pytest.mark.usefixtures("stacks_on_cpu")
@pytest.mark.parametrize(
    "how", [NegGrad(epochs=0), FineTune(lr=0.0, weight_decay=0.1), SSD(alpha=1e9), Fisher(alpha=0)]
)
def test_what_changes_nothing_alone_changes_nothing_in_a_stack(how, monkeypatch):
    requests = requests_on("batch norm")
    for result, request in zip(in_a_stack(how, requests, monkeypatch)[0], requests, strict=True):
        assert not changed(result, request.model)


@pytest.mark.usefixtures("stacks_on_cpu")
def test_members_may_finish_long_before_each_other(monkeypatch):
    monkeypatch.setattr(trainer, "CHUNK_STEPS", 3)  # the members take 8, 6 and 4 steps
    requests, how = requests_on("no norm"), NegGrad(epochs=2, batch_size=4)
    expected, _ = alone(how, requests)
    assert farthest(in_a_stack(how, requests, monkeypatch)[0], expected) < TOLERANCE


@pytest.mark.usefixtures("stacks_on_cpu")
def test_a_stack_on_a_cpu_computes_in_float32_whatever_the_learners_precision():
    for precision in ("bfloat16", "tf32", "float32", "of its own"):
        learner = dataclasses.replace(_members("batch norm")[0], precision=precision)
        requests = [
            dataclasses.replace(r, context=Context(learner, r.context.streams)) for r in requests_on("batch norm")
        ]
        assert stacked.stack_of(requests).dtype == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_a_stack_on_a_gpu_is_what_models_alone_are_on_a_cpu(method, model, monkeypatch):
    unlearner, requests = METHODS[method], requests_on(model)
    expected, cost = alone(unlearner, requests)
    there = requests[0].retain.on(torch.device("cuda"))
    sent = [
        Request(r.model.to("cuda"), there.subset(r.retain.index), there.subset(r.forget.index), r.context)
        for r in requests
    ]
    found, spent = in_a_stack(unlearner, sent, monkeypatch)
    assert farthest([model.cpu() for model in found], expected) < 2e-3
    assert spent == cost
