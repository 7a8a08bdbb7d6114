"""The paper's eight methods on a transformer: embeddings, layer norm, dropout, padded sequences of token ids."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, utility_of
from forgetgauge.models.head import head_of
from forgetgauge.streams import Streams
from forgetgauge.unlearn.final_layer import FineTuneFinal, RetrainFinal
from forgetgauge.unlearn.fisher import Fisher
from forgetgauge.unlearn.neg_grad import NegGrad
from forgetgauge.unlearn.none import Nothing
from forgetgauge.unlearn.retrain import Retrain
from forgetgauge.unlearn.salun import SalUn
from forgetgauge.unlearn.ssd import SSD
from forgetgauge.unlearn.unlearner import Context
from tests.unlearn.world import World, changed

pytest.importorskip("transformers", reason="transformers is not installed (the extra [text])")

N_CLASSES, LENGTH, VOCAB = 5, 16, 100
METHODS = {
    "none": Nothing(),
    "retrain": Retrain(),
    "neg-grad": NegGrad(epochs=1),
    "ft-final": FineTuneFinal(epochs=3),
    "retrain-final": RetrainFinal(epochs=3),
    "fisher": Fisher(),
    "fisher-sampled": Fisher(labels="sampled"),
    "salun": SalUn(epochs=1, batch_size=64),
    "ssd": SSD(alpha=1.5),
}


@functools.cache
def text_world() -> World:
    """240 sequences of 5 to 16 tokens; half of the tokens are of the class's own ten. Ids 60 and up never occur."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % N_CLASSES
    own = 10 + 10 * labels[:, None] + rng.integers(10, size=(240, LENGTH))
    tokens = np.where(rng.random((240, LENGTH)) < 0.5, own, rng.integers(3, 60, size=(240, LENGTH)))
    tokens[:, 0] = 2
    tokens[np.arange(LENGTH)[None] >= rng.integers(5, LENGTH + 1, size=(240, 1))] = 0
    points = Points.of(torch.from_numpy(tokens), torch.from_numpy(labels))
    sizes = {"layers": 2, "hidden": 32, "heads": 2, "vocab": VOCAB}
    learner = Minibatch(model="bert", model_params=sizes, optimiser="adamw", lr=3e-3, epochs=20, batch_size=32)
    known = rng.permutation(240)[:200]
    original = learner.fit(points.subset(known), Streams("original"))
    return World(learner, points, points.subset(known[:160]), points.subset(known[160:]), original)


@functools.cache
def unlearned(name: str) -> nn.Module:
    return text_world().unlearn(METHODS[name])


def embeddings(model: nn.Module) -> set[str]:
    return {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Embedding)}


def accuracy(model: nn.Module, points: Points) -> float:
    return utility_of(outputs_of(model, points), points)


def test_the_tiny_bert_learns_its_sequences():
    world = text_world()
    assert accuracy(world.original, world.retain) > 0.7
    assert len(embeddings(world.original)) == 3  # tokens, positions, sentence types


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_a_finite_model_in_eval_mode_and_leaves_the_original_alone(name):
    before = {key: tensor.clone() for key, tensor in text_world().original.state_dict().items()}
    model = unlearned(name)
    assert all(torch.isfinite(tensor).all() for tensor in model.state_dict().values())
    assert not model.training
    assert np.isfinite(outputs_of(model, text_world().points)).all()
    assert all(torch.equal(tensor, before[key]) for key, tensor in text_world().original.state_dict().items())


@pytest.mark.parametrize("name", [name for name in METHODS if name != "none"])
def test_every_method_but_none_changes_the_model(name):
    assert changed(unlearned(name), text_world().original)


@pytest.mark.parametrize("name", ["neg-grad", "salun", "fisher", "fisher-sampled", "ssd", "retrain"])
def test_the_same_job_gives_the_same_model(name):
    assert not changed(text_world().unlearn(METHODS[name]), unlearned(name))


@pytest.mark.parametrize("name", ["fisher", "fisher-sampled"])
def test_fisher_blurs_everything_but_the_embeddings(name):
    model = text_world().original
    assert changed(unlearned(name), model) == {key for key, _ in model.named_parameters()} - embeddings(model)


@pytest.mark.parametrize("name", ["ft-final", "retrain-final"])
def test_the_last_layer_methods_change_the_head_alone(name):
    assert changed(unlearned(name), text_world().original) == {"head.weight", "head.bias"}
    assert accuracy(unlearned(name), text_world().retain) > 0.6
    assert isinstance(head_of(unlearned(name)), nn.Linear)


@pytest.mark.parametrize("name", ["neg-grad", "salun", "ssd"])
def test_rows_of_tokens_that_never_occur_stay_as_they_are(name):
    key = "body.embeddings.word_embeddings.weight"
    before, after = text_world().original.state_dict()[key], unlearned(name).state_dict()[key]
    assert torch.equal(after[60:], before[60:])
    assert not torch.equal(after[3:60], before[3:60])


def test_without_dropout_a_stack_of_berts_is_trained_like_each_alone():
    world = text_world()
    params = {**world.learner.model_params, "dropout": 0.0}
    learner = Minibatch(model="bert", model_params=params, optimiser="adamw", lr=1e-3, epochs=1, batch_size=32)
    sets, streams = [world.retain, world.retain], [Streams("a"), Streams("b")]
    assert learner.engine(sets).name == "vmap"
    for together, points, stream in zip(learner.fit_many(sets, streams), sets, streams, strict=True):
        alone = learner.fit(points, stream)
        # Adam divides by the root of the mean square, so weights of hardly any gradient may differ by a step.
        np.testing.assert_allclose(outputs_of(together, world.forget), outputs_of(alone, world.forget), atol=5e-3)


def test_context_counts_the_gradients_of_fisher_per_label():
    world = text_world()
    context = Context(world.learner, Streams("count"))
    Fisher().unlearn(world.original, world.retain.subset(world.retain.index[:8]), world.forget, context)
    assert context.n_gradients == N_CLASSES * 8
