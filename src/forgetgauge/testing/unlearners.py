"""`check_unlearner`: what a run takes for granted of an unlearner, on a made-up world of 106 images of 8 × 8."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.learner import Learner, are_alike
from forgetgauge.learn.predict import outputs_of
from forgetgauge.models.outputs import has_hooks
from forgetgauge.models.small_cnn import SmallCNN
from forgetgauge.streams import Streams
from forgetgauge.unlearn.own import MIXED_UP, as_unlearner, seeded_globally
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner, Unlearner

N_CLASSES = 4
Factory = Callable[[tuple[int, ...], int], nn.Module]
"""(input shape, number of classes) -> an untrained model."""


class _Perceptron(nn.Module):
    """One hidden layer with something in it that is known to cause trouble."""

    def __init__(self, trouble: Callable[[], nn.Module], input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), 16), trouble(), nn.ReLU())
        self.head = nn.Linear(16, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x))
        return logits


MODELS: Mapping[str, Factory] = {
    "batch norm": functools.partial(SmallCNN, width=4, norm="batch"),
    "group norm": functools.partial(SmallCNN, width=4, norm="group"),
    "no norm": functools.partial(SmallCNN, width=4, norm="none"),
    "dropout": functools.partial(_Perceptron, functools.partial(nn.Dropout, 0.5)),
}
"""What `check_unlearner` tries by default, for inputs of 1 × 8 × 8."""

_REFUSES_SINGLE_POINTS = functools.partial(_Perceptron, functools.partial(nn.BatchNorm1d, 16))


def check_unlearner(
    unlearner: Any,
    *,
    models: Mapping[str, Factory] = MODELS,
    identity: Any = None,
    learner: Learner | None = None,
    signature: str | None = None,
) -> None:
    """Raise AssertionError where an unlearner breaks a promise.

    `unlearner` is an object with `unlearn`, a function `(model, retain, forget, context) -> model`, or one in the
    competition's signature, `(net, retain, forget, validation)`; `signature`, "forgetgauge" or "competition", says
    which where its parameters do not tell. `identity` is the same method at the setting that should change nothing.
    `learner` replaces `models` for a method that needs a learner of its own; one that the method names
    (`learner = "sisa"`) is found.
    """
    made = _as_unlearner(unlearner, signature)
    if learner is not None:
        worlds = {"the learner given": learner}
    else:
        worlds = {name: _learner_of(unlearner, factory) for name, factory in models.items()}
    plain = True
    for name, recipe in worlds.items():
        world = _World.make(name, recipe)
        plain = plain and not has_hooks(world.original)
        _leaves_its_input_alone(made, world)
        _gives_a_sound_model(made, world)
        _depends_on_its_inputs_alone(made, world)
        _keeps_the_order_of_requests(made, world)
        _forgets_a_single_point(made, world)
        _copes_with_any_number_of_points(made, world)
        if identity is not None:
            _is_the_identity(_as_unlearner(identity, signature), world)
    if learner is None and plain:  # a method for models that give objects cannot be tried on one that gives tensors
        recipe = _learner_of(unlearner, _REFUSES_SINGLE_POINTS)
        _copes_with_any_number_of_points(made, _World.make("batch norm over single values", recipe))


@dataclass(frozen=True)
class _World:
    """A trained model and sets of whole batches, whatever the power of two."""

    name: str
    learner: Learner
    points: Points
    retain: Points
    """64 points."""
    forget: Points
    """16 points."""
    uneven: tuple[Points, Points]
    """The two sets with one point more, which the model was trained on too."""
    validation: Points
    original: nn.Module

    @staticmethod
    def make(name: str, learner: Learner) -> _World:
        rng = np.random.default_rng(0)
        labels = np.arange(106) % N_CLASSES
        inputs = rng.standard_normal((len(labels), 1, 8, 8)) + labels[:, None, None, None] / 2
        points = Points.of(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))
        order = rng.permutation(len(labels))
        uneven = points.subset(order[:65]), points.subset(order[65:82])
        return _World(
            name,
            learner,
            points,
            retain=points.subset(order[:64]),
            forget=points.subset(order[65:81]),
            uneven=uneven,
            validation=points.subset(order[82:94]),
            original=learner.fit(points.subset(order[:82]), Streams("original")),
        )

    def unlearn(self, unlearner: Unlearner, doing: str, key: str = "a job", **changes: Any) -> nn.Module:
        """The unlearner's answer; whatever it raises is a broken promise."""
        given: dict[str, Any] = {
            "model": copy.deepcopy(self.original),
            "retain": self.retain,
            "forget": self.forget,
        } | changes
        context = Context(self.learner, Streams(key), validation=given.pop("validation", self.validation))
        try:
            result: Any = unlearner.unlearn(**given, context=context)
        except Exception as error:
            raise AssertionError(f"{self.name}: {doing}, it raised {type(error).__name__}: {error}") from error
        _promise(isinstance(result, nn.Module), f"{self.name}: it returned a {type(result).__name__}, not a model")
        _promise(
            isinstance(context.n_gradients, int) and context.n_gradients >= 0,
            f"{self.name}: it left context.n_gradients at {context.n_gradients!r}, which is no count of gradients",
        )
        model: nn.Module = result
        return model


