"""Seeded fuzzers: whatever a stranger's file holds, a command ends with an exit code and a line, never a traceback."""

from __future__ import annotations

import copy
import io
import json
import shutil
import tarfile
from typing import Any

import numpy as np
import pytest

from forgetgauge.plan.jobs import HEAVY
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import export_run
from tests.conftest import TINY
from tests.run.test_campaign import played

NASTY: list[Any] = [
    0, -1, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.0, 1e-320, True, None, "", "x", "\x1b[31m", "a" * 5000, "é" * 300,
    [], [[]], {}, {"": {}}, [None], ["x"] * 50, {"x": [{}]}, "../../etc", "os:system", "nan", "1e999", "0x10", " ",
]  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run that kept its signals; not to be changed."""
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    played(folder)
    return folder


def places(value, way=()):
    """Every place of a nested value."""
    if way:
        yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*way, key))


def mutated(value, rng):
    """A copy with one to three places changed, left out or added."""
    changed = copy.deepcopy(value)
    for _ in range(int(rng.integers(1, 4))):
        ways = list(places(changed))
        *way, last = ways[int(rng.integers(len(ways)))]
        inside = changed
        for key in way:
            inside = inside[key]
        nasty = copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])
        match int(rng.integers(4)):
            case 0:
                del inside[last]
            case 1 if isinstance(inside, dict):
                inside[f"{last}x"] = nasty
            case _:
                inside[last] = nasty
        if not changed:
            return copy.deepcopy(value)
    return changed


def toml(value: Any) -> str:
    """As TOML spells a value in one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return '"none"'
        case dict():
            return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(part)}" for key, part in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            return json.dumps(value)


def is_told(code, err):
    return code in (0, 1, 2, 3) and (code != 2 or (err.startswith("forgetgauge: ") and err.count("\n") == 1))


def test_run_files(tmp_path, call):
    rng = np.random.default_rng(0)
    for number in range(60):
        text = "".join(f"{json.dumps(key)} = {toml(part)}\n" for key, part in mutated(TINY, rng).items())
        (tmp_path / "fuzz.toml").write_text(text, encoding="utf-8")
        code, _, err = call("validate", tmp_path / "fuzz.toml")
        assert is_told(code, err), (number, text, err)


@pytest.mark.parametrize(
    "text",
    [
        f"seed = {'9' * 5000}",
        f"seed = {2**70}",
        "[game]\npairs = 9223372036854775807",
        "[shadows]\ncount = 99999999999",
        "[strong]\nqueries = [1000000000000]",
        "[strong]\ndraws = 10000000000000",
        "[game]\nseeds = 123456789012",
        "x = " + "[" * 5000 + "]" * 5000,
        "a" + ".a" * 5000 + " = 1",
        "\x00",
        "[data]\nname = 'digits'\nfraction = nan",
        "[game]\nalpha = inf",
    ],
)
def test_run_files_that_ask_for_too_much(tmp_path, call, text):
    (tmp_path / "much.toml").write_text(text, encoding="utf-8")
    code, _, err = call("validate", tmp_path / "much.toml")
    assert code == 2
    assert is_told(code, err), err[:500]


@pytest.mark.parametrize(
    "value", ["9" * 5000, "[" * 3000, "{" * 3000, "nan", "\x1b[2J", "=", "", "'", '"""', "1e999999"]
)
def test_settings(call, value):
    for key in ("seed", "game.pairs", "data.fraction", "unlearners.x.method", "", ".", "game", "a" * 3000):
        code, _, err = call("validate", "--set", f"{key}={value}")
        assert is_told(code, err), (key, err[:300])


@pytest.mark.parametrize("content", [b"", b"[", b"null", b"[" * 100_000, b"\xff\xfe", b'{"schema": 5}', b"1" * 5000])
def test_results_that_are_none(tmp_path, call, content):
    path = tmp_path / "result.json"
    path.write_bytes(content)
    for command in (("verify", path), ("check", path, "--min-q", "0.5"), ("report", tmp_path), ("compare", path, path)):
        code, _, err = call(*command)
        assert is_told(code, err), (command[0], err[-500:])


