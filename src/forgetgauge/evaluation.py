"""`evaluate`: the whole tool from Python, with the user's own functions, models and arrays in the places of names."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, get_type_hints

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.errors import DoubtfulResult, RunFailed, UserError, require_torch, unknown_name
from forgetgauge.files import refuse_deleted_folder, refuse_no_folder
from forgetgauge.plan.runfile import set_key
from forgetgauge.plan.spec import DEFAULT_ADVERSARIES, PARAMETERS, Arguments
from forgetgauge.plugins.catalogue import Catalogue
from forgetgauge.probing import attribute
from forgetgauge.progress import Watch
from forgetgauge.report.interactive import Result
from forgetgauge.report.table import causes
from forgetgauge.report.watching import refuse_no_watch, watched
from forgetgauge.results import record
from forgetgauge.results.verdict import reservations
from forgetgauge.run.algorithms import CATALOGUES
from forgetgauge.run.assignments import Resolved
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.run.scheduler import Ending
from forgetgauge.store.runfolder import RunFolder

One = str | Callable[..., Any] | object
Evaluate = TypeVar("Evaluate", bound=Callable[..., Any])

ESTIMATOR = "scikit-learn"
"""The learner of estimators."""

_WEIGHTS = "weights.npy"
_PLAIN = {one.argument: one for one in PARAMETERS.values() if one.argument is not None}
"""What is taken just as a run file has it, by the name of the argument."""


def _with_plain_arguments(function: Evaluate) -> Evaluate:
    """Show these arguments, their defaults and what they mean, to `help` and to whoever asks for the signature."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    hints = get_type_hints(Arguments)
    plain = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=one.argument_default, annotation=hints.get(name, Any)
        )
        for name, one in _PLAIN.items()
    ]
    lines = "".join(f"\n        {name}: {_sentence(one.meaning)}" for name, one in _PLAIN.items())
    shown: Any = function
    shown.__signature__ = signature.replace(parameters=[*own, *plain])
    shown.__doc__ = (shown.__doc__ or "").replace("\n\n    Returns:", f"{lines}\n\n    Returns:")
    return function


def _sentence(meaning: str) -> str:
    first = meaning[0]
    return f"{first.upper() if first.isascii() else first}{meaning[1:]}."


