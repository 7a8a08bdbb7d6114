"""Runs that would print a clean wrong number: refused before training, or warned of by name beside the number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge import adversary, evaluate
from forgetgauge.auditing import audit_file, write_audit_file
from forgetgauge.data.data_warnings import copied_inputs, label_gaps
from forgetgauge.errors import UserError
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.verdict import LIKE_RETRAIN
from tests.own_code import Constant


def blobs(n=240, n_classes=3, seed=0) -> tuple[np.ndarray, np.ndarray]:
    """Points around one centre per class, with labels that no model can learn but by heart for a third of them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    inputs = rng.standard_normal((n, 12)).astype(np.float32) + 1.0 * np.eye(12, dtype=np.float32)[labels]
    wrong = rng.random(n) < 0.3
    return inputs, np.where(wrong, rng.integers(0, n_classes, n), labels)


LEARNER = {"epochs": 20, "batch_size": 32, "lr": 0.1, "model": "mlp"}
HOW = {"alpha": 0.5, "pairs": 5, "shadows": 3, "adversaries": ["confidence", "entropy"], "learner": LEARNER}


def warned(result) -> str:
    table, page = render_table(result), render_report(result)
    assert all(f"warning: {line}" in table for line in result.games[0].warnings)
    assert page.count("⚠ ") >= len(result.games[0].warnings)
    return " ".join(result.games[0].warnings)


