"""The interclass confusion test of Goel et al.: teach half of two classes as each other, forget that, ask again.

S is a random half of class A and of class B of a training set, with labels A and B exchanged. A model is trained on the
changed set and asked to forget S, with the labels it was taught. γ is the share of S that the unlearned model still
takes for the *other of the two*, by the true labels; the IC score is 1 − γ. Errors into third classes do not count: a
ruined model scores well. γ asks for the model's opinion of S, not for what an attacker could tell from it, and it needs
models of its own, whose labels are wrong.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetgauge.game.arrays import Bools, Ints


def confused_half(labels: Ints, members: Bools, classes: tuple[int, int], rng: np.random.Generator) -> Bools:
    """(n,) S: a random half (rounded down) of the members of each of the two classes."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in classes:
        of_class = np.flatnonzero(members & (labels == label))
        chosen[rng.permutation(of_class)[: len(of_class) // 2]] = True
    return chosen


def exchanged(labels: Ints, confused: Bools, classes: tuple[int, int]) -> Ints:
    """The labels with A and B exchanged on S; a copy."""
    first, second = classes
    if not np.isin(labels[confused], classes).all():
        raise ValueError(f"only points of the classes {first} and {second} can be confused")
    changed = labels.copy()
    changed[confused] = first + second - labels[confused]
    return changed


def interclass_error(predicted: ArrayLike, true: ArrayLike, classes: tuple[int, int]) -> float:
    """γ = [#(true A, predicted B) + #(true B, predicted A)] / |S|, all of it on S."""
    said, label = _whole_numbers(predicted), _whole_numbers(true)
    first, second = classes
    if said.shape != label.shape or said.ndim != 1 or len(said) == 0:
        raise ValueError(f"predictions {said.shape} and labels {label.shape} must be of the same points, at least one")
    if not np.isin(label, classes).all():
        raise ValueError(f"the confused points must be of the classes {first} and {second}")
    return float(np.mean(said == first + second - label))


def ic_score(predicted: ArrayLike, true: ArrayLike, classes: tuple[int, int]) -> float:
    """1 − γ: 1 where nothing of the confusion is left."""
    return 1 - interclass_error(predicted, true, classes)


def _whole_numbers(values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"classes must be whole numbers, not {array.dtype}")
    return array.astype(np.int64)
