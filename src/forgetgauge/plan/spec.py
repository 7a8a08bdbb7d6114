"""RunSpec: everything a run file may say, each key declared once with its default, range and one sentence.

A new parameter of the game is a field here (and in `Arguments`), a field of `plan.game.Game` with the same default,
and the code that reads it there: checks, `evaluate`, settings and documentation follow (`plan.parameters`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypedDict

from forgetgauge.plan.parameters import Parameter, Range, declared, parameters_of

_COUNT = Range(least=1, most=10_000)
_MANY = Range(least=1, most=1_000_000)
"""A larger number is a typing error, since nobody has the time for it, and would fill the memory."""
_APART: dict[str, None] = {"argument": None, "in_game": None}
"""Marks keys that reach `evaluate` and `Game` as a part of something else, or not at all."""

DEFAULT_ADVERSARIES = (
    *("correctness", "confidence", "entropy", "modified-entropy", "loss"),  # one number per point
    *("shadow", "lira-online", "lira-offline", "rmia-offline"),  # what shadow and reference models teach
)
"""The declared class of a run that names none, from a file or from Python."""


class _RunFileTable:
    """A table of a run file; keys that it does not know are refused."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}  # read in `runfile`; nothing here imports pydantic


@dataclass(frozen=True)
class DataSpec(_RunFileTable):
    """Which data the game is played on."""

    name: str = declared(
        "digits",
        "a data set of `forgetgauge ls data`, your own `module:function`, or a path of `.npz` files",
        see="([data](data.md))",
        **_APART,
    )
    params: dict[str, Any] = declared(
        {}, "parameters of the data set's reader, e.g. `size = 28` for `mnist`", written="{}", **_APART
    )
    task: str | None = declared(
        None,
        "what the labels of your own data mean: a task of `forgetgauge ls tasks`; a data set of the catalogue knows",
        see="([tasks](tasks.md))",
        written="classification",
        in_game=None,
    )
    groups: int | str | None = declared(
        None,
        "of which group (user, document, person) each point is: a `.npy` file with a number or name for each point, or"
        " a number: so many points that follow each other are one group; a data set may know its groups itself",
        see="([forget sets](forget-sets.md))",
        argument=None,
        in_game=None,
        written="–",
    )
    fraction: float = declared(
        1.0,
        "η: the share of the target half and of the shadow half that is used",
        within=Range(above=0, most=1),
        label="share of each half used, η",
    )


@dataclass(frozen=True)
class SensitivitySpec(_RunFileTable):
    """P_D: how often the oracle shows each point. Neither field: uniform."""

    by_class: dict[str, float] | None = None
    """Weight of each class; classes not named weigh 1."""
    file: str | None = None
    """A `.npy` file with one weight for each point of the whole data set."""


@dataclass(frozen=True)
class GameSpec(_RunFileTable):
    """The game itself."""

    alpha: float = declared(
        0.1,
        "α = |F| / |R ∪ F|",
        within=Range(above=0, below=1),
        label="α = |F| / |R ∪ F|",
        argument_default=0.5,
    )
    by: Literal["point", "group"] = declared(
        "point",
        'what asks to be forgotten: `"group"` draws whole groups of points, which are never cut; α, |F| = |T| and every'
        " statistic then count groups",
        see="([forget sets](forget-sets.md))",
        label="drawn and forgotten by",
    )
    oracle: Literal["point", "group"] | None = declared(
        None,
        'what an adversary is shown at once where groups are drawn: `"point"`, one point of a group, or `"group"`, all'
        " of its points, on whose mean score it decides",
        written="as `by`",
        in_game=None,
    )
    hardest: float = declared(
        1.0,
        "F and T are drawn from this share of D: the points (or groups) that models memorise most, as models show that"
        " have nothing else to do with the game",
        see="([forget sets](forget-sets.md))",
        within=Range(above=0, most=1),
        label="share of D that F and T are drawn from, the hardest first",
    )
    pairs: int = declared(
        8, "swap pairs, each a fresh draw; five or more give an interval over pairs", within=_COUNT, label="swap pairs"
    )
    seeds: int = declared(
        1, "trainings per side of a pair, averaged", within=_COUNT, label="trainings per side of a pair"
    )
    sensitivity: SensitivitySpec = declared(
        SensitivitySpec,
        'P_D: `"uniform"`, `{ by_class = { 3 = 5.0 } }` (other classes weigh 1) or `{ file = "weights.npy" }`'
        " (one weight per point)",
        argument=None,
        written='"uniform"',
    )
    share_retrain: bool = declared(
        False,
        "one retrained model for both sides: Q(Retrain) = 1 by construction, no longer a check",
        label="Retrain shared by both sides",
    )
    level: float = declared(
        0.95, "confidence level of all intervals", within=Range(least=0.5, below=1), label="level of intervals"
    )
    delta: float = declared(
        1e-5,
        "δ of the certified removal whose ε is bounded from below",
        within=Range(least=0, below=0.5),
        label="δ of (ε, δ)-certified removal",
    )


