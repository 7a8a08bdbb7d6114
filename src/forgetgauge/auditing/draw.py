"""`forgetgauge draw`: which points will be forgotten is drawn at random, before anything is trained.

What makes the test of one model exact is that nobody chose F. A seed that one may choose can be tried until the draw
pleases, so the list of points is committed to first, by a SHA-256 that is published, and the seed comes afterwards from
somebody else or from a public beacon. The draw is then a fact that anyone can check without this program: of each unit
(a point, or a group of points) take the SHA-256 of the text “commitment, seed, unit”, each in a line of its own; the K
units with the smallest are F, the next K are T. Of matched pairs, F has the point of the smaller SHA-256.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import secrets
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from forgetgauge.auditing.formats import refuse_other_separators
from forgetgauge.errors import UserError
from forgetgauge.files import read_json, write_whole
from forgetgauge.records import Record, read_record
from forgetgauge.streams import canonical_json
from forgetgauge.wording import is_text

Kind = Literal["points", "groups", "pairs"]
OWN_SEED = "the tester's own computer"
UNNAMED = "somebody who is not named"


@dataclass(frozen=True)
class Draw(Record):
    """What was committed to and, once there is a seed, what it drew."""

    kind: Kind
    """What is drawn: points, whole groups of points, or one point of each matched pair."""
    commitment: str
    """SHA-256 of the list of points, of how they are grouped, and of how many are to be forgotten."""
    n_units: int
    """Points, groups or pairs in the list."""
    n_forget: int
    """How many of them are to be forgotten; of pairs, one point of each."""
    by: str | None
    """The column that groups or pairs the points."""
    seed: str | None = None
    seed_from: str | None = None
    """Who gave the seed."""
    forget: list[str] | None = None
    """The points of F; None before there is a seed."""
    unseen: list[str] | None = None
    """The points of T, which no training may see."""
    unit_of: dict[str, str] | None = None
    """The group or pair of each drawn point."""
    committed_first: bool = False
    """Whether a commitment to this very list lay in the file when the seed came; else nothing shows that the list was
    not changed until the draw pleased, whoever gave the seed."""
    schema: int = 1

    @property
    def is_own(self) -> bool:
        """Whether the tester drew alone, as far as is said: then nobody else can know that the draw was not repeated
        until it pleased."""
        return (self.seed_from or "").strip() in ("", OWN_SEED, UNNAMED)


def committed(points: Mapping[str, str], n_forget: int, kind: Kind, by: str | None) -> Draw:
    """The commitment to a list of points, each with its unit, before there is a seed."""
    units = dict.fromkeys(points.values())
    if kind == "pairs":
        sizes = dict.fromkeys(units, 0)
        for unit in points.values():
            sizes[unit] += 1
        wrong = next((unit for unit, size in sizes.items() if size != 2), None)
        if wrong is not None:
            raise UserError(f"draw: pair '{wrong}' has {sizes[wrong]} points, not two")
        n_forget = n_forget or len(units)
    if kind == "groups" and _is_ungrouped(points):
        raise UserError(f"draw: --by {by} makes every point a group of its own: leave it out")
    if n_forget == 0:
        raise UserError(f"draw: give --forget: how many {kind} are to be forgotten; as many stay unseen")
    if n_forget < 1:
        raise UserError(f"draw: --forget {n_forget} is not at least 1")
    needed = n_forget if kind == "pairs" else 2 * n_forget
    if needed > len(units):
        raise UserError(
            f"draw: {n_forget} to forget and as many to keep unseen are {needed}, but there are {len(units)} {kind}"
        )
    listed = {"kind": kind, "forget": n_forget, "points": sorted(points.items())}
    digest = hashlib.sha256(canonical_json(listed).encode()).hexdigest()
    return Draw(kind, digest, len(units), n_forget, by)


def drawn(points: Mapping[str, str], made: Draw, seed: str | None, seed_from: str | None) -> Draw:
    """The draw that a seed makes of what was committed to; without a seed, one of this computer's own."""
    if seed is None:
        if seed_from is not None:
            raise UserError("draw: --seed-from says whose seed it is, but no --seed is given")
        seed, seed_from = secrets.token_hex(16), OWN_SEED
    if not seed.strip():
        raise UserError("draw: the seed is empty")
    for what, text in (("seed", seed), ("name of whom the seed is from", seed_from or "")):
        if not is_text(text):
            raise UserError(f"draw: the {what} is no text in UTF-8: {text!r}")
    members: dict[str, list[str]] = {}
    for point, unit in points.items():
        members.setdefault(unit, []).append(point)
    ranked = sorted(members, key=lambda unit: _rank(made.commitment, seed, unit))
    if made.kind == "pairs":
        chosen = ranked[: made.n_forget]
        both = [sorted(members[unit], key=lambda point: _rank(made.commitment, seed, point)) for unit in chosen]
        forget, unseen = [first for first, _ in both], [second for _, second in both]
    else:
        chosen = ranked[: 2 * made.n_forget]
        forget = [point for unit in chosen[: made.n_forget] for point in members[unit]]
        unseen = [point for unit in chosen[made.n_forget :] for point in members[unit]]
    units = None if made.kind == "points" else {point: points[point] for point in (*forget, *unseen)}
    source = seed_from.strip() if seed_from and seed_from.strip() else UNNAMED
    return replace(made, seed=seed, seed_from=source, forget=sorted(forget), unseen=sorted(unseen), unit_of=units)


