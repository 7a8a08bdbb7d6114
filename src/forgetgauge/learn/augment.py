"""Flip and crop, the augmentation of He et al.: four black pixels around, a random window, half of them mirrored."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Augment = Literal["none", "flip-crop"]
PAD = 4


def draw_moves(n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(n, 3): whether to mirror, and by how many pixels the window moves down and right."""
    mirrored = rng.integers(0, 2, n)
    return np.column_stack([mirrored, rng.integers(-PAD, PAD + 1, (n, 2))])


def moved(images: Tensor, moves: Tensor) -> Tensor:
    """(…, C, H, W) stored pixels and (…, 3) moves -> the moved images; what comes in from outside is 0."""
    height, width = images.shape[-2:]
    rows = torch.arange(height, device=images.device) + moves[..., 1, None]
    columns = torch.arange(width, device=images.device)
    columns = torch.where(moves[..., 0, None] == 1, width - 1 - columns, columns) + moves[..., 2, None]
    inside = ((rows >= 0) & (rows < height))[..., :, None] & ((columns >= 0) & (columns < width))[..., None, :]
    by_row = rows.clamp(0, height - 1)[..., None, :, None].expand(images.shape)
    by_column = columns.clamp(0, width - 1)[..., None, None, :].expand(images.shape)
    return images.gather(-2, by_row).gather(-1, by_column) * inside[..., None, :, :].to(images.dtype)
