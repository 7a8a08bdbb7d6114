"""Evidence from one model, as it is stored: p, a lower bound of ε, and a verdict in words. It is not Q."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from forgetgauge.game.blind import advantage_limits, best_linear_advantage, n_answers_of_ranks
from forgetgauge.game.one_model import (
    ANSWERS,
    N_ANSWERS,
    PAIRS,
    TOP,
    ModelTest,
    group_epsilon,
    log10_p_of_best,
    pairs_counted,
    point_epsilon,
    top_counted,
)
from forgetgauge.records import Record
from forgetgauge.results.record import nearly_reference, reference_named
from forgetgauge.results.resolution import COARSE, is_blunt, resolution_of
from forgetgauge.results.verdict import (
    INCONCLUSIVE,
    LIKE_RETRAIN,
    NOT_EVALUABLE,
    STILL_VISIBLE,
    VERDICTS,
    without_resolution,
)
from forgetgauge.wording import listed, plain

RESTS_ON = {
    "training": "the model was trained on F before the deletion, T was in no training, and the training set R and "
    "everything else that was trained with ignored the draw",
    "shadows": "shadow models, thresholds and adversaries were made without F and T",
    "settings": "hyper-parameters and the choice of the checkpoint ignored the draw",
    "validation": "T was never used for validation",
}
"""What the test takes for granted and no file can show."""
REQUESTS_REST_ON = {
    "exchangeable": "F and T are of one kind: any other choice of these points was as likely to be asked for",
    "training": "the model was trained on F, and T played no part in training it",
    "shadows": RESTS_ON["shadows"],
    "settings": "hyper-parameters and the choice of the checkpoint took no account of F and T",
    "validation": RESTS_ON["validation"],
}
"""What the test takes for granted where F was not drawn, but asked for."""
INSTEAD = (
    "Instead: choose for each point of F a matched one that no training saw, or draw a half at random before the next "
    "training (forgetgauge draw)."
)
"""What to do where requests cannot be judged."""


DRAWN, REQUESTS = "drawn", "requests"
"""How F may have come about."""
CONTROL_SEEN = "the model from before the deletion is still visible"
"""The check on that model: only where it holds do models that are not visible show anything."""
RAW_POINTS, REFERENCES = "raw points", "reference models"
"""By what F and T are compared without the model."""
LINEAR, FOREST, HALF = "logistic regression", "random forest", ", half "
"""Tests by raw points are called by the classifier and the half that it was tested on."""
MOST_COUNTED = 10_000_000
"""Most answers that are computed again, since a file from elsewhere may state any number of them."""
USUAL_LEVEL = 0.95
"""A model that is not visible at a higher level may be at this one: p counts as visible up to 1 − level."""
CLEARLY = 0.1
"""A model from before the deletion is clearly visible where p is at most this share of what counts as visible: what
shows as much in truth is seen with a power of 80 % (2.8 standard errors: p = 0.005)."""
LEAST_ALIKE = 0.3
"""Reference models count for what was missed where their rank correlation with the model is shown to be above it."""


@dataclass(frozen=True)
class TestResult(Record):
    """One adversary's answers, against chance."""

    n_right: int
    n_asked: int
    """Right answers, of how many."""
    advantage: float
    """The share of F that was called forgotten minus that of T."""
    log10_p: float
    """Of the two-sided p, before it is corrected for the choice among adversaries: −6 is one in a million."""
    by: str = ANSWERS
    """Of answers, ranks, top (the largest scores alone), pairs or groups: what the law by chance is of."""
    told: float = 1.0
    """How much of what so many units could tell is left by their ties; the resolution counts as many."""

    def __post_init__(self) -> None:
        _known("by", self.by, N_ANSWERS)
        if not 0 <= self.n_right <= self.n_asked:
            raise ValueError(f"{self.n_right} of {self.n_asked} answers cannot be right")
        if not 0 <= self.told <= 1:
            raise ValueError(f"ties cannot leave {self.told} of a test")


