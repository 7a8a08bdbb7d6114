"""The versioned record of a run: `result.json`. A report is rebuilt from it alone.

At the end: which methods of a game are references (Retrain, None), which lack pairs, and in which order they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.files import write_whole
from forgetgauge.provenance import PROVENANCE
from forgetgauge.records import Record, read_record
from forgetgauge.results.made import FailureResult, MadeResult, StackResult
from forgetgauge.results.roc_and_parts import PartResult, RocResult
from forgetgauge.results.spec_checks import refuse_odd_spec

SCHEMA = 5
TIMINGS = frozenset({"seconds", "total_seconds", "sha256", *PROVENANCE})
"""Keys that may differ between two runs of the same thing."""

Basis = Literal["over pairs", "given these models"]


@dataclass(frozen=True)
class DiagnosticResult(Record):
    """How well an adversary's score separates F from T; diagnostics beside Q, not Q: their thresholds saw F and T."""

    auc: float
    """Area under the ROC curve, averaged over the swap: ½ is no separation."""
    tpr_at_fpr_1_percent: float
    """True positives at 1 % false positives, one threshold for all models; in results of earlier versions one each."""
    tpr_at_fpr_1_permille: float
    """True positives at 0.1 % false positives."""
    ks: float
    """Upper envelope: no one threshold on this score has a larger advantage on a pair. Above 0 even for Retrain."""


@dataclass(frozen=True)
class StrongResult(Record):
    """An adversary that asks the oracle several times under one secret bit."""

    queries: int
    """q."""
    advantage: float
    """Signed SWAP advantage of the mean margin of q points against a threshold of its own."""
    interval: tuple[float, float] | None
    """Over pairs, this adversary taken alone; None below five pairs, and where all pairs agree exactly."""
    by_pair: list[float]


@dataclass(frozen=True)
class AdversaryResult(Record):
    """What one adversary achieved against one method."""

    advantage: float
    """Signed SWAP advantage, averaged over pairs, sides and seeds; 0 is no advantage."""
    interval: tuple[float, float]
    """For that advantage, this adversary taken alone."""
    by_pair: list[float]
    """Signed advantage of each swap pair, averaged over its seeds."""
    diagnostics: DiagnosticResult | None = None
    strong: list[StrongResult] = field(default_factory=list)
    """What the same adversary finds with more queries."""
    roc: RocResult | None = None
    """ROC curve of the method's strongest adversary, where it has scores."""


@dataclass(frozen=True)
class TriedStrength(Record):
    """What one value of a strength costs."""

    value: int | float
    loss: float | None
    """Utility lost, averaged over the models it was tried on; None where one of them diverged or failed."""
    bound: float | None
    """Upper bound for what it costs: the smaller of Student's one-sided bounds, at the level of the game, for how far
    it is below retrained and below untreated models."""
    diverged: bool = False
    """Whether a model gave no numbers there; else what is not known is what failed. False in results of earlier
    versions."""


@dataclass(frozen=True)
class TuningResult(Record):
    """How a strength was chosen: by what it costs models of the shadow half on points that they never saw."""

    parameter: str
    chosen: int | float
    """The strongest value before the first whose bound is not within the price, or the one before that where a model
    diverged at the next; the weakest that was tried where the price is not kept there."""
    price: float
    """The most utility that the strength may cost: 0.01 is a point of accuracy."""
    holds: bool
    """Whether the chosen value keeps within the price."""
    against: str
    """`retrained` or `untreated`, the lower of the two on average: what losses are counted from."""
    n_models: int
    tried: list[TriedStrength]
    """The weakest first."""


@dataclass(frozen=True)
class MetricResult(Record):
    """What a rival metric says of one method."""

    value: float
    """Mean over pairs."""
    interval: tuple[float, float] | None
    """Student's t over pairs, of this metric and adversary taken alone; None below five pairs, or where all agree."""
    by_pair: list[float]
    adversary: str | None = None
    """Whose scores or decisions it is computed from: the best at that, chosen on the same pairs."""
    by_adversary: dict[str, float] = field(default_factory=dict)
    """The mean of each."""


