import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.data.cifar import CIFAR10_SCALING, load_cifar10, load_cifar100, read_records
from forgetgauge.errors import UserError
from tests.data.layouts import images, records
from tests.data.test_dataset import QUICK


@QUICK
@given(n=st.integers(1, 4), n_label_bytes=st.sampled_from([1, 2]), seed=st.integers(0, 99))
def test_records_that_were_written_are_read_again(tmp_path_factory, n, n_label_bytes, seed):
    path = tmp_path_factory.mktemp("records") / "batch.bin"
    pixels, labels = images(n, seed=seed), np.random.default_rng(seed).integers(0, 10, (n_label_bytes, n))
    path.write_bytes(records(labels, pixels))
    read_pixels, read_labels = read_records(path, n_label_bytes, 10)
    assert read_pixels.dtype == np.uint8
    assert (read_pixels == pixels).all()
    assert read_labels.tolist() == labels[-1].tolist()


def test_a_pixel_is_where_the_format_puts_it(tmp_path):
    record = bytearray(1 + 3072)
    record[0] = 6
    record[1 + 1024 + 5 * 32 + 7] = 200  # green, row 5, column 7
    (tmp_path / "batch.bin").write_bytes(bytes(record))
    pixels, labels = read_records(tmp_path / "batch.bin", 1, 10)
    assert labels.tolist() == [6]
    assert np.argwhere(pixels).tolist() == [[0, 1, 5, 7]]
    assert pixels[0, 1, 5, 7] == 200


def test_batches_are_joined_in_order_and_the_test_set_stands_apart(lay_out):
    lay_out("cifar10")
    dataset = load_cifar10()
    assert dataset.points.whole_inputs.dtype == torch.uint8
    assert dataset.points.whole_labels.tolist() == [7, 0, 9] * 5
    expected = np.concatenate([images(seed=i) for i in range(5)])
    assert (dataset.points.whole_inputs.numpy() == expected).all()
    assert (dataset.test.whole_inputs.numpy() == images(seed=5)).all()


def test_a_model_is_given_scaled_pixels(lay_out):
    lay_out("cifar10")
    point = load_cifar10().points.x[0]
    raw = images()[0].astype(np.float64) / 255
    for channel, (mean, deviation) in enumerate(zip(CIFAR10_SCALING.mean, CIFAR10_SCALING.deviation, strict=True)):
        np.testing.assert_allclose(point[channel].numpy(), (raw[channel] - mean) / deviation, atol=1e-5)


def test_cifar100_has_the_fine_labels(lay_out):
    lay_out("cifar100")
    assert load_cifar100().points.whole_labels.tolist() == [99, 0, 42]


def test_a_batch_cut_short_even_between_records_is_refused(lay_out):
    folder = lay_out("cifar10")
    path = folder / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-3073])
    with pytest.raises(
        UserError, match=r"data_batch_3\.bin: 6,146 bytes instead of 9,219; 'forgetgauge data get cifar10' mends it$"
    ):
        load_cifar10()


def test_a_label_out_of_range_is_refused_with_its_record(lay_out):
    folder = lay_out("cifar10")
    content = bytearray((folder / "test_batch.bin").read_bytes())
    content[2 * 3073] = 10
    (folder / "test_batch.bin").write_bytes(bytes(content))
    with pytest.raises(UserError, match=r"test_batch\.bin: record 2 has label 10, but there are 10 classes; 'forget"):
        load_cifar10()


@pytest.mark.parametrize("content", [b"", b"x" * 3072, b"x" * 3074])
def test_what_is_no_whole_number_of_records_is_refused(content, tmp_path):
    (tmp_path / "batch.bin").write_bytes(content)
    with pytest.raises(UserError, match="are no whole number of records of 3,073 bytes"):
        read_records(tmp_path / "batch.bin", 1, 10)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_records(tmp_path / "batch.bin", 1, 10)
