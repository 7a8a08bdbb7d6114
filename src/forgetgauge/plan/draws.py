"""The random draws of the Initialization phase: halves, swap pairs, shadow sets, each named by what it depends on.

Points are drawn one by one, or their groups are, which are then never cut: sizes count whichever is drawn.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.splits import SwapPair, Units, draw_pair
from forgetgauge.metrics.scores import confused_half
from forgetgauge.streams import Streams, identity_key

POINT, GROUP = "point", "group"
"""What is drawn, and what the oracle shows at once."""


def by_groups(groups: Ints | None) -> dict[str, str]:
    """Names draws by group apart from draws of points; what was always drawn keeps its name."""
    return {} if groups is None else {"by": GROUP}


def draw_halves(data: str, n: int, seed: int, fraction: float, groups: Ints | None = None) -> tuple[Ints, Ints]:
    """(target half, shadow half): D is the first. A smaller η keeps a part of what a larger one keeps."""
    units = Units.of(n, groups)
    named = draw_streams(draw="halves", data=data, seed=seed, **by_groups(groups))
    order = named.generator("order").permutation(units.n)
    target, shadow = order[: units.n // 2], order[units.n // 2 :]
    n_target, n_shadow = half_sizes(units.n, fraction)
    return units.points_in(target[:n_target]), units.points_in(shadow[:n_shadow])


def half_sizes(n: int, fraction: float) -> tuple[int, int]:
    """Sizes of what `draw_halves` gives, of n points or groups."""
    return round(fraction * (n // 2)), round(fraction * (n - n // 2))


def draw_swap_pair(
    data: str,
    n: int,
    seed: int,
    fraction: float,
    alpha: float,
    pair: int,
    groups: Ints | None = None,
    among: Bools | None = None,
) -> SwapPair:
    """The pair-th swap pair of D, uniform over S_α; its indices are positions in the target half of n points.

    Its F and T are of the points that `among` names, where it does.
    """
    where = {"data": data, "n": n, "seed": seed, "fraction": fraction, "alpha": alpha, "pair": pair}
    rng = draw_streams(draw="pair", **where, **by_groups(groups)).generator("split")
    return draw_pair(n, alpha, rng, groups, among)


def draw_showing(points: npt.NDArray[Any]) -> Ints:
    """(n,) the order in which an adversary is shown these points: a function of the set of points alone.

    Neither the order they are given in (F first) nor the side enters it, so it says nothing about who is in F.
    """
    by_name = np.argsort(points, kind="stable")
    names = hashlib.sha256(np.ascontiguousarray(points[by_name]).astype(str).tobytes()).hexdigest()
    shuffled = draw_streams(draw="showing", points=names).generator("order").permutation(len(points))
    return np.asarray(by_name[shuffled], dtype=np.int64)


def draw_shadow(
    data: str,
    n: int,
    seed: int,
    fraction: float,
    size: int,
    which: int,
    forget: int = 0,
    groups: Ints | None = None,
    among: Bools | None = None,
) -> tuple[Bools, Bools]:
    """(members, forgotten), each (n,): which `size` points of the shadow half a shadow model is trained on, and which
    `forget` of these it is asked to forget; uniform. With the group of each point, so many groups. Where `among` names
    the hardest points, what it is not trained on and what it is to forget are of these, as T and F of a target are."""
    where = {"data": data, "n": n, "seed": seed, "fraction": fraction, "size": size, "which": which}
    named = draw_streams(draw="shadow", **where, **by_groups(groups))
    units = Units.of(n, groups)
    if among is None:
        return _members(named, "members", units, size, forget)
    order, hardest = named.generator("members").permutation(units.n), units.containing(among)
    order = order[np.argsort(~np.isin(order, hardest), kind="stable")]  # the hardest first
    n_out, asked = units.n - size, order[: len(hardest)]
    return units.members(order[n_out:]), units.members(asked[n_out : n_out + forget])


def draw_reference(
    data: str,
    sizes: tuple[int, int],
    seed: int,
    fraction: float,
    size: int,
    which: int,
    forget: int = 0,
    groups: tuple[Ints, Ints] | None = None,
    among: Bools | None = None,
    role: str = "reference",
) -> tuple[Bools, Bools]:
    """(members, forgotten) over target half, then shadow half: a reference model knows half of its points from each.

    So a point of D is in about every third to every second reference model, whatever α is, and their training sets are
    as large as the target's. What is forgotten is of D. The draw is independent of every swap pair, and of that for
    another role.
    """
    of_each = (None, None) if groups is None else groups
    where = {"data": data, "sizes": list(sizes), "seed": seed, "fraction": fraction, "size": size, "which": which}
    named = draw_streams(draw=role, **where, **by_groups(of_each[0]))
    halves = [Units.of(n, own) for n, own in zip(sizes, of_each, strict=True)]
    of_target = min((size + 1) // 2, halves[0].n)
    target = _members(named, "target", halves[0], of_target, min(forget, of_target), among)
    shadow = _members(named, "shadow", halves[1], size - of_target, 0)
    return np.concatenate([target[0], shadow[0]]), np.concatenate([target[1], shadow[1]])


def draw_confused(
    data: str,
    labels: Ints,
    seed: int,
    fraction: float,
    size: int,
    which: int,
    classes: tuple[int, int],
    groups: Ints | None = None,
) -> tuple[Bools, Bools]:
    """(members, confused) of D, whose labels are given: which `size` points a model of the IC test is trained on, and
    the half of each of two classes among them that it is taught as the other; uniform."""
    where = {"data": data, "n": len(labels), "seed": seed, "fraction": fraction}
    named = draw_streams(draw="confused", **where, size=size, which=which, classes=list(classes), **by_groups(groups))
    members, _ = _members(named, "members", Units.of(len(labels), groups), size, 0)
    return members, confused_half(labels, members, classes, named.generator("confused"))


def _members(
    named: Streams, purpose: str, units: Units, size: int, forget: int, among: Bools | None = None
) -> tuple[Bools, Bools]:
    members = named.generator(purpose).permutation(units.n)[:size]
    asked = members if among is None else members[np.isin(members, units.containing(among))]
    return units.members(members), units.members(asked[:forget])


def draw_streams(**identity: Any) -> Streams:
    """The streams of a draw, named by all it depends on."""
    return Streams(identity_key(identity))