def _leaves_its_input_alone(unlearner: Unlearner, world: _World) -> None:
    model, points = copy.deepcopy(world.original), world.points
    before, flags = _state(model), _flags(model)
    inputs, labels = points.whole_inputs.clone(), points.whole_labels.clone()
    index = world.retain.index.copy(), world.forget.index.copy()
    result = world.unlearn(unlearner, "asked to unlearn", model=model)
    moved = _differing(model.state_dict(), before)
    _promise(not moved, f"{world.name}: it changed the model it was given ({', '.join(moved)}): work on a copy")
    _promise(
        _flags(model) == flags, f"{world.name}: it changed the mode or frozen parameters of the model it was given"
    )
    _promise(
        all(p.grad is None for p in model.parameters()), f"{world.name}: it left gradients on the model it was given"
    )
    theirs = {tensor.data_ptr() for tensor in result.state_dict().values() if tensor.numel()}
    shared = [name for name, tensor in model.state_dict().items() if tensor.data_ptr() in theirs and tensor.numel()]
    _promise(not shared, f"{world.name}: its result shares memory with the model it was given ({', '.join(shared)})")
    same = torch.equal(points.whole_inputs, inputs) and torch.equal(points.whole_labels, labels)
    same = same and np.array_equal(world.retain.index, index[0]) and np.array_equal(world.forget.index, index[1])
    _promise(same, f"{world.name}: it changed the data it was given")


def _gives_a_sound_model(unlearner: Unlearner, world: _World) -> None:
    result = world.unlearn(unlearner, "asked to unlearn")
    shapes = [{name: t.shape for name, t in model.state_dict().items()} for model in (result, world.original)]
    _promise(shapes[0] == shapes[1], f"{world.name}: it returned a model of another architecture")
    _check_finite(result, world, "asked to unlearn")


def _depends_on_its_inputs_alone(unlearner: Unlearner, world: _World) -> None:
    with seeded_globally(1, 1, 1):
        first = world.unlearn(unlearner, "asked to unlearn").state_dict()
    with seeded_globally(2, 2, 2):
        world.unlearn(
            unlearner, "asked to unlearn", key="another job", forget=world.forget.subset(world.forget.index[:5])
        )
    with seeded_globally(1, 1, 1):
        again = world.unlearn(unlearner, "asked again").state_dict()
    _promise(
        not _differing(first, again),
        f"{world.name}: asked twice for the same, it answered differently: it remembers, or draws from a source that "
        "is nobody's seed",
    )
    with seeded_globally(2, 2, 2):
        other = world.unlearn(unlearner, "asked again").state_dict()
    _promise(
        not _differing(first, other),
        f"{world.name}: its result depends on a global random generator: draw from context.streams alone",
    )
    elsewhere: dict[str, Any] = _with_other_points_elsewhere(world)
    blind = world.unlearn(unlearner, "with other points outside its sets", **elsewhere).state_dict()
    _promise(
        not _differing(first, blind),
        f"{world.name}: its result depends on points outside the retain and forget sets: the unseen set leaks into it",
    )


