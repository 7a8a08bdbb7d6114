import pytest
import torch

from forgetgauge import plugins


@pytest.fixture(autouse=True)
def _one_thread_and_a_fresh_catalogue(monkeypatch):
    """As a run does it: one torch thread; what a test binds is forgotten."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(plugins.models, "_bound", {})
    yield
    torch.set_num_threads(before)