@dataclass(frozen=True)
class ModelResult(Record):
    """One model."""

    verdict: str
    """One of VERDICTS in results.verdict."""
    best: str
    """The adversary whose answers are least like chance."""
    log10_p: float
    """log10 of its p, corrected for the choice among all tests."""
    epsilon: float | None
    """With the stated confidence, any (ε, δ)-certified removal of all of F together has at least this ε; None of
    requests, where it would count what F and T differ by themselves as if the model remembered it."""
    point_epsilon: float | None
    """The same of each point alone, for matched pairs and δ = 0; None elsewhere, where it would not be valid."""
    resolution: float | None
    """The advantage that each adversary's test would have seen with a power of 80 %, but for those of the top scores
    alone and those that ties make blunt; of requests, beyond what `blind` may miss. None where not even an adversary
    who is always right would have been seen."""
    tests: dict[str, TestResult]
    utility: dict[str, float] = field(default_factory=dict)
    """Accuracy on `forget` and `unseen`, where the file has logits."""
    reason: str = ""
    """Why it is not evaluable, and what to do instead; empty where it is."""

    def __post_init__(self) -> None:
        _known("verdict", self.verdict, VERDICTS)


@dataclass(frozen=True)
class BlindResult(Record):
    """Whether F and T can be told apart without the model under audit, and how far they could differ unseen."""

    by: list[str]
    """What there was to look at: raw points, reference models; nothing, where the file has neither."""
    n_columns: int
    """Columns of the raw points, classes included, that are not the same for all points."""
    log10_p: float | None
    """Of the most telling test, corrected for the choice among them; None where there is none."""
    told_apart: bool
    """Whether that p is at most 1 − level."""
    missed: float
    """With the stated confidence, F and T have by themselves at most this advantage, which a claim must exceed. True of
    what was looked for: of raw points, a linear shift of columns that are normal, and what the forest finds; of
    reference models, what they say. A difference of another kind may be larger."""
    tests: dict[str, TestResult]
    alike: float | None = None
    """Lower confidence limit of the rank correlation, at T, of what reference models and the model under audit say, the
    least of all scores and models: `missed` is by reference models only where it is above 0.3. None without them."""


@dataclass(frozen=True)
class OneModelResult(Record):
    """What one model, or several that were made with one draw, show of F."""

    kind: str
    """What was drawn: points, groups of points, or one point of each matched pair; of requests, points."""
    n_forget: int
    """Units that were drawn to be forgotten, as many were kept unseen; of requests, the points that were asked for."""
    commitment: str
    """SHA-256 of the list of points that was drawn from."""
    seed: str
    seed_from: str
    """Who gave the seed of the draw."""
    own_draw: bool
    """Whether the tester drew alone, so that nobody else can know that the draw was not repeated."""
    digests: dict[str, str]
    """SHA-256 of the file of outputs and of the draw."""
    level: float
    delta: float
    stated: dict[str, bool]
    """What the test rests on, and whether the tester states that it holds."""
    models: dict[str, ModelResult]
    environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    schema: int = 3
    sha256: str = field(default="", compare=False)
    """Of the file itself, this digest left empty: set when it is written, checked when it is read."""
    origin: str = DRAWN
    """How F came about: drawn at random before training, or `requests` that came by themselves."""
    n_unseen: int | None = None
    """Points of T, where they need not be as many as those of F; None of a draw."""
    blind: BlindResult | None = None
    """Of requests: whether F and T differ by themselves. p holds only if they do not."""
    list_shown: bool = False
    """Whether the list that was drawn from was there, and F and T are all that the seed draws of it."""
    committed_first: bool = False
    """Whether the draw says that its list was committed to before there was a seed."""

    def __post_init__(self) -> None:
        _known("kind", self.kind, ("points", "groups", "pairs"))
        _known("origin", self.origin, (DRAWN, REQUESTS))
        if not 0 < self.level < 1 or not 0 <= self.delta < 1 or self.n_forget < 1 or (self.n_unseen or 1) < 1:
            raise ValueError("level and delta are shares, and both sides have points")


def _known(what: str, value: str, names: Collection[str]) -> None:
    if value not in names:
        raise ValueError(f"{what} is one of {', '.join(names)}, not {value[:40]!r}")


@dataclass(frozen=True)
class Basis:
    """What a model's tests are judged by, beside themselves."""

    kind: str
    n_forget: int
    n_unseen: int | None
    level: float
    delta: float
    blind: BlindResult | None

    @property
    def n_units(self) -> float:
        """Units on each side; where the sides differ, as many as say as much."""
        if self.n_unseen is None:
            return self.n_forget
        return 2 * self.n_forget * self.n_unseen / (self.n_forget + self.n_unseen)


