"""“SWAP test versus random splits” (section 3.4 of the paper): the experiment.

An ordinary run of P swap pairs is played through the plan and the store; the same command continues it. Its 2P models
per method are then read in two ways: as P swap pairs, and as P pairs of independent random splits (`spread`).
Either way a repetition costs two models; what differs is how far their estimates scatter, and what the
look-up adversary of Proposition 3.7, who looks at no model at all, makes of each::

    from forgetgauge.suites.swap_vs_random import swap_vs_random
    found = swap_vs_random(out="runs/swap-vs-random")
    print(found.takeaway)
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Floats
from forgetgauge.plan.game import Game
from forgetgauge.plan.graph import Graph
from forgetgauge.plan.runfile import apply_settings, read_run_file
from forgetgauge.results.record import Result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import DEFAULTS, RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.invocation import Invoked, play_single
from forgetgauge.suites.replicates import SplitAdvantages, split_advantages
from forgetgauge.suites.splits_page import splits_figure, splits_page, takeaway
from forgetgauge.suites.spread import (
    MIN_PAIRS,
    LookupRecord,
    MethodRecord,
    SwapVsRandom,
    as_random_pairs,
    as_swap_pairs,
    compare_spreads,
    lookup_advantages,
    quality_spread,
)
from forgetgauge.suites.tables import SCALES, swap_game

NAME = "swap-vs-random"
QUERIES = (1, 4, 16, None)
"""Numbers of queries of the look-up adversary; None: any number."""


def swap_vs_random(
    file: Path | None = None,
    *,
    out: str | Path,
    repetitions: int | None = None,
    settings: Sequence[str] = (),
    options: RunOptions = DEFAULTS,
) -> SwapVsRandom:
    """Play what is missing, compare, and leave `swap-vs-random.json`, `.svg` and `.html` in the run folder `out`.

    `file` is a run file, else digits; `repetitions` replaces its `game.pairs`; `settings` are as of `--set`.
    """
    campaign = plan(file, repetitions, settings)
    folder = RunFolder(Path(out))
    ending, result = play(campaign, folder, options)
    if result is None:
        raise TimeoutError(f"{ending.n_missing} jobs are left; the same call continues")
    for key, failure in ending.failed.items():
        raise UserError(f"{folder.path}: {campaign.jobs[key].label}: {failure.line}; see {folder.failures}")
    return _written(campaign.graphs[0], folder, result, folder.path)


def play_splitting(scale: str, out: Path, **how: Any) -> tuple[Invoked, SwapVsRandom | None]:
    """The same at a suite's scale, in the store that the tables share: the game of Table 1 at η = 1 with more pairs.

    None where jobs are missing, because the time was up or some failed; `how` is what `play_single` takes.
    """
    invoked = play_single(NAME, swap_game(SCALES[scale]), scale, out, **how)
    if invoked.result is None or invoked.ending.failed:
        return invoked, None
    return invoked, _written(invoked.campaign.graphs[0], invoked.folder, invoked.result, out / NAME)


def _written(graph: Graph, folder: RunFolder, result: Result, target: Path) -> SwapVsRandom:
    """Compare, and write record, figure and page."""
    found = compare_groupings(split_advantages(graph, folder), graph.game, result)
    files = {"json": found.to_json(), "svg": splits_figure(found), "html": splits_page(found)}
    for suffix, text in files.items():
        folder.write_text(target / f"{NAME}.{suffix}", text)
    return found


def plan(file: Path | None, repetitions: int | None, settings: Sequence[str]) -> Campaign:
    """The run behind the experiment."""
    raw, source = read_run_file(file) if file is not None else (_embedded(), f"embedded {NAME}")
    raw = apply_settings(raw, settings)
    for key in ("sweep", "until"):
        if key in raw:
            raise UserError(f"{source}: {key} has no meaning in this experiment: its repetitions are fixed")
    if repetitions is not None:
        raw = apply_settings(raw, [f"game.pairs={repetitions}"])
    campaign = Campaign.plan(resolve(raw, source))
    n_pairs = campaign.graphs[0].game.pairs
    if n_pairs < MIN_PAIRS or n_pairs % 2:
        raise UserError(f"{source}: {n_pairs} repetitions; write an even number of at least {MIN_PAIRS}")
    return campaign


def _embedded() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("swap_vs_random.toml").read_text("utf-8"))


def compare_groupings(advantages: SplitAdvantages, game: Game, result: Result) -> SwapVsRandom:
    """Both groupings of every method and adversary."""
    methods = {name: _method(by_split.mean(axis=1), game) for name, by_split in advantages.by_method.items()}
    means = {
        adversary: max(abs(method.by_adversary[adversary].mean) for method in methods.values())
        for adversary in game.adversaries
    }
    loudest = max(means, key=lambda adversary: means[adversary])
    lookup = [_lookup(advantages, queries) for queries in QUERIES]
    n_retain, n_forget = game.sizes
    return SwapVsRandom(
        takeaway=takeaway(methods, loudest, lookup[-1]),
        repetitions=game.pairs,
        adversary=loudest,
        methods=methods,
        lookup=lookup,
        level=game.level,
        settings={
            "data": game.data.name,
            "alpha": game.alpha,
            "n_retain": n_retain,
            "n_forget": n_forget,
            "seed": game.seed,
            "seeds": game.seeds,
            "shadows": game.n_shadows,
            "learner": game.learner.identity,
        },
        environment=dict(result.environment),
        digests=dict(result.digests),
    )


def _method(by_split: Floats, game: Game) -> MethodRecord:
    """One method's record, from its advantages (pairs, sides, adversaries)."""
    return MethodRecord(
        {name: compare_spreads(by_split[..., i], game.level) for i, name in enumerate(game.adversaries)},
        quality_spread(by_split, game.level),
    )


def _lookup(advantages: SplitAdvantages, queries: int | None) -> LookupRecord:
    asked = math.inf if queries is None else queries
    return LookupRecord(
        queries,
        swap=lookup_advantages(as_swap_pairs(advantages.pairs), advantages.weights, asked).tolist(),
        random=lookup_advantages(as_random_pairs(advantages.pairs), advantages.weights, asked).tolist(),
    )
