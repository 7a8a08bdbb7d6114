"""What to warn of although nothing failed: found in a method's answers, for a run and for an audit alike.

Every rule is a test of chance. The alarms of a whole game go off in at most one honest game of a hundred, however many
methods and adversaries it has (tests/results/test_warnings.py; of models taken for one: tests/game/test_honesty.py); an
honest game is one whose F and T were drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats
from forgetgauge.game.direction import Lean, rarer_than, z_by_pair, z_over_pairs
from forgetgauge.game.likeness import is_one_model
from forgetgauge.wording import listed, plain, signed

FALSE_ALARM = 0.002
"""The chance of each rule to warn of an honest game."""
NOTABLE = 0.02
"""An advantage, or a distance of the AUC from ½, below which a direction is not worth a word."""
CONTRADICTION = 0.05
"""Advantages of single pairs must lie at least so far on both sides of 0 to contradict each other."""
MISPLACED = 0.25
"""A threshold in the middle of two normal curves yields 0.7 of 2·AUC − 1; below this share of it, it lies elsewhere."""
FOUND = 0.65
"""Above this share of it, another adversary has found about what a threshold in the middle would have."""


@dataclass(frozen=True)
class MarginEvidence:
    """What adversaries answered about one method's models."""

    adversaries: Sequence[str]
    pairs: Sequence[object]
    """The ids of the pairs that were completed."""
    decided: Sequence[PairOutcome]
    """One for each pair: differences of decisions."""
    ranked: Sequence[PairOutcome]
    """One for each pair: differences of the ranks of margins, so that an advantage is an AUC − ½."""
    shadows: Sequence[Lean | None]
    """One for each adversary: which way its margins point on the shadow models; None where there are none."""
    copied: Sequence[object] = ()
    """The pairs whose sides answer alike up to rounding, although each should have a model of its own."""
    blind: Sequence[str] = ()
    """The adversaries to whom both sides of every pair answer alike, though not to others."""
    unlike: Sequence[bool] = ()
    """One for each adversary: whether it calls more, or fewer, unseen points forgotten than points that shadow models
    never saw; of a run, where both are asked in one way, nothing."""
    surely_unlike: Sequence[bool] = ()
    """The same, by more than models of one kind differ by."""


def margin_warnings(methods: Mapping[str, MarginEvidence]) -> list[str]:
    """One sentence for each warning, by method."""
    n_tests = _n_tests(methods)
    return [
        line
        for method, evidence in methods.items()
        for line in (
            _against_the_shadows(method, evidence, n_tests),
            _pairs_that_contradict(method, evidence, n_tests),
            _misplaced_thresholds(method, evidence, n_tests),
            _copied_sides(method, evidence),
        )
        if line is not None
    ] + _blind(methods)


def _n_tests(methods: Mapping[str, MarginEvidence]) -> int:
    return 2 * sum(len(evidence.adversaries) for evidence in methods.values())


def told_apart(evidence: MarginEvidence, level: float) -> list[str]:
    """The adversaries whose scores tell F from T beyond chance, whatever their thresholds make of it: one in so many
    games by chance alone, as None is held to be seen."""
    clear = np.abs(z_over_pairs(evidence.ranked)) > rarer_than((1 - level) / 2 / len(evidence.adversaries))
    return [name for name, one in zip(evidence.adversaries, clear, strict=True) if one]


def silence(decided_nothing: Mapping[str, Sequence[str]], adversaries: Sequence[str]) -> list[str]:
    """On methods about which some adversaries, or all, decided nothing."""
    by_names: dict[tuple[str, ...], list[str]] = {}
    for method, names in decided_nothing.items():
        if names:
            by_names.setdefault(tuple(names), []).append(method)
    return [
        f"{listed(methods)}: {_answer(names)} the same answer for all points of every model, so nothing was "
        "measured and there is no Q."
        if len(names) == len(adversaries)
        else f"{listed(methods)}: {_answer(names)} the same answer for all points of every model, which measures "
        "nothing; Q rests on the other adversaries."
        for names, methods in by_names.items()
    ]


