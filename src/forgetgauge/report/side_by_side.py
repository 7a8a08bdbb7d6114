"""Q and its rivals side by side, and what each of them misses.

Per game: whether Retrain is at the metric's ideal, how much one split differs from the next, whether methods rank as by
Q. Over a sweep: where scores rise and fall beyond their intervals, and whether methods rank alike at every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetgauge.game.comparison import kendall_tau
from forgetgauge.metrics.checks import SweepSteps, is_grounded, mean_tau, steps_of
from forgetgauge.results.record import GameResult, MethodResult, Result, role_of
from forgetgauge.wording import bracket, plain, setting, tau_text


@dataclass(frozen=True)
class Metric:
    """A column of the table."""

    key: str
    head: str
    ideal: float | None
    """What it gives where nothing is left to see; None where that is whatever Retrain's models give."""
    misses: str
    """One sentence or two."""
    better: int = 1
    """1 where higher is better, −1 where lower is."""
    ranked: bool = True
    """Whether methods can be ranked by it: a signed gap has no better end."""
    in_text: bool = True
    """Whether the text table has room for it."""
    constructed: bool = False
    """Whether Retrain is at an ideal of its own by construction, so that it checks nothing."""

    @property
    def by_construction(self) -> bool:
        """Whether Retrain is at the ideal whatever happens."""
        return self.constructed or self.ideal is None


METRICS = (
    Metric("quality", "Q", 1.0, "is about the declared adversaries only: others may see more."),
    Metric(
        "ic",
        "IC",
        1.0,
        "interclass confusion score: models of its own are taught wrong labels between two classes and then unlearn "
        "them; 1 − the share of these points that are still given the wrong label. So it says nothing about the models "
        "above, nor about any attacker; ordinary mistakes between the two classes keep Retrain below 1, and a model "
        "that assigns all of these points to a third class scores 1.",
    ),
    Metric(
        "ic_right",
        "IC, right",
        1.0,
        "the share of those points that are given their true label, which the IC score does not look at.",
        ranked=False,
        in_text=False,
    ),
    Metric(
        "ic_accuracy",
        "IC accuracy",
        1.0,
        "accuracy of the IC test’s models on points of D they never saw: where it is far below Retrain’s, the IC score "
        "measures damage to the model and not forgetting.",
        ranked=False,
    ),
    Metric(
        "ic_test_accuracy",
        "IC test accuracy",
        1.0,
        "the same on the official test set, where the data have one: of None it is Table 5a of the paper.",
        ranked=False,
        in_text=False,
    ),
    Metric(
        "mia",
        "MIA",
        0.5,
        "1 − AUC of the best attack on one split, as the paper’s Table 4 has it. Its ideal is ½, not 1; F and T differ "
        "before any training, so it depends on the split; the best attack is picked on the points that score it.",
    ),
    Metric(
        "mia_split",
        "MIA, |s − s′|",
        0.0,
        "how far that attack’s score on one split is from its score when F and T have changed places, averaged over "
        "pairs. It shows how much the score owes to which of two equally random halves was called F; Q and “MIA, swap” "
        "do not depend on that.",
        ranked=False,
    ),
    Metric(
        "mia_swap",
        "MIA, swap",
        0.5,
        "1 − AUC, averaged over both sides of the swap, so that differences between the points of F and T drop out. An "
        "AUC uses all thresholds, where an attacker has to fix one, and the best attack is picked on the points that "
        "score it.",
    ),
    Metric(
        "offset_mia",
        "offset MIA",
        0.0,
        "accuracy of the attack’s decisions on one split minus its accuracy against Retrain there; the largest of all "
        "attacks. It is 0 for Retrain by construction, so Retrain cannot check it, and it depends on the split.",
        better=-1,
        constructed=True,
    ),
    Metric(
        "kl_forget",
        "KL on F",
        0.0,
        "KL divergence in nats from a retrained model’s outputs to the method’s, on forgotten points. Retrain’s row is "
        "between two retrained models: no method can be expected below that, which is due to chance in training.",
        better=-1,
    ),
    Metric(
        "kl_unseen",
        "KL on T",
        0.0,
        "the same on unseen points, where there is nothing to forget: models trained on more points differ there too.",
        better=-1,
    ),
    Metric(
        "loss_ks",
        "KS p of losses",
        1.0,
        "p-value of the Kolmogorov–Smirnov test between the method’s and Retrain’s losses on F: the forget quality of "
        "TOFU with losses in the place of truth ratios, which need wrong answers that these data do not have. The two "
        "samples are of the same records, which the test takes for independent: it misses what changes from record to "
        "record, and a large p is no evidence of forgetting.",
    ),
    Metric(
        "privleak",
        "PrivLeak",
        0.0,
        "relative difference from Retrain of 1 − AUC, F against T, by Min-K % (k = 40) on one side of a pair; MUSE "
        "quotes it in percent. Below 0, F looks more like training data than it does to Retrain. It is of "
        "one attack alone, and on one side F and T differ before any training.",
        ranked=False,
    ),
    Metric(
        "extraction",
        "extraction strength",
        None,
        "the largest share of a forgotten answer that greedy decoding completes when it is given the rest. What can be "
        "guessed counts too, so that Retrain is not at 0; what a model knows but does not say first does not count.",
        better=-1,
    ),
    Metric(
        "verbatim",
        "verbatim match",
        None,
        "the share of a forgotten answer that greedy decoding gives before its first wrong token. It misses the same.",
        better=-1,
    ),
    *(
        Metric(
            f"gap_{key}",
            f"gap {name}",
            0.0,
            f"accuracy minus Retrain’s on {where}; equal accuracies can come from different answers.",
            ranked=False,
            in_text=False,
        )
        for key, name, where in (
            ("retain", "R", "retained points"),
            ("forget", "F", "forgotten points"),
            ("unseen", "T", "unseen points"),
            ("test", "test", "the test set"),
        )
    ),
)


