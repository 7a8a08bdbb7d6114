"""What was decided about every model, packed into a result, so that its numbers can be computed again from it alone.

A bit for each side, seed, point and adversary: of ten thousand points, ten methods and ten adversaries 250 kB a pair
before they are compressed. Sizes are checked before anything is expanded.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.results.record import GameDecisions, PairDecisions

MOST_POINTS = 2**22
MOST = 2**28
"""Points of a pair, and differences of a game or decisions of a pair, beyond which nothing is computed again."""
_MOST_DENSE = 1100
"""Deflate makes nothing smaller than by about this factor."""


def pack_decisions(
    outcomes: Mapping[str, Mapping[Any, PairOutcome]], adversaries: Sequence[str]
) -> GameDecisions | None:
    """Of all methods and pairs; None where single decisions are not known."""
    alike: dict[tuple[Any, bytes, bytes, tuple[int, ...]], dict[str, PairOutcome]] = {}
    for method, found in outcomes.items():
        for pair, outcome in found.items():
            if outcome.decisions is None:
                return None
            points = outcome.grouped or outcome
            drawn = points.in_forget.tobytes(), points.weight.tobytes(), outcome.decisions.shape
            alike.setdefault((pair, *drawn), {})[method] = outcome
    pairs = [_packed(drawn[0], alike[drawn]) for drawn in sorted(alike, key=lambda drawn: drawn[0])]
    return GameDecisions(list(outcomes), list(adversaries), pairs)


def _packed(pair: Any, methods: Mapping[str, PairOutcome]) -> PairDecisions:
    found = next(iter(methods.values()))
    first = found.grouped or found
    decided = np.stack([one.decisions for one in methods.values() if one.decisions is not None], axis=-1)
    weighted = np.ptp(first.weight) > 0
    return PairDecisions(
        str(pair) if isinstance(pair, str) else int(pair),
        list(methods),
        len(first.in_forget),
        decided.shape[1],
        _text(np.packbits(first.in_forget).tobytes()),
        _text(np.packbits(decided).tobytes()),
        _text(first.weight.astype("<f8").tobytes()) if weighted else None,
        None if found.grouped is None else _text(found.grouped.group.astype("<i4").tobytes()),
    )


def unpack_decisions(found: GameDecisions) -> dict[str, dict[Any, PairOutcome]]:
    """Method -> pair -> outcome; ValueError where sizes do not fit, or are more than a game's."""
    _refuse_large(found)
    outcomes: dict[str, dict[Any, PairOutcome]] = {method: {} for method in found.methods}
    for one in found.pairs:
        n, shape = one.n_points, (2, one.seeds, one.n_points, len(found.adversaries), len(one.methods))
        in_forget = np.unpackbits(np.frombuffer(_bytes(one.in_forget, -(-n // 8)), np.uint8), count=n)
        bits = math.prod(shape)
        decided = np.unpackbits(np.frombuffer(_bytes(one.decisions, -(-bits // 8)), np.uint8), count=bits)
        weight = np.ones(n) if one.weight is None else np.frombuffer(_bytes(one.weight, 8 * n), "<f8")
        group = None if one.group is None else np.frombuffer(_bytes(one.group, 4 * n), "<i4")
        says = decided.reshape(shape).astype(np.bool_)
        for which, method in enumerate(one.methods):
            if one.pair in outcomes[method]:
                raise ValueError(f"pair {one.pair} of {method} stands twice")
            first, second = says[..., which]
            outcomes[method][one.pair] = outcome_of_decisions(first, second, in_forget.astype(np.bool_), weight, group)
    return outcomes


def _refuse_large(found: GameDecisions) -> None:
    n_entries = [one.n_points * len(found.adversaries) * len(one.methods) for one in found.pairs]
    n_decided = [2 * one.seeds * n for one, n in zip(found.pairs, n_entries, strict=True)]
    if min([1, *(one.n_points for one in found.pairs), *(one.seeds for one in found.pairs)]) < 1:
        raise ValueError("a pair without points or seeds")
    if max([0, *(one.n_points for one in found.pairs)]) > MOST_POINTS or max([0, *n_decided, sum(n_entries)]) > MOST:
        raise ValueError("it claims more points and decisions than are computed again")


def _text(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _bytes(text: str, n_bytes: int) -> bytes:
    """What `_text` wrote, of which the length is known."""
    if not 0 < n_bytes <= _MOST_DENSE * (len(text) + 1):
        raise ValueError(f"{len(text)} letters cannot hold {n_bytes} bytes of decisions")
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(base64.b64decode(text, validate=True), n_bytes + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"decisions cannot be unpacked: {error}") from None
    if len(raw) != n_bytes or not unpacker.eof:
        raise ValueError(f"decisions take {n_bytes} bytes, but others are stored")
    return raw
