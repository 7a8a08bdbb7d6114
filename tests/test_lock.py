"""The lock covers what pyproject.toml asks for, at the versions of constraints.txt, and is made as it says."""

import hashlib
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def tool(name):
    """A script of tools/, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


lock, installer = tool("lock"), tool("install")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = lock.pinned((ROOT / "constraints.txt").read_text())
FILES = {file.stem: file.read_text() for file in (ROOT / "lock").glob("*.txt")}


def chain(name):
    """All that installing one file of the lock installs, with the index's build of PyTorch."""
    above = lock.LOCKS[name][0]
    torch = lock.pinned(FILES["torch"]) if above else {}
    return (chain(above) if above else {}) | torch | lock.pinned(FILES[name])


def test_the_lock_and_the_constraints_name_the_same_versions():
    locked = {}
    for name, text in FILES.items():
        for package in lock.pinned(text).values():
            version = package.version.removesuffix("+cpu") if name == "torch-cpu" else package.version
            assert locked.setdefault(package.name, version) == version
    assert locked == {package.name: package.version for package in CONSTRAINTS.values()}
    assert set(FILES) == {*lock.LOCKS, "torch", "torch-cpu"}


def test_every_package_has_hashes_and_no_address_of_an_index():
    for name, text in FILES.items():
        assert all(package.hashes for package in lock.pinned(text).values()), name
        assert "://" not in text


@pytest.mark.parametrize("name", lock.LOCKS)
def test_each_file_covers_the_extras_it_is_for_and_all_they_bring_here(name):
    covered = chain(name)
    waiting = [*lock.requirements(PROJECT, lock.LOCKS[name][1]), Requirement("setuptools")]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        package = canonicalize_name(wanted.name)
        assert package in covered, f"lock/{name}.txt has no {wanted}"
        assert wanted.specifier.contains(covered[package].version), wanted
        extras = ("", *wanted.extras)
        if (package, extras) in seen:
            continue
        seen.add((package, extras))
        try:
            brought = [Requirement(text) for text in distribution(package).requires or ()]
        except PackageNotFoundError:  # an extra that is not installed here
            continue
        waiting += [r for r in brought if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]


# -- how it is made ----------------------------------------------------------------------------------------------------


def digest(path):
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A project of ours with its index of six packages, and a folder with a build of torch for the CPU."""

    def file(name, *requires, folder="files"):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr("x.dist-info/METADATA", "\n".join(f"Requires-Dist: {one}" for one in requires))
            wheel.writestr("name", name)
        return path

    files = {
        "ours-dep": [
            file("ours_dep-1.0-py3-none-any.whl", 'color; sys_platform == "win32"'),
            file("ours_dep-1.0.tar.gz"),
        ],
        "color": [file("color-2-py3-none-any.whl"), file("color-3-py3-none-any.whl")],
        "old": [file("old-1-py3-none-any.whl")],
        "setuptools": [file("setuptools-80-py3-none-any.whl")],
        "torch": [
            file("torch-2.0-cp311-cp311-manylinux_2_28_x86_64.whl", 'cuda[rt]==1.*; platform_system == "Linux"'),
            file("torch-2.0-cp311-cp311-win_amd64.whl"),
        ],
        "cuda": [file("cuda-1.0.0-py3-none-any.whl", 'cuda-rt; extra == "rt"', 'never; extra == "all"')],
        "cuda-rt": [file("cuda_rt-5-py3-none-any.whl")],
    }
    for name, listed in files.items():
        (tmp_path / "simple" / name).mkdir(parents=True)
        links = [f'<a href="../../files/{path.name}#sha256={digest(path)[7:]}">{path.name}</a>' for path in listed]
        (tmp_path / "simple" / name / "index.html").write_text("\n".join(links))
    files["cpu"] = [file("torch-2.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", folder="wheels")]
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "ours"\ndependencies = ["ours-dep>=1"]\n[project.optional-dependencies]\nrun = ["torch"]\n'
        "text = ['ours[run]', 'old; python_version < \"3.12\"']\ndp = []\nray = []\n"
        "test = []\nlint = []\ndocs = ['color']\n"
    )
    pins = ["ours_dep==1.0", "color==2", "old==1", "setuptools==80", "torch==2.0", "cuda==1.0.0", "cuda-rt==5"]
    (tmp_path / "constraints.txt").write_text("\n".join(pins))
    monkeypatch.setattr(lock, "indexes", lambda: ([(tmp_path / "simple").as_uri()], [str(tmp_path / "wheels")]))
    return tmp_path, files


def entries(root, name):
    """A file's packages with their markers, and its hashes."""
    text = (root / f"lock/{name}.txt").read_text()
    return sorted(re.findall(r"^\w.*?(?= \\)", text, re.M)), set(lock.HASH.findall(text))


