"""What an audit file holds, checked column by column; whether its rows make a game is `rounds`' business."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.signals import Signals
from forgetgauge.auditing.references import REFERENCE, References, arranged
from forgetgauge.errors import UserError
from forgetgauge.tasks.classification import MOST_CLASSES, are_probabilities
from forgetgauge.wording import is_text

Array = npt.NDArray[Any]
Raw = Mapping[str, Array]

REQUIRED = ("pair", "side", "point", "set")
OPTIONAL = ("method", "seed", "label", "weight", "logits", "score", "loss", "decision", "share_retrain")
SHADOW = (
    "shadow_label",
    "shadow_member",
    "shadow_model",
    "shadow_method",
    "shadow_logits",
    "shadow_score",
    "shadow_loss",
)
PERSON = ("person", "shadow_person")
"""Whose a record is; each person is merged into one point before the columns are checked."""
KNOWN = frozenset({*REQUIRED, *OPTIONAL, *SHADOW, *REFERENCE, *PERSON, "features"})
"""Every column that an audit file may have."""
IN_GAME = ("forget", "unseen")
"""Where a point of the game may be, as the column set says."""
OWN_SCORES = ("score", "loss")
"""Columns of one number for each point; a loss is a score whose smaller values are those of training points."""
DEFAULT_METHOD = "model"
ROUNDED_SUM = 0.05
"""How far from 1 a row of probabilities may add up: of half precision, or rounded to two decimals."""
LARGEST = 1e300
"""Scores beyond it count as it, so that a mean of many, or a difference, is a number too."""
ZERO_PROBABILITY = float(np.log(np.finfo(np.float32).tiny))
"""Stands for log 0: −87.3, unless the column has a smaller number."""


def sign_of(name: str) -> int:
    """−1 for a column of losses, which are smaller at familiar points; 1 for any other score."""
    return -1 if name == "loss" else 1


@dataclass(frozen=True)
class Outputs:
    """One row for each method, pair, side, seed and point of F ∪ T."""

    method: npt.NDArray[np.str_]
    pair: Array
    side: npt.NDArray[np.int64]
    seed: Array
    point: Array
    in_forget: npt.NDArray[np.bool_]
    label: npt.NDArray[np.int64]
    """0 everywhere where the file has no labels."""
    weight: npt.NDArray[np.float64]
    """P_D in any scale; 1 everywhere where the file has no weights."""
    logits: npt.NDArray[np.float32] | None
    scores: Mapping[str, npt.NDArray[np.float64]]
    """The columns of OWN_SCORES that the file has, as they stand there."""
    decision: npt.NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.side)

    @property
    def methods(self) -> list[str]:
        """The names of the methods, in the order of the file."""
        return list(dict.fromkeys(self.method.tolist()))

    def signals(self, rows: npt.NDArray[np.int64], at: npt.NDArray[np.int64] | None = None) -> Signals:
        """The logits of some rows as adversaries see them, with their places among the references' points."""
        assert self.logits is not None
        return Signals(self.logits[rows], self.label[rows], at)


@dataclass(frozen=True)
class ShadowRows:
    """One row for each shadow model and point it was shown."""

    label: npt.NDArray[np.int64]
    member: npt.NDArray[np.bool_]
    model: Array
    method: npt.NDArray[np.str_] | None
    """The method whose adversaries are fitted on the row; None where all rows serve all methods."""
    logits: npt.NDArray[np.float32] | None
    scores: Mapping[str, npt.NDArray[np.float64]]
    """The columns of OWN_SCORES that the shadow rows have, as they stand there."""

    def of_method(self, method: str) -> npt.NDArray[np.int64]:
        """The rows that serve a method."""
        return np.arange(len(self.member)) if self.method is None else np.flatnonzero(self.method == method)


@dataclass(frozen=True)
class AuditFile:
    """All that an audit file holds, checked."""

    source: str
    """Its name, which begins every message."""
    digest: str
    """SHA-256 of its bytes."""
    outputs: Outputs
    shadows: ShadowRows | None
    n_classes: int
    weighted: bool
    """Whether the file has weights of its own."""
    share_retrain: bool
    """Whether the file says that both sides of a pair share one retrained model."""
    notes: tuple[str, ...] = ()
    """What was changed in reading it, for the result to say."""
    references: References | None = None
    """What reference models say of the points under audit."""
    features: npt.NDArray[np.float64] | None = None
    """(rows, columns) the raw points, which no model has had a hand in."""


