"""From names to choices: methods with their strengths, learners they bring along, and the code that stands behind."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.plan.game import Method, Price
from forgetgauge.plan.jobs import Named
from forgetgauge.plan.runfile import complete_params
from forgetgauge.plan.spec import TuningSpec
from forgetgauge.plan.strength import AUTO, PUBLISHED, Published, Strength, Tuning
from forgetgauge.plugins.catalogue import Catalogue
from forgetgauge.probing import attribute, has
from forgetgauge.run.algorithms import code_of_choice
from forgetgauge.unlearn.signatures import settled
from forgetgauge.wording import listed

RESERVED = ("method", "learner", "strength")
"""Keys of a method's table that are no parameters of it."""


def resolve_method(name: str, params: Mapping[str, Any], learner: Named, tuning: TuningSpec) -> Method:
    """A method by its id and its table, as the run file has it."""
    what, chosen = f"unlearners.{name}", chosen_name(f"unlearners.{name}", name, params)
    thing = plugins.unlearners.load(chosen)
    if not (has(thing, "unlearn") or callable(thing)):
        raise UserError(f"{what}: '{chosen}' is a {type(thing).__name__}, neither function nor unlearner")
    given = {key: value for key, value in params.items() if key not in RESERVED}
    asked = params.get("strength")
    if asked == AUTO and tuning.preset == PUBLISHED:
        asked = PUBLISHED
    if asked == PUBLISHED:
        published = _published(what, chosen, thing)
        method = _method(name, params, {**published.params, **given}, thing, learner)
        others = [f"{key} = {value}" for key, value in given.items() if published.params.get(key, value) != value]
        but = f"; but {', '.join(others)}" if others else ""
        return dataclasses.replace(method, source=published.source + but)
    if asked is None:
        return _method(name, params, given, thing, learner)
    strength = strength_of(what, chosen, thing, asked)
    if strength.parameter in given:
        raise UserError(f"{what}: {strength.parameter} is both set and to be chosen; leave one of the two out")
    ends = (strength.weakest, strength.strongest)
    weakest, _ = (_method(name, params, {**given, strength.parameter: end}, thing, learner) for end in ends)
    return dataclasses.replace(weakest, tuning=Tuning.begin(strength, tuning.points)).as_asked


def _published(what: str, chosen: str, thing: Any) -> Published:
    found = attribute(thing, "published")
    if not isinstance(found, Published):
        raise UserError(f"{what}: no published settings of '{chosen}' are known: set its parameters here")
    return found


def strength_of(what: str, chosen: str, thing: Any, asked: Any) -> Strength:
    """The strength that a table asks for: the method's own, or one that is stated there."""
    if asked == AUTO:
        found = attribute(thing, "strength")
        if not isinstance(found, Strength):
            raise UserError(
                f"{what}: '{chosen}' declares no strength: name the parameter with its weakest and its strongest value,"
                " as in strength = { lr = [1e-5, 0.1] }"
            )
        return found
    if isinstance(asked, Mapping) and len(asked) == 1:
        (parameter, ends), *_ = asked.items()
        numbers = isinstance(ends, list | tuple) and len(ends) == 2
        if numbers and all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
            try:
                return Strength(str(parameter), *ends)
            except ValueError as error:
                raise UserError(f"{what}: {error}") from None
    raise UserError(
        f'{what}: strength = {asked!r} is neither "{AUTO}" nor "{PUBLISHED}" nor a parameter with its weakest and its '
        "strongest value, as { lr = [1e-5, 0.1] }"
    )


def price_of(tuning: TuningSpec, methods: Mapping[str, Method]) -> Price | None:
    """The rule by which strengths are chosen; None where none is."""
    if all(method.tuning is None for method in methods.values()):
        return None
    thing = plugins.unlearners.load("retrain")
    retrain = resolve_named(plugins.unlearners, {"name": "retrain"})
    return Price(tuning.price, tuning.shadows, Method(retrain, False, has(thing, "unlearn_many")))