@dataclass(frozen=True)
class MetricReading:
    """What a metric says of a method."""

    value: float
    interval: tuple[float, float] | None
    by_pair: list[float]
    adversary: str | None


def reading(method: MethodResult | None, metric: Metric) -> MetricReading | None:
    """None where it was not measured."""
    if method is None:
        return None
    if metric.key == "quality":
        if method.quality is None or method.adversary is None:
            return None
        by_pair = [1 - abs(advantage) for advantage in method.by_adversary[method.adversary].by_pair]
        return MetricReading(method.quality, method.interval, by_pair, method.adversary)
    found = method.metrics.get(metric.key)
    return None if found is None else MetricReading(found.value, found.interval, found.by_pair, found.adversary)


def shown_metrics(games: Sequence[GameResult]) -> list[Metric]:
    """Those that any method has, Q first; none where no rival was asked for."""
    methods = [method for game in games for method in game.methods.values()]
    if not any(method.metrics for method in methods):
        return []
    return [metric for metric in METRICS if any(reading(method, metric) for method in methods)]


@dataclass(frozen=True)
class Check:
    """One metric's record in one game."""

    metric: Metric
    retrain: MetricReading | None
    none: MetricReading | None
    grounded: bool | None
    """Whether Retrain's interval holds the ideal; None without one, or where it does by construction."""
    reach: tuple[float, float] | None
    """From Retrain's least to its largest single pair: what one split alone may say where nothing is left to see."""
    spread: float | None
    """Standard deviation from one pair to the next, averaged over methods; None for a single pair."""
    tau: float | None
    """Kendall's τ with the ranking by Q; None where one of the two ties all methods, or for Q itself."""


def checks_of(game: GameResult) -> list[Check]:
    """One check for each metric by which methods can be ranked."""
    return [_check(game, metric) for metric in shown_metrics([game]) if metric.ranked]


def _check(game: GameResult, metric: Metric) -> Check:
    references: dict[str, MetricReading | None] = {"retrain": None, "none": None}
    for name, method in game.methods.items():
        role = role_of(game, name)
        if role in references and references[role] is None:
            references[role] = reading(method, metric)
    retrain = references["retrain"]
    interval = retrain.interval if retrain is not None else None
    found = [reading(method, metric) for method in game.methods.values()]
    spreads = [float(np.std(one.by_pair, ddof=1)) for one in found if one is not None and len(one.by_pair) > 1]
    return Check(
        metric,
        retrain,
        references["none"],
        grounded=None
        if interval is None or metric.constructed or metric.ideal is None
        else is_grounded(interval, metric.ideal),
        reach=(min(retrain.by_pair), max(retrain.by_pair)) if retrain is not None else None,
        spread=float(np.mean(spreads)) if spreads else None,
        tau=None if metric.key == "quality" else _tau_with_quality(game, metric),
    )


def _tau_with_quality(game: GameResult, metric: Metric) -> float | None:
    both = [(reading(method, METRICS[0]), reading(method, metric)) for method in game.methods.values()]
    ranked = [(quality.value, metric.better * other.value) for quality, other in both if quality and other]
    if len(ranked) < 2:
        return None
    tau = kendall_tau(*np.array(ranked).T)
    return None if np.isnan(tau) else tau


