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

import numpy as np

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.results.record import GameDecisions, PairDecisions

_MOST_DENSE = 1100
"""Deflate makes nothing smaller than by about this factor."""


def pack_decisions(
    outcomes: Mapping[str, Mapping[int, PairOutcome]], adversaries: Sequence[str]
) -> GameDecisions | None:
    """Of all methods and pairs; None where single decisions are not known."""
    alike: dict[tuple[int, bytes, bytes], dict[str, PairOutcome]] = {}
    for method, found in outcomes.items():
        for pair, outcome in found.items():
            if outcome.decisions is None:
                return None
            drawn = outcome.in_forget.tobytes(), outcome.weight.tobytes()
            alike.setdefault((pair, *drawn), {})[method] = outcome
    seeds = {one.decisions.shape[1] for each in alike.values() for one in each.values() if one.decisions is not None}
    if len(seeds) != 1:
        return None
    pairs = [_packed(drawn[0], alike[drawn]) for drawn in sorted(alike)]
    return GameDecisions(list(outcomes), list(adversaries), seeds.pop(), pairs)


def _packed(pair: int, methods: Mapping[str, PairOutcome]) -> PairDecisions:
    first = next(iter(methods.values()))
    decided = np.stack([one.decisions for one in methods.values() if one.decisions is not None], axis=-1)
    weighted = np.ptp(first.weight) > 0
    return PairDecisions(
        pair,
        list(methods),
        len(first.in_forget),
        _text(np.packbits(first.in_forget).tobytes()),
        _text(np.packbits(decided).tobytes()),
        _text(first.weight.astype("<f8").tobytes()) if weighted else None,
    )


def unpack_decisions(found: GameDecisions) -> dict[str, dict[int, PairOutcome]]:
    """Method -> pair -> outcome; ValueError where sizes do not fit."""
    outcomes: dict[str, dict[int, PairOutcome]] = {method: {} for method in found.methods}
    for one in found.pairs:
        n, shape = one.n_points, (2, found.seeds, one.n_points, len(found.adversaries), len(one.methods))
        in_forget = np.unpackbits(np.frombuffer(_bytes(one.in_forget, -(-n // 8)), np.uint8), count=n)
        bits = math.prod(shape)
        decided = np.unpackbits(np.frombuffer(_bytes(one.decisions, -(-bits // 8)), np.uint8), count=bits)
        weight = np.ones(n) if one.weight is None else np.frombuffer(_bytes(one.weight, 8 * n), "<f8")
        says = decided.reshape(shape).astype(np.bool_)
        for which, method in enumerate(one.methods):
            first, second = says[..., which]
            outcome = outcome_of_decisions(first, second, in_forget.astype(np.bool_), weight)
            outcomes[method][one.pair] = outcome
    return outcomes


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
