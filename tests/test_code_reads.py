"""What a method reads beside its source changes its digest, or is named as not watched; what it writes does neither."""

from __future__ import annotations

import dataclasses
import functools
import sys
import zipfile

import pytest

from forgetgauge import plugins
from forgetgauge.code import code_of
from forgetgauge.code.reading.calls import Calls
from forgetgauge.plugins.catalogue import code_behind

TOP = """
import configparser, io, linecache, os, sys
from pathlib import Path
import numpy as np
import scipy.io
import torch
"""


@pytest.fixture
def users(users_method, tmp_path):
    """Makes a method of the user's from what stands before it and what it gives back."""
    (tmp_path / "r").mkdir()

    def write(before: str, gives: str, *, script: bool = False):
        return users_method(f"{TOP}{before}\ndef method(path=None):\n    return {gives}\n", script=script)

    return write


READS = [
    ("P = 'r/a.csv'", "open(P).read()"),
    ("P = Path('r/a.csv')", "P.read_text()"),
    ("P = Path('r/a.csv')", "P.open().read()"),
    ("P = 'r/a.csv'", "Path(P).read_text()"),
    ("P = os.path.join(os.path.dirname(__file__), 'r', 'a.csv')", "open(P).read()"),
    ("D = Path(__file__).parent / 'r'", "(D / 'a.csv').read_text()"),
    ("D = 'r'", "open(os.path.join(D, 'a.csv')).read()"),
    ("D = 'r/'", "open(D + 'a.csv').read()"),
    ("N = 'a'", "open(f'r/{N}.csv').read()"),
    ("C = {'p': 'r/a.csv'}", "open(C['p']).read()"),
    ("class C:\n    p = 'r/a.csv'", "open(C.p).read()"),
    ("P = 'r/a.csv'", "np.genfromtxt(P)"),
    ("import pandas as pd\nP = 'r/a.csv'", "pd.read_csv(P)"),
    ("import pandas as pd", "pd.read_table('r/a.csv')"),
    ("rd = open", "rd('r/a.csv').read()"),
    ("from io import open as o", "o('r/a.csv').read()"),
    ("from numpy import loadtxt as lt", "lt('r/a.csv')"),
    ("", "io.open('r/a.csv').read()"),
    ("", "configparser.ConfigParser().read('r/a.csv')"),
    ("c = configparser.ConfigParser()", "c.read(['r/a.csv'])"),
    ("", "np.fromfile('r/a.csv')"),
    ("", "np.memmap('r/a.csv', mode='r')"),
    ("", "torch.from_file('r/a.csv', size=1)"),
    ("", "scipy.io.loadmat('r/a.csv')"),
    ("import xml.etree.ElementTree as ET", "ET.parse('r/a.csv')"),
    ("", "linecache.getline('r/a.csv', 1)"),
    ("P = 'r/a.csv'", "linecache.getline(P, 1)"),
    ("import csv, zipfile", "zipfile.ZipFile('r/a.csv')"),
    ("", "getattr(Path('r/a.csv'), 'read_text')()"),
    ("", "Path.read_text(Path('r') / 'a.csv')"),
    ("D = Path('r')", "Path.read_bytes(D / 'a.csv')"),
    ("D = Path(__file__).resolve().parents[0]", "(D / 'r' / 'a.csv').read_text()"),
    ("def f():\n    p = Path(__file__).parent / 'r' / 'a.csv'\n    return p.read_text()", "f()"),
    ("def f():\n    p = Path('r') / 'a.csv'\n    c = configparser.ConfigParser()\n    c.read(p)", "f()"),
    ("def f():\n    d = Path(__file__).parent\n    configparser.ConfigParser().read([d / 'r/a.csv'])", "f()"),
    ("def f():\n    d = os.path.dirname(__file__)\n    p = os.path.join(d, 'r', 'a.csv')\n    io.FileIO(p)", "f()"),
    ("import zipfile\ndef f():\n    p: str = 'r/a.csv'\n    def g():\n        zipfile.ZipFile(p)\n    g()", "f()"),
    ("def f():\n    rd, p = open, 1\n    read = open\n    return read('r/a.csv')", "f()"),
    ("", "(lambda d: open('r/a.csv'))(1)"),
]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(("before", "gives"), READS)
def test_a_file_whose_name_is_known_counts_by_its_content(users, tmp_path, before, gives, script):
    if "pandas" in before:
        pytest.importorskip("pandas")
    digests = []
    for content in ("1.0", "1.0", "2.0"):
        (tmp_path / "r/a.csv").write_text(content)
        found = code_of(users(before, gives, script=script))
        assert found.not_covered == ()
        digests.append(found.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    ("before", "gives", "words"),
    [
        ("", "os.environ['X']", "os.environ"),
        ("", "os.environ.get('X')", "os.environ"),
        ("import os as o", "o.environ.get('X')", "os.environ"),
        ("E = os.environ", "E['X']", "os.environ"),
        ("from os import environ", "environ['X']", "os.environ"),
        ("", "os.getenv('X')", "getenv"),
        ("", "sys.argv[1]", "sys.argv"),
        ("G = 1", "globals()['G']", "globals"),
        ("G = 1", "eval('G')", "eval"),
        ("G = 1", "eval('2 * G + 1')", "eval"),
        ("import urllib.request", "urllib.request.urlopen('file:///r/a.csv').read()", "urlopen"),
        ("from urllib.request import urlopen as u", "u('file:///r/a.csv').read()", "urlopen"),
        ("G = 1", "sys.modules[__name__].G", "sys.modules"),
        ("import subprocess", "subprocess.check_output(['cat', 'r/a.csv'])", "check_output"),
        ("from subprocess import run", "run(['cat', 'r/a.csv'])", "run"),
        ("", "os.popen('cat r/a.csv').read()", "popen"),
        ("", "os.path.exists('r/flag')", "exists"),
        ("", "Path('r/flag').exists()", "exists"),
        ("", "os.listdir('r')", "listdir"),
        ("import sqlite3", "sqlite3.connect('r/a.db')", "connect"),
        ("import pkgutil", "pkgutil.get_data('rp', 'a.csv')", "get_data"),
        ("import pkgutil", "[*pkgutil.iter_modules(['r'])]", "iter_modules"),
        ("from pkgutil import walk_packages as w", "[*w(['r'])]", "walk_packages"),
        ("from importlib.metadata import entry_points", "entry_points(group='x')", "entry_points"),
        ("import importlib.resources", "importlib.resources.files('r')", "files"),
        ("import platform", "platform.node()", "node"),
        ("", "getattr(os, 'environ')['X']", "os.environ"),
        ("", "vars(os)['environ']['X']", "os.environ"),
        ("", "getattr(os, 'getenv')('X')", "getenv"),
        ("P = 'r/gone.csv'", "open(P).read()", "open"),
        ("", "np.fromfile(path)", "fromfile"),
        ("", "linecache.getline(path, 1)", "getline"),
        ("", "configparser.ConfigParser().read(path)", "read"),
        ("C = configparser.RawConfigParser()", "C.read(path)", "read"),
        ("def f(p):\n    c = configparser.ConfigParser()\n    c.read(p)", "f('r/a.csv')", "read"),
        ("def f(n):\n    p = Path('r') / n\n    c = configparser.ConfigParser()\n    c.read(p)", "f('a')", "read"),
        ("def f(c, n):\n    c.read(Path('r') / n)", "f(1, 2)", "read"),
        ("import zipfile", "zipfile.ZipFile(path)", "ZipFile"),
        ("from io import FileIO", "FileIO(path)", "FileIO"),
        ("", "Path.read_text(path)", "read_text"),
        ("", "open('r/a.csv', 'r+').read()", "open"),
        ("", "np.memmap('r/a.csv', mode='r+')", "memmap"),
        ("p = 'r/a.csv'\ndef f(p):\n    return open(p).read()", "f('r/b.csv')", "open"),
        ("p = 'r/a.csv'", "[open(p).read() for p in ['r/b.csv']]", "open"),
        ("p = 'r/a.csv'", "(lambda p: open(p).read())('r/b.csv')", "open"),
        ("def f(x):\n    p = 'r/a.csv'\n    if x:\n        p = 'r/b.csv'\n    return open(p)", "f(1)", "open"),
        ("def f(p):\n    p = p + '.csv'\n    return open(p)", "f('r/a')", "open"),
    ],
)
def test_what_is_known_only_when_it_runs_is_named(users, before, gives, words, script):
    named = code_of(users(before, gives, script=script)).not_covered
    assert [line for line in named if words in line], named


