"""`evaluate`: the whole tool from Python, with the user's own functions, models and arrays in the places of names."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.plugins.catalogue import Catalogue
from forgetgauge.report.result import Result
from forgetgauge.run.campaign import Campaign, ExecutorName, play
from forgetgauge.run.resolve import resolve
from forgetgauge.run.scheduler import Progress
from forgetgauge.store.runfolder import RunFolder

One = str | Callable[..., Any] | object


def evaluate(
    *,
    unlearner: One | Sequence[One] | Mapping[str, Any] = ("retrain", "none"),
    learner: One | Mapping[str, Any] = "minibatch",
    data: Any = "digits",
    data_params: Mapping[str, Any] | None = None,
    alpha: float = 0.5,
    pairs: int = 8,
    seeds: int = 1,
    shadows: int = 8,
    references: int = 16,
    queries: Sequence[int] = (),
    until: Mapping[str, float] | None = None,
    adversaries: Sequence[One] | Mapping[str, Any] = ("correctness", "confidence", "entropy", "modified-entropy"),
    metrics: str | Sequence[str] | Mapping[str, Any] = (),
    sensitivity: str | Mapping[int, float] | npt.ArrayLike = "uniform",
    fraction: float = 1.0,
    share_retrain: bool = False,
    level: float = 0.95,
    delta: float = 1e-5,
    interval: str = "student",
    sweep: tuple[str, Sequence[Any]] | None = None,
    seed: int = 0,
    keep: str = "signals",
    out: str | Path | None = None,
    executor: ExecutorName = "inline",
    device: str = "auto",
    time_limit_s: float | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> Result:
    """Play the game and return its result.

    `unlearner` is a name of the catalogue, a function `(model, retain, forget, context) -> model`, several of these,
    or a mapping id -> name, function or parameters. `learner` is a name, a mapping of the run file's `[learner]`
    table, or an object with the methods of `Learner`. `data` is a name, a `Dataset`, or a pair (inputs, labels);
    `data_params` go to the function that a name stands for. `sensitivity` is `"uniform"`, class -> weight, or one
    weight per point. `metrics` are names of rivals to set beside Q, or a mapping of the run file's `[metrics]` table;
    they stand in each method's `metrics`. `interval` is `"student"` or, for pairs of any distribution and much wider,
    `"bounded"` (docs/statistics.md). With `out` the run can be continued, scored and reported later; without it
    nothing is left on disk. `device` is `auto` (a GPU where there is one), `cpu`, `cuda` or `cuda:1`::

        result = forgetgauge.evaluate(unlearner=["retrain", my_method], data=(images, labels), alpha=0.1, pairs=8)
        print(result.methods["my_method"].quality)
    """
    raw: dict[str, Any] = {
        "seed": seed,
        "keep": keep,
        "data": {"name": _data_name(data), "params": _plain_table(data_params or {}), "fraction": fraction},
        "game": {
            "alpha": alpha,
            "pairs": pairs,
            "seeds": seeds,
            "share_retrain": share_retrain,
            "level": level,
            "delta": delta,
        },
        "learner": _learner_table(learner),
        "shadows": {"count": shadows, "references": references},
        "statistics": {"interval": interval},
        "strong": {"queries": _listed(queries)},
        "metrics": _metrics_table(metrics),
        "unlearners": _table(plugins.unlearners, unlearner),
        "adversaries": _table(plugins.adversaries, adversaries),
    }
    if until is not None:
        raw["until"] = dict(until) if isinstance(until, Mapping) else until
    if sweep is not None:
        if isinstance(sweep, str) or not isinstance(sweep, Sequence) or len(sweep) != 2:
            raise UserError('evaluate: sweep must be a key and its values, as in ("game.alpha", [0.1, 0.25])')
        raw["sweep"] = {"key": sweep[0], "values": _listed(sweep[1])}
    with tempfile.TemporaryDirectory(prefix="forgetgauge-") as scratch:
        raw["game"]["sensitivity"] = _sensitivity_table(sensitivity, Path(scratch))
        campaign = Campaign.plan(resolve(raw, "evaluate"))
        if executor == "processes" and "@" in str(campaign.to_json()["games"]):
            raise UserError(
                "evaluate: worker processes cannot see functions and arrays of this program; "
                "name them as 'module:attribute', or use executor='inline'"
            )
        folder = RunFolder(Path(out) if out is not None else Path(scratch) / "run")
        ending, result = play(campaign, folder, executor=executor, device=device, time_limit_s=time_limit_s, tell=tell)
    if result is None:
        raise TimeoutError(f"{ending.n_missing} jobs are left; call again with the same arguments and `out` to go on")
    return result


def _name_of(catalogue: Catalogue, thing: One) -> str:
    return thing if isinstance(thing, str) else catalogue.bind(thing)


def _learner_table(learner: One | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(learner, Mapping):
        table = dict(learner)
        if "model" in table:
            table["model"] = _name_of(plugins.models, table["model"])
        return table
    return {"name": _name_of(plugins.learners, learner)}


def _table(catalogue: Catalogue, things: One | Sequence[One] | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The run file's table id -> parameters of one or several unlearners or adversaries."""
    if isinstance(things, Mapping):
        return {
            name: _bound(catalogue, how) if isinstance(how, Mapping) else {"method": _name_of(catalogue, how)}
            for name, how in things.items()
        }
    several = list(things) if isinstance(things, list | tuple) else [things]
    table: dict[str, dict[str, Any]] = {}
    for one in several:
        name = one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)
        if name in table:
            raise UserError(f"evaluate: two {catalogue.what}s are called '{name}'; give them as a mapping by id")
        table[name] = {} if isinstance(one, str) else {"method": _name_of(catalogue, one)}
    return table


def _bound(catalogue: Catalogue, how: Mapping[str, Any]) -> dict[str, Any]:
    table = dict(how)
    if "method" in table:
        table["method"] = _name_of(catalogue, table["method"])
    return table


def _listed(values: Any) -> Any:
    """A list of them; what is no sequence as it is, for the run file's checks to name."""
    return values if isinstance(values, str) or not isinstance(values, Iterable) else list(values)


def _data_name(data: Any) -> str:
    if isinstance(data, str):
        return data
    from forgetgauge.data.loading import as_dataset

    dataset = as_dataset(data, "given")
    return plugins.data.bind(dataset, f"{dataset.name}@{dataset.digest[:12]}")


def _metrics_table(metrics: str | Sequence[str] | Mapping[str, Any]) -> Any:
    """The run file's table; names alone ask for those metrics."""
    if isinstance(metrics, Mapping):
        return _plain_table(metrics)
    names = [metrics] if isinstance(metrics, str) else metrics
    if not (isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)):
        raise UserError(f"evaluate: metrics = {metrics!r} are neither names nor a mapping")
    return dict.fromkeys(names, True)


def _plain_table(table: Any) -> Any:
    """A mapping of any kind as a dict; what is none is left for the checks of a run file to refuse."""
    return dict(table) if isinstance(table, Mapping) else table


def _sensitivity_table(sensitivity: Any, scratch: Path) -> Any:
    if isinstance(sensitivity, str):
        return sensitivity
    if isinstance(sensitivity, Mapping):
        return {"by_class": {str(label): float(weight) for label, weight in sensitivity.items()}}
    path = scratch / "weights.npy"
    np.save(path, np.asarray(sensitivity, dtype=np.float64))
    return {"file": str(path)}
