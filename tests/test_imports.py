"""A digest changes with everything that code depends on, and what it cannot cover is named."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
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
        "from userpkg.relative import (  # several lines\n    other,  # (old)\n    rate,\n)",
        "def rate():\n    import os; import userhelper\n    return userhelper.rate()",
        "def rate():\n    if True: from userhelper import rate\n    return rate()",
        "def rate():\n    from userpkg import other, \\\n        inner\n    return inner.rate()",
        "def rate():\n    return __import__('userhelper').rate()",
        "def rate():\n    import importlib\n    return importlib.import_module('.inner', 'userpkg').rate()",
        "def rate():\n    import runpy\n    return runpy.run_path('userhelper.py')['rate']()",
        "def rate():\n    from usernamespace import inside\n    return inside.rate()",
        "from sched import rate",
        "import functools\nimport userhelper\nrate = functools.lru_cache(userhelper.rate)",
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
        "usernamespace/inside.py": "from userhelper import rate\n",
        "sched.py": "from userhelper import rate\n",
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
        "enum.Enum('E', {{'A': {}}}).A",
        "collections.defaultdict(functools.partial(max, {}))",
    ],
)
@pytest.mark.parametrize("reached", ["VALUE", "userconfig.VALUE"])
def test_globals_count_by_value_wherever_they_come_from(project, monkeypatch, value, reached):
    """The same source, another value: it comes from outside."""
    config = f"""
        import argparse, collections, enum, fractions, functools, os, random, re, types
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
    [
        "np.load('weights.npy')",
        "np.load(WEIGHTS)",
        "np.load(PATH)",
        "np.load(os.path.join(HERE, 'weights.npy'))",
        "np.load(Path(__file__).parent / 'deep' / 'weights.npy')",
        "np.load(Path('deep').joinpath('weights.npy'))",
        "Path('deep', 'notes.txt').read_bytes()",
        "open('deep/notes.txt', 'rb').read()",
    ],
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
        (tmp_path / "deep").mkdir(exist_ok=True)
        for path in ("weights.npy", "deep/weights.npy"):
            np.save(tmp_path / path, np.arange(n))
        (tmp_path / "deep/notes.txt").write_text(str(n))
        found = code_of(project(files))
        assert found.not_covered == ()
        digests.append(found.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import importlib\ndef method(name):\n    return importlib.import_module(name)\n", "line 3: import_module"),
        ("def method(name):\n    return __import__(name)\n", "__import__"),
        ("def method(text):\n    exec(text)\n", "exec"),
        ("import torch\ndef method(i):\n    return torch.load(f'weights{i}.pt')\n", "load"),
        ("import torch as T\ndef method(i):\n    path = f'w{i}'\n    return T.jit.load(path)\n", "load"),
        ("from torch import load\ndef method(path):\n    return load(path)\n", "a parameter that names it counts"),
        ("import numpy as np\ndef method():\n    return np.load('gone.npy')\n", "not found from here"),
        ("def method(path):\n    return open(path).read()\n", "open"),
        ("import os\ndef method():\n    return os.getenv('RATE')\n", "getenv"),
        ("def method():\n    import usersgone\n", "usersgone"),
        ("import importlib.util as u\ndef method(p):\n    u.spec_from_file_location('a', p)\n", "spec_from_file"),
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


def test_a_folder_counts_by_its_name_and_files_of_one_name_count_each(project, tmp_path):
    text = """
        from pathlib import Path
        HERE = Path(__file__).parent
        ONE, TWO = HERE / "one" / "w.npy", HERE / "two" / "w.npy"
        def method():
            return HERE, ONE, TWO
    """
    digests = []
    for one, two in ((1, 2), (1, 2), (2, 1), (1, 3)):
        for folder, value in (("one", one), ("two", two)):
            (tmp_path / folder).mkdir(exist_ok=True)
            np.save(tmp_path / folder / "w.npy", value)
        digests.append(code_of(project({"usermain.py": text})).digest)
        (tmp_path / "runs.json").write_text(str(len(digests)))  # whatever else appears in the folder
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_function_counts_where_it_was_written_whatever_functools_wraps_says(project):
    files = {
        "usermain.py": """
            import copy, functools
            @functools.wraps(copy.deepcopy)
            def method(model, retain, forget, context):
                return 1.0
        """
    }
    before, after = digest_after(project, files, {"usermain.py": files["usermain.py"].replace("1.0", "0.0")})
    assert before != after


def test_a_line_of_a_string_that_looks_like_an_import_is_not_listed(project):
    text = 'def method():\n    """First:\n    import the module\n    """\n'
    assert code_of(project({"usermain.py": text})).not_covered == ()


def test_a_constant_that_was_edited_after_it_was_imported_is_refused(project, tmp_path):
    method = project(
        {"usermain.py": "from userhelper import STD\ndef method():\n    return STD\n", "userhelper.py": "STD = 0.0\n"}
    )
    code_of(method)
    (tmp_path / "userhelper.py").write_text("STD = 3.0\n")
    with pytest.raises(UserError, match=r"userhelper\.py was edited after Python had loaded it"):
        code_of(method)
    for name in ("userhelper", "usermain"):
        importlib.reload(sys.modules[name])
    assert sys.modules["usermain"].method() == 3.0
    code_of(sys.modules["usermain"].method)


def test_the_version_of_an_installed_package_counts_and_those_that_are_recorded_do_not(project, monkeypatch):
    from forgetgauge.code import imports

    method = project(
        {"usermain.py": "import numpy, torch, scipy, sklearn\nimport rich\ndef method():\n    return rich\n"}
    )
    digests = []
    for name in ("none", "numpy", "torch", "scipy", "sklearn", "rich"):
        monkeypatch.setattr(imports, "version_of", lambda top, name=name: "0.0.changed" if top == name else "1.0")
        digests.append(code_of(method).digest)
    assert len(set(digests[:-1])) == 1
    assert digests[-1] != digests[0]


@pytest.mark.parametrize(
    ("number", "told", "installer", "by_source"),
    [
        (1, None, "pip", False),
        (2, {"url": "file:///a/mymethod", "dir_info": {}}, "pip", True),
        (3, {"url": "file:///a/mymethod.whl", "archive_info": {}}, "uv", True),
        (4, {"url": "file:///a/mymethod.whl", "archive_info": {"hash": "sha256=@@"}}, "pip", False),
        (5, {"url": "https://host/it", "vcs_info": {"vcs": "git", "commit_id": "@@"}}, "pip", False),
        (6, {"url": "https://host/it.whl", "archive_info": {}}, "pip", False),
        (7, {"url": "file:///home/conda/feedstock", "dir_info": {}}, "conda", False),
    ],
)
def test_a_package_that_was_installed_from_a_folder_counts_by_its_source(
    tmp_path, monkeypatch, number, told, installer, by_source
):
    """Its version stays the same while it is edited and installed again."""
    from forgetgauge.code import modules

    site, name = tmp_path / "site", f"usersdist{number}"
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(modules, "_site_folders", lambda: (f"{site}{os.sep}",))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "INSTALLER").write_text(installer)
    digests = []
    for rate, commit in (("1.0", "a"), ("1.0", "a"), ("2.0", "a"), ("2.0", "b")):
        (site / f"{name}.py").write_text(f"import os\ndef method():\n    return {rate}\n")
        if told is not None:
            (info / "direct_url.json").write_text(json.dumps(told).replace("@@", commit))
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        modules._distribution.cache_clear()
        found = code_of(importlib.import_module(name).method)
        assert found.not_covered == ()
        digests.append(found.digest)
    sys.modules.pop(name)
    modules._distribution.cache_clear()
    assert digests[0] == digests[1]
    assert (digests[1] != digests[2]) == by_source
    assert (digests[2] != digests[3]) == ("@@" in json.dumps(told))


