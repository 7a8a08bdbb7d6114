"""Seeded fuzzers: whatever a stranger's file holds, a command ends with an exit code and a line, never a traceback."""

from __future__ import annotations

import copy
import io
import json
import os
import shutil
import signal
import tarfile
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from forgetgauge.files import with_seal
from forgetgauge.plan.jobs import HEAVY
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.frontier import resolve_frontier
from forgetgauge.store.ledger import line_of
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import export_run
from tests.conftest import TINY, TINY_TOML
from tests.report.evidence import evidence, requested
from tests.run.test_campaign import played

NASTY: list[Any] = [
    0, -1, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.0, 1e-320, True, None, "", "x", "\x1b[31m", "a" * 5000, "é" * 300,
    [], [[]], {}, {"": {}}, [None], ["x"] * 50, {"x": [{}]}, "../../etc", "os:system", "nan", "1e999", "0x10", " ",
]  # fmt: skip


TIMES = int(os.environ.get("FORGETGAUGE_FUZZ", "1"))
"""So many times the cases of the suite, each fuzzer with a seed of its own."""
SEED = int(os.environ.get("FORGETGAUGE_FUZZ_SEED", "0"))
LONGEST_S = 30
"""No count that a stranger's file claims may keep a command busy for longer."""


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


@contextmanager
def bounded():
    """Within, a command that takes too long is an error."""

    def stop(*_):
        raise TimeoutError(f"not done after {LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def sealed(record):
    """A file as a forger writes it: the digest fits."""
    return with_seal(json.dumps({**record, "sha256": ""}, indent=1, sort_keys=True) + "\n")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A comparison leaves its page where one is."""
    monkeypatch.chdir(tmp_path)


def is_told(code, err):
    """One line; where results are not to be compared, one for each reason."""
    lines = err.splitlines()
    told = all(line.startswith("forgetgauge: ") for line in lines)
    return code in (0, 1, 2, 3) and (code != 2 or (told and (len(lines) == 1 or "compare: not the same" in lines[0])))


def test_run_files(tmp_path, call):
    rng = np.random.default_rng([0, SEED])
    for number in range(40 * TIMES):
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
        "[limits]\njob_seconds = inf",
        "[until]\nhalf_width = inf",
        "[unlearners.mine]\nmethod = 'mine:method'\nclip = inf",
        "[unlearners.mine]\nmethod = 'mine:method'\nclip = [{ a = nan }]",
        f"[adversaries.mine]\nmethod = 'mine:Method'\nx = {2**64}",
        f"[learner]\nmodel_params = {{ hidden = [{2**70}] }}",
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


LONG = "a" * 5000


@pytest.mark.parametrize(
    "command",
    [
        ("validate", LONG), ("run", LONG), ("plan", LONG), ("status", LONG), ("report", LONG), ("verify", LONG),
        ("check", LONG, "--min-q", "0.5"), ("compare", LONG, "b"), ("record", LONG), ("export", LONG, "x.tar"),
        ("import", LONG, "run"), ("audit", LONG), ("draw", LONG, "--forget", "3"),
        ("score", LONG, "--adversary", "loss"),
        ("validate", "--set", f'data.name="{LONG}"'), ("validate", "--set", f'data.name="{LONG}.npz"'),
        ("validate", "--set", f'learner.params.checkpoint="{LONG}"'), ("run", "--out", LONG),
    ],
    ids=lambda command: " ".join(command).replace(LONG, "LONG"),
)  # fmt: skip
def test_a_name_too_long_for_a_file_is_one_line(tmp_path, monkeypatch, call, command):
    monkeypatch.chdir(tmp_path)
    code, _, err = call(*command)
    assert (code, is_told(code, err)) == (2, True), err[-800:]


def test_a_result_whose_parts_do_not_fit_together_is_one_line(finished, tmp_path, call):
    record = json.loads((finished / "result.json").read_text())
    record["games"][0]["decisions"] = None
    for found in record["games"][0]["comparisons"]:
        found["better"] = "nobody"
    (tmp_path / "result.json").write_text(sealed(record))
    code, _, err = call("report", tmp_path, "--unverified")
    assert (code, is_told(code, err)) == (2, True)
    assert f"{tmp_path / 'result.json'}: its parts do not fit together" in err


def met(call, path, good, out):
    """Every command that reads what is kept of a test tells what it finds."""
    for command in (
        ("verify", path),
        ("check", path, "--min-q", "0.5", "--at-chance", "--max-accuracy-loss", "0.1", "--unverified"),
        ("compare", path, good), ("compare", path, good, "--format", "json"),
        ("report", path.parent, "--unverified", "--format", "table"),
        ("record", path, "--out", out, "--unverified", "--method", "neg-grad"),
    ):  # fmt: skip
        with bounded():
            code, _, err = call(*command)
        assert is_told(code, err), (command[0], code, err[-800:])


def test_results(finished, tmp_path, call):
    rng = np.random.default_rng([1, SEED])
    whole = json.loads((finished / "result.json").read_text())
    bare = copy.deepcopy(whole)
    for game in bare["games"]:
        game["decisions"] = None
    path = tmp_path / "result.json"
    for number in range(8 * TIMES):
        record = mutated((whole, bare, bare)[number % 3], rng)
        path.write_text(sealed(record), encoding="utf-8")
        met(call, path, finished / "result.json", tmp_path / "record")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("methods", 3.5), ("methods", {"neg-grad": {"unlearner": []}}), ("data", {"name": "x", "code": 3}),
        ("learner", "x"), ("level", 10**15), ("level", None), ("adversaries", {"entropy": None}), ("seeds", [1]),
        ("pairs", 2**62), ("n_forget", -1), ("data_digest", {}), ("sensitivity", {"kind": []}),
    ],
)  # fmt: skip
def test_what_a_spec_holds_is_named_where_no_reader_could_cope_with_it(finished, tmp_path, call, key, value):
    record = json.loads((finished / "result.json").read_text())
    record["games"][0]["decisions"] = None
    record["games"][0]["spec"][key] = value
    (tmp_path / "result.json").write_text(sealed(record))
    for command in (("report", tmp_path, "--unverified"), ("compare", tmp_path, finished)):
        code, _, err = call(*command)
        assert (code, is_told(code, err)) == (2, True)
        assert f"games.0.spec{'' if key in ('level', 'pairs', 'n_forget') else f'.{key}'}" in err
        assert key in err


def test_audits(tmp_path, call):
    rng = np.random.default_rng([2, SEED])
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
    for number in range(40 * TIMES):
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


HEADER = "pair,side,point,set,label,logit_0,logit_1"
ODD_TABLES = {
    "a label beyond 64 bits": (HEADER, "0,0,1,forget,99999999999999999999,0.1,0.2", "row 1: label = '9"),
    "a class by its name": (
        HEADER,
        "0,0,1,forget,leaves,0.1,0.2",
        "give 0 for the class of logit_0, 1 for that of logit_1",
    ),
    "probabilities": ("pair,side,point,set,label,proba_0,proba_1", "", "their logarithms in logit_0, logit_1, …"),
    "one logit": (HEADER.removesuffix(",logit_1"), "0,0,1,forget,0,0.3", "a sigmoid's p, give log(1 − p) and log(p)"),
    "a side of 5,000 digits": (HEADER, f"0,{'9' * 5000},1,forget,0,0.1,0.2", "row 1: side = '999"),
    "a label of 5,000 letters": (HEADER, f"0,0,1,forget,{'x' * 5000},0.1,0.2", "…' is not a whole number"),
    "a blank number": (HEADER, "0,0,1,forget,0,,0.2", "row 1: logit_0 is blank"),
    "a column twice": (f"{HEADER},label", "", "the column label stands twice"),
    "a row too short": (HEADER, "0,0,1,forget,0,1,2\n\n0,0", "row 2 has 2 cells, but the header has 7"),
    "more columns than anybody has": (
        ",".join([HEADER, *(f"feature_{i}" for i in range(10**5))]),
        "",
        "100,007 columns",
    ),
    "one long name of many": (
        HEADER,
        f"0,0,{'x' * 10**5},forget,0,1,2\n" + "0,0,a,forget,0,1,2\n" * 10**4,
        "shorten it",
    ),
}


@pytest.mark.parametrize(("header", "body", "words"), ODD_TABLES.values(), ids=ODD_TABLES)
def test_tables_of_an_audit(tmp_path, call, header, body, words):
    (tmp_path / "x.csv").write_text(f"{header}\n{body}\n", encoding="utf-8")
    code, _, err = call("audit", tmp_path / "x.csv")
    assert (code, is_told(code, err)) == (2, True), err[-500:]
    assert words in err
    assert len(err) < 500


def test_exports(finished, tmp_path, call):
    rng = np.random.default_rng([3, SEED])
    export_run(RunFolder(finished), tmp_path / "good.tar")
    content = (tmp_path / "good.tar").read_bytes()
    for number in range(20 * TIMES):
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


FORGED: list[dict[str, Any]] = [
    {}, {"x": np.zeros(3)}, {"says_forget": np.zeros(3), "margin": np.zeros(3)},
    {"outputs": np.zeros((2, 2)), "labels": np.zeros(5), "points": np.zeros(1)},
    {"says_forget": np.full(7, np.nan), "margin": np.array([], dtype=np.float32)},
]  # fmt: skip
FACTS: list[dict[str, Any]] = [
    {}, {"utility": {}}, {"utility": {"unseen": "x"}, "n_gradients": 1}, {"utility": 3, "stated": [1], "ran": "x"},
    {"ran": {"engine": 1}, "doubts": [[]], "n_gradients": 10**400}, {"original_ran": [[]], "stated": {"": None}},
]  # fmt: skip


def forged(artefact, rng):
    """(arrays, facts) of an artefact that no job made: others, or one array of it or its facts changed."""
    arrays, facts = dict(artefact.arrays), dict(artefact.facts)
    match int(rng.integers(6)):
        case 0:
            return FORGED[int(rng.integers(len(FORGED)))], {"forged": True}
        case 1:
            return arrays, FACTS[int(rng.integers(len(FACTS)))]
        case 2:
            return arrays, mutated(facts, rng) if facts else {"doubts": 1}
    name = sorted(arrays)[int(rng.integers(len(arrays)))]
    array = arrays[name]
    odd = [
        None, array[:-1], array[:0], array[..., None], np.array(3.0), np.full(array.shape, np.nan),
        np.full(array.shape, np.inf), array.astype(np.float64), array.astype(np.int8), np.zeros(1),
        -array.astype(float), array.astype(np.bool_), np.full(array.shape, 2**62), np.concatenate([array, array]),
    ]  # fmt: skip
    arrays[name] = odd[int(rng.integers(len(odd)))]
    return {key: array for key, array in arrays.items() if array is not None}, facts


def test_artefacts_with_a_right_digest_and_a_wrong_content(finished, tmp_path, call):
    rng = np.random.default_rng([4, SEED])
    jobs = Campaign.read(RunFolder(finished)).jobs
    keys = [key for key, job in jobs.items() if job.kind not in HEAVY]
    run_file = tmp_path / "tiny.toml"
    run_file.write_text(TINY_TOML)
    for number in range(4 * TIMES):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished, tmp_path / "run")
        folder = RunFolder(tmp_path / "run")
        ledger = folder.open_ledger()
        key = keys[int(rng.integers(len(keys)))]
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            arrays, facts = forged(folder.objects.read(key, ledger.state.done[key].receipt.sha256), rng)
        ledger.record_done({key: folder.objects.write(key, arrays, facts)}, 1.0)
        for command in (
            ("verify", folder.path), ("verify", folder.path, "--from", "signals"), ("status", folder.path),
            ("score", folder.path, "--adversary", "loss"),
            ("run", run_file, "--out", folder.path, "--executor", "inline", "--quiet"),
        ):  # fmt: skip
            with bounded():
                code, _, err = call(*command)
            assert is_told(code, err), (number, jobs[key].label, err[-500:])


def asked_of(call, folder, run_file, number):
    """Every command that reads a run folder tells what it finds."""
    for command in (
        ("status", folder), ("verify", folder), ("export", folder, folder.parent / "run.tar"),
        *([("score", folder, "--adversary", "loss")] if number % 2 else []),
        *([("run", run_file, "--out", folder, "--executor", "inline", "--quiet")] if number % 2 == 0 else []),
    ):  # fmt: skip
        with bounded():
            code, _, err = call(*command)
        assert is_told(code, err), (number, command[0], code, err[-800:])


def test_run_folders(finished, tmp_path, call):
    """What was asked for, and what became of it, as a forger writes them: every digest and check is right."""
    rng = np.random.default_rng([5, SEED])
    run_file = tmp_path / "tiny.toml"
    run_file.write_text(TINY_TOML)
    asked = json.loads((finished / "run.json").read_text())
    events = [json.loads(line) for line in (finished / "ledger.jsonl").read_text().splitlines()]
    for event in events:
        del event["check"]
    for number in range(6 * TIMES):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished, tmp_path / "run")
        if number % 4 < 2:
            (tmp_path / "run/run.json").write_text(sealed(mutated(asked, rng)))
        else:
            (tmp_path / "run/ledger.jsonl").write_bytes(ledger_of(mutated(events, rng)))
        asked_of(call, tmp_path / "run", run_file, number)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A finished frontier, and so a run that chose a strength; not to be changed."""
    raw = {
        **TINY,
        "unlearners": {"retrain": {}, "none": {}, "neg-grad": {"strength": "auto"}},
        "tuning": {"points": 2, "shadows": 3, "price": 0.3},
    }
    folder = tmp_path_factory.mktemp("tuned") / "run"
    play(Campaign.plan(resolve_frontier(raw, "tuned", [], 2)), RunFolder(folder))
    return folder


def test_strengths_that_were_forged(tuned, tmp_path, call):
    """What a run with chosen strengths asked for, and what came of it, under digests that fit."""
    rng = np.random.default_rng([7, SEED])
    run_file = tmp_path / "tiny.toml"
    run_file.write_text(TINY_TOML)
    asked, whole = (json.loads((tuned / name).read_text()) for name in ("run.json", "result.json"))
    bare = copy.deepcopy(whole)
    bare["games"][0]["decisions"] = None
    odd = copy.deepcopy(bare)  # few places, so that they are met
    odd["games"][0]["methods"] = {name: one for name, one in odd["games"][0]["methods"].items() if one["tuning"]}
    odd["games"][0]["comparisons"] = []
    for number in range(3 * TIMES):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(tuned, tmp_path / "run")
        forged_run = copy.deepcopy(asked)
        which = ("methods", "price", "frontier")[number % 3]
        forged_run["games"][0][which] = mutated({"it": forged_run["games"][0][which]}, rng).get("it")
        (tmp_path / "run/run.json").write_text(sealed(forged_run))
        asked_of(call, tmp_path / "run", run_file, number)
        path = tmp_path / "result.json"
        path.write_text(sealed(mutated((whole, bare, odd)[number % 3], rng)), encoding="utf-8")
        met(call, path, tuned / "result.json", tmp_path / "record")


def ledger_of(events):
    lines, check = [], b""
    for event in events:
        line, check = line_of(event, check) if isinstance(event, dict) and event else (b"{}\n", check)
        lines.append(line)
    return b"".join(lines)


DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "odd", [float("nan"), float("inf"), -1.0, 1e300, 10**4000, "1", None, [], True, DEEP], ids=lambda odd: str(odd)[:9]
)
def test_odd_seconds_and_counts_in_a_ledger_are_one_line(finished, tmp_path, call, odd):
    events = [json.loads(line) for line in (finished / "ledger.jsonl").read_text().splitlines()]
    shutil.copytree(finished, tmp_path / "run")
    for key in ("seconds", "bytes"):
        changed = copy.deepcopy(events)
        for event in changed:
            del event["check"]
            for job in event.get("jobs", ()):
                job[key] = odd
        (tmp_path / "run/ledger.jsonl").write_bytes(ledger_of(changed))
        code, _, err = call("status", tmp_path / "run")
        assert (code, is_told(code, err)) == (2, True)


