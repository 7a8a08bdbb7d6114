"""Whether a game that was played is what a column of a table asks for today, and whether its data are here."""

from __future__ import annotations

from dataclasses import replace

from forgetgauge.data.files import KNOWN, PART_OF
from forgetgauge.data.folders import data_folder, find
from forgetgauge.errors import UserError
from forgetgauge.plan.game import Game, game_to_json
from forgetgauge.run.resolve import decided
from forgetgauge.suites.tables import TableColumn


def refuse_download(name: str) -> None:
    """A run never fetches hundreds of megabytes unasked."""
    known = KNOWN.get(PART_OF.get(name, name))
    if known is not None and find(known, data_folder()) is None:
        raise UserError(f"the data '{known.name}' are not here; 'forgetgauge data get {known.name}' downloads them")


def is_of(game: Game, column: TableColumn) -> bool:
    """Whether the game is what the column asks for today: by all that its tables and our defaults decide and, where its
    data are here, by what they are. Metrics beside those that are asked for do not matter."""
    from forgetgauge.data.loading import load_dataset

    asked = _asked(game, column)
    plain = {name: method for name, method in game.methods.items() if method.variant is None}
    defaults = {name: one.adversary.params for name, one in asked.adversaries.items()}
    adversaries = {  # they had no parameters until these could be set, and did what is their default now
        name: replace(one, adversary=replace(one.adversary, params=one.adversary.params or defaults.get(name, {})))
        for name, one in game.adversaries.items()
    }
    played = replace(game, methods=plain, adversaries=adversaries, frontier=None)
    now, then = (game_to_json(one.as_asked) for one in (asked, played))
    if now != then or (game.frontier or {}).get("points", 0) != column.frontier:
        return False
    try:
        refuse_download(asked.data.name)
        return load_dataset(asked.data.name, asked.data.params).digest == game.data_digest
    except UserError:  # its data are not here
        return True


def _asked(game: Game, column: TableColumn) -> Game:
    """The column's game as it is asked for today, with what its data say taken from a game that may be it.

    A checkpoint counts by its name: it need not be here.
    """
    given = column.raw["learner"]
    fields = decided({**column.raw, "learner": {k: v for k, v in given.items() if k != "model_params"}}, column.label)
    params = fields["learner"].params | {k: v for k, v in given.items() if k == "model_params"}
    learner = replace(fields["learner"], params=params, code=game.learner.code)
    return replace(
        game, **{**fields, "learner": learner, "metrics": {**game.metrics, **fields["metrics"]}, "frontier": None}
    )