@_with_plain_arguments
def evaluate(
    *,
    unlearner: One | Sequence[One] | Mapping[str, Any] = ("retrain", "none"),
    learner: One | Mapping[str, Any] = "minibatch",
    model: One | None = None,
    data: Any = "digits",
    data_params: Mapping[str, Any] | None = None,
    columns: tuple[str, str] | None = None,
    groups: npt.ArrayLike | int | str | None = None,
    until: Mapping[str, float] | None = None,
    adversaries: One | Sequence[One] | Mapping[str, Any] = DEFAULT_ADVERSARIES,
    metrics: str | Sequence[str] | Mapping[str, Any] = (),
    sensitivity: str | Mapping[int, float] | npt.ArrayLike = "uniform",
    sweep: tuple[str, Sequence[Any]] | None = None,
    out: str | Path | None = None,
    executor: str = "inline",
    executor_settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    time_limit_s: float | None = None,
    on_failure: Literal["raise", "record"] = "raise",
    progress: Watch | bool = True,
    **plain: Unpack[Arguments],
) -> Result:
    """Play the game and return its result.

    Code that is not ours is first tried on a handful of points: what fails there is a `UserError`. Where jobs fail
    later, the others are done and `forgetgauge.errors.RunFailed` is raised, with each cause, the first traceback, and
    what could be measured as its `result`.

    Args:
        unlearner: A name of the catalogue, a function `(model, retain, forget, context) -> model` or, as in public
            competitions, `(net, retain, forget, validation)`, several of these, or a mapping id -> name, function or
            parameters.
        learner: A name, a mapping of the run file's `[learner]` table, an estimator of scikit-learn, or an object with
            the methods of `Learner`.
        model: The learner's: a name, a class or function that makes a torch module, or a module, whose weights every
            training then begins with; or an estimator of scikit-learn.
        data: A name, a pair (inputs, labels) of arrays, a data set by its items (torch's, torchvision's, Hugging
            Face's), a `DataLoader`, two of these (training, test), a mapping with `train` and `test`, or a `Dataset`.
        data_params: Go to the function that a name stands for.
        columns: The names of input and label where items or batches are mappings, as in `("image", "label")`; usual
            names are found without.
        groups: Of which group each point is, for games `by="group"`: an array of numbers or names, one for each point,
            or what the run file's `data.groups` may be.
        until: Of the run file's `[until]` table.
        adversaries: Names, objects with the methods of `Adversary`, or a mapping id -> name or parameters.
        metrics: Names of other metrics to set beside Q, or a mapping of the run file's `[metrics]` table; they are in
            each method's `metrics`.
        sensitivity: `"uniform"`, class -> weight, or one weight per point.
        sweep: A key of the run file and its values: one game for each.
        out: A run folder, in which the run can be continued, scored and reported later; without it nothing is left on
            disk.
        executor: `inline`, `processes`, or another of `forgetgauge ls executors`.
        executor_settings: The executor's own, such as the `address` of a Ray cluster.
        device: `auto` (a GPU where there is one), `cpu`, `cuda` or `cuda:1`, and with `executor="processes"` several,
            `cuda:0,cuda:2`, or all of them.
        time_limit_s: Stops by then, with `TimeoutError`; the same call with the same `out` goes on.
        on_failure: `"record"` tries nothing first and returns the result all the same: a method that failed has no
            quality there, and `failures` says why.
        progress: A bar on a terminal and in a notebook unless False; or a function, called with where the run stands.

    Returns:
        The `Result`, to be looked at, drawn, kept and compared.

    Examples:
        >>> def my_method(model, retain, forget, context):
        ...     return copy.deepcopy(model)
        >>> result = forgetgauge.evaluate(unlearner=["retrain", "none", my_method], data="digits", alpha=0.5, pairs=8)
        >>> result.methods["my_method"].quality == result.methods["none"].quality  # it forgets nothing
        True
    """
    refuse_deleted_folder()
    refuse_no_folder(out)
    refuse_no_watch(progress)
    require_torch()
    if on_failure not in ("raise", "record"):
        raise UserError("evaluate: " + unknown_name("on_failure", str(on_failure), ["raise", "record"]))
    if time_limit_s is not None and not (isinstance(time_limit_s, Real) and time_limit_s >= 0):
        raise UserError(f"evaluate: time_limit_s must be a number of seconds, not {time_limit_s!r}")
    options = RunOptions(executor, device, False, time_limit_s, on_failure == "raise", settings=executor_settings or {})
    raw = _tables(plain)
    raw["data"] |= _data_table(data, data_params or {}, plain.get("task"), groups, columns)
    raw["learner"] = _learner_table(learner, model)
    raw["metrics"] = _metrics_table(metrics)
    raw["unlearners"] = _table(plugins.unlearners, unlearner)
    raw["adversaries"] = _table(plugins.adversaries, adversaries)
    raw |= {} if until is None else {"until": dict(until) if isinstance(until, Mapping) else until}
    raw |= {} if sweep is None else {"sweep": _sweep_table(sweep)}
    with tempfile.TemporaryDirectory(prefix="forgetgauge-") as scratch:
        raw["game"]["sensitivity"] = _sensitivity_table(sensitivity, Path(scratch))
        campaign = Campaign.plan(_resolved(raw, str(Path(scratch) / _WEIGHTS)))
        _refuse_bound(campaign, options)
        _refuse_idle(campaign, options, plain)
        folder = RunFolder(Path(out) if out is not None else Path(scratch) / "run")
        with watched(progress) as watch:
            ending, found = play(campaign, folder, replace(options, progress=watch))
        found = _with_tracebacks(found, folder) if found is not None and out is None else found
    return _concluded(ending, None if found is None else Result.of(found), out, on_failure)


