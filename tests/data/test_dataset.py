import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.data import digits as digits_module
from forgetgauge.data.dataset import Dataset, Points, tensor_digest
from forgetgauge.data.digits import load_digits
from forgetgauge.errors import UserError

QUICK = settings(max_examples=30, deadline=None)


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def images(n=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 1, 3, 3, generator=generator), torch.arange(n) % 3


def test_digits_are_1797_images_of_8_by_8_in_ten_classes(digits):
    assert digits.points.whole_inputs.shape == (1797, 1, 8, 8)
    assert digits.points.whole_inputs.dtype == torch.float32
    assert digits.points.whole_labels.shape == (1797,)
    assert digits.points.whole_labels.dtype == torch.int64
    assert digits.points.n_classes == 10
    assert digits.points.whole_labels.unique().tolist() == list(range(10))
    assert digits.test is None


def test_digits_are_normalised(digits):
    assert float(digits.points.whole_inputs.mean()) == pytest.approx(0, abs=0.01)
    assert float(digits.points.whole_inputs.std()) == pytest.approx(1, abs=0.01)


def test_digits_are_scikit_learns_in_their_order(digits):
    from sklearn.datasets import load_digits as reference

    bunch = reference()
    assert digits.points.whole_labels.tolist() == bunch.target.tolist()
    ours = digits.points.whole_inputs[:, 0].double().numpy()
    slope, offset = np.polyfit(bunch.images.ravel(), ours.ravel(), 1)
    assert slope > 0
    np.testing.assert_allclose(ours, slope * bunch.images + offset, atol=1e-5)


@pytest.mark.parametrize("found", [True, False], ids=["its file", "its reader"])
def test_embedded_digits_are_scikit_learns_to_the_last_bit(found, monkeypatch):
    from sklearn.datasets import load_digits as reference

    if not found:  # as where scikit-learn keeps its file elsewhere
        monkeypatch.setattr(digits_module, "find_spec", lambda name: None)
    for ours, theirs in zip(digits_module.embedded_digits(), reference(return_X_y=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_loading_digits_twice_gives_one_digest(digits):
    assert load_digits().digest == digits.digest


def test_the_digest_is_64_hexadecimal_digits():
    digest = Dataset.of("mine", *images()).digest
    assert len(digest) == 64
    assert set(digest) <= set("0123456789abcdef")


@QUICK
@given(point=st.integers(0, 5), row=st.integers(0, 2), column=st.integers(0, 2))
def test_one_pixel_changes_the_digest(point, row, column):
    inputs, labels = images()
    other = inputs.clone()
    other[point, 0, row, column] = torch.nextafter(other[point, 0, row, column], torch.tensor(9.0))
    assert Dataset.of("mine", inputs, labels).digest != Dataset.of("mine", other, labels).digest


@QUICK
@given(point=st.integers(0, 5))
def test_one_label_changes_the_digest(point):
    inputs, labels = images()
    other = labels.clone()
    other[point] = (other[point] + 1) % 3
    assert Dataset.of("mine", inputs, labels).digest != Dataset.of("mine", inputs, other).digest


def test_the_test_set_is_part_of_the_digest():
    inputs, labels = images()
    alone = Dataset.of("mine", inputs, labels)
    with_test = Dataset.of("mine", inputs, labels, test=images(4, seed=1))
    assert len({alone.digest, with_test.digest, Dataset.of("mine", inputs, labels, test=images(4, seed=2)).digest}) == 3
    assert len(with_test.test) == 4


def test_the_digest_names_the_content_and_not_its_name_or_memory_layout():
    inputs, labels = images()
    stored_otherwise = inputs.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    assert not stored_otherwise.is_contiguous()
    assert Dataset.of("mine", inputs, labels).digest == Dataset.of("yours", stored_otherwise, labels).digest


@pytest.mark.parametrize("other", [torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32)])
def test_shapes_and_types_are_part_of_the_digest(other):
    tensor = torch.zeros(1, 4)
    assert tensor_digest([tensor]) != tensor_digest([other])


def broken(**change):
    inputs, labels = images()
    return {"inputs": inputs, "labels": labels} | change


REFUSED = {
    "NaN": (broken(inputs=torch.full((6, 2), torch.nan)), "NaN or infinite"),
    "infinite": (broken(inputs=torch.full((6, 2), torch.inf)), "NaN or infinite"),
    "float labels": (broken(labels=torch.zeros(6)), "must be int64, but they are float32"),
    "int32 labels": (broken(labels=torch.zeros(6, dtype=torch.int32)), "must be int64, but they are int32"),
    "one-hot labels": (broken(labels=torch.zeros(6, 3, dtype=torch.int64)), "whole number"),
    "negative label": (broken(labels=torch.tensor([0, 1, 2, 0, 1, -1])), "whole number"),
    "fewer labels": (broken(labels=torch.zeros(5, dtype=torch.int64)), "6 inputs but 5 labels"),
    "empty": ({"inputs": torch.zeros(0, 2), "labels": torch.zeros(0, dtype=torch.int64)}, "no points"),
}


@pytest.mark.parametrize(("tensors", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("where", ["train", "test"])
def test_what_is_no_data_set_is_refused_in_one_line_that_names_it(tensors, message, where):
    pair = (tensors["inputs"], tensors["labels"])
    with pytest.raises(UserError, match=message) as refusal:
        Dataset.of("mine", *pair) if where == "train" else Dataset.of("mine", *images(), test=pair)
    assert str(refusal.value).startswith("data 'mine': ")
    assert "\n" not in str(refusal.value)


def test_one_nan_among_many_pixels_is_found():
    inputs, labels = images(100)
    inputs[57, 0, 1, 2] = torch.nan
    with pytest.raises(UserError, match="NaN"):
        Dataset.of("mine", inputs, labels)


def test_whole_number_inputs_need_no_check_for_nan():
    tokens = torch.arange(12).reshape(6, 2)
    assert Dataset.of("tokens", tokens, torch.arange(6) % 2).points.whole_inputs is tokens


@QUICK
@given(index=st.lists(st.integers(0, 5), max_size=8))
def test_a_subset_has_the_points_asked_for_and_shares_the_tensors(index):
    whole = Points.of(*images())
    part = whole.subset(np.array(index, dtype=np.int64))
    assert part.whole_inputs is whole.whole_inputs
    assert part.whole_labels is whole.whole_labels
    assert len(part) == len(index) == len(part.x) == len(part.y)
    for position, point in enumerate(index):
        assert torch.equal(part.x[position], whole.whole_inputs[point])
        assert part.y[position] == whole.whole_labels[point]


def test_a_subset_of_a_subset_counts_in_the_whole_data_set():
    whole = Points.of(*images())
    assert whole.subset(np.array([4, 5])).subset(np.array([1])).y.tolist() == [whole.whole_labels[1]]


def test_all_points_are_in_their_order():
    inputs, labels = images()
    whole = Points.of(inputs, labels)
    assert torch.equal(whole.x, inputs)
    assert torch.equal(whole.y, labels)


def test_a_subset_without_some_classes_still_has_as_many_as_the_data_set():
    assert Points.of(*images()).subset(np.array([0])).n_classes == 3