@dataclass(frozen=True)
class StatisticsSpec(_RunFileTable):
    """How sure the numbers are, and what that rests on."""

    interval: Literal["student", "bounded"] = declared(
        "student",
        'the interval of Q: `"student"` takes pairs as roughly normal, `"bounded"` assumes no distribution and is much'
        " wider; certificates are judged by the latter always",
        see="([how many pairs it needs](statistics.md#how-many-pairs-the-bounded-interval-needs))",
        label="intervals",
    )


@dataclass(frozen=True)
class ShadowSpec(_RunFileTable):
    """The shadow models on which adversaries are fitted."""

    count: int = declared(
        8,
        "shadow models on the shadow half, on which the adversaries are fitted",
        within=_COUNT,
        label="shadow models",
        argument="shadows",
        in_game="n_shadows",
    )
    references: int = declared(
        16,
        "reference models on random parts of both halves, where an adversary asks for them",
        within=_COUNT,
        label="reference models",
        in_game="n_references",
    )
    scorers: int = declared(
        16,
        "models on random parts of both halves that show which points are memorised most, where `game.hardest` is"
        " below 1",
        within=Range(least=2, most=10_000),
        label="models that score points for hardness",
        in_game="n_scorers",
    )


@dataclass(frozen=True)
class TuningSpec(_RunFileTable):
    """How the strength of methods with `strength = "auto"` is chosen."""

    price: float = declared(
        0.01,
        'what a method with `strength = "auto"` may cost: its strength is the strongest up to which accuracy is below'
        " both Retrain’s and None’s by no more than this, on models of the shadow half",
        see="([Q at a price](frontier.md))",
        within=Range(above=0, below=1),
        in_game=None,
    )
    points: int = declared(
        8,
        "strengths that are tried first, from the weakest to the strongest; then half as many around the best",
        within=Range(least=2, most=100),
        argument="strengths",
        in_game=None,
    )
    shadows: int = declared(
        8,
        "shadow models on which they are tried",
        within=Range(least=3, most=10_000),
        argument="tuning_shadows",
        in_game=None,
    )
    preset: Literal["price", "published"] = declared(
        "price",
        'what `strength = "auto"` stands for: `"published"` takes the settings of each method’s authors instead',
        see="([their sources](methods.md))",
        argument=None,
        in_game=None,
    )


@dataclass(frozen=True)
class StrongSpec(_RunFileTable):
    """Strong adversaries: every score attack again, with several oracle queries under one secret bit."""

    queries: list[int] = declared(
        [1, 4, 16, 64],
        "numbers of oracle queries of the strong adversaries; the report draws Q against them",
        within=_MANY,
        label="queries of strong adversaries",
        argument_default=(),
    )
    draws: int = declared(
        2000,
        "Monte Carlo draws of the oracle per model and set",
        within=_MANY,
        label="plays of the oracle, each",
        argument=None,
        in_game="oracle_draws",
    )


@dataclass(frozen=True)
class MetricsSpec(_RunFileTable):
    """What others measure unlearning by, set beside Q; only `ic` needs models of its own."""

    ic: bool = declared(
        False,
        "the interclass confusion test beside Q: one more model per pair, taught wrong labels",
        see="([other metrics](metrics.md))",
        **_APART,
    )
    ic_classes: list[int] = declared([0, 1], "the two classes it confuses", **_APART)
    mia: bool = declared(
        False,
        "MIA score (1 − AUC) on one split and over the swap, and offset MIA accuracy, of the adversaries named above",
        **_APART,
    )
    distances: bool = declared(
        False, "KL divergence and accuracy gaps to Retrain, which must be among the unlearners", **_APART
    )
    language: bool = declared(
        False,
        "what is quoted of language models: the KS test on losses and PrivLeak, both against Retrain, which must be"
        " among the unlearners, extraction strength and verbatim match",
        **_APART,
    )


