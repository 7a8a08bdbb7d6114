"""A run whose plan depends on what it finds: strengths that are chosen in it or worth playing, and a pilot that says
how many pairs it takes. What one stage finds decides the plan of the next: started again, a run plans the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from forgetgauge.plan.game import Game, Method
from forgetgauge.plan.graph import Graph
from forgetgauge.plan.strength import AT, Variant, between_each
from forgetgauge.results.assembly import pairs_wanted
from forgetgauge.results.tuning import next_tuning, worth_playing
from forgetgauge.results.views import GameView, RunView
from forgetgauge.store.runfolder import RunFolder


def is_open(game: Game) -> bool:
    """Whether a further plan will follow."""
    return len(game.settled) < len(game.methods) or _in_pilot(game) or _before_frontier(game)


def next_game(graph: Graph, folder: RunFolder) -> Game:
    """The game as it goes on, by what the jobs of its plan have found."""
    game = graph.game
    if len(game.settled) < len(game.methods):
        view = GameView(graph, RunView(folder))
        methods = dict(game.methods)
        for name, method in game.methods.items():
            if method.tuning is not None and not method.is_settled:
                methods[name] = method.tuned(next_tuning(view, name))
        return replace(game, methods=methods)
    if _before_frontier(game):
        view = GameView(graph, RunView(folder))
        points = (game.frontier or {})["points"]
        further = {name: one for method in game.methods for name, one in _variants(view, method, points)}
        return replace(game, methods={**further, **game.methods}, frontier={"points": points, "planned": 1})
    if _in_pilot(game):
        until = {**(game.until or {}), "pilot_pairs": game.pairs}
        return replace(game, pairs=pairs_wanted(graph, folder), until=until)
    return game


def _variants(view: GameView, name: str, n_points: int) -> Iterator[tuple[str, Method]]:
    """A method whose strength was looked for, at as many other values that are worth playing."""
    method = view.game.methods[name]
    if method.tuning is None:
        return
    of, parameter = method.variant.method if method.variant else name, method.tuning.strength.parameter
    for value in between_each(worth_playing(view, name), n_points):
        if value != method.tuning.chosen:
            variant = Variant(of, parameter, value)
            yield f"{of}{AT}{value:.12g}", replace(method, unlearner=method.at(value), tuning=None, variant=variant)


def _in_pilot(game: Game) -> bool:
    return game.until is not None and "pilot_pairs" not in game.until


def _before_frontier(game: Game) -> bool:
    return game.frontier is not None and "planned" not in game.frontier