def judged_model(tests: Mapping[str, ModelTest], basis: Basis, utility: dict[str, float]) -> ModelResult:
    """One model's tests together."""
    return _judged({name: _test_result(test) for name, test in tests.items()}, basis, utility)


def blunted(found: ModelResult, basis: Basis) -> list[str]:
    """The tests that have no part in the resolution because of their ties, where others have one."""
    tests = found.tests
    blunt = [
        name for name, test in tests.items() if is_blunt((test.by, test.told), len(tests), basis.n_units, basis.level)
    ]
    return blunt if len(blunt) < sum(test.by != TOP for test in tests.values()) else []


def judged_again(found: OneModelResult, name: str) -> ModelResult:
    """What follows from a model's tests as they are stored."""
    model = found.models[name]
    basis = Basis(found.kind, found.n_forget, found.n_unseen, found.level, found.delta, found.blind)
    return _judged(model.tests, basis, model.utility)


def counted_again(test: TestResult, found: OneModelResult) -> TestResult:
    """A test as its right answers say: of pairs and of the largest scores all follows from them, elsewhere nothing."""
    if test.n_asked > MOST_COUNTED:
        raise ValueError(f"{test.n_asked} answers are more than are computed again")
    if test.by == PAIRS:
        return _test_result(pairs_counted(test.n_right, test.n_asked, found.n_forget))
    if test.by == TOP:
        return _test_result(top_counted(test.n_right, test.n_asked, found.n_forget, found.n_unseen or found.n_forget))
    return test


def _judged(tests: Mapping[str, TestResult], basis: Basis, utility: dict[str, float]) -> ModelResult:
    level, blind = basis.level, basis.blind
    best = min(tests, key=lambda name: (tests[name].log10_p, name))
    log10_p = _corrected(tests)
    log_p = log10_p * math.log(10)
    alone = resolution_of([(test.by, test.told) for test in tests.values()], basis.n_units, level)
    seen = alone if blind is None else alone + blind.missed
    resolution = seen if seen <= 1 else None
    verdict, reason = _verdict(log_p, seen, level), ""
    if blind is not None:
        reason = _why_not_evaluable(blind)
        if verdict == STILL_VISIBLE and not reason:
            reason = _too_weak(blind, tests, best, basis)
            if reason and alone > COARSE:  # so few points would not do for a draw either
                verdict, reason = INCONCLUSIVE, ""
    is_paired = basis.kind == "pairs" and basis.delta == 0
    return ModelResult(
        NOT_EVALUABLE if reason else verdict,
        best,
        log10_p,
        group_epsilon(log_p, level=level, delta=basis.delta) if blind is None else None,
        point_epsilon(tests[best].n_right, tests[best].n_asked, level=1 - (1 - level) / len(tests))
        if is_paired
        else None,
        resolution,
        dict(tests),
        utility,
        reason,
    )


def judged_blind(
    tests: Mapping[str, ModelTest], n_columns: int, alike: float | None, n_forget: int, n_unseen: int, level: float
) -> BlindResult:
    """The tests that looked for a difference between F and T without the model under audit."""
    stored = {name: _test_result(test) for name, test in tests.items()}
    return _judged_blind(stored, n_columns, alike, n_forget, n_unseen, level)


def blind_again(found: OneModelResult) -> BlindResult | None:
    """What follows from the tests without the model as they are stored; None where there are none."""
    blind = found.blind
    if blind is None or found.n_unseen is None:
        return None
    return _judged_blind(blind.tests, blind.n_columns, blind.alike, found.n_forget, found.n_unseen, found.level)


def _judged_blind(
    tests: Mapping[str, TestResult], n_columns: int, alike: float | None, n_forget: int, n_unseen: int, level: float
) -> BlindResult:
    log10_p = _corrected(tests) if tests else None
    told_apart = log10_p is not None and _is_beyond_chance(log10_p * math.log(10), level)
    by = [RAW_POINTS] * (n_columns > 0) + [REFERENCES] * (alike is not None)
    missed = _missed(tests, n_columns, alike, (n_forget, n_unseen), 1 - level)
    return BlindResult(by, n_columns, log10_p, told_apart, missed, dict(tests), alike)