@dataclass(frozen=True)
class WorstPairResult(Record):
    """The swap pair in which an adversary saw most: a method that fails in a few of its models shows it here first."""

    quality: float
    """1 − the largest |advantage| of any adversary in any single pair."""
    pair: int
    """Which pair: its place in `by_pair`, from 0."""
    adversary: str
    """The adversary that saw most there."""
    noise_floor: float | None = None
    """95 % of relabellings have no pair with a larger |advantage| than this; None in results of earlier versions."""


@dataclass(frozen=True)
class MethodResult(Record):
    """What was measured of one unlearning method."""

    quality: float | None
    """1 − the advantage of the adversary chosen on some pairs and scored on others: unbiased for the one chosen, so
    optimistic about the maximum; where that lies beside `interval`, the nearer end of it. None where no pair was
    completed, or no adversary decided anything."""
    quality_plugin: float | None
    """The paper's 1 − max over adversaries of |advantage|: chosen and scored on the same pairs, biased low."""
    chosen_on: str | None
    """Whether `quality` chose its adversary on other pairs, or (too few of them) on other points of the same models."""
    interval: tuple[float, float] | None
    """For Q, the maximum over the adversaries included: Student's t over pairs, or the bounded one if asked for."""
    interval_basis: Basis | None
    """`over pairs`, or `given these models` where this method completed too few pairs."""
    epsilon: float | None
    """With the confidence `level` of the game, any (ε, δ)-certified removal this method could claim has at least this
    ε, by its most visible model or by the mean over pairs of any distribution."""
    adversary: str | None
    """The adversary with the largest |advantage|."""
    by_adversary: dict[str, AdversaryResult]
    p_value: float | None
    """p of “no different from Retrain”, by relabelling F ∪ T."""
    noise_floor: float | None
    """95 % of relabellings give a smaller max |advantage| than this: below it, an advantage may be chance."""
    n_pairs: int
    """Swap pairs that were completed."""
    utility: dict[str, float]
    """Mean utility, of a classifier its accuracy, on `retain`, `forget`, `unseen` (T) and, where the data set has one,
    the official `test` set."""
    n_gradients: float | None
    """Per-example gradients evaluated per unlearned model; None where it is not known (an audit)."""
    seconds: float | None
    """Wall time per unlearned model: its share of the time that those done together took."""
    facts: dict[str, float] = field(default_factory=dict)
    """What the learner and the method have to say about their models, averaged: a privacy budget spent, retrainings."""
    utility_by_pair: dict[str, list[float]] = field(default_factory=dict)
    """`utility` of each swap pair, averaged over its sides and seeds; empty in an audit."""
    metrics: dict[str, MetricResult] = field(default_factory=dict)
    """Rival metrics by name (docs/metrics.md), where they were asked for."""
    decided_nothing: list[str] = field(default_factory=list)
    """Adversaries that answered the same of all points of every model, which measures nothing; where all did there is
    no evidence, and no Q."""
    silence_counts: list[str] = field(default_factory=list)
    """Adversaries that called every point of every model unseen, where that is an answer: an advantage of 0
    (docs/decisions/0045). Empty in results of earlier versions."""
    missed: list[str] = field(default_factory=list)
    """Adversaries whose scores tell F from T beyond chance while the thresholds that shadow models taught make little
    of it: Q is too high (docs/decisions/0049). Empty in results of earlier versions."""
    bounded_interval: tuple[float, float] | None = None
    """For Q from independent pairs of any distribution: what a certificate is judged by."""
    advantage_floor: float | None = None
    """With half of the error that `level` allows, the largest advantage is at least this for pairs of any distribution;
    0 below five pairs. `epsilon` and a claim called refuted rest on it and on `model_log10_p`."""
    model_log10_p: float | None = None
    """log10 of the exact p of the model that shows F most, corrected for the choice among all models and adversaries:
    −6 is one in a million. None in results of earlier versions."""
    n_models: int = 0
    """Models that the choice was among."""
    worst_pair: WorstPairResult | None = None
    """The single pair in which an adversary saw most."""
    verdict: str | None = None
    """In words, one of five (docs/statistics.md); None in results of earlier versions."""
    resolution: float | None = None
    """The advantage that would have been seen with a power of 80 %; None where nothing was."""
    noise_at_level: float | None = None
    """Where the level is not 95 %: what the noise floor is at that level, and 1 where no p is small enough for it."""
    tuning: TuningResult | None = None
    """How its strength was chosen, where that was done in the run."""
    parts: dict[str, list[PartResult]] = field(default_factory=dict)
    """By column, `class` first: what the strongest adversary gains on each part of the points."""


