"""The user's own arrays in `.npz` files, and how arrays of any sort become a data set."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import forgetgauge
from forgetgauge.data.arrays import dataset_of, read_npz
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.loading import as_dataset, load_dataset
from forgetgauge.errors import UserError
from forgetgauge.tasks.classification import CLASSIFICATION
from tests.data.layouts import images
from tests.data.test_dataset import QUICK


def floats(n=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)), np.arange(n) % 3


def test_a_file_with_x_and_y_is_a_data_set_without_a_test_set(tmp_path):
    x, y = floats()
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    dataset = load_dataset(str(tmp_path / "mine.npz"))
    assert dataset.name == str(tmp_path / "mine.npz")
    assert dataset.points.whole_inputs.dtype == torch.float32
    assert torch.equal(dataset.points.whole_inputs, torch.tensor(x, dtype=torch.float32))
    assert dataset.test is None


def test_a_file_and_a_folder_with_a_test_set_are_the_same_data(tmp_path):
    (x, y), (x_test, y_test) = floats(), floats(4, seed=1)
    np.savez_compressed(tmp_path / "mine.npz", x=x, y=y, x_test=x_test, y_test=y_test)
    (tmp_path / "mine").mkdir()
    np.savez(tmp_path / "mine/train.npz", x=x, y=y)
    np.savez(tmp_path / "mine/test.npz", x=x_test, y=y_test)
    file, folder = load_dataset(str(tmp_path / "mine.npz")), load_dataset(str(tmp_path / "mine"))
    assert len(file.test) == 4
    assert file.digest == folder.digest == as_dataset(tmp_path / "mine", "x").digest


def test_a_file_is_read_once_and_again_when_it_was_written_anew(tmp_path):
    x, y = floats()
    path = tmp_path / "mine.npz"
    np.savez(path, x=x, y=y)
    first = load_dataset(str(path))
    assert load_dataset(str(path)) is first
    np.savez(path, x=np.concatenate([x, x]), y=np.concatenate([y, y]))
    assert len(load_dataset(str(path)).points) == 12


@QUICK
@given(n=st.integers(1, 9), channels=st.sampled_from([1, 3]), seed=st.integers(0, 99))
def test_images_of_bytes_stay_bytes_and_are_scaled_by_their_own_mean_and_deviation(n, channels, seed):
    pixels = images(n, (channels, 5, 6), seed)
    dataset = dataset_of("mine", (pixels, np.zeros(n, int)), (pixels[:1], np.zeros(1, int)))
    assert dataset.points.whole_inputs.dtype == torch.uint8
    scaled = dataset.points.x.double().numpy()
    np.testing.assert_allclose(scaled.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(axis=(0, 2, 3)), 1, atol=1e-5)
    np.testing.assert_allclose(dataset.test.x.numpy(), scaled[:1], atol=1e-5)


def test_a_channel_of_one_colour_is_zero_and_not_infinite():
    dataset = dataset_of("mine", (np.full((4, 1, 8, 8), 7, np.uint8), np.zeros(4, int)))
    assert float(dataset.points.x.abs().max()) < 1e-6


def test_bytes_that_are_no_images_become_fractions_and_token_ids_stay_whole():
    x = np.array([[0, 51], [255, 102]], np.uint8)
    assert dataset_of("mine", (x, [0, 1])).points.x.tolist() == pytest.approx(np.array([[0, 0.2], [1, 0.4]]))
    assert dataset_of("mine", (x.astype(np.int64), [0, 1])).points.x.dtype == torch.int64


MISMATCHED = {
    "shape": (np.zeros((2, 5)), [0, 1], r"test points are float32 of shape \(5,\), but training .* \(4,\)"),
    "type": (np.zeros((2, 4), np.int64), [0, 1], "test points are int64"),
    "label": (np.zeros((2, 4)), [0, 3], "the test set has label 3, but the training labels end at 2"),
    "fewer labels": (np.zeros((2, 4)), [0], "2 inputs but 1 labels"),
}


@pytest.mark.parametrize(("x_test", "y_test", "problem"), MISMATCHED.values(), ids=MISMATCHED)
def test_a_test_set_of_another_sort_is_refused(x_test, y_test, problem, tmp_path):
    x, y = floats()
    np.savez(tmp_path / "mine.npz", x=x, y=y, x_test=x_test, y_test=y_test)
    with pytest.raises(UserError, match=problem):
        load_dataset(str(tmp_path / "mine.npz"))


def test_channels_last_is_refused_with_the_way_out():
    with pytest.raises(UserError, match=r"channels last; put them first, with x\.transpose\(0, 3, 1, 2\)"):
        dataset_of("mine", (images(2, (8, 8, 3)), [0, 1]))


def test_what_is_masked_is_refused_and_a_mask_that_hides_nothing_is_not():
    x, y = np.zeros((4, 5), np.float32), np.arange(4) % 2
    x[0, 0] = 7
    hides, shows = np.ma.masked_array(x, x > 1), np.ma.masked_array(x, x > 8)
    for pair in ((hides, y), (x, np.ma.masked_array(y, y == 1))):
        with pytest.raises(UserError, match="data 'mine': some values are masked: put numbers in their place"):
            as_dataset(pair, "mine")
    with pytest.raises(UserError, match="data 'mine': the input of item 0 is a MaskedArray"):
        as_dataset([{"x": hides[i], "y": y[i]} for i in range(4)], "mine")
    with pytest.raises(UserError, match="data 'mine': some of the groups are masked"):
        as_dataset((x, y), "mine").grouped_by(np.ma.masked_array(y, y == 1))
    assert as_dataset((shows, y), "mine").digest == as_dataset((x, y), "mine").digest


def test_complex_inputs_are_refused_for_what_they_are():
    with pytest.raises(UserError, match="data 'mine': inputs are complex numbers: give their real and imaginary parts"):
        dataset_of("mine", (np.ones((4, 5), np.complex64), np.arange(4) % 2))


@pytest.mark.parametrize("made", [dataset_of, lambda name, pair: Dataset.of(name, *map(torch.as_tensor, pair))])
def test_channels_last_is_refused_of_fractions_too_where_they_look_like_pictures(made):
    labels = np.arange(4) % 2
    for shape in ((32, 32, 3), (28, 28, 1), (48, 64, 4)):
        with pytest.raises(
            UserError, match=rf"images of \({shape[0]}, {shape[1]}, .* have their channels last; put them"
        ):
            made("mine", (np.zeros((4, *shape), np.float32), labels))
    for shape in ((3, 32, 32), (1, 8, 4), (512, 4, 4), (64, 1, 1), (9, 128, 3), (16, 8, 8)):
        made("mine", (np.zeros((4, *shape), np.float32), labels))


class Trap:
    """Tells on whoever unpickles it."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_pickles_are_refused_and_never_loaded(tmp_path):
    np.savez(tmp_path / "objects.npz", x=np.array([Trap(), Trap()], dtype=object), y=np.array([0, 1]))
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Trap()))
    for name in ("objects", "pickle"):
        with pytest.raises(UserError, match=f"{name}.npz: .*pickled objects are never loaded"):
            read_npz(tmp_path / f"{name}.npz", CLASSIFICATION)
    assert not Trap.sprung


