"""Tried before trained: code of the user's own is run on a handful of points, and what cannot work is refused."""

from __future__ import annotations

import copy
import random
import sys

import numpy as np
import pytest
import torch
from torch import nn

import forgetgauge
from forgetgauge import plugins
from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import RunFailed, UserError
from forgetgauge.game.adversary import Access
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.plan.jobs import Named
from forgetgauge.run.assignments import Failure, Outcome
from forgetgauge.run.executors import Inline
from forgetgauge.run.side_effects import OwnState
from forgetgauge.tasks.regression import Regression

FOUR = ("correctness", "confidence", "entropy", "modified-entropy")
TINY = {
    "pairs": 2,
    "shadows": 2,
    "fraction": 0.2,
    "adversaries": FOUR,
    "learner": {"epochs": 1, "batch_size": 64},
}


RECORDS = pytest.mark.filterwarnings("ignore:.*changed while it was called; unless that is only a record")


def refused(**arguments):
    """The line of the refusal, once it is clear that nothing was begun."""
    told = []
    with pytest.raises(UserError) as caught:
        forgetgauge.evaluate(**{**TINY, **arguments}, progress=told.append)
    line = str(caught.value)
    assert told == []
    assert "\n" not in line
    assert "nothing was trained" in line
    return line


def wrong_attribute(model, retain, forget, context):
    return model(retain.inputs)


def gives_none(model, retain, forget, context):
    return None


def another_architecture(model, retain, forget, context):
    return nn.Sequential()


def states(value):
    def method(model, retain, forget, context):
        context.facts["stopped_at"] = value
        return copy.deepcopy(model)

    return method


def costs_nobody_knows_what(model, retain, forget, context):
    context.n_gradients = None
    return copy.deepcopy(model)


def leaves(model, retain, forget, context):
    sys.exit("I give up")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (wrong_attribute, "AttributeError: 'Points' object has no attribute 'inputs' (test_trial.py, line"),
        (gives_none, "gave back a NoneType, not a model"),
        (another_architecture, "another architecture"),
        (states(None), "the fact 'stopped_at' is None, not a finite number"),
        (states("never"), "the fact 'stopped_at' is 'never', not a finite number"),
        (states(1e301), "the fact 'stopped_at' is 1e+301, not a finite number"),
        (states(float("inf")), "the fact 'stopped_at' is inf, not a finite number"),
        (states(torch.tensor(1.0)), "the fact 'stopped_at' is tensor(1.), not a finite number"),
        (states([0] * 10**6), "the fact 'stopped_at' is [0, 0, 0,"),
        (costs_nobody_knows_what, "n_gradients is None, not a finite number"),
        (leaves, "SystemExit: I give up"),
    ],
)
def test_a_method_that_cannot_work_is_one_line_that_names_it(method, words):
    line = refused(unlearner={"mine": method, "none": "none"})
    assert line.startswith("unlearners.mine: ")
    assert words in line


class Together:
    """Does nothing to many models at once."""

    def __init__(self, shown):
        self.shown = shown

    def unlearn(self, model, retain, forget, context):
        return copy.deepcopy(model)

    def unlearn_many(self, requests):
        return self.shown([copy.deepcopy(request.model) for request in requests])


class FromNothing(Together):
    uses_original = False

    def unlearn_many(self, requests):
        return self.shown([r.context.learner.fit(r.retain, r.context.streams) for r in requests])


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (lambda models: models[::-1], "unlearn_many gives its models in another order than the requests it was given"),
        (lambda models: models[:1], "unlearn_many was given 2 requests and gave back 1 models"),
        (lambda models: models[:1] * len(models), "unlearn_many was given 2 requests and gave back 1 models"),
    ],
)
@pytest.mark.parametrize("kind", [Together, FromNothing])
def test_a_method_whose_many_answers_are_not_those_to_its_requests_is_refused(kind, shown, words):
    assert f"unlearners.mine: {words}" in refused(unlearner={"mine": kind(shown)})


def test_a_method_that_answers_many_in_their_order_is_played(recwarn):
    result = forgetgauge.evaluate(unlearner={"none": "none", "mine": Together(list)}, **TINY)
    assert result.methods["mine"].quality == result.methods["none"].quality
    assert not [one for one in recwarn if "it gave two different models" in str(one.message)]


