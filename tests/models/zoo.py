"""Every shipped model at a size for tests: its parameters, the shape of a point, and points of that shape."""

import importlib.util

import pytest
import torch

from forgetgauge import plugins

IMAGE, TOKENS = (1, 8, 8), (12,)
VOCAB = 50
PARAMS = {
    "mlp": {"hidden": [16, 8]},
    "bert": {"layers": 2, "hidden": 16, "heads": 2, "vocab": VOCAB},
}
no_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed (the extra [text])"
)
SHIPPED = [pytest.param(n, marks=no_transformers) if n == "bert" else n for n in sorted(plugins.models.entries)]
SHIPPED.remove("causal-lm")  # which is asked about records of text: tests/language


def params_of(name):
    return PARAMS.get(name, {})


def shape_of(name):
    return TOKENS if name == "bert" else IMAGE


def points_for(name, n=5):
    generator = torch.Generator().manual_seed(0)
    if name == "bert":
        tokens = torch.randint(1, VOCAB, (n, *TOKENS), generator=generator)
        return tokens * (torch.arange(TOKENS[0]) < torch.randint(1, TOKENS[0], (n, 1), generator=generator))
    return torch.randn(n, *IMAGE, generator=generator)
