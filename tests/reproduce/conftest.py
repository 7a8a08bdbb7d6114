"""Shared by the tests of the suites: the command line in this process, and results made by hand."""

from __future__ import annotations

import sys

import pytest

from forgetgauge import cli
from forgetgauge.report.result import GameResult, MethodResult, Result


@pytest.fixture
def call(capsys, monkeypatch):
    """The command line inside this process: (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["forgetgauge", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def method(quality: float | None, interval: tuple[float, float] | None, **fields) -> MethodResult:
    empty = dict.fromkeys(("chosen_on", "interval_basis", "epsilon", "adversary", "p_value", "noise_floor"))
    rest = {"by_adversary": {}, "n_pairs": 6, "accuracy": {"unseen": 0.5, "test": 0.6}, "n_gradients": 1.0}
    return MethodResult(
        quality=quality, quality_plugin=quality, interval=interval, seconds=1.0, **{**empty, **rest, **fields}
    )


def result_of(columns: dict[str, dict[str, MethodResult]]) -> Result:
    games = [
        GameResult(label, {"level": 0.95}, methods, None, [], None, "over pairs") for label, methods in columns.items()
    ]
    return Result({"device": "cpu"}, {"decisions": "0"}, games, sweep="η", total_seconds=12.0)
