"""Code as people write it has one digest in every process, whatever it was called with, and nothing of it is named."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from forgetgauge.code import code_of

TOP = "import functools, io, os\nfrom pathlib import Path\nimport numpy as np\nimport torch\n"


@pytest.fixture
def users(users_method):
    """Makes a method of the user's from what stands before it and what it gives back."""

    def write(before: str, gives: str, *, script: bool = False):
        return users_method(f"{TOP}{before}\ndef method():\n    return {gives}\n", script=script)

    return write


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
        random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002
    assert len(set(digests)) == 1


def test_generators_of_ones_own_count_by_their_state(users):
    makes = ["random.Random(@@)", "np.random.RandomState(@@)", "torch.Generator().manual_seed(@@)"]
    makes += ["random.Random(@@).random", "np.random.RandomState(@@).rand", "np.random.default_rng(@@).random"]
    for made in makes:
        digests = {code_of(users(f"import random\nX = {made.replace('@@', seed)}", "X")).digest for seed in "112"}
        assert len(digests) == 2


WRITES = [
    ("", "torch.save(torch.ones(1), 'w.pt')"),
    ("import json\ndef f():\n    with open('w.json', 'w') as file:\n        json.dump([1], file)", "f()"),
    ("", "np.savez('w.npz', [1])"),
    ("", "Path('w.json').write_text('1')"),
    ("W = 'w.pt'", "torch.save(torch.ones(1), W)"),
    ("W = Path('d') / 'w.pt'", "torch.save(torch.ones(1), W)"),
    ("D = Path('d')", "torch.save(torch.ones(1), D / 'w.pt')"),
    ("def f():\n    p = 'w.pt'\n    torch.save(torch.ones(1), p)", "f()"),
]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(("before", "gives"), WRITES)
def test_what_is_only_written_does_not_count_whatever_its_ending(users, tmp_path, before, gives, script):
    (tmp_path / "d").mkdir()
    method = users(before, gives, script=script)
    found = [code_of(method)]
    for content in (b"1", b"2"):
        for file in (tmp_path / "w.pt", tmp_path / "d/w.pt", tmp_path / "w.json", tmp_path / "w.npz"):
            file.write_bytes(content)
        found.append(code_of(users(before, gives, script=script)))
    assert [one.not_covered for one in found] == [()] * 3
    assert len({one.digest for one in found}) == 1


BEST = (
    "def f(m):\n    p = 'd/w.pt'\n    torch.save(m.state_dict(), @@)\n"
    "    m.load_state_dict(torch.load(@@))\n    return m"
)


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("path", ["'w.pt'", "W", "Path('d') / 'w.pt'", "p"])
def test_what_one_function_writes_and_then_reads_is_named_and_does_not_count(users, tmp_path, path, script):
    (tmp_path / "d").mkdir()
    digests = set()
    for content in (b"1", b"2"):
        for file in (tmp_path / "w.pt", tmp_path / "d/w.pt"):
            file.write_bytes(content)
        found = code_of(users("W = 'w.pt'\n" * (path == "W") + BEST.replace("@@", path), "f(1)", script=script))
        digests.add(found.digest)
        assert [line.partition(": ")[2] for line in found.not_covered] == [
            "load(…) reads what a file holds that it also writes"
        ]
    assert len(digests) == 1


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    ("before", "gives"),
    [
        ("def f():\n    torch.save(1, 'w.pt')\ndef g():\n    return torch.load('w.pt')", "f, g()"),
        ("def f():\n    x = torch.load('w.pt')\n    torch.save(x, 'w.pt')", "f()"),
        ("def f():\n    torch.save(torch.load('w.pt'), 'v.pt')", "f()"),
        ("def f():\n    torch.save(torch.load('w.pt'), 'w.pt')", "f()"),
        ("W = 'w.pt'\ndef f():\n    torch.save(1, W)\ndef own(p):\n    return p", "f, own(W)"),
        ("def own(p):\n    return p\ndef f():\n    torch.save(1, 'w.pt')\n    return own('w.pt')", "f()"),
        ("def saved(p):\n    return torch.load(p)", "saved('w.pt')"),
        ("def save_or_load(p):\n    return torch.load(p)", "save_or_load('w.pt')"),
        ("def exported(p):\n    return torch.load(p)", "exported('w.pt')"),
        ("W = ['w.pt']\ndef f():\n    torch.save(1, 'w.pt')\n    return W", "f()"),
    ],
)
def test_what_may_also_be_read_counts(users, tmp_path, before, gives, script):
    digests = set()
    for content in (b"1", b"2"):
        (tmp_path / "w.pt").write_bytes(content)
        digests.add(code_of(users(before, gives, script=script)).digest)
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


GUARDED = "try:\n    import usersabsent\nexcept @@:\n    usersabsent = None"


@pytest.mark.parametrize(("caught", "named"), [("ImportError", 0), ("(OSError, ImportError)", 0), ("OSError", 1)])
def test_a_package_that_code_goes_without_is_not_named_and_counts_once_it_is_there(users, tmp_path, caught, named):
    def of_users():
        return code_of(users("def f():\n    " + GUARDED.replace("@@", caught).replace("\n", "\n    "), "f"))

    found = of_users()
    assert len([line for line in found.not_covered if "usersabsent" in line]) == named
    (tmp_path / "usersabsent.py").write_text("")
    assert of_users().digest != found.digest


def test_a_variable_of_the_environment_that_a_global_holds_is_not_named(users, monkeypatch):
    digests = []
    for value in "112":
        monkeypatch.setenv("USERS_RATE", value)
        found = code_of(users("RATE = os.getenv('USERS_RATE')", "RATE"))
        assert found.not_covered == ()
        digests.append(found.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    "held",
    [
        "X = torch.ones(1).mul(@@).add",
        "X = np.full(1, @@).mean",
        "X = torch.nn.Identity()\nX.register_forward_hook(lambda m, i, o: o * @@)",
        "X = torch.nn.Identity()\nX.register_forward_pre_hook(lambda m, i, k: @@, with_kwargs=True)",
        "X = torch.optim.SGD([torch.ones(1)])\nX.register_step_post_hook(lambda *given: @@)",
    ],
)
def test_what_methods_are_bound_to_and_hooks_count_by_value(users, held, script):
    found = [code_of(users(held.replace("@@", value), "X", script=script)) for value in "112"]
    assert found[0].digest == found[1].digest != found[2].digest
    assert found[0].not_covered == ()


@pytest.mark.parametrize("script", [False, True])
def test_what_is_read_from_memory_is_not_named_and_another_file_is(users, script):
    keeps = "def f(m, p):\n    b = io.BytesIO()\n    torch.save(m, b)\n    b.seek(0)\n    return torch.load(@@)"
    assert code_of(users(keeps.replace("@@", "b"), "f", script=script)).not_covered == ()
    (named,) = code_of(users(keeps.replace("@@", "p"), "f", script=script)).not_covered
    assert "named only then" in named


LARGE = """
from forgetgauge.code import code_of, descriptions
descriptions._MOST_PARTS = 40
print(code_of(type("Own", (), {"words": {("word", str(n)) for n in range(60)}})).digest)
"""


def test_what_is_too_large_to_be_looked_through_is_cut_off_at_one_place_in_every_process():
    digests = {
        subprocess.run(
            [sys.executable, "-c", LARGE],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in "123"
    }
    assert len(digests) == 1
    assert len(*digests) > 60
