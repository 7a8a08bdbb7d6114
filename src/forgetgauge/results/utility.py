"""Utility, without which Q cannot be read: a ruined model forgets perfectly, and one that never learnt had nothing to.

Judged on points that the models never saw: the official test set where there is one, else T.
"""

from __future__ import annotations

import math
from collections.abc import Container
from statistics import fmean, median, stdev

from forgetgauge.results.price import loss_and_reach
from forgetgauge.results.record import GameResult, MethodResult, lacks_pairs, role_of
from forgetgauge.wording import listed, plain

POINT = 0.01
"""One point of accuracy; a method that loses more than that is named."""
APART = 0.1
"""A pair's distance from the median of all: trainings of one recipe differ by a point or two."""
SURELY = 8.0
"""Standard errors of a pair's accuracy: the farthest of hundreds is four off by chance, and of few points more."""
BARELY = 1.2
"""With more than two classes, an accuracy up to this many times 1/n_classes counts as guessing."""
DAMAGE = "A damaged model gives less away: part of such a Q is damage, not forgetting."
LITTLE = "A model that learnt little has little to forget."
NAMES = {"test": "test set", "unseen": "unseen points"}


def unseen_part(known: Container[str]) -> str | None:
    """`test` or `unseen`, of the parts of the data that something is known of."""
    return next((part for part in NAMES if part in known), None)


def unseen_accuracy(method: MethodResult) -> tuple[str, float] | None:
    """(`test` or `unseen`, accuracy there)."""
    part = unseen_part(method.utility)
    return None if part is None else (part, method.utility[part])


def lost_accuracy(game: GameResult) -> dict[str, float]:
    """Tested method -> how far it is below Retrain and None, if over a point and three standard errors; most first.

    Retrain has fewer points to learn from, and that much may be lost; None may have learnt badly by itself.
    """
    lost, error = _lost(game)
    least = max(POINT, 3 * error) + 1e-9
    tested = {name: loss for name, loss in lost.items() if role_of(game, name) == "tested"}
    return {name: loss for name, loss in sorted(tested.items(), key=lambda one: -one[1]) if loss > least}


def accuracy_below(game: GameResult) -> dict[str, float]:
    """Tested method -> how far it is below the lower of Retrain and None; negative where it is above. Empty where
    neither has an accuracy."""
    return {name: loss for name, loss in _lost(game)[0].items() if role_of(game, name) == "tested"}


def is_shown_undamaged(game: GameResult, method: str) -> bool:
    """Whether a method is shown to lose no more than two points, or a tenth, beside every reference on R, which all of
    them learnt, and beside one of them on points nobody learnt.

    That no damage is noticed shows no such thing: of few pairs little is. It takes utility by pair.
    """
    part = unseen_part(game.methods[method].utility_by_pair)
    if part is None or not _references(game):
        return False
    on_retain, elsewhere = (
        [_keeps_up(game, method, usual, where) for usual in _references(game)] for where in ("retain", part)
    )
    return all(on_retain) and any(elsewhere)


def _keeps_up(game: GameResult, method: str, usual: str, part: str) -> bool:
    lost = _loss_by_pair(game, method, usual, part)
    theirs = game.methods[usual].utility_by_pair.get(part, [])
    return lost is not None and sum(lost) <= min(KEPT, 0.1 * fmean(theirs))


def knows_half_as_much(game: GameResult, method: str) -> bool | None:
    """Whether a reference is at least half as good on R as every None, which learnt it too; None where nobody knows."""
    own = game.methods[method].utility.get("retain")
    theirs = [
        one.utility["retain"]
        for name, one in game.methods.items()
        if role_of(game, name) == "none" and "retain" in one.utility
    ]
    return None if own is None or not theirs else own >= 0.5 * max(theirs)


def _loss_by_pair(game: GameResult, method: str, usual: str, part: str) -> tuple[float, float] | None:
    """(how far a method is below a reference on a part of the data, Student's reach of that over pairs)."""
    own, theirs = (game.methods[name].utility_by_pair.get(part, []) for name in (method, usual))
    if not len(own) == len(theirs) >= 2:
        return None
    lost = [more - less for more, less in zip(theirs, own, strict=True)]
    return loss_and_reach(lost, game.spec.get("level", 0.95))


