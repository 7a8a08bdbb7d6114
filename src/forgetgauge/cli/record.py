"""The command `record`: a stored test as a page for people, statements for programs and a block for a model card."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import say
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import free_name, write_whole, writing


def record(
    result: Annotated[Path, typer.Argument(help="A result.json or an evidence.json, or the folder that has one.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the record.")],
    method: Annotated[
        str | None, typer.Option(help="The method (of evidence, the model) it is of; needed where there are several.")
    ] = None,
    asked: Annotated[str | None, typer.Option(help="What was asked, in words.")] = None,
    by: Annotated[str | None, typer.Option(help="Who ran the test.")] = None,
    model: Annotated[
        list[Path] | None, typer.Option(help="File of the model that was tested, for its digest; may be repeated.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Where the test run can be seen.")] = None,
    model_id: Annotated[str | None, typer.Option(help="Name of the model in registries: developer/model.")] = None,
    relationship: Annotated[
        str | None, typer.Option(help="Of the tester to the developer: first_party, third_party, collaborative, other.")
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Also of a result that carries no decisions to compute it from again.")
    ] = False,
) -> None:
    """Make the record of an erasure test: a page to file, in-toto statements, a block for a model card."""
    from forgetgauge.report.erasure_record import Stated, record_files
    from forgetgauge.report.erasure_test import what_was_tested
    from forgetgauge.report.every_eval_ever import RELATIONSHIPS
    from forgetgauge.results.reading import at_its_word, read_either
    from forgetgauge.results.record import Result
    from forgetgauge.store.runfolder import RunFolder

    if relationship is not None and relationship not in RELATIONSHIPS:
        raise UserError(unknown_name("relationship", relationship, RELATIONSHIPS))
    stated = Stated(_readable(asked), _readable(by), _readable(url), _readable(model_id), relationship)
    path, found = read_either(result, verified=not unverified)
    if isinstance(found, Result) and unverified:
        warning = "Nothing of this result was computed again from its decisions: it is taken at its word."
        found = replace(found, games=[replace(game, warnings=[warning, *game.warnings]) for game in found.games])
    digest, models = _sha256(path), _digests(model or [])
    with at_its_word(path):
        test = what_was_tested(found, method, str(path))
        files, remarks = record_files(test, path.name, digest, models, stated, time.time())
    RunFolder(out).create()
    earlier = _set_aside(out)
    for name, text in files.items():
        write_whole(out / name, text)
    say(f"{test.name}: {test.verdict} ({test.outcome})\n" + "\n".join(str(out / name) for name in files))
    for line in remarks:
        say(line, err=True)
    if earlier is not None:
        say(f"this folder held another record, which is kept: {earlier}", err=True)


def _set_aside(out: Path) -> Path | None:
    """Move the files of an earlier record, which may be signed, to a folder of their own inside; where that is."""
    from forgetgauge.report.erasure_record import FILES

    held = [out / name for name in FILES if (out / name).is_file()]
    if not held:
        return None
    earlier = free_name(out / "earlier")
    with writing(earlier):
        earlier.mkdir()
        for path in held:
            path.rename(earlier / path.name)
    return earlier


def _readable(text: str | None) -> str | None:
    """None where nothing is said; bytes that are no text are shown as question marks."""
    return text.encode("utf-8", "replace").decode() if text is not None and text.strip() else None


def _digests(files: Sequence[Path]) -> dict[str, str]:
    """By name; where two files have one name, by the path that was given."""
    names = [file.name for file in files]
    return {str(file) if names.count(file.name) > 1 else file.name: _sha256(file) for file in files}


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
