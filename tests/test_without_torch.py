"""An installation without the extra [run]: what judges results works, what trains says in one line what to install.

The commands are run in a process that sees the packages that `dependencies` of pyproject.toml brings, and no others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest
import typer
from packaging.requirements import Requirement

import forgetgauge
from forgetgauge.auditing import make_draw, write_audit_file
from forgetgauge.cli import app
from tests.conftest import TINY

ROOT = Path(__file__).parents[1]
SENTENCE = "needs PyTorch, which is not installed: pip install 'forgetgauge[run]'"

WORKS = {
    "draw": ["draw", "points.csv", "--forget", "20", "--seed", "s"],
    "import-evals": ["import-evals", "evals.json", "--out", "evals.csv"],
    "audit --draw": ["audit", "outputs.npz", "--draw", "drawn.json"],
    "audit": ["audit", "swaps.npz"],
    "audit --adversary": ["audit", "swaps.npz", "--adversary", "shadow", "--out", "more"],
    "check": ["check", str(ROOT / "results/certified-digits"), "--min-q", "0"],
    "verify": ["verify", "run"],
    "record": ["record", "run", "--method", "none", "--out", "record"],
    "record of one model": ["record", "audits/outputs/evidence.json", "--out", "record-of-one"],
    "compare": ["compare", "run", "run/result.json"],
    "audit --format": ["audit", "swaps.npz", "--out", "latex", "--format", "latex"],
    "report": ["report", "run", "--to", "report.html"],
    "status": ["status", "run"],
    "score": ["score", "run", "--adversary", "shadow"],
    "export": ["export", "run", "run.tar"],
    "import": ["import", "run.tar", "moved"],
    "ls": ["ls"],
    "reproduce list": ["reproduce", "list"],
    "reproduce toy": ["reproduce", "toy"],
    "reproduce page": ["reproduce", "page", "--results", str(ROOT / "results"), "--out", "page.md"],
}
REFUSED = {
    "run": ["run"],
    "run --executor": ["run", "--executor", "inline", "--device", "cuda", "--out", "new"],
    "plan": ["plan"],
    "validate": ["validate"],
    "reproduce": ["reproduce", "table1", "--quiet"],
    "reproduce accuracy": ["reproduce", "accuracy", "--quiet"],
    "reproduce swap-vs-random": ["reproduce", "swap-vs-random", "--quiet"],
    "reproduce strengths": ["reproduce", "strengths", "--quiet"],
    "reproduce replicates": ["reproduce", "replicates", "--quiet"],
    "frontier": ["frontier", "--quiet"],
    "experiment": ["experiment", "swap-vs-random", "--quiet"],
    "data check": ["data", "check", "digits"],
}
UNREACHED = {"data get": ["data", "get", "mnist", "--to", "data"]}
"""What works where its servers can be reached, which the tests do not ask for."""

DRIVER = """
import contextlib, io, json, sys, traceback
from forgetgauge import cli
found = {}
for name, words in json.load(sys.stdin).items():
    sys.argv, said, code = ["forgetgauge", *words], [io.StringIO(), io.StringIO()], None
    with contextlib.redirect_stdout(said[0]), contextlib.redirect_stderr(said[1]):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            traceback.print_exc()
    found[name] = code, *(stream.getvalue() for stream in said)
print(json.dumps(found))
"""


def packages_of(requirements: list[str]) -> set[str]:
    """The distributions that these requirements bring, transitively."""
    brought: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        if wanted.name in brought or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:  # of another platform
            continue
        brought.add(wanted.name)
        waiting += [Requirement(text) for text in found.requires or ()]
    return brought


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The environment of a process that finds the packages of `dependencies`, and forgetgauge."""
    folder = tmp_path_factory.mktemp("site-packages")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for name in packages_of(declared):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (folder / top).symlink_to(found.locate_file(top))
    source = Path(forgetgauge.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{folder}", "OMP_NUM_THREADS": "1"}


def said(commands, bare, folder) -> dict[str, tuple[int, str, str]]:
    """Name of a command -> exit code, standard output, standard error; all in one process, to import things once."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", DRIVER],
        input=json.dumps(commands),
        env=bare,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_nothing_of_the_extra_is_seen(bare):
    script = "import importlib.util as u; print([m for m in ('torch', 'opacus', 'numpy') if u.find_spec(m)])"
    assert subprocess.check_output([sys.executable, "-S", "-c", script], env=bare, text=True).strip() == "['numpy']"


def test_what_judges_works_without_torch(bare, tmp_path):
    tiny = {"data": "digits", "fraction": 0.2, "alpha": 0.5, "pairs": 2, "shadows": 2, "learner": TINY["learner"]}
    forgetgauge.evaluate(unlearner=["retrain", "none"], out=tmp_path / "run", adversaries=["entropy"], **tiny)
    write_audit_file(tmp_path / "run", tmp_path / "swaps.npz")
    (tmp_path / "points.csv").write_text("\n".join(["point", *(f"p{i}" for i in range(60))]))
    samples = {str(i): {"score": 0.1 * i} for i in range(20)}
    (tmp_path / "evals.json").write_text(
        json.dumps({"mia_loss": {name: {"value_by_index": samples} for name in ("forget", "holdout")}})
    )
    made = make_draw(tmp_path / "points.csv", 20, tmp_path / "drawn.json", seed="s")
    points = np.array([*made.forget, *made.unseen])
    np.savez(tmp_path / "outputs.npz", point=points, score=np.random.default_rng(0).normal(size=len(points)))
    for name, (code, out, err) in said(WORKS, bare, tmp_path).items():
        assert (code, "Traceback" in err, "torch" in err) == (0, False, False), name
        assert out, name


def test_what_trains_says_in_one_line_what_to_install(bare, tmp_path):
    for name, (code, _, err) in said(REFUSED, bare, tmp_path).items():
        assert (code, err) == (2, f"forgetgauge: this {SENTENCE}\n"), name
    assert not list(tmp_path.rglob("result.json"))


def test_data_are_fetched_without_torch(bare, tmp_path):
    nowhere = {f"{scheme}_proxy": "http://127.0.0.1:1" for scheme in ("http", "https")}
    for name, (code, _, err) in said(UNREACHED, bare | nowhere, tmp_path).items():
        assert (code, "cannot be reached" in err, err.count("\n")) == (2, True, 1), (name, err)


def test_every_command_is_known_to_work_without_torch_or_to_say_what_to_install():
    groups = typer.main.get_command(app).commands
    commands = {name for name in groups if not hasattr(groups[name], "commands")}
    commands |= {f"{name} {inner}" for name, group in groups.items() for inner in getattr(group, "commands", ())}
    used = [*WORKS.values(), *REFUSED.values(), *UNREACHED.values()]
    covered = {" ".join(words[: 1 + hasattr(groups[words[0]], "commands")]) for words in used}
    assert commands == covered


API = """
import forgetgauge
from forgetgauge.errors import UserError
from forgetgauge.testing import check_adversary
from forgetgauge.auditing import audit_file, audit_one_model, make_draw

def use_evaluate(): forgetgauge.evaluate(unlearner="none")
def use_arrays(): forgetgauge.evaluate(data=([[0.0]], [0]))
def use_testing(): from forgetgauge.testing import check_unlearner

for use in (use_evaluate, use_arrays, use_testing):
    try:
        use()
    except UserError as error:
        print(error)
"""


def test_the_python_interface_is_importable_and_says_what_to_install(bare):
    out = subprocess.check_output([sys.executable, "-S", "-c", API], env=bare, text=True)
    assert out.splitlines() == [f"this {SENTENCE}"] * 3