def test_what_the_module_itself_asked_for_counts_by_value(users, monkeypatch):
    digests = []
    for value in ("1", "1", "2"):
        monkeypatch.setenv("USERS_RATE", value)
        found = code_of(users("RATE = os.environ['USERS_RATE']\nHERE = os.path.exists('r')", "RATE, HERE"))
        assert found.not_covered == ()
        digests.append(found.digest)
    assert digests[0] == digests[1] != digests[2]


RATE = "import os\nRATE = float(os.environ['USERS_RATE'])\n"
AT_IMPORT = [
    (RATE, "import usersconf", "getattr(usersconf, 'RATE')"),
    (RATE, "import usersconf", "vars(usersconf)['RATE']"),
    (RATE, "import usersconf", "getattr(usersconf, 'RA' + 'TE')"),
    (RATE, "", "vars(__import__('usersconf'))['RATE']"),
    (RATE, "", "(lambda: __import__('usersconf').RATE)()"),
    (RATE, "def f():\n    import usersconf\n    return usersconf.RATE", "f()"),
    (RATE, "import usersconf", "max(v for k, v in vars(usersconf).items() if k == 'RATE')"),
    ("import os, torch\ntorch.of_users = float(os.environ['USERS_RATE'])\n", "import usersconf", "torch.of_users"),
    ("import os, torch\nsetattr(torch, 'of_users', os.getenv('USERS_RATE'))\n", "import usersconf", "torch.of_users"),
    ("import os\nif os.environ['USERS_RATE'] == '1':\n    R = 1\nelse:\n    R = 2\n", "import usersconf as u", "u.R"),
    ("import sys\nRATE = sys.argv[-1]\n", "import usersconf", "vars(usersconf).get('RATE')"),
    ("import os\nFILES = os.listdir('r')\n", "import usersconf", "vars(usersconf).get('FILES')"),
]


