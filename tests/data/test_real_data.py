"""The real data sets, where FORGETGAUGE_DATA holds them: counts, balance, first labels, constants, checksums."""

import os

import numpy as np
import pytest

from forgetgauge.data.arrays import own_scaling
from forgetgauge.data.checking import examine
from forgetgauge.data.cifar import CIFAR10_SCALING, CIFAR100_SCALING, load_cifar10, load_cifar100
from forgetgauge.data.digits import FASHION_SCALING, MNIST_SCALING, load_fashion_mnist, load_mnist
from forgetgauge.data.files import KNOWN
from forgetgauge.data.folders import data_folder, find, locate
from forgetgauge.data.text import read_trees

LOADERS = {
    "cifar10": (load_cifar10, CIFAR10_SCALING, (3, 32, 32), [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]),
    "cifar100": (load_cifar100, CIFAR100_SCALING, (3, 32, 32), [19, 29, 0, 11, 1, 86, 90, 28, 23, 31]),
    "mnist": (load_mnist, MNIST_SCALING, (1, 32, 32), [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]),
    "fashion-mnist": (load_fashion_mnist, FASHION_SCALING, (1, 32, 32), [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]),
}


def needs(name):
    if not os.environ.get("FORGETGAUGE_DATA") or find(KNOWN[name], data_folder()) is None:
        pytest.skip(f"data: FORGETGAUGE_DATA holds no {name}")


@pytest.mark.parametrize("name", LOADERS)
def test_the_real_set_is_what_its_authors_say(name):
    needs(name)
    load, scaling, shape, first = LOADERS[name]
    known, dataset = KNOWN[name], load()
    assert (len(dataset.points), len(dataset.test)) == (known.n_train, known.n_test)
    assert dataset.points.whole_inputs.shape[1:] == dataset.test.whole_inputs.shape[1:] == shape
    assert dataset.points.n_classes == known.n_classes
    assert dataset.points.whole_labels[:10].tolist() == first
    if name != "mnist":  # whose classes are as people wrote them
        for points in (dataset.points, dataset.test):
            assert set(np.bincount(points.whole_labels.numpy())) == {len(points) // known.n_classes}
    inner = dataset.points.whole_inputs[:, :, 2:30, 2:30] if shape[0] == 1 else dataset.points.whole_inputs
    measured = own_scaling(inner)
    assert measured.mean == pytest.approx(scaling.mean, abs=6e-5)
    assert measured.deviation == pytest.approx(scaling.deviation, abs=6e-5)


@pytest.mark.parametrize("name", KNOWN)
def test_the_real_set_passes_its_own_check(name):
    needs(name)
    assert examine(name).state == "present"


def test_the_treebank_has_its_published_counts():
    needs("sst5")
    parts = {part: read_trees(locate("sst5") / f"{part}.txt") for part in ("train", "dev", "test")}
    assert {part: len(sentences) for part, (sentences, _) in parts.items()} == {
        "train": 8544,
        "dev": 1101,
        "test": 2210,
    }
    assert np.bincount(parts["train"][1]).tolist() == [1092, 2218, 1624, 2322, 1288]
    assert parts["dev"][0][0] == "It 's a lovely film with lovely performances by Buy and Accorsi ."
