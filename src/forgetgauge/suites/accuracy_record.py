"""`accuracy.json`: test accuracy of models trained on all images, without and with augmentation; and it as a table."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.report.table import align
from forgetgauge.suites.paper import text_values
from forgetgauge.suites.reading import read_strictly
from forgetgauge.wording import seconds

SCHEMA = 1
FILE = "accuracy.json"
KINDS = {"none": "all images", "flip-crop": "all images, augmented"}
"""The recipe's `augment` -> in words."""
_STRICT = {"extra": "forbid", "allow_inf_nan": False}  # read by pydantic in `read_strictly`; nothing here imports it


@dataclass(frozen=True)
class Trained:
    """The models of one kind."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    accuracies: list[float]
    """Of each model, on the test set."""
    wall_s: float
    device: str
    engine: str
    """How `fit_many` trained them: together, or one after another."""
    commit: str
    command: str

    @property
    def mean(self) -> float:
        """Over models."""
        return float(np.mean(self.accuracies))

    @property
    def deviation(self) -> float:
        """Over models, of which there must be two."""
        return float(np.std(self.accuracies, ddof=1))


@dataclass(frozen=True)
class FullData:
    """`accuracy.json`."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    scale: str
    data: str
    digest: str
    n_train: int
    n_test: int
    learner: dict[str, Any]
    """Every option but `augment`."""
    n_models: int
    kinds: dict[str, Trained]
    """`none`, `flip-crop`: those that are done."""
    schema: int = SCHEMA

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_accuracy(path: Path) -> FullData:
    """A validated record, or one line on what is wrong with the file."""
    found = read_strictly(path, FullData)
    for kind, trained in found.kinds.items():
        if kind not in KINDS:
            raise UserError(f"{path}: kinds: {unknown_name('kind', kind, KINDS)}")
        if not trained.accuracies:
            raise UserError(f"{path}: kinds.{kind}.accuracies: not one model")
    return found


def paper_accuracy(kind: str) -> float:
    """What the paper's text says."""
    key = "no_augmentation" if kind == "none" else "with_augmentation"
    value: float = text_values()[f"cifar10_full_data_accuracy_{key}"]
    return value


def accuracy_rows(found: FullData) -> list[list[str]]:
    """Head and one row a kind."""
    rows = [["trained on", "paper", "ours, mean", "deviation over models", "models", "epochs", "wall time"]]
    for kind, words in KINDS.items():
        trained, paper = found.kinds.get(kind), f"{100 * paper_accuracy(kind):.2f} %"
        cells = ["not run", "–", "–", "–", "–"]
        if trained is not None:
            n = len(trained.accuracies)
            spread = f"{100 * trained.deviation:.2f} points" if n > 1 else "–"
            counts = [str(n), str(found.learner.get("epochs", "–"))]
            cells = [f"{100 * trained.mean:.2f} %", spread, *counts, seconds(trained.wall_s)]
        rows.append([words, paper, *cells])
    return rows


def accuracy_remarks(found: FullData) -> list[str]:
    """Size and provenance, one line each."""
    sizes = f"{found.n_train} images of {found.data} to learn from, {found.n_test} to test on"
    made = []
    for kind, trained in found.kinds.items():
        command = f"; `{trained.command}`" if trained.command else ""
        how = f"on {trained.device}, engine {trained.engine}, commit {trained.commit}{command}"
        made.append(f"{KINDS[kind].capitalize()}: {how}.")
    return [f"{found.scale.capitalize()} scale: {sizes}.", *made]


def accuracy_text(found: FullData) -> str:
    """For a terminal."""
    return "\n".join(["Accuracy on the test set.", "", align(accuracy_rows(found)), "", *accuracy_remarks(found)])