def test_a_number_of_numpys_is_a_fact():
    result = forgetgauge.evaluate(unlearner={"mine": states(np.float32(0.5)), "none": "none"}, **TINY)
    assert result.methods["mine"].facts == {"stopped_at": 0.5}


def test_a_wrong_fact_that_no_trial_met_is_named_and_no_disk_is_blamed():
    unlearners = {"mine": states(None), "none": "none"}
    result = forgetgauge.evaluate(unlearner=unlearners, on_failure="record", **TINY)
    assert {failure.error for failure in result.failures} == {
        "WrongOutput: the fact 'stopped_at' is None, not a finite number"
    }
    assert result.methods["none"].quality is not None


class Odd(Regression):
    """Says of half a model that it is no better than NaN."""

    def utility(self, outputs, labels):
        return float("nan")


ODD = Odd()


def test_a_task_whose_utility_is_no_number_is_refused():
    x = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32)
    how = {"model": "linear", "task": f"{__name__}:ODD", **TINY, "fraction": 1.0, "adversaries": "loss"}
    with pytest.raises(UserError, match="the utility on 'retain' is nan, not a finite number"):
        forgetgauge.evaluate(data=(x, x[:, 0]), **how)


def test_a_keyword_the_method_does_not_have_is_one_line():
    def mine(model, retain, forget, context, *, rate=0.1):
        return model

    with pytest.raises(UserError, match=r"mine.*rte"):
        forgetgauge.evaluate(unlearner={"mine": {"method": mine, "rte": 0.2}}, **TINY)


def test_every_failing_part_is_named_at_once():
    line = refused(unlearner={"one": gives_none, "two": another_architecture, "none": "none"})
    assert "unlearners.one: " in line
    assert "unlearners.two: " in line


class Narrow(nn.Module):
    """Gives one number too few."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.head = nn.Linear(64, n_classes - 1)

    def forward(self, x):
        return self.head(x.flatten(1))


class Wide(nn.Module):
    """Gives one number too many, which no loss function notices."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.head = nn.Linear(64, n_classes + 1)

    def forward(self, x):
        return self.head(x.flatten(1))


@pytest.mark.parametrize(("model", "n_outputs"), [(Narrow, 9), (Wide, 11)])
def test_a_model_with_a_wrong_output_is_refused_by_its_name(model, n_outputs):
    told = []
    with pytest.raises(UserError, match=f"{model.__name__}.* gives {n_outputs} outputs for each point") as caught:
        forgetgauge.evaluate(**{**TINY, "learner": {**TINY["learner"], "model": model}}, progress=told.append)
    assert told == []
    assert "\n" not in str(caught.value)


def test_a_learner_that_cannot_train_is_refused():
    class Broken(Minibatch):
        def fit_many(self, points, streams):
            return [self.build(p) for p in points]

    line = refused(learner=Broken(epochs=1))
    assert "learner 'test_a_learner_that_cannot_train_is_refused.<locals>.Broken" in line or "learner 'Broken" in line
    assert "missing 1 required positional argument: 'seed'" in line


def test_data_of_ones_own_that_a_model_cannot_take_are_refused():
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 4
    flat = rng.normal(size=(80, 5)).astype(np.float32)
    with pytest.raises(UserError):
        forgetgauge.evaluate(data=(flat, labels), **{**TINY, "fraction": 1.0})


class Attack:
    def __init__(self, answer):
        self.answer = answer

    def decide(self, signals):
        return self.answer(signals)

    def arrays(self):
        return {"nothing": np.zeros(1)}


class Calibrated:
    """Leans on models at each point of D, and has margins of the shadow models that it left out."""

    access, needs = Access.BLACK_BOX, frozenset({"references"})

    def __init__(self, calibration, arrays=None):
        self.calibration, self.stored = calibration, {} if arrays is None else arrays

    def fit(self, shadows, target):
        return self

    def load(self, arrays):
        return self

    def arrays(self):
        return self.stored

    def decide(self, signals):
        return signals.outputs.argmax(axis=1) == signals.labels