def _is_ungrouped(units: Mapping[str, str]) -> bool:
    """Whether points are drawn one by one, by whatever name."""
    return all(point == unit for point, unit in units.items())


def _rank(commitment: str, seed: str, unit: str) -> bytes:
    return hashlib.sha256(f"{commitment}\n{seed}\n{unit}".encode()).digest()


def read_points(path: Path, by: str | None) -> dict[str, str]:
    """Point -> unit: of a `.csv` with a header, the column `point` or else the first one; of other files, the lines."""
    return listed_points(path, by)[1]


def listed_points(path: Path, by: str | None) -> tuple[str, dict[str, str]]:
    """(what names the points, in words; point -> unit)."""
    where = "lines"
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if path.suffix.lower() != ".csv":
        if by is not None:
            raise UserError(f"{path}: --by and --pairs name a column, so the list must be a .csv with a header")
        rows = [(line.strip(), line.strip()) for line in text.splitlines() if line.strip()]
        if rows and rows[0][0].partition(",")[0] == "point":
            raise UserError(
                f"{path}: its first line is a header, so call it .csv: every line of another file is a point"
            )
    else:
        column, rows = _csv_rows(path, text, by)
        where = f"column {column}"
    points: dict[str, str] = {}
    for number, (point, unit) in enumerate(rows, 1):
        if not point or not unit:
            raise UserError(f"{path}: row {number}: {by if point else 'point'} is blank")
        if odd := next((name for name in (point, unit) if any(unicodedata.category(c) == "Cc" for c in name)), None):
            raise UserError(
                f"{path}: row {number}: {odd!r} has a control character, as files in UTF-16 and tables with tabs have:"
                " save the list as UTF-8, with commas"
            )
        if point in points:
            raise UserError(f"{path}: point '{point}' is listed twice")
        points[point] = unit
    if not points:
        raise UserError(f"{path}: it lists no points")
    return where, points


def _csv_rows(path: Path, text: str, by: str | None) -> tuple[str, list[tuple[str, str]]]:
    """(the column that names the points, point and unit of each row)."""
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text, newline="")) if line]
    except csv.Error as error:
        raise UserError(f"{path}: not a .csv file: {error}") from None
    if not lines:
        raise UserError(f"{path}: it has no header")
    names, *body = lines
    if names[0].lower().startswith("sep="):
        raise UserError(f"{path}: its first line, {','.join(names)}, is for Excel alone: delete it")
    refuse_other_separators(str(path), names)
    if by is not None and by not in names:
        raise UserError(f"{path}: there is no column '{by}'; there are {', '.join(names)}")
    of_point = "point" if "point" in names else names[0]
    if not of_point:
        raise UserError(
            f"{path}: its first column has no name, as an index has that pandas or R writes (leave it out with "
            "index=False, or row.names=FALSE): call the column of the ids point"
        )
    if any(character.isdigit() for character in of_point):
        raise UserError(
            f"{path}: its first line begins with '{of_point}', which looks like a point: a .csv needs a header, such "
            "as point (a list without one is called .txt)"
        )
    for name in (of_point, by or of_point):
        if names.count(name) > 1:
            raise UserError(f"{path}: the column {name} stands twice")
    for number, line in enumerate(body, 1):
        if len(line) != len(names):
            raise UserError(f"{path}: row {number} has {len(line)} cells, but the header has {len(names)}")
    point, unit = names.index(of_point), names.index(by or of_point)
    return of_point, [(line[point], line[unit]) for line in body]


