"""Reading a run file: TOML in, a checked RunSpec out; every mistake is one line with file, key and nearest name.

A recipe has a name: `preset = "cifar-resnet"` in the table `[learner]` stands for its keys; keys beside it win. What is
stored and hashed is the expanded table, so a preset and the same keys written out are the same jobs.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import tomllib
from collections.abc import Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import shallow, unreadable_number
from forgetgauge.plan.game import too_many_jobs
from forgetgauge.plan.spec import PARAMETERS, RunSpec
from forgetgauge.probing import has
from forgetgauge.records import checker_of

DEFAULT = "digits.toml"
DEEPEST = 30
"""Tables inside tables."""
SpecT = TypeVar("SpecT")


def read_run_file(path: Path | None) -> tuple[dict[str, Any], str]:
    """(raw tables, the file's name for messages); None is the embedded default."""
    if path is None:
        return tomllib.loads(resources.files(__package__).joinpath(DEFAULT).read_text("utf-8")), "embedded default"
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    try:
        return shallow(tomllib.loads(text), DEEPEST), str(path)
    except (ValueError, RecursionError) as error:  # of what TOML forbids, of numbers too long, of tables too deep
        raise UserError(f"{path}: not valid TOML: {error}") from None


def apply_settings(raw: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """`game.alpha=0.25` sets that key; values are TOML, or else a bare string. What is set is swept no more."""
    changed = copy.deepcopy(dict(raw))
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set {setting}: write key=value, e.g. --set game.alpha=0.25")
        if key.count(".") > DEEPEST:
            raise UserError(f"--set {setting[:40]}…: tables in more than {DEEPEST} tables")
        set_key(changed, key.strip(), value_set(text.strip()))
    _leave_out_a_sweep_that_is_set(changed, {setting.partition("=")[0].strip() for setting in settings})
    return changed


def _leave_out_a_sweep_that_is_set(raw: dict[str, Any], keys: Set[str]) -> None:
    """Else the sweep would win over what was set, without a word."""
    sweep = raw.get("sweep")
    swept = sweep.get("key") if isinstance(sweep, dict) else None
    if not isinstance(swept, str):
        return
    for key in sorted(keys):
        is_same = swept == key or swept.startswith(f"{key}.")
        if (is_same and {"sweep", "sweep.key"} & keys) or key.startswith(f"{swept}."):
            raise UserError(f"--set {key}: {swept} is swept, so that it would have no effect; set one of the two")
        if is_same:
            raw.pop("sweep", None)


def set_key(raw: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted key in place, making tables on the way; a list of unlearners becomes a table first."""
    *tables, last = path.split(".")
    place = raw
    for table in tables:
        if isinstance(place.get(table), list):
            place[table] = _as_table(table, place[table], "--set")
        place = place.setdefault(table, {})
        if not isinstance(place, dict):
            raise UserError(f"{path}: {table} is a value, not a table")
    place[last] = value


def value_set(text: str) -> Any:
    """What `--set key=text` sets the key to."""
    try:
        return shallow(tomllib.loads(f"value = {text}"), DEEPEST)["value"]
    except (ValueError, RecursionError):
        return text


def _as_table(what: str, names: Any, source: str) -> Any:
    """A list of names as the table that gives each of them no parameters."""
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        return names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{source}: {what} names '{twice[0]}' twice")
    return {name: {} for name in names}


def parse_spec(raw: Mapping[str, Any], source: str) -> RunSpec:
    """Check every key and value."""
    tables = copy.deepcopy(dict(raw))
    for several in ("unlearners", "adversaries"):
        if several in tables:
            tables[several] = _as_table(several, tables[several], source)
    game = tables.get("game")
    if isinstance(game, dict) and game.get("sensitivity") == "uniform":
        del game["sensitivity"]
    spec = validated(RunSpec, tables, source)
    problem = _out_of_range(spec) or unreadable_number(tables)
    if problem:
        raise UserError(f"{source}: {problem}")
    return spec


def _out_of_range(spec: RunSpec) -> str | None:
    for parameter in PARAMETERS.values():
        problem = parameter.refusal(parameter.value_in(spec))
        if problem:
            return problem
    if not spec.unlearners:
        return "unlearners is empty: name at least one"
    if not spec.adversaries:
        return "adversaries is empty: name at least one"
    pairs = spec.game.pairs if spec.until is None else max(spec.game.pairs, spec.until.max_pairs)
    if many := too_many_jobs(pairs, spec.game.seeds, len(spec.unlearners), len(spec.adversaries)):
        return many
    if spec.until is not None and spec.until.max_pairs < spec.game.pairs:
        return f"until.max_pairs = {spec.until.max_pairs} is not at least game.pairs = {spec.game.pairs}"
    if spec.until is not None and spec.game.pairs < 5:
        return f"until needs a pilot of at least 5 pairs, but game.pairs = {spec.game.pairs}"
    if spec.until is not None and spec.statistics.interval == "bounded":
        return "until is a rule for Student's interval: state game.pairs, or leave out statistics.interval"
    if spec.metrics.ic and not (len(spec.metrics.ic_classes) == 2 == len(set(spec.metrics.ic_classes))):
        return f"metrics.ic_classes = {spec.metrics.ic_classes} are not two different classes"
    if spec.game.sensitivity.by_class is not None and spec.game.sensitivity.file is not None:
        return "game.sensitivity has both by_class and file: give one"
    if spec.sweep is not None and not spec.sweep.values:
        return "sweep.values is empty"
    if not isinstance(spec.learner.get("name", "minibatch"), str):
        return f"learner.name = {spec.learner['name']!r} is not a string"
    return None


def sweep_games(raw: Mapping[str, Any], source: str) -> list[tuple[Any, RunSpec]]:
    """[(value, spec)] for each value of the sweep; [(None, spec)] without one."""
    spec = parse_spec(raw, source)
    if spec.sweep is None:
        return [(None, spec)]
    if spec.sweep.key.split(".")[0] in ("sweep", "keep", ""):
        raise UserError(f"{source}: sweep.key = '{spec.sweep.key}' cannot be swept")
    games = []
    for value in spec.sweep.values:
        swept = copy.deepcopy({key: table for key, table in raw.items() if key != "sweep"})
        set_key(swept, spec.sweep.key, value)
        games.append((value, parse_spec(swept, f"{source}: sweep value {value!r}")))
    return games


def validated(kind: type[SpecT], values: Any, source: str) -> SpecT:
    """`values` as the dataclass `kind`, one of ours, or one line on the first thing that does not fit."""
    try:
        return checked_json(checker_of(kind), values)
    except pydantic.ValidationError as error:
        raise UserError(f"{source}: {_first_line(kind, error.errors()[0])}") from None


def checked_json(checker: pydantic.TypeAdapter[SpecT], values: Any) -> SpecT:
    """Strictly typed (no "8" for 8), which pydantic allows for a dataclass from JSON text only."""
    return checker.validate_json(json.dumps(values, default=_as_json), strict=True)


def _as_json(value: Any) -> Any:
    """A numpy number as the number it is; anything else (a TOML date, say) as its text, which no key accepts."""
    return value.item() if has(value, "item") else str(value)


def _first_line(kind: type[Any], error: Any) -> str:
    place = [str(part) for part in error["loc"]]
    path = ".".join(place)
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        valid = _fields_at(kind, place[:-1])
        where = f"{'.'.join(place[:-1])}: " if place[:-1] else ""
        return where + unknown_name("key", place[-1], valid)
    given = error["input"]
    shown = "" if isinstance(given, dict) else f" = {given!r}"
    return f"{path}{shown}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _fields_at(kind: Any, place: Sequence[str]) -> list[str]:
    import typing

    for name in place:
        hint = typing.get_type_hints(kind)[name]
        options = [hint, *typing.get_args(hint)]
        kind = next(option for option in options if dataclasses.is_dataclass(option))
    return [f.name for f in dataclasses.fields(kind)]


def complete_params(what: str, factory: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """`params` with the defaults of the dataclass `factory` filled in, as plain JSON values.

    Defaults that are no JSON (the set of an adversary's needs, say) are left out: they stand in the class, whose code a
    run knows. Things of the user's that are no dataclass have no defaults of ours: what is given is what they get.
    """
    if not (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        if isinstance(factory, type):
            _check_arguments(what, factory, params)
        return dict(params)
    names = [f.name for f in dataclasses.fields(factory) if f.init]
    for key in params:
        if key not in names:
            raise UserError(f"{what}: " + unknown_name("key", key, names))
    try:
        made: Any = checked_json(pydantic.TypeAdapter(factory), dict(params))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        shown = f"{place} = {first['input']!r}: " if place else ""
        raise UserError(f"{what}: {shown}{message[0].lower()}{message[1:]}") from None
    except (pydantic.errors.PydanticUserError, pydantic.errors.PydanticUndefinedAnnotation) as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{what}: a field of {factory.__name__} has a type that cannot be checked: {line}") from None
    completed = {name: _plain(getattr(made, name)) for name in names}
    for name in [name for name, value in completed.items() if not _is_json(value)]:
        if name in params:
            kind = type(getattr(made, name)).__name__
            raise UserError(f"{what}: {name} is a {kind}, which a run file cannot hold: set it in the class")
        del completed[name]
    if wrong := unreadable_number(completed):
        raise UserError(f"{what}: {wrong}")
    return completed


def _check_arguments(what: str, factory: type, params: Mapping[str, Any]) -> None:
    """Refuse a key that a class of the user's does not take, and a parameter that it needs and nobody gives."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # written in C
        return
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    unknown = [key for key in params if key not in names]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise UserError(f"{what}: " + unknown_name("key", unknown[0], names))
    missing = [p.name for p in parameters if p.name in names and p.default is p.empty and p.name not in params]
    if missing:
        raise UserError(f"{what}: {factory.__name__} needs '{missing[0]}', which nothing gives it: set it here")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


# -- presets -----------------------------------------------------------------------------------------------------------

PRESETS: dict[str, dict[str, Any]] = {
    # The paper's: the rate falls tenfold after epochs 100 and 150; no augmentation, the last epoch's weights. It names
    # no batch size; 128 is that of the code its other numbers are from.
    "cifar-resnet": {
        "model": "resnet20",
        "optimiser": "sgd",
        "lr": 0.1,
        "momentum": 0.9,
        "weight_decay": 1e-5,
        "schedule": "steps",
        "milestones": [0.5, 0.75],
        "epochs": 200,
        "batch_size": 128,
        "precision": "bfloat16",
        "augment": "none",
    },
    # A tenth of the epochs: up to a higher rate and down to 0 in straight lines (super-convergence), more decay.
    "fast": {
        "model": "resnet20",
        "optimiser": "sgd",
        "lr": 0.2,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "schedule": "linear",
        "warmup": 0.2,
        "epochs": 20,
        "batch_size": 128,
        "precision": "bfloat16",
        "augment": "none",
    },
    # Devlin et al.'s fine-tuning, but ten epochs in place of three or four: the paper's Q shows heavy memorisation.
    "bert": {
        "model": "bert",
        "optimiser": "adamw",
        "lr": 2e-5,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup": 0.1,
        "epochs": 10,
        "batch_size": 32,
        "precision": "bfloat16",
    },
}


def expand_preset(learner: Mapping[str, Any]) -> dict[str, Any]:
    """The table with its preset's keys filled in; one without a preset as it is."""
    given = {key: value for key, value in learner.items() if key != "preset"}
    if "preset" not in learner:
        return given
    name = learner["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        raise UserError("learner.preset: " + unknown_name("preset", str(name), PRESETS))
    return {**PRESETS[name], **given}
