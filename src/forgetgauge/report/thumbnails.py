"""Points as people recognise them: a tiny picture where they are images, their text, or their first numbers."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.results.points import VisiblePoints

CHANNELS = (1, 3, 4)
MOST_PIXELS = 48
"""Most pixels of one side; larger images are thinned out."""
MOST_LETTERS, MOST_NUMBERS = 240, 6


@dataclass(frozen=True)
class Thumbnail:
    """A point to be shown."""

    picture: str = ""
    """A data URI of a PNG file."""
    text: str = ""


@dataclass(frozen=True)
class ShownPoints:
    """The most visible points of a method, and what they look like."""

    found: VisiblePoints
    thumbnails: list[Thumbnail]
    labels: list[str]
    """Their classes; empty where they have none."""


def thumbnail(point: npt.NDArray[Any], text: str | None, span: tuple[float, float]) -> Thumbnail:
    """Of an input as it is stored; `span` is what black and white are where it is an image of fractions."""
    if text is not None:
        return Thumbnail(text=text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…")
    if point.ndim == 3 and point.shape[0] in CHANNELS and min(point.shape[1:]) > 1:
        return Thumbnail(picture=png_uri(as_bytes(point, span)))
    numbers = [f"{value:.4g}" for value in point.ravel()[:MOST_NUMBERS].tolist()]
    more = ", …" if point.size > MOST_NUMBERS else ""
    return Thumbnail(text=f"({', '.join(numbers)}{more})")


def as_bytes(image: npt.NDArray[Any], span: tuple[float, float]) -> npt.NDArray[np.uint8]:
    """(channels, height, width) of any numbers -> (height, width, channels) from 0 to 255, thinned out if large."""
    step = -(-max(image.shape[1:]) // MOST_PIXELS)
    small = image[:, ::step, ::step].transpose(1, 2, 0)
    if image.dtype == np.uint8:
        return small
    low, high = span
    share = (small.astype(np.float64) - low) / (high - low if high > low else 1.0)
    return np.asarray(np.clip(share * 255, 0, 255).round(), dtype=np.uint8)


def png_uri(image: npt.NDArray[np.uint8]) -> str:
    """(height, width, 1, 3 or 4) bytes as a PNG in a data URI."""
    height, width, channels = image.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(image))
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    file = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)
    return f"data:image/png;base64,{base64.b64encode(file).decode('ascii')}"


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
