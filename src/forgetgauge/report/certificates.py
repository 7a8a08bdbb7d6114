"""What a method claims to prove, beside what was measured: (ε, δ), the bounds on Adv that follow, Adv itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forgetgauge.game.bounds import paper_bound, tight_bound
from forgetgauge.results.record import GameResult, MethodResult, Result
from forgetgauge.results.roles import lacks_pairs
from forgetgauge.wording import bound, bracket, percent, plain

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
    "Adv = 1 − Q. Interval, ε ≥ and verdict hold for pairs of any distribution at the level of the game: with few "
    "pairs they are wide, and many claims are not settled. Tight bound: 1 − (1 − 2δ)e^−ε; paper’s: "
    "2 − (4 − 4δ)/(e^ε + 1). Retrained: models whose budget was exceeded, which are Retrain’s."
)
UNCERTIFIED = "not certified: some models retrained, some not"
UNCERTIFIED_EXPLAINED = (
    "Not certified: retraining those that exceed the budget keeps the models that fit F well, whose law is not "
    "Retrain’s. Where none or all are retrained there is nothing to choose."
)


@dataclass(frozen=True)
class Certificate:
    """One method of one game; without a claim it stands there for comparison."""

    method: str
    advantage: float
    interval: tuple[float, float]
    """Of the advantage, for pairs of any distribution."""
    floor: float
    """The advantage is at least this, one-sided; what ε ≥ rests on."""
    measured_epsilon: float | None
    """The least ε that `floor` leaves possible."""
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
        """Theorem 3.6 as printed; above 1 it says nothing."""
        return None if self.epsilon is None or self.delta is None else paper_bound(self.epsilon, self.delta)

    @property
    def verdict(self) -> str:
        """Where the distribution-free bounds lie, whatever interval is shown for Q."""
        if self.tight is None:
            return ""
        if not self.complete:
            return "no verdict: pairs are missing"
        if self.floor > self.tight:
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
        """As HEADS has it."""
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
        floor=method.advantage_floor or 0.0,
        measured_epsilon=method.epsilon,
        epsilon=facts.get("claimed_epsilon"),
        delta=facts.get("claimed_delta"),
        retrainings=facts.get("retrainings"),
        n_models=_n_models(game, method) if "retrainings" in facts else None,
        complete=not lacks_pairs(game, method),
    )


def _n_models(game: GameResult, method: MethodResult) -> int | None:
    """Two sides of every pair and seed. Facts are also of models whose pair was not completed, so all must be there."""
    complete = method.n_pairs == game.spec.get("pairs")
    return 2 * method.n_pairs * int(game.spec["seeds"]) if complete and "seeds" in game.spec else None