@pytest.mark.parametrize(
    "calibration",
    [
        ((np.array([1, 2]), np.array([-1])),),
        ((np.array([np.inf, 1.0]), np.array([-np.inf])),),
        [([0.5, 2], [-1.0]), ([], [1])],
        (),
    ],
)
def test_margins_of_ones_own_are_taken_as_those_that_are_asked_for(calibration):
    how = {**TINY, "references": 2, "adversaries": {"mine": Calibrated(calibration)}}
    assert forgetgauge.evaluate(unlearner=["none"], **how).methods["none"].quality is not None


@pytest.mark.parametrize(
    ("adversary", "words"),
    [
        (Calibrated(((np.array([np.nan]), np.ones(1)),)), "calibration gave NaN"),
        (Calibrated(np.ones(3)), "calibration is not, for each shadow model, the margins of its members and of others"),
        (Calibrated(((np.ones((2, 2)), np.ones(1)),)), "calibration gave an array of shape (2, 2)"),
        (Calibrated((([], []),)), "the array 'shadow margin' is empty"),
        (Calibrated((), {"shadow model": np.zeros(3)}), "the array 'shadow margin' is missing"),
        (Calibrated((), {"mine": [1, 2]}), "the array 'mine' is a list"),
        (Calibrated((), {"mine": np.array([None])}), "the array 'mine' is of type object"),
        (Calibrated((), {"mine": np.array(["a"])}), "the array 'mine' is of type <U1"),
        (Calibrated((), [1]), "'list' object is not a mapping"),
    ],
)
def test_what_an_adversary_cannot_have_learnt_is_refused_by_name(adversary, words):
    line = refused(references=2, adversaries={"mine": adversary})
    assert line.startswith("adversaries.mine: ")
    assert words in line


class Adversary:
    access = Access.BLACK_BOX

    def __init__(self, answer, *needs):
        self.answer, self.needs, self.seen = answer, frozenset(needs), []

    def fit(self, shadows, target):
        self.seen.append((shadows, target))
        return Attack(self.answer)

    def load(self, arrays):
        return Attack(self.answer)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda signals: signals.outputs.max(axis=1), "float32, not booleans"),
        (lambda signals: np.ones(1, dtype=bool), "shape (1,)"),
        (lambda signals: signals.lables, "no attribute 'lables'"),
    ],
)
def test_an_adversary_with_a_wrong_answer_is_refused(answer, words):
    line = refused(adversaries={"mine": Adversary(answer)})
    assert line.startswith("adversaries.mine: ")
    assert words in line


@pytest.mark.parametrize("needs", [(), ("references", "outsiders", "background"), ("unlearned",), ("gradient-norm",)])
def test_an_adversary_is_tried_with_all_that_it_asks_for(needs):
    def answer(signals):
        assert set(signals.columns) == {"gradient-norm"} & set(needs)
        if signals.points is not None:  # not in the calibration on the shadow half
            assert ("background" in needs) == (signals.background is not None)
        return np.zeros(len(signals), dtype=bool)

    mine = Adversary(answer, *needs)
    references = {"references": 2} if "references" in needs else {}
    forgetgauge.evaluate(unlearner="none", **{**TINY, **references, "adversaries": {"mine": mine}})
    (tried, context), (real, real_context) = mine.seen[0], mine.seen[-1]
    assert tried.outputs.shape[::2] == real.outputs.shape[::2]
    assert set(np.unique(tried.role)) == set(np.unique(real.role))
    for panel in ("references", "outsiders"):
        assert (getattr(context, panel) is None) == (getattr(real_context, panel) is None)
    assert tried.outputs.shape[1] < real.outputs.shape[1]


@RECORDS
def test_the_trial_leaves_randomness_data_and_output_as_they_were(capsys):
    seen = []

    def loud(model, retain, forget, context):
        seen.append(len(retain))
        print("hello")
        random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002
        return copy.deepcopy(model)

    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    mine = forgetgauge.evaluate(unlearner={"mine": loud, "none": "none"}, **TINY)
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])
    assert capsys.readouterr().out.count("hello") == 4
    assert len(seen) == 8
    assert len({*seen[:4]}) == 1
    assert seen[4:] == [60] * 4
    untried = forgetgauge.evaluate(unlearner={"none": "none"}, **TINY)
    assert mine.methods["none"].by_adversary == untried.methods["none"].by_adversary
    assert mine.methods["mine"].by_adversary == untried.methods["none"].by_adversary


