"""A stack of models against each of them alone, by autograd in float64."""

import copy
import operator

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from forgetgauge.learn.stacked.members import NotStackable, reason_against
from forgetgauge.learn.stacked.steps import ALIGNMENT
from forgetgauge.learn.stacked.traced import TracedStack

from .stacks import MODELS, N_CLASSES, apart, batch, both_ways, build, in_float64, own_gradient

QUICK = settings(max_examples=30, deadline=None)
BATCH, N_VALID = 4, (4, 2, 3)
HEAVY = ["resnet18", "resnet18, imagenet stem"]
"""Eleven million weights: two members, two rows, one mode (group norms know but one), and autograd in float32."""
LIGHT = [name for name in MODELS if name not in HEAVY]
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


# -- The same mathematics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_logits_gradients_and_statistics_are_those_of_the_model_alone_on_its_own_rows(name):
    n_valid = (2, 1) if name in HEAVY else N_VALID
    models, (x, y) = build(name, len(n_valid)), batch(name, len(n_valid), max(n_valid))
    alone, stack = [copy.deepcopy(m) if name in HEAVY else in_float64(m) for m in models], TracedStack(models)
    for train in (False,) if name in HEAVY else (True, False):
        logits, gradient = both_ways(stack, x, y, n_valid, train=train)
        for member, model in enumerate(alone):
            mine, labels = x[member, : n_valid[member]].to(next(model.parameters()).dtype), y[member, : n_valid[member]]
            expected = own_gradient(model.train(train), mine, labels)  # moves the running statistics
            assert apart(stack.tables_of(gradient)[member], expected) < 2e-4
            for norm, (mean, var) in stack.statistics.items():
                torch.testing.assert_close(mean[member].double(), model.get_submodule(norm).running_mean, **CLOSE)
                torch.testing.assert_close(var[member].double(), model.get_submodule(norm).running_var, **CLOSE)
            if not train:
                torch.testing.assert_close(logits[member, : n_valid[member]], model(mine).float(), **CLOSE)


@pytest.mark.parametrize("name", LIGHT)
def test_logits_in_train_mode_are_those_of_the_model_alone(name):
    models, (x, _) = build(name, 3), batch(name, 3, BATCH)
    logits, _ = TracedStack(models).forward(x, torch.tensor(N_VALID), train=True)
    for member, model in enumerate(models):
        n = N_VALID[member]
        torch.testing.assert_close(
            logits[member, :n].double(), in_float64(model).train()(x[member, :n].double()), **CLOSE
        )


@pytest.mark.parametrize("name", LIGHT)
def test_squares_are_those_of_single_examples_added_up(name):
    models, (x, y) = build(name, 3), batch(name, 3, BATCH)
    stack = TracedStack(models)
    _, squares = both_ways(stack, x, y, N_VALID, train=False, sums="squares")
    for member, model in enumerate(models):
        alone = in_float64(model).eval()
        each = [own_gradient(alone, x[member, [one]].double(), y[member, [one]]) for one in range(N_VALID[member])]
        expected = {part: sum(table[part] ** 2 for table in each) for part in each[0]}
        assert apart(stack.tables_of(squares)[member], expected) < 2e-4


def test_squares_leave_statistics_alone():
    x, y = batch("small-cnn, batch norm", 2, BATCH)
    stack = TracedStack(build("small-cnn, batch norm", 2))
    before = [tensor.clone() for pair in stack.statistics.values() for tensor in pair]
    both_ways(stack, x, y, (4, 4), train=False, sums="squares")
    assert all(map(torch.equal, before, (tensor for pair in stack.statistics.values() for tensor in pair)))


def test_one_pass_forwards_serves_several_backwards():
    """∂/∂logits is linear: the gradient of a sum of directions is the sum of their gradients."""
    name = "resnet20"
    stack, (x, _) = TracedStack(build(name, 2)), batch(name, 2, BATCH)
    logits, tape = stack.forward(x, train=False, keep=True)
    directions = torch.randn(2, *logits.shape, generator=torch.Generator().manual_seed(0))
    parts = []
    for direction in (*directions, directions.sum(0)):
        stack.backward(tape, direction)
        parts.append(stack.gradient.clone())
    torch.testing.assert_close(parts[0] + parts[1], parts[2], rtol=1e-3, atol=1e-4)


