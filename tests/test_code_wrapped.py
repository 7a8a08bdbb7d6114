"""Code that a decorator stands before counts like any other, whoever wrote the decorator; so do classes of objects."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
import types

import numpy as np
import pytest
import torch

import forgetgauge
from forgetgauge.code import code_digest, code_of
from forgetgauge.errors import UserError
from tests.own_code import TINY

TOP = "import contextlib, functools, sys\nimport numpy as np\nimport torch\nfrom usershelper import RATE\n"
PLAIN = "def inner(x=1):\n    return x * @@\n"
WRAPPED = [
    f"{decorator}\n{PLAIN}"
    for decorator in (
        "@torch.no_grad()",
        "@torch.no_grad",
        "@torch.inference_mode()",
        "@torch.enable_grad()",
        "@torch.set_grad_enabled(False)",
        "@torch.autocast('cpu', enabled=False)",
        "@np.errstate(all='ignore')",
        "@np.vectorize",
        "@functools.singledispatch",
        "@functools.lru_cache",
        "@functools.cache",
        "@torch.compile",
        "@torch.vmap",
        "@torch.func.grad",
        "@torch.no_grad()\n@np.errstate(all='ignore')\n@functools.lru_cache",
    )
]
WRAPPED += [
    "@contextlib.contextmanager\ndef inner(x=1):\n    yield @@\n",
    "@contextlib.contextmanager\ndef quiet():\n    yield @@\n@quiet()\ndef inner():\n    return 1\n",
    "@torch.no_grad()\ndef inner(x=@@):\n    return x\n",
    "@torch.no_grad()\ndef inner():\n    return inner.rate\ninner.rate = @@\n",
    "inner = functools.partial(torch.no_grad()(lambda x: x * @@), 1)\n",
    "inner = torch.autocast('cpu', enabled=@@ > 1)(lambda x: x)\n",
    "def make(k):\n    @torch.no_grad()\n    def made():\n        return k\n    return made\ninner = make(@@)\n",
    "class Deco:\n    def __init__(self, f):\n        functools.update_wrapper(self, f)\n"
    "    def __call__(self):\n        return @@\n@Deco\ndef inner():\n    return 1\n",
    "class Deco:\n    def __init__(self, f, k):\n        functools.update_wrapper(self, f)\n        self.k = k\n"
    "    def __call__(self):\n        return self.k\ninner = Deco(len, @@)\n",
    "def deco(f):\n    def w(*a):\n        return w.__wrapped__(*a)\n    return functools.update_wrapper(w, f)\n@deco\n"
    + PLAIN,
    "class M:\n    @torch.no_grad()\n    def __call__(self):\n        return @@\ninner = M()\n",
    "class M:\n    @torch.no_grad()\n    def step(self):\n        return @@\n"
    "    def __call__(self):\n        return self.step()\ninner = M()\n",
    "class M:\n    @functools.lru_cache\n    def __call__(self):\n        return @@\ninner = M()\n",
    "class M:\n    @property\n    @torch.no_grad()\n    def rate(self):\n        return @@\ninner = M()\n",
    "class M:\n    @staticmethod\n    @torch.no_grad()\n    def step():\n        return @@\ninner = M.step\n",
    "class M:\n    @classmethod\n    @torch.no_grad()\n    def step(cls):\n        return @@\ninner = M.step\n",
    "def make(k):\n    class M:\n        @torch.no_grad()\n        def forward(self):\n            return k\n"
    "    return M\ninner = make(@@)\n",
    "class M:\n    @torch.no_grad()\n    def __new__(cls):\n        return @@\ninner = M\n",
    "class Cm(contextlib.ContextDecorator):\n    def __enter__(self):\n        return @@\n"
    "    def __exit__(self, *error):\n        pass\n@Cm()\ndef inner():\n    return 1\n",
    "import weakref\nclass M:\n    def __call__(self):\n        return @@\nm = M()\ninner = weakref.ref(m)\n",
    "optimiser = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)\n"
    "inner = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda epoch: @@)\n",
    "inner = torch.optim.swa_utils.get_ema_multi_avg_fn(@@ / 10)\n",
    "space = {}\nexec('def f():\\n    return @@', space)\ninner = space['f']\n",
]


OBJECTS = [
    *(
        f"import collections\nclass C({base}):\n    def rate(self):\n        return @@\nX = {made}\n"
        for base, made in (
            ("dict", "C()"),
            ("list", "C()"),
            ("set", "C()"),
            ("tuple", "C()"),
            ("float", "C(1)"),
            ("collections.UserDict", "C()"),
            ("collections.deque", "C()"),
            ("functools.partial", "C(max)"),
            ("np.ndarray", "np.zeros(2).view(C)"),
            ("torch.Tensor", "torch.zeros(2).as_subclass(C)"),
            ("torch.nn.Parameter", "C(torch.zeros(2))"),
            ("logging.Logger", "C('any')"),
        )
    ),
    "import typing\nclass C(typing.NamedTuple):\n    x: int = 1\n    def rate(self):\n        return @@\nX = C()\n",
    "import enum\nclass E(enum.Enum):\n    A = 1\n    def rate(self):\n        return @@\nX = E.A\n",
    "class Meta(type):\n    def rate(cls):\n        return @@\nclass X(metaclass=Meta):\n    pass\n",
    "class Meta(type):\n    def rate(cls):\n        return @@\nclass C(metaclass=Meta):\n    pass\nX = C()\n",
    "X = torch.zeros(2)\nX.rate = @@\n",
    "X = logging.getLogger('any')\nX.rate = @@\n",
    "X = functools.partial(max)\nX.rate = @@\n",
    "X = {'rate': @@}.get\n",
    "X = functools.lru_cache(max)\nX.rate = @@\n",
    *(
        f"import collections, datetime\nclass C({base}):\n    pass\nX = C({given})\n"
        for base, given in (
            ("float", "@@"),
            ("int", "@@"),
            ("str", "'@@'"),
            ("bytes", "b'@@'"),
            ("collections.deque", "[@@]"),
            ("datetime.timedelta", "@@"),
            ("ValueError", "@@"),
        )
    ),
    "import dataclasses\nX = dataclasses.make_dataclass('X', [('rate', float, @@)])\n",
]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("text", OBJECTS)
def test_an_object_counts_with_its_class_and_with_what_was_set_on_it(users, text, script):
    digests = []
    for value in ("1", "1", "2"):
        module = users(
            "import logging\n" + text.replace("@@", value) + "def method(model):\n    return X\n", script=script
        )
        found = code_of(module.method)
        assert found.not_covered == ()
        digests.append(found.digest)
        vars(logging.getLogger("any")).pop("rate", None)
    assert digests[0] == digests[1] != digests[2]


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Makes the method of a module of the user's, or of a script, from source with one number in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("userswrapped", "usershelper")

    def write(text: str, *, script: bool = False, rate: float = 1.0):
        (tmp_path / "userswrapped.py").write_text(TOP + text)
        (tmp_path / "usershelper.py").write_text(f"RATE = {rate}\n")
        for name in names:
            sys.modules.pop(name, None)
        if not script:
            import userswrapped

            return userswrapped
        space = {"__name__": "__main__", "__file__": str(tmp_path / "userswrapped.py")}
        exec(compile(TOP + text, str(tmp_path / "userswrapped.py"), "exec"), space)
        return types.SimpleNamespace(**space)

    yield write
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("given", ["inner", "method"])
@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("text", WRAPPED)
def test_what_a_decorator_wraps_counts(users, text, script, given):
    digests = []
    for value in ("1", "1", "2"):
        text_now = text.replace("@@", value) + "def method(model):\n    return inner(), torch.utils\n"
        found = code_of(getattr(users(text_now, script=script), given))
        assert found.not_covered == ()
        digests.append(found.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("script", [False, True])
def test_modules_that_decorated_code_imports_count(users, script):
    text = "@torch.no_grad()\ndef method(model):\n    return RATE\n"
    assert len({code_digest(users(text, script=script, rate=rate).method) for rate in (1.0, 2.0)}) == 2


def test_files_that_a_parameter_of_decorated_code_names_count(users, tmp_path):
    digests = set()
    for content in ("1", "2"):
        (tmp_path / "r.txt").write_text(content)
        module = users("@torch.no_grad()\ndef method(model, path='r.txt'):\n    return path\n")
        digests |= {code_digest(module.method), code_digest(functools.partial(module.method, 1))}
    assert len(digests) == 4


@pytest.mark.parametrize(
    "wrap",
    [
        torch.autocast("cpu", enabled=False),
        np.errstate(all="ignore"),
        functools.singledispatch,
        functools.lru_cache,
        contextlib.contextmanager,
        torch.vmap,
        torch.no_grad(),
    ],
)
def test_calling_decorated_code_changes_nothing(wrap):
    def doubled(x):
        return x * 2

    wrapped = wrap(doubled)
    before = code_digest(wrapped)
    wrapped(torch.ones(3))
    wrapped(np.ones(3)) if wrap is functools.singledispatch else None
    assert code_digest(wrapped) == before


def test_what_a_library_decorated_itself_counts_by_its_name_alone():
    from sklearn.metrics import roc_auc_score

    assert hasattr(roc_auc_score, "__wrapped__")
    digests = {code_digest(roc_auc_score)}
    roc_auc_score.__wrapped__.of_users = 1
    digests.add(code_digest(roc_auc_score))
    del roc_auc_score.__wrapped__.of_users
    assert len(digests) == 1


def test_decorated_methods_of_one_factory_are_told_apart_in_one_run():
    def make(size):
        @torch.no_grad()
        def method(model, retain, forget, context):
            for parameter in model.parameters():
                parameter.mul_(size)
            return model

        return method

    together = forgetgauge.evaluate(unlearner={"a": make(1.0), "b": make(-1.0)}, **TINY)
    alone = forgetgauge.evaluate(unlearner={"a": make(1.0)}, **TINY)
    assert together.methods["a"].by_adversary == alone.methods["a"].by_adversary
    assert together.methods["a"].by_adversary != together.methods["b"].by_adversary


def test_two_objects_that_cannot_be_told_apart_are_refused():
    methods = {}
    for rate in (1, 2):
        methods[f"mine-{rate}"] = lambda model, retain, forget, context: model.apply(rate)  # noqa: B023
    with pytest.raises(UserError, match="'mine-1' and 'mine-2' are the same code with the same values") as caught:
        forgetgauge.evaluate(unlearner=methods, **TINY)
    assert "\n" not in str(caught.value)
    one = methods["mine-1"]
    table = forgetgauge.evaluation._table(forgetgauge.plugins.unlearners, {"a": one, "b": one})
    assert table["a"] == table["b"], "one object may have two names"
