"""“SWAP test versus random splits” (section 3.4 of the paper): the experiment.

An ordinary run of P swap pairs is played through the plan and the store; the same command continues it. Its 2P models
per method are then read in two ways: as P swap pairs, and as P pairs of independent random splits (`regrouping`).
Either way a repetition costs two models; what differs is how far their estimates scatter (`spread`), and what the
look-up adversary of Proposition 3.9, who looks at no model at all, makes of each::

    from forgetgauge.experiments.swap_vs_random import swap_vs_random
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

import numpy as np

from forgetgauge.errors import UserError
from forgetgauge.experiments.by_split import SplitAdvantages, split_advantages
from forgetgauge.experiments.page import render_figure, render_page
from forgetgauge.experiments.record import (
    AdversaryRecord,
    DeviationRecord,
    LookupRecord,
    MethodRecord,
    QualityRecord,
    SwapVsRandom,
)
from forgetgauge.experiments.regrouping import (
    as_random_pairs,
    as_swap_pairs,
    lookup_advantages,
    random_estimates,
    swap_estimates,
)
from forgetgauge.experiments.spread import MIN_PAIRS, Deviation, compare_spreads, jackknife_deviation
from forgetgauge.experiments.takeaway import takeaway
from forgetgauge.game.arrays import Floats
from forgetgauge.game.quality import quality_plugin
from forgetgauge.plan.graph import Game
from forgetgauge.plan.runfile import apply_settings, read_run_file
from forgetgauge.results.record import Result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import DEFAULTS, RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder

NAME = "swap-vs-random"
QUERIES = (1, 4, 16, None)
"""Of the look-up adversary; None: until it knows."""


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
    (graph,) = campaign.graphs
    found = compare(split_advantages(graph, folder), graph.game, result)
    files = {"json": found.to_json(), "svg": render_figure(found), "html": render_page(found)}
    for suffix, text in files.items():
        folder.write_text(folder.path / f"{NAME}.{suffix}", text)
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


def compare(advantages: SplitAdvantages, game: Game, result: Result) -> SwapVsRandom:
    """Both groupings of every method and adversary."""
    methods = {name: _method(values, game) for name, values in advantages.by_method.items()}
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
    """From (pairs, sides, adversaries)."""
    return MethodRecord(
        {name: _adversary(by_split[..., i], game.level) for i, name in enumerate(game.adversaries)},
        _quality(swap_estimates(by_split), random_estimates(by_split), game.level),
    )


def _adversary(by_split: Floats, level: float) -> AdversaryRecord:
    found = compare_spreads(by_split, level)
    return AdversaryRecord(
        mean=found.mean,
        swap=swap_estimates(by_split).tolist(),
        random=random_estimates(by_split).tolist(),
        swap_deviation=_record(found.swap),
        random_deviation=_record(found.random),
        correlation=found.correlation,
        variance_ratio=found.ratio,
        variance_ratio_interval=found.ratio_interval,
    )


def _quality(swap: Floats, random: Floats, level: float) -> QualityRecord:
    """From both groupings' estimates, (pairs, adversaries)."""
    of_swap, of_random = (np.array([quality_plugin(row) for row in estimates]) for estimates in (swap, random))
    return QualityRecord(
        swap=of_swap.tolist(),
        random=of_random.tolist(),
        swap_mean=float(of_swap.mean()),
        random_mean=float(of_random.mean()),
        swap_deviation=_record(jackknife_deviation(of_swap.reshape(-1, 2), level)),
        random_deviation=_record(jackknife_deviation(of_random.reshape(-1, 2), level)),
    )


def _lookup(advantages: SplitAdvantages, queries: int | None) -> LookupRecord:
    asked = math.inf if queries is None else queries
    return LookupRecord(
        queries,
        swap=lookup_advantages(as_swap_pairs(advantages.pairs), advantages.weights, asked).tolist(),
        random=lookup_advantages(as_random_pairs(advantages.pairs), advantages.weights, asked).tolist(),
    )


def _record(found: Deviation) -> DeviationRecord:
    return DeviationRecord(found.value, (found.low, found.high))
