"""Claims about single numbers: Retrain at 1, the seed, accuracies, one data set beside another."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import special

from forgetgauge.suites.accuracy import FullData, paper_accuracy
from forgetgauge.suites.claim import (
    APPROXIMATE,
    Claim,
    Holds,
    Statement,
    interval_of,
    lacking,
    named,
    of_paper_scale,
    scale_aside,
    source_of,
)
from forgetgauge.suites.findings import EMBEDDED, Findings, Stored
from forgetgauge.suites.paper import PRINTED, in_column, paper_table, table_name
from forgetgauge.suites.rankings import LEVEL
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.replicates import LEAST, Replicates
from forgetgauge.suites.spread import deviation_interval
from forgetgauge.suites.tables import DATA_NAMES, OUTLINES, SCALES
from forgetgauge.wording import bracket, counted, listed, plain

GROUND = 0.95
"""Q that Retrain must have at least: below it an advantage of a twentieth is left."""
GROUNDING = Statement(
    "Q of Retrain is 1 up to chance",
    "Q of Retrain",
    "Q(Retrain) ≈ 1 with high precision for all ε, achieving grounding almost perfectly",
    f"yes where in every column of every table of Q the interval of Retrain contains 1 and lies at {GROUND} or above; "
    f"no where one lies below {GROUND}",
)


def grounding_claim(found: Findings) -> Claim:
    """Retrain has nothing to show."""
    known: dict[tuple[float, ...], tuple[str, tuple[float, float], str]] = {}
    for name, outline in OUTLINES.items():
        for stored in found.every(name) if outline.layout == "quality" else []:
            for label in stored.comparison.columns:
                ends = interval_of(stored.comparison, "retrain", label)
                if ends is not None:  # the same trainings may stand in several tables: they are one column
                    where = f"{in_column(stored.comparison.variable, label)} of {table_name(name)}"
                    models = _advantages(stored, label) or (*ends, len(known))
                    known.setdefault(models, (where, ends, stored.comparison.scale))
    if not known:
        return GROUNDING.not_run
    where, least, _ = min(known.values(), key=lambda one: one[1][0])
    n_sure = sum(ends[0] >= GROUND and ends[1] >= 1 for _, ends, _ in known.values())
    holds: Holds = "no" if any(high < GROUND for _, (_, high), _ in known.values()) else "open"
    holds = "yes" if n_sure == len(known) else holds
    aside = of_paper_scale([scale for _, _, scale in known.values()])
    finding = (
        f"{n_sure} of {counted(len(known), 'interval')}{aside} contain 1 and lie at {GROUND} or above; the lowest is "
        f"{bracket(least)}, at {where}"
    )
    short = f"Q of Retrain is 1 up to chance in all {len(known)} measurements{aside}"
    return GROUNDING.judged(holds, finding, "all tables of Q", short if holds == "yes" else "")


def _advantages(stored: Stored, label: str) -> tuple[float, ...]:
    """By which two columns are known to be of the same models; empty without a result."""
    game = stored.games.get(label)
    attacks = {} if game is None or "retrain" not in game.methods else game.methods["retrain"].by_adversary
    return tuple(value for attack in attacks.values() for value in attack.by_pair)


def replicates_claim(found: Replicates | None) -> Claim:
    """Q of one split hardly moves when it is trained again."""
    printed = paper_table("table1").rows
    bar = max(cell.spread or 0.0 for row in printed.values() for cell in row.values())
    statement = Statement(
        "Q is robust to the random seed",
        "the seed",
        "this test proves robust to changes in random seed",
        "yes where of every method of the paper’s Table 1 the standard deviation of Q over trainings of one split is "
        f"at most {plain(bar)}, the largest ± there, by its 95 % interval (χ²); no where that of one is above it",
    )
    if found is None or found.data in EMBEDDED or found.n_replicates < LEAST:
        return statement.not_run
    spreads = {method: deviation_interval(found.deviation(method), found.n_freedom, LEVEL) for method in found.quality}
    worst = max(spreads, key=found.deviation)
    lows, highs = zip(*spreads.values(), strict=True)
    missing = [PRINTED[method] for method in printed if method not in found.quality]
    holds: Holds = "yes" if max(highs) <= bar and not missing else "no" if max(lows) > bar else "open"
    others = [found.deviation(method) for method in spreads if method != worst]
    rest = f" and {plain(min(others))} to {plain(max(others))} for the others" if others else ""
    finding = (
        f"over {counted(found.n_replicates, 'training')} of {counted(found.n_pairs, 'split')} the standard deviation "
        f"of Q is {plain(found.deviation(worst))} {bracket(spreads[worst])} for {PRINTED.get(worst, worst)}{rest}"
        f"{lacking(missing)}"
    )
    return statement.judged(holds, finding, f"trainings of one split, {found.data}, {found.model}, α = {found.alpha}")


NEAR = 0.01
"""How far an accuracy may be from the paper's, and how far an interval that contains it may reach to either side."""


