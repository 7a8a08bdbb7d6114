"""A JSON file that names the SHA-256 of its own bytes, so that a change of any of them is seen."""

from __future__ import annotations

import hashlib

_SEAL = '\n "sha256": "'
"""Nowhere but at the top of a file: what is further inside is indented by more."""


def with_seal(text: str) -> str:
    """The text of a file with the digest of its bytes put in where it is empty."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    before, _, after = text.partition(f'{_SEAL}"')
    return f'{before}{_SEAL}{digest}"{after}'


def is_sealed(raw: bytes) -> bool:
    """Whether the digest in a file is that of its bytes."""
    before, seal, after = raw.partition(_SEAL.encode())
    return hashlib.sha256(before + seal + after[64:]).hexdigest().encode() == after[:64]