def test_a_method_that_damages_the_data_is_refused_and_the_data_stay_whole():
    def harms(model, retain, forget, context):
        retain.whole_inputs.zero_()
        return copy.deepcopy(model)

    before = load_dataset("digits").points.fingerprints
    assert "it changed whole_inputs in place" in refused(unlearner={"mine": harms, "none": "none"})
    assert load_dataset("digits").points.fingerprints == before


def test_a_method_that_needs_more_points_than_a_handful_is_not_refused():
    seen = []

    def hungry(model, retain, forget, context):
        seen.append(len(retain))
        if len(retain) < 200:
            raise ValueError("a batch of 200 is needed")
        return copy.deepcopy(model)

    result = forgetgauge.evaluate(unlearner=hungry, **{**TINY, "fraction": 1.0, "pairs": 1})
    assert result.methods["hungry"].quality is not None
    assert seen[0] < 200 <= seen[1]


@RECORDS
def test_the_handful_has_every_class_and_both_sets_in_proportion():
    seen = []

    def curious(model, retain, forget, context):
        seen.append((retain, forget, context.validation))
        return copy.deepcopy(model)

    forgetgauge.evaluate(unlearner=curious, alpha=0.2, **{**TINY, "fraction": 1.0, "pairs": 1})
    retain, forget, validation = seen[0]
    for points in (retain, forget, validation):
        assert set(points.y.tolist()) == set(range(10))
        assert points.n_classes == 10
    assert (len(retain), len(forget)) == (64, 16)


@RECORDS
def test_only_what_is_open_is_tried(tmp_path):
    calls = []

    def mine(model, retain, forget, context):
        calls.append(len(retain))
        return copy.deepcopy(model)

    for expected in (4 + 4, 0):
        calls.clear()
        forgetgauge.evaluate(unlearner=mine, out=tmp_path / "run", **TINY)
        assert len(calls) == expected


def test_a_refused_run_leaves_no_folder_behind(tmp_path):
    with pytest.raises(UserError):
        forgetgauge.evaluate(unlearner=gives_none, out=tmp_path / "runs" / "mine", **TINY)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_dies_in_a_trial_is_one_line(monkeypatch):
    def dead(self, timeout=None):
        assignment, _ = self._waiting.pop()
        return assignment, Outcome(failures={key: Failure("the worker process died", "") for key in assignment.wanted})

    monkeypatch.setattr(Inline, "next", dead)
    assert "try learner 'minibatch': the worker process died" in refused(unlearner=copy.copy(gives_none))


def test_a_lack_of_memory_is_left_to_the_run():
    calls = []

    def large(model, retain, forget, context):
        calls.append(len(retain))
        if len(calls) == 1:
            raise MemoryError
        return copy.deepcopy(model)

    assert forgetgauge.evaluate(unlearner=large, **TINY).methods["large"].quality is not None


# -- failures that no handful shows --------------------------------------------------------------------------------


N_CALLS = [0]


def late(model, retain, forget, context):
    """Fails in the run, on the second pair and later."""
    N_CALLS[0] += 1
    if N_CALLS[0] > 6:
        raise RuntimeError("too late\nsecond line")
    return copy.deepcopy(model)


@RECORDS
def test_a_method_that_fails_raises_with_its_traceback_and_a_count():
    N_CALLS[0] = 0
    with pytest.raises(RunFailed) as caught:
        forgetgauge.evaluate(unlearner={"late": late, "none": "none"}, **TINY)
    message = str(caught.value)
    assert "failed: late: RuntimeError: too late (2 jobs, the first of them: late of pair 1 side 0 seed 0)" in message
    assert 'raise RuntimeError("too late\\nsecond line")' in message
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.result.methods["none"].quality is not None