def whole(tmp_path):
    np.savez(tmp_path / "whole.npz", x=np.zeros((99, 99)), y=np.zeros(99, int))
    return (tmp_path / "whole.npz").read_bytes()


BROKEN = {
    "absent": (None, "no such file"),
    "empty": (lambda path: b"", "not an .npz file"),
    "text": (lambda path: b"hello", "not an .npz file"),
    "truncated": (lambda path: whole(path)[:-200], "not an .npz file"),
    "flipped": (lambda path: whole(path)[:5000] + b"?" + whole(path)[5001:], "x or y cannot be read"),
}


@pytest.mark.parametrize(("content", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_line(content, problem, tmp_path):
    path = tmp_path / "mine.npz"
    if content:
        path.write_bytes(content(tmp_path))
    with pytest.raises(UserError, match=f"{path}: {problem}") as refusal:
        load_dataset(str(path))
    assert "\n" not in str(refusal.value)


def test_arrays_of_other_names_are_refused_with_those_that_are_there(tmp_path):
    np.savez(tmp_path / "mine.npz", images=[1], labels=[0])
    np.savez(tmp_path / "half.npz", x=[[1]], y=[0], x_test=[[1]])
    np.save(tmp_path / "one.npy", [1])
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    (tmp_path / "folder").mkdir()
    for name, problem in {
        "mine.npz": "holds no array 'x'; there are images, labels",
        "half.npz": "holds no array 'y_test'",
        "one.npz": "a single array",
        "folder": "train.npz: no such file",
    }.items():
        with pytest.raises(UserError, match=problem):
            load_dataset(str(tmp_path / name))


def test_a_file_takes_no_parameters(tmp_path):
    np.savez(tmp_path / "mine.npz", x=floats()[0], y=floats()[1])
    with pytest.raises(UserError, match=r"mine\.npz' takes no parameters, but size is given"):
        load_dataset(str(tmp_path / "mine.npz"), {"size": 3})


def test_a_folder_called_like_a_data_set_of_the_catalogue_does_not_hide_it(tmp_path, monkeypatch):
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(load_dataset("digits").points) == 1797


def test_a_game_is_played_on_a_file_and_continues_from_its_folder(tmp_path):
    x, y = images(80, (1, 8, 8)), np.arange(80) % 4
    np.savez(tmp_path / "mine.npz", x=x, y=y, x_test=x[:9], y_test=y[:9])
    options = {"pairs": 2, "shadows": 2, "learner": {"epochs": 1}, "adversaries": "confidence", "out": tmp_path / "run"}
    result = forgetgauge.evaluate(unlearner="none", data=str(tmp_path / "mine.npz"), **options)
    assert result.failures == []
    again = forgetgauge.evaluate(unlearner="none", data=str(tmp_path / "mine.npz"), **options)
    assert again.methods["none"].quality == result.methods["none"].quality


def test_groups_beside_x_and_y_are_the_groups_of_the_points(tmp_path):
    x, y = floats()
    np.savez(tmp_path / "plain.npz", x=x, y=y)
    np.savez(tmp_path / "mine.npz", x=x, y=y, groups=np.array([3, 3, 1, 1, 2, 2]))
    (tmp_path / "mine").mkdir()
    np.savez(tmp_path / "mine/train.npz", x=x, y=y, groups=np.array([3, 3, 1, 1, 2, 2]))
    plain, file, folder = (load_dataset(str(tmp_path / name)) for name in ("plain.npz", "mine.npz", "mine"))
    assert plain.points.groups is None
    np.testing.assert_array_equal(file.points.groups, [3, 3, 1, 1, 2, 2])
    assert file.digest == folder.digest == plain.grouped_by([3, 3, 1, 1, 2, 2]).digest != plain.digest
    np.testing.assert_array_equal(file.points.subset(np.array([4, 0])).groups, [2, 3])
    np.testing.assert_array_equal(file.copied().points.groups, file.points.groups)


def test_groups_are_stated_by_name_in_a_file_or_as_runs_of_points(tmp_path):
    x, y = floats()
    np.savez(tmp_path / "plain.npz", x=x, y=y)
    np.save(tmp_path / "groups.npy", np.array(["b", "b", "a", "a", "c", "a"]))
    path = str(tmp_path / "plain.npz")
    named = load_dataset(path, {"groups": str(tmp_path / "groups.npy")})
    np.testing.assert_array_equal(named.points.groups, [1, 1, 0, 0, 2, 0])
    np.testing.assert_array_equal(load_dataset(path, {"groups": 4}).points.groups, [0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(6), "whole numbers or names"),
        (np.zeros(5, dtype=np.int64), r"not one for each of 6 points"),
        (np.zeros((6, 1), dtype=np.int64), r"not one for each of 6 points"),
    ],
)
def test_groups_that_do_not_fit_are_refused_in_one_line(groups, message, tmp_path):
    x, y = floats()
    np.savez(tmp_path / "mine.npz", x=x, y=y, groups=groups)
    with pytest.raises(UserError, match=message):
        load_dataset(str(tmp_path / "mine.npz"))


def test_a_list_of_groups_is_read_as_an_array_of_them_is():
    x, y = floats()
    plain = as_dataset((x, y), "mine")
    named = plain.grouped_by(np.array([b"b", b"b", b"a", b"a", b"c", b"a"]))
    assert plain.grouped_by([b"b", b"b", b"a", b"a", b"c", b"a"]).digest == named.digest
    for floating in ([1.0] * 6, np.ones(6)):
        with pytest.raises(UserError, match="but they are of type float64"):
            plain.grouped_by(floating)
    for mixed in ([1, "a", 2, 2, 2, 2], ["a", b"a", "b", "b", "b", "b"], [1.0, None, 2.0, 2.0, 2.0, 2.0]):
        with pytest.raises(UserError, match="but they are of several types"):
            plain.grouped_by(mixed)


@pytest.mark.parametrize("groups", [0, 7, True, 2.0, "nowhere.npy"])
def test_what_is_no_groups_is_refused_in_one_line(groups, tmp_path):
    x, y = floats()
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    with pytest.raises(UserError, match=r"data\.groups"):
        load_dataset(str(tmp_path / "mine.npz"), {"groups": groups})


NOT_EACH = {
    "blank": (["a", " ", "b"], "a name in groups is blank"),
    "nan": (["a", float("nan"), "b"], "they are of several types"),
    "none": ([1, None, 2], "they are of several types"),
    "bool": ([True, False, True], "they are of type bool"),
    "huge": ([2**70, 1, 2], "they are of several types, or too large"),
    "object": (np.array(["a", None, "b"], dtype=object), "they are of several types"),
    "fractions": (np.array([0.0, 1.0, 2.0]), "they are of type float64"),
}


@pytest.mark.parametrize(("groups", "message"), NOT_EACH.values(), ids=NOT_EACH)
def test_a_point_without_a_group_is_not_put_into_one(groups, message):
    with pytest.raises(UserError, match=message):
        dataset_of("mine", (np.eye(3), [0, 1, 0]), groups=groups)


@pytest.mark.parametrize("groups", [["b", "a", "b"], np.array(["b", "a", "b"], dtype=object), [7, np.int64(3), 7]])
def test_groups_are_names_or_numbers_as_people_have_them(groups):
    found = dataset_of("mine", (np.eye(3), [0, 1, 0]), groups=groups).points.groups
    assert [int(one) for one in found] in ([1, 0, 1], [7, 3, 7])


def test_a_data_set_that_knows_its_groups_is_given_no_others(tmp_path):
    x, y = floats()
    np.savez(tmp_path / "mine.npz", x=x, y=y, groups=np.arange(6))
    with pytest.raises(UserError, match="knows its groups"):
        load_dataset(str(tmp_path / "mine.npz"), {"groups": 2})
