"""The whole experiment, small: run, record, figure, page, command line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from forgetgauge.errors import UserError
from forgetgauge.results.record import read_result
from forgetgauge.suites.records import read_strictly
from forgetgauge.suites.splits_page import splits_figure, splits_page, takeaway
from forgetgauge.suites.spread import MethodRecord, SwapVsRandom
from forgetgauge.suites.swap_vs_random import plan, swap_vs_random

SMALL = ["data.fraction=0.2", "learner.epochs=1", "learner.batch_size=64", "shadows.count=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("experiment") / "run"
    swap_vs_random(out=out, repetitions=4, settings=SMALL)
    return out


@pytest.fixture
def found(folder):
    return read_strictly(folder / "swap-vs-random.json", SwapVsRandom)


@pytest.fixture
def experiment(call):
    """`forgetgauge experiment swap-vs-random`, inside this process."""
    return lambda *arguments: call("experiment", "swap-vs-random", *arguments)


def test_its_swap_estimates_are_those_of_the_runs_own_result(folder, found):
    result = read_result(folder / "result.json")
    assert list(found.methods) == ["retrain", "none"]
    for name, method in found.methods.items():
        for adversary, record in method.by_adversary.items():
            theirs = result.methods[name].by_adversary[adversary]
            assert record.swap == pytest.approx(theirs.by_pair)
            assert record.mean == pytest.approx(theirs.advantage) == pytest.approx(np.mean(record.random))
            assert len(record.random) == found.repetitions == 4


def test_q_of_a_repetition_is_one_minus_its_largest_advantage(found):
    for method in found.methods.values():
        largest = np.abs([record.random for record in method.by_adversary.values()]).max(axis=0)
        assert method.quality.random == pytest.approx(1 - largest)


def test_the_look_up_adversary_collapses(found):
    assert found.lookup[-1].queries is None
    assert set(found.lookup[-1].random) == {1.0}
    assert {value for record in found.lookup for value in record.swap} == {0.0}
    assert "0.00 on swap pairs and of 1.00 on random splits" in found.takeaway


def test_figure_and_page_are_made_from_the_record_alone(folder, found):
    assert splits_figure(found) == (folder / "swap-vs-random.svg").read_text()
    assert splits_page(found) == (folder / "swap-vs-random.html").read_text()


def test_the_figure_is_sound_and_draws_every_repetition(found):
    root = ET.fromstring(splits_figure(found))
    circles = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) == 2 * 4 * (2 + 2 + 1)  # groupings, repetitions; two methods twice, the look-up adversary
    assert all(190 <= float(c.get("cx")) <= 640 for c in circles)


def test_the_page_loads_nothing_and_escapes_names(found):
    odd = replace(found, methods={"<i>mine</i>": found.methods["none"]})
    page = splits_page(odd)
    assert "<i>mine" not in page
    assert "&lt;i&gt;mine" in page
    assert not any(word in page for word in ("<script", "src=", "@import", "url("))


def test_the_same_command_again_trains_nothing_and_prints_the_findings(folder, experiment):
    settings = [part for setting in SMALL for part in ("--set", setting)]
    before = (folder / "ledger.jsonl").read_bytes()
    code, out, _ = experiment("--out", folder, "--repetitions", 4, *settings, "--quiet")
    assert code == 0
    assert (folder / "ledger.jsonl").read_bytes() == before
    assert "variance ratio" in out
    assert "look-up adversary" in out
    assert str(folder / "swap-vs-random.html") in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--repetitions", 5], "5 repetitions; write an even number of at least 4"),
        (["--repetitions", 2], "2 repetitions; write an even number"),
        (["--set", "game.alfa=0.1"], "unknown key 'alfa'; did you mean 'alpha'?"),
        (["--set", "sweep.key=game.alpha"], "sweep has no meaning in this experiment"),
        (["nowhere.toml"], "nowhere.toml: no such file"),
    ],
)
def test_a_mistake_is_one_line(arguments, complaint, experiment, tmp_path):
    code, _, err = experiment("--out", tmp_path / "run", *arguments)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_the_embedded_experiment_is_the_embedded_run_with_fewer_methods():
    (graph,) = plan(None, None, ()).graphs
    assert list(graph.game.methods) == ["retrain", "none"]
    assert (graph.game.pairs, graph.game.sizes) == (40, (300, 299))


def test_a_failed_job_is_told_in_one_line(tmp_path):
    broken = [*SMALL, "unlearners.broken.method=tests.suites.test_swap_vs_random:break_down"]
    with pytest.raises(UserError, match=r"broken of .*pair 0 .*cannot"):
        swap_vs_random(out=tmp_path, repetitions=4, settings=broken)


def break_down(model, retain, forget, context):
    if len(retain.whole_labels) > 1000:  # not in the trial, on a copy of a handful
        raise RuntimeError("cannot")
    return model


def test_time_that_is_up_is_told(tmp_path, experiment):
    settings = [part for setting in SMALL for part in ("--set", setting)]
    code, out, _ = experiment("--out", tmp_path, "--repetitions", 4, *settings, "--quiet", "--time-limit", "0s")
    assert code == 0
    assert "stopped at the time limit" in out
    assert not (tmp_path / "swap-vs-random.json").exists()


def test_what_is_not_settled_is_said(found):
    record = found.methods["none"].by_adversary[found.adversary]
    methods = {
        "settled": MethodRecord({"a": replace(record, variance_ratio=2.0, variance_ratio_interval=(1.5, 3.0))}, None),
        "unsettled": MethodRecord({"a": replace(record, variance_ratio=1.2, variance_ratio_interval=(0.9, 1.5))}, None),
    }
    said = takeaway(methods, "a", found.lookup[-1])
    assert "2.00 times as large [1.50, 3.00] for settled and 1.20 times as large [0.90, 1.50] for unsettled" in said
    assert "(1.20 to 2.00 over all adversaries; unsettled for unsettled, as 1 is in the interval)" in said


def test_a_damaged_record_is_told_in_one_line(folder, tmp_path):
    path = tmp_path / "record.json"
    for text, complaint in (
        ("{", "cannot be read"),
        ("{}", "schema None"),
        (json.dumps({**json.loads((folder / "swap-vs-random.json").read_text()), "level": "high"}), "level"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=complaint):
            read_strictly(path, SwapVsRandom)
    with pytest.raises(UserError, match="cannot be read"):
        read_strictly(tmp_path / "none.json", SwapVsRandom)