def too_much(model, retain, forget, context):
    """Teaches wrong labels of the forget set, so that its points stand out by being wrong."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(forget.x), (forget.y + 1) % 3)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def one_for_all(model, retain, forget, context):
    """Forgets what it was given, and returns weights that depend on nothing."""
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(i)) / 5)
    return model


def test_over_forgetting_and_copied_models_are_named_and_plain_methods_are_not():
    result = evaluate(unlearner=["retrain", "none", too_much, one_for_all], data=blobs(), **HOW)
    text = warned(result)
    assert "too_much: the shadow models and the models under test point in opposite directions" in text
    assert "over-forgets" in text
    assert "swapped" in text
    assert (
        "one_for_all: the models of both sides of pairs 0, 1, 2, 3 and 4 give the same answers up to rounding" in text
    )
    assert len(result.games[0].warnings) == 2  # none of them on retrain and none


@adversary
def by_place(signals):
    return np.arange(len(signals.labels), dtype=np.float64)


def test_an_adversary_that_does_not_look_at_the_models_is_named_and_not_the_models():
    result = evaluate(unlearner=["retrain", "none"], data=blobs(), **{**HOW, "adversaries": ["loss", by_place]})
    text = warned(result)
    assert "by_place: both models of every pair answer alike to it, though not to other adversaries" in text
    assert "give the same answers" not in text


@pytest.mark.parametrize(("by", "n_words"), [("point", 1), ("group", 0)])
def test_a_game_that_cuts_groups_says_so(by, n_words):
    learner = {"model": "causal-lm", "model_params": {"vocab": 256}, "optimiser": "adamw", "lr": 5e-3, "epochs": 1}
    how = {"pairs": 1, "shadows": 2, "adversaries": ["loss"], "learner": learner, "alpha": 0.5}
    result = evaluate(unlearner="none", data="people", data_params={"people": 24, "vocab": 256}, by=by, **how)
    said = "belong to 24 groups, but the game draws points one by one"
    assert " ".join(result.games[0].warnings).count(said) == n_words


def test_one_retrained_model_for_both_sides_is_no_copy():
    result = evaluate(unlearner="retrain", data=blobs(), share_retrain=True, **HOW)
    assert result.methods["retrain"].quality == 1
    assert result.games[0].warnings == []


def test_adversaries_that_decide_nothing_are_no_evidence():
    how = HOW | {"adversaries": {"yes": Constant()}, "learner": {**LEARNER, "epochs": 1}}
    result = evaluate(unlearner=["retrain", "none"], data=blobs(), **how)
    for method in result.methods.values():
        assert (method.quality, method.n_pairs, method.decided_nothing) == (None, 5, ["yes"])
    assert "so nothing was measured and there is no Q" in warned(result)
    assert result.games[0].comparisons == []
    both = evaluate(
        unlearner=["retrain", "none"], data=blobs(), **{**how, "adversaries": {"yes": Constant(), "sure": "confidence"}}
    )
    assert both.methods["none"].quality is not None
    assert "retrain and none: yes gives the same answer for all points of every model" in warned(both)


@pytest.mark.parametrize("times", [2, 4])
def test_inputs_that_are_there_several_times_are_warned_of(times):
    inputs, labels = (np.concatenate([part] * times) for part in blobs(240 // times))
    how = HOW | {"pairs": 1, "learner": {**LEARNER, "epochs": 1}}
    assert "data 'given': 240 of 240 inputs stand there more than once" in warned(
        evaluate(unlearner="none", data=(inputs, labels), **how)
    )


def test_labels_with_gaps_are_warned_of():
    inputs, labels = blobs()
    how = HOW | {"pairs": 1, "learner": {**LEARNER, "epochs": 1}}
    result = evaluate(unlearner="none", data=(inputs, np.array([0, 5, 1000])[labels]), **how)
    assert "the labels are 0, 5, 1000, so 998 of the 1001 classes" in warned(result)


def softmax_at_the_end(input_shape, n_classes):
    return nn.Sequential(nn.Linear(12, 3), nn.Softmax(dim=1))


class WithSoftmax(Minibatch):
    def build(self, points, seed):
        return softmax_at_the_end((12,), 3)


@pytest.mark.parametrize("learner", [{"model": softmax_at_the_end}, WithSoftmax()])
def test_a_model_that_gives_probabilities_is_refused_before_training(learner):
    began = []
    with pytest.raises(UserError, match=r"gives probabilities.*leave out the softmax"):
        evaluate(unlearner="none", data=blobs(), **HOW | {"learner": learner}, progress=began.append)
    assert began == []


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64, np.bool_])
def test_copies_are_found_bit_by_bit_whatever_the_type(dtype):
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 2 if dtype == np.bool_ else 200, (300, 3, 11)).astype(dtype)
    assert copied_inputs(inputs, "x") == []
    inputs[280:] = inputs[:20]
    assert copied_inputs(inputs, "x")[0].startswith("x: 40 of 300 inputs")
    inputs[280:, 2, 10] = (inputs[280:, 2, 10] == 0).astype(dtype)  # the last cell of each copy is another one now
    assert copied_inputs(inputs, "x") == []


def test_labels_without_gaps_are_not_named():
    assert label_gaps(np.arange(4), "x") == []
    assert label_gaps(np.array([1, 2]), "x")[0].startswith("x: the labels are 1, 2, so 1 of the 3 classes")


def blank(model, retain, forget, context):
    """All weights 0: every token is as likely as any other, and everybody looks unseen."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def flattened(model, retain, forget, context):
    """Weights half as large: it knows what it knew, on another scale."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    return model


def test_where_persons_separate_fully_retrain_has_a_q_and_ruined_models_have_none(tmp_path):
    """Attacks say of Retrain's models that they saw nobody, and of ruined ones too: one of the two is an answer."""
    people = {"data": "people", "data_params": {"vocab": 512, "people": 48}, "by": "group", "executor": "inline"}
    learner = {"model": "causal-lm", "model_params": {"hidden": 32, "vocab": 512}, "optimiser": "adamw", "lr": 0.01}
    result = evaluate(
        unlearner=["retrain", "none", blank, flattened],
        learner={**learner, "batch_size": 16, "epochs": 30},
        adversaries=["loss", "min-k"],
        alpha=0.5,
        pairs=2,
        shadows=2,
        out=tmp_path / "run",
        **people,
    )
    retrain, none = result.methods["retrain"], result.methods["none"]
    assert (retrain.quality, retrain.silence_counts, retrain.verdict) == (1, ["loss", "min-k"], LIKE_RETRAIN)
    assert 0.8 < retrain.interval[0] < 0.95
    assert none.interval[1] < 0.5
    for name in ("blank", "flattened"):
        assert (result.methods[name].quality, result.methods[name].silence_counts) == (None, [])
    assert "blank and flattened: loss and min-k give the same answer for all points" in warned(result)
    assert "Retrain never saw the forgotten points, so its Q should be 1: its interval" in render_report(result)
    write_audit_file(tmp_path / "run", tmp_path / "audit.csv")
    again = audit_file(tmp_path / "audit.csv")
    assert {name: method.quality for name, method in again.methods.items() if name != "none"} == {
        "retrain": 1,
        "blank": None,
        "flattened": None,
    }
