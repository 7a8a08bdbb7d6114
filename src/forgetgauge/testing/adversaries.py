"""`check_adversary`: what a run takes for granted of an adversary, on made-up answers of made-up models.

The models are classifiers, unless the adversary reads what only models of another task give.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import (
    COLUMNS,
    WHITE_BOX_COLUMNS,
    Adversary,
    Attack,
    Need,
    Panel,
    Role,
    TargetContext,
)
from forgetgauge.attack.signals import Signals
from forgetgauge.game.advantage import outcome_of_decisions
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats, Ints
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Labels, Task

N_CLASSES, N_POINTS, N_FORGET = 4, 120, 40
N_SHADOWS, N_REFERENCES = 6, 8
N_GAMES = 10
_ROUNDING = 1e-9  # sums in another order; a decision this near to its threshold may fall either way


def check_adversary(adversary: Any) -> None:
    """Raise AssertionError where an adversary (or its class) breaks a promise."""
    made = adversary() if isinstance(adversary, type) else adversary
    _keeps_the_protocol(made)
    world = _World.make(made, seed=0, boost=1.5)
    _learns_the_same_from_the_same(made, world)  # before it was shown any target
    _keeps_no_memory_of_targets(made, world)
    _answers_yes_or_no(made, world)
    _survives_the_disk(made, world)
    _is_one_function_for_both_sides(made, world)
    _cannot_tell_the_sides_of_a_shared_model(made, world)
    _answers_each_point_by_itself(made, world)
    _does_not_know_where_forget_is(made, world)
    _is_calibrated_on_noise(made)


@dataclass(frozen=True)
class _World:
    """All that an adversary may be fitted on, and the two models of a swap pair; members are surer of their label."""

    shadows: Panel
    target: TargetContext
    sides: tuple[Signals, Signals]
    """Both on F ∪ T, F of the first side first."""

    @staticmethod
    def make(adversary: Adversary, seed: int, boost: float) -> _World:
        rng, needs, task = np.random.default_rng(seed), adversary.needs, _task_of(adversary)
        columns = [str(need) for need in COLUMNS if need in needs]
        labels, shadow_labels = _labels(task, rng), _labels(task, rng)
        order = rng.permutation(N_POINTS)
        points = order[: 2 * N_FORGET]
        in_forget = np.repeat([True, False], N_FORGET)

        def roles(n_models: int) -> npt.NDArray[np.int8]:
            role = rng.permuted(np.tile([Role.IN, Role.OUT], (n_models, N_POINTS // 2)), axis=1).astype(np.int8)
            if Need.UNLEARNED in needs:
                role[(role == Role.IN) & (rng.random(role.shape) < 0.5)] = Role.NEITHER
            return role

        def panel(labels: Ints, role: npt.NDArray[np.int8]) -> Panel:
            models = [_answers(task, rng, labels, boost * (its == Role.IN), columns) for its in role]
            every = {name: np.stack([one.columns[name] for one in models]) for name in columns}
            return Panel(np.stack([one.outputs for one in models]), labels, role, every, task)

        def attacked(forgotten: npt.NDArray[np.bool_]) -> Signals:
            background = _answers(task, rng, shadow_labels, np.zeros(N_POINTS), columns)
            of_all = np.zeros(N_POINTS)
            of_all[points] = boost * forgotten
            seen = _answers(task, rng, labels, of_all, columns).take(points)
            behind = background if Need.BACKGROUND in needs else None
            return Signals(seen.outputs, seen.labels, points, behind, seen.columns, task)

        unseen = np.full((N_SHADOWS, N_POINTS), Role.OUT, dtype=np.int8)
        return _World(
            shadows=panel(shadow_labels, roles(N_SHADOWS)),
            target=TargetContext(
                N_CLASSES if task.has_classes else 1,
                references=panel(labels, roles(N_REFERENCES)) if Need.REFERENCES in needs else None,
                outsiders=panel(labels, unseen) if Need.OUTSIDERS in needs else None,
            ),
            sides=(attacked(in_forget), attacked(~in_forget)),
        )

    def fit(self, adversary: Adversary) -> Attack:
        """The fitted attack; whatever fitting raises is a broken promise."""
        try:
            attack = adversary.fit(self.shadows, self.target)
        except Exception as error:
            raise AssertionError(f"fitting raised {type(error).__name__}: {error}") from error
        for name in ("score", "decide", "margin", "arrays"):
            _promise(callable(getattr(attack, name, None)), f"fitting gave a {type(attack).__name__} without {name}()")
        return attack

    def renamed(self) -> _World:
        """The same world with the places of F and T in D exchanged: to whom nobody told F from T, it is the same."""
        forget, unseen = np.split(_positions(self.sides[0]), 2)
        place = np.arange(N_POINTS)  # the new place of each point
        place[forget], place[unseen] = unseen, forget
        at = np.argsort(place)
        panels = [_rows_of_panel(panel, at) for panel in (self.target.references, self.target.outsiders)]
        sides = [
            Signals(side.outputs, side.labels, place[_positions(side)], side.background, side.columns, side.task)
            for side in self.sides
        ]
        return _World(self.shadows, TargetContext(self.target.n_classes, *panels), (sides[0], sides[1]))


def _task_of(adversary: Adversary) -> Task:
    reads: frozenset[str] = getattr(adversary, "reads", frozenset())
    every: list[Task] = [CLASSIFICATION, *(plugins.tasks.load(name) for name in plugins.tasks.entries)]
    found = next((task for task in every if reads <= set(task.signals)), None)
    _promise(found is not None, f"it reads the signals {', '.join(sorted(reads))}, which no task has together")
    assert found is not None
    return found


def _labels(task: Task, rng: np.random.Generator) -> Labels:
    if task.has_classes:
        return rng.integers(0, N_CLASSES, N_POINTS)
    return task.made_up(N_POINTS, 1, np.zeros(N_POINTS, dtype=np.bool_), rng)[1]


def _answers(
    task: Task, rng: np.random.Generator, labels: Labels, boost: npt.NDArray[np.floating[Any]], columns: list[str]
) -> Signals:
    """Random logits, the true one higher by `boost`, or what another task makes up; columns that are the smaller for
    it, but for shares of right answers, which are the larger."""
    n = len(labels)
    if task.has_classes:
        outputs = rng.standard_normal((n, N_CLASSES))
        outputs[np.arange(n), labels] += boost
    else:
        outputs = task.made_up(n, 1, boost > 0, rng)[0].astype(np.float64)
    sizes = {name: np.exp(rng.standard_normal(n) - boost) for name in columns}
    turned = {name: 1 / (1 + size) if name == Need.AUGMENTED else size for name, size in sizes.items()}
    named = {name: column.astype(np.float32) for name, column in turned.items()}
    return Signals(outputs.astype(np.float32), labels, columns=named, task=task)


# -- promises ----------------------------------------------------------------------------------------------------


def _keeps_the_protocol(adversary: Any) -> None:
    name = type(adversary).__name__
    _promise(isinstance(adversary, Adversary), f"{name} lacks one of access, needs, fit, load")
    _promise(isinstance(adversary.access, Access), f"{name}.access is {adversary.access!r}, not an Access")
    needs = adversary.needs
    known = isinstance(needs, frozenset) and all(isinstance(need, Need) for need in needs)
    _promise(known, f"{name}.needs is {needs!r}, not a frozenset of Need")
    hidden = adversary.access is Access.BLACK_BOX and needs & {*WHITE_BOX_COLUMNS}
    _promise(not hidden, f"{name} reads white-box columns but says that it is black-box")


def _answers_yes_or_no(adversary: Adversary, world: _World) -> None:
    attack = world.fit(adversary)
    for signals in world.sides:
        says, score, margin = attack.decide(signals), attack.score(signals), attack.margin(signals)
        shape = (len(signals),)
        _promise(np.asarray(says).dtype == np.bool_, f"decide gave {np.asarray(says).dtype}, not booleans")
        for name, values in (("decide", says), ("score", score), ("margin", margin)):
            _promise(np.shape(values) == shape, f"{name} gave the shape {np.shape(values)} for {len(signals)} points")
            _promise(not np.isnan(np.asarray(values, dtype=np.float64)).any(), f"{name} gave NaN")
        _promise(np.array_equal(says, np.asarray(margin) >= 0), "decide is not margin ≥ 0")
    none = attack.decide(world.sides[0].take(np.arange(0)))
    _promise(np.shape(none) == (0,), f"decide gave the shape {np.shape(none)} for no points")


def _learns_the_same_from_the_same(adversary: Adversary, world: _World) -> None:
    before = _everything(world)
    with _numpy_seed(1):
        first = world.fit(adversary)
    with _numpy_seed(2):
        again = world.fit(adversary)
    _promise(
        _same_arrays(first, again), "fitted twice on the same, it learned different things: it draws random numbers"
    )
    unchanged = all(np.array_equal(one, other) for one, other in zip(before, _everything(world), strict=True))
    _promise(unchanged, "fitting changed the signals it was given")


def _keeps_no_memory_of_targets(adversary: Adversary, world: _World) -> None:
    """A canary: what a target shows of F and T must not reach the next fit."""
    attack = world.fit(adversary)
    for shown in world.sides:
        attack.decide(shown)
        attack.score(shown)
        _promise(
            _same_arrays(world.fit(adversary), attack),
            "after it was shown a target model it learns something else: fitting depends on what was in F and T",
        )


def _survives_the_disk(adversary: Adversary, world: _World) -> None:
    attack, file = world.fit(adversary), io.BytesIO()
    arrays = attack.arrays()
    plain = all(isinstance(array, np.ndarray) and array.dtype.kind in "biufU" for array in arrays.values())
    _promise(plain, "arrays() holds something that is not a plain array")
    np.savez(file, **dict[str, Any](arrays))
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        again = adversary.load(dict(stored))
    same = all(_same_answers(attack, again, signals) for signals in world.sides)
    _promise(same, "loaded again from its arrays, it answers differently: arrays() leaves out something it learned")


def _is_one_function_for_both_sides(adversary: Adversary, world: _World) -> None:
    attack = world.fit(adversary)
    other = adversary.load(attack.arrays())
    forwards = [attack.decide(signals) for signals in world.sides]
    backwards = [other.decide(signals) for signals in world.sides[::-1]][::-1]
    same = all(np.array_equal(one, two) for one, two in zip(forwards, backwards, strict=True))
    _promise(same, "its answer on one side depends on what it was shown before: it is not one function for both sides")


def _cannot_tell_the_sides_of_a_shared_model(adversary: Adversary, world: _World) -> None:
    """Retrain with one model for both sides: every paired difference is 0."""
    attack, (seen, _) = world.fit(adversary), world.sides
    with _numpy_seed(1):
        first = attack.decide(seen)
    with _numpy_seed(2):
        second = attack.decide(seen.take(np.arange(len(seen))))
    in_forget = np.repeat([True, False], N_FORGET)
    outcome = outcome_of_decisions(first[None, :, None], second[None, :, None], in_forget, np.ones(len(seen)))
    zero = bool((outcome.differences == 0).all() and outcome.advantage[0] == 0)
    _promise(zero, "on one model shared by both sides its answers differ: its advantage over Retrain is not exactly 0")


def _answers_each_point_by_itself(adversary: Adversary, world: _World) -> None:
    attack, seen = world.fit(adversary), world.sides[0]
    n = len(seen)
    every = np.arange(n)
    order = np.random.default_rng(0).permutation(n)
    _promise(_like(attack, seen, [order]), "its answers depend on the order of the points")
    batches = [every[:1], every[1:33], every[33:]]
    _promise(_like(attack, seen, batches), "its answers depend on which points are asked together")
    _promise(_like(attack, seen, [np.repeat(every, 2)]), "points asked twice get other answers")
    _promise(
        _like(attack, seen, [every[i : i + 1] for i in (0, 41, 79)]),
        "a point alone gets another answer",
    )


def _does_not_know_where_forget_is(adversary: Adversary, world: _World) -> None:
    """A canary: places in D tell nobody F from T, so exchanging them must change nothing."""
    attack = world.fit(adversary)
    renamed = world.renamed()
    exchanged = renamed.fit(adversary)
    same = all(_near(attack, exchanged, one, other) for one, other in zip(world.sides, renamed.sides, strict=True))
    _promise(same, "with F and T exchanged in D it answers differently: fitting or deciding knows where F is")


def _is_calibrated_on_noise(adversary: Adversary) -> None:
    """Fitted on noise, played on noise: the mean over games lies within 4 standard errors of 0."""
    advantages = []
    for game in range(N_GAMES):
        world = _World.make(adversary, seed=1 + game, boost=0.0)
        attack = world.fit(adversary)
        for signals in world.sides:
            says = attack.decide(signals)
            advantages.append(says[:N_FORGET].mean() - says[N_FORGET:].mean())
    most = 4 * math.sqrt(2 * 0.25 / N_FORGET / len(advantages))
    found = float(np.mean(advantages))
    _promise(
        abs(found) <= most,
        f"where there is nothing to see it has an advantage of {found:+.3f}, beyond ±{most:.3f} that chance allows",
    )


# -- comparisons -------------------------------------------------------------------------------------------------


def _like(attack: Attack, seen: Signals, parts: list[Ints]) -> bool:
    """Whether the parts, asked one by one, are answered like the same rows of the whole."""
    margin, says = attack.margin(seen), attack.decide(seen)
    for at in parts:
        part = seen.take(at)
        if not _close(attack.margin(part), margin[at], attack.decide(part), says[at]):
            return False
    return True


def _near(one: Attack, other: Attack, seen: Signals, renamed: Signals) -> bool:
    return _close(one.margin(seen), other.margin(renamed), one.decide(seen), other.decide(renamed))


def _close(margin: Floats, expected: Floats, says: Any, expected_says: Any) -> bool:
    near_threshold = np.abs(expected) <= _ROUNDING * np.maximum(1, np.abs(expected))
    alike = np.allclose(margin, expected, rtol=_ROUNDING, atol=_ROUNDING)
    return bool(alike and ((says == expected_says) | near_threshold).all())


def _same_answers(one: Attack, other: Attack, signals: Signals) -> bool:
    return np.array_equal(one.decide(signals), other.decide(signals)) and np.array_equal(
        one.score(signals), other.score(signals)
    )


def _same_arrays(one: Attack, other: Attack) -> bool:
    a, b = one.arrays(), other.arrays()
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def _rows_of_panel(panel: Panel | None, at: Ints) -> Panel | None:
    if panel is None:
        return None
    columns = {name: column[:, at] for name, column in panel.columns.items()}
    return Panel(panel.outputs[:, at], panel.labels[at], panel.role[:, at], columns, panel.task)


def _positions(signals: Signals) -> Ints:
    assert signals.points is not None
    return signals.points


def _everything(world: _World) -> list[npt.NDArray[Any]]:
    panels = [panel for panel in (world.shadows, world.target.references, world.target.outsiders) if panel is not None]
    parts: list[npt.NDArray[Any]] = []
    for panel in panels:
        parts += [panel.outputs, panel.labels, panel.role, *panel.columns.values()]
    return [part.copy() for part in parts]


@contextmanager
def _numpy_seed(seed: int) -> Iterator[None]:
    """numpy's global generator under a known seed; afterwards it is as it was."""
    before = np.random.get_state()  # noqa: NPY002 (others' code draws from it)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _promise(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)
