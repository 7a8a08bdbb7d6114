"""Strengths chosen by what they cost: on models of the shadow half, by utility on points that these never saw.

F and T of the game, and Q, are not looked at, so that the choice cannot favour a setting that happens to fool the
adversaries on these very points.

A method costs what its utility is below the lower of retrained and untreated models. It is below each of them by at
least that much, so a bound for either is a bound for the cost. Which is the sharper one hangs on the setting: a treated
and an untreated model are one training, and differ by little but the treatment; a retrained one is another training,
whose chance alone may be worth more than the price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from forgetgauge.errors import UserError
from forgetgauge.plan.graph import RETRAINED, UNTREATED
from forgetgauge.plan.strength import Tuning, Value
from forgetgauge.results.price import (
    RUINED,
    holds,
    is_cliff,
    is_ruined,
    kept_again,
    loss_and_reach,
    strongest_kept,
)
from forgetgauge.results.record import TriedStrength, TuningResult
from forgetgauge.results.utility import points, unseen_part
from forgetgauge.results.views import GameView
from forgetgauge.wording import listed


def next_tuning(view: GameView, method: str) -> Tuning:
    """What is to be tried next of a strength, or the choice, by what the values tried so far cost."""
    tuning, _ = _rule(view, method)
    best = best_strength(view, method)
    return tuning.after(best, is_cliff=best is not None and is_cliff(tried_strengths(view, method)[1], best))


def best_strength(view: GameView, method: str) -> Value | None:
    """The strongest value tried so far that costs no more than the price, as every weaker one does; None where not even
    the weakest is shown to.

    UserError where it is not known what costs are counted from, or where none is known to hold and what the weakest
    costs is not known: then none can be chosen.
    """
    tuning, price = _rule(view, method)
    _refuse_without_yardstick(view, method)
    best = strongest_kept(tried_strengths(view, method)[1], price)
    if best is not None:
        return best.value
    weakest = tuning.tried[0]
    if (why := next(_failures(view, method, weakest), None)) is not None:
        raise UserError(
            f"the strength of '{method}' cannot be chosen: jobs failed at its weakest, {tuning.strength.parameter} = "
            f"{weakest:g} ({why}), and no other is known to keep the price; {_THEN}"
        )
    return None


NO_CHANGE = 0.001
"""Of utility: what changes an untreated model by less hardly does anything, whatever the price is."""


def worth_playing(view: GameView, method: str) -> list[tuple[Value, Value]]:
    """The ranges of a strength that a frontier should show, (weakest, strongest) of each, by what the tried values cost
    shadow models: all that may not ruin them, without the first ones that hardly change an untreated model.

    Between two ranges lie values that ruin models. Where all but one do, that one and the next stronger one; where all
    do, both ends: a point alone would be no curve.
    """
    tuning, price = _rule(view, method)
    _, tried = tried_strengths(view, method)
    ranges = [
        [one.value for one in run] for ruined, run in groupby(tried, lambda one: is_ruined(one, price)) if not ruined
    ]
    if not ranges:
        return [(end, end) for end in dict.fromkeys((tuning.tried[0], tuning.tried[-1]))]
    first, values = 0, ranges[0]
    while first + 1 < len(values) and _hardly_changes(view, method, values[first + 1]):
        first += 1
    ranges[0] = values[min(first, max(0, len(values) - 2)) :]
    if len(ranges) == 1 and len(ranges[0]) == 1:
        beyond = tuning.tried.index(ranges[0][0]) + 1
        ranges += [[value] for value in tuning.tried[beyond : beyond + 1]]
    return [(values[0], values[-1]) for values in ranges]


def _hardly_changes(view: GameView, method: str, value: Value) -> bool:
    own, untreated = _utilities(view, method, value), _utilities(view, method, UNTREATED)
    if own is None or untreated is None:
        return False
    return fmean(abs(a - b) for a, b in zip(own, untreated, strict=True)) <= NO_CHANGE


def tuning_result(view: GameView, method: str) -> TuningResult | None:
    """How a method's strength was chosen, with all that was tried; None where it was not."""
    how = view.game.methods[method]
    if how.tuning is None or how.tuning.chosen is None or view.game.price is None:
        return None
    against, tried = tried_strengths(view, method)
    price, chosen = view.game.price, how.tuning.chosen
    return TuningResult(
        parameter=how.tuning.strength.parameter,
        chosen=chosen,
        price=price.price,
        holds=any(one.value == chosen and holds(one, price.price) for one in tried),
        against=against,
        n_models=price.shadows,
        tried=tried,
    )


