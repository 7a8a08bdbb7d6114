import os
import textwrap

import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.digits import load_digits
from forgetgauge.data.files import KNOWN
from forgetgauge.data.folders import data_folder, find
from forgetgauge.data.loading import _read, as_dataset, load_dataset
from forgetgauge.errors import UserError


@pytest.fixture(autouse=True)
def _fresh_catalogue(monkeypatch):
    monkeypatch.setattr(plugins.data, "_bound", {})
    _read.cache_clear()
    yield
    _read.cache_clear()


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Writes the user's own module and gives its name."""

    def write(code):
        name = f"own_data_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        monkeypatch.syspath_prepend(str(tmp_path))
        return name

    return write


def pair(n=5):
    return np.linspace(0, 1, 4 * n).reshape(n, 4), np.arange(n) % 2


@pytest.mark.parametrize("name", sorted(plugins.data.entries))
def test_every_data_set_of_the_catalogue_loads_and_is_read_once(name):
    files = name.removesuffix("-3-8")  # two digits of a set are in that set's files
    if files in KNOWN and not (os.environ.get("FORGETGAUGE_DATA") and find(KNOWN[files], data_folder())):
        pytest.skip(f"data: FORGETGAUGE_DATA holds no {name}")
    dataset = load_dataset(name)
    assert isinstance(dataset, Dataset)
    assert dataset.name == name
    assert load_dataset(name) is dataset


def test_an_own_function_is_found_by_module_and_name(own_module):
    module = own_module("""
        import numpy as np
        def blobs():
            return np.ones((6, 3)), [0, 1, 2, 0, 1, 2]
    """)
    dataset = load_dataset(f"{module}:blobs")
    assert dataset.name == f"{module}:blobs"
    assert dataset.points.whole_inputs.shape == (6, 3)
    assert dataset.points.whole_inputs.dtype == torch.float32
    assert dataset.points.whole_labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_bound_pair_a_bound_function_and_a_bound_data_set_are_one(own_module):
    inputs, labels = pair()
    made = Dataset.of("mine", torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))
    names = [
        plugins.data.bind((inputs, labels), "a-pair"),
        plugins.data.bind(lambda: (inputs, labels), "a-function"),
        plugins.data.bind(made, "a-data-set"),
    ]
    assert {load_dataset(name).digest for name in names} == {made.digest}
    assert load_dataset("a-data-set") is made


def test_tensors_are_taken_as_well_as_arrays():
    inputs, labels = pair()
    tensors = as_dataset((torch.tensor(inputs), torch.tensor(labels)), "mine")
    assert tensors.digest == as_dataset((inputs, labels), "mine").digest


@pytest.mark.parametrize("thing", [None, 3, "digits", (1, 2, 3)])
def test_what_is_neither_a_data_set_nor_a_pair_is_refused(thing):
    with pytest.raises(UserError, match="data 'mine' is neither a Dataset nor a pair"):
        as_dataset(thing, "mine")


def test_a_pair_with_nan_is_refused_under_its_own_name():
    inputs, labels = pair()
    inputs[2, 2] = np.nan
    with pytest.raises(UserError, match="data 'mine': inputs hold NaN"):
        as_dataset((inputs, labels), "mine")


def test_labels_that_are_no_whole_numbers_are_refused_and_not_cut():
    inputs, _ = pair(3)
    with pytest.raises(UserError, match="whole number"):
        as_dataset((inputs, np.array([0.2, 0.9, 1.7])), "mine")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"seed": "x"}, "seed = 'x' is not of the type int"),
        ({"seed": 1.5}, "seed = 1.5 is not of the type int"),
        ({"seed": True}, "seed = True is not of the type int"),
        ({"seed": -1}, "seed = -1 is below 0"),
        ({"tokenizer": 5}, "tokenizer = 5 is not of the type str"),
        ({"people": 1.0}, "people = 1.0 is not of the type int"),
    ],
)
def test_parameters_of_another_type_than_a_reader_says_are_one_line(params, problem):
    with pytest.raises(UserError, match=problem):
        load_dataset("people", params)