@dataclass(frozen=True)
class SweepCheck:
    """One metric's record over a sweep."""

    metric: Metric
    steps: SweepSteps
    tau: float | None
    """Mean of Kendall's τ between the rankings of the methods at every two values."""


def sweep_checks(result: Result) -> list[SweepCheck]:
    """Values in ascending order where they are numbers; only methods that every metric has measured at every value, so
    that all metrics are judged on the same ones."""
    games = _in_order(result.games)
    metrics = [metric for metric in shown_metrics(games) if metric.ranked]
    names = dict.fromkeys(name for game in games for name in game.methods)
    ways = {name: [_way(games, name, metric) for metric in metrics] for name in names}
    whole = [found for found in ways.values() if all(len(way) == len(games) for way in found)]
    if len(games) < 2 or not whole:
        return []
    return [_sweep_check(metric, [found[i] for found in whole]) for i, metric in enumerate(metrics)]


def _way(games: Sequence[GameResult], name: str, metric: Metric) -> list[MetricReading]:
    """Through the games; shorter than these where it was not measured."""
    found = [reading(game.methods.get(name), metric) for game in games]
    return [one for one in found if one is not None]


def _sweep_check(metric: Metric, ways: Sequence[Sequence[MetricReading]]) -> SweepCheck:
    steps = steps_of([[(one.value, one.interval) for one in way] for way in ways])
    return SweepCheck(metric, steps, mean_tau(np.array([[one.value for one in way] for way in ways]).T))


def _in_order(games: Sequence[GameResult]) -> list[GameResult]:
    """By value where all are numbers; "inf", which JSON cannot say, is one."""
    return sorted(games, key=lambda game: float(game.value)) if all(_is_number(g.value) for g in games) else list(games)


def _is_number(value: Any) -> bool:
    return value == "inf" or (isinstance(value, int | float) and not isinstance(value, bool))


# -- as text -----------------------------------------------------------------------------------------------------------


def score_rows(game: GameResult, names: Sequence[str]) -> list[list[str]]:
    """Head and one row per method; empty without rivals."""
    metrics = [metric for metric in shown_metrics([game]) if metric.in_text]
    if not metrics:
        return []
    head = ["method", *(metric.head for metric in metrics)]
    return [head, *([name, *(_cell(reading(game.methods[name], metric)) for metric in metrics)] for name in names)]


def check_rows(game: GameResult) -> list[list[str]]:
    """Head and one row per metric; empty without rivals."""
    checks = checks_of(game)
    head = ["metric", "ideal", "Retrain", "at the ideal", "single pairs", "None", "sd over pairs", "τ with Q"]
    return [head, *(_check_row(check) for check in checks)] if checks else []


def sweep_rows(result: Result) -> list[list[str]]:
    """Head and one row per metric; empty without a sweep or without rivals."""
    checks = sweep_checks(result)
    head = ["metric", "steps", "rises", "beyond intervals", "falls", "beyond intervals", "mean τ between values"]
    rows = [
        [check.metric.head, *map(str, (s.total, s.rises, s.sure_rises, s.falls, s.sure_falls)), tau_text(check.tau)]
        for check in checks
        for s in [check.steps]
    ]
    return [head, *rows] if rows else []


def on_order(result: Result) -> str:
    """What a reader should expect of the steps, where the swept key is a privacy budget."""
    if (result.sweep or "").split(".")[-1] not in ("epsilon", "target_epsilon"):
        return ""
    return "With a larger ε a model may remember more: Q, IC and MIA should not rise."


def _check_row(check: Check) -> list[str]:
    grounded = (
        "by construction" if check.metric.by_construction else {True: "yes", False: "no", None: "–"}[check.grounded]
    )
    ideal = "Retrain’s" if check.metric.ideal is None else setting(check.metric.ideal).removesuffix(".0")
    spread = "–" if check.spread is None else plain(check.spread)
    reach = "–" if check.reach is None else f"{plain(check.reach[0])} … {plain(check.reach[1])}"
    references = [_cell(check.retrain), grounded, reach, _cell(check.none)]
    return [check.metric.head, ideal, *references, spread, tau_text(check.tau)]


def _cell(found: MetricReading | None) -> str:
    if found is None:
        return "–"
    return plain(found.value) if found.interval is None else f"{plain(found.value)} {_bracket(found.interval)}"


def _bracket(interval: tuple[float, float]) -> str:
    return bracket(interval).replace("\u00a0", " ")
