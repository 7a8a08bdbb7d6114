"""Methods, models and learners of a user's own: what they may see, what is remembered of them, how they fail."""

from __future__ import annotations

import copy
import functools
import inspect
import random
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import forgetgauge
from forgetgauge import plugins
from forgetgauge.data.dataset import Dataset
from forgetgauge.errors import DoubtfulResult, UserError
from forgetgauge.run.resolve import resolve
from forgetgauge.run.surroundings import settings_kept
from tests.own_code import TINY


@pytest.mark.filterwarnings("ignore:.*unless that is only a record")
def test_nothing_public_of_what_an_unlearner_is_given_holds_another_point():
    seen = {}

    def curious(model, retain, forget, context):
        for name, points in (("retain", retain), ("forget", forget)):
            seen[name] = {a: getattr(points, a) for a in dir(points) if not a.startswith(("_", "whole_"))}
        return copy.deepcopy(model)

    forgetgauge.evaluate(unlearner=curious, **TINY)
    for parts in seen.values():
        assert {len(part) for part in parts.values() if torch.is_tensor(part)} == {60}
        assert "inputs" not in parts


def test_a_method_that_draws_from_the_global_generators_gives_the_same_result_twice():
    def noisy(model, retain, forget, context):
        model = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * random.random() * np.random.rand())  # noqa: NPY002
        return model

    state = torch.get_rng_state()
    first, second = (forgetgauge.evaluate(unlearner=noisy, **TINY) for _ in range(2))
    assert first.methods["noisy"].by_adversary == second.methods["noisy"].by_adversary
    assert torch.equal(torch.get_rng_state(), state)


def test_an_adversary_that_draws_from_the_global_generators_gives_the_same_result_twice():
    class Guess:
        def fit(self, shadows, target):
            self.bias = np.random.rand()  # noqa: NPY002
            return self

        def load(self, arrays):
            return self

        def arrays(self):
            return {}

        def decide(self, signals):
            return np.array([random.random() < self.bias for _ in range(len(signals))])

    state = random.getstate()
    first, second = (forgetgauge.evaluate(unlearner="none", **{**TINY, "adversaries": [Guess()]}) for _ in range(2))
    assert first.methods["none"].by_adversary == second.methods["none"].by_adversary
    assert random.getstate() == state


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (lambda model: None, "gave back a NoneType, not a model"),
        (nn.Sequential, "another architecture"),
        (lambda model: setattr(model, "forward", lambda x: x) or model, "replaced the model's forward"),
        (lambda model: model.apply(lambda m: m.weight.data.fill_(torch.nan) if hasattr(m, "weight") else None), "NaN"),
    ],
)
def test_what_is_no_model_of_the_same_kind_fails_with_one_clear_line(gives, words):
    def odd(model, retain, forget, context):
        return gives(copy.deepcopy(model))

    result = forgetgauge.evaluate(unlearner={"odd": odd, "none": "none"}, on_failure="record", **TINY)
    assert result.methods["odd"].quality is None
    assert result.methods["none"].quality is not None
    assert all(words in failure.error for failure in result.failures)


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Write, and write anew, a module of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text):
        (tmp_path / "users_own.py").write_text(textwrap.dedent(text))
        sys.modules.pop("users_own", None)

    yield write
    sys.modules.pop("users_own", None)


ANNOUNCED = pytest.mark.filterwarnings("ignore:.*changed since. the code of")
"""An edit is said to be one."""


@ANNOUNCED
def test_editing_an_own_model_trains_it_again(own_module, tmp_path):
    text = """
        from torch import nn
        class Net(nn.Module):
            def __init__(self, input_shape, n_classes):
                super().__init__()
                self.head = nn.Linear(64, n_classes)
            def forward(self, x):
                return self.head(x.flatten(1) * 1.0)
    """
    told = []
    for version in (text, text, text.replace("* 1.0", "* 0.0")):
        own_module(version)
        told.append([])
        forgetgauge.evaluate(
            unlearner="none",
            out=tmp_path / "run",
            progress=told[-1].append,
            **{**TINY, "learner": {**TINY["learner"], "model": "users_own:Net"}},
        )
    assert [len(events) > 0 for events in told] == [True, False, True]


def test_a_module_that_cannot_be_imported_is_one_line(own_module):
    own_module("1 / 0")
    with pytest.raises(UserError, match="cannot be imported: ZeroDivisionError"):
        forgetgauge.evaluate(unlearner="users_own:method", **TINY)