def _concluded(ending: Ending, result: Result | None, out: str | Path | None, on_failure: str) -> Result:
    """The result, with warnings; unless jobs failed and that is to be raised, or the time was up."""
    for note in ending.notes:
        warnings.warn(note if out is None else f"{out}: {note}", stacklevel=3)
    if ending.failed and on_failure == "raise":
        raise RunFailed(_what_failed(ending), result) from next(iter(ending.failed.values())).error
    if result is None:
        raise TimeoutError(f"{ending.n_missing} jobs are left; call again with the same arguments and `out` to go on")
    for line in _warnings(result):
        warnings.warn(line, DoubtfulResult, stacklevel=3)
    return result


def _tables(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The run file's tables with the arguments that are given, and the defaults of the others."""
    for name in plain:
        if name not in _PLAIN:
            raise TypeError("evaluate: " + unknown_name("argument", name, inspect.signature(evaluate).parameters))
    raw: dict[str, Any] = {}
    for name, one in _PLAIN.items():
        value = plain.get(name, one.argument_default)
        set_key(raw, one.key, _listed(value) if isinstance(one.default, list) else value)
    return raw


def _warnings(result: Result) -> list[str]:
    unwatched = [f"not watched for changes: {what}" for game in result.games for what in game.not_covered]
    return [*(line for game in result.games for line in reservations(game)), *unwatched]


def _sweep_table(sweep: Any) -> dict[str, Any]:
    if isinstance(sweep, str) or not isinstance(sweep, Sequence) or len(sweep) != 2:
        raise UserError('evaluate: sweep must be a key and its values, as in ("game.alpha", [0.1, 0.25])')
    return {"key": sweep[0], "values": _listed(sweep[1])}


def _resolved(raw: Mapping[str, Any], weights: str) -> Resolved:
    """Every choice made; a file of weights that the user never wrote is called what the user gave."""
    try:
        return resolve(raw, "evaluate")
    except UserError as error:
        if weights not in str(error):
            raise
        raise UserError(str(error).replace(weights, "sensitivity")) from None


def _refuse_idle(campaign: Campaign, options: RunOptions, plain: Mapping[str, Any]) -> None:
    """UserError on an argument that would have no effect."""
    if line := options.without_limit(campaign.resolved.job_seconds):
        raise UserError(f"evaluate: {line}")
    if "scorers" in plain and all(game.hardest == 1 for game in campaign.resolved.games):
        raise UserError(f"evaluate: scorers = {plain['scorers']} has no effect unless hardest is below 1")
    idle = [name for name in ("price", "strengths", "tuning_shadows") if name in plain]
    if idle and all(game.price is None for game in campaign.resolved.games):
        raise UserError(f"evaluate: {idle[0]} = {plain[idle[0]]} has no effect: no unlearner has a strength to choose")


def _refuse_bound(campaign: Campaign, options: RunOptions) -> None:
    """UserError where a game names an object of this program, and other processes are to work on it."""
    named = [
        (catalogue, name)
        for game in campaign.resolved.games
        for what, _, choice in [("data", "data", game.data), *game.choices]
        for catalogue, name in (
            (plugins.data if what == "data" else CATALOGUES[what], choice.name),
            (plugins.models, str(choice.params.get("model"))),
        )
    ]
    elsewhere = not getattr(options.load_executor(), "in_this_process", False)
    if elsewhere and any(catalogue.is_bound(name) for catalogue, name in named):
        raise UserError(
            "evaluate: worker processes cannot see functions and arrays of this program; "
            "name them as 'module:attribute', or use executor='inline'"
        )


def _what_failed(ending: Ending) -> str:
    """Each cause once, and the first traceback whole."""
    failed = list(ending.failed.values())
    lines = [
        f"{ending.n_missing} jobs could not be done",
        *causes([(failure.job, failure.line) for failure in failed]),
        'on_failure="record" returns what could be measured all the same. The first traceback:',
        failed[0].traceback,
    ]
    return "\n".join(lines)


def _with_tracebacks(result: record.Result, folder: RunFolder) -> record.Result:
    """The texts in place of the names of files that are about to be deleted."""
    texts = [(folder.path / failure.traceback).read_text("utf-8") for failure in result.failures]
    failures = [replace(failure, traceback="", text=text) for failure, text in zip(result.failures, texts, strict=True)]
    return replace(result, failures=failures)


def _name_of(catalogue: Catalogue, thing: One) -> str:
    return thing if isinstance(thing, str) else catalogue.bind(thing)


def _learner_table(learner: One | Mapping[str, Any], model: One | None) -> dict[str, Any]:
    from forgetgauge.learn.estimator import is_estimator

    if is_estimator(learner):
        if model is not None:
            raise UserError("evaluate: an estimator is learner and model in one: leave model out")
        learner, model = ESTIMATOR, learner
    elif is_estimator(model) and learner == "minibatch":
        learner = ESTIMATOR
    table = dict(learner) if isinstance(learner, Mapping) else {"name": learner}
    if "name" in table:
        table["name"] = _name_of(plugins.learners, table["name"])
    if model is not None:
        if "model" in table:
            raise UserError("evaluate: the model is given twice, as model and as learner['model']")
        if not isinstance(learner, Mapping | str):
            raise UserError("evaluate: a learner that is an object brings its own model: leave model out")
        table["model"] = model
    if "model" in table:
        table["model"] = _name_of(plugins.models, table["model"])
    return table


def _table(catalogue: Catalogue, things: One | Sequence[One] | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The run file's table id -> parameters of one or several unlearners or adversaries."""
    if isinstance(things, Mapping):
        hows = {name: how if isinstance(how, Mapping) else {"method": how} for name, how in things.items()}
        named = {name: _bound(catalogue, how) for name, how in hows.items()}
        seen: dict[str, tuple[str, Any]] = {}
        for name, how in hows.items():
            first, thing = seen.setdefault(repr(named[name]), (name, how.get("method")))
            if not isinstance(thing, str) and thing is not how.get("method"):
                raise UserError(
                    f"evaluate: {catalogue.what}s '{first}' and '{name}' are the same code with the same values, and "
                    "would have one result: name one of them, or give them the values in which they differ (a function "
                    "made in a loop has the loop's last value, unless a default keeps its own)"
                )
        return named
    several = list(things) if isinstance(things, list | tuple) else [things]
    table: dict[str, dict[str, Any]] = {}
    for one in several:
        name = one if isinstance(one, str) else attribute(one, "__name__", type(one).__name__)
        if name in table:
            raise UserError(
                f"evaluate: the name '{name}' is given to more than one {catalogue.what}: give them as a mapping by id"
            )
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


def _data_table(
    data: Any, params: Any, task: str | None, groups: Any, columns: tuple[str, str] | None
) -> dict[str, Any]:
    """The run file's table; what is no name in it is bound to one."""
    if isinstance(data, str) and columns is not None:
        raise UserError("evaluate: columns are those of data that is given as an object; a name has its own")
    from forgetgauge.data.loading import as_dataset, load_dataset, task_named

    named = groups is None or isinstance(groups, str | int)
    stated = {"groups": groups} if named and groups is not None else {}
    if isinstance(data, str) and named:
        return {"name": data, "params": _plain_table(params), **stated}
    if isinstance(data, str):
        dataset, params = load_dataset(data, {**params, **({} if task is None else {"task": task})}), {}
    else:
        dataset = as_dataset(data, "given", task_named(task), columns)
    dataset = dataset if named else dataset.grouped_by(groups)
    name = plugins.data.bind(dataset, f"{dataset.name}@{dataset.digest[:12]}")
    return {"name": name, "params": _plain_table(params), **stated}


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
    path = scratch / _WEIGHTS
    try:
        if np.ma.is_masked(sensitivity):
            raise ValueError("what is masked is no number")
        np.save(path, np.asarray(sensitivity, dtype=np.float64))
    except (TypeError, ValueError):
        raise UserError(
            "evaluate: sensitivity is neither a name, nor class -> weight, nor a number per point"
        ) from None
    return {"file": str(path)}
