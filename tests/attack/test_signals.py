import decimal
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from forgetgauge.attack.adversary import Panel
from forgetgauge.attack.signals import (
    CONFIDENCE,
    CORRECTNESS,
    GAP,
    NEGATIVE_ENTROPY,
    NEGATIVE_LOSS,
    NEGATIVE_MODIFIED_ENTROPY,
    STATISTIC,
    Signals,
)
from forgetgauge.tasks.causal_lm import CAUSAL_LM

SCORES = {
    "correctness": CORRECTNESS,
    "confidence": CONFIDENCE,
    "entropy": NEGATIVE_ENTROPY,
    "modified entropy": NEGATIVE_MODIFIED_ENTROPY,
}
LOGIT_SCORES = {"log odds": STATISTIC, "log confidence": NEGATIVE_LOSS, "logit gap": GAP}
QUICK = settings(max_examples=50, deadline=None)


def log(p: float) -> float:
    return math.log(max(p, 1e-30))


def entropy_by_hand(p: list[float], y: int) -> float:
    return -sum(q * log(q) for q in p)


def modified_entropy_by_hand(p: list[float], y: int) -> float:
    return -(1 - p[y]) * log(p[y]) - sum(q * log(1 - q) for i, q in enumerate(p) if i != y)


BY_HAND = {
    "correctness": lambda p, y: float(all(p[y] > q for q in p[:y]) and all(p[y] >= q for q in p[y:])),
    "confidence": lambda p, y: p[y],
    "entropy": lambda p, y: -entropy_by_hand(p, y),
    "modified entropy": lambda p, y: -modified_entropy_by_hand(p, y),
}


def random_logits(n_classes: int) -> np.ndarray:
    """10,000 rows: of several widths, with ties, uniform, and as good as certain."""
    rng = np.random.default_rng(n_classes)
    certain = rng.choice([-1e3, 1e3], (1000, n_classes))
    certain[:500] = -1e3
    certain[np.arange(500), rng.integers(0, n_classes, 500)] = 1e3
    return np.concatenate(
        [
            np.clip(rng.standard_normal((4000, n_classes)), -3, 3),
            np.clip(2 * rng.standard_normal((2000, n_classes)), -3, 3),
            rng.integers(-2, 3, (2000, n_classes)),
            np.tile(rng.standard_normal((1000, 1)), n_classes),
            certain,
        ]
    ).astype(np.float32)


def uniform(n_classes: int) -> Signals:
    return Signals(np.zeros((1, n_classes), dtype=np.float32), np.array([0]))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_score_is_its_formula_written_out(name, n_classes):
    logits = random_logits(n_classes)
    labels = np.random.default_rng(0).integers(0, n_classes, len(logits))
    posterior = softmax(logits.astype(np.float64), axis=1)
    expected = [BY_HAND[name](p, y) for p, y in zip(posterior.tolist(), labels.tolist(), strict=True)]
    assert len(expected) == 10_000
    np.testing.assert_allclose(SCORES[name](Signals(logits, labels)), expected, rtol=0, atol=1e-9)


def test_the_modified_entropy_of_an_even_choice_between_two_is_ln_2():
    assert -NEGATIVE_MODIFIED_ENTROPY(uniform(2))[0] == pytest.approx(math.log(2), abs=1e-12)


def test_the_modified_entropy_of_an_even_choice_among_ten_is_that_of_the_paper():
    assert -NEGATIVE_MODIFIED_ENTROPY(uniform(10))[0] == pytest.approx(
        0.9 * math.log(10) - 0.9 * math.log(0.9), abs=1e-12
    )
    assert -NEGATIVE_MODIFIED_ENTROPY(uniform(10))[0] == pytest.approx(2.1672, abs=5e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_the_entropy_of_an_even_choice_is_the_log_of_the_number_of_classes(n_classes):
    assert -NEGATIVE_ENTROPY(uniform(n_classes))[0] == pytest.approx(math.log(n_classes), abs=1e-12)


def test_a_certain_right_answer_is_nothing_and_a_certain_wrong_one_is_much():
    logits = np.array([[1e3, -1e3, -1e3]] * 2, dtype=np.float32)
    right, wrong = -NEGATIVE_MODIFIED_ENTROPY(Signals(logits, np.array([0, 1])))
    assert right == 0
    assert wrong > 100
    assert NEGATIVE_ENTROPY(Signals(logits, np.array([0, 1]))).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["confidence", "modified entropy"])
def test_more_weight_on_the_true_label_is_more_member_like(name):
    gap = np.linspace(-60, 15, 400)
    logits = np.stack([gap, np.zeros_like(gap), np.full_like(gap, -1)], axis=1).astype(np.float32)
    assert (np.diff(SCORES[name](Signals(logits, np.zeros(400, dtype=np.int64)))) > 0).all()


@pytest.mark.parametrize("name", SCORES)
def test_every_score_of_every_finite_logit_is_finite(name):
    largest = np.finfo(np.float32).max
    logits = np.array([[largest, -largest], [-largest, -largest], [largest, largest], [0, 1e-40]], dtype=np.float32)
    assert np.isfinite(SCORES[name](Signals(logits, np.array([1, 0, 1, 0])))).all()


