"""What is quoted of language models, in a run: derived a second time from the stored signals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.plan.graph import Cell
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.run.campaign import Campaign
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.tasks.causal_lm import AT
from tests.conftest import TINY

TINY_LM = {"name": "minibatch", "model": "causal-lm", "model_params": {"hidden": 16, "vocab": 256}, "epochs": 2}
LM = {
    "data": {"name": "people", "params": {"people": 12, "vocab": 256}},
    "learner": TINY_LM,
    "adversaries": ["loss"],
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language") / "run"
    result = forgetgauge.evaluate(
        data="people",
        data_params={"people": 12, "vocab": 256},
        learner=TINY_LM,
        unlearner=["retrain", "none"],
        adversaries=["loss", "min-k"],
        metrics=["language"],
        pairs=2,
        shadows=2,
        out=folder,
        executor="inline",
    )
    return folder, result.games[0]


def stored(folder):
    """(method, pair, side) -> (columns on F, columns on T) of every model."""
    run = RunFolder(folder)
    (graph,) = Campaign.read(run).graphs
    done, found = run.open_ledger().state.done, {}
    for method, pair, side in product(graph.game.methods, range(2), (0, 1)):
        key = graph.cells[Cell(method, pair, side, 0)].signals
        outputs = run.objects.read(key, done[key].receipt.sha256).arrays["outputs"].astype(np.float64)
        forget = graph.game.swap_pair(pair).in_forget ^ bool(side)
        found[method, pair, side] = outputs[forget], outputs[~forget]
    return found


def mean_loss(outputs):
    return outputs[:, AT["loss-sum"]] / outputs[:, AT["tokens"]]


def non_membership_auc(both):
    scores = np.concatenate([part[:, AT["min-k 40"]] for part in both])
    return 1 - roc_auc_score(np.repeat([1, 0], [len(part) for part in both]), scores)


def test_they_are_what_scipy_and_scikit_learn_make_of_the_stored_signals(played):
    folder, game = played
    models = stored(folder)
    for method in ("retrain", "none"):
        expected = {name: [] for name in ("loss_ks", "privleak", "extraction", "verbatim")}
        for pair in range(2):
            sides = []
            for side in (0, 1):
                own = models[method, pair, side]
                retrained = list(models["retrain", pair, 1 - side if method == "retrain" else side])
                if method == "retrain":  # the model that was retrained for the other side, on this side's F and T
                    retrained = retrained[::-1]
                usual = non_membership_auc(retrained)
                sides.append(
                    [
                        ks_2samp(mean_loss(own[0]), mean_loss(retrained[0]), method="exact").pvalue,
                        (non_membership_auc(own) - usual) / usual,
                        (own[0][:, AT["suffix"]] / own[0][:, AT["tokens"]]).mean(),
                        (own[0][:, AT["prefix"]] / own[0][:, AT["tokens"]]).mean(),
                    ]
                )
            for name, value in zip(expected, np.mean(sides, axis=0), strict=True):
                expected[name].append(float(value))
        found = game.methods[method].metrics
        for name, by_pair in expected.items():
            assert found[name].by_pair == pytest.approx(by_pair, abs=1e-9), name


def test_the_table_and_the_report_show_them_beside_q(played):
    folder, game = played
    result = forgetgauge.read_result(folder / "result.json")
    for text in (render_table(result), render_report(result)):
        for head in ("KS p of losses", "PrivLeak", "extraction strength", "verbatim match"):
            assert head in text
    assert set(game.methods["none"].metrics) == {"loss_ks", "privleak", "extraction", "verbatim"}


def test_they_are_of_language_models_and_need_retrain():
    with pytest.raises(UserError, match=r"metrics\.language: it is of language models"):
        resolve({**TINY, "metrics": {"language": True}}, "tiny")
    with pytest.raises(UserError, match=r"metrics\.language compares with Retrain, but it is not among the unlearners"):
        resolve({**LM, "unlearners": ["none"], "metrics": {"language": True}}, "tiny")