def test_code_that_was_edited_after_it_was_imported_is_refused(project, tmp_path):
    method = project(
        {"usermain.py": "import userhelper\ndef method():\n    return userhelper.rate()\n", "userhelper.py": HELPER}
    )
    code_of(method)
    time.sleep(0.01)
    (tmp_path / "userhelper.py").write_text(HELPER.replace("1.0", "0.0"))
    with pytest.raises(UserError, match=r"userhelper\.py was edited after Python had loaded it"):
        code_of(method)


@pytest.mark.parametrize(
    "helper",
    [
        "def rate():\n    return 1.0\n",
        "import torch\n@torch.no_grad()\ndef rate():\n    return 1.0\n",
        "rate = lambda: 1.0\n",
        "def make():\n    def rate():\n        return 1.0\n    return rate\nrate = make()\n",
        "class Rate:\n    def __call__(self):\n        return 1.0\nrate = Rate()\n",
        "class rate:\n    def __new__(cls):\n        return 1.0\n",
        "class C(dict):\n    def __call__(self):\n        return 1.0\nrate = C()\n",
        "class C:\n    @classmethod\n    def rate(cls):\n        return 1.0\nrate = C.rate\n",
    ],
)
def test_code_that_is_held_from_before_a_reload_is_refused(project, tmp_path, helper):
    files = {"usermain.py": "from userhelper import rate\ndef method():\n    return rate()\n", "userhelper.py": helper}
    method = project(files)
    held = sys.modules["userhelper"].rate
    code_of(method)
    (tmp_path / "userhelper.py").write_text(helper.replace("1.0", "0.0"))
    importlib.reload(sys.modules["userhelper"])
    for thing in (method, held, functools.partial(held)):
        with pytest.raises(
            UserError, match=r"userhelper\.py was edited after .* import anew what was imported by name"
        ):
            code_of(thing)
    importlib.reload(sys.modules["usermain"])
    assert code_of(sys.modules["usermain"].method) == code_of(
        project({**files, "userhelper.py": helper.replace("1.0", "0.0")})
    )