def loss_interval(game: GameResult, method: str) -> tuple[float, float] | None:
    """How far a method is below the lower of Retrain and None at least, and at most; None where it is not known.

    Each end is a bound by itself: Student's, one-sided, over pairs at the game's level, as the price of a strength is
    judged by. A method is below the lower of the two by no more than it is below either, so it is the smaller of two
    upper bounds; and by more than so much only if it is by that below both, so it is the smaller of two lower ones.
    Where results do not have it by pair: give or take three standard errors, and nothing beside itself.
    """
    if lacks_pairs(game, game.methods[method]):  # its mean is of other pairs than those of the references
        return None
    part = unseen_part(game.methods[method].utility_by_pair)
    ends = []
    for usual in _references(game):
        known = _loss_by_pair(game, method, usual, part or "") or _beside(game, method, usual)
        if known is not None:
            mean, reach = known
            ends.append((mean - reach, mean + reach))
    return (min(low for low, _ in ends), min(high for _, high in ends)) if ends else None


def _beside(game: GameResult, method: str, usual: str) -> tuple[float, float] | None:
    """(how far a method is below a reference, three standard errors of that), where pairs are not known."""
    own, theirs = (unseen_accuracy(game.methods[name]) for name in (method, usual))
    _, error = _lost(game)
    if own is None or theirs is None:
        return None
    if method == usual:
        return 0.0, 0.0
    return (theirs[1] - own[1], 3 * error) if math.isfinite(error) else None


def utility_below(game: GameResult, method: str) -> dict[str, float]:
    """`retrain` or `none` -> how far a method is below it on points that no model saw."""
    own = unseen_accuracy(game.methods[method])
    usual = {role_of(game, name): unseen_accuracy(game.methods[name]) for name in _references(game)}
    return {} if own is None else {role: found[1] - own[1] for role, found in usual.items() if found is not None}


def _lost(game: GameResult) -> tuple[dict[str, float], float]:
    """(method -> how far it is below the lower of Retrain and None, standard error of that)."""
    known = {
        name: found
        for name, method in game.methods.items()
        if not lacks_pairs(game, method) and (found := unseen_accuracy(method)) is not None
    }
    if not _references(game):
        return {}, math.inf
    part, usual_accuracy = min((known[name] for name in _references(game)), key=lambda found: found[1])
    if game.utility_name == "accuracy":
        error = math.sqrt(2) * _error(game, part, usual_accuracy, game.spec.get("pairs", 1))
    else:
        error = math.sqrt(2) * max(_error_over_pairs(game.methods[name], part) for name in _references(game))
    return {name: usual_accuracy - own for name, (_, own) in known.items()}, error


def is_chance(accuracy: float, n_classes: int) -> bool:
    """Whether an accuracy is no better than guessing."""
    return accuracy <= (BARELY if n_classes > 2 else 1.0) / n_classes


def learnt_nothing_line(game: GameResult) -> str | None:
    """That Retrain and None guess even on R, which they were trained on; None where one does not, or nobody knows.

    Of few points a constant guess is right more often than of many, by three standard errors at most.
    """
    known = [game.methods[name].utility.get("retain", math.inf) for name in _references(game)]
    n_classes, n_points = game.spec.get("n_classes", 0), game.spec.get("n_retain", 0) * 2 * game.spec.get("pairs", 1)
    if game.utility_name != "accuracy" or not known or not n_classes:
        return None
    reach = 3 * math.sqrt((n_classes - 1) / n_points) / n_classes if n_points else 0.0
    if not is_chance(max(known) - reach, n_classes):
        return None
    return (
        f"{yardsticks(game)} classify {max(known):.0%} of the points they were trained on rightly, no better than by "
        "chance: nothing was learnt that could be forgotten, so Q says nothing. Are the inputs on a usual scale?"
    )


def damage(game: GameResult) -> str | None:
    """`Less accurate than Retrain and None: ssd by 14.3 points. …`; None where nobody is by over a point."""
    lost = lost_accuracy(game)
    if not lost:
        return None
    worse = "Less accurate" if game.utility_name == "accuracy" else f"Of a lower {game.utility_name}"
    by_method = ", ".join(f"{name} by {points(loss)}" for name, loss in lost.items())
    return f"{worse} than {yardsticks(game)}: {by_method}. {DAMAGE}"


def points(loss: float) -> str:
    """`14.3 points`."""
    return f"{100 * loss:.1f} points"


LEARNT = 0.05
"""Of accuracy on T, above both references: no method that only forgets gains as much."""
KEPT = 0.02
"""Of accuracy on R, which a model knows by heart: what is lost there may not show on points that nobody learnt."""


def has_seen_unseen(game: GameResult) -> dict[str, float]:
    """Tested method -> by how much it is more accurate on T than both references, where that is too much to be chance.

    T must stand out against the test set too, or against R where there is none: a model that was trained further than
    short references is better on both. One that lost on R was fitted less, as by stopping early where labels are wrong.
    """
    gained, kept = _above(game, "unseen"), _above(game, "retain", lower=True)
    error = 5 * _error_on(game, "unseen")
    beside = _above(game, "retain") | _above(game, "test")
    return {
        name: gain
        for name, gain in gained.items()
        if min(gain, gain - beside.get(name, 0.0)) > max(LEARNT, error)
        and kept.get(name, 0.0) >= -KEPT
        and role_of(game, name) == "tested"
    }