def test_an_own_function_may_state_the_types_of_its_parameters_too(own_module):
    module = own_module("""
        import numpy as np
        def blobs(n: int, scale: float = 1.0, noise: "float | None" = None):
            return scale * np.ones((n, 3)), np.arange(n) % 2
    """)
    assert len(load_dataset(f"{module}:blobs", {"n": 4, "scale": 2, "noise": "any"}).points) == 4
    with pytest.raises(UserError, match="n = '4' is not of the type int"):
        load_dataset(f"{module}:blobs", {"n": "4"})


def test_labels_that_are_no_numbers_of_classes_are_refused():
    with pytest.raises(UserError, match="label 20240131 would be the last of as many classes; number those"):
        as_dataset((pair()[0], [20240131, 0, 1, 0, 1]), "mine")


def test_what_an_own_function_raises_is_one_line_that_says_where(own_module):
    module = own_module("""
        def blobs():
            raise KeyError("no such file")
    """)
    with pytest.raises(UserError, match=rf"data '{module}:blobs': KeyError: 'no such file' \({module}.py, line 3\)"):
        load_dataset(f"{module}:blobs")


def test_labels_that_are_words_are_refused_in_one_line():
    inputs, _ = pair(2)
    with pytest.raises(UserError):
        as_dataset((inputs, np.array(["cat", "dog"])), "mine")


def test_a_name_near_a_valid_one_is_answered_with_that_one():
    with pytest.raises(UserError, match=r"^unknown data set 'digit'; did you mean 'digits'\?$"):
        load_dataset("digit")


@pytest.mark.parametrize("name", ["no_such_module:data", "numpy:no_such_function"])
def test_own_code_that_cannot_be_imported_is_one_line_with_its_name(name):
    with pytest.raises(UserError, match=f"data set '{name}' cannot be imported") as refusal:
        load_dataset(name)
    assert "\n" not in str(refusal.value)


def test_two_bound_pairs_without_a_name_are_two_data_sets():
    (inputs, labels), wanted = pair(), []
    for shift in (0.0, 1.0):
        name = plugins.data.bind((inputs + shift, labels))
        wanted.append((load_dataset(name).digest, as_dataset((inputs + shift, labels), "x").digest))
    assert all(loaded == bound for loaded, bound in wanted)


def test_a_name_bound_anew_is_the_new_data_set():
    inputs, labels = pair()
    load_dataset(plugins.data.bind((inputs, labels), "mine"))
    plugins.data.bind((inputs + 1, labels), "mine")
    assert load_dataset("mine").digest == as_dataset((inputs + 1, labels), "x").digest


def test_parameters_reach_the_function_and_each_choice_is_read_once(own_module):
    module = own_module("""
        import numpy as np
        def blobs(n=6, scale=1.0):
            return scale * np.ones((n, 3)), np.arange(n) % 2
        def anything(**how):
            return np.ones((how["n"], 3)), np.arange(how["n"]) % 2
        def needy(n):
            return np.ones((n, 3)), np.arange(n) % 2
    """)
    eight = load_dataset(f"{module}:blobs", {"n": 8})
    assert len(eight.points) == 8
    assert load_dataset(f"{module}:blobs", {"n": 8}) is eight
    assert len(load_dataset(f"{module}:blobs").points) == 6
    assert len(load_dataset(f"{module}:anything", {"n": 4}).points) == 4
    with pytest.raises(UserError, match="missing a required argument: 'n'"):
        load_dataset(f"{module}:needy")
    with pytest.raises(UserError, match=r"data\.params: unknown key 'scal'; did you mean 'scale'\?"):
        load_dataset(f"{module}:blobs", {"scal": 2})


@pytest.mark.parametrize("bound", [pair(), load_digits])
def test_what_takes_no_parameters_says_so(bound):
    with pytest.raises(UserError, match="'mine' takes no parameters, but size is given"):
        load_dataset(plugins.data.bind(bound, "mine"), {"size": 3})
