"""A stored scikit-learn model of a stranger's: it names what the run's own estimator is made of, and nothing else."""

from __future__ import annotations

import json
import sys
import tracemalloc

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree
from sklearn.utils import Bunch

from forgetgauge.errors import UserError
from forgetgauge.learn.estimator_state import estimator_of, state_bytes

Y = np.arange(48) % 3
X = (np.random.default_rng(0).normal(size=(48, 5)) + Y[:, None]).astype(np.float32)


def packed(node, data=b""):
    head = json.dumps(node).encode()
    return np.frombuffer(len(head).to_bytes(8, "little") + head + data, dtype=np.uint8)


def new(name, **state):
    state = {"_sklearn_version": sklearn.__version__, **state}
    return {"new": [name, {"list": []}, {"dict": [[key, value] for key, value in state.items()]}, None, None]}


def holding(value, like="sklearn.linear_model._logistic:LogisticRegression"):
    return new(like, coef_=value)


def made(name, *args):
    return {"made": [name, {"list": list(args)}, None, None, None]}


STACK = "sklearn.ensemble._stacking:StackingClassifier"
INSIDE = {
    "another estimator": new(STACK),
    "a pipeline": new("sklearn.pipeline:Pipeline"),
    "a class": {"class": "sklearn.linear_model._logistic:LogisticRegression"},
    "a type that is called": {"numpy": "bytes_"},
    "a call of a class": made("sklearn.linear_model._logistic:LogisticRegression"),
    "a sparse matrix by its size": made("scipy.sparse._lil:lil_matrix", {"tuple": [10**12, 1]}),
    "the same, of rows": made("scipy.sparse._csr:csr_matrix", {"tuple": [10**12, 1]}),
    "a long seed": made("numpy.random.bit_generator:SeedSequence", 1, None, {"tuple": []}, 10**12),
    "a generator of any class": made("numpy.random._pickle:__generator_ctor", 3, {"type": "int"}),
    "a helper that calls": new("sklearn.utils.parallel:_FuncWrapper"),
    "an array with fewer than no rows": {"array": ["<f8", [-1], 0, "C"]},
    "a class that is made otherwise": new("sklearn._loss._loss:CyHalfSquaredError"),
    "a function in a mapping": {
        "new": ["sklearn.utils._bunch:Bunch", {"list": []}, None, None, {"dict": [["predict", {"type": "int"}]]}]
    },
}


POPEN = {"list": [{"list": ["true"]}]}
CALLS = [
    made("os:system", "true"),
    made("builtins:eval", "1"),
    made("numpy.testing._private.utils:runstring", "1", {"dict": []}),
    made("sklearn.utils.parallel:joblib.externals.loky.backend.utils.subprocess.Popen", POPEN),
    made("sklearn._loss._loss:CyHalfSquaredError.__class__", 0),
    made("sklearn.tree._tree:__pyx_unpickle_Enum.__class__", 0),
    {"new": ["sklearn.callback._transport:ListenerHandle", {"list": ["a", "b"]}, None, None, None]},
    made("sklearn.utils:check_random_state", 0),
    {"new": ["subprocess:Popen", {"list": []}, None, None, None]},
]
DAMAGED = [
    {"class": "builtins:object"},
    {"given": "nothing"},
    {"array": ["<f8", [10**6], 0, "C"]},
    {"array": ["|O", [1], 0, "C"]},
    {"array": ["<f8", [10**30], 0, "C"]},
    {"unknown": 0},
    {"_getattribute__": "known"},
    {"again": 7},
    {},
]


@pytest.mark.parametrize("node", [*INSIDE.values(), *CALLS, *DAMAGED], ids=lambda node: json.dumps(node)[:60])
def test_nothing_else_is_made_inside_an_estimator(node):
    assert estimator_of(packed(holding(3)), LogisticRegression()).coef_ == 3
    with pytest.raises(UserError, match="a stored scikit-learn model cannot be read"):
        estimator_of(packed(holding(node)), LogisticRegression())


@pytest.mark.parametrize("node", [[1], {"list": []}, None, 3])
def test_what_may_lie_in_an_estimator_is_none(node):
    assert estimator_of(packed(holding(node)), LogisticRegression()).coef_ == (node if node != {"list": []} else [])
    with pytest.raises(UserError, match="but the run's is a LogisticRegression"):
        estimator_of(packed(node), LogisticRegression())


