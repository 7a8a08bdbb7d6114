"""All that `dir(forgetgauge)` lists is documented in the reference, typed, and has an example that runs."""

from __future__ import annotations

import copy
import doctest
import inspect
import re
import shutil
import typing

import numpy as np
import pytest

import forgetgauge
from forgetgauge.auditing import make_draw

from .fences import ROOT

PUBLIC = [name for name in dir(forgetgauge) if not name.startswith("__")]
SMALL = {"pairs=8": "pairs=2, shadows=2, references=4, fraction=0.2, learner={'epochs': 1}"}
HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the examples find: a run, an audit file, outputs of one model and the draw."""
    where = tmp_path_factory.mktemp("examples")
    (where / "runs/digits").mkdir(parents=True)
    shutil.copy(ROOT / "results/rivals-digits/result.json", where / "runs/digits")
    rng = np.random.default_rng(0)
    pair, side, place = (part.ravel() for part in np.indices((5, 2, 200)))
    forgotten = (place < 100) == (side == 0)
    member = np.arange(2000) % 2 == 0
    np.savez(
        where / "scores.npz",
        pair=pair,
        side=side,
        point=pair * 200 + place,
        set=np.where(forgotten, "forget", "unseen"),
        score=rng.normal(size=len(pair)) + forgotten,
        shadow_member=member,
        shadow_score=rng.normal(size=2000) + member,
    )
    (where / "points.txt").write_text("\n".join(map(str, range(400))))
    drawn = make_draw(where / "points.txt", 100, where / "draw.json", seed="s", seed_from="a test")
    rows = [f"{point},{rng.normal() + 2 * (point in drawn.forget)}" for point in drawn.forget + drawn.unseen]
    (where / "outputs.csv").write_text("\n".join(["point,score", *rows]))
    return where


@pytest.mark.parametrize("name", PUBLIC)
def test_every_example_runs_and_gives_what_it_says(name, folder, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    text = inspect.getdoc(getattr(forgetgauge, name))
    for large, small in SMALL.items():
        text = text.replace(large, small)
    example = doctest.DocTestParser().get_doctest(text, {"forgetgauge": forgetgauge, "copy": copy}, name, None, 0)
    assert example.examples, "no example"
    heard: list[str] = []
    assert doctest.DocTestRunner(optionflags=HOW).run(example, out=heard.append).failed == 0, "".join(heard)


@pytest.mark.parametrize("name", PUBLIC)
def test_it_is_in_the_reference(name):
    page = (ROOT / "docs/reference.md").read_text("utf-8")
    assert re.search(rf"^::: forgetgauge\.[\w.]*\.{name}$", page, re.M)


def public_functions():
    for name in PUBLIC:
        thing = getattr(forgetgauge, name)
        own = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else [(name, thing)]
        yield from ((f"{name}.{inner}", function) for inner, function in own if not inner.startswith("_"))


@pytest.mark.parametrize(("name", "function"), list(public_functions()))
def test_every_function_says_what_it_takes_and_gives(name, function):
    assert inspect.getdoc(function)
    signature = inspect.signature(function)
    typed = {p.name for p in signature.parameters.values() if p.annotation is not p.empty}
    assert typed | {"self", "cls"} >= signature.parameters.keys()
    assert signature.return_annotation is not signature.empty


@pytest.mark.parametrize("function", [forgetgauge.evaluate, forgetgauge.audit, forgetgauge.read_result])
def test_every_argument_is_explained(function):
    text = inspect.getdoc(function)
    for name in inspect.signature(function).parameters:
        assert re.search(rf"^ +{name}: [^ ]", text, re.M), name


def test_an_audit_is_a_result_or_evidence_for_type_checkers_too():
    returned = [typing.get_type_hints(one)["return"] for one in typing.get_overloads(forgetgauge.audit)]
    assert returned == [forgetgauge.Result, forgetgauge.Evidence]
