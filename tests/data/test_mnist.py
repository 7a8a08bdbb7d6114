import gzip
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from forgetgauge.data.digits import load_fashion_mnist, load_mnist, read_idx
from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError
from tests.data.layouts import idx, images
from tests.data.test_dataset import QUICK


@QUICK
@given(array=arrays(np.uint8, array_shapes(min_dims=1, max_dims=3, max_side=5)), packed=st.booleans())
def test_an_idx_file_that_was_written_is_read_again(tmp_path_factory, array, packed):
    path = tmp_path_factory.mktemp("idx") / "array"
    content = idx(array)
    path.with_name("array.gz" if packed else "array").write_bytes(gzip.compress(content) if packed else content)
    read = read_idx(path, array.ndim)
    assert read.shape == array.shape
    assert (read == array).all()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "load"), [("mnist", load_mnist), ("fashion-mnist", load_fashion_mnist)])
def test_images_are_framed_with_black_to_32_by_32(name, load, packed, lay_out):
    folder = lay_out(name)
    if packed:
        for path in list(folder.iterdir()):
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    dataset = load()
    pixels = dataset.points.whole_inputs
    assert (pixels.dtype, pixels.shape) == (torch.uint8, (5, 1, 32, 32))
    assert (pixels[:, 0, 2:30, 2:30].numpy() == images(5, (28, 28), seed=5)).all()
    assert int(pixels.long().sum()) == int(images(5, (28, 28), seed=5).sum(dtype=np.int64))
    assert dataset.points.whole_labels.tolist() == [4, 5, 6, 7, 8]
    assert dataset.test.whole_labels.tolist() == [7, 8]


def test_the_size_is_a_parameter_of_the_run_file(lay_out):
    lay_out("mnist")
    assert load_dataset("mnist", {"size": 28}).points.whole_inputs.shape == (5, 1, 28, 28)
    assert load_dataset("mnist").points.whole_inputs.shape == (5, 1, 32, 32)
    with pytest.raises(UserError, match=r"data 'mnist': size = 30 is not one of 28, 32"):
        load_dataset("mnist", {"size": 30})
    with pytest.raises(UserError, match=r"data\.params: unknown key 'sise'; did you mean 'size'\?"):
        load_dataset("mnist", {"sise": 28})


def test_torchvisions_folder_is_found_too(lay_out, data_home):
    folder = lay_out("fashion-mnist")
    (data_home / "FashionMNIST").mkdir()
    folder.rename(data_home / "FashionMNIST/raw")
    assert len(load_fashion_mnist().points) == 5


DAMAGED = {
    "magic": (lambda content: b"\x00\x00\x08\x02" + content[4:], "begins with the number 2050, not with 2051"),
    "short": (lambda content: content[:-1], "bytes instead of"),
    "empty": (lambda content: b"", "bytes instead of"),
}


@pytest.mark.parametrize(("change", "problem"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named_with_what_mends_it(change, problem, lay_out):
    path = lay_out("mnist") / "train-images-idx3-ubyte"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=f"{path}: .*{problem}.*; 'forgetgauge data get mnist' mends it$"):
        load_mnist()


@pytest.mark.parametrize("content", [gzip.compress(idx(images(5, (28, 28))))[:-20], b"no gzip", b""])
def test_a_damaged_compressed_file_is_named_too(content, lay_out):
    folder = lay_out("mnist")
    (folder / "train-images-idx3-ubyte").unlink()
    (folder / "train-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"train-images-idx3-ubyte\.gz: .*; 'forgetgauge data get mnist' mends it$"):
        load_mnist()


def test_headers_that_promise_more_or_nothing_are_refused(tmp_path):
    (tmp_path / "more").write_bytes(struct.pack(">II", 0x801, 9) + b"12345678")
    (tmp_path / "nothing").write_bytes(struct.pack(">II", 0x801, 0))
    with pytest.raises(UserError, match="8 bytes of content, but its header says 9"):
        read_idx(tmp_path / "more", 1)
    with pytest.raises(UserError, match="header says 0"):
        read_idx(tmp_path / "nothing", 1)
    with pytest.raises(UserError, match="no such file"):
        read_idx(tmp_path / "absent", 1)


OTHERWISE = {
    "labels": ("train-labels-idx1-ubyte", idx([0, 1, 2, 3, 10]), "label 4 is 10, not one of 0 to 9"),
    "count": ("train-labels-idx1-ubyte", idx([0, 1, 2, 3]), "5 images but 4 labels in the train files"),
    "pixels": ("t10k-images-idx3-ubyte", idx(images(2, (27, 28))), r"images of \(27, 28\) pixels"),
}


@pytest.mark.parametrize(("name", "content", "problem"), OTHERWISE.values(), ids=OTHERWISE)
def test_files_that_do_not_go_together_are_refused(name, content, problem, lay_out):
    folder = lay_out("mnist")
    (folder / name).unlink()
    (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    with pytest.raises(UserError, match=problem):
        load_mnist()
