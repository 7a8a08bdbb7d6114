"""Flip and crop against four black pixels laid around by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats

from forgetgauge.learn.augment import PAD, draw_moves, moved


def pad_crop_flip(image, mirrored, down, right):
    """(C, H, W): pad, cut the window out, mirror it."""
    _, height, width = image.shape
    padded = F.pad(image, (PAD, PAD, PAD, PAD))
    window = padded[:, PAD + down : PAD + down + height, PAD + right : PAD + right + width]
    return window.flip(-1) if mirrored else window


IMAGE = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
HAND = {
    "still": ((0, 0, 0), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "mirrored": ((1, 0, 0), [[3, 2, 1], [6, 5, 4], [9, 8, 7]]),
    "window one down": ((0, 1, 0), [[4, 5, 6], [7, 8, 9], [0, 0, 0]]),
    "window two right": ((0, 0, 2), [[3, 0, 0], [6, 0, 0], [9, 0, 0]]),
    "window one up and left": ((0, -1, -1), [[0, 0, 0], [0, 1, 2], [0, 4, 5]]),
    "window one right, mirrored": ((1, 0, 1), [[0, 3, 2], [0, 6, 5], [0, 9, 8]]),
    "all out of sight": ((0, 4, 0), [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
}


@pytest.mark.parametrize("case", HAND)
def test_a_small_image_by_hand(case):
    move, expected = HAND[case]
    assert moved(torch.tensor([IMAGE]), torch.tensor(move)).tolist() == [expected]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_every_move_is_padding_cropping_and_flipping(dtype):
    images = torch.from_numpy(np.random.default_rng(0).integers(1, 256, (162, 3, 7, 9))).to(dtype)
    moves = [(m, r, c) for m in (0, 1) for r in range(-4, 5) for c in range(-4, 5)]
    found = moved(images, torch.tensor(moves))
    assert found.dtype == dtype
    expected = [pad_crop_flip(image, *move) for image, move in zip(images, moves, strict=True)]
    assert torch.equal(found, torch.stack(expected))


def test_batches_of_several_members_move_image_by_image():
    images = torch.arange(2 * 3 * 1 * 5 * 5).view(2, 3, 1, 5, 5)
    moves = torch.from_numpy(draw_moves(6, np.random.default_rng(0))).view(2, 3, 3)
    together = moved(images, moves)
    for k in range(2):
        for b in range(3):
            assert torch.equal(together[k, b], pad_crop_flip(images[k, b], *moves[k, b].tolist()))


def test_a_figure_far_from_the_edge_is_moved_and_never_changed():
    images = torch.zeros(200, 1, 16, 16)
    images[:, :, 6:10, 5:11] = 1.0
    found = moved(images, torch.from_numpy(draw_moves(200, np.random.default_rng(0))))
    assert (found.sum((1, 2, 3)) == 24).all()
    rows, columns = found.amax((1, 3)), found.amax((1, 2))
    assert (rows.sum(1) == 4).all()
    assert (columns.sum(1) == 6).all()
    assert len({tuple(row) for row in torch.cat([rows, columns], 1).tolist()}) > 30


def test_moves_are_uniform_and_independent():
    drawn = draw_moves(162 * 100, np.random.default_rng(0))
    assert drawn.shape == (16200, 3)
    assert drawn.dtype == np.int64
    mirrored, down, right = drawn.T
    assert set(mirrored) == {0, 1}
    assert set(down) == set(right) == set(range(-PAD, PAD + 1))
    counts = np.zeros((2, 9, 9))
    np.add.at(counts, (mirrored, down + PAD, right + PAD), 1)
    assert stats.chisquare(counts.ravel()).pvalue > 0.01


def test_the_same_generator_draws_the_same_moves():
    one, two = (draw_moves(50, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one, two)
