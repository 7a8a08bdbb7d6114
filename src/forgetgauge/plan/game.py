"""One game with every choice made: what is played, by which methods, against whom. `run.json` holds it as plain JSON,
so that a run can be scored and reported without its sources.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.splits import SwapPair, split_sizes
from forgetgauge.plan.draws import GROUP, half_sizes
from forgetgauge.plan.jobs import Named
from forgetgauge.plan.strength import Strength, Tuning, Value, Variant
from forgetgauge.plan.subjects import Halves, Target


@dataclass(frozen=True)
class Method:
    """An unlearner as the plan sees it."""

    unlearner: Named
    uses_original: bool = True
    """Whether it starts from the trained model (Retrain does not)."""
    stacked: bool = False
    """Whether it treats many models at once."""
    learner: Named | None = None
    """The learner it brings along, where the game's own would not do."""
    tuning: Tuning | None = None
    """How its strength is chosen in the run, where it is."""
    variant: Variant | None = None
    """For a point of the frontier: which method it belongs to, and at which strength."""
    source: str = ""
    """Where its settings were published, if they are taken from there."""

    @property
    def is_settled(self) -> bool:
        """Whether all its parameters are known."""
        return self.tuning is None or self.tuning.chosen is not None

    def at(self, value: Value) -> Named:
        """The unlearner at a value of the strength that is tuned."""
        if self.tuning is None:
            raise ValueError("a method without tuning has one strength")
        params = {**self.unlearner.params, self.tuning.strength.parameter: value}
        return replace(self.unlearner, params=params)

    def tuned(self, tuning: Tuning) -> Method:
        """With what is known of its strength by now."""
        if tuning.chosen is None:
            return replace(self, tuning=tuning)
        variant = None if self.variant is None else replace(self.variant, value=tuning.chosen)
        return replace(self, unlearner=self.at(tuning.chosen), tuning=tuning, variant=variant)

    @property
    def as_asked(self) -> Method:
        """The method before its strength was chosen."""
        if self.tuning is None:
            return self
        tuning = Tuning.begin(self.tuning.strength, self.tuning.points)
        variant = None if self.variant is None else replace(self.variant, value=None)
        return replace(self, unlearner=self.at(tuning.tried[0]), tuning=tuning, variant=variant)


@dataclass(frozen=True)
class PlannedAdversary:
    """An adversary as the plan sees it."""

    adversary: Named
    needs: tuple[str, ...] = ()
    """What it asks for besides shadow models: the plan knows these words, not the adversaries."""
    columns: tuple[str, ...] = ()
    """Columns it reads beside the outputs."""
    references: int | None = None
    """How many reference models it is shown; as many as the game has without it."""


PRICE_RULE = 3
"""Raised when another strength may be chosen from the same models."""


@dataclass(frozen=True)
class Price:
    """The rule by which strengths are chosen: the strongest up to which all that are tried cost no more than this, on
    models of the shadow half.

    What a method costs is how far its utility is below that of both a retrained and an untreated model.
    """

    price: float
    shadows: int
    """Models it is tried on."""
    retrain: Method
    """How a retrained model is made."""
    rule: int = PRICE_RULE
    """1 in games that were played before costs were bounded by either yardstick, on a test set where there is one; 2
    where a value that does not keep the price did not end the search."""