def test_the_whole_is_of_the_runs_own_class():
    within = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(UserError, match="a LogisticRegression, but the run's is a Pipeline"):
        estimator_of(packed(holding(3)), within)
    with pytest.raises(UserError, match=r"a GaussianNB, but the run's is a LogisticRegression: .* of the same class"):
        state_bytes(GaussianNB().fit(X, Y), LogisticRegression())


@pytest.mark.parametrize("method", ["tofile", "dump", "fit", "__deepcopy__"])
def test_a_stack_asks_for_predictions_and_calls_nothing_else(method, tmp_path):
    like = StackingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], cv=2)
    path = str(tmp_path / "written").encode()
    one = like.fit(X, Y)
    one.estimators_, one.stack_method_ = [np.array([[path]])], ["predict"]
    state = state_bytes(one, like)
    with pytest.raises(AttributeError):  # an array predicts nothing
        estimator_of(state, like).predict(X)
    one.stack_method_ = [method]
    with pytest.raises(UserError, match="stack_method_ names something else than predict"):
        state_bytes(one, like)
    head = int.from_bytes(state[:8].tobytes(), "little")
    forged = json.loads(state[8 : 8 + head].tobytes().replace(b'["stack_method_", {"list": ["predict"]}]', json.dumps(
        ["stack_method_", {"list": [method]}]
    ).encode()))  # fmt: skip
    with pytest.raises(UserError, match="stack_method_ names something else than predict"):
        estimator_of(packed(forged, state[8 + head :].tobytes()), like)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        ("memory", "a folder", "memory is not what the run says"),
        ("response_method", {"list": ["fit"]}, "response_method is not what the run says"),
        ("predict", {"type": "int"}, "predict of a Pipeline is a method"),
        ("_sklearn_version", "\x1b[2J", "_sklearn_version is no version"),
        ("predict_proba", {"type": "int"}, "predict_proba of a Pipeline is a method"),
        ("set_params", 3, "set_params of a Pipeline is a method"),
    ],
)
def test_a_state_changes_neither_methods_nor_folders(attribute, value, problem):
    with pytest.raises(UserError, match=problem):
        estimator_of(packed(new("sklearn.pipeline:Pipeline", **{attribute: value})), make_pipeline(GaussianNB()))


def test_a_state_without_names_is_refused():
    forged = {"new": ["sklearn.pipeline:Pipeline", {"list": []}, {"list": [{"list": ["predict", 3]}]}, None, None]}
    with pytest.raises(UserError, match="the state of a Pipeline has no names"):
        estimator_of(packed(forged), make_pipeline(GaussianNB()))


def test_what_the_run_itself_says_is_kept(tmp_path):
    like = make_pipeline(FunctionTransformer(np.arcsinh), GaussianNB(), memory=str(tmp_path))
    assert estimator_of(state_bytes(like.fit(X, Y), like), like).memory == str(tmp_path)


def test_no_module_is_imported_that_bytes_name():
    name = "sklearn.linear_model.tests.test_base"
    assert name not in sys.modules
    for forged in (new(f"{name}:X"), made(f"{name}:__pyx_unpickle_X"), {"array": [name, [], 0, "C"]}):
        with pytest.raises(UserError):
            estimator_of(packed(holding(forged)), LogisticRegression())
    assert name not in sys.modules


def test_no_byte_is_read_twice():
    data = bytes(2**20)
    forged = packed(holding({"list": [{"array": ["|u1", [2**20], 0, "C"]}] * 500}), data)
    tracemalloc.start()
    with pytest.raises(UserError, match="does not fit the file"):
        estimator_of(forged, LogisticRegression())
    assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    tracemalloc.stop()


# -- what compiled code takes for granted ------------------------------------------------------------------------------


def with_nodes(tree, **changes):
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    for name, value in changes.items():
        nodes[name][0] = value
    other = Tree(tree.n_features, tree.n_classes, tree.n_outputs)
    other.__setstate__({**state, "nodes": nodes})
    return other


