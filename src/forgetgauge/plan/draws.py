"""The random draws of the Initialization phase: halves, swap pairs, shadow sets, each named by what it depends on."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.splits import SwapPair, draw_pair
from forgetgauge.metrics.scores import confused_half
from forgetgauge.streams import Streams, identity_key

if TYPE_CHECKING:
    from forgetgauge.plan.game import Game


def draw_halves(data: str, n: int, seed: int, fraction: float) -> tuple[Ints, Ints]:
    """(target half, shadow half): D is the first. A smaller η keeps a part of what a larger one keeps."""
    order = draw_streams(draw="halves", data=data, seed=seed).generator("order").permutation(n)
    target, shadow = order[: n // 2], order[n // 2 :]
    return target[: round(fraction * len(target))], shadow[: round(fraction * len(shadow))]


def half_sizes(n: int, fraction: float) -> tuple[int, int]:
    """Sizes of what `draw_halves` gives."""
    return round(fraction * (n // 2)), round(fraction * (n - n // 2))


def draw_swap_pair(data: str, n: int, seed: int, fraction: float, alpha: float, pair: int) -> SwapPair:
    """The pair-th swap pair of D, uniform over S_α; its indices are positions in the target half of n points."""
    named = draw_streams(draw="pair", data=data, n=n, seed=seed, fraction=fraction, alpha=alpha, pair=pair)
    return draw_pair(n, alpha, named.generator("split"))


def swap_pair_of(game: Game, pair: int) -> SwapPair:
    """The pair-th swap pair of a game."""
    n = half_sizes(game.n_points, game.fraction)[0]
    return draw_swap_pair(game.data_digest, n, game.seed, game.fraction, game.alpha, pair)


def draw_showing(points: npt.NDArray[Any]) -> Ints:
    """(n,) the order in which an adversary is shown these points: a function of the set of points alone.

    Neither the order they are given in (F first) nor the side enters it, so it says nothing about who is in F.
    """
    by_name = np.argsort(points, kind="stable")
    names = hashlib.sha256(np.ascontiguousarray(points[by_name]).astype(str).tobytes()).hexdigest()
    shuffled = draw_streams(draw="showing", points=names).generator("order").permutation(len(points))
    return np.asarray(by_name[shuffled], dtype=np.int64)


def draw_shadow(
    data: str, n: int, seed: int, fraction: float, size: int, which: int, forget: int = 0
) -> tuple[Bools, Bools]:
    """(members, forgotten), each (n,): which `size` points of the shadow half a shadow model is trained on, and which
    `forget` of these it is asked to forget; uniform."""
    named = draw_streams(draw="shadow", data=data, n=n, seed=seed, fraction=fraction, size=size, which=which)
    return _members(named, "members", n, size, forget)


def draw_reference(
    data: str, sizes: tuple[int, int], seed: int, fraction: float, size: int, which: int, forget: int = 0
) -> tuple[Bools, Bools]:
    """(members, forgotten) over target half, then shadow half: a reference model knows half of its points from each.

    So a point of D is in about every third to every second reference model, whatever α is, and their training sets are
    as large as the target's. What is forgotten is of D. The draw is independent of every swap pair.
    """
    named = draw_streams(
        draw="reference", data=data, sizes=list(sizes), seed=seed, fraction=fraction, size=size, which=which
    )
    of_target = min((size + 1) // 2, sizes[0])
    target = _members(named, "target", sizes[0], of_target, min(forget, of_target))
    shadow = _members(named, "shadow", sizes[1], size - of_target, 0)
    return np.concatenate([target[0], shadow[0]]), np.concatenate([target[1], shadow[1]])


def draw_confused(
    data: str, labels: Ints, seed: int, fraction: float, size: int, which: int, classes: tuple[int, int]
) -> tuple[Bools, Bools]:
    """(members, confused) of D, whose labels are given: which `size` points a model of the IC test is trained on, and
    the half of each of two classes among them that it is taught as the other; uniform."""
    where = {"data": data, "n": len(labels), "seed": seed, "fraction": fraction}
    named = draw_streams(draw="confused", **where, size=size, which=which, classes=list(classes))
    members, _ = _members(named, "members", len(labels), size, 0)
    return members, confused_half(labels, members, classes, named.generator("confused"))


def _members(named: Streams, purpose: str, n: int, size: int, forget: int) -> tuple[Bools, Bools]:
    order = named.generator(purpose).permutation(n)
    members, forgotten = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    members[order[:size]] = True
    forgotten[order[:forget]] = True
    return members, forgotten


def draw_streams(**identity: Any) -> Streams:
    """The streams of a draw, named by all it depends on."""
    return Streams(identity_key(identity))