@dataclass(frozen=True)
class NoiseFloorResult(Record):
    """What advantage chance alone gives in this game, from the method that knows nothing of F where there is one."""

    method: str
    """The method whose models it was computed with."""
    mean: float
    """Mean of max |advantage| over relabellings."""
    q95: float
    """Its 95th percentile."""


@dataclass(frozen=True)
class ComparisonResult(Record):
    """Two methods compared on the same pairs."""

    first: str
    second: str
    difference: float
    """Q of the first minus Q of the second (plug-in)."""
    interval: tuple[float, float]
    """Paired, for the difference of the true qualities."""
    better: str | None
    """The better one, where the interval says so."""


@dataclass(frozen=True)
class PairDecisions(Record):
    """What was decided on one swap pair about methods that were asked about the same points; packed by `decisions`."""

    pair: int | str
    methods: list[str]
    n_points: int
    seeds: int
    in_forget: str
    """(points,) whether each is in F of the first side: bits, deflated, base64."""
    decisions: str
    """Bits of (sides, seeds, points, adversaries, methods)."""
    weight: str | None = None
    """P_D of each point as little-endian doubles; None where all weigh alike."""
    group: str | None = None
    """Which of the pair's groups, from 0, each point is of, as little-endian 32-bit numbers; None where points were
    drawn, or groups answered about as a whole, which then are the points here."""
    columns: dict[str, str] = field(default_factory=dict)
    """Column -> of each point a byte: the place of its value among those that the game names."""


@dataclass(frozen=True)
class GameDecisions(Record):
    """Every decision behind the numbers of a game: what `verify` computes them from again."""

    methods: list[str]
    """In the order in which they were judged."""
    adversaries: list[str]
    pairs: list[PairDecisions]
    columns: dict[str, list[str]] = field(default_factory=dict)
    """Column -> its different values: the parts of the points that were looked at."""


@dataclass(frozen=True)
class GameResult(Record):
    """One game: a table of methods."""

    value: Any
    """The swept value; None without a sweep."""
    spec: dict[str, Any]
    """Every choice of the game, resolved."""
    methods: dict[str, MethodResult]
    noise_floor: NoiseFloorResult | None
    comparisons: list[ComparisonResult]
    """Every two methods on the same pairs, each interval at the level of the game on its own."""
    rank_stability: float | None
    """Mean Kendall τ between each pair's ranking of the methods and the overall one."""
    interval_basis: Basis | None
    """`over pairs` (what new splits and trainings would give), or `given these models` where pairs are too few."""
    warnings: list[str] = field(default_factory=list)
    """What may make a number of this game untrue, one sentence each; shown beside the numbers."""
    not_covered: list[str] = field(default_factory=list)
    """What the user's own code depends on and no key covers: results stay as they are when it changes."""
    utility_name: str = "accuracy"
    """What the utility of its models is called."""
    decisions: GameDecisions | None = None
    """What every number follows from; None in results of earlier versions."""
    made: MadeResult | None = None
    """How it was made, in a result of several games; None in results of earlier versions."""


@dataclass(frozen=True)
class Result(Record):
    """What a whole run found: all that a report is made from."""

    environment: dict[str, str]
    """When, by which command and of which commit the result was made, on which processor; versions, and the device or
    devices the models were made on."""
    digests: dict[str, str]
    """SHA-256 of the data and of all decisions taken together."""
    games: list[GameResult]
    """One, or one for each value of the sweep."""
    failures: list[FailureResult] = field(default_factory=list)
    stacks: list[StackResult] = field(default_factory=list)
    """How the models were made; empty in results that models of one's own were judged in (an audit)."""
    sweep: str | None = None
    """The swept key."""
    total_seconds: float = 0.0
    """Work done for this result, summed over processes."""
    schema: int = SCHEMA
    sha256: str = field(default="", compare=False)
    """Of the file itself, this digest left empty: set when it is written, checked when it is read."""

    @property
    def methods(self) -> dict[str, MethodResult]:
        """The methods of a run without a sweep."""
        if self.sweep is not None:
            raise AttributeError("a sweep has one table of methods per game: see `games`")
        return self.games[0].methods

    def save(self, path: Path) -> None:
        """Write `result.json` somewhere."""
        write_whole(path, self.to_json())


