"""Adv_s of every single split of a finished run: what `assemble` sums up over pairs, before it is summed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.arrays import Floats
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.draws import draw_swap_pair, half_sizes
from forgetgauge.plan.graph import SIDES, Cell, Game, Graph
from forgetgauge.store.artefact import Artefact
from forgetgauge.store.runfolder import RunFolder


@dataclass(frozen=True)
class SplitAdvantages:
    """The splits of a run, and what each adversary gained on each."""

    pairs: list[SwapPair]
    weights: Floats
    """P_D over D."""
    by_method: dict[str, Floats]
    """Method -> signed (pairs, sides, adversaries), averaged over seeds."""


def split_advantages(graph: Graph, folder: RunFolder) -> SplitAdvantages:
    """From the stored decisions; every job of the game must be done."""
    done = folder.open_ledger().state.done

    def read(key: str) -> Artefact:
        return folder.objects.read(key, done[key].receipt.sha256)

    game = graph.game
    pairs, weights = _pairs(game), read(graph.initialise).arrays["weight"]

    def gained(method: str, pair: int, side: int, adversary: str) -> float:
        drawn = pairs[pair]
        in_forget = drawn.in_forget if side == 0 else ~drawn.in_forget
        keys = [graph.cells[Cell(method, pair, side, seed)].decide[adversary] for seed in range(game.seeds)]
        says_forget = np.mean([read(key).arrays["says_forget"] for key in keys], axis=0)
        return signed_advantage(says_forget, in_forget, weights[drawn.points])

    return SplitAdvantages(
        pairs,
        weights,
        {
            method: np.array(
                [[[gained(method, p, side, a) for a in game.adversaries] for side in SIDES] for p in range(game.pairs)]
            )
            for method in game.methods
        },
    )


def _pairs(game: Game) -> list[SwapPair]:
    n = half_sizes(game.n_points, game.fraction)[0]
    return [
        draw_swap_pair(game.data_digest, n, game.seed, game.fraction, game.alpha, pair) for pair in range(game.pairs)
    ]
