"""RunSpec: everything a run file may say, each field with its default and one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

_STRICT = {"extra": "forbid"}  # read by pydantic in `runfile`; nothing here imports it


DEFAULT_ADVERSARIES = (
    *("correctness", "confidence", "entropy", "modified-entropy", "loss"),  # one number per point
    *("shadow", "lira-online", "lira-offline", "rmia-offline"),  # what shadow and reference models teach
)
"""The declared class of a run that names none, from a file or from Python."""


@dataclass(frozen=True)
class DataSpec:
    """Which data the game is played on."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    name: str = "digits"
    """A data set of the catalogue, `module:function`, or a path of `.npz` files."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the data set's reader, e.g. `tokenizer`."""
    fraction: float = 1.0
    """η: the share of the target half and of the shadow half that is used."""


@dataclass(frozen=True)
class SensitivitySpec:
    """P_D: how often the oracle shows each point. Neither field: uniform."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    by_class: dict[str, float] | None = None
    """Weight of each class; classes not named weigh 1."""
    file: str | None = None
    """A `.npy` file with one weight for each point of the whole data set."""


@dataclass(frozen=True)
class GameSpec:
    """The game itself."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    alpha: float = 0.1
    """α = |F| / |R ∪ F|."""
    pairs: int = 8
    """Swap pairs, each a fresh draw from S_α; five or more give an interval over pairs."""
    seeds: int = 1
    """Trainings per side of a pair, averaged."""
    sensitivity: SensitivitySpec = field(default_factory=SensitivitySpec)
    """P_D."""
    share_retrain: bool = False
    """Use one retrained model for both sides: Q(Retrain) = 1 by construction, no longer a check."""
    level: float = 0.95
    """Confidence level of all intervals."""
    delta: float = 1e-5
    """δ of the certified removal whose ε is bounded from below."""


@dataclass(frozen=True)
class StatisticsSpec:
    """How sure the numbers are, and what that rests on."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    interval: Literal["student", "bounded"] = "student"
    """`student` takes the pairs' advantages as roughly normal; `bounded` assumes no distribution, and is much wider."""


@dataclass(frozen=True)
class ShadowSpec:
    """The shadow models on which adversaries are fitted."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    count: int = 8
    """How many on the shadow half."""
    references: int = 16
    """How many on random parts of the target half, where an adversary asks for them."""


@dataclass(frozen=True)
class StrongSpec:
    """Strong adversaries: every score attack again, with several oracle queries under one secret bit."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    queries: list[int] = field(default_factory=lambda: [1, 4, 16, 64])
    """Numbers of queries; the report draws Q against them."""
    draws: int = 2000
    """Monte Carlo draws of the oracle per model and set."""


@dataclass(frozen=True)
class MetricsSpec:
    """What others measure unlearning by, set beside Q; only `ic` needs models of its own."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    ic: bool = False
    """Interclass confusion: per pair one more model, taught wrong labels, for every method to unlearn."""
    ic_classes: list[int] = field(default_factory=lambda: [0, 1])
    """The two classes it confuses."""
    mia: bool = False
    """1 − AUC of the adversaries on one split and over the swap, and their accuracy offset by Retrain's."""
    distances: bool = False
    """KL divergence and accuracy gaps to Retrain, which must be among the unlearners."""


@dataclass(frozen=True)
class UntilSpec:
    """Add pairs until the intervals of all advantages are narrow enough (Stein's two-stage rule)."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    half_width: float = 0.02
    """Wanted half width of the simultaneous intervals; `game.pairs` is the pilot."""
    max_pairs: int = 64
    """No more than these, narrow enough or not."""


@dataclass(frozen=True)
class SweepSpec:
    """One game for each value of one key."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    key: str = ""
    """The key's path in the run file, e.g. `game.alpha`."""
    values: list[Any] = field(default_factory=list)
    """Its values, in the order of the result's games."""


@dataclass(frozen=True)
class RunSpec:
    """A whole run file."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    seed: int = 0
    """The root of all randomness, fixed beforehand."""
    keep: Literal["signals", "weights"] = "signals"
    """What stays on disk: `weights` lets a method be added later without training the originals again."""
    data: DataSpec = field(default_factory=DataSpec)
    game: GameSpec = field(default_factory=GameSpec)
    learner: dict[str, Any] = field(default_factory=lambda: {"name": "minibatch"})
    """`name` of the learner and its own parameters."""
    shadows: ShadowSpec = field(default_factory=ShadowSpec)
    unlearners: dict[str, dict[str, Any]] = field(default_factory=lambda: {"retrain": {}, "none": {}})
    """Id -> parameters; `method` names the unlearner where the id is not its name."""
    adversaries: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in DEFAULT_ADVERSARIES})
    """The declared class of adversaries, id -> parameters: Q is 1 − the largest of their advantages."""
    statistics: StatisticsSpec = field(default_factory=StatisticsSpec)
    strong: StrongSpec = field(default_factory=StrongSpec)
    metrics: MetricsSpec = field(default_factory=MetricsSpec)
    until: UntilSpec | None = None
    sweep: SweepSpec | None = None
