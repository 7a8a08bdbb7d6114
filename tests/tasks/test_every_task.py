"""What every task promises, of each that is registered."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score

from forgetgauge import plugins
from forgetgauge.data.dataset import Dataset, Points
from forgetgauge.errors import UserError
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, utility_of
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.regression import REGRESSION
from forgetgauge.tasks.task import Task

N, N_CLASSES = 60, 3


@pytest.fixture(params=list(plugins.tasks.entries))
def task(request) -> Task:
    return plugins.tasks.load(request.param)


def answers(task: Task, seed: int = 0):
    """(outputs, labels), every second point a member's."""
    n_classes = N_CLASSES if task.has_classes else 1
    return task.made_up(N, n_classes, np.arange(N) % 2 == 0, np.random.default_rng(seed))


def tensors(task: Task):
    outputs, labels = answers(task)
    return torch.from_numpy(outputs).double(), torch.from_numpy(task.checked_labels(labels))


def test_its_name_is_the_catalogues(task):
    assert plugins.tasks.load(task.name) is task


def test_it_has_the_signals_that_every_task_has_one_finite_number_a_point(task):
    outputs, labels = answers(task)
    assert {"loss", "statistic", "gap"} <= set(task.signals)
    for read in task.signals.values():
        found = read(outputs, labels)
        assert found.dtype == np.float64
        assert len(found) == N
        assert np.isfinite(found).all()


def test_made_up_members_have_the_smaller_loss_and_the_larger_statistic_and_gap(task):
    member = np.arange(N) % 2 == 0
    means = {name: [] for name in ("loss", "statistic", "gap")}
    for seed in range(50):
        outputs, labels = answers(task, seed)
        for name, differences in means.items():
            found = task.signals[name](outputs, labels)
            differences.append(found[member].mean() - found[~member].mean())
    assert np.mean(means["loss"]) < 0 < min(np.mean(means["statistic"]), np.mean(means["gap"]))


def test_the_loss_that_adversaries_read_is_the_one_that_training_minimises(task):
    outputs, labels = answers(task)
    wanted = task.loss(torch.from_numpy(outputs).double(), tensors(task)[1], reduction="none")
    np.testing.assert_allclose(task.signals["loss"](outputs, labels), wanted.numpy(), rtol=1e-6, atol=1e-9)


def test_the_reductions_of_the_loss_agree(task):
    outputs, labels = tensors(task)
    each = task.loss(outputs, labels, reduction="none")
    assert each.shape == (N,)
    torch.testing.assert_close(task.loss(outputs, labels), each.mean())
    torch.testing.assert_close(task.loss(outputs, labels, reduction="sum"), each.sum())


def test_the_gradient_of_the_loss_is_autograds(task):
    outputs, labels = tensors(task)
    outputs.requires_grad_()
    (wanted,) = torch.autograd.grad(task.loss(outputs, labels, reduction="sum"), outputs)
    torch.testing.assert_close(task.loss_gradient(outputs.detach(), labels), wanted)
    stacked = task.loss_gradient(outputs.detach().view(4, 15, -1), labels.view(4, 15))
    torch.testing.assert_close(stacked.view(N, -1), wanted)
    torch.testing.assert_close(task.loss_gradient(outputs.detach()[0], labels[0]), wanted[0])


def test_whoever_descends_the_loss_ends_with_a_utility_of_one(task):
    """Of outputs that are free to move, each point's for itself."""
    outputs, labels = tensors(task)
    before = task.utility(outputs.numpy().astype(np.float32), labels.numpy())
    for _ in range(2000):
        outputs = outputs - 0.1 * task.loss_gradient(outputs, labels)
    assert before < 1
    assert task.utility(outputs.numpy().astype(np.float32), labels.numpy()) == pytest.approx(1.0, abs=1e-3)


def test_outputs_of_the_right_shape_are_plain_and_others_are_refused_or_reshaped(task):
    outputs, _ = tensors(task)
    n_outputs = outputs.shape[1]
    assert torch.equal(task.plain_outputs(outputs, N, n_outputs), outputs)
    assert task.plain_outputs(outputs.T.reshape(-1, N, 1), N, n_outputs) is None
    assert task.why_unfit(outputs[:, :0], N, n_outputs)
    if task is CAUSAL_LM:
        return  # its columns are no one number in other shapes
    small = 2 if task.has_classes else 1
    squeezed = task.plain_outputs(torch.zeros(N), N, small)
    assert squeezed is not None
    assert squeezed.shape == (N, small)


@pytest.mark.parametrize("raw", [np.array(["cat", "dog"]), np.zeros((4, 2)), np.array([0.5, np.nan]), np.array([1j])])
def test_what_are_no_labels_is_refused(task, raw):
    with pytest.raises(ValueError, match="labels"):
        task.checked_labels(raw)


def test_it_is_declared_without_torch(task):
    code = f"import sys; from forgetgauge import plugins; t = plugins.tasks.load('{task.name}'); import numpy as np; "
    code += "t.utility(*t.made_up(9, 3, np.zeros(9, bool), np.random.default_rng(0))); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def learnable(task: Task) -> Points:
    """Points whose inputs carry the label: by which of them is large, or by the first."""
    labels = answers(task)[1]
    inputs = np.random.default_rng(1).normal(size=(N, 8)).astype(np.float32)
    if task.has_classes:
        inputs[np.arange(N), labels] += 3
    else:
        inputs[:, 0] = labels
    stored = torch.from_numpy(task.checked_labels(labels))
    return Dataset.of("made up", torch.from_numpy(inputs), stored, task=task).points


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION], ids=lambda task: task.name)
def test_a_model_learns_it_alone_and_in_a_stack_alike(task):
    points = learnable(task)
    learner = Minibatch(model="mlp", model_params={"hidden": [16]}, epochs=40, batch_size=20)
    streams = [Streams(f"model {i}") for i in range(3)]
    alone = [learner.fit(points, one) for one in streams]
    together = learner.fit_many([points] * 3, streams)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(outputs_of(one, points), outputs_of(other, points), rtol=1e-3, atol=1e-3)
        assert utility_of(outputs_of(one, points), points) > 0.9


def test_r_squared_is_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.normal(3, 2, 30).astype(np.float32)
        outputs = (labels + rng.normal(0, rng.uniform(0.1, 4), 30)).astype(np.float32)[:, None]
        assert REGRESSION.utility(outputs, labels) == pytest.approx(r2_score(labels, outputs[:, 0]), abs=1e-6)


@pytest.mark.parametrize("labels", [[3.0], [0.1] * 7, [-2e38] * 4])
def test_r_squared_is_not_defined_where_all_labels_are_one(labels):
    outputs = np.zeros((len(labels), 1), dtype=np.float32)
    assert REGRESSION.utility(outputs, np.array(labels, dtype=np.float32)) is None


def test_a_data_set_of_the_same_numbers_has_another_digest_in_another_task():
    inputs = torch.arange(12.0).view(6, 2)
    whole = Dataset.of("as classes", inputs, torch.tensor([0, 1, 0, 1, 0, 1]))
    real = Dataset.of("as numbers", inputs, torch.tensor([0.0, 1, 0, 1, 0, 1]), task=REGRESSION)
    assert whole.digest != real.digest
    assert (real.points.n_classes, real.points.n_outputs) == (1, 1)
    with pytest.raises(UserError, match="labels must be float32, but they are int64"):
        Dataset.of("as numbers", inputs, torch.tensor([0, 1, 0, 1, 0, 1]), task=REGRESSION)
