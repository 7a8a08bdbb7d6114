"""Choice by name: the catalogues of unlearners, adversaries, learners, models and data sets.

A catalogue knows names and one-line facts; the code behind a name is imported when it is first used, so listing and
`--help` stay instant. A name of the form `module:attribute` is the user's own code, imported from the Python path.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forgetgauge.errors import UserError, unknown_name


@dataclass(frozen=True)
class Entry:
    """One line of a catalogue."""

    target: str
    """Where the code is: `module:attribute`."""
    summary: str
    """What it is, in one line."""
    needs: str = ""
    """What it must be given (sets, shadow models, access)."""
    cost: str = ""
    """What it costs, in passes over the data."""
    cites: str = ""
    """Where it was published."""


@dataclass
class Catalogue:
    """Names of one sort (`what`), each with its entry; `bind` adds objects of the running program."""

    what: str
    entries: Mapping[str, Entry]
    _bound: dict[str, Any] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """The object behind a name."""
        if name in self._bound:
            return self._bound[name]
        if name in self.entries:
            return _import_target(self.entries[name].target)
        if ":" in name:
            return self._import_users(name)
        raise UserError(unknown_name(self.what, name, self.entries))

    def bind(self, thing: Any, name: str | None = None) -> str:
        """Make an object of the running program known under a name that changes when its code does."""
        name = name or f"{_label_of(thing)}@{code_digest(thing)[:12]}"
        self._bound[name] = thing
        return name

    def _import_users(self, name: str) -> Any:
        if os.getcwd() not in sys.path:  # the installed command has no current folder on its path; users expect it
            sys.path.insert(0, os.getcwd())
        try:
            return _import_target(name)
        except (ImportError, AttributeError) as error:
            raise UserError(f"{self.what} '{name}' cannot be imported: {error}") from error


def code_of(catalogue: Catalogue, name: str) -> str:
    """Empty for what we ship (its job kind has a version); for the user's own code a digest, so that edits count."""
    return "" if name in catalogue.entries else code_digest(catalogue.load(name))


def _import_target(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _label_of(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))


def code_digest(thing: Any) -> str:
    """A digest of an object's code and of all it was set up with: closures, partial arguments, attributes, arrays.

    What cannot be looked into counts by its `repr`, which may hold an address: then nothing stored is taken for it.
    """
    return hashlib.sha256(_describe(thing, set()).encode()).hexdigest()


def _describe(thing: Any, seen: set[int]) -> str:
    if thing is None or isinstance(thing, str | bytes | int | float | complex):
        return repr(thing)
    if id(thing) in seen:
        return "(again)"
    seen = seen | {id(thing)}
    if isinstance(thing, Mapping):
        items = (f"{_describe(key, seen)}: {_describe(value, seen)}" for key, value in thing.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(thing, list | tuple | set | frozenset):
        parts = [_describe(item, seen) for item in thing]
        return f"{type(thing).__name__}({', '.join(sorted(parts) if isinstance(thing, set | frozenset) else parts)})"
    if hasattr(thing, "__array__") and not isinstance(thing, type):  # numpy arrays and CPU tensors
        array = thing.detach().cpu().numpy() if hasattr(thing, "detach") else thing.__array__()
        return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(thing, functools.partial):
        return f"partial({_describe([thing.func, thing.args, thing.keywords], seen)})"
    if inspect.ismethod(thing):
        return f"method({_describe([thing.__func__, thing.__self__], seen)})"
    if inspect.isfunction(thing):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return f"{_source(thing)}{_describe([thing.__defaults__, thing.__kwdefaults__, cells], seen)}"
    if inspect.isclass(thing):
        return _source(thing)
    if hasattr(thing, "__dict__"):
        return f"{_source(type(thing))}{_describe(vars(thing), seen)}"
    return repr(thing)


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):  # typed at a prompt, or written in C
        code = getattr(thing, "__code__", None)
        return repr((code.co_code, code.co_consts, code.co_names) if code is not None else thing)


unlearners = Catalogue(
    "unlearner",
    {
        "retrain": Entry(
            "forgetgauge.unlearn.retrain:Retrain",
            "train again from scratch on the retain set: the gold standard",
            needs="retain set; not the original model",
            cost="one full training",
            cites="Cao and Yang 2015",
        ),
        "none": Entry(
            "forgetgauge.unlearn.none:Nothing",
            "leave the model as it is: what an attacker sees if the request is ignored",
            needs="original model",
            cost="nothing",
            cites="baseline of the paper",
        ),
        "neg-grad": Entry(
            "forgetgauge.unlearn.neg_grad:NegGrad",
            "gradient ascent on the forget set",
            needs="original model, forget set",
            cost="epochs × |F| gradients",
            cites="Golatkar et al. 2020",
        ),
        "ft-final": Entry(
            "forgetgauge.unlearn.final_layer:FineTuneFinal",
            "fine-tune the last layer on the retain set, the rest frozen",
            needs="original model, retain set",
            cost="epochs × |R| gradients of the head",
            cites="Goel et al. 2023 (CF-k, k = 1)",
        ),
        "retrain-final": Entry(
            "forgetgauge.unlearn.final_layer:RetrainFinal",
            "re-initialise the last layer and train it on the retain set, the rest frozen",
            needs="original model, retain set",
            cost="epochs × |R| gradients of the head",
            cites="Goel et al. 2023 (EU-k, k = 1)",
        ),
    },
)

adversaries = Catalogue(
    "adversary",
    {
        "correctness": Entry(
            "forgetgauge.attack.threshold:CORRECTNESS",
            "says “forget” where the model predicts the label; the gap attack",
            needs="logits and label (black box)",
            cost="nothing to fit",
            cites="Yeom et al. 2018; Song and Mittal 2021",
        ),
        "confidence": Entry(
            "forgetgauge.attack.threshold:CONFIDENCE",
            "probability of the true label against a threshold per class",
            needs="logits and label (black box), shadow models",
            cost="one sort per class",
            cites="Song and Mittal 2021",
        ),
        "entropy": Entry(
            "forgetgauge.attack.threshold:ENTROPY",
            "entropy of the prediction against a threshold per class",
            needs="logits and label (black box), shadow models",
            cost="one sort per class",
            cites="Shokri et al. 2017; Song and Mittal 2021",
        ),
        "modified-entropy": Entry(
            "forgetgauge.attack.threshold:MODIFIED_ENTROPY",
            "entropy that knows the true label, against a threshold per class",
            needs="logits and label (black box), shadow models",
            cost="one sort per class",
            cites="Song and Mittal 2021",
        ),
    },
)

learners = Catalogue(
    "learner",
    {
        "minibatch": Entry(
            "forgetgauge.learn.minibatch:Minibatch",
            "a torch model trained by minibatch gradient descent, many at once as a stack",
            needs="a data set",
            cost="epochs × n gradients",
        ),
    },
)

models = Catalogue(
    "model",
    {
        "small-cnn": Entry(
            "forgetgauge.models.small_cnn:SmallCNN",
            "three convolutions and a linear head, for images of 8 to 32 pixels",
        ),
    },
)

data = Catalogue(
    "data set",
    {
        "digits": Entry(
            "forgetgauge.data.digits:load_digits",
            "1,797 real handwritten digits, 8 × 8 pixels, embedded in scikit-learn",
            cites="Alpaydin and Kaynak 1998 (UCI optical recognition of handwritten digits)",
        ),
    },
)

CATALOGUES = {
    "unlearners": unlearners,
    "adversaries": adversaries,
    "learners": learners,
    "models": models,
    "data": data,
}