def read_result(path: Path, *, sealed: bool = True) -> Result:
    """A validated result, or one line on what is wrong with the file; one that was changed since it was written is
    refused where it must be `sealed`."""
    if not path.exists():
        raise UserError(f"{path}: no such file; has the run finished?")
    result = read_record(path, Result, sealed=sealed)
    for number, game in enumerate(result.games):
        refuse_odd_spec(path, f"games.{number}.spec", game.spec)
    return result


def without_timings(record: Any) -> Any:
    """A JSON value with all timings removed: what two runs of the same thing agree on to the byte."""
    if isinstance(record, dict):
        return {key: without_timings(value) for key, value in record.items() if key not in TIMINGS}
    return [without_timings(item) for item in record] if isinstance(record, list) else record


def is_run(spec: Mapping[str, Any]) -> bool:
    """Whether a game with this spec was played by a run, whose data are known; if not, an audit read a file."""
    return "data_digest" in spec


def rests_on_draw(spec: Mapping[str, Any]) -> str:
    """What ε takes for granted in an audit, as a sentence with a space before it; nothing in a run, which draws F."""
    return "" if is_run(spec) else f" {UNDRAWN}"


UNDRAWN = "It takes F for a random half of F and T, as a draw makes it; if F was chosen otherwise, ε ≥ may be too high."


# -- who is who --------------------------------------------------------------------------------------------------------


NAMES_OF = {"retrain": ("retrain", "retrained"), "none": ("none", "before", "original")}
"""What models of one's own are called, in any case of letters, that are references: role -> names. The first is the
unlearner of a run."""
ALIKE = 0.8
"""Names whose letters agree so far are perhaps meant to be one."""


def reference_named(name: str) -> str | None:
    """`retrain` or `none`, where a model of one's own has one of their names."""
    return next((role for role, names in NAMES_OF.items() if name.strip().casefold() in names), None)


def nearly_reference(name: str) -> str | None:
    """The reference that a name is near to, word by word, without being one: `retrain` of `retrain_v2`. Methods that
    come with this package, such as `retrain-final`, are what they are called."""
    if reference_named(name) is not None or name.casefold() in plugins.unlearners:
        return None
    words = [name.casefold(), *re.findall(r"[^\W\d_]+", name.casefold())]
    return next(
        (
            role
            for role, names in NAMES_OF.items()
            for one in words
            if any(near.startswith(one[0]) for near in get_close_matches(one, names, 1, ALIKE))
        ),
        None,
    )


def role_of(game: GameResult, method: str) -> str:
    """`retrain`, `none` or `tested`, by the unlearner's own name, which the method's id may hide; of models of one's
    own, by what they are called."""
    unlearner = game.spec.get("methods", {}).get(method, {}).get("unlearner", {}).get("name")
    if unlearner is None:
        return reference_named(method) or "tested"
    return unlearner if unlearner in NAMES_OF else "tested"


def lacks_pairs(game: GameResult, method: MethodResult) -> bool:
    """Whether pairs of the game are missing: such a Q is of other splits than the others', and carries no verdict."""
    return method.n_pairs < int(game.spec.get("pairs", method.n_pairs))


def by_quality(methods: dict[str, MethodResult]) -> list[tuple[str, MethodResult]]:
    """Highest Q first, then by the plug-in (many are at 1); then methods that lack pairs, then those without a Q."""
    n_pairs = max((method.n_pairs for method in methods.values()), default=0)

    def order(item: tuple[str, MethodResult]) -> tuple[bool, bool, float, float, str]:
        name, method = item
        quality, plugin = (round(value or 0, 12) for value in (method.quality, method.quality_plugin))
        return method.quality is None, method.n_pairs < n_pairs, -quality, -plugin, name

    return sorted(methods.items(), key=order)


def pairs_behind(game: GameResult, method: MethodResult) -> str:
    """`8`, or `1 of 6`."""
    return f"{method.n_pairs} of {game.spec['pairs']}" if lacks_pairs(game, method) else str(method.n_pairs)