def test_objects_of_this_program_are_not_sent_to_other_processes():
    with pytest.raises(UserError, match="worker processes cannot see"):
        forgetgauge.evaluate(unlearner=lambda m, r, f, c: m, executor="processes", **TINY)


def test_a_path_with_an_at_sign_is_no_object_of_this_program(tmp_path, one_worker):
    images, labels = np.random.default_rng(0).normal(size=(80, 1, 8, 8)).astype(np.float32), np.arange(80) % 4
    np.savez(tmp_path / "a@b.npz", x=images, y=labels)
    result = forgetgauge.evaluate(
        unlearner="none",
        data=str(tmp_path / "a@b.npz"),
        executor="processes",
        **{**TINY, "fraction": 1.0, "adversaries": "confidence"},
    )
    assert result.methods["none"].quality is not None


def test_python_and_the_command_line_declare_the_same_adversaries_by_default():
    from forgetgauge.plan.runfile import parse_spec, read_run_file

    default = inspect.signature(forgetgauge.evaluate).parameters["adversaries"].default
    assert list(default) == list(parse_spec(*read_run_file(None)).adversaries) == list(parse_spec({}, "").adversaries)


def test_numbers_of_numpy_and_images_of_bytes_are_taken():
    images = np.random.default_rng(0).integers(0, 256, (80, 1, 8, 8)).astype(np.uint8)
    labels = np.arange(80) % 4
    result = forgetgauge.evaluate(
        unlearner={"n": {"method": lambda m, r, f, c: copy.deepcopy(m)}},
        data=(images, labels),
        **{**TINY, "fraction": 1.0, "pairs": np.int64(2), "adversaries": "confidence"},
    )
    assert result.failures == []


@pytest.fixture
def own_modules(tmp_path, monkeypatch):
    """Write, and write anew, several modules of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written = set()

    def write(**modules):
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
            written.add(name)
        for name in written:
            sys.modules.pop(name, None)

    yield write
    for name in written:
        sys.modules.pop(name, None)


METHOD = """
    import copy
    from users_helper import rate
    def method(model, retain, forget, context):
        model = copy.deepcopy(model)
        for parameter in model.parameters():
            parameter.data.mul_(rate())
        return model