def _method(name: str, params: Mapping[str, Any], given: dict[str, Any], thing: Any, learner: Named) -> Method:
    what, chosen = f"unlearners.{name}", chosen_name(f"unlearners.{name}", name, params)
    if not isinstance(thing, type):
        try:
            stated = {key: given[key] for key in ("version",) if key in given}
            rest = {key: value for key, value in given.items() if key not in stated}
            given = {**settled(thing, rest), **stated}
        except UserError as error:
            raise UserError(f"{what}: {error}") from None
    unlearner = resolve_named(plugins.unlearners, {**given, "name": chosen}, what)
    return Method(
        unlearner,
        attribute(thing, "uses_original", True),
        has(thing, "unlearn_many"),
        _brought_learner(name, attribute(thing, "learner"), params.get("learner", {}), learner),
    )


def chosen_name(what: str, name: str, params: Mapping[str, Any]) -> str:
    """What an id stands for: itself, or what its `method` names."""
    if "name" in params:
        raise UserError(f"{what}: unknown key 'name'; did you mean 'method'?")
    chosen = params.get("method", name)
    if not isinstance(chosen, str):
        raise UserError(f"{what}: method = {chosen!r} is not a string")
    return chosen


def _brought_learner(name: str, brought: str | None, params: Any, learner: Named) -> Named | None:
    """The learner a method brings along: the game's own parameters where it has them, and those given for it."""
    if brought is None:
        if params:
            raise UserError(f"unlearners.{name}: learner is only for methods that bring a learner of their own")
        return None
    if not isinstance(params, Mapping):
        raise UserError(f"unlearners.{name}: learner = {params!r} is not a table")
    factory = plugins.learners.load(brought)
    own = {field.name for field in dataclasses.fields(factory)} if dataclasses.is_dataclass(factory) else set()
    shared = {key: value for key, value in learner.params.items() if key in own}
    stated = {"version": learner.version} if learner.version else {}
    table = {
        "name": brought,
        **shared,
        **params,
        **(stated if _may_state_version(plugins.learners, brought, shared) else {}),
    }
    return resolve_named(plugins.learners, table, f"unlearners.{name}.learner")


def resolve_named(catalogue: Catalogue, table: Mapping[str, Any], what: str | None = None) -> Named:
    """A choice by name with every parameter, and the digest of its code where it is the user's own."""
    name = table["name"]
    params = {key: value for key, value in table.items() if key != "name"}
    version = params.pop("version", "") if _may_state_version(catalogue, name, params) else ""
    if not isinstance(version, str):
        raise UserError(f"{what or catalogue.what}: version = {version!r} is not a string")
    if version and _has_parameter(catalogue.load(name), "version"):
        raise UserError(f"{what or catalogue.what}: a parameter of '{name}' cannot be called version: rename it")
    thing = catalogue.load(name)
    if params and catalogue is plugins.learners and not isinstance(thing, type):
        from forgetgauge.learn.learner import refuse_incomplete

        refuse_incomplete(name, thing)
        raise UserError(f"{what or catalogue.what}: '{name}' is made already: it takes no {listed(list(params))}")
    completed = complete_params(what or catalogue.what, thing, params)
    for key, value in attribute(thing, "added_later", {}).items():  # or runs from before it would have other keys
        if completed.get(key) == value:
            del completed[key]
    code = code_of_choice(catalogue, name, completed)
    return Named(name, completed, code.digest, version, code.not_covered)


def _has_parameter(thing: Any, name: str) -> bool:
    try:
        return name in inspect.signature(thing).parameters
    except (TypeError, ValueError):  # not callable, or written in C
        return False


def _may_state_version(catalogue: Catalogue, name: str, params: Mapping[str, Any]) -> bool:
    """Of the user's own code, a model of theirs in a learner of ours included."""
    model = params.get("model") if catalogue is plugins.learners else None
    return name not in catalogue.entries or (isinstance(model, str) and model not in plugins.models.entries)