@pytest.mark.parametrize("key", ["pairs", "seeds", "n_points", "oracle_draws", "n_shadows"])
def test_a_forged_count_keeps_no_command_busy(finished, tmp_path, call, key):
    """A run folder that claims to be of more pairs, points or draws than any run file may ask for."""
    shutil.copytree(finished, tmp_path / "run")
    asked = json.loads((finished / "run.json").read_text())
    asked["games"][0][key] = 2**40
    (tmp_path / "run/run.json").write_text(sealed(asked))
    for command in (("status", tmp_path / "run"), ("score", tmp_path / "run", "--adversary", "loss")):
        with bounded():
            code, _, err = call(*command)
        assert (code, is_told(code, err)) == (2, True)
        assert key in err


def test_evidence_of_one_model(tmp_path, call):
    rng = np.random.default_rng([6, SEED])
    whole = [json.loads(one.to_json()) for one in (evidence(), requested())]
    path = tmp_path / "evidence.json"
    (tmp_path / "good.json").write_text(evidence().to_json())
    for number in range(9 * TIMES):
        path.write_text(sealed(mutated(whole[number % 2], rng)), encoding="utf-8")
        met(call, path, tmp_path / "good.json", tmp_path / "record")


def test_a_result_of_bytes_that_are_no_text_stops_no_other_command(finished, tmp_path, call):
    """It is set aside by a run of other settings, kept by `score`, and carried along in an export."""
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "tiny.toml").write_text(TINY_TOML.replace("alpha = 0.5", "alpha = 0.4"))
    (tmp_path / "run/result.json").write_bytes(b"\xff\xfe\x00")
    for command in (
        ("export", tmp_path / "run", tmp_path / "run.tar"), ("import", tmp_path / "run.tar", tmp_path / "moved"),
        ("score", tmp_path / "moved", "--adversary", "loss"),
    ):  # fmt: skip
        code, _, err = call(*command)
        assert (code, err) == (0, ""), command
    run = json.loads((tmp_path / "run/run.json").read_text())
    (tmp_path / "run/run.json").write_text(sealed({**run, "source": ""}))
    code, _, err = call("run", tmp_path / "tiny.toml", "--out", tmp_path / "run", "--executor", "inline", "--quiet")
    assert (code, err.count("\n")) == (0, 1)
    assert (tmp_path / "run/result-1.json").read_bytes() == b"\xff\xfe\x00"


@pytest.mark.parametrize("content", [b"point\n" + b"x" * 200_000, b"point,\x00\n1,2\n", b'point\n"' + b"\n" * 9])
def test_lists_to_draw_from(tmp_path, call, content):
    (tmp_path / "ids.csv").write_bytes(content)
    code, _, err = call("draw", tmp_path / "ids.csv", "--forget", "1", "--out", tmp_path / "draw.json")
    assert (code, is_told(code, err)) == (2, True)