def tried_strengths(view: GameView, method: str) -> tuple[str, list[TriedStrength]]:
    """(whether costs count from retrained or from untreated models, what each strength costs); the weakest first."""
    tuning, _ = _rule(view, method)
    yardsticks = _yardsticks(view, method)
    tried = []
    for value in tuning.tried:
        own = _utilities(view, method, value)
        if own is None or not yardsticks:  # a model diverged or is missing
            tried.append(TriedStrength(value, None, None, own is None and _diverged(view, method, value)))
        else:
            tried.append(TriedStrength(value, *loss_and_bound(yardsticks, own, view.game.level)))
    return next(iter(yardsticks), RETRAINED), tried


def loss_and_bound(
    yardsticks: Mapping[str, Sequence[float]], own: Sequence[float], level: float
) -> tuple[float, float]:
    """(mean over models of how far `own` is below the first yardstick; an upper bound of how far it is below the lower
    of them in truth: the smallest of their one-sided bounds, each Student's at this level)."""
    means, bounds = [], []
    for usual in yardsticks.values():
        mean, reach = loss_and_reach([more - less for more, less in zip(usual, own, strict=True)], level)
        means.append(mean)
        bounds.append(mean + reach)
    return means[0], min(bounds)


def _yardsticks(view: GameView, method: str) -> dict[str, list[float]]:
    """What costs are counted from, the lower on average first: a method may lose what retraining loses, and None may
    have learnt badly. Empty where one of the two is not known."""
    each = {which: _utilities(view, method, which) for which in (RETRAINED, UNTREATED)}
    known = {which: own for which, own in each.items() if own is not None}
    if len(known) < len(each):
        return {}
    return dict(sorted(known.items(), key=lambda item: fmean(item[1])))


def _refuse_without_yardstick(view: GameView, method: str) -> None:
    """Else every strength would seem to cost too much, and the weakest would be played."""
    refused = f"the strength of '{method}' cannot be chosen: untreated or retrained shadow models, from which costs are"
    if (why := next((why for at in (UNTREATED, RETRAINED) for why in _failures(view, method, at)), None)) is not None:
        raise UserError(f"{refused} counted, failed ({why}); {_THEN}")
    if not _yardsticks(view, method):
        raise UserError(
            f"{refused} counted, have no utility: their outputs hold NaN or infinite values, or the task measures "
            "none; name a strength for it in the run file, or train models that do not diverge"
        )


_THEN = "the same command tries them again; a strength named in the run file needs no choice"


def strengths_left_out(view: GameView) -> list[str]:
    """Which values could not be tried, in words: a choice that would have looked at them may be another."""
    said = []
    for name, method in view.game.methods.items():
        if method.tuning is None or method.tuning.chosen is None:
            continue
        failed = {value: next(_failures(view, name, value), None) for value in method.tuning.tried}
        values = [f"{value:g}" for value, why in failed.items() if why is not None]
        if values:
            why = next(why for why in failed.values() if why is not None)
            said.append(
                f"The strength of {name} was chosen without {method.tuning.strength.parameter} = {listed(values)}, "
                f"where jobs failed ({why})."
            )
    return said


def strength_warnings(view: GameView) -> list[str]:
    """Of strengths that were chosen: what looks as if the parameter did nothing, ruined everything or worked the other
    way round; and what a reader would not see by the value chosen."""
    said = []
    for name in view.game.methods:
        found = tuning_result(view, name)
        if found is not None:
            said += _range_warnings(view, name, found) or _choice_warnings(name, found)
    return said


