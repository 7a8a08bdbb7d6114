"""Made-up models and what they answer: every point has its own difficulty, and a member's true logit is higher."""

from dataclasses import dataclass, replace

import numpy as np

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Attack, Need, Panel, Role, TargetContext
from forgetgauge.attack.signals import Signals

N_CLASSES = 3
SPREAD = 0.7  # of a logit over models
EVERY = [*plugins.adversaries.entries]


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
            Need.RELEARNED.value: np.round(wrong * np.exp(0.3 * shake.sum(axis=0)), decimals).astype(np.float32),
            Need.AUGMENTED.value: np.round(np.clip(1 - wrong + 0.2 * shake[0], 0, 1), decimals).astype(np.float32),
        }
        return Panel(logits.astype(np.float32), self.labels, role.astype(np.int8), columns)


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
            N_CLASSES,
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


def draw_world(
    seed: int, boost: float = 2.0, n: int = 200, n_models: int = 8, decimals: int = 6, seen_share: float = 0.5
) -> World:
    rng = np.random.default_rng(seed)
    shadow_half, target_half = Half.draw(n, rng), Half.draw(n, rng)

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
    """The same world with logits of ±1,000 only: certain answers, right and wrong."""

    def certain(logits: np.ndarray) -> np.ndarray:
        return np.where(logits > 1, np.float32(1e3), np.float32(-1e3))

    panels = ("shadows", "references", "outsiders", "unlearned_shadows", "unlearned_references")
    background = replace(world.target.background, outputs=certain(world.target.background.outputs))
    return replace(
        world,
        target=replace(world.target, outputs=certain(world.target.outputs), background=background),
        **{name: replace(panel, outputs=certain(panel.outputs)) for name in panels for panel in [getattr(world, name)]},
    )


def without_more(signals: Signals) -> Signals:
    return Signals(signals.outputs, signals.labels)


def rows(signals: Signals, at: np.ndarray) -> Signals:
    """Some of the points, in this order; the background stays what it is."""
    return Signals(
        signals.outputs[at],
        signals.labels[at],
        None if signals.points is None else signals.points[at],
        signals.background,
        {name: column[at] for name, column in signals.columns.items()},
    )


def permuted(panel: Panel, models: np.ndarray, points: np.ndarray) -> Panel:
    """The same panel with models and points in another order."""
    columns = {name: column[models][:, points] for name, column in panel.columns.items()}
    return Panel(panel.outputs[models][:, points], panel.labels[points], panel.role[models][:, points], columns)


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
