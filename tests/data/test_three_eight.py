from __future__ import annotations

import numpy as np
import pytest
import torch

from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError
from tests.data.layouts import idx, images


def assert_prepared(points, n_three, n_eight, shape):
    assert points.whole_inputs.shape[1:] == shape
    assert points.whole_labels.bincount().tolist() == [n_three, n_eight]
    assert points.whole_inputs.flatten(1).norm(dim=1).sub(1).abs().max() < 1e-6


def test_the_embedded_threes_and_eights_are_all_there_centred_and_of_norm_1():
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    points = load_dataset("digits-3-8").points
    assert_prepared(points, (labels == 3).sum(), (labels == 8).sum(), (1, 8, 8))
    first = pixels[labels == 8][0] / 16 - 0.5
    expected = torch.tensor(first / np.linalg.norm(first), dtype=torch.float32).reshape(1, 8, 8)
    torch.testing.assert_close(points.whole_inputs[points.whole_labels == 1][0], expected)


def test_mnists_threes_and_eights_come_from_its_two_parts(lay_out):
    folder = lay_out("mnist")
    pixels = images(5, (28, 28), seed=5)
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(np.array([3, 8, 1, 8, 8])))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(np.array([8, 3])))
    dataset = load_dataset("mnist-3-8")
    assert_prepared(dataset.points, 1, 3, (1, 28, 28))
    assert_prepared(dataset.test, 1, 1, (1, 28, 28))
    first = pixels[0] / 255 - 0.5
    expected = torch.tensor(first / np.linalg.norm(first), dtype=torch.float32)[None]
    torch.testing.assert_close(dataset.points.whole_inputs[0], expected)


def test_what_mends_damaged_files_is_said(lay_out):
    (lay_out("mnist") / "t10k-labels-idx1-ubyte").write_bytes(b"")
    with pytest.raises(UserError, match=r"'forgetgauge data get mnist' mends it$"):
        load_dataset("mnist-3-8")


def test_data_check_looks_at_mnists_files_and_downloads_nothing(data_home, tiny, call):
    tiny()
    code, out, _ = call("data", "check")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert rows["mnist-3-8"][0] == "absent"
    assert rows["digits-3-8"] == ["present", "357", "–", "2", "embedded"]
    assert "mnist-3-8: 'forgetgauge data get mnist' downloads it" in out
    assert not data_home.exists()


def test_data_get_of_a_part_fetches_the_whole(lay_out, call):
    folder = lay_out("mnist")
    assert call("data", "get", "mnist-3-8", "digits-3-8")[1].splitlines() == [
        f"mnist-3-8: {folder}",
        "digits-3-8: embedded, nothing to download",
    ]
