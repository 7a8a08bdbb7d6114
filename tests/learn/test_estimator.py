"""scikit-learn's estimators as learners: kept without pickles, whichever they are, and attacked like any model."""

from __future__ import annotations

import copy
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

import forgetgauge
from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.data.digits import load_digits
from forgetgauge.errors import UserError
from forgetgauge.learn.estimator import EstimatorLearner
from forgetgauge.learn.estimator_state import estimator_of, state_bytes
from forgetgauge.learn.learner import Learner
from forgetgauge.streams import Streams
from forgetgauge.tasks.regression import REGRESSION
from tests.own_code import TINY

RNG = np.random.default_rng(0)
Y = np.arange(48) % 3
X = np.abs(RNG.normal(size=(48, 5)) + Y[:, None]).astype(np.float32)
COMPOSED = {
    "pipeline": make_pipeline(StandardScaler(), FunctionTransformer(np.arcsinh), LogisticRegression()),
    "vote": VotingClassifier([("a", RandomForestClassifier(3)), ("b", KNeighborsClassifier())], voting="soft"),
    "one against the rest": OneVsRestClassifier(LinearSVC()),
    "search": GridSearchCV(GaussianNB(), {"var_smoothing": [0.1, 1.0]}, cv=2),
    "search among classes": GridSearchCV(
        Pipeline([("c", GaussianNB())]), {"c": [SVC(), RandomForestClassifier(3)]}, cv=2
    ),
    "stack": StackingClassifier([("a", RandomForestClassifier(3)), ("b", LinearSVC())], cv=2, passthrough=True),
    "columns": make_pipeline(
        make_column_transformer((PolynomialFeatures(), [0, 1]), (OneHotEncoder(handle_unknown="ignore"), [2])),
        RandomForestClassifier(3),
    ),
    "calibrated": CalibratedClassifierCV(BaggingClassifier(KNeighborsClassifier(algorithm="ball_tree"), 2), cv=2),
    "imputed": make_pipeline(IterativeImputer(), GradientBoostingClassifier(n_estimators=3)),
}


def made(kind):
    """By name, every estimator of scikit-learn that can be made without parameters."""
    found = {}
    for name, cls in all_estimators(type_filter=kind):
        with suppress(TypeError), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # some are about to go
            found[name] = cls()
    return found


OTHERS = ("IsotonicRegression", "CCA", "PLSCanonical", "SelfTrainingClassifier")  # one column, several labels, a part
EVERY = {**made("classifier"), **made("regressor"), **COMPOSED}
EVERY = {name: one for name, one in EVERY.items() if name not in OTHERS and not name.startswith("MultiTask")}


