import textwrap

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

import forgetgauge
from forgetgauge.data.loading import as_dataset, load_dataset
from forgetgauge.errors import UserError


class Items(Dataset):
    """Whatever it is given, item by item."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def tensors(n=6, seed=0):
    return torch.randn(n, 1, 4, 4, generator=torch.Generator().manual_seed(seed)), torch.arange(n) % 3


def test_a_torch_data_set_is_the_same_as_its_tensors():
    inputs, labels = tensors()
    expected = as_dataset((inputs, labels), "mine").digest
    as_numbers = Items([(x.numpy(), int(y)) for x, y in zip(inputs, labels, strict=True)])
    for dataset in (TensorDataset(inputs, labels), as_numbers):
        assert as_dataset(dataset, "mine").digest == expected


def test_the_order_is_that_of_the_data_set():
    whole = TensorDataset(*tensors())
    assert as_dataset(Subset(whole, [5, 0, 3]), "mine").points.whole_labels.tolist() == [2, 0, 0]


def test_two_of_them_are_training_and_test_set():
    dataset = as_dataset((TensorDataset(*tensors()), TensorDataset(*tensors(4, seed=1))), "mine")
    assert (len(dataset.points), len(dataset.test)) == (6, 4)


def test_a_function_of_the_users_may_give_one(tmp_path, monkeypatch):
    (tmp_path / "own_torch_data.py").write_text(
        textwrap.dedent("""
            import torch
            def blobs(n=6):
                return torch.utils.data.TensorDataset(torch.ones(n, 3), torch.arange(n) % 2)
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert len(load_dataset("own_torch_data:blobs").points) == 6
    assert len(load_dataset("own_torch_data:blobs", {"n": 8}).points) == 8


def test_one_is_handed_to_evaluate():
    inputs, labels = torch.rand(80, 1, 8, 8), torch.arange(80) % 4
    result = forgetgauge.evaluate(
        unlearner="none",
        adversaries="confidence",
        pairs=2,
        shadows=2,
        learner={"epochs": 1},
        data=TensorDataset(inputs, labels),
    )
    assert result.failures == []


class Endless(IterableDataset):
    def __iter__(self):
        yield from iter(lambda: (torch.zeros(3), 0), None)


ODD = torch.zeros(3)
REFUSED = {
    "ragged": (Items([(ODD, 0), (ODD, 1), (torch.zeros(4), 0)]), r"item 2 has shape \(4,\), but item 0 has \(3,\)"),
    "no pair": (Items([ODD]), r"item 0 is a Tensor, not a pair"),
    "triple": (Items([(ODD, 0, 0)]), r"item 0 is a tuple, not a pair"),
    "picture": (Items([(object(), 0)]), r"the input of item 0 is a object, not a tensor or array: .*transform"),
    "text": (Items([("a sentence", 0)]), r"the input of item 0 is a str"),
    "one-hot": (Items([(ODD, torch.eye(3)[0])]), r"the label of item 0 is not one number"),
    "word": (Items([(ODD, "cat")]), r"the label of item 0 is not one number"),
    "empty": (Items([]), "no points"),
    "endless": (Endless(), "has no length; give a map-style one"),
    "half a label": (Items([(ODD, 0.5)]), "labels must be one whole number"),
}


@pytest.mark.parametrize(("dataset", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_stacked_is_one_line_with_the_item(dataset, problem):
    with pytest.raises(UserError, match=f"^data 'mine': .*{problem}") as refusal:
        as_dataset(dataset, "mine")
    assert "\n" not in str(refusal.value)


def test_arrays_of_bytes_are_images_here_too():
    dataset = as_dataset(Items([(np.full((1, 4, 4), i, np.uint8), np.int64(i % 2)) for i in range(4)]), "mine")
    assert dataset.points.whole_inputs.dtype == torch.uint8
    assert dataset.points.scaling is not None
