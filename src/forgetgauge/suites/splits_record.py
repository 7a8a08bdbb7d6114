"""`swap-vs-random.json`: everything the experiment found. Figure and page are made from it alone."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from forgetgauge.errors import UserError

SCHEMA = 1
_STRICT = {"extra": "forbid", "allow_inf_nan": False}  # read by pydantic in `read_record`; nothing here imports it


@dataclass(frozen=True)
class DeviationRecord:
    """A standard deviation over repetitions."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class AdversaryRecord:
    """One adversary's signed advantage against one method, over repetitions."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    mean: float
    """Of all splits, and so of both groupings."""
    swap: list[float]
    """½(Adv_s + Adv_s') of each swap pair."""
    random: list[float]
    """½(Adv_s₁ + Adv_s₂) of each two independent splits; the same models in another grouping."""
    swap_deviation: DeviationRecord
    """Interval by χ²."""
    random_deviation: DeviationRecord
    """Over all groupings, of which `random` shows one; interval by χ² with Satterthwaite's degrees of freedom."""
    correlation: float | None
    """ρ of Adv_s and Adv_s'; None where nothing varies."""
    variance_ratio: float | None
    """Variance for random splits / for swap pairs = 1/(1 + ρ); None where swap pairs do not vary."""
    variance_ratio_interval: tuple[float, float] | None
    """By the F distribution (Pitman and Morgan)."""


@dataclass(frozen=True)
class QualityRecord:
    """Q of single repetitions: 1 − the largest |advantage| of two models, as the paper estimates it; biased low."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    swap: list[float]
    random: list[float]
    swap_mean: float
    random_mean: float
    swap_deviation: DeviationRecord
    """Interval by the jackknife over blocks of two swap pairs, which are two random repetitions too; approximate."""
    random_deviation: DeviationRecord


@dataclass(frozen=True)
class MethodRecord:
    """One unlearning method."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    by_adversary: dict[str, AdversaryRecord]
    quality: QualityRecord


@dataclass(frozen=True)
class LookupRecord:
    """The look-up adversary of Proposition 3.9, which looks at no model: the same against every method."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    queries: int | None
    """How many points it may ask for; None: as many as it likes."""
    swap: list[float]
    random: list[float]


@dataclass(frozen=True)
class SwapVsRandom:
    """The whole experiment."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    takeaway: str
    """One sentence per finding, from the numbers."""
    repetitions: int
    """Of either grouping; each repetition is two splits, so two unlearned models per method and seed."""
    adversary: str
    """The one drawn: of the largest |mean advantage| against any method."""
    methods: dict[str, MethodRecord]
    lookup: list[LookupRecord]
    level: float
    settings: dict[str, Any]
    """Data, α, set sizes, seed and learner of the run."""
    environment: dict[str, str]
    digests: dict[str, str]
    """Of the data, and of all decisions that went in."""
    schema: int = SCHEMA

    def to_json(self) -> str:
        """The text of the file; methods and adversaries keep their order, which is the figure's."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_record(path: Path) -> SwapVsRandom:
    """A validated record, or one line on what is wrong with the file."""
    import pydantic

    try:
        record = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; has the experiment finished?") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else None
        raise UserError(f"{path}: schema {found!r}, but this version reads {SCHEMA}")
    try:
        return pydantic.TypeAdapter(SwapVsRandom).validate_python(record)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None