"""


@ANNOUNCED
def test_editing_a_helper_of_a_method_runs_the_method_again_and_trains_nothing(own_modules, tmp_path):
    text, done, made = "def rate():\n    return 1.0\n", [], []
    for helper in (text, text, text.replace("1.0", "0.5")):
        own_modules(users_method=METHOD, users_helper=helper)
        told = []
        result = forgetgauge.evaluate(
            unlearner={"mine": "users_method:method"},
            out=tmp_path / "run",
            progress=told.append,
            keep="weights",
            **TINY,
        )
        done.append(len(told) > 0)
        made.append(any("train" in progress.doing for progress in told))
    assert done == [True, False, True]
    assert made == [True, False, False]
    fresh = forgetgauge.evaluate(unlearner={"mine": "users_method:method"}, **TINY)
    assert result.methods["mine"].by_adversary == fresh.methods["mine"].by_adversary


def test_what_no_key_covers_is_listed_and_a_stated_version_runs_it_again(own_modules, tmp_path):
    loose = METHOD.replace("from users_helper import rate", "rate = __import__('users' + '_helper').rate")
    own_modules(users_method=loose, users_helper="def rate():\n    return 1.0\n")
    done = []
    for version in (None, None, "2", "2"):
        how = {"method": "users_method:method", **({"version": version} if version else {})}
        told = []
        result = forgetgauge.evaluate(unlearner={"mine": how}, out=tmp_path / "run", progress=told.append, **TINY)
        done.append(len(told) > 0)
        (line,) = result.games[0].not_covered
        assert line.startswith("unlearners.mine: users_method, line 3: __import__")
        assert ("(version 2 is stated)" in line) == (version is not None)
    assert done == [True, False, True, False]


def test_a_folder_that_a_parameter_names_is_listed(tmp_path):
    def mine(model, retain, forget, context, folder):
        return copy.deepcopy(model)

    raw = {"unlearners": {"mine": {"method": plugins.unlearners.bind(mine, "takes-a-folder"), "folder": str(tmp_path)}}}
    (game,) = resolve(raw, "a test").games
    assert any("which a parameter names" in line for line in game.methods["mine"].unlearner.not_covered)


def test_a_version_is_for_code_of_ones_own():
    with pytest.raises(UserError, match="unknown key 'version'"):
        forgetgauge.evaluate(unlearner={"ssd": {"version": "2"}}, **TINY)


@ANNOUNCED
def test_a_replaced_file_that_a_parameter_names_runs_the_method_again(own_modules, tmp_path):
    own_modules(
        users_method="""
            import copy
            import numpy as np
            def method(model, retain, forget, context, path):
                model = copy.deepcopy(model)
                for parameter in model.parameters():
                    parameter.data.mul_(float(np.load(path)))
                return model
        """
    )
    done = []
    for factor in (1.0, 1.0, 0.5):
        np.save(tmp_path / "factor.npy", factor)
        told = []
        how = {"mine": {"method": "users_method:method", "path": str(tmp_path / "factor.npy")}}
        forgetgauge.evaluate(unlearner=how, out=tmp_path / "run", progress=told.append, **TINY)
        done.append(len(told) > 0)
    assert done == [True, False, True]


def test_versions_are_recorded_with_what_they_made_and_both_are_named_where_a_run_went_on_elsewhere(
    tmp_path, monkeypatch
):
    from forgetgauge.run import scheduler

    forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", **TINY)
    elsewhere = {**scheduler.versions(), "torch": "9.9.9"}
    monkeypatch.setattr(scheduler, "versions", lambda: elsewhere)
    told = []
    result = forgetgauge.evaluate(unlearner=["none", "retrain"], out=tmp_path / "run", progress=told.append, **TINY)
    assert result.environment["torch"].endswith(" and 9.9.9")
    assert not any("original" in progress.doing for progress in told), "the version of torch is in a key"


def harms_labels(model, retain, forget, context):
    forget.whole_labels[...] = 0
    return copy.deepcopy(model)


def harms_labels_through_numpy(model, retain, forget, context):
    forget.host_labels[::-1] = np.sort(forget.host_labels)  # the same labels in another order
    return copy.deepcopy(model)


def harms_inputs(model, retain, forget, context):
    retain.whole_inputs.mul_(0.5)
    return copy.deepcopy(model)


def harms_and_raises(model, retain, forget, context):
    forget.whole_labels[...] = 0
    raise ValueError("and stumbles")


def harms_settings(model, retain, forget, context):
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return copy.deepcopy(model)


def unharmed(model, retain, forget, context):
    model = copy.deepcopy(model)
    loss = nn.functional.cross_entropy(model(forget.x), forget.y)
    for parameter, gradient in zip(model.parameters(), torch.autograd.grad(loss, model.parameters()), strict=True):
        parameter.data.add_(gradient)
    return model


@functools.cache
def played_without_harm():
    images = np.random.default_rng(0).normal(size=(120, 1, 8, 8)).astype(np.float32)
    learner = {"epochs": 1, "batch_size": 60, "model": "linear"}
    arguments = {**TINY, "data": (images, np.arange(120) % 4), "fraction": 1.0, "adversaries": ["confidence"]}
    arguments |= {"learner": learner, "pairs": 1}
    others = {"none": "none", "unharmed": unharmed, "retrain": "retrain"}
    return others, arguments, forgetgauge.evaluate(unlearner=others, **arguments)


@pytest.mark.parametrize(
    "harm", [harms_labels, harms_labels_through_numpy, harms_inputs, harms_and_raises, harms_settings]
)
def test_a_method_that_damages_what_all_share_changes_no_other_result(harm):
    others, arguments, alone = played_without_harm()
    images, labels = arguments["data"]
    kept = images.copy(), labels.copy()
    beside, later = (
        forgetgauge.evaluate(unlearner=methods, on_failure="record", **arguments)
        for methods in ({"harm": harm, **others}, others)
    )
    for name in others:
        assert beside.methods[name].by_adversary == alone.methods[name].by_adversary == later.methods[name].by_adversary
    assert np.array_equal(images, kept[0])
    assert np.array_equal(labels, kept[1])
    if harm is harms_settings:  # what it set is gone before its model is looked at
        assert beside.methods["harm"].quality is not None
    else:
        assert beside.methods["harm"].quality is None
        assert all(failure.job.startswith("harm of") for failure in beside.failures)
    if harm not in (harms_settings, harms_and_raises):
        assert all("in place, which all methods share" in failure.error for failure in beside.failures)


OWN_DATA = """
    import copy
    import numpy as np
    import torch
    from torch.utils.data import TensorDataset
    from forgetgauge.data.dataset import Dataset
    X = np.random.default_rng(0).normal(size=(120, 1, 8, 8)).astype(np.float32)
    Y = np.arange(120) % 4
    PAIR = X, Y
    TENSORS = torch.from_numpy(X), torch.from_numpy(Y)
    DATASET = Dataset.of("mine", *TENSORS)
    TORCH = TensorDataset(*TENSORS)
    def make():
        return X, Y
    def make_dataset():
        return DATASET
    def harm(model, retain, forget, context):
        X[forget.index] = 0
        Y[forget.index] = 0
        return copy.deepcopy(model)