def _missed(
    tests: Mapping[str, TestResult], n_columns: int, alike: float | None, sizes: tuple[int, int], tail: float
) -> float:
    """The upper limit of the advantage that F and T have by themselves; 1 where nothing says.

    Reference models that resemble the model say what it would show; others say nothing of it, and raw points decide.
    Of the latter, the two ways round depend on each other, so they count as one half; a mean below 0 is chance, and
    counts as 0. What is learnt from few points is less than there is: the linear classifier's limit is carried over to
    the best one's.
    """
    if alike is not None and alike > LEAST_ALIKE:
        shown = [abs(test.advantage) for name, test in tests.items() if name.startswith(f"{REFERENCES}: ")]
        return max((advantage_limits(one, n_answers_of_ranks(*sizes), tail)[1] for one in shown), default=1.0)
    smaller = (sizes[0] // 2, sizes[1] // 2)
    limits = {}
    for classifier in (LINEAR, FOREST):
        ways = [test.advantage for name, test in tests.items() if name.startswith(classifier + HALF)]
        if not ways:
            return 1.0
        mean = max(0.0, sum(ways) / len(ways))
        limits[classifier] = advantage_limits(mean, n_answers_of_ranks(*smaller), tail)[1]
    return max(best_linear_advantage(limits[LINEAR], n_columns, *smaller), limits[FOREST])


def _corrected(tests: Mapping[str, TestResult]) -> float:
    """log10 p of the most telling test, corrected for the choice among them."""
    return log10_p_of_best([test.log10_p for test in tests.values()])


def _test_result(test: ModelTest) -> TestResult:
    return TestResult(test.n_right, test.n_asked, test.advantage, test.log10_p, test.by, test.told)


def _why_not_evaluable(blind: BlindResult) -> str:
    """Why no model can be judged by these points; empty where one can."""
    if not blind.by:
        return (
            "The requests were not drawn at random, and nothing in the file can show whether F and T differ by "
            "themselves: add the raw points (features), or the outputs of models that saw neither (reference rows). "
            + INSTEAD
        )
    if blind.told_apart:
        return (
            "F and T can be told apart without the model, so an attacker's right answers say nothing about what the "
            "model remembers. " + INSTEAD
        )
    if blind.by == [REFERENCES] and blind.alike is not None and blind.alike <= LEAST_ALIKE:
        return (
            "The reference models are not shown to resemble the model, so they cannot tell how F and T would differ "
            f"for it: at T the rank correlation of what they say is at least {plain(blind.alike)} with the stated "
            f"confidence, and more than {plain(LEAST_ALIKE)} is needed. Add the raw points (features), or the outputs "
            "of models that were trained like it on neither F nor T. " + INSTEAD
        )
    return ""


def _too_weak(blind: BlindResult, tests: Mapping[str, TestResult], best: str, basis: Basis) -> str:
    """Why an advantage that is beyond chance is not beyond what F and T may have by themselves; empty where it is."""
    tail = (1 - basis.level) / (2 * len(tests))
    claimed = max(
        advantage_limits(abs(test.advantage), N_ANSWERS[test.by] * basis.n_units, tail)[0] for test in tests.values()
    )
    if claimed > blind.missed:
        return ""
    return (
        f"The model tells F from T with an advantage of {plain(abs(tests[best].advantage))}, of which "
        f"{plain(max(0.0, claimed))} is certain; but the test without the model could have missed a difference between "
        f"F and T of up to {plain(blind.missed)}. More points, fewer columns of features, or the outputs of models "
        "that saw neither F nor T would make it sharper. " + INSTEAD
    )


def _verdict(log_p: float, resolution: float, level: float) -> str:
    if _is_beyond_chance(log_p, level):
        return STILL_VISIBLE
    return INCONCLUSIVE if resolution > COARSE else LIKE_RETRAIN


def _is_beyond_chance(log_p: float, level: float) -> bool:
    return log_p <= math.log(1 - level) + 1e-12


def rests_on(origin: str) -> Mapping[str, str]:
    """What the test takes for granted, by name, in words."""
    return RESTS_ON if origin == DRAWN else REQUESTS_REST_ON


def unstated(found: OneModelResult) -> Sequence[str]:
    """What the test rests on and nobody has stated, in words."""
    return [sentence for name, sentence in rests_on(found.origin).items() if not found.stated.get(name, False)]


def is_from_before(name: str) -> bool:
    """Whether a model of this name is the one from before the deletion: the control that must be still visible."""
    return reference_named(name) == "none"


def controls(found: OneModelResult) -> list[str]:
    """The models from before the deletion, where others are tested beside them."""
    names = [name for name in found.models if is_from_before(name)]
    return names if len(names) < len(found.models) else []


def silent_controls(found: OneModelResult) -> dict[str, str]:
    """The models from before the deletion that are not visible -> what that means, in a sentence; of a file in which
    no other model was judged, nothing."""
    names, passing = controls(found), _passing(found)
    seen = [name for name, model in found.models.items() if name not in names and model.verdict == STILL_VISIBLE]
    causes = (
        f"so the test of {listed(passing)} says nothing about a deletion: either rows stand beside the wrong points, "
        "or T was in the training as well, or the model never learnt these points by heart, as far as so many points "
        "show it (more of them, or reference models, show more)."
        if passing
        else f"though {listed(seen)} {'is' if len(seen) == 1 else 'are'} still visible: either the outputs were "
        "exchanged, or T was in the training as well, or the deletion itself marks the points."
    )
    what = "the model from before the deletion is"
    return {
        name: f"{name}: {what} {without_resolution(found.models[name].verdict)}, {causes}"
        for name in names
        if (passing or seen) and found.models[name].verdict != STILL_VISIBLE
    }


def _faint_controls(found: OneModelResult) -> list[str]:
    """Of models from before the deletion that chance could nearly have made visible, where others pass beside them."""
    log10_p = {name: found.models[name].log10_p for name in controls(found)}
    clear = math.log10(CLEARLY * (1 - found.level))
    if not _passing(found) or not log10_p or min(log10_p.values()) <= clear:
        return []
    return [
        f"{name}: it is only just visible (p = {10**value:.2g}), so that another model that remembers these points as "
        "well as it does may not be: draw more points, or give reference models."
        for name, value in log10_p.items()
        if found.models[name].verdict == STILL_VISIBLE
    ]


def no_control(found: OneModelResult) -> str:
    """What is not shown of a model that is not visible, where none from before the deletion is beside it; else empty.

    Rows beside the wrong points, points that nobody learnt by heart, and a score that cannot see (one class's
    probability, say) all make a model that kept F look as if it had forgotten.
    """
    if controls(found) or not (passing := _passing(found)):
        return ""
    if is_from_before(passing[0]):
        return (
            f"{passing[0]} is called as the model from before the deletion is, and no other is in the file, so that "
            "nothing is shown of a deletion."
        )
    near = [name for name in found.models if nearly_reference(name) == "none"]
    meant = f" {listed(near)}: judged as a model of its own; if it is that one, call it before." if near else ""
    return (
        "No model from before the deletion is in the file (method = before), so it is not shown that these rows would "
        f"tell a model that remembers the points.{meant}"
    )


def names_of_tests(names: Iterable[str]) -> str:
    """Tests in a sentence; `gap, top 5%` is `gap (top 5%)` there, since a comma stands between two of them."""
    return listed([re.sub(", (.*)", r" (\1)", name) for name in names])


def _passing(found: OneModelResult) -> list[str]:
    """The models that are not visible, but for those from before the deletion beside them."""
    names = controls(found)
    return [
        name
        for name, model in found.models.items()
        if name not in names and model.verdict in (LIKE_RETRAIN, INCONCLUSIVE)
    ]


def warnings_on(found: OneModelResult) -> list[str]:
    """The warnings that are stored, and those that follow from the verdicts and the level."""
    lenient = []
    if found.level > USUAL_LEVEL and _passing(found):
        lenient.append(
            f"The level is {found.level:g}: a model is called still visible only where p is at most "
            f"{1 - found.level:.3g}, in place of {1 - USUAL_LEVEL:.3g}."
        )
    return list(dict.fromkeys([*found.warnings, *silent_controls(found).values(), *_faint_controls(found), *lenient]))


def seen_by(model: ModelResult) -> str:
    """How small an advantage its tests would have seen, in words."""
    if model.resolution is None:
        return "even an adversary who is always right would not have been seen"
    coarse = f", which is above {COARSE:g}: too coarse to say more" if model.verdict == INCONCLUSIVE else ""
    return f"an advantage of {plain(model.resolution)} would have been seen with a power of 80 %{coarse}"