@pytest.mark.parametrize(("conf", "before", "gives"), AT_IMPORT)
def test_what_an_imported_module_asked_for_counts_or_is_named(users, tmp_path, monkeypatch, conf, before, gives):
    found = []
    (tmp_path / "usersconf.py").write_text(conf)
    for value in ("1", "2"):
        monkeypatch.setenv("USERS_RATE", value)
        monkeypatch.setattr(sys, "argv", ["run", value])
        (tmp_path / "r" / value).write_text("")
        sys.modules.pop("usersconf", None)
        found.append(code_of(users(before, gives)))
    sys.modules.pop("usersconf", None)
    vars(sys.modules["torch"]).pop("of_users", None)
    named = [line for line in found[0].not_covered if "usersconf, line 2" in line]
    assert named or found[0].digest != found[1].digest


@pytest.mark.parametrize(
    "conf",
    [
        "os.environ.setdefault('USERS_RATE', '1')",
        "if __name__ == '__main__':\n    print(sys.argv)",
        "if not os.path.exists('r'):\n    os.makedirs('r')",
        "assert os.path.exists('r')",
        "print(os.environ['USERS_RATE'])",
        "RATE = float(os.environ['USERS_RATE'])\ndef rate():\n    return RATE",
        "def rate(is_at=os.environ['USERS_RATE']):\n    return is_at",
        "class C:\n    r = os.environ['USERS_RATE']\ndef rate():\n    return C().r",
    ],
)
def test_what_decides_nothing_or_counts_by_value_is_not_named(users, tmp_path, monkeypatch, conf):
    monkeypatch.setenv("USERS_RATE", "1")
    (tmp_path / "usersconf.py").write_text(f"import os, sys\n{conf}\n")
    sys.modules.pop("usersconf", None)
    method = users("import usersconf", "usersconf.rate()" if "rate()" in conf or "rate(is" in conf else "1")
    assert code_of(method).not_covered == ()
    sys.modules.pop("usersconf", None)


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    ("before", "gives"),
    [
        ("P = 'r/a.csv'", "open(P, 'a').write('1')"),
        ("P = Path('r/a.csv')", "P.open('a').write('1')"),
        ("P = Path('r/a.csv')", "P.write_text('1')"),
        ("P = 'r/a.csv'", "np.savetxt(P, [1])"),
        ("", "np.savetxt('r/a.csv', [1])"),
        ("import logging", "logging.FileHandler('r/a.csv')"),
        ("def note(path):\n    pass", "note('r/a.csv')"),
        ("", "np.memmap('r/a.csv', mode='w+')"),
    ],
)
def test_what_a_method_writes_changes_nothing(users, tmp_path, before, gives, script):
    digests = set()
    for content in ("1.0", "2.0"):
        (tmp_path / "r/a.csv").write_text(content)
        digests.add(code_of(users(before, gives, script=script)).digest)
    assert len(digests) == 1


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize(
    ("before", "gives"),
    [
        ("def f(signals, name):\n    return signals.read(name)", "f"),
        ("import json\ndef f():\n    with open('r/a.csv') as file:\n        return json.load(file)", "f()"),
        ("def f():\n    with open('r/a.csv') as file:\n        n = 3\n        return file.read(n)", "f()"),
        ("def f(x):\n    y = torch.from_numpy(x)\n    return torch.nn.functional.relu(y)", "f"),
        ("def f(model, x):\n    state = model.state_dict()\n    model.load_state_dict(state)", "f"),
        ("def f(d):\n    key = 'a/b.c'\n    x = key + key\n    y = x + x\n    return d.get(y)", "f"),
        ("def f(p):\n    q = Path('r') / p\n    q.write_text('1')\n    return np.savetxt(q, [1])", "f"),
    ],
)
def test_what_looks_like_reading_and_is_not_is_not_named(users, tmp_path, before, gives, script):
    (tmp_path / "r/a.csv").write_text("1")
    assert code_of(users(before, gives, script=script)).not_covered == ()


