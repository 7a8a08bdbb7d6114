"""A digest changes with everything that code depends on, and what it cannot cover is named."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.code import code_of
from forgetgauge.errors import UserError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes modules of the user's (path -> text), forgets what was imported, and gives back an attribute of `main`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        tops = {path.stem for path in tmp_path.iterdir()}
        for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def write(files: dict[str, str], attribute: str = "method"):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text))
        forget()
        return getattr(importlib.import_module("usermain"), attribute)

    yield write
    forget()


HELPER = "def rate():\n    return 1.0\n"


def digest_after(project, files, edited):
    before = code_of(project(files)).digest
    again = code_of(project(files)).digest
    assert before == again
    return before, code_of(project({**files, **edited})).digest


@pytest.mark.parametrize(
    "imports",
    [
        "from userhelper import rate",
        "import userhelper\nrate = userhelper.rate",
        "from usermiddle import rate",
        "def rate():\n    from userhelper import rate\n    return rate()",
        "def rate():\n    import importlib\n    return importlib.import_module('userhelper').rate()",
        "from userpkg.inner import rate",
        "from userpkg import inner\nrate = inner.rate",
        "from userpkg.relative import (  # several lines\n    other,\n    rate,\n)",
    ],
)
def test_editing_any_module_behind_an_import_changes_the_digest(project, imports):
    files = {
        "usermain.py": f"{imports}\ndef method(model, retain, forget, context):\n    return rate()\n",
        "userhelper.py": HELPER,
        "usermiddle.py": "from userhelper import *\n",
        "userpkg/__init__.py": "",
        "userpkg/inner.py": "from userhelper import rate\n",
        "userpkg/relative.py": "from .inner import rate\nother = None\n",
    }
    before, after = digest_after(project, files, {"userhelper.py": HELPER.replace("1.0", "0.0")})
    assert before != after


def test_modules_that_are_not_imported_do_not_count(project):
    files = {"usermain.py": "def method():\n    return 1\n", "userhelper.py": HELPER}
    before, after = digest_after(project, files, {"userhelper.py": HELPER.replace("1.0", "0.0")})
    assert before == after


def test_a_model_block_in_another_module_counts(project):
    files = {
        "usermain.py": "from userblocks import Block\nclass method:\n    def make(self):\n        return Block()\n",
        "userblocks.py": "class Block:\n    def forward(self, x):\n        return x * 1.0\n",
    }
    before, after = digest_after(project, files, {"userblocks.py": files["userblocks.py"].replace("1.0", "0.0")})
    assert before != after


@pytest.mark.parametrize(
    "value",
    [
        "types.SimpleNamespace(lr={})",
        "argparse.Namespace(lr={})",
        "np.array([{}])",
        "[types.SimpleNamespace(deep=[{}])]",
        "collections.deque([{}])",
        "fractions.Fraction({})",
        "torch.tensor([{}]).bfloat16()",
        "Own({})",
        "functools.partial(max, {})",
        "re.compile('a' * {})",
        "np.random.default_rng({})",
        "random.Random({})",
    ],
)
@pytest.mark.parametrize("reached", ["VALUE", "userconfig.VALUE"])
def test_globals_count_by_value_wherever_they_come_from(project, monkeypatch, value, reached):
    """The same source, another value: it comes from outside."""
    config = f"""
        import argparse, collections, fractions, functools, os, random, re, types
        import numpy as np
        import torch
        class Own:
            __slots__ = ("held",)
            def __init__(self, held):
                self.held = held
        VALUE = {value.format("int(os.environ['USER_VALUE'])")}
    """
    files = {
        "usermain.py": f"import userconfig\nfrom userconfig import VALUE\ndef method():\n    return {reached}\n",
        "userconfig.py": config,
    }
    digests = []
    for number in ("1", "1", "2"):
        monkeypatch.setenv("USER_VALUE", number)
        found = code_of(project(files))
        assert found.not_covered == ()
        digests.append(found.digest)
    assert digests[0] == digests[1] != digests[2]


def test_a_global_set_by_the_caller_counts_even_where_two_functions_name_different_ones(project):
    method = project(
        {
            "usermain.py": "import userconfig as c\ndef one():\n    return c.A\ndef method():\n    return one(), c.B\n",
            "userconfig.py": "A = 1\nB = 2\n",
        }
    )
    digests = [code_of(method).digest]
    for name in ("A", "B"):
        setattr(sys.modules["userconfig"], name, 9)
        digests.append(code_of(method).digest)
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    "reads",
    ["np.load('weights.npy')", "np.load(WEIGHTS)", "np.load(PATH)", "np.load(os.path.join(HERE, 'weights.npy'))"],
)
def test_a_replaced_file_of_weights_counts(project, tmp_path, reads):
    files = {
        "usermain.py": f"""
            import os
            from pathlib import Path
            import numpy as np
            WEIGHTS, PATH, HERE = "weights.npy", Path("weights.npy"), os.path.dirname(__file__)
            def method():
                return {reads}
        """
    }
    digests = []
    for n in (3, 3, 4):
        np.save(tmp_path / "weights.npy", np.arange(n))
        digests.append(code_of(project(files)).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import importlib\ndef method(name):\n    return importlib.import_module(name)\n", "line 3: import_module"),
        ("def method(name):\n    return __import__(name)\n", "__import__"),
        ("def method(text):\n    exec(text)\n", "exec"),
        ("import torch\ndef method(i):\n    return torch.load(f'weights{i}')\n", "load"),
        ("import socket\nLINE = socket.socket()\nLINE.close()\ndef method():\n    return LINE\n", "usermain.LINE"),
        ("STREAM = open('usermain.py')\nSTREAM.close()\ndef method():\n    return STREAM\n", "usermain.STREAM"),
        ("NUMBERS = (i for i in range(3))\ndef method():\n    return NUMBERS\n", "usermain.NUMBERS"),
    ],
)
def test_what_cannot_be_covered_is_named(project, text, words):
    (named,) = code_of(project({"usermain.py": text})).not_covered
    assert words in named


def test_a_compiled_module_of_ones_own_is_named_and_installed_ones_are_not(project, tmp_path):
    import _bisect
    from importlib.machinery import EXTENSION_SUFFIXES

    files = {
        "usermain.py": "import usercompiled\nimport numpy, torch, pytest\ndef method():\n    return usercompiled\n"
    }
    (tmp_path / f"usercompiled{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    sys.modules["usercompiled"] = type(_bisect)("usercompiled")
    sys.modules["usercompiled"].__file__ = str(tmp_path / f"usercompiled{EXTENSION_SUFFIXES[0]}")
    (tmp_path / "usermain.py").write_text(files["usermain.py"])
    assert code_of(importlib.import_module("usermain").method).not_covered == ("usercompiled, a compiled module",)


def test_ordinary_code_has_nothing_that_is_not_covered(project):
    text = """
        import copy, functools, logging, threading
        import numpy as np
        import torch
        from torch import nn
        log = logging.getLogger(__name__)
        LOCK = threading.Lock()
        DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        KIND = torch.float32
        LOSS = nn.CrossEntropyLoss()
        @functools.lru_cache
        def cached(n):
            return np.eye(n)
        def method(model, retain, forget, context):
            with LOCK, torch.no_grad():
                log.info("%s", cached(3))
                model = copy.deepcopy(model).to(DEVICE, KIND).eval()
                return LOSS(model(retain.x), retain.y)
    """
    assert code_of(project({"usermain.py": text})).not_covered == ()


def test_the_version_of_an_installed_package_counts_and_those_that_are_recorded_do_not(project, monkeypatch):
    from forgetgauge import imports

    method = project(
        {"usermain.py": "import numpy, torch, scipy, sklearn\nimport rich\ndef method():\n    return rich\n"}
    )
    digests = []
    for name in ("none", "numpy", "torch", "scipy", "sklearn", "rich"):
        monkeypatch.setattr(imports, "_version", lambda top, name=name: "0.0.changed" if top == name else "1.0")
        digests.append(code_of(method).digest)
    assert len(set(digests[:-1])) == 1
    assert digests[-1] != digests[0]


def test_code_that_was_edited_after_it_was_imported_is_refused(project, tmp_path):
    method = project(
        {"usermain.py": "import userhelper\ndef method():\n    return userhelper.rate()\n", "userhelper.py": HELPER}
    )
    code_of(method)
    time.sleep(0.01)
    (tmp_path / "userhelper.py").write_text(HELPER.replace("1.0", "0.0"))
    with pytest.raises(UserError, match=r"userhelper\.py was edited after Python had loaded it: rate"):
        code_of(method)


def test_a_stale_compiled_file_is_refused(project, tmp_path, monkeypatch):
    """Python takes a compiled file for current if second and size of the source are the same."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    files = {"usermain.py": "from userhelper import rate\ndef method():\n    return rate()\n", "userhelper.py": HELPER}
    project(files)
    helper = tmp_path / "userhelper.py"
    second = helper.stat().st_mtime_ns // 10**9 * 10**9
    helper.write_text(HELPER.replace("1.0", "0.0"))
    compiled = Path(importlib.util.cache_from_source(str(helper)))
    header = bytearray(compiled.read_bytes())
    os.utime(helper, ns=(second + 5 * 10**8, second + 5 * 10**8))
    header[8:12] = (second // 10**9).to_bytes(4, "little")
    compiled.write_bytes(bytes(header))
    os.utime(compiled, ns=(second, second))
    for name in ("usermain", "userhelper"):
        sys.modules.pop(name)
    method = importlib.import_module("usermain").method
    assert method() == 1.0, "Python no longer takes the stale file: this test has lost its point"
    with pytest.raises(UserError, match="edited after Python had loaded it"):
        code_of(method)


def test_a_script_counts_function_by_function(monkeypatch):
    """The rest of a script or notebook may change: else nothing would be remembered from one cell to the next."""
    main = sys.modules["__main__"]
    text = "FACTOR = 1.0\ndef helper():\n    return FACTOR\ndef method():\n    return helper()\n"
    digests = []
    for version in (
        text,
        f"{text}print\n",
        text.replace("1.0", "2.0"),
        text.replace("return FACTOR", "return -FACTOR"),
    ):
        space = {"__name__": "__main__"}
        exec(compile(version, "<cell>", "exec"), space)
        monkeypatch.setitem(sys.modules, "__main__", main)
        digests.append(code_of(space["method"]).digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_the_digest_is_the_same_in_another_process_and_folder_and_under_another_hash_seed(project, tmp_path):
    import subprocess

    files = {
        "usermain.py": "import userhelper as h\nS = {'a', 'b'}\ndef method():\n    return h.rate, S, 'x' in {1, 'q'}\n",
        "userhelper.py": HELPER,
    }
    ours = code_of(project(files)).digest
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path, text in files.items():
        (elsewhere / path).write_text(text)
    command = "import usermain; from forgetgauge.code import code_of; print(code_of(usermain.method).digest)"
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", command],
            cwd=elsewhere,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == ours
