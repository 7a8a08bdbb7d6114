import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.data.dataset import Points


@pytest.fixture(autouse=True)
def _one_thread_and_a_fresh_catalogue(monkeypatch):
    """As a run does it: one torch thread; what a test binds is forgotten."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(plugins.models, "_bound", {})
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def images() -> Points:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 90)
    inputs = rng.standard_normal((90, 1, 8, 8)) + labels[:, None, None, None] / 4
    return Points.of(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))


@pytest.fixture(scope="session")
def vectors() -> Points:
    rng = np.random.default_rng(1)
    return Points.of(
        torch.tensor(rng.standard_normal((60, 6)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, 60))
    )