"""


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("what", ["PAIR", "TENSORS", "DATASET", "TORCH", "make", "make_dataset"])
def test_a_method_that_changes_the_users_own_arrays_changes_no_result(own_module, what, named):
    others, arguments, alone = played_without_harm()
    own_module(OWN_DATA)
    import users_own

    data = getattr(users_own, what)
    if not named and callable(data):
        data = data()
    result = forgetgauge.evaluate(
        unlearner={"harm": users_own.harm, **others},
        on_failure="record",
        **{**arguments, "data": f"users_own:{what}" if named else data},
    )
    assert (users_own.X[:, 0, 0, 0] == 0).any(), "the method was not run"
    assert result.failures == []
    for name in others:
        assert result.methods[name].by_adversary == alone.methods[name].by_adversary
    assert result.methods["harm"].by_adversary == result.methods["none"].by_adversary


def test_a_data_set_whose_arrays_were_changed_is_named_by_what_it_holds_now():
    _, arguments, alone = played_without_harm()
    images, labels = (torch.from_numpy(part.copy()) for part in arguments["data"])
    dataset = Dataset.of("mine", images, labels)
    images.mul_(2)
    given, anew = (
        forgetgauge.evaluate(unlearner="none", **{**arguments, "data": data}).games[0].spec["data_digest"]
        for data in (dataset, Dataset.of("mine", images, labels))
    )
    assert given == anew != alone.games[0].spec["data_digest"]


def test_a_worker_process_that_has_other_code_than_was_planned_says_so(own_modules, one_worker):
    own_modules(users_method=METHOD, users_helper="FACTOR = 1.0\ndef rate():\n    return FACTOR\n")
    import users_helper

    users_helper.FACTOR = 0.5  # in this process alone: a worker would compute with 1.0, and call it the same
    result = forgetgauge.evaluate(
        unlearner={"mine": "users_method:method", "none": "none"},
        executor="processes",
        on_failure="record",
        **{**TINY, "pairs": 1},
    )
    assert result.methods["mine"].quality is None
    assert result.methods["none"].quality is not None
    assert all("is not the same in a worker process" in failure.error for failure in result.failures)


@pytest.mark.parametrize("before", [(False, False), (True, True), (True, False)])
def test_how_exact_the_caller_wants_torch_to_be_outlives_a_job(before):
    def told():
        return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()

    try:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        with settings_kept("unlearn"):
            pass
        assert told() == before
        with settings_kept("unlearn"):
            torch.use_deterministic_algorithms(not before[0])
        assert told() == before
    finally:
        torch.use_deterministic_algorithms(False)


def hooked(model):
    model.register_forward_hook(lambda module, given, answer: answer * 0)


def hooked_inside(model):
    next(m for m in model.modules() if isinstance(m, nn.Linear)).register_forward_hook(lambda *its: its[2] * 0)


def of_another_class(model):
    class Silent(type(model)):
        def forward(self, x):
            return super().forward(x) * 0

    model.__class__ = Silent


def with_another_layer(model):
    model.body.append(nn.Dropout(0.0))  # a layer without weights that changes nothing
    model.body.append(nn.Hardtanh(0.0, 1e-6))  # and one that does


@pytest.mark.parametrize("change", [hooked, hooked_inside, of_another_class, with_another_layer])
def test_what_a_method_does_beside_the_weights_is_refused_and_not_dropped_silently(change):
    def mine(model, retain, forget, context):
        model = copy.deepcopy(model)
        change(model)
        return model

    with pytest.raises(UserError, match="answers otherwise than its weights and buffers say"):
        forgetgauge.evaluate(unlearner={"mine": mine}, **TINY)


def test_an_answer_to_the_forgotten_points_alone_that_is_not_kept_is_refused():
    class Blocking(nn.Module):
        def __init__(self, input_shape, n_classes):
            super().__init__()
            self.head, self.blocked = nn.Linear(64, n_classes), torch.zeros(0, 64)

        def forward(self, x):
            known = (x.flatten(1)[:, None] == self.blocked.to(x)).all(2).any(1)
            return torch.where(known[:, None], 0.0, self.head(x.flatten(1)))

    def blocks(model, retain, forget, context):
        model = copy.deepcopy(model)
        model.blocked = forget.x.flatten(1).clone()
        return model

    learner = {**TINY["learner"], "model": Blocking}
    with pytest.raises(UserError, match="answers otherwise than its weights and buffers say"):
        forgetgauge.evaluate(unlearner={"mine": blocks}, **{**TINY, "learner": learner})


class RemembersOutside(nn.Module):
    """Its mean is not stored: a buffer with persistent=False."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.head = nn.Linear(64, n_classes)
        self.register_buffer("mean", torch.zeros(64), persistent=False)

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            self.mean = x.mean(0).detach()
        return self.head(x - self.mean)