def test_names_of_long_chains_take_no_time(users):
    chain = "".join(f"    x{n + 1} = x{n} + x{n}\n" for n in range(60))
    assert code_of(users(f"def f(x0):\n{chain}    return open(x60)", "f")).not_covered


def test_a_variable_of_the_environment_that_is_set_is_not_named(users):
    method = users("def put():\n    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'", "put()")
    assert code_of(method).not_covered == ()


def test_the_rest_of_the_environment_does_not_count(users, monkeypatch):
    method = users("from os import environ", "environ['X']")
    before = code_of(method).digest
    monkeypatch.setenv("USERS_WINDOW", "2")
    assert code_of(method).digest == before


@pytest.mark.parametrize("script", [False, True])
def test_attributes_of_functions_count_by_value(users, script):
    method = users("def helper():\n    return helper.rate\nhelper.rate = 1.0", "helper(), method.rate", script=script)
    digests = [code_of(method).digest]
    helper = method.__globals__["helper"]
    for function, rate in ((method, 1.0), (method, 2.0), (helper, 2.0), (helper, 1.0)):
        function.rate = rate
        digests.append(code_of(method).digest)
    assert len(set(digests)) == 4
    assert digests[4] == digests[2]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("threading.local()", ["the global usersown.T, an object without a value of its own (_local)"]),
        (
            "type('Mine', (threading.local,), {})()",
            ["the global usersown.T, an object without a value of its own (Mine)"],
        ),
        ("threading.Lock()", []),
        ("threading.RLock()", []),
    ],
)
def test_what_belongs_to_a_thread_is_named_and_locks_are_not(users, value, named):
    assert list(code_of(users(f"import threading\nT = {value}", "T")).not_covered) == named