def lost_retained(game: GameResult) -> dict[str, float]:
    """Tested method -> how far it is below both references on R, if by over two points and three standard errors, and
    it is not known to be damaged by its accuracy elsewhere, nor more accurate than they on T."""
    lost = {name: -gain for name, gain in _above(game, "retain", lower=True).items()}
    known, least = lost_accuracy(game), max(KEPT, 3 * _error_on(game, "retain"))
    better, surely = _above(game, "unseen"), 3 * _error_on(game, "unseen")
    return {
        name: loss
        for name, loss in lost.items()
        if loss > least and name not in known and not better.get(name, 0.0) > surely and role_of(game, name) == "tested"
    }


def _above(game: GameResult, part: str, *, lower: bool = False) -> dict[str, float]:
    """Method -> its accuracy on a part of the data less that of the better of the two references, or of the worse."""
    known = {name: method.utility[part] for name, method in game.methods.items() if part in method.utility}
    usual = [known[name] for name in _references(game) if name in known]
    if game.utility_name != "accuracy" or len(usual) < 2:
        return {}
    return {name: own - (min if lower else max)(usual) for name, own in known.items()}


def _error_on(game: GameResult, part: str) -> float:
    """Standard error of a difference of two accuracies on T, or on R, at worst."""
    n_points = game.spec.get({"unseen": "n_forget", "retain": "n_retain"}[part], 0) * 2 * game.spec.get("pairs", 1)
    return math.sqrt(0.5 / n_points) if n_points else math.inf


def has_seen_unseen_line(game: GameResult) -> str | None:
    """In words; None where nobody has."""
    seen = has_seen_unseen(game)
    if not seen:
        return None
    each = listed([f"{name} by {points(gain)}" for name, gain in seen.items()])
    return (
        f"More accurate on the unseen points T than Retrain and None: {each}. Forgetting adds no such knowledge, so T "
        "was probably seen: does the method read data besides the R and F that it is given? A model that has learnt T "
        "as well as F shows no difference between them, and its Q says nothing."
    )


def lost_retained_line(game: GameResult) -> str | None:
    """In words; None where nobody lost much."""
    lost = lost_retained(game)
    if not lost:
        return None
    each = listed([f"{name} by {points(loss)}" for name, loss in lost.items()])
    return f"Less accurate than Retrain and None on the points that stay: {each}. {DAMAGE}"


def yardsticks(game: GameResult) -> str:
    """`Retrain and None`, or the one that is there."""
    return listed([role_of(game, name).capitalize() for name in _references(game)])


def _references(game: GameResult) -> list[str]:
    """Retrain and None, as far as they have an accuracy on all pairs."""
    named = {
        role_of(game, name): name
        for name, method in game.methods.items()
        if unseen_accuracy(method) is not None and not lacks_pairs(game, method)
    }
    return [named[role] for role in ("retrain", "none") if role in named]


def uneven_accuracy(game: GameResult) -> str | None:
    """`Accuracy differs from pair to pair: none 0.100 to 0.520 (test set). …`; None where all pairs are alike.

    Of a utility that is no share of points, nobody knows how far apart pairs are by chance.
    """
    if game.utility_name != "accuracy":
        return None
    uneven = []
    for name, method in game.methods.items():
        part = unseen_part(method.utility_by_pair)
        if part is None:
            continue
        found = method.utility_by_pair[part]
        usual = median(found)
        least = max(APART, SURELY * _error(game, part, usual, 1)) + 1e-9
        if any(abs(own - usual) > least for own in found):
            uneven.append(f"{name} {plain(min(found))} to {plain(max(found))} ({NAMES[part]})")
    if not uneven:
        return None
    return f"Accuracy differs from pair to pair: {', '.join(uneven)}. {LITTLE}"


def _error(game: GameResult, part: str, accuracy: float, n_pairs: int) -> float:
    """Standard error of an accuracy on T, whose points differ from pair to pair; a test set is the same for all."""
    n_points = 2 * game.spec.get("n_forget", 0) * n_pairs
    return math.sqrt(max(0.0, accuracy * (1 - accuracy)) / n_points) if part == "unseen" and n_points else 0.0


def _error_over_pairs(method: MethodResult, part: str) -> float:
    """Standard error of a utility of any kind, from how far its pairs are apart; infinite where there is one pair."""
    found = method.utility_by_pair.get(part, [])
    return stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.inf
