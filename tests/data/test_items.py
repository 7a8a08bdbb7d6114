"""What people have goes in as it is: loaders, dict items and batches, data sets of other libraries by their shape."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import forgetgauge
from forgetgauge.data.loading import as_dataset
from forgetgauge.errors import UserError

N = 10
X = torch.rand(N, 1, 4, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(N) % 3
EXPECTED = as_dataset((X, Y), "mine").digest


class Rows:
    """Shaped like a Hugging Face data set: no class of torch, items are dicts, a column has a name."""

    def __init__(self, columns):
        self.columns = columns
        self.column_names = list(columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        return {name: values[key] for name, values in self.columns.items()}


def rows(**names):
    return Rows({**names, "index": list(range(len(next(iter(names.values())))))})


SAME = {
    "dict items": rows(image=X, label=Y),
    "lists of numbers": rows(image=X.tolist(), label=Y.tolist()),
    "other usual names": rows(pixel_values=X.numpy(), labels=Y.numpy()),
    "a list of dicts": [{"x": x, "y": y} for x, y in zip(X, Y, strict=True)],
    "a list of pairs": list(zip(X, Y.tolist(), strict=True)),
    "splits": {"train": rows(image=X, label=Y), "unsupervised": rows(image=X, label=Y)},
    "a mapping of columns": {"x": X, "y": Y},
    "a shuffled loader": DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, drop_last=True),
    "a loader without batches": DataLoader(TensorDataset(X, Y), batch_size=None),
    "a loader of dicts": DataLoader(rows(image=X, label=Y), batch_size=3),
    "a loader that collates": DataLoader(
        rows(image=X, label=Y),
        batch_size=4,
        collate_fn=lambda items: {"x": torch.stack([i["image"] for i in items]), "y": [int(i["label"]) for i in items]},
    ),
}


@pytest.mark.parametrize("data", SAME.values(), ids=SAME)
def test_it_is_the_same_as_its_tensors(data):
    assert as_dataset(data, "mine").digest == EXPECTED


def test_columns_are_named_where_their_names_say_nothing():
    data = rows(before=X, picture=X + 1, kind=Y, label=torch.zeros(N))
    assert as_dataset(data, "mine", columns=("before", "kind")).digest == EXPECTED
    assert as_dataset(DataLoader(data, batch_size=4), "mine", columns=["before", "kind"]).digest == EXPECTED


def test_training_and_test_set_come_as_splits_or_as_two():
    train, test = rows(image=X, label=Y), rows(image=X[:4], label=Y[:4])
    for data in ({"train": train, "test": test}, (train, test), (DataLoader(train), DataLoader(test))):
        found = as_dataset(data, "mine")
        assert (len(found.points), len(found.test)) == (N, 4)


def test_a_loader_of_a_subset_is_about_the_subset():
    for named in ([7, 2, 5, 2], [-3, 2, 7, 5], [7, -5, 5, -8]):  # from the end, too: no point is taken twice
        loader = DataLoader(TensorDataset(X, Y), batch_size=2, sampler=SubsetRandomSampler(named))
        assert as_dataset(loader, "mine").digest == as_dataset((X[[2, 5, 7]], Y[[2, 5, 7]]), "mine").digest


@pytest.mark.parametrize("index", [N, -N - 1])
def test_a_sampler_that_names_a_point_that_is_not_there_is_refused(index):
    loader = DataLoader(TensorDataset(X, Y), batch_size=2, sampler=SubsetRandomSampler([0, index]))
    with pytest.raises(UserError, match=rf"the loader's sampler names point {index}, but there are {N}"):
        as_dataset(loader, "mine")


@pytest.mark.parametrize(("mode", "shape"), [("RGB", (3, 6, 5)), ("L", (1, 6, 5)), ("RGBA", (4, 6, 5))])
def test_pictures_are_bytes_with_channels_first(mode, shape):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 5, len(mode)), dtype=np.uint8)
    pictures = [Image.fromarray(one if len(mode) > 1 else one[..., 0]) for one in pixels]
    found = as_dataset(rows(img=pictures, fine_label=[0, 1, 0, 1]), "mine").points
    assert found.whole_inputs.dtype == torch.uint8
    assert found.whole_inputs.shape == (4, *shape)
    assert np.array_equal(found.whole_inputs.numpy(), pixels.transpose(0, 3, 1, 2))


def test_a_picture_with_a_palette_is_its_colours():
    red, green = (Image.new("RGB", (4, 4), colour).quantize(4) for colour in ("red", "lime"))
    found = as_dataset(rows(image=[red, green], label=[0, 1]), "mine").points.whole_inputs
    assert found[:, :, 0, 0].tolist() == [[255, 0, 0], [0, 255, 0]]


def test_tables_of_numbers_are_no_data_sets_by_items():
    pandas = pytest.importorskip("pandas")
    frame, column = pandas.DataFrame(X.flatten(1).numpy()), pandas.Series(Y.numpy())
    assert as_dataset((frame, column), "mine").digest == as_dataset((X.flatten(1), Y), "mine").digest


def test_padding_that_a_mask_hides_is_warned_of():
    ids, mask = torch.tensor([[5, 6], [7, 0]]), torch.tensor([[1, 1], [1, 0]])
    with pytest.warns(UserWarning, match="given 'input_ids' alone, without 'attention_mask'"):
        as_dataset(rows(input_ids=ids, attention_mask=mask, label=[0, 1]), "mine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_dataset(rows(input_ids=ids, attention_mask=mask | 1, label=[0, 1]), "mine")


ONE = torch.zeros(3)
REFUSED = {
    "unknown names": (rows(a=X, b=Y), None, r"which columns of item 0 .* a, b and index; say columns=\(input, label\)"),
    "absent": (rows(a=X, b=Y), ("a", "c"), "item 0 has no column 'c'; there are a, b and index"),
    "no names": (TensorDataset(X, Y), ("a", "b"), "item 0 is a tuple, which has no named columns"),
    "arrays": ((X, Y), ("a", "b"), "has no named columns: leave columns"),
    "three": (rows(a=X, b=Y), ("a", "b", "c"), "are not the names of two columns"),
    "text": (rows(x=["a", "b"], y=[0, 1]), None, "the input of item 0 is a str, .*turn it into numbers first"),
    "words": (rows(x=X, y=["cat"] * N), None, "the label of item 0 is not one number"),
    "ragged": (rows(x=[ONE, torch.zeros(4)], y=[0, 1]), None, r"item 1 has shape \(4,\)"),
    "ragged batches": (
        DataLoader(rows(x=[ONE, torch.zeros(4)], y=[0, 1])),
        None,
        r"points of batch 1 have shape \(4,\), but those of batch 0 have \(3,\)",
    ),
    "drawn": (
        DataLoader(TensorDataset(X, Y), sampler=WeightedRandomSampler(torch.ones(N), N)),
        None,
        r"sampler of its own \(WeightedRandomSampler\)",
    ),
    "some of them": (
        DataLoader(TensorDataset(X, Y), sampler=RandomSampler(X, num_samples=4)),
        None,
        r"sampler of its own \(RandomSampler\) may show points twice or never",
    ),
    "of another set": (
        DataLoader(TensorDataset(X, Y), sampler=SequentialSampler(range(4))),
        None,
        r"sampler of its own \(SequentialSampler\)",
    ),
    "no batch": (DataLoader(rows(x=X, y=Y), collate_fn=lambda _: (ONE[0], ONE[0])), None, "the labels of batch 0"),
    "raises": (rows(x=X, y=Y[:4]), None, r"data 'mine': IndexError: .* \(test_items.py, line \d+\)"),
    "empty": (rows(x=[], y=[]), None, "no points"),
    "many labels": (DataLoader(rows(x=X, y=torch.eye(N)), batch_size=5), None, "the labels of batch 0"),
    "array of words": ((X, ["cat", "dog"] * (N // 2)), None, r"labels are words: number them, np.unique"),
    "a number": (3, None, "neither a Dataset nor a pair"),
}


@pytest.mark.parametrize(("data", "columns", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_one_line(data, columns, problem):
    with pytest.raises(UserError, match=problem) as refusal:
        as_dataset(data, "mine", columns=columns)
    assert "\n" not in str(refusal.value)


def test_a_loader_of_dicts_is_handed_to_evaluate():
    data = DataLoader(rows(before=torch.rand(80, 1, 8, 8), kind=torch.arange(80) % 4), batch_size=16, shuffle=True)
    game = {"adversaries": "confidence", "pairs": 2, "shadows": 2, "learner": {"epochs": 1}}
    result = forgetgauge.evaluate(unlearner="none", data=data, columns=("before", "kind"), **game)
    assert result.failures == []
    with pytest.raises(UserError, match="a name has its own"):
        forgetgauge.evaluate(unlearner="none", data="digits", columns=("before", "kind"), **game)


# -- a test set beside them --------------------------------------------------------------------------------------------

BOTH = as_dataset({"train": (X, Y), "test": (X[:4], Y[:4])}, "mine")


@pytest.mark.parametrize("two", [tuple, list])
@pytest.mark.parametrize(
    "form",
    [
        lambda x, y: (x, y),
        lambda x, y: [x, y],
        lambda x, y: (x.numpy(), y.numpy()),
        lambda x, y: (x.tolist(), y.tolist()),
        lambda x, y: TensorDataset(x, y),
        lambda x, y: DataLoader(TensorDataset(x, y), batch_size=3),
    ],
)
def test_two_sets_of_any_form_are_training_and_test(form, two):
    made = as_dataset(two([form(X, Y), form(X[:4], Y[:4])]), "mine")
    assert made.digest == BOTH.digest
    assert made.test is not None
    assert len(made.test) == 4


def test_the_two_sets_may_have_different_forms():
    for test in (TensorDataset(X[:4], Y[:4]), {"x": X[:4], "y": Y[:4]}, (X[:4].numpy(), Y[:4].tolist())):
        for train in ((X, Y), {"x": X, "y": Y}):
            assert as_dataset((train, test), "mine").digest == BOTH.digest


@pytest.mark.parametrize(("key", "near"), [("tset", "test"), ("tests", "test"), ("holdout", None)])
def test_a_set_of_an_unknown_name_is_refused_rather_than_dropped(key, near):
    hint = f"did you mean '{near}'" if near else "valid: test, train"
    with pytest.raises(UserError, match=f"data 'mine': unknown set '{key}'; {hint}"):
        as_dataset({"train": (X, Y), key: (X, Y)}, "mine")


def test_a_validation_set_is_left_out():
    splits = {"train": (X, Y), "validation": (X, Y), "test": (X[:4], Y[:4])}
    assert as_dataset(splits, "mine").digest == BOTH.digest