def meant_set(given: str, valid: Sequence[str]) -> str:
    """A hint where a value of the column set differs from a valid one by its spelling alone."""
    plain = re.sub(r"[\s_-]", "", given).lower()
    return "".join(f"; did you mean {name!r}?" for name in valid if name.replace("-", "") == plain)


class Reader:
    """Takes the named arrays of a file, whose shapes fit, to pieces, refusing what does not fit."""

    def __init__(self, source: str, raw: Raw, notes: Sequence[str] = (), *, needs_shadows: bool = True) -> None:
        self.source, self.raw, self.needs_shadows = source, raw, needs_shadows
        self.notes = [*notes]

    def file(self, digest: str) -> AuditFile:
        self._check_names()
        if len(self.raw["pair"]) == 0:
            self._refuse("it has no rows, but an audit needs at least one pair")
        logits, scores, decision = self._logits("logits"), self._scores(""), self._bools("decision")
        if logits is None and not scores and decision is None:
            self._refuse("nothing to judge: it needs one of logits, score, loss, decision")
        if logits is not None and "label" not in self.raw:
            self._refuse("logits need the true label of each point: label is missing")
        n = len(self.raw["pair"])
        outputs = Outputs(
            method=self._method("method", n),
            pair=self._ids("pair"),
            side=self._sides(),
            seed=self._ids("seed") if "seed" in self.raw else np.zeros(n, dtype=np.int64),
            point=self._ids("point"),
            in_forget=self._in_forget(),
            label=self._labels("label", n),
            weight=self._weights(n),
            logits=logits,
            scores=scores,
            decision=decision,
        )
        shadows = self._shadows(outputs)
        return AuditFile(
            self.source,
            digest,
            outputs,
            shadows,
            self._n_classes(outputs, shadows),
            weighted=len(np.unique(outputs.weight)) > 1,  # equal ones are none
            share_retrain=self._share_retrain(),
            references=self._references(outputs),
            features=None if "features" not in self.raw else self._finite("features", np.float64),
            notes=tuple(self.notes),
        )

    def _references(self, outputs: Outputs) -> References | None:
        given = [name for name in REFERENCE if name in self.raw]
        if not given:
            return None
        if "reference_point" not in self.raw:
            self._refuse(f"{given[0]} needs reference_point: which point under audit each row is of")
        said = [name for name in ("logits", *OWN_SCORES) if f"reference_{name}" in self.raw]
        if not said:
            self._refuse("reference models say nothing: give reference_logits, reference_score or reference_loss")
        for name in said:
            if name not in self.raw:
                self._refuse(f"reference_{name} has nothing to be compared with: the column {name} is missing")
        n, member = len(self.raw["reference_point"]), self._bools("reference_member")
        if n == 0:
            self._refuse("no row of a reference model is of a point under audit: do both name the points alike?")
        columns: dict[str, Array] = {
            "point": self._ids("reference_point"),
            "model": self._ids("reference_model") if "reference_model" in self.raw else np.zeros(n, dtype=np.int64),
            "member": np.zeros(n, dtype=np.bool_) if member is None else member,
            **self._scores("reference_"),
        }
        logits = self._logits("reference_logits")
        if logits is not None:
            assert outputs.logits is not None
            if logits.shape[1] != outputs.logits.shape[1]:
                self._refuse(
                    f"logits have {outputs.logits.shape[1]} classes, but reference_logits have {logits.shape[1]}"
                )
            columns["logits"] = logits
        return arranged(self.source, columns, outputs.point, outputs.label)

    def _shadows(self, outputs: Outputs) -> ShadowRows | None:
        given = [name for name in SHADOW if name in self.raw]
        fitted = [name for name in ("logits", *OWN_SCORES) if name in self.raw]
        if not fitted:
            if given:
                self._refuse(f"{given[0]} serves no purpose: own decisions are not fitted")
            return None
        if "shadow_member" not in self.raw and not self.needs_shadows and not given:
            return None
        if "shadow_member" not in self.raw:
            lacking = "no shadow block and no decision column" if outputs.decision is None else "no shadow block"
            self._refuse(
                f"{lacking}: thresholds for {fitted[0]} are fitted on shadow models; give shadow_{fitted[0]}, "
                "shadow_label and shadow_member, or the decisions alone"
            )
        n = len(self.raw["shadow_member"])
        for name in fitted:
            if f"shadow_{name}" not in self.raw:
                self._refuse(f"{name} needs shadow_{name} to fit its threshold on")
        if "label" in self.raw and "shadow_label" not in self.raw:
            self._refuse("shadow_label is missing: thresholds are fitted for each class")
        member = self._bools("shadow_member")
        assert member is not None
        return ShadowRows(
            label=self._labels("shadow_label", n) if "label" in self.raw else np.zeros(n, dtype=np.int64),
            member=member,
            model=self._ids("shadow_model") if "shadow_model" in self.raw else np.zeros(n, dtype=np.int64),
            method=self._method("shadow_method", n) if "shadow_method" in self.raw else None,
            logits=self._logits("shadow_logits") if "logits" in fitted else None,
            scores={name: column for name, column in self._scores("shadow_").items() if name in fitted},
        )

    def _n_classes(self, outputs: Outputs, shadows: ShadowRows | None) -> int:
        labels = [outputs.label] if shadows is None else [outputs.label, shadows.label]
        seen = 1 + max(int(label.max(initial=0)) for label in labels)
        if outputs.logits is None:
            return seen
        n_classes = int(outputs.logits.shape[1])
        of_shadows = None if shadows is None else shadows.logits
        if of_shadows is not None and of_shadows.shape[1] != n_classes:
            self._refuse(f"logits have {n_classes} classes, but shadow_logits have {of_shadows.shape[1]}")
        if seen > n_classes:
            self._refuse(f"label {seen - 1} does not fit logits of {n_classes} classes (0 to {n_classes - 1})")
        return n_classes

    # -- columns -------------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        for name in PERSON:
            if name in self.raw:
                self._refuse(f"{name} has no use here: leave the column out")
        for name in REQUIRED:
            if name not in self.raw:
                one = "; of one model alone, give --draw or --requests" if name in ("pair", "side") else ""
                self._refuse(f"the column {name} is missing{one}")

    def _ids(self, name: str) -> Array:
        column = self.raw[name]
        if column.dtype.kind in "iu":
            return column.astype(np.int64 if column.max(initial=0) < 2**63 else np.str_)
        if column.dtype.kind != "U":
            self._refuse(f"{name} must be whole numbers or text, not {column.dtype}")
        return self._text(name, column)

    def _text(self, name: str, column: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
        if not all(map(is_text, np.unique(column).tolist())):
            self._refuse(f"{name} has a text with half of a character, which cannot be written down")
        return column

    def _method(self, name: str, n: int) -> npt.NDArray[np.str_]:
        column = self.raw.get(name, np.full(n, DEFAULT_METHOD))
        if column.dtype.kind != "U":
            self._refuse(f"{name} must be text, not {column.dtype}")
        return self._text(name, column)

    def _sides(self) -> npt.NDArray[np.int64]:
        column = self.raw["side"]
        if column.dtype.kind not in "iu" or not np.isin(column, (0, 1)).all():
            self._refuse("side must be 0 (the split) or 1 (its swap)")
        return column.astype(np.int64)

    def _in_forget(self) -> npt.NDArray[np.bool_]:
        column = self.raw["set"]
        odd = column[~np.isin(column, IN_GAME)] if column.dtype.kind == "U" else column
        if len(odd) > 0:
            self._refuse(f"set must be forget or unseen, not {str(odd[0])!r}{meant_set(str(odd[0]), IN_GAME)}")
        in_forget: npt.NDArray[np.bool_] = column == "forget"
        return in_forget

    def _labels(self, name: str, n: int) -> npt.NDArray[np.int64]:
        column = self.raw.get(name, np.zeros(n, dtype=np.int64))
        if column.dtype.kind not in "iu" or column.min(initial=0) < 0:
            self._refuse(f"{name} must be whole numbers 0, 1, …")
        if column.max(initial=0) >= MOST_CLASSES:
            self._refuse(f"{name} must be numbers of classes, below {MOST_CLASSES:,}, but one is {column.max()}")
        return column.astype(np.int64)

    def _weights(self, n: int) -> npt.NDArray[np.float64]:
        weight = self._floats("weight")
        if weight is None:
            return np.ones(n)
        if (weight < 0).any():
            self._refuse("weight must not be negative")
        return weight

    def _bools(self, name: str) -> npt.NDArray[np.bool_] | None:
        """Booleans, or 0 and 1."""
        column = self.raw.get(name)
        if column is None or column.dtype == np.bool_:
            return column
        if column.dtype.kind not in "iu":
            self._refuse(f"{name} must be booleans or 0 and 1, not {column.dtype}")
        odd = column[(column != 0) & (column != 1)]
        if len(odd) > 0:
            self._refuse(f"{name} must be booleans or 0 and 1, but one of its values is {odd[0]}")
        return column.astype(np.bool_)

    def _share_retrain(self) -> bool:
        if "share_retrain" not in self.raw:
            return False
        self.raw = {**self.raw, "share_retrain": np.atleast_1d(self.raw["share_retrain"])}
        column = self._bools("share_retrain")
        assert column is not None
        if column.any() and not column.all():
            self._refuse("share_retrain must be the same in all rows: both sides share one retrained model, or not")
        return bool(column.any())

    def _scores(self, prefix: str) -> dict[str, npt.NDArray[np.float64]]:
        found = {name: self._floats(f"{prefix}{name}") for name in OWN_SCORES}
        return {name: np.clip(column, -LARGEST, LARGEST) for name, column in found.items() if column is not None}

    def _floats(self, name: str) -> npt.NDArray[np.float64] | None:
        return None if name not in self.raw else self._finite(name, np.float64)

    def _logits(self, name: str) -> npt.NDArray[np.float32] | None:
        """In float32, as a run keeps them."""
        if name not in self.raw:
            return None
        logits = self._finite(name, np.float32, log_zero=True)
        if logits.shape[1] < 2:
            self._refuse(
                f"{name} have {logits.shape[1]} columns, but there must be one for each of at least two classes; of "
                "one probability, a sigmoid's p, give log(1 − p) and log(p)"
            )
        for whole in (1, 100):
            if are_probabilities(np.divide(logits, whole, dtype=np.float32), ROUNDED_SUM):
                self._refuse(
                    f"{name} are probabilities (all rows lie in [0, {whole}] and add up to {whole}); give the logits, "
                    "or the logarithms of the probabilities"
                )
        if len(logits) and logits.min() >= 0 and logits.max() <= 1:
            self.notes.append(
                f"{name} all lie in [0, 1], as logits seldom do: of probabilities of each class by itself, give their "
                "logits, log(p / (1 − p))."
            )
        return logits

    def _finite(self, name: str, dtype: type[Any], *, log_zero: bool = False) -> Array:
        column = self.raw[name]
        if column.dtype.kind not in "fiu":
            self._refuse(f"{name} must be numbers, not {column.dtype}")
        with np.errstate(over="ignore"):
            column = column.astype(dtype)
        if log_zero:
            column = self._without_log_zero(name, column)
        finite = np.isfinite(column).all(axis=tuple(range(1, column.ndim)))
        if not finite.all():
            first, n = int(np.flatnonzero(~finite)[0]), int((~finite).sum())
            self._refuse(f"{name}: NaN or infinite in {n} of {len(column)} rows, {self._place(name, first)} first")
        return column

    def _place(self, name: str, row: int) -> str:
        """Where a row is: its point has a name in every format; rows of a table are counted over all sets."""
        block = next((block for block in ("shadow_", "reference_") if name.startswith(block)), "")
        points = self.raw.get(f"{block}point")
        return f"number {row + 1} (counted from 1)" if points is None else f"that of point {points[row]}"

    def _without_log_zero(self, name: str, column: Array) -> Array:
        """−∞ is the logarithm of a probability of 0: clipped, unless a row has nothing else."""
        zero = np.isneginf(column)
        n_rows = int(zero.any(axis=1).sum())
        if n_rows == 0 or zero.all(axis=1).any():
            return column
        clipped = min(ZERO_PROBABILITY, float(column[~zero].min()))
        self.notes.append(f"{name}: −∞ in {n_rows} of {len(column)} rows was taken as {clipped:.1f}.")
        return np.where(zero, column.dtype.type(clipped), column)

    def _refuse(self, what: str) -> NoReturn:
        raise UserError(f"{self.source}: {what}")