@dataclass(frozen=True)
class Game:
    """One game with every choice resolved: what `run.json` holds and all that workers are given."""

    data: Named
    data_digest: str
    n_points: int
    n_classes: int
    """1 where labels are no classes."""
    seed: int
    fraction: float
    alpha: float
    pairs: int
    seeds: int
    level: float
    delta: float
    share_retrain: bool
    sensitivity: Mapping[str, Any]
    """`{"kind": "uniform"}`, or `by-class` with weights, or `file` with its digest."""
    learner: Named
    n_shadows: int
    n_references: int
    methods: Mapping[str, Method]
    adversaries: Mapping[str, PlannedAdversary]
    model_bytes: int
    """Size of one model's weights, for the estimate of disk use."""
    queries: tuple[int, ...] = ()
    """Numbers of oracle queries of the strong adversaries."""
    oracle_draws: int = 2000
    until: Mapping[str, float] | None = None
    """`half_width` and `max_pairs` of an adaptive run; `pilot_pairs` once it has begun."""
    value: Any = None
    """The swept value, in a sweep."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Rival metrics that are asked for: `ic` with the two classes it confuses, `mia`, `distances`, `language`."""
    interval: Literal["student", "bounded"] = "student"
    """Which interval of Q is shown; no job depends on it."""
    task: str = "classification"
    """What labels and outputs mean; the data's digest stands for it in keys."""
    utility_name: str = "accuracy"
    """What the task calls its utility: written down, so that a report of a stranger's run loads no code of theirs."""
    price: Price | None = None
    """How strengths are chosen, where any is."""
    frontier: Mapping[str, int] | None = None
    """`points`: at so many strengths each method is to be played, once it is known which are worth it; `planned`: 1
    when it is."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that the data brings, by which Q is shown, each with the SHA-256 of its values; no model sees them."""
    by: Literal["point", "group"] = "point"
    """What is drawn and forgotten: single points, or groups of them."""
    oracle: Literal["point", "group"] = "point"
    """What an adversary is shown at once: a point, or a group, on whose mean margin it decides."""
    n_groups: int = 0
    """Number of groups in the data set, where groups are drawn."""
    hardest: float = 1.0
    """F and T are drawn from this share of D, that which is memorised most."""
    n_scorers: int = 16
    """Models that show which it is."""

    @property
    def n_drawn(self) -> int:
        """How many points the data set has or, where groups are drawn, how many groups."""
        return self.n_groups if self.by == GROUP else self.n_points

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of retained and of forgotten points, (|R|, |F|); where groups are drawn, of groups."""
        return split_sizes(half_sizes(self.n_drawn, self.fraction)[0], self.alpha)

    @property
    def halves(self) -> Halves:
        """The two halves of its data set."""
        return Halves(self.data_digest, self.seed, self.fraction, self.by)

    def swap_pair(self, pair: int, groups: Ints | None = None, hardest: Bools | None = None) -> SwapPair:
        """The pair-th swap pair, as positions in the target half; of its points' groups, where groups are drawn, and
        among the hardest, where these are asked for."""
        n = half_sizes(self.n_points, self.fraction)[0] if groups is None else len(groups)
        return Target(self.halves, self.alpha, pair, 0).swap_pair(n, groups, hardest)

    @property
    def choices(self) -> list[tuple[str, str, Named]]:
        """What is chosen by name: (`learner`, `unlearner` or `adversary`, place in the run file, choice)."""
        methods = self.methods.items()
        return [
            ("learner", "learner", self.learner),
            *(("unlearner", f"unlearners.{name}", one.unlearner) for name, one in methods),
            *(("learner", f"unlearners.{name}.learner", one.learner) for name, one in methods if one.learner),
            *(("adversary", f"adversaries.{name}", one.adversary) for name, one in self.adversaries.items()),
        ]

    @property
    def settled(self) -> list[str]:
        """Methods all of whose parameters are known: these can be played."""
        return [name for name, method in self.methods.items() if method.is_settled]

    @property
    def as_asked(self) -> Game:
        """Before any strength was chosen or found worth playing; the rule matters only where one is."""
        asked = {name: one for name, one in self.methods.items() if one.variant is None or one.tuning is not None}
        methods = {name: method.as_asked for name, method in asked.items()}
        frontier = None if self.frontier is None else {"points": self.frontier["points"]}
        is_used = any(method.tuning is not None for method in methods.values())
        return replace(self, methods=methods, price=self.price if is_used else None, frontier=frontier)

    def n_references_of(self, adversary: str) -> int:
        """How many reference models an adversary is shown that asks for them."""
        return self.adversaries[adversary].references or self.n_references

    def learner_of(self, method: str) -> Named:
        """The learner whose models a method unlearns."""
        return self.methods[method].learner or self.learner


MOST_JOBS = 2_000_000
"""Most jobs of a game: to plan more takes minutes before the first one starts."""


def too_many_jobs(pairs: int, seeds: int, n_methods: int, n_adversaries: int) -> str:
    """Why a game of such a size is not planned; empty where it is."""
    n_jobs = 2 * pairs * seeds * n_methods * (2 + n_adversaries)
    if n_jobs <= MOST_JOBS:
        return ""
    return (
        f"{pairs} pairs, {seeds} seeds, {n_methods} methods and {n_adversaries} adversaries are {n_jobs:,} jobs, more "
        f"than {MOST_JOBS:,}: make several runs of it"
    )


# -- as JSON -----------------------------------------------------------------------------------------------------------


def game_to_json(game: Game) -> dict[str, Any]:
    """The game as plain JSON, as `run.json` keeps it."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(game)))
    return plain


def game_from_json(record: dict[str, Any]) -> Game:
    """The game that `game_to_json` wrote."""
    nested = {
        "data": _named(record["data"]),
        "learner": _named(record["learner"]),
        "methods": {name: _method(method) for name, method in record["methods"].items()},
        "adversaries": {name: _adversary(adversary) for name, adversary in record["adversaries"].items()},
        "queries": tuple(record["queries"]),
        "price": _price(record["price"]) if record.get("price") else None,
    }
    return Game(**{**record, **nested})


def _named(record: dict[str, Any]) -> Named:
    return Named(**{**record, "not_covered": tuple(record.get("not_covered", ()))})


def _method(record: dict[str, Any]) -> Method:
    learner, tuning, variant = (record.get(name) for name in ("learner", "tuning", "variant"))
    nested = {
        "unlearner": _named(record["unlearner"]),
        "learner": _named(learner) if learner else None,
        "tuning": _tuning(tuning) if tuning else None,
        "variant": Variant(**variant) if variant else None,
    }
    return Method(**{**record, **nested})


def _price(record: dict[str, Any]) -> Price:
    return Price(**{"rule": 1, **record, "retrain": _method(record["retrain"])})


def _tuning(record: dict[str, Any]) -> Tuning:
    strength = Strength(**record["strength"])
    found = Tuning(**{**record, "strength": strength, "tried": tuple(record["tried"])})
    if found.tried != strength.in_order(found.tried) or found.chosen not in (None, *found.tried) or not found.tried:
        raise ValueError("a strength is chosen among those that were tried, the weakest first")
    return found


def _adversary(record: dict[str, Any]) -> PlannedAdversary:
    nested = {"adversary": _named(record["adversary"]), "needs": tuple(record["needs"])}
    return PlannedAdversary(**{**record, **nested, "columns": tuple(record["columns"])})
