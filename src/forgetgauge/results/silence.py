"""Adversaries that answer the same of all points of each of a method's models: whether that measures anything.

As a rule it does not. A method whose models' outputs are on another scale than those of the shadow models is answered
alike too, and would get Q = 1 for nothing; such an adversary is left out of that method's Q. But where models tell
members from others without any overlap, the threshold of an adversary lies between the two, and of a model that was
never trained on F it says rightly that it saw neither F nor T. Such silence counts, as an advantage of 0
(docs/decisions/0045).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.assessment import Assessment
from forgetgauge.game.direction import decides_nothing, rarer_than, z_over_pairs
from forgetgauge.results.assessed import assessed_fields
from forgetgauge.results.record import GameResult, MethodResult, role_of
from forgetgauge.results.utility import is_shown_undamaged, knows_half_as_much
from forgetgauge.wording import listed

POWER = 0.8


@dataclass(frozen=True)
class Silence:
    """The adversaries that answer alike about one method's models."""

    dropped: Sequence[str] = ()
    """Theirs measures nothing."""
    counted: Sequence[str] = ()
    """Theirs is an answer: an advantage of 0."""


@dataclass(frozen=True)
class Heard:
    """What is known of a game when silence is judged."""

    spec: Mapping[str, Any]
    adversaries: Sequence[str]
    outcomes: Mapping[str, Mapping[Any, PairOutcome]]
    n_pairs: int
    level: float
    details: Mapping[str, Mapping[str, Any]]
    """Method -> what no adversary decides of it: its utility is."""
    utility_name: str

    @property
    def unjudged(self) -> GameResult:
        """The game as it is before any adversary is asked."""
        methods = {
            name: MethodResult(
                **assessed_fields(None, self.adversaries),
                by_adversary={},
                n_pairs=len(found),
                **self.details[name],
            )
            for name, found in self.outcomes.items()
        }
        return GameResult(None, dict(self.spec), methods, None, [], None, None, utility_name=self.utility_name)

    def of_silence(self, method: str) -> tuple[list[str], set[str]]:
        """(who answers alike of all points of each model, who of them calls every point unseen)."""
        each = [found.decisions for found in self.outcomes[method].values() if found.decisions is not None]
        if not each:
            return [], set()
        never = ~np.any([says.any(axis=(0, 1, 2)) for says in each], axis=0)
        alike = list(zip(self.adversaries, decides_nothing(each), never, strict=True))
        return [name for name, one, _ in alike if one], {name for name, _, one in alike if one}

    def references(self, game: GameResult, role: str) -> list[str]:
        """The methods of that role that completed every pair."""
        return [name for name in self.outcomes if role_of(game, name) == role and self.is_whole(name)]

    def is_whole(self, method: str) -> bool:
        """Whether a method completed every pair."""
        return len(self.outcomes[method]) >= max(1, self.n_pairs)

    def sees(self, method: str) -> set[str]:
        """The adversaries to whom F looks trained on beyond chance, allowing for their number."""
        least = rarer_than((1 - self.level) / len(self.adversaries))
        z = z_over_pairs(list(self.outcomes[method].values()))
        return {name for name, one in zip(self.adversaries, z, strict=True) if one > least}


def silences(heard: Heard, told_apart: Mapping[str, Collection[str]]) -> dict[str, Silence]:
    """Method -> whose silence about its models counts, and whose is dropped.

    It counts of an adversary that calls every point of every model unseen, that sees every None, and whose scores do
    not tell F from T where its answers do not (``told_apart``: method -> those that do). Of a method under test it must
    say the same of every Retrain, and the method is shown to be as useful as the references, on R as well: models that
    are damaged answer on another scale. So do retrained models that know less than half of what None knows of R.
    """
    alike = {method: heard.of_silence(method) for method in heard.outcomes}
    game = heard.unjudged
    retrained, untreated = heard.references(game, "retrain"), heard.references(game, "none")
    able = set.intersection(*map(heard.sees, untreated)) if untreated else set()
    usual = set.intersection(*(alike[name][1] for name in retrained)) if retrained else set()
    found = {}
    for method, (silent, never) in alike.items():
        role = role_of(game, method)
        counted = (never & able) - set(told_apart.get(method, ()))
        known = is_shown_undamaged if role == "tested" else knows_half_as_much
        is_sound = known(game, method) is not False
        if role == "none" or not heard.is_whole(method) or not is_sound:
            counted = set()
        elif role == "tested":
            counted &= usual
        found[method] = Silence(
            [name for name in silent if name not in counted], [name for name in silent if name in counted]
        )
    return found


def with_silence(
    found: Assessment, silence: Silence, adversaries: Sequence[str], pairs: Sequence[PairOutcome]
) -> Assessment:
    """Where all that counts is silence, one of those that count stands for the method."""
    if not silence.counted or any(outcome.differences.any() for outcome in pairs):
        return found
    return replace(found, best=list(adversaries).index(silence.counted[0]))


def least_seen(game: GameResult, name: str) -> float:
    """The advantage that would have been seen with a power of 80 % although every adversary is silent.

    One that called a share p of F forgotten, and nobody of T, is visible from the number of right answers on that
    chance puts on one side in at most 1 − level of all relabellings. 1 where that is more than there were to give.
    """
    if game.spec.get("share_retrain") and role_of(game, name) == "retrain":
        return 1.0  # a model is not told from itself
    n_drawn = drawn_in(game, name)
    n_seen = math.ceil(math.log2(2 / (1 - game.spec.get("level", 0.95))) - 1e-9)
    return float(special.betaincinv(n_seen, n_drawn - n_seen + 1, POWER)) if n_drawn >= n_seen else 1.0


def drawn_in(game: GameResult, name: str) -> int:
    """The points of F and T of all pairs of a method, or the groups where these are answered about as a whole."""
    if game.decisions is None:
        return 2 * int(game.spec.get("n_forget", 0)) * game.methods[name].n_pairs
    return sum(pair.n_points for pair in game.decisions.pairs if name in pair.methods)


def silence_lines(game: GameResult) -> list[str]:
    """What silence that counts about Retrain's models means, for people."""
    return [
        f"{_who(method)} every point of {name}’s models unseen, and None’s forgotten points seen: that is an answer, "
        "an advantage of 0."
        for name, method in game.methods.items()
        if method.silence_counts and role_of(game, name) == "retrain"
    ]


def silence_warnings(silent: Mapping[str, Silence], game: GameResult) -> list[str]:
    """On methods under test of which Q rests on silence that counts, and on retrained models whose utility nobody
    knows."""

    as_usual = {"tested": ", as they do of Retrain’s", "retrain": ""}
    return [
        f"{name}: {listed(found.counted)} {_verb(found.counted)} every point of every model unseen"
        f"{as_usual[role_of(game, name)]}, which counts as an advantage of 0. If outputs of these models are on "
        "another scale than those of the shadow models, it says nothing."
        for name, found in silent.items()
        if found.counted and (role_of(game, name) == "tested" or knows_half_as_much(game, name) is None)
    ]


def _who(method: MethodResult) -> str:
    if len(method.silence_counts) == len(method.by_adversary) > 2:
        return "Every adversary calls"
    return f"{listed(method.silence_counts)} {_verb(method.silence_counts)}"


def _verb(names: Sequence[str]) -> str:
    return "calls" if len(names) == 1 and not names[0].endswith("decisions") else "call"
