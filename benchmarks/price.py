"""How often a strength that was chosen by price truly costs more than the price, and by how much.

    python benchmarks/price.py [--draws 1000] [--rule now|before|one-miss]
    python benchmarks/price.py --cliff      how many models of the game diverge at a strength chosen next to a cliff

The choice itself is forgetgauge's (`Tuning`, `loss_and_bound`, `strongest_kept`): two rounds of values, eight and four.
Simulated is what it looks at: how much each shadow model loses at each value. The true cost grows with the strength as
a power of it (0.5, 1, 2), levels off just beyond the price (at 1.2 and 1.5 prices, where luck is tried again and
again), or rises to nine prices and falls back to three, as SalUn's does on CIFAR-10. Where it reaches the price is
drawn anew each time. Each model loses that plus its own scatter, half of which it has at all strengths alike.

The scatter is that of `results/reproduce/paper/table1/result.json`: at each value that was tried there, counted from
untreated models, mean and bound give the standard deviation over four models (`measured` prints them), at η = 0.1 on
227 points each, at η = 0.8 on 1,818. The third setting is a test set of 10,000 points. Retrained models are trainings
of their own, as good as untreated ones or 1.5 points lower.

`--rule before` takes the strongest of all values that hold, as was done before decision 0043; `one-miss` the strongest
before the second that does not.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
from scipy.special import stdtrit

from forgetgauge.plan.graph import RETRAINED, UNTREATED
from forgetgauge.plan.strength import Strength, Tuning
from forgetgauge.results.price import holds, strongest_kept
from forgetgauge.results.record import TriedStrength
from forgetgauge.results.tuning import loss_and_bound

PRICE, LEVEL = 0.01, 0.95
STRENGTH = Strength("lr", 1e-5, 1.0)
STORED = Path(__file__).parents[1] / "results/reproduce/paper/table1/result.json"
Curve = Callable[[float], float]
"""Decades beyond where the cost reaches the price -> cost."""


def power(exponent: float) -> Curve:
    """Of the strength."""
    return lambda beyond: min(0.8, PRICE * 10 ** (exponent * beyond))


def levelling(top: float) -> Curve:
    """Reaches so many prices and stays there."""
    return lambda beyond: top * PRICE / (1 + (top - 1) * 10 ** (-2 * beyond))


def falling_back(beyond: float) -> float:
    """Nine prices, then three."""
    rising = PRICE * 10 ** (1.5 * beyond)
    return rising if rising < 9 * PRICE else max(3 * PRICE, 9 * PRICE * 10 ** (-0.5 * (beyond - math.log10(9) / 1.5)))


CURVES: dict[str, Curve] = {
    "power 0.5": power(0.5),
    "power 1": power(1.0),
    "power 2": power(2.0),
    "levels off at 1.2": levelling(1.2),
    "levels off at 1.5": levelling(1.5),
    "rises and falls": falling_back,
}


@dataclass(frozen=True)
class Scatter:
    """Standard deviations over models."""

    floor: float
    """Of what a treatment costs that changes a model little."""
    share: float
    """Of the cost, added to the floor."""
    training: float
    """Of a training."""


SCATTER = {
    "227 points": Scatter(0.007, 0.8, 0.02),
    "1,818 points": Scatter(0.001, 0.5, 0.01),
    "10,000 points": Scatter(0.001, 0.3, 0.005),
}


@dataclass
class Models:
    """Shadow models of one draw: what they are worth, and what each value of the strength does to them."""

    curve: Curve
    scatter: Scatter
    lower: float
    """By so much are retrained models below untreated ones."""
    n: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.crossing = self.rng.uniform(-3.5, -1.0)
        self.untreated = self.rng.normal(0.9, self.scatter.training, self.n)
        self.retrained = self.rng.normal(0.9 - self.lower, self.scatter.training, self.n)
        self.common = self.rng.normal(size=self.n)
        self.known: dict[float, TriedStrength] = {}

    def cost(self, value: float) -> float:
        """In truth: below the lower of retrained and untreated models."""
        return self.curve(math.log10(value) - self.crossing)

    def tried(self, value: float) -> TriedStrength:
        if value not in self.known:
            cost = self.cost(value)
            below_untreated = cost + self.lower * min(
                1.0, cost / PRICE
            )  # of what retraining loses too, all at the price
            spread = self.scatter.floor * min(1.0, below_untreated / 0.001) + self.scatter.share * below_untreated
            own = self.untreated - below_untreated
            own -= spread * math.sqrt(0.5) * (self.common + self.rng.normal(size=self.n))
            sides = {RETRAINED: self.retrained.tolist(), UNTREATED: self.untreated.tolist()}
            lower_first = dict(sorted(sides.items(), key=lambda side: sum(side[1])))
            self.known[value] = TriedStrength(value, *loss_and_bound(lower_first, np.maximum(own, 0.1).tolist(), LEVEL))
        return self.known[value]


def strongest_of_all(tried: Sequence[TriedStrength], price: float) -> TriedStrength | None:
    """The rule of before."""
    return next((one for one in reversed(tried) if holds(one, price)), None)


def one_miss(tried: Sequence[TriedStrength], price: float) -> TriedStrength | None:
    """Up to the second value that does not hold: one that fails by bad luck does not end the search."""
    best, misses = None, 0
    for one in tried:
        if holds(one, price):
            best = one
        else:
            misses += 1
        if misses > 1:
            break
    return best


RULES = {"now": strongest_kept, "before": strongest_of_all, "one-miss": one_miss}


def true_cost(models: Models, rule: str) -> float:
    """Of the value that is chosen."""
    tuning = Tuning.begin(STRENGTH, 8)
    while tuning.chosen is None:
        best = RULES[rule]([models.tried(value) for value in tuning.tried], PRICE)
        tuning = tuning.after(None if best is None else best.value)
    return models.cost(tuning.chosen)


def measured(path: Path = STORED) -> list[str]:
    """Standard deviation over models by cost, in points, from the strengths that were chosen for a stored table."""
    lines, quantile = [], stdtrit(3, LEVEL)
    for game in json.loads(path.read_text("utf-8"))["games"]:
        found: dict[str, list[float]] = {}
        for method in game["methods"].values():
            tuning = method.get("tuning")
            for one in tuning["tried"] if tuning and tuning["against"] == UNTREATED else ():
                if one["loss"] is not None and one["bound"] > one["loss"] and one["loss"] < 0.03:
                    size = "below 0.3" if one["loss"] < 0.003 else "0.3 to 1" if one["loss"] < 0.01 else "1 to 3"
                    scatter = (one["bound"] - one["loss"]) * math.sqrt(tuning["n_models"]) / quantile
                    found.setdefault(size, []).append(100 * scatter)
        if found:
            said = (f"{size}: {median(each):.2f} ({len(each)})" for size, each in found.items())
            lines.append(f"η = {game['value']}: cost {', '.join(said)}")
    return lines


def diverging(n: int, scatter: float, steps_back: bool, rng: np.random.Generator, n_game: int = 12) -> int:
    """How many models of a game diverge at the strength chosen on others, which costs nothing until a model does.

    The value from which on a model diverges scatters by so many decades from model to model.
    """
    crossing = rng.uniform(-3.5, -1.0)
    shadows, game = 10 ** rng.normal(crossing, scatter, n), 10 ** rng.normal(crossing, scatter, n_game)
    tuning = Tuning.begin(STRENGTH, 8)
    while tuning.chosen is None:
        held = [value for value in tuning.tried if value < shadows.min()]
        tuning = tuning.after(held[-1] if held else None, is_cliff=steps_back and len(held) < len(tuning.tried))
    return int((game <= tuning.chosen).sum())


def cliffs(n_draws: int) -> None:
    """A row for each number of shadow models and scatter."""
    print(f"{'models':>6}{'scatter, decades':>18}{'taken':>16}{'diverge':>9}{'of 12 any':>11}")
    for n, scatter, steps_back in product((4, 8), (0.05, 0.1, 0.2), (False, True)):
        rng = np.random.default_rng([23, n, round(100 * scatter)])
        found = np.array([diverging(n, scatter, steps_back, rng) for _ in range(n_draws)])
        taken = "the one before" if steps_back else "the last"
        print(f"{n:6}{scatter:18.2f}{taken:>16}{found.mean() / 12:9.1%}{(found > 0).mean():11.1%}")


def main() -> None:
    """One row a setting, and what all come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--rule", choices=list(RULES), default="now")
    parser.add_argument("--cliff", action="store_true", help="how many models of the game diverge, instead")
    asked = parser.parse_args()
    if asked.cliff:
        cliffs(asked.draws)
        return
    print("\n".join(["Standard deviations over the models of Table 1, in points:", *measured(), ""]))
    print(f"rule: {asked.rule}; {asked.draws} draws each; over: true cost beyond the price, in % of draws")
    heads = ("scatter of", "retrained", "models", "cost", "over", "by > ½ point", "by, mean", "cost")
    print("{:14}{:>11}{:>8}  {:20}{:>6}{:>14}{:>10}{:>7}".format(*heads))
    everything = []
    for scatter, lower, n in product(SCATTER, (0.0, 0.015), (4, 8)):
        for curve in CURVES:
            rng = np.random.default_rng([17, n, round(1000 * lower), len(everything)])
            draws = [Models(CURVES[curve], SCATTER[scatter], lower, n, rng) for _ in range(asked.draws)]
            costs = np.array([true_cost(models, asked.rule) for models in draws])
            over = costs > PRICE + 1e-9
            beyond = 100 * (costs[over].mean() - PRICE) if over.any() else 0.0
            row = (100 * over.mean(), 100 * (costs > PRICE + 0.005).mean(), beyond, 100 * costs.mean())
            everything.append(row)
            where = f"{scatter:14}{'alike' if not lower else f'−{100 * lower:g}':>11}{n:>8}  {curve:20}"
            print(f"{where}{row[0]:6.1f}{row[1]:14.1f}{row[2]:10.2f}{row[3]:7.2f}", flush=True)
    over_all, half_all, _, cost_all = zip(*everything, strict=True)
    print(
        f"all: over in {np.mean(over_all):.1f} % of draws, at most {max(over_all):.1f} %; by more than half a point in "
        f"{np.mean(half_all):.1f} %, at most {max(half_all):.1f} %; mean cost {np.mean(cost_all):.2f} points"
    )


if __name__ == "__main__":
    main()