def _keeps_the_order_of_requests(unlearner: Unlearner, world: _World) -> None:
    if not isinstance(unlearner, StackedUnlearner):
        return
    smaller = copy.deepcopy(world.original)
    smaller.load_state_dict({name: (t * 0.5).to(t) for name, t in smaller.state_dict().items()})

    def asked(*models: nn.Module) -> list[nn.Module]:
        keys = ("a job", "another job")
        contexts = [Context(world.learner, Streams(key), validation=world.validation) for key in keys]
        each = zip(models, contexts, strict=False)
        requests = [Request(copy.deepcopy(model), world.retain, world.forget, context) for model, context in each]
        with seeded_globally(1, 1, 1):
            try:
                return list(unlearner.unlearn_many(requests))
            except Exception as error:
                doing = f"asked about {len(models)} models at once"
                raise AssertionError(f"{world.name}: {doing}, it raised {type(error).__name__}: {error}") from error

    (alone,), (first, second) = asked(world.original), asked(world.original, smaller)
    _promise(not are_alike(second, alone) or are_alike(first, alone), f"{world.name}: {MIXED_UP}")


def _forgets_a_single_point(unlearner: Unlearner, world: _World) -> None:
    doing = "asked to forget a single point"
    result = world.unlearn(unlearner, doing, forget=world.forget.subset(world.forget.index[:1]))
    _check_finite(result, world, doing)


def _copes_with_any_number_of_points(unlearner: Unlearner, world: _World) -> None:
    """65 and 17 points: one more than whole batches of 2, 4, 8 or 16, the larger of 32 and 64 too."""
    doing = "with sets of 65 and 17 points, whose last batch may be a single point"
    result = world.unlearn(unlearner, doing, retain=world.uneven[0], forget=world.uneven[1])
    _check_finite(result, world, doing)


def _is_the_identity(unlearner: Unlearner, world: _World) -> None:
    moved = _differing(world.unlearn(unlearner, "at its identity setting").state_dict(), _state(world.original))
    _promise(not moved, f"{world.name}: at its identity setting it changed {', '.join(moved)}")


def _with_other_points_elsewhere(world: _World) -> dict[str, Points]:
    parts = {"retain": world.retain, "forget": world.forget, "validation": world.validation}
    known = np.concatenate([part.index for part in parts.values()])
    outside = torch.from_numpy(np.setdiff1d(np.arange(len(world.points.whole_inputs)), known))
    inputs, labels = world.points.whole_inputs.clone(), world.points.whole_labels.clone()
    inputs[outside], labels[outside] = -inputs[outside], (labels[outside] + 1) % N_CLASSES
    return {name: dataclasses.replace(part, whole_inputs=inputs, whole_labels=labels) for name, part in parts.items()}


def _check_finite(model: nn.Module, world: _World, doing: str) -> None:
    finite = np.isfinite(outputs_of(model, world.points)).all()
    _promise(bool(finite), f"{world.name}: {doing}, it returned a model whose outputs are NaN or infinite")


def _as_unlearner(thing: Any, signature: str | None) -> Unlearner:
    made = thing() if isinstance(thing, type) else thing
    _promise(
        isinstance(made, Unlearner) or callable(made),
        f"{made!r} is neither a function nor an object with the method unlearn",
    )
    try:
        return as_unlearner(made, {} if signature is None else {"signature": signature})
    except UserError as error:
        raise AssertionError(str(error)) from None


def _learner_of(unlearner: Any, factory: Factory) -> Learner:
    brought = getattr(unlearner, "learner", "minibatch")
    kind: Any = plugins.learners.load(brought if isinstance(brought, str) else "minibatch")
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise AssertionError(f"the learner {brought!r} cannot be set up here: give one as learner=")
    wanted = {"model": plugins.models.bind(factory), "epochs": 2, "batch_size": 16}
    known = {part.name for part in dataclasses.fields(kind)}
    return cast(Learner, kind(**{key: value for key, value in wanted.items() if key in known}))


def _state(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _flags(model: nn.Module) -> list[bool]:
    return [*(module.training for module in model.modules()), *(p.requires_grad for p in model.parameters())]


def _differing(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> list[str]:
    return [name for name in one.keys() | other.keys() if name not in one or not _same_bits(one[name], other.get(name))]


def _same_bits(one: Tensor, other: Tensor | None) -> bool:
    return other is not None and torch.equal(one.nan_to_num(), other.nan_to_num())


def _promise(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)
