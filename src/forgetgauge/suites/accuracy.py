"""The paper's remark on accuracy: ResNet-20 on *all* of CIFAR-10's training images, without and with augmentation.

It explains by it why the models of its tables, trained on less than half of them, are less accurate than others'. No
game is played: n models of each kind are trained together, and tested on the official test set. A kind is stored as
soon as it is done, and is not trained again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import write_into
from forgetgauge.plan.runfile import complete_params, expand_preset
from forgetgauge.provenance import commit
from forgetgauge.records import Record
from forgetgauge.report.table import align
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.streams import Streams, identity_key
from forgetgauge.suites.availability import refuse_download
from forgetgauge.suites.paper import text_values
from forgetgauge.suites.records import read_strictly
from forgetgauge.wording import seconds

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Points

FILE = "accuracy.json"
NAME = "accuracy"
KINDS = {"none": "all images", "flip-crop": "all images, augmented"}
"""The recipe's `augment` -> in words."""


@dataclass(frozen=True)
class Trained(Record):
    """The models of one kind."""

    accuracies: list[float]
    """The accuracy of each model on the test set."""
    wall_s: float
    device: str
    engine: str
    """How `fit_many` trained them: together, or one after another."""
    commit: str
    command: str

    @property
    def mean(self) -> float:
        """The mean accuracy over models."""
        return float(np.mean(self.accuracies))

    @property
    def deviation(self) -> float:
        """Over models, of which there must be two."""
        return float(np.std(self.accuracies, ddof=1))


@dataclass(frozen=True)
class FullData(Record):
    """The accuracies of models trained on all images: `accuracy.json`."""

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
    schema: int = 1


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
    """The accuracies and where they are from, for a terminal."""
    return "\n".join(["Accuracy on the test set.", "", align(accuracy_rows(found)), "", *accuracy_remarks(found)])


@dataclass(frozen=True)
class Recipe:
    """What is trained at a scale."""

    data: str
    learner: dict[str, Any]
    n_models: int


RECIPES = {
    "smoke": Recipe("digits", {"model": "small-cnn", "epochs": 2, "batch_size": 32}, 2),
    "small": Recipe("cifar10", {"preset": "fast"}, 2),
    "paper": Recipe("cifar10", {"preset": "cifar-resnet"}, 3),
}


def play_accuracy(
    scale: str,
    out: Path,
    *,
    only: Sequence[str] = (),
    device: str = "auto",
    time_limit_s: float | None = None,
    say: Callable[[str], None] = lambda _: None,
    command: str = "",
) -> tuple[FullData, list[str]]:
    """(what there is, kinds that are asked for and missing). A kind is not begun where the time left is too short for
    it, judged by the other; one that has begun is not stopped."""
    for kind in only:
        if kind not in KINDS:
            raise UserError(f"{NAME}: " + unknown_name("column", kind, KINDS))
    start, recipe = time.monotonic(), RECIPES[scale]
    refuse_download(recipe.data)
    folder, path = RunFolder(out), out / NAME / FILE
    folder.create()
    train, test, empty = _points_of(scale, recipe)
    with folder.locked():
        found = _joined(empty, path)
        for kind in only or KINDS:
            if kind in found.kinds or not _fits(found, time_limit_s, time.monotonic() - start):
                continue
            say(f"training {recipe.n_models} models: {KINDS[kind]}")
            trained = _train(kind, recipe, train, test, device, command)
            found = _joined(replace(found, kinds={kind: trained}), path)
            folder.write_text(path, found.to_json())
        folder.write_text(out / NAME / "table.txt", accuracy_text(found) + "\n")
    return found, [kind for kind in only or KINDS if kind not in found.kinds]


def keep_accuracy(source: Path, target: Path) -> None:
    """Put what was trained in the folder `source` beside the kinds that `target` has of the same recipe."""
    found = _joined(read_accuracy(source / FILE), target / FILE)
    write_into(target / FILE, found.to_json())


def _joined(found: FullData, path: Path) -> FullData:
    """With the kinds that it lacks and the file has, if that is there and of the same recipe."""
    before = read_accuracy(path) if path.exists() else found
    if replace(before, kinds={}) != replace(found, kinds={}):
        return found
    both = {**before.kinds, **found.kinds}
    return replace(found, kinds={kind: both[kind] for kind in KINDS if kind in both})


def _fits(found: FullData, time_limit_s: float | None, passed_s: float) -> bool:
    took = max((trained.wall_s for trained in found.kinds.values()), default=0.0)
    return time_limit_s is None or passed_s + 1.1 * took < time_limit_s  # moving images costs a little


def _points_of(scale: str, recipe: Recipe) -> tuple[Points, Points, FullData]:
    """(training points, test points, a record without models). Digits have no test set: every fifth stands for it."""
    from forgetgauge.data.loading import load_dataset

    dataset = load_dataset(recipe.data)
    train, test = dataset.points, dataset.test
    if test is None:
        held_out = train.index % 5 == 0
        train, test = train.subset(train.index[~held_out]), train.subset(train.index[held_out])
    options = {key: value for key, value in _options(recipe).items() if key != "augment"}
    learner = json.loads(json.dumps(options))  # tuples as lists, as they are read back
    counts = len(train), len(test)
    return train, test, FullData(scale, recipe.data, dataset.digest, *counts, learner, recipe.n_models, {})


def _options(recipe: Recipe) -> dict[str, Any]:
    from forgetgauge.learn.minibatch import Minibatch

    return complete_params("learner", Minibatch, expand_preset(recipe.learner))


def _train(kind: str, recipe: Recipe, train: Points, test: Points, device: str, command: str) -> Trained:
    from forgetgauge.learn.device import choose_device, describe
    from forgetgauge.learn.minibatch import Minibatch
    from forgetgauge.learn.predict import known_utility_of, outputs_of_many

    start = time.monotonic()
    place = choose_device(device)
    train, test = train.on(place), test.on(place)
    learner = Minibatch(**{**_options(recipe), "augment": kind})
    members = [train] * recipe.n_models
    streams = [Streams(identity_key({"accuracy": kind, "which": i})) for i in range(recipe.n_models)]
    models = learner.fit_many(members, streams)
    accuracies = [known_utility_of(outputs, test) for outputs in outputs_of_many(models, [test] * len(models))]
    engine = learner.engine(members).name
    return Trained(accuracies, round(time.monotonic() - start, 1), describe(place), engine, commit(), command)
