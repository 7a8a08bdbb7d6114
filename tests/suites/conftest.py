"""Shared by the tests of the suites: the command line in this process, and results made by hand."""

from __future__ import annotations

from forgetgauge.results.record import AdversaryResult, GameResult, MethodResult, MetricResult, Result


def method(
    quality: float | None, interval: tuple[float, float] | None, by_pair: list[float] | None = None, **fields
) -> MethodResult:
    empty = dict.fromkeys(("chosen_on", "interval_basis", "epsilon", "adversary", "p_value", "noise_floor"))
    if by_pair is None:
        by_pair = [] if quality is None else [1 - quality] * 6
    attacks = {"shadow": AdversaryResult(by_pair[0], (0.0, 1.0), by_pair)} if by_pair else {}
    rest = {"by_adversary": attacks, "n_pairs": 6, "utility": {"unseen": 0.5, "test": 0.6}, "n_gradients": 1.0}
    return MethodResult(
        quality=quality, quality_plugin=quality, interval=interval, seconds=1.0, **{**empty, **rest, **fields}
    )


def metric(value: float, interval: tuple[float, float]) -> MetricResult:
    return MetricResult(value, interval, [value] * 6)


def result_of(columns: dict[str, dict[str, MethodResult]]) -> Result:
    games = [
        GameResult(label, {"level": 0.95}, methods, None, [], None, "over pairs") for label, methods in columns.items()
    ]
    return Result({"device": "cpu"}, {"decisions": "0"}, games, sweep="η", total_seconds=12.0)
