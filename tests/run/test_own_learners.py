"""A learner of a user's own: what is refused of it, in one line, before anything is trained."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import forgetgauge
from forgetgauge.cli import main
from forgetgauge.errors import UserError

TINY = {"pairs": 1, "shadows": 2, "fraction": 0.2, "adversaries": ["confidence"], "unlearner": "none"}


class Mine:
    def __init__(self, epochs=2):
        self.epochs = epochs

    def build(self, points, seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, points.n_classes))

    def fit(self, points, streams):
        model = self.build(points, streams.seed("init"))
        steps = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(self.epochs):
            steps.zero_grad()
            nn.functional.cross_entropy(model(points.x), points.y).backward()
            steps.step()
        return model

    def fit_many(self, points, streams):
        return [self.fit(p, s) for p, s in zip(points, streams, strict=True)]

    def n_gradients(self, n_points):
        return self.epochs * n_points


class GivesNothing(Mine):
    def fit(self, points, streams):
        super().fit(points, streams)


class GivesOne(Mine):
    def fit_many(self, points, streams):
        return super().fit_many(points, streams)[:1]


class GivesAGenerator(Mine):
    def fit_many(self, points, streams):
        return (self.fit(p, s) for p, s in zip(points, streams, strict=True))


class Reversed(Mine):
    def fit_many(self, points, streams):
        return super().fit_many(points, streams)[::-1]


class BySize(Mine):
    """Sorts the sets to stack them, and forgets to sort its models back."""

    def __init__(self, largest_first):
        super().__init__()
        self.largest_first = largest_first

    def fit_many(self, points, streams):
        order = sorted(range(len(points)), key=lambda i: len(points[i]), reverse=self.largest_first)
        return super().fit_many([points[i] for i in order], [streams[i] for i in order])


class GivesOneTwice(Mine):
    def fit_many(self, points, streams):
        return super().fit_many(points[:1], streams[:1]) * len(points)


class Random(Mine):
    def build(self, points, seed):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, points.n_classes))


class CannotBuild(Mine):
    def build(self, points):
        return nn.Flatten()


class Incomplete:
    def build(self, points, seed):
        return nn.Flatten()

    def fit(self, points, streams):
        return self.build(points, 0)


def line_of(learner, **arguments):
    with pytest.raises(UserError) as refusal:
        forgetgauge.evaluate(learner=learner, **{**TINY, **arguments})
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("learner", "part"),
    [
        (GivesNothing(), "it trained a NoneType: fit must return a torch module"),
        (GivesOne(), "fit_many was given 2 sets of points and gave back 1 models"),
        (GivesOneTwice(), "it gave back 1 different models for 2 sets of points"),
        (GivesAGenerator(), "fit_many gave back a generator, not a list of models"),
        (BySize(largest_first=True), "fit_many gives its models in another order"),
        (BySize(largest_first=False), "fit_many gives its models in another order"),
        (Reversed(), "fit_many gives its models in another order"),
        (CannotBuild(), "learner 'CannotBuild': TypeError: CannotBuild.build() takes 2 positional"),
        (Incomplete(), "learner 'Incomplete' lacks fit_many, n_gradients: a learner has"),
        (lambda x, y: None, "lacks build, fit, fit_many, n_gradients"),
    ],
)
def test_a_learner_that_breaks_a_promise_is_refused_in_one_line(learner, part):
    assert part in line_of(learner)


@pytest.mark.parametrize("learner", [Mine(), Mine, {"name": Mine, "epochs": 3}, Random()])
def test_a_sound_learner_plays_the_game(learner):
    result = forgetgauge.evaluate(learner=learner, **TINY)
    assert result.methods["none"].quality is not None


def test_an_unknown_key_is_one_line_with_the_nearest():
    assert line_of({"name": Mine, "epoch": 3}) == "evaluate: learner: unknown key 'epoch'; did you mean 'epochs'?"
    assert "is made already: it takes no epochs" in line_of({"name": Mine(), "epochs": 3})


@pytest.mark.parametrize("command", [["run"], ["validate", "--allow-code"]])
def test_an_unknown_key_in_a_run_file_ends_with_code_2(tmp_path, monkeypatch, capsys, command):
    (tmp_path / "own_learner.py").write_text(f"from {__name__} import Mine\n", "utf-8")
    (tmp_path / "run.toml").write_text('[learner]\nname = "own_learner:Mine"\nepoch = 3\n[unlearners.none]\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "own_learner", None)
    monkeypatch.delitem(sys.modules, "own_learner")
    monkeypatch.setattr(sys, "argv", ["forgetgauge", *command, "run.toml"])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 2
    assert "learner: unknown key 'epoch'; did you mean 'epochs'?" in capsys.readouterr().err


def test_a_class_of_ones_own_that_needs_what_nobody_gives_is_one_line():
    class Needy(Mine):
        def __init__(self, rate):
            super().__init__()

    assert "learner: Needy needs 'rate', which nothing gives it" in line_of(Needy)


def test_a_key_of_what_has_none_says_so():
    assert line_of("minibatch", unlearner={"retrain": {"lr": 1.0}}).endswith("unknown key 'lr'; there are none")


def test_whole_numbers_where_a_model_takes_real_ones_are_named():
    points = np.random.default_rng(0).integers(0, 9, size=(200, 6)), np.arange(200) % 2
    line = line_of({"epochs": 1, "model": "linear"}, data=points, fraction=1.0)
    assert "model 'linear' takes real numbers, but whole numbers are taken for token ids: give floats" in line


def test_what_is_to_be_forgotten_is_not_what_a_learner_sets_aside_at_the_end():
    """Keras's `validation_split` takes the last points: were these F, no model would have learnt what it forgets."""
    set_aside, shares = {}, []

    class HoldsOut(Mine):
        def fit(self, points, streams):
            n = int(0.8 * len(points))
            set_aside[frozenset(points.index.tolist())] = set(points.index[n:].tolist())
            return super().fit(points.subset(points.index[:n]), streams)

    def looks(model, retain, forget, context):
        forgotten = set(forget.index.tolist())
        aside = set_aside[frozenset(retain.index.tolist()) | forgotten]
        shares.append(len(aside & forgotten) / len(forgotten))
        return model

    how = TINY | {"pairs": 3, "unlearner": {"none": {}, "looks": {"method": looks}}}
    forgetgauge.evaluate(learner=HoldsOut(), data="digits", alpha=0.25, on_failure="record", **how)  # nothing is tried
    assert len(shares) == 6
    assert 0.1 < np.mean(shares) < 0.3  # a fifth of all
