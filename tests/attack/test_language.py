"""Attacks on language models, each against the computation of its paper on a tiny model, token by token."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from forgetgauge import plugins
from forgetgauge.attack.adversary import TargetContext
from forgetgauge.attack.lowest_tokens import MIN_K, MIN_K_PLUS_PLUS
from forgetgauge.attack.shadow_model import ALL_SIGNALS
from forgetgauge.attack.signals import Signals
from forgetgauge.attack.threshold import CALIBRATED_LOSS, EIGHT_BIT_LOSS, PARAPHRASED_LOSS, ZLIB_RATIO
from forgetgauge.errors import UserError
from forgetgauge.plan.spec import RunSpec
from forgetgauge.run.resolve import resolve
from forgetgauge.tasks.causal_lm import AT, CAUSAL_LM, COLUMNS, LOWEST_PERCENT

from . import token_scores as oracle
from .worlds import draw_world

VOCAB = 23
TEXTS = ["Ada lives in Bern.", "Bob", "Her number is 079 123 45 67, her number is 079 123 45 67.", "Q? A!"]


def records(seed=0):
    """(log-probabilities of the vocabulary at each token, tokens) of records of different lengths; some are found."""
    rng = np.random.default_rng(seed)
    found = []
    for n_tokens in (17, 1, 40, 3):
        logits = 2 * rng.normal(size=(n_tokens, VOCAB))
        tokens = rng.integers(0, VOCAB, n_tokens)
        known = rng.random(n_tokens) < 0.7
        tokens[known] = logits[known].argmax(axis=1)
        found.append((logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), tokens))
    return found


def signals_of(records, base=None) -> Signals:
    """The columns as the oracle has them, in the task's order."""
    outputs = np.zeros((len(records), len(COLUMNS)), dtype=np.float32)
    for row, (log_p, tokens) in enumerate(records):
        right = oracle.is_right(log_p, tokens)
        values = {
            "loss-sum": oracle.loss_sum(log_p, tokens),
            "tokens": len(tokens),
            "hits": sum(right),
            "prefix": oracle.verbatim_match(right) * len(tokens),
            "suffix": oracle.extraction_strength(right) * len(tokens),
            "base-loss-sum": oracle.loss_sum(*base[row]) if base else 0.0,
        }
        for k in LOWEST_PERCENT:
            values[f"min-k {k}"] = oracle.min_k(log_p, tokens, k)
            values[f"min-k++ {k}"] = oracle.min_k_plus_plus(log_p, tokens, k)
        for name, value in values.items():
            outputs[row, AT[name]] = value
    labels = np.array([len(zlib.compress(text.encode())) for text in TEXTS])
    return Signals(outputs, labels, task=CAUSAL_LM)


def context() -> TargetContext:
    return TargetContext(1)


# -- scores ------------------------------------------------------------------------------------------------------------


def test_the_scores_of_all_attacks_are_those_of_their_papers():
    asked, base = records(0), records(1)
    base = [(law, tokens) for (law, _), (_, tokens) in zip(base, asked, strict=True)]
    seen = signals_of(asked, base)
    expected = {
        CALIBRATED_LOSS: [
            (oracle.loss_sum(*at_base) - oracle.loss_sum(*one)) / len(one[1])
            for one, at_base in zip(asked, base, strict=True)
        ],
        ZLIB_RATIO: [-oracle.zlib_ratio(*one, text) for one, text in zip(asked, TEXTS, strict=True)],
    }
    for adversary, scores in expected.items():
        attack = adversary.load({"thresholds": np.zeros(1)})
        np.testing.assert_allclose(attack.score(seen), scores, rtol=1e-5)
    for adversary, score in ((MIN_K, oracle.min_k), (MIN_K_PLUS_PLUS, oracle.min_k_plus_plus)):
        for k in LOWEST_PERCENT:
            attack = adversary.load({"percent": np.array(k), "threshold": np.array(0.0)})
            np.testing.assert_allclose(attack.score(seen), [score(*one, k) for one in asked], rtol=1e-5)


