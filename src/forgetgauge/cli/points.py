"""`report --points`: the points that models show most, looked up in the run folder and in the data set."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from forgetgauge.errors import UserError
from forgetgauge.game.parts import TEXT
from forgetgauge.plugins.catalogue import CodeNamed, no_code

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Dataset
    from forgetgauge.plan.game import Game
    from forgetgauge.report.thumbnails import ShownPoints, Thumbnail
    from forgetgauge.results.record import GameResult, Result
    from forgetgauge.results.views import GameView
    from forgetgauge.store.runfolder import RunFolder


def shown_points(folder: RunFolder, result: Result, *, allow_code: bool) -> dict[int, list[ShownPoints]]:
    """Number of the game -> the most visible points of each method, with what they look like."""
    from forgetgauge.report.strengths import without_variants
    from forgetgauge.results.views import GameView, RunView
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.store.objects import CorruptArtefact

    if not folder.run_file.exists():
        raise UserError(f"{folder.path}: --points needs the folder of a run: a result carries no points")
    try:
        with nullcontext() if allow_code else no_code():
            run, graphs = RunView(folder), Campaign.read(folder).graphs
            games = without_variants(result).games
            if [graph.game.value for graph in graphs] != [game.value for game in games]:
                raise UserError(f"{folder.path}: result.json is not of this run; `run` makes it again")
            return {
                number: _of_game(GameView(graph, run), game, folder)
                for number, (graph, game) in enumerate(zip(graphs, games, strict=True))
            }
    except CodeNamed as error:
        raise UserError(f"{folder.path}: {error}; --allow-code does so, if you trust who wrote it") from None
    except CorruptArtefact:
        raise UserError(f"{folder.path}: an artefact of the run is missing or damaged: `run` makes it again") from None


def _of_game(view: GameView, game: GameResult, folder: RunFolder) -> list[ShownPoints]:
    """Methods under test first."""
    from forgetgauge.report.thumbnails import ShownPoints
    from forgetgauge.results.points import visible_points
    from forgetgauge.results.record import by_quality, role_of

    asked = [(name, method) for name, method in by_quality(game.methods) if view.outcomes.get(name)]
    asked.sort(key=lambda one: role_of(game, one[0]) != "tested")
    found = [one for name, method in asked if (one := visible_points(view, name, method)) is not None]
    dataset = _dataset(view.game, folder)
    return [
        ShownPoints(
            one,
            _thumbnails(dataset, [point.id for point in one.points]),
            [str(dataset.points.host_labels[point.id]) for point in one.points] if dataset.task.has_classes else [],
        )
        for one in found
    ]


def _dataset(game: Game, folder: RunFolder) -> Dataset:
    from forgetgauge.data.loading import load_dataset

    dataset = load_dataset(game.data.name, game.data.params)
    if dataset.digest != game.data_digest:
        raise UserError(f"{folder.path}: the data '{game.data.name}' is not that of the run any more")
    return dataset


def _thumbnails(dataset: Dataset, ids: Sequence[int]) -> list[Thumbnail]:
    from forgetgauge.report.thumbnails import thumbnail

    inputs = dataset.points.whole_inputs[list(ids)].numpy()
    span = (float(inputs.min()), float(inputs.max())) if np.issubdtype(inputs.dtype, np.floating) else (0.0, 255.0)
    texts = dataset.columns.get(TEXT)
    return [
        thumbnail(point, None if texts is None else str(texts[place]), span)
        for place, point in zip(ids, inputs, strict=True)
    ]
