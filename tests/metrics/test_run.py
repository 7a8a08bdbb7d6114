"""Rival metrics of real runs, derived a second time from the stored artefacts."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr, softmax
from sklearn.metrics import roc_auc_score

from forgetgauge import plugins
from forgetgauge.data.loading import load_dataset
from forgetgauge.plan.draws import draw_swap_pair
from forgetgauge.plan.graph import Cell
from forgetgauge.report.html import render_report
from forgetgauge.report.side_by_side import sweep_checks
from forgetgauge.report.table import render_table
from forgetgauge.results.record import read_result
from forgetgauge.results.rivals import Rivals
from forgetgauge.results.views import GameView, RunView
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.run.standing import disk_estimate
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

METRICS = {"ic": True, "mia": True, "distances": True}
SMALL: dict[str, Any] = {
    **TINY,
    "data": {"name": "digits", "fraction": 0.3},
    "learner": {"epochs": 12, "batch_size": 32, "lr": 0.05},
    "adversaries": ["confidence", "entropy"],
    "strong": {"queries": []},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rivals") / "run"
    play(Campaign.plan(resolve({**SMALL, "metrics": METRICS}, "small")), RunFolder(folder))
    return folder


@pytest.fixture(scope="module")
def record(finished: Path) -> dict[str, Any]:
    return json.loads((finished / "result.json").read_text())["games"][0]


class Stored:
    """The artefacts of a finished run, read with plain loops."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        (self.graph,) = Campaign.read(self.folder).graphs
        self.game, self.state = self.graph.game, self.folder.open_ledger().state

    def read(self, key: str) -> Any:
        return self.folder.objects.read(key, self.state.done[key].receipt.sha256)

    def pair(self, which: int) -> Any:
        game = self.game
        n = round(game.fraction * (game.n_points // 2))
        return draw_swap_pair(game.data_digest, n, game.seed, game.fraction, game.alpha, which)


def test_retrain_scores_near_1_on_ic_and_none_near_0(record):
    assert record["methods"]["retrain"]["metrics"]["ic"]["value"] > 0.9
    assert record["methods"]["none"]["metrics"]["ic"]["value"] < 0.3


def test_ic_is_counted_on_the_stored_signals_with_true_labels(finished, record):
    stored = Stored(finished)
    for (method, pair, _), key in stored.graph.confused.items():
        arrays = stored.read(key).arrays
        assert set(arrays["labels"]) == {0, 1}
        wrong = sum(
            (label, said) in {(0, 1), (1, 0)}
            for label, said in zip(arrays["labels"], arrays["outputs"].argmax(axis=1), strict=True)
        )
        found = record["methods"][method]["metrics"]
        assert found["ic"]["by_pair"][pair] == pytest.approx(1 - wrong / len(arrays["labels"]))
        right = (arrays["labels"] == arrays["outputs"].argmax(axis=1)).mean()
        assert found["ic_right"]["by_pair"][pair] == pytest.approx(right)
        accuracy = stored.read(key).facts["utility"]
        assert found["ic_accuracy"]["by_pair"][pair] == accuracy["unseen"]
        if method == "none":  # it remembers what it was taught, right or wrong
            assert accuracy["retain"] > 0.9
            assert accuracy["forget"] == pytest.approx(wrong / len(arrays["labels"]))


def test_accuracy_on_points_of_d_and_on_the_official_test_set_have_two_names(finished, record):
    stored = Stored(finished)
    assert "ic_test_accuracy" not in record["methods"]["none"]["metrics"]  # these data have no official test set
    rivals = Rivals(GameView(stored.graph, RunView(RunFolder(finished))))
    known = rivals.run.facts
    rivals.run.facts = lambda key: {**known(key), "utility": {**known(key)["utility"], "test": 0.25}}
    found = rivals._ic("none")
    assert found["ic_test_accuracy"] == [0.25] * len(found["ic"])
    assert found["ic_accuracy"] == record["methods"]["none"]["metrics"]["ic_accuracy"]["by_pair"]


def test_mia_scores_are_1_minus_the_auc_of_one_side_and_of_both(finished, record):
    stored = Stored(finished)
    for method, pair, name in product(stored.game.methods, range(2), stored.game.adversaries):
        in_forget, aucs = stored.pair(pair).in_forget, []
        for side, positive in enumerate((in_forget, ~in_forget)):
            margin = stored.read(stored.graph.cells[Cell(method, pair, side, 0)].decide[name]).arrays["margin"]
            aucs.append(roc_auc_score(positive, margin))
        found = record["methods"][method]["metrics"]
        expected = {"mia": 1 - aucs[0], "mia_swap": 1 - np.mean(aucs), "mia_split": abs(aucs[0] - aucs[1])}
        for key, value in expected.items():
            if found[key]["adversary"] == name:
                assert found[key]["by_pair"][pair] == pytest.approx(value, abs=1e-9)


def test_the_best_attack_is_the_one_of_lowest_score(record):
    for method in record["methods"].values():
        for key in ("mia", "mia_swap"):
            found = method["metrics"][key]
            assert found["value"] == pytest.approx(min(found["by_adversary"].values()))


def test_kl_is_from_retrain_of_the_same_side_and_for_retrain_of_the_other(finished, record):
    stored = Stored(finished)

    def said(method: str, pair: int, side: int) -> np.ndarray:
        logits = stored.read(stored.graph.cells[Cell(method, pair, side, 0)].signals).arrays["outputs"]
        return softmax(logits.astype(np.float64), axis=1)

    for method, pair in product(stored.game.methods, range(2)):
        in_forget = stored.pair(pair).in_forget
        each = []
        for side, forget in enumerate((in_forget, ~in_forget)):
            reference = said("retrain", pair, 1 - side if method == "retrain" else side)
            each.append(rel_entr(reference, said(method, pair, side)).sum(axis=1)[forget].mean())
        by_pair = record["methods"][method]["metrics"]["kl_forget"]["by_pair"]
        assert by_pair[pair] == pytest.approx(np.mean(each), rel=1e-5)


def test_accuracy_gaps_are_differences_of_the_accuracies_shown(record):
    methods = record["methods"]
    for name in ("retain", "forget", "unseen"):
        gap = methods["none"]["utility"][name] - methods["retrain"]["utility"][name]
        assert methods["none"]["metrics"][f"gap_{name}"]["value"] == pytest.approx(gap)
        assert methods["retrain"]["metrics"][f"gap_{name}"]["value"] == pytest.approx(0, abs=1e-12)


def test_the_offset_of_retrain_is_0_by_construction_and_of_none_positive(record):
    assert record["methods"]["retrain"]["metrics"]["offset_mia"]["value"] == 0
    assert record["methods"]["none"]["metrics"]["offset_mia"]["value"] > 0


def test_below_five_pairs_a_rival_has_no_interval(record):
    found = [metric for method in record["methods"].values() for metric in method["metrics"].values()]
    assert all(metric["interval"] is None and len(metric["by_pair"]) == 2 for metric in found)


def test_q_is_the_same_with_and_without_rivals(finished, record, tmp_path):
    plain = Campaign.plan(resolve(SMALL, "small"))
    ending, result = play(plain, RunFolder(finished))  # the same folder: nothing is left to do
    assert ending.n_run == 0
    assert {name: method.quality for name, method in result.methods.items()} == {
        name: method["quality"] for name, method in record["methods"].items()
    }
    assert all(not method.metrics for method in result.methods.values())
    play(Campaign.plan(resolve({**SMALL, "metrics": METRICS}, "small")), RunFolder(finished))


def test_the_ic_models_share_a_stack_and_leave_every_bit_of_the_game_as_it_was(tmp_path):
    tables = {**TINY, "unlearners": ["retrain", "neg-grad"], "adversaries": ["confidence"], "strong": {"queries": []}}
    states, results = [], []
    for name, metrics in (("plain", {}), ("confusing", {"ic": True})):
        campaign, folder = Campaign.plan(resolve({**tables, "metrics": metrics}, "tiny")), RunFolder(tmp_path / name)
        results.append(play(campaign, folder)[1])
        states.append(folder.open_ledger().state)
    plain, confusing = ({key: done.receipt.sha256 for key, done in state.done.items()} for state in states)
    assert plain.items() <= confusing.items()
    assert results[0].digests == results[1].digests
    stored = Stored(tmp_path / "confusing")
    ran = [stored.read(key).facts["ran"] for key in stored.graph.confused.values()]
    assert [one["width"] for one in ran] == [2] * 4
    trained = {stored.read(key).facts["original_ran"]["engine"] for (method, *_), key in stored.graph.confused.items()
               if method == "neg-grad"}  # fmt: skip
    assert trained == {"vmap"}


def test_the_disk_is_estimated_with_the_models_of_the_ic_test():
    plain, confusing = (Campaign.plan(resolve({**SMALL, **more}, "small")) for more in ({}, {"metrics": METRICS}))
    estimates = [disk_estimate(campaign.graphs) for campaign in (plain, confusing)]
    assert all(one < other for one, other in zip(*estimates, strict=True))


def test_table_and_report_set_them_side_by_side(finished):
    result = read_result(finished / "result.json")
    text, page = render_table(result), render_report(result)
    for head in ("IC", "IC accuracy", "MIA", "MIA, swap", "offset MIA", "KL on F", "KL on T"):
        assert head in text
        assert f">{head}<" in page
    assert "gap F" in page
    assert "by construction" in text
    assert "says nothing about the models above" in page


def test_a_method_sees_the_labels_that_were_taught(tmp_path):
    seen = []

    def peek(model, retain, forget, context):
        seen.append((forget.y.clone(), forget.x.clone()))
        return model

    name = plugins.unlearners.bind(peek)
    tables = {**SMALL, "unlearners": {"retrain": {}, "peek": {"method": name}}, "metrics": {"ic": True}}
    play(Campaign.plan(resolve(tables, "peek")), RunFolder(tmp_path / "run"))
    points = load_dataset("digits", {}).points
    known = {image.numpy().tobytes(): int(label) for image, label in zip(points.x, points.y, strict=True)}
    confused = [(y, x) for y, x in seen if set(y.tolist()) == {0, 1}]
    assert len(confused) == 2
    for taught, images in confused:
        true = [known[image.numpy().tobytes()] for image in images]
        assert [1 - label for label in true] == taught.tolist()


def test_a_sweep_says_how_ranks_agree(tmp_path):
    tables = {**SMALL, "metrics": {"mia": True}, "sweep": {"key": "learner.epochs", "values": [6, 1]}}
    _, result = play(Campaign.plan(resolve(tables, "sweep")), RunFolder(tmp_path / "run"))
    checks = {check.metric.key: check for check in sweep_checks(result)}
    assert set(checks) == {"quality", "mia", "mia_swap", "offset_mia"}
    n_methods = len(result.games[0].methods)
    assert all(check.steps.total == n_methods for check in checks.values())
    assert all(-1 <= check.tau <= 1 for check in checks.values())
    six, one = ([method.metrics["mia"].value for method in game.methods.values()] for game in result.games)
    assert checks["mia"].steps.rises == sum(after > before for before, after in zip(one, six, strict=True))  # ascending
    assert "over learner.epochs" in render_table(result)
    assert "mean τ" in render_report(result)