# -- Members do not meet -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", LIGHT)
def test_what_lies_beyond_a_members_rows_does_not_matter_to_the_bit(name, train):
    (x, y), seen = batch(name, 3, BATCH), []
    other, (noise, wrong) = x.clone(), batch(name, 3, BATCH, seed=9)
    for member, n in enumerate(N_VALID):
        other[member, n:] = 50 * noise[member, n:]
        wrong[member, :n] = y[member, :n]
    for inputs, labels in ((x, y), (other, wrong)):
        stack = TracedStack(build(name, 3))
        logits, gradient = both_ways(stack, inputs, labels, N_VALID, train=train)
        statistics = [tensor for pair in stack.statistics.values() for tensor in pair]
        seen.append([*(logits[member, :n] for member, n in enumerate(N_VALID)), gradient, *statistics])
    assert all(map(torch.equal, *seen))


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", LIGHT)
def test_an_empty_batch_has_no_gradient_and_moves_no_statistics(name, train):
    stack, (x, y) = TracedStack(build(name, 3)), batch(name, 3, BATCH)
    before = [tensor[1].clone() for pair in stack.statistics.values() for tensor in pair]
    _, gradient = both_ways(stack, x, y, (4, 0, 3), train=train)
    assert not gradient[1].any()  # NaN is something
    assert gradient[[0, 2]].any(1).all()
    assert all(map(torch.equal, before, (tensor[1] for pair in stack.statistics.values() for tensor in pair)))


# -- Rows and tables ---------------------------------------------------------------------------------------------


def little(channels, wide, window, n_hidden):
    """Parameters of sizes that are rarely multiples of the alignment."""
    return nn.Sequential(
        nn.Conv2d(channels, wide, window, padding=window // 2, bias=False), nn.BatchNorm2d(wide), nn.ReLU(),
        nn.Flatten(), nn.Linear(wide * 16, n_hidden), nn.ReLU(), nn.Linear(n_hidden, 3),
    )  # fmt: skip


LITTLE = {
    "channels": st.integers(1, 5),
    "wide": st.integers(1, 7),
    "window": st.sampled_from([1, 3, 5]),
    "n_hidden": st.integers(1, 9),
}


@QUICK
@given(**LITTLE, n_models=st.integers(1, 4), seed=st.integers(0, 99))
def test_rows_and_tables_are_inverse(channels, wide, window, n_hidden, n_models, seed):
    stack = TracedStack([little(channels, wide, window, n_hidden) for _ in range(n_models)])
    generator = torch.Generator().manual_seed(seed)
    tables = [
        {name: torch.randn(p.shape, generator=generator) for name, p in stack.models[0].named_parameters()}
        for _ in range(n_models)
    ]
    rows = stack.rows_of(tables)
    for table, again in zip(tables, stack.tables_of(rows), strict=True):
        assert table.keys() == again.keys()
        assert all(torch.equal(table[name], again[name]) for name in table)
    assert torch.equal(stack.rows_of(stack.tables_of(rows)), rows)


@QUICK
@given(**LITTLE)
def test_every_parameter_begins_at_a_multiple_of_the_alignment_and_none_overlap(channels, wide, window, n_hidden):
    stack = TracedStack([little(channels, wide, window, n_hidden)])
    n_weights = sum(p.numel() for p in stack.models[0].parameters())
    assert all(slot.start % ALIGNMENT == 0 for slot in stack.slots.values())
    assert int(stack.is_weight.sum()) == n_weights == sum(slot.stop - slot.start for slot in stack.slots.values())
    assert stack.width % ALIGNMENT == 0
    assert stack.weights.shape == stack.gradient.shape == (1, stack.width)


@pytest.mark.parametrize("sums", ["gradient", "squares"])
def test_gaps_between_parameters_stay_zero_and_have_no_gradient(sums):
    name = "small-cnn, no norm"
    stack = TracedStack(build(name, 2))
    gaps = ~stack.is_weight
    assert gaps.any()
    stack.gradient.fill_(7)
    stack.gradient[:, gaps] = 0
    _, gradient = both_ways(stack, *batch(name, 2, BATCH), (4, 2), train=False, sums=sums)
    assert not gradient[:, gaps].any()
    assert not stack.weights[:, gaps].any()
    assert (gradient[:, ~gaps] != 7).all()  # every other place is written, none is added to


def test_members_come_back_with_what_was_learnt():
    name = "small-cnn, batch norm"
    models, (x, y) = build(name, 2), batch(name, 2, BATCH)
    began = [{part: tensor.clone() for part, tensor in model.state_dict().items()} for model in models]
    stack = TracedStack(models)
    _, gradient = both_ways(stack, x, y, (4, 3), train=True)
    stack.weights -= 0.1 * gradient
    back = stack.members([5, 7])
    assert all(map(operator.is_, back, models))
    for member, model in enumerate(back):
        moved = model.state_dict()
        for part, change in stack.tables_of(gradient)[member].items():
            torch.testing.assert_close(moved[part], began[member][part] - 0.1 * change)
        for norm, (mean, var) in stack.statistics.items():
            assert torch.equal(moved[f"{norm}.running_mean"], mean[member])
            assert torch.equal(moved[f"{norm}.running_var"], var[member])
            assert not torch.equal(mean[member], began[member][f"{norm}.running_mean"])
            assert int(moved[f"{norm}.num_batches_tracked"]) == (5, 7)[member]
        torch.testing.assert_close(stack.forward(x)[0][member], model.eval()(x[member]), **CLOSE)


def test_a_stack_leaves_its_models_alone_until_they_are_asked_for():
    models = build("linear", 2)
    stack = TracedStack(models)
    before = models[0].head.weight.clone()
    stack.weights += 1
    assert torch.equal(models[0].head.weight, before)


def test_bfloat16_activations_still_have_float32_logits_and_gradients_nearby():
    name = "small-cnn, batch norm"
    x, y = batch(name, 2, BATCH)
    exact = both_ways(TracedStack(build(name, 2)), x, y, (4, 3), train=True)
    rounded = both_ways(TracedStack(build(name, 2), "bfloat16"), x, y, (4, 3), train=True)
    for one, other in zip(rounded, exact, strict=True):
        assert one.dtype == torch.float32
        assert 0 < (one - other).norm() / other.norm() < 0.05


# -- What cannot be traced ---------------------------------------------------------------------------------------


class Body(nn.Module):
    """A convolution and a head, with something to get wrong in between."""

    def __init__(self, middle=None, **convolution):
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, 3, padding=1, **convolution)
        self.middle = middle or nn.Identity()
        self.flatten = nn.Flatten()
        self.head = nn.Linear(4 * 16, N_CLASSES)

    def forward(self, x):
        return self.head(self.flatten(self.middle(self.convolution(x))))