def accuracy_claim(kind: str, words: str, found: FullData | None) -> Claim:
    """The paper's accuracy on all of CIFAR-10."""
    how = "with augmentation" if kind == "flip-crop" else "without augmentation"
    theirs = paper_accuracy(kind)
    statement = Statement(
        f"Trained on all images {how}, the model reaches {100 * theirs:.2f} %",
        f"accuracy {how}",
        words,
        f"yes where the interval of our mean (Student’s t over models) contains it and is no wider than "
        f"{200 * NEAR:g} points, or lies within {100 * NEAR:g} point of it; no where it lies beyond that. The paper "
        "says neither which model nor which batch size: ResNet-20 in batches of 128 is our reading",
    )
    trained = None if found is None or found.scale == "smoke" else found.kinds.get(kind)
    if found is None or trained is None:
        return statement.not_run
    source = f"{DATA_NAMES.get(found.data, found.data)}, {found.scale} scale"
    mean, n = trained.mean, len(trained.accuracies)
    shown = f"our mean over {counted(n, 'model')} is {100 * mean:.2f} %"
    if n < 2:
        return statement.judged("open", f"{shown}, without an interval", source)
    half = float(special.stdtrit(n - 1, (1 + LEVEL) / 2)) * trained.deviation / math.sqrt(n)
    finding = f"{shown} [{100 * (mean - half):.2f} %, {100 * (mean + half):.2f} %]"
    if found.scale != "paper":
        return statement.judged("open", f"{finding}, after fewer epochs than the paper’s", source)
    off = abs(mean - theirs)
    holds: Holds = "yes" if (off <= half <= NEAR) or off + half <= NEAR else "no" if off - half > NEAR else "open"
    has = f"{how.capitalize()} ResNet-20 has {100 * mean:.1f} ± {100 * half:.1f} %"
    shorts = {
        "yes": f"{has} (the paper: {100 * theirs:.2f} %)",
        "no": f"{has}, not {100 * theirs:.2f} % (the paper names no model)",
    }
    return statement.judged(holds, finding, source, shorts.get(holds, ""))


DIFFICULTY = Statement(
    "Q is higher on MNIST and lower on CIFAR-100 than on CIFAR-10",
    "easy and difficult data",
    "the Unlearning Quality of most unlearning methods is higher on MNIST while lower on CIFAR100, in comparison to "
    "those on CIFAR10 and SST5",
    "yes where for more than half of the six methods both intervals lie in this order, at strengths chosen for each "
    "data set and with the same share of each; no where for half of them one lies the other way round; methods that "
    "damage their models do not count",
)


def difficulty_claim(found: Findings) -> Claim:
    """MNIST > CIFAR-10 > CIFAR-100, for most methods; by Table 7 and by the CIFAR-10 of Table 1 or 2 at its scale."""
    needed = {"MNIST", "CIFAR100"}
    whole = [one for one in found.every("table7") if one.by_price and not needed & set(one.comparison.not_run)]
    data = whole[0] if whole else found.fullest("table7")
    scale = "" if data is None else data.comparison.scale
    beside = [(found.stored.get(("table1", scale)), "1.0"), (found.stored.get(("table2", scale)), "0.1")]
    usual = next(((s, label) for s, label in beside if s is not None and label not in s.comparison.not_run), None)
    if data is None or usual is None or needed & set(data.comparison.not_run):
        return DIFFICULTY.not_run
    places = [(data, "MNIST"), usual, (data, "CIFAR100")]
    known = {m: [interval_of(stored.comparison, m, label) for stored, label in places] for m in APPROXIMATE}
    ends = {m: [one for one in each if one is not None] for m, each in known.items()}
    damaged = [m for m in APPROXIMATE if any(m in _damaged(stored.comparison, label) for stored, label in places)]
    counting = {m: each for m, each in ends.items() if len(each) == len(places) and m not in damaged}
    easy = [m for m, (mnist, cifar, _) in counting.items() if mnist[0] > cifar[1]]
    hard = [m for m, (_, cifar, many) in counting.items() if cifar[0] > many[1]]
    against = [m for m, (mnist, cifar, many) in counting.items() if mnist[1] < cifar[0] or cifar[1] < many[0]]
    half = len(APPROXIMATE) / 2
    holds: Holds = "yes" if len(set(easy) & set(hard)) > half else "no" if len(against) >= half else "open"
    finding = (
        f"of {counted(len(counting), 'method')} {len(easy)} have a higher Q on MNIST than on CIFAR-10, and {len(hard)} "
        f"a lower one on CIFAR-100{f' ({named(damaged)} damaged models)' if damaged else ''}"
    )
    why = []
    if SCALES[scale].fraction != 1.0:
        why.append("CIFAR-10 had all of its data and the others half, which lowers Q by itself on CIFAR-100")
    if any(stored.is_borrowed for stored, _ in places):
        why.append("strengths were chosen for another setting")
    source = f"{source_of(data)}, and {table_name(usual[0].comparison.name)}"
    if why:
        return DIFFICULTY.judged("open", f"{finding}; but {listed(why)}", source)
    short = f"Q is higher on MNIST and lower on CIFAR-100 than on CIFAR-10{scale_aside(data)}" if holds == "yes" else ""
    return DIFFICULTY.judged(holds, finding, source, short)


def _damaged(table: TableComparison, label: str) -> Sequence[str]:
    return [*table.lost_accuracy.get(label, {}), *table.lost_retained.get(label, {})]
