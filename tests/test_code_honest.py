"""Code as people write it has one digest in every process, whatever it was called with, and nothing of it is named."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch

from forgetgauge.code import code_of

TOP = "import functools, io, os\nfrom pathlib import Path\nimport numpy as np\nimport torch\n"


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Makes the method of a module of the user's, or of a script, from what stands before it and what it gives back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(before: str, gives: str, *, script: bool = False):
        text = f"{TOP}{before}\ndef method():\n    return {gives}\n"
        (tmp_path / "usershonest.py").write_text(text)
        sys.modules.pop("usershonest", None)
        if not script:
            import usershonest

            return usershonest.method
        space = {"__name__": "__main__", "__file__": str(tmp_path / "usershonest.py")}
        exec(compile(text, str(tmp_path / "usershonest.py"), "exec"), space)
        return space["method"]

    yield write
    sys.modules.pop("usershonest", None)


HELD = [
    ("from random import shuffle", "shuffle([1, 2])"),
    ("from scipy.stats import norm", "norm.cdf(0.3)"),
    ("import scipy.stats\nX = scipy.stats.norm(0, 2)", "X.cdf(0)"),
    ("from numpy.random import permutation, default_rng", "permutation(3), default_rng(1).random()"),
    ("X = np.random.mtrand._rand", "X.rand()"),
    ("from torch import default_generator", "torch.rand(1, generator=default_generator)"),
    ("from numpy import exp\nfrom scipy.special import expit", "exp(1), expit(0)"),
    ("import joblib\nM = joblib.Memory('m', verbose=0)\n@M.cache\ndef f(n):\n    return n", "f(3)"),
    (
        "class Own(torch.optim.Optimizer):\n    def __init__(self, p):\n        super().__init__(p, {})\n"
        "    def step(self):\n        return 1",
        "Own([torch.ones(1)]).step()",
    ),
    ("X = torch.compile(torch.nn.Flatten(), backend='eager')", "X(torch.ones(1, 2))"),
    ("from torch.profiler import record_function\n@record_function('f')\ndef f():\n    return 1", "f()"),
]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(("before", "gives"), HELD)
def test_what_libraries_hold_counts_by_what_it_is_not_by_its_state(users, before, gives, script):
    digests = []
    for _ in range(2):
        method = users(before, gives, script=script)
        found = [code_of(method)]
        method()
        found.append(code_of(method))
        assert [one.not_covered for one in found] == [(), ()]
        digests += [one.digest for one in found]
        random.random(), np.random.rand(), torch.rand(1)
    assert len(set(digests)) == 1


def test_generators_of_ones_own_count_by_their_state(users):
    makes = ["random.Random(@@)", "np.random.RandomState(@@)", "torch.Generator().manual_seed(@@)"]
    for made in makes:
        digests = {code_of(users(f"import random\nX = {made.replace('@@', seed)}", "X")).digest for seed in "112"}
        assert len(digests) == 2


@pytest.mark.parametrize("script", [False, True])
def test_the_step_of_an_optimiser_counts_once_torch_has_put_its_hook_before_it(users, script):
    own = "class Own(torch.optim.SGD):\n    def step(self):\n        return @@"
    digests = []
    for value in "112":
        method = users(own.replace("@@", value), "Own([torch.ones(1)]).step()", script=script)
        assert method() == int(value)
        digests.append(code_of(method).digest)
    assert digests[0] == digests[1] != digests[2]