def make_draw(
    path: Path,
    n_forget: int,
    out: Path,
    *,
    by: str | None = None,
    pairs: str | None = None,
    commit: bool = False,
    seed: str | None = None,
    seed_from: str | None = None,
) -> Draw:
    """Commit to a list (`commit`), or draw from it, and keep either in `out`.

    A draw of a list that was committed to before must be of that list; a draw that was made is never made again.
    """
    if by is not None and pairs is not None:
        raise UserError("draw: --by keeps groups together and --pairs tells them apart: give one of them")
    kind: Kind = "groups" if by is not None else "pairs" if pairs is not None else "points"
    points = read_points(path, by or pairs)
    made = committed(points, n_forget, kind, by or pairs)
    before = _read(out) if out.exists() else None
    if before is not None and before.forget is not None:
        raise UserError(f"{out}: a draw was made there already; another try would not be random any more")
    if before is not None and before.commitment != made.commitment:
        if before.n_forget != made.n_forget:
            raise UserError(f"{out}: it commits to {before.n_forget} to forget, not to {made.n_forget}")
        raise UserError(f"{out}: it commits to another list of points (SHA-256 {before.commitment[:12]}…)")
    if commit:
        if seed is not None:
            raise UserError("draw: --commit comes before the seed is known: leave --seed out")
        if seed_from is not None:
            raise UserError("draw: --commit comes before the seed is known: leave --seed-from out")
        found = made
    else:
        found = replace(drawn(points, made, seed, seed_from), committed_first=before is not None)
    write_whole(out, found.to_json())
    return found


def plain_name(name: str) -> str:
    """The name in one spelling, without what people and tables write in different ways: capitals, the encoding of
    accents, blanks at the ends, zeros at the beginning, and the .0 of whole numbers."""
    plain = unicodedata.normalize("NFKC", name).casefold().strip()
    return re.sub(r"^([0-9]+)\.0+$", r"\1", plain).lstrip("0")


def spelled_twice(points: Mapping[str, str]) -> tuple[str, str] | None:
    """The first two points, groups or pairs of a list whose names differ by their spelling alone."""
    seen: dict[str, str] = {}
    for unit in points.values():
        other = seen.setdefault(plain_name(unit), unit)
        if other != unit:
            return other, unit
    return None


def _read(path: Path) -> Draw:
    """A draw, or a commitment to one; another file of JSON is told what it is not."""
    held = read_json(path)
    if not isinstance(held, dict) or not {"commitment", "n_units"} <= set(held):
        raise UserError(f"{path}: it is no draw, which the command draw makes and keeps as draw.json")
    return read_record(path, Draw)


def read_draw(path: Path) -> Draw:
    """A draw that was made; one whose sets are not those of its own seed is refused."""
    if not path.exists():
        raise UserError(f"{path}: no such file")
    found = _read(path)
    if found.forget is None or found.unseen is None or found.seed is None:
        raise UserError(f"{path}: a list of points was committed to, but nothing is drawn yet: give it a seed")
    if not _is_drawn(found):
        raise UserError(f"{path}: F and T are not those that the seed draws: the file was changed")
    return found


def check_list(path: Path, made: Draw) -> None:
    """UserError unless F and T are what the seed draws of the very list that the draw commits to: all of it, and not
    a part that somebody chose afterwards."""
    points = read_points(path, made.by)
    try:
        again = committed(points, made.n_forget, made.kind, made.by)
    except UserError:  # so many cannot be drawn of it
        again = None
    if again is None or again.commitment != made.commitment:
        raise UserError(
            f"{path}: it is not the list of points that the draw commits to, or the draw is not of {made.n_forget} of "
            f"it (SHA-256 {made.commitment[:12]}…)"
        )
    whole = drawn(points, again, made.seed, made.seed_from)
    if (whole.forget, whole.unseen, again.n_units) != (made.forget, made.unseen, made.n_units):
        raise UserError(f"{path}: F and T are not what the seed draws of this list: the draw was changed")


def _is_drawn(found: Draw) -> bool:
    """Whether the seed draws these sets of these points, and as many as it says; that none of the list was left out,
    and how long it is, the list alone shows, unless all of it was drawn."""
    forget, unseen = sorted(found.forget or ()), sorted(found.unseen or ())
    units = {point: point for point in (*forget, *unseen)} if found.unit_of is None else found.unit_of
    sizes = Counter(units.values())
    fits = (
        (found.kind == "points") == (found.unit_of is None) == (found.by is None)
        and set(units) == {*forget, *unseen}
        and len(sizes) == (found.n_forget if found.kind == "pairs" else 2 * found.n_forget) <= found.n_units
        and (found.kind != "pairs" or set(sizes.values()) == {2})
        and (found.kind == "points" or not _is_ungrouped(units))
    )
    if fits and committed(units, found.n_forget, found.kind, found.by).commitment == found.commitment:
        fits = found.n_units == len(sizes)
    again = drawn(units, found, found.seed, found.seed_from) if fits else None
    return again is not None and (again.forget, again.unseen) == (forget, unseen)
