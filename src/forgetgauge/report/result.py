"""The versioned record of a run: `result.json`. A report is rebuilt from it alone."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from forgetgauge.errors import UserError

SCHEMA = 1
_STRICT = {"extra": "forbid", "allow_inf_nan": False}  # read by pydantic in `read_result`; nothing here imports it
TIMINGS = frozenset({"seconds", "total_seconds"})
"""Keys that may differ between two runs of the same thing."""

Basis = Literal["over pairs", "given these models"]


@dataclass(frozen=True)
class AdversaryResult:
    """What one adversary achieved against one method."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    advantage: float
    """Signed SWAP advantage, averaged over pairs, sides and seeds; 0 is no advantage."""
    interval: tuple[float, float]
    """For that advantage, this adversary taken alone."""
    by_pair: list[float]
    """Signed advantage of each swap pair, averaged over its seeds."""


@dataclass(frozen=True)
class MethodResult:
    """One unlearning method."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    quality: float | None
    """Q = 1 − max over adversaries of |advantage|; None where no pair was completed."""
    interval: tuple[float, float] | None
    """For Q, simultaneous over the adversaries (Bonferroni)."""
    adversary: str | None
    """The adversary with the largest |advantage|."""
    by_adversary: dict[str, AdversaryResult]
    p_value: float | None
    """Of “no different from Retrain”, by relabelling F ∪ T."""
    noise_floor: float | None
    """95 % of relabellings give a smaller max |advantage| than this: below it, an advantage may be chance."""
    n_pairs: int
    """Swap pairs that were completed."""
    accuracy: dict[str, float]
    """Mean accuracy on `retain`, `forget`, `unseen` (T) and, where the data set has one, the official `test` set."""
    n_gradients: float
    """Per-example gradients evaluated per unlearned model."""
    seconds: float
    """Wall time per unlearned model."""


@dataclass(frozen=True)
class FailureResult:
    """A job that failed for good."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    job: str
    """Which, in words."""
    error: str
    """Its error in one line; the traceback is in the run folder."""
    traceback: str
    """File name of the traceback, inside the run folder."""


@dataclass(frozen=True)
class NoiseFloorResult:
    """What advantage chance alone gives in this game, from the method that knows nothing of F where there is one."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    method: str
    """Whose models it was computed with."""
    mean: float
    """Mean of max |advantage| over relabellings."""
    q95: float
    """Its 95th percentile."""


@dataclass(frozen=True)
class GameResult:
    """One game: a table of methods."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    value: Any
    """The swept value; None without a sweep."""
    spec: dict[str, Any]
    """Every choice of the game, resolved."""
    methods: dict[str, MethodResult]
    noise_floor: NoiseFloorResult | None
    interval_basis: Basis | None
    """`over pairs` (what new splits and trainings would give), or `given these models` where pairs are too few."""


@dataclass(frozen=True)
class Result:
    """A whole run."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    environment: dict[str, str]
    """Versions and machine."""
    digests: dict[str, str]
    """SHA-256 of the data and of all decisions taken together."""
    games: list[GameResult]
    """One, or one for each value of the sweep."""
    failures: list[FailureResult] = field(default_factory=list)
    sweep: str | None = None
    """The swept key."""
    total_seconds: float = 0.0
    """Work done for this result, summed over processes."""
    schema: int = SCHEMA

    @property
    def methods(self) -> dict[str, MethodResult]:
        """The methods of a run without a sweep."""
        if self.sweep is not None:
            raise AttributeError("a sweep has one table of methods per game: see `games`")
        return self.games[0].methods

    def to_json(self) -> str:
        """The text of `result.json`; a single game's entries stand at the top level."""
        record = dataclasses.asdict(self)
        if self.sweep is None:
            (game,) = record.pop("games")
            del record["sweep"], game["value"]
            record.update(game)
        return json.dumps(record, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"

    def save(self, path: Path) -> None:
        """Write `result.json` somewhere."""
        path.write_text(self.to_json(), "utf-8")


def read_result(path: Path) -> Result:
    """A validated result, or one line on what is wrong with the file."""
    import pydantic

    try:
        record = json.loads(path.read_text("utf-8"), parse_constant=lambda name: math.nan)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; has the run finished?") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else None
        raise UserError(f"{path}: result schema {found!r}, but this version reads {SCHEMA}")
    if "games" not in record:
        names = {f.name for f in dataclasses.fields(GameResult)} - {"value"}
        game = {key: record.pop(key) for key in sorted(names & record.keys())}
        record["games"] = [{"value": None, **game}]
    try:
        return pydantic.TypeAdapter(Result).validate_python(record)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {place}: {first['msg']}") from None


def without_timings(record: Any) -> Any:
    """A JSON value with all timings removed: what two runs of the same thing agree on to the byte."""
    if isinstance(record, dict):
        return {key: without_timings(value) for key, value in record.items() if key not in TIMINGS}
    return [without_timings(item) for item in record] if isinstance(record, list) else record