def test_a_script_that_was_edited_while_it_runs_is_refused(tmp_path):
    script, text = tmp_path / "script.py", "# A comment.\ndef method():\n    return 1.0\n"
    script.write_text(text)
    space = {"__name__": "__main__", "__file__": str(script)}
    exec(compile(text, str(script), "exec"), space)
    before = code_of(space["method"])
    script.write_text(f"{text}\n# Another.\n")
    assert code_of(space["method"]) == before
    script.write_text(text.replace("1.0", "0.0"))
    with pytest.raises(UserError, match=r"script\.py was edited after Python had loaded it: method in memory"):
        code_of(space["method"])


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


def test_a_compiled_file_that_python_leaves_alone_is_not_asked(project, tmp_path, monkeypatch):
    """With PYTHONDONTWRITEBYTECODE, as in many containers, one from before an edit stays there, and is not used."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    files = {"usermain.py": "from userhelper import rate\ndef method():\n    return rate()\n", "userhelper.py": HELPER}
    before = code_of(project(files))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "userhelper.py").write_text(HELPER.replace("1.0", "0.25"))
    for name in ("usermain", "userhelper"):
        sys.modules.pop(name)
    importlib.invalidate_caches()
    method = importlib.import_module("usermain").method
    assert method() == 0.25
    assert code_of(method) != before


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


def test_a_system_without_file_locks_is_told_in_one_line(tmp_path):
    program = (
        "import sys; sys.modules['fcntl'] = None; sys.argv = ['forgetgauge', 'status', '.']\n"
        "from forgetgauge.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "forgetgauge: forgetgauge runs on Linux and macOS; on Windows it runs inside WSL\n"