def test_recorded_failures_keep_their_tracebacks_where_the_folder_is_gone(tmp_path):
    for out in (None, tmp_path / "run"):
        N_CALLS[0] = 4
        result = forgetgauge.evaluate(unlearner={"late": late, "none": "none"}, on_failure="record", out=out, **TINY)
        assert result.failures
        for failure in result.failures:
            text = failure.text if out is None else (out / failure.traceback).read_text()
            assert "RuntimeError: too late" in text
            assert (failure.traceback == "") == (out is None)


def test_recording_tries_nothing_and_keeps_the_other_methods():
    result = forgetgauge.evaluate(unlearner={"mine": gives_none, "none": "none"}, on_failure="record", **TINY)
    assert result.methods["mine"].quality is None
    assert result.methods["none"].quality is not None


def test_an_adversary_that_failed_is_named_beside_the_number():
    def fails(signals):
        raise ValueError("not today")

    result = forgetgauge.evaluate(
        unlearner="none", on_failure="record", **{**TINY, "adversaries": {"mine": Adversary(fails), "loss": "loss"}}
    )
    (warning,) = result.games[0].warnings
    assert "'mine'" in warning


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        ("executor", "inlin", "unknown executor 'inlin'; did you mean 'inline'"),
        ("on_failure", "recrd", "unknown on_failure 'recrd'; did you mean 'record'"),
    ],
)
def test_an_unknown_choice_is_refused(argument, value, words):
    with pytest.raises(UserError, match=words):
        forgetgauge.evaluate(**{argument: value}, **TINY)


# -- a method that is given the same twice -----------------------------------------------------------------------------

CALLS: list[int] = []


def every_other_time(model, retain, forget, context):
    CALLS.append(1)
    return _shrunk(model, 0.5 if len(CALLS) % 2 else 1.0)


LAST: list[nn.Module] = []


def the_one_before(model, retain, forget, context):
    LAST.append(copy.deepcopy(model))
    return copy.deepcopy(LAST[-2:][0])


def one_that_is_changed_later(model, retain, forget, context):
    if not LAST:
        LAST.append(copy.deepcopy(model))
    LAST[0].load_state_dict({name: 0.9 * weight for name, weight in LAST[0].state_dict().items()})
    return LAST[0]


def by_a_generator_of_its_own(model, retain, forget, context):
    return _shrunk(model, float(np.random.default_rng().random()))


def by_global_generators(model, retain, forget, context):
    return _shrunk(model, random.random() * float(torch.rand(())) * np.random.rand())  # noqa: NPY002


def by_its_streams(model, retain, forget, context):
    return _shrunk(model, float(context.streams.generator("order").random()))


def _shrunk(model, by):
    model = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(by)
    return model


@pytest.mark.parametrize(
    ("method", "differs"),
    [
        (every_other_time, True),
        (the_one_before, True),
        (one_that_is_changed_later, True),
        (by_a_generator_of_its_own, True),
        (by_global_generators, False),
        (by_its_streams, False),
    ],
)
def test_a_method_that_gives_two_models_of_the_same_is_named(method, differs, recwarn):
    LAST.clear()
    forgetgauge.evaluate(unlearner={"mine": {"method": method}}, **TINY)
    said = [str(one.message) for one in recwarn if "it gave two different models" in str(one.message)]
    assert [line.count("unlearners.mine: called again") for line in said] == ([1] if differs else [])


class KeepsItsFirstSets:
    """Fine-tunes on the points that it was given first: of the trial, none of which are the run's."""

    def __init__(self):
        self.first = None

    def unlearn(self, model, retain, forget, context):
        if self.first is None:
            self.first = retain.x.mean()
        return _shrunk(model, float(self.first))


FIRST: list[torch.Tensor] = []


def keeps_its_first_sets_in_a_global(model, retain, forget, context):
    if not FIRST:
        FIRST.append(retain.x.mean())
    return _shrunk(model, float(FIRST[0]))


def keeps_them_as_an_attribute(model, retain, forget, context):
    keeps_them_as_an_attribute.first = getattr(keeps_them_as_an_attribute, "first", retain.x.mean())
    return _shrunk(model, float(keeps_them_as_an_attribute.first))


def keeps_nothing(model, retain, forget, context):
    return _shrunk(model, float(retain.x.mean()))


