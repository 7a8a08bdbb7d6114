"""Every task reaches the kernels of a GPU: a stack learns there what models alone learn on a CPU."""

import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.learn.device import choose_device
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, outputs_of_many
from forgetgauge.streams import Streams

from .test_every_task import learnable

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="GPU: needs one that torch can see")


@pytest.mark.parametrize("name", plugins.tasks.entries)
def test_a_stack_on_a_gpu_learns_what_models_alone_learn(name):
    points = learnable(plugins.tasks.load(name))
    there = points.on(choose_device("cuda"))
    learner = Minibatch(model="mlp", model_params={"hidden": [16]}, epochs=40, batch_size=20)
    streams = [Streams(f"model {i}") for i in range(3)]
    assert learner.engine([there] * 3).name == "traced"
    together = learner.fit_many([there] * 3, streams)
    for one, outputs in zip(streams, outputs_of_many(together, [there] * 3), strict=True):
        np.testing.assert_allclose(outputs, outputs_of(learner.fit(points, one), points), rtol=1e-2, atol=1e-2)
