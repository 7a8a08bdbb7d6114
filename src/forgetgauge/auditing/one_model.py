"""`audit FILE --draw draw.json`: the exact test of the one model that its owner has, by its outputs on F and T.

`audit FILE --requests` is the same where F was not drawn but asked for: the file says which points are F and T, and
whether they can be told apart without the model is tested first.

No swap, no second training and no shadow models are needed. Where the file has shadow models, adversaries are fitted on
them as in an audit of swap pairs; where it has none, every score is tested by the ranks that F has in it, which needs
no threshold. Either way the answers are made without knowing which points are in F.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack import signals as read
from forgetgauge.attack.signals import Reading
from forgetgauge.auditing.adversaries import OWN_DECISIONS, adversaries_of
from forgetgauge.auditing.blind import blind_test, digests_of, what_features_miss
from forgetgauge.auditing.checks import accuracy_warnings
from forgetgauge.auditing.draw import Draw, check_list, read_draw
from forgetgauge.auditing.outputs import AuditFile
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.auditing.reference_scores import (
    own_scores,
    reference_scores,
    refuse_copies,
    refuse_followers,
    refuse_knowing,
    refuse_reversed,
)
from forgetgauge.auditing.swap_pairs import environment
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.game.arrays import Bools, Floats, Ints, group_means
from forgetgauge.game.blind import correlation_floor
from forgetgauge.game.one_model import ModelTest, groups_test, half_test, pairs_test, ranks_test, top_test
from forgetgauge.plan.spec import PARAMETERS, GameSpec
from forgetgauge.progress import Watch, steps, unwatched
from forgetgauge.report.interactive import Evidence
from forgetgauge.results.one_model import (
    DRAWN,
    REQUESTS,
    Basis,
    ModelResult,
    blunted,
    is_from_before,
    judged_model,
    rests_on,
    warnings_on,
)
from forgetgauge.results.verdict import STILL_VISIBLE
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.wording import listed

TOP = 0.05
"""The share of the largest scores that are tested by themselves: what an attacker sees who must seldom be wrong."""
READINGS: dict[str, Reading] = {
    "loss": read.NEGATIVE_LOSS,
    "entropy": read.NEGATIVE_ENTROPY,
    "modified-entropy": read.NEGATIVE_MODIFIED_ENTROPY,
    "gap": read.GAP,
}
"""Scores of logits that need nothing to be fitted."""


def audit_one_model(
    path: str | Path,
    draw: str | Path | None = None,
    *,
    requests: bool = False,
    points: str | Path | None = None,
    adversaries: Sequence[str] | None = None,
    level: float = GameSpec.level,
    delta: float = GameSpec.delta,
    states: Sequence[str] | None = (),
    progress: Watch = unwatched,
) -> Evidence:
    """Test the model, or each of several, whose outputs on the points of F and T are in a `.npz` or `.csv` file.

    The file has a column `point`, and one of `logits` (with `label`), `score`, `loss`, `decision`. Which points are F
    and T the draw says; with `requests` in its place, the file's column `set`. `points` is the list that was drawn
    from, which the draw is then held to. `states` are the names of what the
    tester states that the test may rest on, or `all`.
    """
    if (draw is not None) == requests:
        raise UserError("give either the draw (--draw draw.json), or --requests where F was not drawn")
    level, delta = PARAMETERS["game.level"].number(level, "level"), PARAMETERS["game.delta"].number(delta, "delta")
    origin = REQUESTS if requests else DRAWN
    statements = rests_on(origin)
    states = [states] if isinstance(states, str) else states or ()
    adversaries = [adversaries] if isinstance(adversaries, str) else adversaries
    for name in states:
        if name not in (*statements, "all"):
            raise UserError(unknown_name("statement", name, [*statements, "all"]))
    made = None if draw is None else read_draw(Path(draw))
    if points is not None:
        if made is None:
            raise UserError("the list of points (--points) belongs to a draw (--draw)")
        check_list(Path(points), made)
    file = read_audit_file(Path(path), made, requests=requests)
    split = made or _requested(file)
    audit = _OneModelAudit(file, split, adversaries, level, delta, origin=origin)
    names = file.outputs.methods
    tell, models = steps(progress, len(names)), {}
    for method in names:
        tell(f"testing {method}")
        models[method] = audit.judged(method)
    tell("done")
    audit.warn_of_order(models)
    found = Evidence(
        kind=split.kind,
        n_forget=split.n_forget,
        commitment=split.commitment,
        seed=split.seed or "",
        seed_from=split.seed_from or "",
        own_draw=made is not None and made.is_own,
        digests={
            "file": file.digest,
            **({} if draw is None else {"draw": hashlib.sha256(Path(draw).read_bytes()).hexdigest()}),
        },
        level=level,
        delta=delta,
        stated={name: name in states or "all" in states for name in statements},
        models=models,
        environment=environment(),
        warnings=[*file.notes, *audit.notes],
        origin=origin,
        n_unseen=None if made else len(split.unseen or ()),
        blind=audit.blind,
        list_shown=points is not None,
        committed_first=split.committed_first,
    )
    return replace(found, warnings=warnings_on(found))


def _requested(file: AuditFile) -> Draw:
    """F and T as the file says; nobody drew them."""
    outputs = file.outputs
    names = outputs.point.astype(str)
    sides = [sorted(set(names[side].tolist())) for side in (outputs.in_forget, ~outputs.in_forget)]
    for name, side in zip(("forget", "unseen"), sides, strict=True):
        if not side:
            raise UserError(f"{file.source}: no point has the set {name}; the test compares points of both sorts")
    both = sorted(set(sides[0]) & set(sides[1]))
    if both:
        raise UserError(
            f"{file.source}: point {both[0]} is in forget and in unseen; it must be the same for all models"
        )
    if file.features is not None:
        _refuse_two_values(file, "features", file.features)
    return Draw("points", "", sum(len(side) for side in sides), len(sides[0]), None, forget=sides[0], unseen=sides[1])


def _refuse_two_values(file: AuditFile, what: str, values: npt.NDArray[Any]) -> None:
    """UserError of a point of which rows of several models say different things that do not depend on the model."""
    names = file.outputs.point.astype(str)
    _, first, place = np.unique(names, return_index=True, return_inverse=True)
    differs = np.flatnonzero((values != values[first][place]).reshape(len(names), -1).any(axis=1))
    if len(differs):
        raise UserError(f"{file.source}: point {names[differs[0]]} appears with different {what}")


class _OneModelAudit:
    """A checked file, the draw that it is judged by, and who plays."""

    def __init__(
        self,
        file: AuditFile,
        draw: Draw,
        adversaries: Sequence[str] | None,
        level: float,
        delta: float,
        *,
        origin: str = DRAWN,
    ) -> None:
        self.file, self.draw, self.level, self.delta = file, draw, level, delta
        self.notes: list[str] = []
        self.origin = origin
        self.named: set[str] | None = None
        first = self._rows(file.outputs.methods[0])
        _refuse_two_values(file, "labels, but a label is the true class and no answer of a model", file.outputs.label)
        in_forget = file.outputs.in_forget[first]
        refuse_followers(file, first, in_forget, self._units(first) if draw.kind == "groups" else None)
        refuse_reversed(
            file,
            self._units_of(file.references.points) if file.references is not None and draw.kind == "groups" else None,
        )
        for method in file.outputs.methods:
            refuse_copies(file, method, self._rows(method))
        if origin == DRAWN:  # of requests, that references tell F from T is what the blind test finds
            units = self._units(first)
            refuse_knowing(file, first, lambda score: self._test(None, score, in_forget, units))
        scored = [*self._scores(first)]
        fitted = None if adversaries is None else [name for name in adversaries if name not in scored]
        if file.shadows is None and fitted:
            plugins.adversaries.load(fitted[0])  # which refuses a name that nobody knows
            raise UserError(
                f"{file.source}: '{fitted[0]}' is fitted on shadow models, of which the file has none; "
                f"without them there are {listed(scored or [OWN_DECISIONS])}"
            )
        self.named = None if adversaries is None else set(adversaries)
        self.declared = None if file.shadows is None else adversaries_of(file, fitted).without(scored)
        if self.named is not None:
            usual = [*scored, *(() if file.shadows is None else adversaries_of(file, None).names)]
            idle = [name for name in dict.fromkeys(usual) if name not in self.named and not name.startswith("own ")]
            if idle:
                self.notes.append(
                    f"{listed(idle)} could have attacked and {'were' if len(idle) > 1 else 'was'} not asked "
                    "(--adversary): what those that were asked do not see may be seen all the same."
                )
        self.blind = None
        if origin == REQUESTS:
            rows = [self._rows(method) for method in file.outputs.methods]
            self.blind = blind_test(file, rows, in_forget, READINGS, level)
            self.notes += what_features_miss(file, rows, in_forget, READINGS, level)

    def judged(self, method: str) -> ModelResult:
        """Every adversary's answers about one model."""
        rows = self._rows(method)
        in_forget, units = self.file.outputs.in_forget[rows], self._units(rows)
        tests: dict[str, ModelTest] = {}
        for name, says, score in self._answers(method, rows):
            if _is_constant(says) and _is_constant(score):
                self.notes.append(f"{method}: {name} says the same of all points, which measures nothing: left out.")
                continue
            if says is not None and _is_constant(says):
                self.notes.append(f"{method}: {name} answers alike for all points: its scores were tested instead.")
                says = None
            test = self._test(says, score, in_forget, units)
            if not test.told:
                self.notes.append(f"{method}: {name} tells no pair apart, which measures nothing: left out.")
                continue
            tests[name] = test
            n_top = round(TOP * len(rows))
            if score is not None and self.draw.kind == "points" and n_top >= 1:
                tests[f"{name}, top {TOP:.0%}"] = top_test(score, in_forget, n_top)
            if score is not None and self.draw.kind == "groups":
                tests[f"{name}, mean of each {self.draw.by}"] = _means_test(score, in_forget, units)
        if not tests:
            raise UserError(
                f"{self.file.source}: {method}: every score and decision is the same for all points, or for both of "
                "each pair, so nothing was measured"
            )
        n_forget = int(in_forget.sum()) if self.draw.kind == "points" else self.draw.n_forget
        basis = Basis(
            self.draw.kind,
            n_forget,
            None if self.blind is None else len(rows) - n_forget,
            self.level,
            self.delta,
            self.blind,
        )
        found = judged_model(tests, basis, self._utility(rows, in_forget))
        self._warn(method, found)
        self.notes += [
            f"{method}: {name} says the same of so many points that it sees little: the resolution is of the others."
            for name in blunted(found, basis)
        ]
        return found

    def _warn(self, method: str, found: ModelResult) -> None:
        """What speaks against the file rather than for the model."""
        if found.verdict == STILL_VISIBLE and found.tests[found.best].advantage < 0:
            self.notes.append(
                f"{method}: F looks less familiar than T, so that it was forgotten too well, or made to be answered "
                "wrongly; unless T was in the training, or the sign of the scores, or the two sets, were exchanged"
                f"{', or a reference model was trained on F' * (self.file.references is not None)}."
            )
        self.notes += accuracy_warnings(self.file, {method: found.utility})

    def warn_of_order(self, models: Mapping[str, ModelResult]) -> None:
        """Rows of a model that may stand beside the wrong points, though those of the model from before do not.

        Points of T, which neither was trained on, are hard or easy for both: what the two say of them goes together.
        """
        before = [name for name, model in models.items() if is_from_before(name) and model.verdict == STILL_VISIBLE]
        after = [name for name, model in models.items() if not is_from_before(name) and model.verdict != STILL_VISIBLE]
        for name in after if before else []:
            sides = [self._rows(one) for one in (before[0], name)]
            one, other = (own_scores(self.file, rows[~self.file.outputs.in_forget[rows]], READINGS) for rows in sides)
            tail = (1 - self.level) / max(1, len(one))
            alike = max((correlation_floor(one[score], other[score], tail) for score in one), default=1.0)
            if alike <= 0:
                self.notes.append(
                    f"{name}: what it says of T is not shown to go with what {before[0]} says, as it would for two "
                    "models of one kind: its rows may stand beside the wrong points, and then it is never visible."
                )

    def _rows(self, method: str) -> Ints:
        """Of one model, each point once, in the order of their ids, by which ties fall.

        Ids that were given before a draw say nothing of it. Those of requests may: the order is of their SHA-256.
        """
        outputs = self.file.outputs
        rows = np.flatnonzero(outputs.method == method)
        names = outputs.point[rows].astype(str)
        order = np.argsort(names if self.origin == DRAWN else digests_of(names), kind="stable")
        names, rows = names[order], rows[order]
        again = np.flatnonzero(names[1:] == names[:-1])
        if len(again):
            raise UserError(f"{self.file.source}: {method}: point {names[again[0]]} appears more than once")
        missing = np.setdiff1d([*(self.draw.forget or ()), *(self.draw.unseen or ())], names)
        if len(missing):
            whose = (
                "of the draw is missing; what is left out must not depend on what the model says"
                if self.origin == DRAWN
                else "is missing, which another model has"
            )
            raise UserError(f"{self.file.source}: {method}: point {missing[0]} {whose}")
        return rows

    def _units(self, rows: Ints) -> Ints:
        """(n,) the group or pair of each row, as numbers."""
        return self._units_of(self.file.outputs.point[rows].astype(str))

    def _units_of(self, names: npt.NDArray[np.str_]) -> Ints:
        of = self.draw.unit_of or {}
        units: Ints = np.unique([of.get(name, name) for name in names.tolist()], return_inverse=True)[1]
        return units

    def _answers(self, method: str, rows: Ints) -> list[tuple[str, Bools | None, Floats | None]]:
        """(adversary, whom it calls forgotten, its scores) of everyone who plays; one of the two may be missing."""
        outputs = self.file.outputs
        found: list[tuple[str, Bools | None, Floats | None]] = []
        if self.declared is not None:
            fitted = self.declared.fitted_for(method)
            self.notes += [line for one in fitted for line in one.notes if line not in self.notes]
            found += [
                (name, one.decide(rows), None if one.margin is None else one.margin(rows))
                for name, one in zip(self.declared.names, fitted, strict=True)
            ]
        elif outputs.decision is not None:
            found.append((OWN_DECISIONS, outputs.decision[rows], None))
        return [*((name, None, score) for name, score in self._scores(rows).items()), *found]

    def _scores(self, rows: Ints) -> dict[str, Floats]:
        """Name -> (n,) the scores that are tested by their ranks and need no threshold."""
        own = own_scores(self.file, rows, READINGS) if self.file.shadows is None else {}
        scores = own | reference_scores(self.file, rows)
        if self.named is None:
            return scores
        return {name: score for name, score in scores.items() if name in self.named or name.startswith("own ")}

    def _test(self, says: Bools | None, score: Floats | None, in_forget: Bools, units: Ints) -> ModelTest:
        if self.draw.kind == "pairs" and score is not None:
            return pairs_test(_above_its_partner(score, units), in_forget, units)
        if says is None:
            assert score is not None
            if self.draw.kind == "points":
                return ranks_test(score, in_forget)
        says = self._says(says, score)
        if self.draw.kind == "points":
            return half_test(says, in_forget)
        return (groups_test if self.draw.kind == "groups" else pairs_test)(says, in_forget, units)

    def _says(self, says: Bools | None, score: Floats | None) -> Bools:
        """Whom an adversary calls forgotten; of a score without a threshold, the larger half.

        Not as many as F has: groups are not of one size, so that number would tell of the draw.
        """
        if says is not None:
            return says
        assert score is not None
        return _larger_half(score)

    def _utility(self, rows: Ints, in_forget: Bools) -> dict[str, float]:
        outputs = self.file.outputs
        if outputs.logits is None:
            return {}
        parts: Mapping[str, Ints] = {"forget": rows[in_forget], "unseen": rows[~in_forget]}
        return {name: CLASSIFICATION.utility(outputs.logits[part], outputs.label[part]) for name, part in parts.items()}


