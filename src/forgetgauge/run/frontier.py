"""The frontier: every method played along its strength, on the originals of the run.

It is a run of its own in a folder inside that of the run, and shares its store: whichever of the two comes second finds
what the first has made and kept. Which strengths are worth playing is found on shadow models, as for a price: between
the last that hardly changes a model and the first that ruins it.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from forgetgauge import plugins
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plan.runfile import value_set
from forgetgauge.plan.strength import AT, AUTO, PUBLISHED, Published, Strength, Value, Variant
from forgetgauge.run.assignments import Resolved
from forgetgauge.run.choices import strength_of
from forgetgauge.run.resolve import resolve

FOLDER = "frontier"
"""Inside a run folder."""
ENDS = ("retrain", "none")
"""What forgets everything and what forgets nothing: the ends of the map."""
AT_PRICE = f"{AT}price"
"""After the name of a method that the run file gives a strength: the one that would be chosen by price."""
ROOM = 100
"""How many times weaker than the run file's strength a range begins that does not hold it."""
Table = dict[str, Any]


def resolve_frontier(raw: Mapping[str, Any], source: str, methods: Sequence[str], n_points: int) -> Resolved:
    """The run of a run file, to be played at so many strengths of each method that has one.

    `methods` names those that are meant; without any it is all of them. What the frontier does not show, metrics beside
    Q and strong adversaries, is not asked for; pairs are those of the file.
    """
    if not 2 <= n_points <= 100:
        raise UserError(f"--points {n_points} is not between 2 and 100")
    tables = {key: value for key, value in raw.items() if key not in ("metrics", "until")}
    unlearners = _tables(raw.get("unlearners", {}))
    if "sweep" in raw or unlearners is None:  # which the checks of a run file will name, if that is what is wrong
        resolve(raw, source)
        key, values = raw["sweep"]["key"], raw["sweep"]["values"]
        ways = " or ".join(f"--set {key}={_on_command_line(value)}" for value in values)
        raise UserError(f"{source}: a frontier is of one game, not of a sweep over {key}; choose one: {ways}")
    wanted = _wanted(unlearners, methods)
    _refuse_names_of_points(wanted, source)
    by_price = _by_price(wanted, published=_preset(raw) == PUBLISHED)
    if not by_price and not any("strength" in how for how in wanted.values()):
        raise UserError(f"{source}: none of its methods has a strength; state one: strength = {{ lr = [1e-5, 0.1] }}")
    resolved = resolve({**tables, "unlearners": {**wanted, **by_price}}, source)
    (game,) = resolved.games
    found = {}
    for name, method in game.methods.items():
        if name in by_price and method.tuning is not None:
            of = name.removesuffix(AT_PRICE)
            method = replace(method, variant=Variant(of, method.tuning.strength.parameter, None))
        found[name] = method
    game = replace(game, methods=found, queries=(), frontier={"points": n_points})
    return replace(resolved, games=[game])


def _on_command_line(value: Any) -> str:
    """A value as `--set` takes it: a bare word, or TOML, in the shell's quotes where it needs them."""
    return shlex.quote(value if isinstance(value, str) and value_set(value) == value else _toml(value))


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


def _preset(raw: Mapping[str, Any]) -> Any:
    tuning = raw.get("tuning", {})
    return tuning.get("preset") if isinstance(tuning, Mapping) else None


def _tables(unlearners: Any) -> dict[str, Table] | None:
    """The table id -> parameters with Retrain and None, where the file does not name them; None where it is none."""
    if isinstance(unlearners, list) and all(isinstance(name, str) for name in unlearners):
        unlearners = {name: {} for name in unlearners}
    if not isinstance(unlearners, Mapping) or not all(isinstance(how, Mapping) for how in unlearners.values()):
        return None
    named = {how.get("method", name) for name, how in unlearners.items()}
    return {**{name: dict(how) for name, how in unlearners.items()}, **{end: {} for end in ENDS if end not in named}}


def _wanted(unlearners: Mapping[str, Table], methods: Sequence[str]) -> dict[str, Table]:
    """The methods that are meant, and the ends of the map."""
    for name in methods:
        if name not in unlearners:
            raise UserError("--methods: " + unknown_name("method", name, unlearners))
    return {
        name: how
        for name, how in unlearners.items()
        if not methods or name in methods or how.get("method", name) in ENDS
    }


def _refuse_names_of_points(unlearners: Mapping[str, Table], source: str) -> None:
    """A method and a point of another's curve would be one."""
    for name in unlearners:
        of, at, _ = name.rpartition(AT)
        if at and of in unlearners:
            raise UserError(
                f"{source}: unlearners.{name}: in a frontier such names are those of '{of}' at its strengths; call it "
                f"otherwise, such as '{name.replace(AT, '-')}'"
            )


def _by_price(unlearners: Mapping[str, Table], *, published: bool) -> dict[str, Table]:
    """Of each method with a strength that the run does not choose by price, a second entry that does."""
    found = {}
    for name, how in unlearners.items():
        asked = how.get("strength")
        if isinstance(asked, Mapping) or (asked == AUTO and not published):
            continue
        chosen = how.get("method", name)
        thing = plugins.unlearners.load(chosen) if isinstance(chosen, str) else None
        if isinstance(getattr(thing, "strength", None), Strength):
            strength = strength_of(f"unlearners.{name}", chosen, thing, AUTO)
            rest = {key: value for key, value in how.items() if key not in ("strength", strength.parameter)}
            if asked in (AUTO, PUBLISHED) and isinstance(known := getattr(thing, "published", None), Published):
                rest = {**{key: value for key, value in known.params.items() if key != strength.parameter}, **rest}
            ends = [_weak_end(strength, how.get(strength.parameter)), strength.strongest]
            found[f"{name}{AT_PRICE}"] = {**rest, "method": chosen, "strength": {strength.parameter: ends}}
    return found


def _weak_end(strength: Strength, own: Any) -> Value:
    """The method's own; a hundredth of what the run file has, where that is no stronger: it is of other tasks."""
    weakest, rises = strength.weakest, strength.weakest < strength.strongest
    if isinstance(weakest, int) or not isinstance(own, int | float) or not 0 < own < math.inf:
        return weakest
    is_weak = own <= weakest if rises else own >= weakest
    return float(f"{own / ROOM if rises else own * ROOM:.3g}") if is_weak else weakest
