"""Which of two signatures a user's method has, and which of its parameters is which.

    forgetgauge   (model, retain, forget, context): sets of points, and what else a method may know
    competition   (net, retain, forget, validation): three loaders

By position both are four parameters, so their names and annotations tell: the fourth is called `context` (`ctx`) or
after validation, or one of them is a loader. Names also tell the retain set from the forget set, in whatever order
these come. What does not tell is refused: a wrong guess would fail, or worse, unlearn the wrong set.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plugins.catalogue import call_by_name
from forgetgauge.probing import attribute

Signature = Literal["forgetgauge", "competition"]
_WRITTEN = {"forgetgauge": "(model, retain, forget, context)", "competition": "(net, retain, forget, validation)"}
_LOADERS = ("retain_loader", "forget_loader"), ("val_loader", "validation_loader")

_RETAIN, _FORGET = "retain", "forget"
_WORDS = {
    _RETAIN: re.compile("retain|remain|preserv|(^|_)(keep|kept|rest(_|$))"),
    _FORGET: re.compile("forget|forgot|unlearn|eras|delet|remov|discard"),
}
"""What the name of a set says by itself, in lower case with underscores between its words."""
_NOT = re.compile("(^|_)(non?|not|un)_?(?=retain|keep|kept|forg|eras|delet|remov|discard)")
_LETTERS = {_RETAIN: {"r", "dr", "k", "dk"}, _FORGET: {"f", "df", "u", "du"}}
"""What is told by a letter, as in D_r and D_f, only beside a set whose name says the other: r may be for removed."""
_FOURTH = ("val", "test", "context", "ctx")


def settled(thing: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a method's table with `signature` where its parameters alone do not tell it, and only there."""
    rest = {key: value for key, value in given.items() if key != "signature"}
    signature = signature_of(thing, given.get("signature"), rest)
    _check_keys(function_of(thing), signature, rest)
    tells = _told(thing, rest) == signature and _tells_sets(_parameters(function_of(thing)), rest)
    return rest if tells else {**rest, "signature": signature}


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
    if signature is not None and stated is None and not _tells_sets(parameters, given):
        raise UserError(
            f"'{shown}' does not tell which parameter is which: call the sets retain and forget, or D_r and D_f, and "
            f'what follows {_WRITTEN[signature].split()[-1][:-1]} (signature = "{signature}" says that the order is '
            f"{_WRITTEN[signature]})"
        )
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
    """Which parameters are the model, the retain set, the forget set and the fourth; None where there are not four.

    By their names, as far as these tell; else by their places.
    """
    asked = _asked(parameters, given)
    (retain, forget), validation = _LOADERS
    watched = [name for name in asked if name in validation]
    if {retain, forget} < {*asked[1:]} and watched:
        return asked[0], retain, forget, watched[0]
    if len(asked) < 4:
        return None
    by_name = _by_name(asked[1:4])
    return asked[0], *(by_name or (asked[1], asked[2], asked[3]))


def _asked(parameters: Mapping[str, inspect.Parameter], given: Collection[str]) -> list[str]:
    """The parameters that may be among the four."""
    return [
        name
        for name, p in parameters.items()
        if name not in given
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and (p.default is p.empty or p.kind is not p.KEYWORD_ONLY)
    ]


def _tells_sets(parameters: Mapping[str, inspect.Parameter], given: Collection[str]) -> bool:
    """Whether its names tell which set is which; those of `*args` never do, nor need they."""
    four = _four(parameters, given)
    return four is None or _by_name(four[1:]) is not None


def _by_name(three: Sequence[str]) -> tuple[str, str, str] | None:
    """(retain, forget, fourth) where the names tell; the one that is left over is what the other two are not."""
    fourths = [name for name in three if _is_fourth(name)]
    last = fourths[0] if len(fourths) == 1 else None
    told = {name: _role_by_words(name) for name in three if name != last}
    letters = {name: role or _role_by_letter(name) for name, role in told.items()}
    if {*letters.values()} >= {_RETAIN, _FORGET}:
        told = letters
    of = {role: [name for name in told if told[name] == role] for role in (_RETAIN, _FORGET)}
    if max(map(len, of.values())) != 1:
        return None
    last = last or _left_over(three, told)
    sets = [name for name in three if name != last]
    if last is None or told.get(last) is not None:
        return None
    retain = of[_RETAIN][0] if of[_RETAIN] else next(name for name in sets if name not in of[_FORGET])
    return retain, next(name for name in sets if name != retain), last


def _left_over(three: Sequence[str], told: Mapping[str, str | None]) -> str | None:
    """The last place, unless a set stands there and the one that is neither set may be anything, such as all data."""
    last = three[-1]
    return None if told[last] is not None or "train" in last.lower() else last


def _is_fourth(name: str) -> bool:
    return any(word.startswith(_FOURTH) for word in _words(name))


def _role_by_words(name: str) -> str | None:
    """Which set a name says that it is, if it says one: `not_forgotten` is the retain set."""
    plain, turned = _NOT.subn("_", "_".join(_words(name)))
    roles = [role for role, words in _WORDS.items() if words.search(plain)]
    if len(roles) != 1:
        return None
    return roles[0] if not turned else _FORGET if roles[0] == _RETAIN else _RETAIN


def _role_by_letter(name: str) -> str | None:
    words = {*_words(name)}
    roles = [role for role, letters in _LETTERS.items() if words & letters]
    return roles[0] if len(roles) == 1 else None


def _words(name: str) -> list[str]:
    """The words of a name, in lower case: D_f and dfLoader are d, f and df, loader."""
    return [word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


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