def test_audits(tmp_path, call):
    rng = np.random.default_rng(2)
    n = 40
    whole = {
        "pair": np.repeat([0, 1], n), "side": np.tile(np.repeat([0, 1], n // 2), 2),
        "point": np.tile(np.arange(n // 2), 4), "label": np.zeros(2 * n, dtype=int),
        "set": np.array((["forget"] * 10 + ["unseen"] * 10 + ["unseen"] * 10 + ["forget"] * 10) * 2),
        "decision": rng.random(2 * n) < 0.5, "logits": rng.normal(size=(2 * n, 3)),
    }  # fmt: skip
    odd = [
        np.zeros(0), np.array(3), np.array("x"), np.full(2 * n, np.nan), np.full(2 * n, np.inf),
        np.zeros((2 * n, 2, 2)),
        np.zeros(2 * n, dtype=complex), np.array(["\x1b[31m"] * (2 * n)), np.full(2 * n, 2**62), np.zeros(2 * n - 1),
        np.array([b"x"] * (2 * n)), np.zeros(2 * n, dtype="datetime64[s]"), np.full(2 * n, -1),
        np.ones((2 * n, 0)),
    ]  # fmt: skip
    for number in range(80):
        columns = dict(whole)
        for _ in range(int(rng.integers(1, 3))):
            name = str(rng.choice([*whole, "weight", "seed", "method", "score", "loss", "shadow_logits", "features"]))
            columns[name] = odd[int(rng.integers(len(odd)))]
        np.savez(tmp_path / "x.npz", **columns)
        code, _, err = call("audit", tmp_path / "x.npz", "--out", tmp_path / "out")
        assert is_told(code, err), (number, err[-500:])
        text = ",".join(whole).replace("logits", "logit_0").encode() + b"\n" + rng.bytes(40) + b"\n"
        (tmp_path / "x.csv").write_bytes(text)
        code, _, err = call("audit", tmp_path / "x.csv", "--out", tmp_path / "out")
        assert is_told(code, err), (number, err[-500:])


def test_exports(finished, tmp_path, call):
    rng = np.random.default_rng(3)
    export_run(RunFolder(finished), tmp_path / "good.tar")
    content = (tmp_path / "good.tar").read_bytes()
    for number in range(30):
        raw = bytearray(content[: int(rng.integers(1, len(content)))] if number % 3 == 0 else content)
        for at in rng.integers(0, len(raw), int(rng.integers(1, 5))):
            raw[at] = int(rng.integers(256))
        (tmp_path / "bad.tar").write_bytes(bytes(raw))
        for command in (("import", tmp_path / "bad.tar", tmp_path / "run"), ("verify", tmp_path / "bad.tar")):
            code, _, err = call(*command)
            assert is_told(code, err), (number, err[-500:])
    with tarfile.open(tmp_path / "odd.tar", "w") as tar:
        entry = tarfile.TarInfo("run.json")
        entry.size = 2
        tar.addfile(entry, io.BytesIO(b"{}"))
    code, _, err = call("import", tmp_path / "odd.tar", tmp_path / "run")
    assert (code, is_told(code, err)) == (2, True)


def test_artefacts_with_a_right_digest_and_a_wrong_content(finished, tmp_path, call):
    rng = np.random.default_rng(4)
    wrong = [
        {}, {"x": np.zeros(3)}, {"says_forget": np.zeros(3), "margin": np.zeros(3)},
        {"outputs": np.zeros((2, 2)), "labels": np.zeros(5), "points": np.zeros(1)},
        {"says_forget": np.full(7, np.nan), "margin": np.array([], dtype=np.float32)},
    ]  # fmt: skip
    jobs = Campaign.read(RunFolder(finished)).jobs
    keys = [key for key, job in jobs.items() if job.kind not in HEAVY]
    for number in range(15):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished, tmp_path / "run")
        folder = RunFolder(tmp_path / "run")
        ledger = folder.open_ledger()
        key = keys[int(rng.integers(len(keys)))]
        receipt = folder.objects.write(key, wrong[number % len(wrong)], {"forged": True})
        ledger.record_done({key: receipt}, 1.0)
        for command in (("verify", folder.path), ("verify", folder.path, "--from", "signals"), ("status", folder.path)):
            code, _, err = call(*command)
            assert is_told(code, err), (number, jobs[key].label, err[-500:])