def _is_constant(answers: Bools | Floats | None) -> bool:
    """Whether all answers are equal; missing answers count as constant."""
    return answers is None or bool((answers == answers[0]).all())


def _larger_half(score: Floats) -> Bools:
    """Who has the larger scores: a half, or as near to it as equal scores, which are answered alike, allow."""
    _, counts = np.unique(score, return_counts=True)
    n_above = len(score) - np.cumsum(counts)[:-1]  # than each value but the largest
    n_said = int(n_above[::-1][np.abs(n_above[::-1] - len(score) // 2).argmin()])
    says: Bools = score >= np.sort(score)[-n_said]
    return says


def _means_test(score: Floats, in_forget: Bools, group: Ints) -> ModelTest:
    """Of whole groups, each by the mean score of its points, as an adversary sees it who is shown all of a person's
    records: the groups were drawn, so the ranks of their means are those of points."""
    return ranks_test(group_means(score, group), group_means(in_forget, group) > 0)


def _above_its_partner(score: Floats, pair: Ints) -> Bools:
    """For each point, whether it scores higher than its partner; False for both on a tie."""
    order = np.argsort(pair, kind="stable")
    first, second = order[::2], order[1::2]
    says: Bools = np.zeros(len(score), dtype=np.bool_)
    says[first], says[second] = score[first] > score[second], score[second] > score[first]
    return says