def _range_warnings(view: GameView, name: str, found: TuningResult) -> list[str]:
    """At most one sentence."""
    tried, price = found.tried, found.price
    known = [(one.value, one.loss) for one in tried if one.loss is not None]
    ends = f"{found.parameter} = {tried[0].value:g} to {tried[-1].value:g}"
    if all(one.diverged or (one.loss is not None and one.loss > RUINED * price) for one in tried):
        what = f"cost at least {points(min(loss for _, loss in known))}" if known else "gave no numbers"
        also = " or gave no numbers" if known and len(known) < len(tried) else ""
        return [
            f"{name}: every value of its strength ({ends}) ruined its shadow models, which {what}{also}: its range "
            "should begin with weaker values."
        ]
    if 1 < len(known) == len(tried) and len({round(loss, 9) for _, loss in known}) == 1:
        if all(_utilities(view, name, one.value) == _utilities(view, name, UNTREATED) for one in tried):
            return [
                f"{name}: no value of its strength ({ends}) changed what its models cost: either the parameter has no "
                "effect, or its range is too weak to forget anything."
            ]
        return [
            f"{name}: every value of its strength ({ends}) changed its models alike, which cost "
            f"{points(known[0][1])}: the parameter seems to have no effect."
        ]
    if len(known) == len(tried) and known[0][1] > price >= known[-1][1] + price / 2:
        return [
            f"{name}: the weakest value of its strength ({known[0][0]:g}) costs {points(known[0][1])} and "
            f"the strongest ({known[-1][0]:g}) {100 * known[-1][1]:.1f}: the range stands the wrong way round, its "
            "first end should be the weaker one."
        ]
    return []


def _choice_warnings(name: str, found: TuningResult) -> list[str]:
    said = []
    if (again := kept_again(found)) is not None:
        said.append(
            f"{name}: {found.parameter} = {again.value:g} keeps the price as well, but weaker values cost more or gave "
            "no numbers. It was not taken: a strength is the strongest up to which every value keeps the price. To "
            "play it, name it in the run file."
        )
    if found.holds and is_cliff(found.tried, found.chosen):
        said.append(
            f"{name}: at the value next to its strength ({found.parameter} = {found.chosen:g}, the weakest that was "
            "tried) a model gave no numbers: models of the game may do so at this one."
        )
    return said


TOO_MUCH = 0.5
"""Of a model's utility: a price above it keeps nobody from ruining the model."""


def price_warnings(view: GameView) -> list[str]:
    """That the price is most of what a model is worth, where it is: then strengths were not chosen by it."""
    tuned = [
        name for name, one in view.game.methods.items() if one.tuning is not None and one.tuning.chosen is not None
    ]
    worth = {name: fmean(next(iter(usual.values()))) for name in tuned if (usual := _yardsticks(view, name))}
    names = [name for name, value in worth.items() if _rule(view, name)[1] > TOO_MUCH * value]
    if not names:
        return []
    least, price = min(worth[name] for name in names), _rule(view, names[0])[1]
    return [
        f"The price, {price:g}, is more than half of what the models of {listed(names)} are worth at all "
        f"({view.game.utility_name} {least:.2g}): a strength that ruins them keeps it; set a smaller tuning.price."
    ]


def _failures(view: GameView, method: str, value: Value | str) -> Iterator[str]:
    """Why what a strength costs is not known, for each shadow model of which it is not."""
    jobs, failed = view.graph.jobs, view.run.state.failed
    for key in _keys(view, method, value):
        if not view.run.has(key):
            makers = [key, *jobs[key].inputs.values()]
            makers += [read for maker in makers[1:] for read in jobs[maker].inputs.values()]
            yield next((failed[maker] for maker in makers if maker in failed), "not done")


def _diverged(view: GameView, method: str, value: Value) -> bool:
    """Whether every model was made, and one of them gave no numbers."""
    return all(view.run.has(key) for key in _keys(view, method, value))


def _keys(view: GameView, method: str, value: Value | str) -> list[str]:
    return [key for (name, _, at), key in view.graph.costs.items() if (name, at) == (method, value)]


def _utilities(view: GameView, method: str, value: Value | str) -> list[float] | None:
    """The utility of each shadow model; None where one is missing or diverged."""
    keys = _keys(view, method, value)
    known = [view.run.facts(key).get("utility", {}) if view.run.has(key) else {} for key in keys]
    found = [own.get(unseen_part(own)) for own in known]
    return None if None in found else [float(one) for one in found if one is not None]


def _rule(view: GameView, method: str) -> tuple[Tuning, float]:
    tuning, price = view.game.methods[method].tuning, view.game.price
    if tuning is None or price is None:
        raise ValueError(f"the strength of {method} is not tuned")
    return tuning, price.price
