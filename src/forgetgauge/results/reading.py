"""What is kept of a test: `result.json` of swap pairs, or `evidence.json` of one model; the content tells which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.files import read_json
from forgetgauge.records import read_record
from forgetgauge.results.one_model import OneModelResult
from forgetgauge.results.record import Result, read_result
from forgetgauge.results.verified import refuse_unverified, refuse_unverified_evidence

COPED_WITH = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What code of ours raises where a forger's numbers do not fit together."""
FILES = ("result.json", "evidence.json")
"""The names that stored results have in a folder."""


@contextmanager
def at_its_word(*paths: Path) -> Iterator[None]:
    """Within, what a result says is shown or judged as it stands: where its parts do not fit together, so that code
    fails on it, one line says so. Each part was checked when it was read; that they agree is what verifying says."""
    try:
        yield
    except COPED_WITH as error:
        which = " or ".join(str(path) for path in paths)
        raise UserError(f"{which}: its parts do not fit together: {type(error).__name__}: {error}") from error


def read_either(path: Path, *, verified: bool = True) -> tuple[Path, Result | OneModelResult]:
    """(the file, what it holds) of such a file, or of the folder that has one; a result that does not say what its
    decisions say, and evidence that does not say what its tests say, is refused, and, where it must be `verified`, a
    result that carries no decisions."""
    path, kind = file_of_either(path)
    if kind is OneModelResult:
        return path, refuse_unverified_evidence(path)
    return path, _with_games(path, refuse_unverified(path, needs_decisions=verified))


def read_sealed(path: Path) -> Result | OneModelResult:
    """What such a file, or the folder that has one, holds; its bytes fit the SHA-256 that it names, and that its
    numbers follow from its decisions is not computed again."""
    path, kind = file_of_either(path)
    return read_record(path, OneModelResult) if kind is OneModelResult else _with_games(path, read_result(path))


def file_of_either(path: Path) -> tuple[Path, type[Result | OneModelResult]]:
    """(the file, what kind of thing it holds) of such a file, or of the folder that has one."""
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if path.is_dir():
        there = [path / name for name in FILES if (path / name).is_file()]
        if not there:
            raise UserError(f"{path}: it has neither a {FILES[0]} nor an {FILES[1]}; has the run finished?")
        if len(there) > 1:
            raise UserError(f"{path}: it has both a {FILES[0]} and an {FILES[1]}; name the one that is meant")
        path = there[0]
    record = read_json(path)
    if isinstance(record, dict) and "games" in record:
        return path, Result
    if isinstance(record, dict) and "models" in record and "stated" in record:
        return path, OneModelResult
    raise UserError(f"{path}: neither a result of a run or an audit nor evidence from one model")


def _with_games(path: Path, result: Result) -> Result:
    if not result.games:
        raise UserError(f"{path}: a result without a single game")
    return result