def test_a_module_inside_an_archive_is_named(users, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("userspacked.py", "def rate():\n    return 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    found = code_of(users("from userspacked import rate", "rate()"))
    sys.modules.pop("userspacked")
    assert found.not_covered == ("userspacked, whose source is not there",)


# -- files that parameters name ----------------------------------------------------------------------------------------


def given_by_a_run_file(named, path):
    return code_behind([(plugins.unlearners, "usersown:method")], {"path": path})


def given_in_a_list_of_tables(named, path):
    return code_behind([(plugins.unlearners, "usersown:method")], {"sets": [{"path": path}]})


def by_default(named, path):
    named.__defaults__ = (path,)
    return code_of(named)


def by_a_default_of_what_it_calls(named, path):
    def outer(model):
        return inner(model)

    def inner(model, *, path=path):
        return model

    return code_of(outer)


def by_partial(named, path):
    return code_of(functools.partial(named, path=path))


def by_an_attribute(named, path):
    class Method:
        def __init__(self):
            self.path = path

    return code_of(Method())


def by_a_field(named, named_path):
    @dataclasses.dataclass
    class Method:
        path: str = named_path

    return code_of(Method)


NAMED = [given_by_a_run_file, given_in_a_list_of_tables, by_default, by_a_default_of_what_it_calls, by_partial]
NAMED += [by_an_attribute, by_a_field]


@pytest.mark.parametrize("look", NAMED)
@pytest.mark.parametrize("path", ["r/a.txt", "r/a.ini", "r/noending"])
def test_a_file_that_a_parameter_names_counts_whatever_its_ending(users, tmp_path, look, path):
    method, digests = users("", "open(path).read()"), []
    for content in ("1.0", "1.0", "2.0"):
        (tmp_path / path).write_text(content)
        digests.append(look(method, path).digest)
    assert digests[0] == digests[1] != digests[2]


def test_a_file_that_a_parameter_names_is_found_beside_the_module(users, tmp_path, monkeypatch):
    method = users("", "(Path(__file__).parent / path).read_text()")
    monkeypatch.chdir(tmp_path / "r")
    for look in (given_by_a_run_file, by_default):
        digests = set()
        for content in ("1.0", "2.0"):
            (tmp_path / "a.txt").write_text(content)
            digests.add(look(method, "a.txt").digest)
        assert len(digests) == 2


def test_a_file_by_whose_parameter_it_is_written_is_named_and_does_not_count(users, tmp_path):
    method, found = users("", "open(path, 'a')"), []
    for content in ("1.0", "2.0"):
        (tmp_path / "r/a.txt").write_text(content)
        found.append(code_behind([(plugins.unlearners, "usersown:method")], {"log_to": "r/a.txt"}))
    assert found[0] == found[1]
    assert [line for line in found[0].not_covered if "the file r/a.txt, which the parameter log_to names" in line], (
        method
    )


def test_of_a_file_too_large_to_be_read_the_size_counts_and_it_is_named(users, tmp_path, monkeypatch):
    monkeypatch.setattr("forgetgauge.code.parameters.LARGEST_FILE", 3)
    users("", "1")
    found = []
    for content in ("1.00", "2.00", "1.000"):
        (tmp_path / "r/a.txt").write_text(content)
        found.append(given_by_a_run_file(None, "r/a.txt"))
    assert found[0].digest == found[1].digest != found[2].digest
    assert [line for line in found[0].not_covered if "the file r/a.txt" in line and "beyond its size" in line]


def test_a_file_that_happens_to_have_the_name_of_a_setting_of_ours_does_not_count(users, tmp_path):
    users("", "1")
    before = code_behind([(plugins.learners, "minibatch")], {"optimiser": "sgd"})
    (tmp_path / "sgd").write_text("1")
    assert code_behind([(plugins.learners, "minibatch")], {"optimiser": "sgd"}) == before


def test_what_holds_itself_may_be_an_attribute():
    knot: list = []
    knot.append(knot)
    assert by_an_attribute(None, knot).digest


def test_a_text_of_a_local_path_is_not_taken_for_that_of_a_file_that_is_written():
    """Parts of the tree that were replaced lent their addresses to others, in one of some hundred functions."""
    function = (
        "def method{i}():\n    folder = HERE / 'd'\n    path = folder / 'w{i}.npy'\n    return path, use(folder)\n"
    )
    assert Calls("".join(function.format(i=i) for i in range(400))).written == frozenset()


def test_a_formula_that_a_program_wrote_may_be_thousands_of_operations_deep(users, tmp_path):
    formula = "def f(x):\n    return " + " + ".join(["x"] * 2000)
    digests = []
    for content in "112":
        (tmp_path / "r/a.csv").write_text(content)
        digests.append(code_of(users(formula, "f(float(open('r/a.csv').read()))")).digest)
    assert digests[0] == digests[1] != digests[2]