class Twice(Body):
    def forward(self, x):
        return self.head(self.flatten(self.convolution(x))) + self.head(self.flatten(x.repeat(1, 2, 1, 1)))


class HeadTwice(Body):
    def forward(self, x):
        h = self.flatten(self.convolution(x))
        return self.head(h) + self.head(F.relu(h))


class TwoInputs(Body):
    def forward(self, x, mask=None):
        return super().forward(x)


class NeverUsed(Body):
    def __init__(self):
        super().__init__()
        self.never = nn.Linear(2, 2)


class BranchesOnData(Body):
    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)


def tied():
    model = nn.Sequential(nn.Flatten(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    model[3].weight = model[1].weight
    return model


UNSTACKABLE = {
    "middle is a Dropout, which is not known": lambda: Body(nn.Dropout(0.5)),
    "middle is a Tanh, which is not known": lambda: Body(nn.Tanh()),
    "convolution is a convolution with groups, dilation": lambda: Body(groups=2),
    "strides or paddings differ by direction": lambda: Body(stride=(1, 2)),
    "dilation": lambda: Body(dilation=2),
    "head.weight is used twice": HeadTwice,
    "3.weight is used by no known part, or twice": tied,
    "never.bias is used by no known part": NeverUsed,
    "takes more than one argument": TwoInputs,
    "torch.fx cannot trace it": BranchesOnData,
    "call_method repeat is not known": Twice,
    "middle does not follow a convolution without bias": lambda: Body(nn.BatchNorm2d(4)),
    "no scale, no running statistics or no momentum": lambda: Body(nn.BatchNorm2d(4, momentum=None), bias=False),
    "middle is a GroupNorm, which is not known": lambda: Body(nn.GroupNorm(2, 4, affine=False)),
}


@pytest.mark.parametrize("reason", UNSTACKABLE)
def test_a_model_with_a_part_unknown_is_refused_for_a_reason_of_one_line(reason):
    model = UNSTACKABLE[reason]()
    with pytest.raises(NotStackable, match=reason):
        TracedStack([model])
    said = reason_against(TracedStack, [model])
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_architecture_can_be_traced_and_asking_leaves_the_model_alone(name):
    model = build(name, 1)[0]
    before = {part: tensor.clone() for part, tensor in model.state_dict().items()}
    assert reason_against(TracedStack, [model]) is None
    assert all(torch.equal(tensor, before[part]) for part, tensor in model.state_dict().items())


@pytest.mark.parametrize("middle", [nn.Identity(), nn.Dropout(0.0)])
def test_what_does_nothing_is_no_obstacle(middle):
    model, x = Body(middle), torch.randn(1, 3, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(TracedStack([model]).forward(x)[0][0], model(x[0]), **CLOSE)


# -- Graphs of other shapes: right, or refused -------------------------------------------------------------------


class Sums(Body):
    """The same convolution's output read twice, once through a ReLU."""

    def forward(self, x):
        y = self.convolution(x)
        return self.head(self.flatten(F.relu(y) + y))


class Doubled(Body):
    def forward(self, x):
        y = self.convolution(x)
        return self.head(self.flatten(y + y))


class InputAsResidual(Body):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.head(self.flatten(F.relu(x + self.convolution(x))))


class LaterSummand(Body):
    """The first summand's convolution has to wait for the second, which is made by two steps."""

    def __init__(self):
        super().__init__()
        self.second, self.third = nn.Conv2d(2, 3, 1), nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        return self.head(self.flatten(torch.add(self.convolution(x), F.relu(self.third(F.relu(self.second(x)))))))


class Pooled(Body):
    """Windows that are not square in number, strides that leave a remainder, overlapping pools."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, (3, 1), stride=2, padding=1)
        self.pool = nn.MaxPool2d(3, stride=1, padding=1)
        self.head = nn.Linear(4 * 2 * 3, N_CLASSES)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.convolution(x)), 1))


class ThroughIdentityTwice(Body):
    def forward(self, x):
        y = self.middle(self.convolution(x))
        return self.head(self.flatten(F.relu(y) + y))


class ResultNotLast(Body):
    """Something is computed after the result and thrown away."""

    def forward(self, x):
        logits = super().forward(x)
        F.relu(logits)
        return logits


class ScaledSum(Body):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(4 * 16, N_CLASSES)

    def forward(self, x):
        h = self.flatten(self.convolution(x))
        return torch.add(self.head(h), self.other(h), alpha=2)


class TwoResults(Body):
    def forward(self, x):
        logits = super().forward(x)
        return logits, logits


class ByKeyword(Body):
    def forward(self, x):
        return self.head(self.flatten(self.convolution(input=x)))


class SubmoduleCalledX(Body):
    def __init__(self):
        super().__init__()
        self.x = nn.ReLU()

    def forward(self, inputs):
        return self.head(self.flatten(self.x(self.convolution(inputs))))


class InPlace(Body):
    """The addition reads what the ReLU has overwritten."""

    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.convolution(x)
        z = self.relu(y)
        return self.head(self.flatten(z + y))


GRAPHS = [
    Sums,
    Doubled,
    InputAsResidual,
    LaterSummand,
    Pooled,
    ThroughIdentityTwice,
    ResultNotLast,
    ScaledSum,
    TwoResults,
    ByKeyword,
    SubmoduleCalledX,
    InPlace,
]


@pytest.mark.parametrize("make", GRAPHS)
def test_a_graph_of_another_shape_is_computed_right_or_refused(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        models = [make() for _ in range(2)]
        x = torch.randn(2, BATCH, models[0].convolution.in_channels, 4, 4)
        y = torch.randint(0, N_CLASSES, (2, BATCH))
    if reason_against(TracedStack, models[:1]) is not None:
        return
    stack = TracedStack(models)
    _, gradient = both_ways(stack, x, y, (4, 3), train=True)
    for member, n in enumerate((4, 3)):
        expected = own_gradient(in_float64(models[member]), x[member, :n].double(), y[member, :n])
        assert apart(stack.tables_of(gradient)[member], expected) < 1e-4


def test_a_model_with_frozen_weights_is_refused():
    """All of a member's weights are one row, and every place of it moves."""
    model = Body()
    model.convolution.requires_grad_(False)
    assert reason_against(TracedStack, [model]) is not None
