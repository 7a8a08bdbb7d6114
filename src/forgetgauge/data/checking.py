"""What is known of a data set without playing a game: where it is, whether it is whole, how large it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from forgetgauge import plugins
from forgetgauge.data.arrays import is_path
from forgetgauge.data.data_warnings import data_warnings
from forgetgauge.data.files import KNOWN, PART_OF, KnownSet
from forgetgauge.data.folders import damage, data_folder, find
from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError

State = Literal["present", "absent", "damaged"]


@dataclass(frozen=True)
class Finding:
    """One line of `forgetgauge data check`."""

    name: str
    state: State
    where: str
    n_train: int | None = None
    n_test: int | None = None
    n_classes: int | None = None
    problem: str | None = None
    """What is wrong and what to do."""


def catalogued() -> list[str]:
    """The data sets of the catalogue."""
    return list(plugins.data.entries)


def examine(name: str) -> Finding:
    """The known data sets by the checksums of their files; any other by reading it."""
    if name in KNOWN:
        return _examine_files(KNOWN[name], data_folder())
    whole = examine(PART_OF[name]) if name in PART_OF else None
    if whole and whole.state != "present":
        return replace(whole, name=name)
    try:
        dataset = load_dataset(name)
    except UserError as error:
        if name in plugins.data or not is_path(name):
            raise
        return Finding(name, "damaged" if Path(name).exists() else "absent", name, problem=str(error))
    where = "embedded" if _is_embedded(name) else whole.where if whole else name
    n_test = None if dataset.test is None else len(dataset.test)
    n_classes = dataset.points.n_classes if dataset.task.has_classes else None
    problem = " ".join(data_warnings(dataset)) or None
    return Finding(name, "present", where, len(dataset.points), n_test, n_classes, problem)


def _is_embedded(name: str) -> bool:
    return name in plugins.data.entries and plugins.data.entries[name].embedded


def _examine_files(known: KnownSet, root: Path) -> Finding:
    folder = find(known, root)
    if folder is None:
        where = root / known.folders[0]
        return Finding(known.name, "absent", str(where), problem=f"'forgetgauge data get {known.name}' downloads it")
    wrong = damage(known, folder, known.files)
    if wrong:
        problem = f"{wrong}; 'forgetgauge data get {known.name}' mends it"
        return Finding(known.name, "damaged", str(folder), problem=problem)
    return Finding(known.name, "present", str(folder), known.n_train, known.n_test, known.n_classes or None)