def test_each_file_holds_what_it_adds_with_the_hash_of_every_file_of_it(made_up):
    root, files = made_up
    lock.main(root)
    hashes = {name: {digest(path) for path in listed} for name, listed in files.items()}
    second = {digest(files["color"][1])}  # of another version
    windows = 'color==2 ; sys_platform == "win32"'
    base = hashes["ours-dep"] | hashes["color"] | hashes["setuptools"]
    assert entries(root, "base") == ([windows, "ours-dep==1.0", "setuptools==80"], base - second)
    assert entries(root, "run") == ([], set())
    assert entries(root, "text") == (['old==1 ; python_version == "3.11"'], hashes["old"])
    assert entries(root, "dev")[0] == ["color==2", 'old==1 ; python_version == "3.11"']
    linux = ' ; sys_platform == "linux"'
    cuda = hashes["torch"] | hashes["cuda"] | hashes["cuda-rt"]
    assert entries(root, "torch") == ([f"cuda-rt==5{linux}", f"cuda==1.0.0{linux}", "torch==2.0"], cuda)
    assert entries(root, "torch-cpu") == (["torch==2.0+cpu"], hashes["cpu"])
    files["cpu"][0].unlink()
    lock.main(root)  # on a machine without that build
    assert entries(root, "torch-cpu") == (["torch==2.0+cpu"], hashes["cpu"])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("old==1", "", "has no old, which pyproject.toml requires: old"),
        ("cuda-rt==5", "", "has no cuda-rt, which cuda requires: cuda-rt"),
        ("ours_dep==1.0", "ours_dep==0.9", "ours-dep==0.9: the index has no wheel of it"),
        ("cuda==1.0.0", "cuda==1.0.0\nsurplus==1", "surplus==1: the index has no wheel of it"),
    ],
)
def test_a_version_that_is_missing_or_not_there_is_named(made_up, before, after, said):
    root, _ = made_up
    constraints = root / "constraints.txt"
    constraints.write_text(constraints.read_text().replace(before, after))
    with pytest.raises(SystemExit, match=re.escape(said)):
        lock.main(root)


# -- how it is installed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fails", "asked", "code"),
    [
        ("base", "", ["base", "package", "check"], 0),
        ("dev", "", ["torch-cpu", "dev", "package", "check"], 0),
        ("run", "torch-cpu", ["torch-cpu", "torch", "run", "package", "check"], 0),
        ("run", "torch", ["torch-cpu", "torch"], 7),
        ("text", "text", ["torch-cpu", "text"], 7),
    ],
)
def test_all_but_the_package_itself_is_installed_by_its_hash_and_what_fails_ends_it(
    monkeypatch, name, fails, asked, code
):
    done = []

    def pip(*arguments, **_):
        if "-r" in arguments:
            assert {"--require-hashes", "--no-deps"} < set(arguments)
            step = Path(arguments[-1]).stem
        else:
            step = "check" if arguments == ("check",) else "package"
            assert step == "check" or {"--no-deps", "--no-build-isolation"} < set(arguments)
        done.append(step)
        gone = step == fails or (fails == "torch" and step == "torch-cpu")
        return subprocess.CompletedProcess(arguments, 7 if gone else 0)

    monkeypatch.setattr(installer, "pip", pip)
    assert (installer.install(name), done) == (code, asked)