def _answer(names: Sequence[str]) -> str:
    return f"{listed(names)} {'gives' if len(names) == 1 and not names[0].endswith('decisions') else 'give'}"


def _against_the_shadows(method: str, evidence: MarginEvidence, n_tests: int) -> str | None:
    """Forgotten points look less like members than unseen ones, where shadow models say the opposite of members."""
    limit = rarer_than(FALSE_ALARM / n_tests)
    advantage, separation = _means(evidence.decided), _means(evidence.ranked)
    below = ((z_over_pairs(evidence.decided) < -limit) & (advantage < -NOTABLE)) | (
        (z_over_pairs(evidence.ranked) < -limit) & (separation < -NOTABLE)
    )
    below &= [lean is None or lean.sign > 0 for lean in evidence.shadows]
    if not below.any():
        return None
    names = [name for name, is_below in zip(evidence.adversaries, below, strict=True) if is_below]
    most = int(np.where(below, separation, np.inf).argmin())
    fitted = any(lean is not None and is_below for lean, is_below in zip(evidence.shadows, below, strict=True))
    start = (
        "the shadow models and the models under test point in opposite directions"
        if fitted
        else "the answers point the wrong way"
    )
    return (
        f"{method}: {start}. To {listed(names)}, forgotten points "
        f"look less like training points than unseen ones do ({evidence.adversaries[most]}: AUC "
        f"{plain(0.5 + separation[most])}, advantage {signed(advantage[most])}). Either the method over-forgets, which "
        "gives the forgotten points away as well, or labels are swapped: forget with unseen, or the shadow models' "
        "members with the others."
    )


def _pairs_that_contradict(method: str, evidence: MarginEvidence, n_tests: int) -> str | None:
    """One adversary's advantage is far above 0 on some pairs and far below on others: their mean hides both."""
    limit = rarer_than(min(0.5, sqrt(FALSE_ALARM / n_tests) / len(evidence.pairs)))
    for outcomes in (evidence.decided, evidence.ranked):
        z, by_pair = z_by_pair(outcomes), np.array([outcome.advantage for outcome in outcomes])  # (P, J) each
        above = (z > limit) & (by_pair > CONTRADICTION)
        below = (z < -limit) & (by_pair < -CONTRADICTION)
        both = above.any(axis=0) & below.any(axis=0)
        if both.any():
            which = int(np.where(both, np.ptp(by_pair, axis=0), -1).argmax())
            high, low = (
                [str(evidence.pairs[i]) for i in np.flatnonzero(side[:, which]).tolist()] for side in (above, below)
            )
            ends = f"{signed(by_pair[:, which].max())} and {signed(by_pair[:, which].min())}"
            what = "advantages" if outcomes is evidence.decided else "distances of its AUC from ½"
            return (
                f"{method}: the pairs contradict each other. {evidence.adversaries[which]} has {what} between {ends}, "
                f"above 0 on {_pairs(high)} and below 0 on {_pairs(low)}, further apart than chance takes them. Their "
                "mean hides this: either forget and unseen are swapped in some pairs, or the method over-forgets in "
                "some only."
            )
    return None


@dataclass(frozen=True)
class _Misplaced:
    """What each adversary's threshold makes of its score, for a method of which some miss it."""

    missed: npt.NDArray[np.bool_]
    apart: Floats
    """How far the AUC is from ½, where that is no chance."""
    advantage: Floats
    by_itself: npt.NDArray[np.bool_]
    """Whether unseen points are not answered like those of shadow models, so that another adversary does not count."""


