"""Arrays, tensors and generators of random numbers tell here what they hold, whichever library they are of."""

from __future__ import annotations

import sys
from typing import Any

from forgetgauge.probing import attribute


def as_array(thing: Any) -> Any:
    """A numpy array or scalar, or a tensor, as an array of the host; None for anything else."""
    if isinstance(thing, type) or not hasattr(type(thing), "__array__"):
        return None
    if not hasattr(type(thing), "detach"):
        return thing.__array__()
    held = thing.detach().cpu().contiguous()
    if hasattr(held, "resolve_conj"):  # views of a tensor that is conjugated, or negated, when it is read
        held = held.resolve_conj().resolve_neg()
    try:
        return held.numpy()
    except (TypeError, RuntimeError):  # bfloat16 and other types that numpy does not have
        return held.flatten().view(sys.modules["torch"].uint8).numpy()


def is_everyones(thing: Any) -> bool:
    """Whether it is a generator that all code of a process draws from; every job seeds these."""
    held = [("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("torch", "default_generator")]
    return any(thing is attribute(sys.modules[module], name) for module, name in held if module in sys.modules)


def random_state(thing: Any) -> Any:
    """Of a generator of random numbers: numpy's two kinds, Python's and torch's."""
    if hasattr(type(thing), "bit_generator") and hasattr(thing.bit_generator, "state"):
        return thing.bit_generator.state
    for method in ("getstate", "get_state"):
        if type(thing).__module__ in ("random", "torch._C", "numpy.random.mtrand") and hasattr(thing, method):
            return getattr(thing, method)()
    return None