@dataclass(frozen=True)
class UntilSpec(_RunFileTable):
    """Add pairs until the intervals of all advantages are narrow enough (Stein's two-stage rule)."""

    half_width: float = declared(
        0.02,
        "with a table `[until]`, pairs are added until the simultaneous intervals have this half width (Stein's"
        " two-stage rule, `game.pairs` is the pilot)",
        within=Range(above=0),
        **_APART,
    )
    max_pairs: int = declared(64, "no more than these, narrow enough or not", **_APART)


@dataclass(frozen=True)
class SweepSpec(_RunFileTable):
    """One game for each value of one key."""

    key: str = declared("", "one game for each value of this key, e.g. `game.alpha`", written="–", **_APART)
    values: list[Any] = declared([], "its values, in the order of the result's games", written="–", **_APART)


@dataclass(frozen=True)
class LimitsSpec(_RunFileTable):
    """When work is given up."""

    job_seconds: float | None = declared(
        None,
        "a job that takes longer is ended and counts as failed, the others go on (of jobs that are done together, so"
        " many seconds for each); off unless set, and not to be had where everything is done in one process",
        within=Range(above=0),
        written="–",
        in_game=None,
    )


@dataclass(frozen=True)
class RunSpec(_RunFileTable):
    """A whole run file."""

    seed: int = declared(0, "the root of all randomness, fixed beforehand", within=Range(least=0, below=2**63))
    keep: Literal["signals", "weights"] = declared(
        "signals",
        'what stays on disk; `"weights"` lets a method be added later without training originals again',
        in_game=None,
    )
    data: DataSpec = field(default_factory=DataSpec)
    game: GameSpec = field(default_factory=GameSpec)
    statistics: StatisticsSpec = field(default_factory=StatisticsSpec)
    learner: dict[str, Any] = declared(
        {"name": "minibatch"}, "the learner's `name` and its own parameters", written='name = "minibatch"', **_APART
    )
    shadows: ShadowSpec = field(default_factory=ShadowSpec)
    unlearners: dict[str, dict[str, Any]] = declared(
        {"retrain": {}, "none": {}},
        'a list of names, or a table id → parameters; `method = "…"` where the id is not the method\'s name;'
        ' `strength = "auto"` has its strength chosen, `"published"` is as its authors set it, and'
        " `{ lr = [1e-5, 0.1] }` names the parameter with its weakest and its strongest value",
        written="retrain, none",
        **_APART,
    )
    adversaries: dict[str, dict[str, Any]] = declared(
        {name: {} for name in DEFAULT_ADVERSARIES},
        "the declared class of adversaries, Q being 1 − the largest of their advantages: a list of names, or a table"
        " id → parameters",
        written=", ".join(DEFAULT_ADVERSARIES),
        **_APART,
    )
    tuning: TuningSpec = field(default_factory=TuningSpec)
    strong: StrongSpec = field(default_factory=StrongSpec)
    metrics: MetricsSpec = field(default_factory=MetricsSpec)
    limits: LimitsSpec = field(default_factory=LimitsSpec)
    until: UntilSpec | None = None
    sweep: SweepSpec | None = None


PARAMETERS: dict[str, Parameter] = {one.key: one for one in parameters_of(RunSpec)}
"""Every key of a run file, by its path."""


class Arguments(TypedDict, total=False):
    """What `evaluate` takes just as the run file has it, for those who check types (a test compares the names)."""

    seed: int
    keep: str
    task: str | None
    fraction: float
    alpha: float
    by: str
    oracle: str | None
    hardest: float
    pairs: int
    seeds: int
    share_retrain: bool
    level: float
    delta: float
    interval: str
    shadows: int
    references: int
    scorers: int
    price: float
    strengths: int
    tuning_shadows: int
    queries: Sequence[int]
    job_seconds: float | None