@pytest.mark.parametrize(
    ("method", "keeps"),
    [
        (KeepsItsFirstSets(), True),
        (keeps_its_first_sets_in_a_global, True),
        (keeps_them_as_an_attribute, True),
        (keeps_nothing, False),
    ],
)
def test_a_method_that_keeps_what_it_was_given_first_is_named_and_begins_the_run_without_it(method, keeps, recwarn):
    """All its calls agree, since all of them reuse what the first one left."""
    FIRST.clear()
    forgetgauge.evaluate(unlearner={"mine": {"method": method}}, **TINY)
    said = [str(one.message) for one in recwarn if "of it changed while it was called" in str(one.message)]
    assert [line.count("unlearners.mine: an attribute, a global") for line in said] == ([1] if keeps else [])


class ByItsOwnStep:
    """Reads a rate through a bound method that it keeps."""

    def __init__(self, log):
        self.rate, self.log, self.step, self.n_calls = 1.0, log, self._step, 0

    def _step(self):
        return self.rate

    def unlearn(self, model, retain, forget, context):
        self.n_calls += 1
        return _shrunk(model, self.step())


def test_what_is_put_back_is_what_changed_and_the_object_stays_one():
    """A copy of a bound method, or of a list that its owner reads, would be another object's."""
    log = []
    method = ByItsOwnStep(log)
    with OwnState("unlearner", Named(plugins.unlearners.bind(method, "mine"), {})):
        method.n_calls, method.added = 7, 1
    assert (method.n_calls, hasattr(method, "added")) == (0, False)
    method.rate = 2.0
    assert method.step() == 2.0
    assert method.log is log


def test_what_cannot_be_described_is_no_mistake_of_the_users():
    method = KeepsItsFirstSets()
    kept = OwnState("unlearner", Named(plugins.unlearners.bind(method, "mine"), {}))
    for _ in range(3000):
        method.first = [method.first]  # deeper than anything recurses
    assert not kept.has_changed()
    kept.put_back()


def test_what_a_method_kept_of_the_trial_is_not_there_in_the_run():
    method = KeepsItsFirstSets()
    kept = OwnState("unlearner", Named(plugins.unlearners.bind(method, "mine"), {}))
    assert not kept.has_changed()
    method.first = torch.ones(3)
    assert kept.has_changed()
    kept.put_back()
    assert method.first is None
    assert not kept.has_changed()


class OwnLearner:
    """A learner in the plainest form."""

    def build(self, points, seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, points.n_classes))

    def fit(self, points, streams):
        model = self.start(points, streams)
        for _ in range(2):
            model.zero_grad()
            nn.functional.cross_entropy(model(points.x), points.y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(0.1 * parameter.grad)
        return model

    def start(self, points, streams):
        return self.build(points, streams.seed("init"))

    def fit_many(self, points, streams):
        return [self.fit(*one) for one in zip(points, streams, strict=True)]

    def n_gradients(self, n_points):
        return 2 * n_points


class StartsWhereItEnded(OwnLearner):
    last: nn.Module | None = None

    def start(self, points, streams):
        return copy.deepcopy(self.last) if self.last else super().start(points, streams)

    def fit(self, points, streams):
        self.last = super().fit(points, streams)
        return copy.deepcopy(self.last)


class DrawsFromItsOwnGenerator(OwnLearner):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def start(self, points, streams):
        return self.build(points, int(self.rng.integers(2**31)))


class DrawsFromTheGlobalGenerator(OwnLearner):
    def start(self, points, streams):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, points.n_classes))


@pytest.mark.parametrize(
    ("learner", "differs"),
    [
        (StartsWhereItEnded, True),
        (DrawsFromItsOwnGenerator, True),
        (DrawsFromTheGlobalGenerator, False),
        (OwnLearner, False),
    ],
)
def test_a_learner_that_gives_two_models_of_the_same_is_named(learner, differs, recwarn):
    """One that starts from its last weights has seen F in Retrain's models: a clean Q near 1 for all methods."""
    forgetgauge.evaluate(unlearner="none", **{**TINY, "learner": learner()})
    said = [str(one.message) for one in recwarn if "keeps something from one call" in str(one.message)]
    assert [learner.__name__ in line for line in said] == ([True] if differs else [])
