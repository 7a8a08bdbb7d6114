"""Made-up models and what they answer: every point has its own difficulty, and a member's true logit is higher.

Of language models: every token of a record has its own difficulty, and a member's are more probable.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Attack, Need, Panel, Role, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.tasks.causal_lm import AT, CAUSAL_LM, COLUMNS, LOWEST_PERCENT, lowest_count
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

N_CLASSES = 3
SPREAD = 0.7  # of a logit over models
N_TOKENS = 12  # of each record
EVERY = [*plugins.adversaries.entries]


def task_of(adversary: Adversary) -> Task:
    """The task on whose models it is tried: classification, unless it reads what a language model alone has."""
    reads = getattr(adversary, "reads", frozenset())
    return next(task for task in (CLASSIFICATION, CAUSAL_LM) if reads <= set(task.signals))


@dataclass(frozen=True)
class Half:
    """Points, and what a model that did not see them answers on average."""

    labels: np.ndarray
    usual: np.ndarray

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> "Half":
        labels = rng.integers(0, N_CLASSES, n)
        usual = rng.standard_normal((n, N_CLASSES))
        usual[np.arange(n), labels] += rng.normal(1.0, 1.5, n) + 0.5 * labels
        return cls(labels, usual)

    def panel(self, role: np.ndarray, boost: float, rng: np.random.Generator, decimals: int = 6) -> Panel:
        """Models that saw what `role` says; a point that is neither was seen too."""
        logits = self.usual + SPREAD * rng.standard_normal((len(role), *self.usual.shape))
        logits[:, np.arange(len(self.labels)), self.labels] += boost * (role != Role.OUT)
        logits = np.round(logits, decimals)
        exponentials = np.exp(logits - logits.max(axis=2, keepdims=True))
        wrong = 1 - (exponentials / exponentials.sum(axis=2, keepdims=True))[:, np.arange(len(role[0])), self.labels]
        shake = rng.standard_normal((2, *role.shape))
        columns = {
            Need.GRADIENT_NORM.value: np.round(wrong * np.exp(0.3 * shake[0]), decimals).astype(np.float32),
            Need.LANDSCAPE.value: np.round(np.sqrt(wrong) * np.exp(0.2 * shake[1]), decimals).astype(np.float32),
        }
        return Panel(logits.astype(np.float32), self.labels, role.astype(np.int8), columns)


@dataclass(frozen=True)
class TextHalf:
    """Records, and how surprising each of their tokens is to a model that did not see them."""

    labels: np.ndarray
    usual: np.ndarray
    """(n, N_TOKENS) losses."""

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> "TextHalf":
        usual = np.exp(0.8 * rng.standard_normal((n, N_TOKENS)) + 0.5 * rng.standard_normal((n, 1)))
        return cls(np.ceil(20 + 2 * usual.sum(axis=1) + 5 * rng.random(n)).astype(np.int64), usual)

    def panel(self, role: np.ndarray, boost: float, rng: np.random.Generator, decimals: int = 6) -> Panel:
        """As `Half.panel`."""
        shake = rng.standard_normal((2, len(role), *self.usual.shape))
        of_record = 0.35 * rng.standard_normal(role.shape) - 0.3 * boost * (role != Role.OUT)
        losses = self.usual * np.exp(0.25 * shake[0] + of_record[..., None])
        losses = np.round(losses, decimals)
        found = losses < 0.5
        columns = {
            "loss-sum": losses.sum(axis=2),
            "tokens": np.full(role.shape, N_TOKENS),
            "hits": found.sum(axis=2),
            "prefix": np.cumprod(found, axis=2).sum(axis=2),
            "suffix": np.cumprod(found[..., ::-1], axis=2).sum(axis=2),
            "base-loss-sum": np.broadcast_to(1.2 * self.usual.sum(axis=1), role.shape),
            "paraphrased-loss": losses.mean(axis=2) * np.exp(0.1 * rng.standard_normal(role.shape)),
            "8-bit-loss-sum": losses.sum(axis=2) * np.exp(0.05 * rng.standard_normal(role.shape)),
        }
        for name, values in (("min-k", -losses), ("min-k++", 1 - losses + np.round(0.5 * shake[1], decimals))):
            ascending = np.sort(values, axis=2)
            columns |= {f"{name} {k}": ascending[..., : lowest_count(N_TOKENS, k)].mean(axis=2) for k in LOWEST_PERCENT}
        outputs = np.stack([columns[name] for name in COLUMNS], axis=2).astype(np.float32)
        return Panel(outputs, self.labels, role.astype(np.int8), task=CAUSAL_LM)


@dataclass(frozen=True)
class World:
    """All that an adversary may ask for, and a target to attack."""

    shadows: Panel
    references: Panel
    outsiders: Panel
    unlearned_shadows: Panel
    unlearned_references: Panel
    target: Signals
    """On all points of D, with the background."""
    member: np.ndarray
    """Which points of D the target saw."""

    def given(self, adversary: Adversary) -> tuple[Panel, TargetContext]:
        """What it asked for, and nothing else."""
        asked, aware = adversary.needs, Need.UNLEARNED in adversary.needs
        shadows = self.unlearned_shadows if aware else self.shadows
        references = self.unlearned_references if aware else self.references
        context = TargetContext(
            self.target.n_classes,
            references=without_columns(references) if Need.REFERENCES in asked else None,
            outsiders=without_columns(self.outsiders) if Need.OUTSIDERS in asked else None,
        )
        return replace(shadows, columns={n: c for n, c in shadows.columns.items() if n in asked}), context

    def seen(self, adversary: Adversary) -> Signals:
        """The target as the adversary sees it."""
        columns = {name: column for name, column in self.target.columns.items() if name in adversary.needs}
        background = self.target.background if Need.BACKGROUND in adversary.needs else None
        return replace(self.target, columns=columns, background=background)

    def fit(self, adversary: Adversary) -> Attack:
        return adversary.fit(*self.given(adversary))


def without_columns(panel: Panel) -> Panel:
    return replace(panel, columns={})


@lru_cache(maxsize=64)
def draw_world(
    seed: int,
    boost: float = 2.0,
    n: int = 200,
    n_models: int = 8,
    decimals: int = 6,
    seen_share: float = 0.5,
    task: Task = CLASSIFICATION,
) -> World:
    rng = np.random.default_rng(seed)
    kind = TextHalf if task == CAUSAL_LM else Half
    shadow_half, target_half = kind.draw(n, rng), kind.draw(n, rng)

    def some(size: int, share: float = seen_share) -> np.ndarray:
        return (rng.random((size, n)) < share).astype(np.int8)

    def unlearned() -> np.ndarray:
        return rng.choice([Role.NEITHER, Role.OUT, Role.IN], size=(n_models, n)).astype(np.int8)

    nothing = np.zeros((n_models, n), dtype=np.int8)
    member = some(1, 0.5)
    attacked = target_half.panel(member, boost, rng, decimals).model(0)
    background = shadow_half.panel(nothing[:1], boost, rng, decimals).model(0)
    return World(
        shadow_half.panel(some(n_models), boost, rng, decimals),
        target_half.panel(some(n_models), boost, rng, decimals),
        target_half.panel(nothing, boost, rng, decimals),
        shadow_half.panel(unlearned(), 0.5 * boost, rng, decimals),
        target_half.panel(unlearned(), 0.5 * boost, rng, decimals),
        replace(attacked, points=np.arange(n), background=without_more(background)),
        member[0] == Role.IN,
    )


def saturate(world: World) -> World:
    """The same world with logits of ±1,000 only: certain answers, right and wrong; of texts, losses of 0 or 1,000."""

    def certain(outputs: np.ndarray) -> np.ndarray:
        if world.target.task == CLASSIFICATION:
            return np.where(outputs > 1, np.float32(1e3), np.float32(-1e3))
        columns = np.zeros_like(outputs)
        columns[outputs[..., AT["loss-sum"]] > N_TOKENS] = 1e3
        columns[..., AT["tokens"]] = N_TOKENS
        return columns

    panels = ("shadows", "references", "outsiders", "unlearned_shadows", "unlearned_references")
    background = replace(world.target.background, outputs=certain(world.target.background.outputs))
    return replace(
        world,
        target=replace(world.target, outputs=certain(world.target.outputs), background=background),
        **{name: replace(panel, outputs=certain(panel.outputs)) for name in panels for panel in [getattr(world, name)]},
    )


def without_more(signals: Signals) -> Signals:
    return Signals(signals.outputs, signals.labels, task=signals.task)


def rows(signals: Signals, at: np.ndarray) -> Signals:
    """Some of the points, in this order; the background stays what it is."""
    return Signals(
        signals.outputs[at],
        signals.labels[at],
        None if signals.points is None else signals.points[at],
        signals.background,
        {name: column[at] for name, column in signals.columns.items()},
        signals.task,
    )


def permuted(panel: Panel, models: np.ndarray, points: np.ndarray) -> Panel:
    """The same panel with models and points in another order."""
    columns = {name: column[models][:, points] for name, column in panel.columns.items()}
    role = panel.role[models][:, points]
    return Panel(panel.outputs[models][:, points], panel.labels[points], role, columns, panel.task)


def auc(score: np.ndarray, member: np.ndarray) -> float:
    """P(a member's score is above another's), ties counted half."""
    difference = score[member][:, None] - score[~member][None, :]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def draw_signals(n: int, seed: int, member_boost: float | np.ndarray = 0.0, decimals: int = 6) -> Signals:
    """Random logits; a member's true logit is higher by `member_boost`. Few decimals make ties."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n)
    logits = rng.standard_normal((n, N_CLASSES))
    logits[np.arange(n), labels] += member_boost
    return Signals(np.round(logits, decimals).astype(np.float32), labels)


def draw_shadow(n: int, seed: int, boost: float = 1.0, decimals: int = 6) -> Panel:
    """One shadow model on n points."""
    member = np.random.default_rng(seed + 1).random(n) < 0.5
    return panel_of(draw_signals(n, seed, boost * member, decimals), member)


def panel_of(signals: Signals, member: np.ndarray) -> Panel:
    return Panel(signals.outputs[None], signals.labels, member.astype(np.int8)[None])
