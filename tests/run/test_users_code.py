"""Methods, models and learners of a user's own: what they may see, what is remembered of them, how they fail."""

from __future__ import annotations

import copy
import inspect
import random
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import forgetgauge
from forgetgauge.errors import UserError

TINY = {
    "pairs": 2,
    "shadows": 2,
    "fraction": 0.2,
    "learner": {"epochs": 1, "batch_size": 64},
    "adversaries": ("correctness", "confidence", "entropy", "modified-entropy"),
}


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
            tell=told[-1].append,
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


def test_a_path_with_an_at_sign_is_no_object_of_this_program(tmp_path):
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