def _misplaced(evidence: MarginEvidence, n_tests: int) -> _Misplaced:
    """Which scores separate F from T, while the thresholds that the shadow models gave do not.

    Either the largest advantage of all is far below what a score tells; or, where unseen points are not answered like
    those of shadow models, that of the adversary itself, whatever one finds beside it whose threshold does not depend
    on the scale of outputs, as `correctness`. Where these answers differ by more than models do, it is enough that it
    has less than a threshold in the middle would have. What is found all the same is not missed.
    """
    advantage, separation = np.abs(_means(evidence.decided)), _means(evidence.ranked)
    clear = np.abs(z_over_pairs(evidence.ranked)) > rarer_than(FALSE_ALARM / (2 * n_tests))
    apart, best = np.where(clear, np.abs(separation), 0.0), float(advantage.max())
    by_itself = np.array(evidence.unlike or [False] * len(apart)) & (best <= FOUND * 2 * apart)
    least = np.where(by_itself & np.array(evidence.surely_unlike or [False] * len(apart)), FOUND, MISPLACED)
    missed = (apart >= CONTRADICTION) & (np.where(by_itself, advantage, best) <= least * 2 * apart)
    return _Misplaced(missed, apart, advantage, by_itself)


def missed_by(methods: Mapping[str, MarginEvidence]) -> dict[str, list[str]]:
    """Method -> the adversaries whose thresholds miss what their scores tell, where there are any."""
    n_tests = _n_tests(methods)
    names = {
        method: [name for name, is_so in zip(its.adversaries, _misplaced(its, n_tests).missed, strict=True) if is_so]
        for method, its in methods.items()
    }
    return {method: those for method, those in names.items() if those}


def _misplaced_thresholds(method: str, evidence: MarginEvidence, n_tests: int) -> str | None:
    found, separation = _misplaced(evidence, n_tests), _means(evidence.ranked)
    if not found.missed.any():
        return None
    most = int(np.where(found.missed, found.apart, 0.0).argmax())
    advantage, best = found.advantage[most], float(found.advantage.max())
    what = "it" if advantage <= MISPLACED * 2 * found.apart[most] else "much of it"
    so = "Q is too high" if best else "no Q shows it"
    asked = ": are their outputs on the same scale?" if found.by_itself[most] else "."
    return (
        f"{method}: the scores of {evidence.adversaries[most]} tell forgotten points from unseen ones (AUC "
        f"{plain(0.5 + separation[most])}), but thresholds fitted on the shadow models miss {what} (advantage "
        f"{plain(advantage)}, the largest of all {plain(best)}), so {so}. The shadow models are not like the models "
        f"that are judged{asked}"
    )


def is_fine(margins: Floats) -> bool:
    """Whether margins, (seeds, points), are fine enough to show that two sides are of one model."""
    return bool(len(np.unique(margins[0])) > max(2, margins.shape[1] / 2))


def is_copy(first: Floats, second: Floats) -> bool:
    """Whether margins of two sides, (seeds, points) each, are of one model, and fine enough to show it."""
    return is_fine(first) and all(map(is_one_model, first, second))


def _copied_sides(method: str, evidence: MarginEvidence) -> str | None:
    if not evidence.copied:
        return None
    where = _pairs([str(pair) for pair in evidence.copied])
    return (
        f"{method}: the models of both sides of {where} give the same answers up to rounding."
        " If the method returns the same model whatever it is given, Q = 1 says nothing about forgetting;"
        " nor if no adversary looks at the models."
    )


def _blind(methods: Mapping[str, MarginEvidence]) -> list[str]:
    names = list(dict.fromkeys(name for evidence in methods.values() for name in evidence.blind))
    return [
        f"{name}: both models of every pair answer alike to it, though not to other adversaries: does it look at what "
        "the models say?"
        for name in names
    ]


def _means(outcomes: Sequence[PairOutcome]) -> Floats:
    return np.asarray(np.mean([outcome.advantage for outcome in outcomes], axis=0), dtype=np.float64)


def _pairs(names: Sequence[str]) -> str:
    return f"pair{'s' * (len(names) > 1)} {listed(names)}"
