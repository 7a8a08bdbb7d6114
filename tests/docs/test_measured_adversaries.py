"""The tables of docs/adversaries.md are what benchmarks/adversaries.py makes of the committed results."""

from __future__ import annotations

import importlib.util

import pytest

from forgetgauge.game.intervals import pair_interval
from forgetgauge.plan.spec import DEFAULT_ADVERSARIES
from forgetgauge.results.record import read_result

from .fences import ROOT

PAGE = (ROOT / "docs/adversaries.md").read_text("utf-8")


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("adversaries_benchmark", ROOT / "benchmarks/adversaries.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(benchmark):
    results = {name: ROOT / "results/adversaries" / name / "result.json" for name in benchmark.SETTINGS}
    return {name: read_result(path).methods for name, path in results.items()}


def test_the_tables_are_those_of_the_results(benchmark, found):
    assert benchmark.strengths(found, "none") in PAGE
    assert benchmark.differences(found) in PAGE


def test_on_a_retrained_model_no_adversary_sees_anything(found):
    intervals = [one.interval for methods in found.values() for one in methods["retrain"].by_adversary.values()]
    assert len(intervals) == 36
    assert all(low <= 0 <= high for low, high in intervals)


def test_nothing_that_is_stronger_everywhere_is_left_out_of_the_default_class(found):
    """By an interval of the paired difference to the strongest of the default class, against none."""
    further = {name for methods in found.values() for name in methods["none"].by_adversary} - {*DEFAULT_ADVERSARIES}
    assert further == {"bavaria", "ensemble", "label-only"}
    for name in further:
        stronger = []
        for methods in found.values():
            every = methods["none"].by_adversary
            best = max(DEFAULT_ADVERSARIES, key=lambda one, every=every: every[one].advantage)
            pairs = zip(every[name].by_pair, every[best].by_pair, strict=True)
            stronger.append(pair_interval([one - other for one, other in pairs]).low > 0)
        assert not all(stronger)
