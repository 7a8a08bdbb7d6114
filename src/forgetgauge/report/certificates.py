"""What learners and methods state about their models, beside what was measured.

Certificates: the (ε, δ) that a method claims, the bounds on Adv that follow, and Adv itself. Facts: a table per method
and game, and a line on budgets. A method that starts from the original has the original's ε, whatever it did to the
model since: its own steps are in no accountant's book. So of a budget there are two numbers, that of the originals and
that of models trained anew on R.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from forgetgauge.game.bounds import least_epsilon, paper_bound, tight_bound
from forgetgauge.plan.spec import GameSpec
from forgetgauge.results.record import GameResult, MethodResult, Result, by_quality, lacks_pairs, role_of
from forgetgauge.wording import bound, bracket, percent, plain, setting

HEADS = (
    "claimed ε",
    "method",
    "Adv",
    "interval",
    "tight bound",
    "paper’s bound",
    "ε ≥",
    "retrained",
    "measured against the tight bound",
)
EXPLAINED = (
    "Adv = 1 − Q. The interval holds whatever the distribution of pairs: with few pairs it is wide, and many claims "
    "are neither confirmed nor refuted (not settled). ε ≥ is for the claim’s δ: a claim of less is refuted. Tight "
    "bound: 1 − (1 − 2δ)e^−ε; paper’s: 2 − (4 − 4δ)/(e^ε + 1). Retrained: models whose removal budget was exceeded, so "
    "that they were trained again."
)
UNCERTIFIED = "not certified: some models retrained, some not"
UNCERTIFIED_EXPLAINED = (
    "Not certified: where only the models that exceed the budget are retrained, those that remain were selected by how "
    "well they fit F, so their distribution is not Retrain’s. Where none or all are retrained, nothing was selected."
)


@dataclass(frozen=True)
class Certificate:
    """One method of one game; without a claim it stands there for comparison."""

    method: str
    advantage: float
    interval: tuple[float, float]
    """Interval of the advantage, for pairs of any distribution."""
    measured_epsilon: float
    """The least ε that what was measured leaves possible, at the δ of the claim."""
    epsilon: float | None = None
    delta: float | None = None
    retrainings: float | None = None
    """Share of models that were retrained because the budget was exceeded."""
    n_models: int | None = None
    """How many the share is of; None where pairs are missing."""
    complete: bool = True
    """Whether every pair was completed; without that there is no verdict."""

    @property
    def tight(self) -> float | None:
        """Adv is at most this, if the claim is true."""
        return None if self.epsilon is None or self.delta is None else tight_bound(self.epsilon, self.delta)

    @property
    def paper(self) -> float | None:
        """Theorem 3.5 as printed; above 1 it says nothing."""
        return None if self.epsilon is None or self.delta is None else paper_bound(self.epsilon, self.delta)

    @property
    def verdict(self) -> str:
        """Whether ε ≥ is above the claim, or the interval for pairs of any distribution below its bound."""
        if self.tight is None:
            return ""
        if not self.complete:
            return "no verdict: pairs are missing"
        if self.epsilon is not None and self.measured_epsilon > self.epsilon:
            return "above: the claim is refuted"
        return "below" if self.interval[1] <= self.tight else "not settled"

    @property
    def remark(self) -> str:
        """What the procedure itself takes from the claim: a choice among models, where only some were retrained."""
        return UNCERTIFIED if self.retrainings is not None and 0 < self.retrainings < 1 else ""

    @property
    def retrained(self) -> str:
        """`147 of 400, 36.8 %`."""
        if self.retrainings is None:
            return "–"
        counted = "" if self.n_models is None else f"{self.retrainings * self.n_models:.0f} of {self.n_models}, "
        return counted + percent(self.retrainings)

    @property
    def cells(self) -> list[str]:
        """The row of the table, a cell for each of HEADS."""
        return [
            "–" if self.epsilon is None else f"{self.epsilon:g}",
            self.method,
            plain(self.advantage),
            bracket(self.interval),
            "–" if self.tight is None else plain(self.tight),
            "–" if self.paper is None else plain(self.paper),
            bound(self.measured_epsilon),
            self.retrained,
            self.verdict or "–",
        ]


def certificates(result: Result) -> list[Certificate]:
    """All claims, then the other methods of those games, each once; empty where nothing is claimed."""
    games = [game for game in result.games if any("claimed_epsilon" in m.facts for m in game.methods.values())]
    found = [_certificate(game, name, method) for game in games for name, method in _known(game)]
    claims = [one for one in found if one.epsilon is not None]
    return claims + list(dict.fromkeys(one for one in found if one.epsilon is None))


def legend(result: Result) -> list[str]:
    """How to read the table; on the remark only where a row has it."""
    remarked = any(one.remark for one in certificates(result))
    return [EXPLAINED, *([UNCERTIFIED_EXPLAINED] if remarked else [])]


def claimed_delta(result: Result) -> str:
    """`δ = 0.0001`, or all that occur."""
    return ", ".join(dict.fromkeys(f"δ = {one.delta:g}" for one in certificates(result) if one.delta is not None))


def _known(game: GameResult) -> Iterator[tuple[str, MethodResult]]:
    return (
        (name, method)
        for name, method in game.methods.items()
        if method.quality is not None and method.bounded_interval
    )


def _certificate(game: GameResult, name: str, method: MethodResult) -> Certificate:
    assert method.quality is not None
    assert method.bounded_interval is not None
    low, high = method.bounded_interval
    facts = method.facts
    return Certificate(
        method=name,
        advantage=1 - method.quality,
        interval=(1 - high, 1 - low),
        measured_epsilon=_measured_epsilon(game, method),
        epsilon=facts.get("claimed_epsilon"),
        delta=facts.get("claimed_delta"),
        retrainings=facts.get("retrainings"),
        n_models=_n_models(game, method) if "retrainings" in facts else None,
        complete=not lacks_pairs(game, method),
    )


def _measured_epsilon(game: GameResult, method: MethodResult) -> float:
    return least_epsilon(
        method.advantage_floor or 0.0,
        (method.model_log10_p or 0.0) * math.log(10),
        n_models=method.n_models,
        delta=method.facts.get("claimed_delta", game.spec.get("delta", GameSpec.delta)),
        level=game.spec.get("level", GameSpec.level),
    )


def _n_models(game: GameResult, method: MethodResult) -> int | None:
    """Two sides of every pair and seed. Facts are also of models whose pair was not completed, so all must be there."""
    complete = method.n_pairs == game.spec.get("pairs")
    return 2 * method.n_pairs * int(game.spec["seeds"]) if complete and "seeds" in game.spec else None


# -- facts -------------------------------------------------------------------------------------------------------------

FACTS_EXPLAINED = (
    "Averages over a method’s models, as the learner and the method state them. What a learner states (spent_epsilon, "
    "say) is of the training that made the model: what an unlearning method did afterwards is not counted in it. A "
    "spent_epsilon bounds what one point’s gradients change, the number of points being public; adding or removing a "
    "point changes that number, which is not covered."
)


@dataclass(frozen=True)
class FactTable:
    """What was stated; a dash where nothing was."""

    heads: list[str]
    rows: list[list[str]]


def facts_table(result: Result) -> FactTable | None:
    """One column per fact, in the order in which they are first met; None where no method states any."""
    stated = [(game.value, name, method.facts) for game in result.games for name, method in by_quality(game.methods)]
    columns = list(dict.fromkeys(fact for _, _, facts in stated for fact in facts))
    if not columns:
        return None
    where = [] if result.sweep is None else [result.sweep]
    rows = [
        [*([setting(value)] if where else []), name, *(_shown(facts.get(column)) for column in columns)]
        for value, name, facts in stated
        if facts
    ]
    return FactTable([*where, "method", *columns], rows)


def _shown(value: float | None) -> str:
    """At most three decimals, or three digits that say something where the number is small; a mean of 0.6 is 0.6."""
    if value is None:
        return "–"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.1 else f"{value:.3g}"


SPENT, TARGET, NOISE = "spent_epsilon", "target_epsilon", "noise_multiplier"
"""Facts of a learner that keeps such a book (`learn/dp_sgd.py`)."""

COVERED = "It holds for one point’s gradients, there or not, at a public number of points."
"""The adjacency of a spent ε, zero-out, in words (docs/decisions/0026-epsilon-at-a-public-n.md)."""


def spent_budget(game: GameResult) -> str | None:
    """`Privacy budget ε that … spent: 7.993 original, 7.992 retrained; target 8. It holds …` None without any."""
    budgets: dict[str, Mapping[str, float]] = {}
    for whose, facts in _stated_budgets(game):
        budgets.setdefault(whose, facts)
    if not budgets:
        return None
    spent = ", ".join(f"{_amount(facts)} {whose}" for whose, facts in sorted(budgets.items()))
    targets = dict.fromkeys(f"{facts[TARGET]:.4g}" for facts in budgets.values() if TARGET in facts)
    aim = f"; target {', '.join(targets)}" if targets else ""
    covers = f" {COVERED}" if any(SPENT in facts for facts in budgets.values()) else ""
    return f"Privacy budget ε that the training of a model spent: {spent}{aim}.{covers}"


def _stated_budgets(game: GameResult) -> Iterator[tuple[str, Mapping[str, float]]]:
    """(`original` or `retrained`, facts) of each method that states a budget."""
    for name, method in game.methods.items():
        if SPENT in method.facts or method.facts.get(NOISE) == 0:
            yield ("original" if _starts_from_original(game, name) else "retrained"), method.facts


def _starts_from_original(game: GameResult, method: str) -> bool:
    retrains = role_of(game, method) == "retrain"
    return bool(game.spec.get("methods", {}).get(method, {}).get("uses_original", not retrains))


def _amount(facts: Mapping[str, float]) -> str:
    """Without noise there is no bound."""
    return plain(facts[SPENT]) if SPENT in facts else "∞"