def test_extraction_strength_and_verbatim_match_are_signals_of_the_task():
    asked = records(0)
    seen = signals_of(asked)
    rights = [oracle.is_right(*one) for one in asked]
    np.testing.assert_allclose(seen.read("extraction-strength"), [oracle.extraction_strength(one) for one in rights])
    np.testing.assert_allclose(seen.read("verbatim-match"), [oracle.verbatim_match(one) for one in rights])


@pytest.mark.parametrize(
    ("adversary", "signal"), [(MIN_K, "min-k"), (MIN_K_PLUS_PLUS, "min-k++")], ids=["min-k", "min-k++"]
)
def test_k_and_the_threshold_are_the_best_on_the_shadow_models(adversary, signal):
    shadows = draw_world(5, task=CAUSAL_LM).shadows
    attack = adversary.fit(shadows, context())
    signals, member = shadows.rows
    best = (-1.0, 0, 0.0)
    for percent in LOWEST_PERCENT:
        values = signals.read(f"{signal} {percent}")
        for threshold in np.unique(values):
            gap = (values[member] >= threshold).mean() - (values[~member] >= threshold).mean()
            if gap > best[0] + 1e-12:
                best = (gap, percent, threshold)
    assert (int(attack.percent), float(attack.threshold)) == best[1:]


@pytest.mark.parametrize(
    ("adversary", "column"), [(PARAPHRASED_LOSS, "paraphrased-loss"), (EIGHT_BIT_LOSS, "8-bit-loss-sum")]
)
def test_the_loss_attack_on_other_prompts_and_weights_reads_nothing_else(adversary, column):
    world = draw_world(6, task=CAUSAL_LM)
    attack, seen = adversary.fit(world.shadows, context()), world.target
    others = seen.outputs.copy()
    kept = [AT[column], AT["tokens"]]
    others[:, [place for place in range(len(COLUMNS)) if place not in kept]] = 7
    assert np.array_equal(attack.margin(seen), attack.margin(Signals(others, seen.labels, task=CAUSAL_LM)))
    values = seen.outputs[:, AT[column]] / (seen.outputs[:, AT["tokens"]] if column.endswith("sum") else 1)
    np.testing.assert_allclose(attack.score(seen), -values, rtol=1e-6)


def test_the_attack_trained_on_all_signals_is_scikit_learns_regression_on_the_tasks_columns():
    world = draw_world(7, task=CAUSAL_LM)
    signals, member = world.shadows.rows
    scaler = StandardScaler().fit(signals.read("all-columns"))
    regression = LogisticRegression(class_weight="balanced", tol=1e-8, max_iter=5000)
    regression.fit(scaler.transform(signals.read("all-columns")), member)
    expected = regression.decision_function(scaler.transform(world.target.read("all-columns")))
    found = ALL_SIGNALS.fit(world.shadows, context()).score(world.target)
    np.testing.assert_allclose(found, expected, atol=1e-3)


# -- where they cannot be played ---------------------------------------------------------------------------------------

OF_TEXTS = [
    name
    for name in plugins.adversaries.entries
    if not getattr(plugins.adversaries.load(name), "reads", set()) <= set(plugins.tasks.load("classification").signals)
]


def test_eight_attacks_are_of_language_models_alone():
    assert OF_TEXTS == [
        "calibrated-loss", "zlib-ratio", "min-k", "min-k-plus-plus", "all-signals", "all-signals-aware",
        "loss-paraphrased", "loss-8-bit",
    ]  # fmt: skip


@pytest.mark.parametrize("name", OF_TEXTS)
def test_they_are_refused_by_name_for_classes(name):
    assert name not in RunSpec().adversaries
    with pytest.raises(UserError, match=f"adversaries.{name}: it reads the signal") as refused:
        resolve({"adversaries": [name]}, "run.toml")
    assert "those that can be used are correctness" in str(refused.value)
    assert "label-only" in str(refused.value)


def test_what_nobody_can_alter_is_no_reason_to_name_an_attack_on_altered_copies():
    language = {"data": {"name": "people"}, "learner": {"model": "causal-lm"}, "adversaries": ["entropy"]}
    with pytest.raises(UserError, match=r"adversaries\.entropy: it reads the signal") as refused:
        resolve(language, "run.toml")
    assert "loss" in str(refused.value)
    assert "label-only" not in str(refused.value)
