"""What scikit-learn's compiled code takes for granted about a fitted estimator, checked before it is asked.

That code looks up children of nodes, columns of points and classes of neighbours without a look at how many there are:
numbers from a stranger's file could read or write anywhere in memory, or go round in a tree for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np

from forgetgauge.game.arrays import Bools, Ints

SEARCH_TREES = ("sklearn.neighbors._ball_tree:newObj", "sklearn.neighbors._kd_tree:newObj")
TREE = "sklearn.tree._tree:Tree"


def searched_again(cls: type, state: Any) -> Any:
    """A tree of points for nearest neighbours, grown anew from the points: the same, whatever its nodes were."""
    return cls(state[0], leaf_size=state[4], metric=state[11], sample_weight=state[12])


def check_tree(args: Any, state: Any) -> None:
    """A decision tree, before it is made."""
    n_features, n_classes, n_outputs = args
    nodes = state["nodes"]
    if len(n_classes) != n_outputs or min(n_classes) < 1 or state["node_count"] != len(nodes):
        raise ValueError("a tree is not as large as it says")
    left, right = nodes["left_child"], nodes["right_child"]
    _check_nodes(left, right, left == -1, nodes["feature"], n_features)


def _check_nodes(left: Ints, right: Ints, is_leaf: Bools, feature: Ints, n_features: int) -> None:
    n_nodes, splits = len(left), ~is_leaf.astype(np.bool_)
    here = np.arange(n_nodes)[splits]
    for child in (left[splits].astype(np.int64), right[splits].astype(np.int64)):
        if n_nodes < 1 or (child <= here).any() or (child >= n_nodes).any():
            raise ValueError("a node of a tree leads to none that comes after it")
    if (feature[splits] < 0).any() or (feature[splits] >= n_features).any():
        raise ValueError(f"a node of a tree asks for a column that is none of {n_features}")


def check_made(made: Any) -> None:
    """ValueError where parts of an object that was read do not fit together."""
    state, bases = getattr(made, "__dict__", {}), type(made).__mro__
    if any(base.__module__.startswith("scipy.sparse.") for base in bases):
        made.check_format(full_check=True)
    names = {base.__name__ for base in bases if base.__module__.startswith("sklearn.")}
    for (name, sign), check in CHECKS.items():
        if name in names and sign in state:
            check(made)


def _check_own_tree(made: Any) -> None:
    _refuse_unless(made.tree_.n_features == made.n_features_in_, "columns of its tree")


def _check_columns(trees: Iterable[Any], n_columns: Iterable[int]) -> None:
    """Trees that are asked without a look at how many columns they are shown."""
    fit = (one.n_features_in_ == n for one, n in zip(trees, n_columns, strict=False))
    _refuse_unless(all(fit), "columns of its trees")


def _check_forest(made: Any) -> None:
    _check_columns(made.estimators_, repeat(made.n_features_in_))


def _check_isolation(made: Any) -> None:
    """Each tree is shown a share of the columns, unless that is as many as there are."""
    is_all = made._max_features == made.n_features_in_
    _check_columns(made.estimators_, [made.n_features_in_ if is_all else len(one) for one in made.estimators_features_])


def _check_boosting(made: Any) -> None:
    """Its trees add to what it begins with."""
    trees = [one for one in made.estimators_.ravel() if "tree_" in getattr(one, "__dict__", {})]
    _check_columns(trees, repeat(made.n_features_in_))
    begun = made._raw_predict_init(np.zeros((1, made.n_features_in_), dtype=np.float32))
    fits = begun.shape == (1, *made.estimators_.shape[1:]) and len(trees) == made.estimators_.size
    _refuse_unless(fits, "trees in each step")


def _check_predictors(made: Any) -> None:
    _refuse_unless(made._preprocessor is None, "columns that its trees are shown")
    for one in (one for step in made._predictors for one in step):
        nodes, is_leaf = one.nodes, one.nodes["is_leaf"].astype(np.bool_)
        _check_nodes(nodes["left"], nodes["right"], is_leaf, nodes["feature_idx"], made.n_features_in_)
        by_class = nodes["bitset_idx"][(nodes["is_categorical"] != 0) & ~is_leaf]
        if len(by_class):
            _refuse_unless(by_class.max() < len(one.raw_left_cat_bitsets), "sets of categories")
            _refuse_unless(len(made._bin_mapper.is_categorical_) == made.n_features_in_, "columns with categories")


def _check_vectors(made: Any) -> None:
    """Of libsvm; a regression counts as two classes. Where its kernel is given for all points it holds none."""
    n_classes = len(made._n_support)
    n_couples = n_classes * (n_classes - 1) // 2
    n_vectors = len(made.support_)
    columns = (0, 0) if made.kernel == "precomputed" or callable(made.kernel) else (n_vectors, made.shape_fit_[1])
    fits = (
        n_classes > 1
        and made._dual_coef_.shape == (n_classes - 1, n_vectors)
        and made._intercept_.shape == (n_couples,)
        and all(len(one) in (0, n_couples) for one in (made._probA, made._probB))
        and len(made._probA) == len(made._probB)
        and (made._n_support >= 0).all()
        and (made._n_support.sum() == n_vectors or not made._impl.endswith("svc"))
        and (made.support_ >= 0).all()
        and (made.support_ < made.shape_fit_[0]).all()
        and made.support_vectors_.shape == columns
    )
    _refuse_unless(bool(fits), "support vectors")


def _check_neighbours(made: Any) -> None:
    if hasattr(made, "classes_") and np.ndim(made._y) == 1:
        inside = (made._y >= 0).all() and (made._y < len(made.classes_)).all()
        _refuse_unless(bool(inside) and len(made._y) == len(made._fit_X), "classes of its neighbours")


def _refuse_unless(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"the {what} do not fit the rest")


CHECKS = {
    ("BaseDecisionTree", "tree_"): _check_own_tree,
    ("BaseForest", "estimators_"): _check_forest,
    ("IsolationForest", "estimators_"): _check_isolation,
    ("BaseGradientBoosting", "estimators_"): _check_boosting,
    ("BaseHistGradientBoosting", "_predictors"): _check_predictors,
    ("BaseLibSVM", "_dual_coef_"): _check_vectors,
    ("NeighborsBase", "_fit_X"): _check_neighbours,
}
"""By scikit-learn's class, of whose kind others' estimators may be too, and the attribute that shows that it is fitted,
whose name others' estimators may have for something else."""