@QUICK
@given(seed=st.integers(0, 2**32), shift=st.integers(-64, 64))
def test_adding_one_number_to_all_logits_of_a_point_changes_nothing(seed, shift):
    rng = np.random.default_rng(seed)
    logits = (rng.integers(-64, 64, (20, 5)) / 16).astype(np.float32)  # sums of such numbers are exact in float32
    labels = rng.integers(0, 5, 20)
    for score in SCORES.values():
        assert np.array_equal(score(Signals(logits, labels)), score(Signals(logits + np.float32(shift), labels)))


@QUICK
@given(seed=st.integers(0, 2**32))
def test_renaming_the_classes_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    logits, labels, names = rng.standard_normal((20, 5)).astype(np.float32), rng.integers(0, 5, 20), rng.permutation(5)
    renamed = Signals(logits[:, np.argsort(names)], names[labels])
    for score in SCORES.values():
        np.testing.assert_allclose(score(renamed), score(Signals(logits, labels)), atol=1e-12)


def test_the_posterior_is_a_distribution_in_double_precision():
    posterior = Signals(random_logits(10), np.zeros(10_000, dtype=np.int64)).read("posterior")
    assert posterior.dtype == np.float64
    assert posterior.min() >= 0
    np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-12)


def test_scoring_leaves_the_logits_as_they_were():
    logits = random_logits(10)
    before, signals = logits.copy(), Signals(logits, np.zeros(10_000, dtype=np.int64))
    for score in SCORES.values():
        score(signals)
        score(signals)
    assert np.array_equal(logits, before)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_no_numbers_are_refused(bad):
    logits = np.zeros((3, 2), dtype=np.float32)
    logits[1, 1] = bad
    with pytest.raises(ValueError, match="NaN or infinite"):
        Signals(logits, np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 2, 2)])
def test_logits_that_do_not_fit_the_labels_are_refused(shape):
    with pytest.raises(ValueError, match="do not fit 3 labels"):
        Signals(np.zeros(shape, dtype=np.float32), np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("name", SCORES)
def test_no_points_have_no_scores(name):
    assert SCORES[name](Signals(np.zeros((0, 3), dtype=np.float32), np.zeros(0, dtype=np.int64))).shape == (0,)


def log_odds_by_hand(z: list[float], y: int) -> float:
    """With 60 digits, so that e^−2000 is not 0."""
    with decimal.localcontext(decimal.Context(prec=60)):
        exponentials = [decimal.Decimal(value).exp() for value in z]
        return float((exponentials[y] / sum(e for i, e in enumerate(exponentials) if i != y)).ln())


BY_HAND_FROM_LOGITS = {
    "log odds": log_odds_by_hand,
    "log confidence": lambda z, y: -float(np.logaddexp(0, -log_odds_by_hand(z, y))),
    "logit gap": lambda z, y: z[y] - max(value for i, value in enumerate(z) if i != y),
}


@pytest.mark.parametrize("name", LOGIT_SCORES)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_score_of_logits_is_its_formula_written_out_even_where_the_posterior_rounds(name, n_classes):
    logits = random_logits(n_classes)[::25]
    labels = np.random.default_rng(0).integers(0, n_classes, len(logits))
    expected = [BY_HAND_FROM_LOGITS[name](z, y) for z, y in zip(logits.tolist(), labels.tolist(), strict=True)]
    np.testing.assert_allclose(LOGIT_SCORES[name](Signals(logits, labels)), expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", LOGIT_SCORES)
def test_every_score_of_every_finite_logit_is_finite_from_logits_too(name):
    largest = np.finfo(np.float32).max
    logits = np.array([[largest, -largest], [-largest, -largest], [largest, largest], [0, 1e-40]], dtype=np.float32)
    assert np.isfinite(LOGIT_SCORES[name](Signals(logits, np.array([1, 0, 1, 0])))).all()


def test_the_log_odds_are_the_logit_of_the_confidence():
    signals = Signals(random_logits(10)[:6000], np.zeros(6000, dtype=np.int64))
    p = CONFIDENCE(signals)
    np.testing.assert_allclose(STATISTIC(signals), np.log(p) - np.log1p(-p), rtol=0, atol=1e-9)


def test_an_adversary_cannot_write_into_what_others_read_too():
    signals = Signals(np.zeros((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), columns={"c": np.zeros(3)})
    panel = Panel(np.zeros((1, 3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), np.zeros((1, 3), dtype=np.int8))
    for array in (signals.outputs, signals.labels, signals.columns["c"], panel.outputs, panel.labels, panel.role):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_a_signal_that_the_task_does_not_have_is_refused_with_those_that_it_has():
    outputs, labels = CAUSAL_LM.made_up(3, 1, np.zeros(3, dtype=bool), np.random.default_rng(0))
    shown = Signals(outputs, labels, task=CAUSAL_LM)
    with pytest.raises(ValueError, match=r"causal-lm 'min-k 25'; did you mean 'min-k 5'\?"):
        shown.read("min-k 25")
    with pytest.raises(ValueError, match=r"'posterior'; valid: .*loss, .*min-k 20"):
        shown.read("posterior")