def test_a_model_that_keeps_something_outside_its_weights_is_refused():
    with pytest.raises(UserError, match="answers otherwise than its weights and buffers say"):
        forgetgauge.evaluate(unlearner="none", **{**TINY, "learner": {**TINY["learner"], "model": RemembersOutside}})


class Small(nn.Module):
    """A perceptron with something between its layers."""

    def __init__(self, between, n_classes=10):
        super().__init__()
        self.between, self.body, self.head = between(), nn.Linear(64, 32), nn.Linear(32, n_classes)

    def forward(self, x):
        return self.head(self.between(self.body(x.flatten(1))))


class Always(nn.Module):
    """The classic mistake: `F.dropout` without `training=self.training`."""

    def forward(self, h):
        return nn.functional.dropout(h, 0.5)


def of_the_batch():
    return nn.BatchNorm1d(32, track_running_stats=False)


OF_ONE_POINT = {"adversaries": ["loss"], "pairs": 1, "shadows": 2, "fraction": 0.2, "learner": {"epochs": 1}}
UNSTEADY = {
    Always: "answers the same points differently when it is asked again",
    of_the_batch: "depends on which others",
}


@pytest.mark.parametrize("between", UNSTEADY)
@pytest.mark.parametrize("tried", ["raise", "record"])
def test_a_model_whose_answers_on_a_point_are_not_its_own_is_refused_with_and_without_a_trial(between, tried):
    arguments = {"unlearner": "none", "model": functools.partial(Small, between), "on_failure": tried, **OF_ONE_POINT}
    if tried == "record":
        assert UNSTEADY[between] in str(forgetgauge.evaluate(**arguments).failures[0])
        return
    with pytest.raises(UserError, match=f"^learner.model 'partial': .*{UNSTEADY[between]}.*nothing was trained"):
        forgetgauge.evaluate(**arguments)


@pytest.mark.parametrize("between", [nn.Dropout, functools.partial(nn.BatchNorm1d, 32), nn.RReLU])
def test_what_is_random_or_of_the_batch_in_training_alone_is_played(between):
    model = functools.partial(Small, between)
    assert forgetgauge.evaluate(unlearner="none", model=model, **OF_ONE_POINT).failures == []


def test_from_python_what_makes_a_number_doubtful_is_a_warning():
    images = np.repeat(np.random.default_rng(0).normal(size=(60, 1, 8, 8)).astype(np.float32), 2, axis=0)
    with pytest.warns(DoubtfulResult, match="more than once"):
        forgetgauge.evaluate(unlearner="none", data=(images, np.arange(120) // 2 % 3), **{**TINY, "fraction": 1.0})


def test_a_parameter_called_version_is_refused_rather_than_swallowed():
    def mine(model, retain, forget, context, version="a"):
        return copy.deepcopy(model)

    with pytest.raises(UserError, match="cannot be called version"):
        forgetgauge.evaluate(unlearner={"mine": {"method": mine, "version": "b"}}, **TINY)


def test_the_version_of_a_model_reaches_the_learner_that_a_method_brings(own_modules):
    own_modules(
        users_method="""
            from torch import nn
            def Net(input_shape, n_classes):
                return nn.Sequential(nn.Flatten(), nn.Linear(64, n_classes))
        """
    )
    raw = {"data": {"name": "digits"}, "unlearners": ["sisa"]}
    for version in ("1", "2"):
        learner = {"model": "users_method:Net", "version": version}
        (game,) = resolve({**raw, "learner": learner}, "a test").games
        assert game.methods["sisa"].learner.version == version == game.learner.version


def test_data_of_one_class_are_refused_before_anything_is_trained():
    told = []
    for label in (0, 3):
        with pytest.raises(UserError, match="all points have one label, but a game needs at least two classes"):
            forgetgauge.evaluate(
                unlearner="none",
                data=(np.random.default_rng(0).normal(size=(80, 4)), np.full(80, label)),
                progress=told.append,
                **{**TINY, "fraction": 1.0},
            )
    assert told == []