def fitted(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(X, Y + 1)


def answers(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict)(X)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", EVERY)
def test_every_estimator_survives_as_bytes_to_the_bit(name):
    one = fitted(EVERY[name])
    state = state_bytes(one, EVERY[name])
    again = estimator_of(state, EVERY[name])
    assert np.array_equal(answers(one), answers(again), equal_nan=True)
    assert type(again) is type(one)


def test_equal_models_have_equal_bytes():
    like = RandomForestClassifier(4, random_state=0)
    first, second = (state_bytes(fitted(like), like) for _ in range(2))
    assert np.array_equal(first, second)


class Own(ClassifierMixin, BaseEstimator):
    """An estimator that no module has under its name's own."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.mean_ = {int(label): X[y == label].mean(axis=0) for label in self.classes_}
        return self

    def predict(self, X):
        return np.array([min(self.mean_, key=lambda label: float(((x - self.mean_[label]) ** 2).sum())) for x in X])


def test_an_own_estimator_survives_too():
    one = Own().fit(X, Y)
    assert np.array_equal(estimator_of(state_bytes(one, Own()), Own()).predict(X), one.predict(X))


class Counted(Own):
    """Has an object of its own package in its state."""

    def fit(self, X, y):
        self.tally_ = Tally()
        self.tally_.n = len(y)
        return super().fit(X, y)


class Tally:
    """No estimator."""


def test_what_its_package_makes_is_kept_inside_another_estimator_too():
    one = OneVsRestClassifier(Counted()).fit(X, Y)
    again = estimator_of(state_bytes(one, OneVsRestClassifier(Counted())), OneVsRestClassifier(Counted()))
    assert again.estimators_[0].tally_.n == len(Y)


def test_values_come_back_as_what_they_were(tmp_path):
    one = Own().fit(X, Y)
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(2, 3))
    one.kept_ = [
        bytearray(b"ab"),
        b"ab",
        {"b", "a", "c"},
        frozenset({2, 1}),
        {1: (2, None)},
        mapped,
        float("nan"),
        float("-inf"),
    ]
    again = estimator_of(state_bytes(one, Own()), Own()).kept_
    assert [type(value) for value in again[:5]] == [type(value) for value in one.kept_[:5]]
    assert again[:5] == one.kept_[:5]
    assert type(again[5]) is np.ndarray
    assert np.array_equal(again[5], mapped)
    assert repr(again[6:]) == "[nan, -inf]"


class Sharded(Own):
    """Trees that see some columns each, in a list or an array; it does not say how many columns there are."""

    def __init__(self, kind=list):
        self.kind = kind

    def fit(self, X, y):
        super().fit(X, y)
        trees = [DecisionTreeClassifier(random_state=0).fit(X[:, :n], y) for n in (2, 3)]
        self.estimators_ = self.kind(trees)
        return self

    def predict(self, X):
        return self.estimators_[1].predict(X[:, :3])


class OwnTree(Own):
    """Calls things of its own what scikit-learn calls its own."""

    def fit(self, X, y):
        super().fit(X, y)
        self.tree_ = {"column": 0, "leaves": [0, 2]}
        self._fit_X = self.indptr = self._dual_coef_ = self._predictors = X
        return self


@pytest.mark.parametrize("like", [Sharded(), Sharded(np.array), OwnTree()], ids=lambda like: repr(like))
def test_an_own_estimator_may_use_the_names_of_scikit_learns(like):
    one = clone(like).fit(X, Y)
    again = estimator_of(state_bytes(one, like), like)
    assert vars(again).keys() == vars(one).keys()
    assert np.array_equal(again.predict(X), one.predict(X))


def test_objects_in_a_set_stay_the_objects_that_they_are_elsewhere():
    one = Counted().fit(X, Y)
    tallies = [Tally() for _ in range(20)]
    for n, tally in enumerate(tallies):
        tally.n = n
    one.some_, one.all_ = set(tallies), tallies
    again = estimator_of(state_bytes(one, Counted()), Counted())
    assert [tally.n for tally in again.all_] == list(range(20))
    assert again.some_ == set(again.all_)


class Branch:
    """Of a tree that is an object in an object in an object."""


def test_what_lies_too_deep_is_not_called_a_cycle():
    one = Counted().fit(X, Y)
    for _ in range(60):
        branch, branch.below = Branch(), getattr(one, "root_", None)
        one.root_ = branch
    with pytest.raises(UserError, match="refers to itself, or lies more than 100 deep, and cannot be kept"):
        state_bytes(one, Counted())


class Connection:
    """What cannot be kept."""


def test_what_is_not_scikit_learns_is_refused_by_name():
    one = fitted(LogisticRegression())
    one.log_ = Connection()
    with pytest.raises(UserError, match=r"LogisticRegression: a tests.learn.test_estimator.Connection in its state"):
        state_bytes(one, LogisticRegression())
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [0.1]}, cv=2, scoring="accuracy")
    with pytest.raises(UserError, match=r"GridSearchCV: the function accuracy_score in its state cannot be kept: only"):
        state_bytes(fitted(search), search)
    one.log_ = [one]
    with pytest.raises(UserError, match="refers to itself"):
        state_bytes(one, LogisticRegression())


# -- as learner --------------------------------------------------------------------------------------------------------


@pytest.fixture
def learner(monkeypatch):
    monkeypatch.setattr(plugins.models, "_bound", {})
    return lambda estimator, **params: EstimatorLearner(plugins.models.bind(estimator), params)


POINTS = Points.of(torch.from_numpy(X), torch.from_numpy(Y))


def test_it_is_a_learner_whose_models_take_their_state_from_each_other(learner):
    forest = learner(RandomForestClassifier(5))
    assert isinstance(forest, Learner)
    model, same, other = (forest.fit(POINTS, Streams(key)) for key in ("one", "one", "other"))
    assert torch.equal(model(POINTS.x), same(POINTS.x))
    assert not torch.equal(model(POINTS.x), other(POINTS.x))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(POINTS.x), other(POINTS.x))
    assert torch.equal(copy.deepcopy(model)(POINTS.x), model(POINTS.x))


def test_a_fixed_random_state_is_drawn_for_each_training_all_the_same(learner):
    forest = learner(make_pipeline(RandomForestClassifier(5, random_state=0)))
    first, second = (forest.fit(POINTS, Streams(key))(POINTS.x) for key in ("one", "other"))
    assert not torch.equal(first, second)


def test_logits_are_log_probabilities_of_all_classes_where_it_has_any(learner):
    some = POINTS.subset(np.flatnonzero(Y != 1))
    model = learner(GaussianNB()).fit(some, Streams("one"))
    logits = model(POINTS.x)
    assert logits.shape == (48, 3)
    expected = model.estimator.predict_proba(X)
    assert np.allclose(logits.softmax(1).numpy()[:, [0, 2]], expected, atol=1e-6)
    assert (logits[:, 1] == logits.min()).all()


@pytest.mark.parametrize("estimator", [LinearSVC(), SGDClassifier(), Own()])
def test_without_probabilities_its_predictions_are_the_largest_logits(estimator, learner):
    for points in (POINTS, POINTS.subset(np.flatnonzero(Y != 0))):
        model = learner(estimator).fit(points, Streams("one"))
        assert np.array_equal(model(POINTS.x).argmax(1).numpy(), model.estimator.predict(X))


class Plain(ClassifierMixin, BaseEstimator):
    """Has neither classes_ nor any numbers."""

    def fit(self, X, y):
        self.most_ = np.bincount(y).argmax()
        return self

    def predict(self, X):
        return np.full(len(X), self.most_)


def test_who_only_predicts_need_not_name_classes(learner):
    model = learner(Plain()).fit(POINTS, Streams("one"))
    assert (model(POINTS.x).argmax(1) == model.estimator.most_).all()


class OneColumn(Own):
    """Says how likely one class is, and leaves the others to be guessed."""

    def predict_proba(self, X):
        return np.full((len(X), 1), 0.5)


def test_a_column_for_each_class_is_needed(learner):
    model = learner(OneColumn()).fit(POINTS, Streams("one"))
    with pytest.raises(UserError, match=r"OneColumn: predict_proba gave an array of \(48, 1\), but .* 3 in all"):
        model(POINTS.x)


def test_a_point_may_be_one_number(learner):
    points = Points.of(torch.from_numpy(X[:, 0]), torch.from_numpy(Y))
    assert learner(GaussianNB()).fit(points, Streams("one"))(points.x).shape == (48, 3)


def test_a_regressor_gives_numbers(learner):
    points = Points.of(torch.from_numpy(X), torch.from_numpy(X[:, 0] * 2), task=REGRESSION)
    model = learner(LinearRegression()).fit(points, Streams("one"))
    assert torch.allclose(model(points.x)[:, 0], points.y, atol=1e-4)


@pytest.mark.parametrize(
    ("estimator", "params", "problem"),
    [
        (LinearRegression(), {}, "'LinearRegression' is no classifier, but the task is classification"),
        (RandomForestClassifier, {"trees": 3}, "unexpected keyword argument 'trees'"),
        (RandomForestClassifier(), {"n_estimator": 3}, "did you mean 'n_estimators'"),
        (SVC(decision_function_shape="ovo"), {}, "decision_function_shape = 'ovo' has a number for each pair"),
        (make_pipeline(SVC(decision_function_shape="ovo")), {}, "say 'ovr'"),
        (make_pipeline(make_pipeline(SVC(decision_function_shape="ovo"))), {}, "say 'ovr'"),
        (GridSearchCV(SVC(decision_function_shape="ovo"), {"C": [1.0]}), {}, "say 'ovr'"),
        (np.linalg.norm, {}, "is no estimator of scikit-learn's"),
    ],
)
def test_what_does_not_fit_is_one_line(estimator, params, problem, learner):
    with pytest.raises(UserError, match=problem):
        learner(estimator, **params).build(POINTS, 0)


class Turned(Own):
    """Its decision function has its columns in another order than its classes."""

    def decision_function(self, X):
        return np.roll(np.eye(3)[self.predict(X)], 1, axis=1)


@pytest.mark.parametrize(
    "estimator", [Turned(), GridSearchCV(SVC(), {"decision_function_shape": ["ovo"]}, cv=2)], ids=["own", "search"]
)
def test_a_decision_function_that_means_something_else_is_refused(estimator, learner):
    with pytest.raises(
        UserError, match=r"decision_function is of another class than it predicts for \d\d of 48 of its"
    ):
        learner(estimator).fit(POINTS, Streams("one"))


@pytest.mark.parametrize("name", made("classifier"))
def test_every_classifier_of_scikit_learn_means_what_it_predicts(name, learner):
    if name not in OTHERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner(EVERY[name]).fit(POINTS, Streams("one"))


@pytest.mark.parametrize(
    "estimator", [BaggingClassifier(SVC(decision_function_shape="ovo")), SVC(), SVC(break_ties=True)]
)
def test_a_vote_over_pairs_is_none_of_pairs(estimator, learner):
    model = learner(estimator).fit(POINTS, Streams("one"))
    assert (model(POINTS.x).argmax(1).numpy() == model.estimator.predict(X)).mean() > 0.9


# -- in a game ---------------------------------------------------------------------------------------------------------

GAME = {**{key: value for key, value in TINY.items() if key != "learner"}, "adversaries": ("confidence", "correctness")}


def half_the_trees(model, retain, forget, context):
    """Needs no gradients, and changes how much there is to keep."""
    model = copy.deepcopy(model)
    model.estimator.estimators_ = model.estimator.estimators_[:4]
    return model


def test_a_forest_is_judged_beside_a_method_of_ones_own():
    forest = RandomForestClassifier(8)
    result = forgetgauge.evaluate(learner=forest, unlearner=["retrain", "none", half_the_trees], **GAME)
    assert result.failures == []
    assert result.methods["none"].quality < result.methods["retrain"].quality
    assert result.methods["half_the_trees"].utility != result.methods["none"].utility
    again = forgetgauge.evaluate(model=forest, unlearner=["retrain", "none", half_the_trees], **GAME)
    for name, method in result.methods.items():
        assert again.methods[name].by_adversary == method.by_adversary


def test_a_class_of_them_is_named_in_a_run_file():
    learner = {
        "name": "scikit-learn",
        "model": "sklearn.naive_bayes:GaussianNB",
        "model_params": {"var_smoothing": 0.1},
    }
    assert forgetgauge.evaluate(learner=learner, unlearner="none", data=load_digits(), **GAME).failures == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"unlearner": "scrub"}, "unlearners.scrub: it needs gradients, .*; there are retrain and none"),
        ({"unlearner": {"mine": {"method": "sisa"}}}, "unlearners.mine: it needs gradients"),
        ({"adversaries": "gradient-norm"}, "adversaries.gradient-norm: it needs gradients"),
        ({"model": LogisticRegression()}, "leave model out"),
    ],
)
def test_what_needs_gradients_is_refused_by_name(arguments, problem):
    with pytest.raises(UserError, match=problem) as refusal:
        forgetgauge.evaluate(**{"learner": RandomForestClassifier(3), "unlearner": "none", **GAME, **arguments})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", plugins.unlearners.entries)
def test_every_method_is_either_played_or_refused_in_one_line(name):
    thing = plugins.unlearners.load(name)
    assert getattr(thing, "needs_gradients", True) == (name not in ("retrain", "none"))
