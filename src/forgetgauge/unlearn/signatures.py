"""Which of two signatures a user's method has, and which of its parameters is which.

    forgetgauge   (model, retain, forget, context): sets of points, and what else a method may know
    competition   (net, retain, forget, validation): three loaders

By position both are four parameters, so their names and annotations tell: the fourth is called `context` (`ctx`) or
after validation, or one of them is a loader. Names also tell the retain set from the forget set where these come in
another order. What does not tell is refused: a wrong guess would fail, or worse, unlearn the wrong set.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plugins.catalogue import call_by_name
from forgetgauge.probing import attribute

Signature = Literal["forgetgauge", "competition"]
_WRITTEN = {"forgetgauge": "(model, retain, forget, context)", "competition": "(net, retain, forget, validation)"}
_LOADERS = ("retain_loader", "forget_loader"), ("val_loader", "validation_loader")


def settled(thing: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a method's table with `signature` where its parameters alone do not tell it, and only there."""
    rest = {key: value for key, value in given.items() if key != "signature"}
    signature = signature_of(thing, given.get("signature"), rest)
    _check_keys(function_of(thing), signature, rest)
    return rest if _told(thing, rest) == signature else {**rest, "signature": signature}


def signature_of(thing: Any, stated: Any = None, given: Collection[str] = ()) -> Signature:
    """Of a function, or of an object with `unlearn`, whose further parameters are `given`; as `stated` if it is."""
    if stated is not None and stated not in get_args(Signature):
        raise UserError(unknown_name("signature", str(stated), list(get_args(Signature))))
    function = function_of(thing)
    parameters = _parameters(function)
    name = attribute(function, "__name__", type(function).__name__)
    shown = f"{name}({', '.join(str(p).partition(':')[0].partition('=')[0] for p in parameters.values())})"
    if parameters and _four(parameters, given) is None and not _takes_any(parameters):
        ours, theirs = _WRITTEN.values()
        raise UserError(f"'{shown}' is no method: one takes {ours} or, in the competition's signature, {theirs}")
    signature: Signature | None = stated or _told(thing, given)
    if signature is None:
        raise UserError(
            f"'{shown}' does not tell whether it is {_WRITTEN['forgetgauge']} or the competition's "
            f'{_WRITTEN["competition"]}: say signature = "forgetgauge" or signature = "competition"'
        )
    return signature


def function_of(thing: Any) -> Any:
    """What is called: its `unlearn` where it has one."""
    return attribute(thing, "unlearn", thing)


def call(function: Any, four: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """With (model, retain, forget, context or validation), each to the parameter that is meant for it."""
    names = _four(_parameters(function), params)
    if names is None:
        return function(*four, **params)
    return call_by_name(function, {**dict(zip(names, four, strict=True)), **params})


def parameters_of(function: Any) -> Collection[str]:
    """The names of its parameters."""
    return _parameters(function).keys()


def _told(thing: Any, given: Collection[str]) -> Signature | None:
    """What its parameters say, if they say one thing; `unlearn` is our own name for a method."""
    function = function_of(thing)
    parameters = _parameters(function)
    otherwise: Signature | None = None if function is thing else "forgetgauge"
    names = _four(parameters, given)
    if names is None:
        return otherwise
    *sets, last = (name.strip("_").lower() for name in names[1:])
    kinds = [_annotated(parameters[name]) for name in names[1:]]
    ours = last == "c" or last.startswith(("context", "ctx")) or last.endswith(("context", "ctx"))
    ours = ours or kinds[2].endswith("Context") or any(kind.endswith("Points") for kind in kinds[:2])
    theirs = last == "v" or last.startswith(("val", "test")) or any("Loader" in kind for kind in kinds)
    theirs = theirs or any("loader" in name or name.endswith(("_dl", "_dls")) for name in (*sets, last))
    if ours == theirs:
        return otherwise
    return "forgetgauge" if ours else "competition"


def _four(parameters: Mapping[str, inspect.Parameter], given: Collection[str]) -> tuple[str, str, str, str] | None:
    """Which parameters are the model, the retain set, the forget set and the fourth; None where there are not four."""
    asked = [
        name
        for name, p in parameters.items()
        if name not in given
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and (p.default is p.empty or p.kind is not p.KEYWORD_ONLY)
    ]
    (retain, forget), validation = _LOADERS
    watched = [name for name in asked if name in validation]
    if {retain, forget} < {*asked[1:]} and watched:
        return asked[0], retain, forget, watched[0]
    if len(asked) < 4:
        return None
    sets = asked[1:4]
    of_retain = [name for name in sets if "retain" in name.lower() or "remain" in name.lower()]
    of_forget = [name for name in sets if "forget" in name.lower() and name not in of_retain]
    last = [name for name in sets if name.strip("_").lower().startswith(("val", "context", "ctx"))]
    roles: list[str | None] = [of[0] if len(of) == 1 else None for of in (of_retain, of_forget, last)]
    others = iter([name for name in sets if name not in roles])
    first, second, third = (name or next(others) for name in roles)
    return asked[0], first, second, third


def _check_keys(function: Any, signature: Signature, given: Collection[str]) -> None:
    """Refuse a key that the function does not take, and a parameter that nothing gives."""
    parameters = _parameters(function)
    four = _four(parameters, given)
    if four is None:
        return
    own = [n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and n not in four]
    of_loaders = ["batch_size"] if signature == "competition" else []
    for key in given:
        if key not in (*own, *of_loaders) and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            raise UserError(unknown_name("key", key, [*own, *of_loaders, "signature"]))
    missing = [name for name in own if parameters[name].default is inspect.Parameter.empty and name not in given]
    if missing:
        raise UserError(f"it needs '{missing[0]}', which nothing gives it: set {missing[0]} beside its method")


def _takes_any(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in parameters.values())


def _annotated(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    if kind is parameter.empty:
        return ""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # not callable, or written in C
        return {}