@pytest.mark.parametrize(
    "change", [{"left_child": 0}, {"right_child": 10**9}, {"left_child": -2}, {"feature": 5}, {"feature": -3}]
)
def test_a_tree_leads_on_and_asks_for_columns_that_there_are(change):
    like = DecisionTreeClassifier()
    one = like.fit(X, Y)
    one.tree_ = with_nodes(one.tree_, **change)
    with pytest.raises(UserError, match="a node of a tree"):
        estimator_of(state_bytes(one, like), like)


def refused(like, change, problem):
    one = like.fit(X, Y)
    change(one)
    with pytest.raises(UserError, match=problem):
        estimator_of(state_bytes(one, like), like)


def set_to(path, value):
    def change(one):
        *way, last = path.split(".")
        for part in way:
            one = one[int(part)] if part.isdigit() else getattr(one, part)
        setattr(one, last, value)

    return change


def put(path, index, value):
    def change(one):
        for part in path.split("."):
            one = one[int(part)] if part.isdigit() else one[part] if isinstance(one, np.ndarray) else getattr(one, part)
        one[index] = value

    return change


WIDE = DecisionTreeClassifier(max_depth=2).fit(np.tile(X, 3), Y)
UNFIT = {
    "a tree's columns": (DecisionTreeClassifier(), set_to("tree_", WIDE.tree_), "columns of its tree"),
    "a forest's columns": (RandomForestClassifier(3), set_to("estimators_", [WIDE]), "columns of its trees"),
    "a forest without columns": (RandomForestClassifier(2), lambda one: delattr(one, "n_features_in_"), "n_features"),
    "isolated trees' columns": (IsolationForest(n_estimators=1), put("estimators_", 0, WIDE), "columns of its trees"),
    "isolated trees' share of columns": (
        IsolationForest(n_estimators=1, max_features=2),
        put("estimators_", 0, DecisionTreeClassifier().fit(X, Y)),
        "columns of its trees",
    ),
    "columns of isolated trees": (
        IsolationForest(n_estimators=1, max_features=2),
        set_to("_max_features", 5),
        "columns of its trees",
    ),
    "no trees in a step": (
        GradientBoostingClassifier(n_estimators=2),
        put("estimators_", (1, 1), Bunch(tree_=None)),
        "trees in each step",
    ),
    "other columns for its trees": (
        HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2),
        set_to("_preprocessor", FunctionTransformer()),
        "columns that its trees are shown",
    ),
    "more trees in a step": (
        GradientBoostingClassifier(n_estimators=2),
        lambda one: setattr(one, "estimators_", np.hstack([one.estimators_] * 2)),
        "trees in each step",
    ),
    "a predictor's children": (HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2),
        put("_predictors.0.0.nodes.left", 0, 0), "a node of a tree leads"),
    "a predictor's columns": (HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2),
        put("_predictors.0.0.nodes.feature_idx", 0, 5), "asks for a column"),
    "coefficients of vectors": (SVC(), set_to("_dual_coef_", np.zeros((2, 3))), "support vectors"),
    "one class": (SVC(), set_to("_n_support", np.array([43], dtype=np.int32)), "support vectors"),
    "no vectors": (SVC(), set_to("support_vectors_", np.empty((0, 0))), "support vectors"),
    "vectors of classes": (SVC(), put("_n_support", 0, 10**6), "support vectors"),
    "neighbours' classes": (KNeighborsClassifier(), put("_y", 0, 10**6), "classes of its neighbours"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_parts_that_do_not_fit_each_other_are_refused(name):
    refused(*UNFIT[name])


def test_a_sparse_matrix_has_the_columns_that_it_says():
    one = LogisticRegression().fit(X, Y).sparsify()
    assert np.array_equal(
        estimator_of(state_bytes(one, LogisticRegression()), LogisticRegression()).predict(X), one.predict(X)
    )
    one.coef_.indices[0] = 10**6
    with pytest.raises(UserError, match="cannot be read: ValueError"):
        estimator_of(state_bytes(one, LogisticRegression()), LogisticRegression())


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_a_tree_of_neighbours_is_grown_again_from_its_points(algorithm):
    like = KNeighborsClassifier(algorithm=algorithm, leaf_size=3)
    one = like.fit(X, Y)
    expected = one.predict_proba(X)
    _, places, nodes, *_ = one._tree.__getstate__()
    places[:], nodes["idx_end"] = 10**6, 10**9
    assert np.array_equal(estimator_of(state_bytes(one, like), like).predict_proba(X), expected)
