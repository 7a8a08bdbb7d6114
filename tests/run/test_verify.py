"""`verify`: what was changed after a run is found, and what was not is not complained of."""

from __future__ import annotations

import base64
import json
import shutil
import zlib

import numpy as np
import pytest

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.files import with_seal
from forgetgauge.report.html import render_report
from forgetgauge.results.record import read_result
from forgetgauge.run.campaign import Campaign
from forgetgauge.run.options import RunOptions
from forgetgauge.run.verify import verify
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import export_run
from tests.run.test_campaign import campaign, play


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify") / "run"
    play(campaign(), RunFolder(folder))
    return folder


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def test_a_run_that_nobody_touched_is_verified_as_a_folder_and_as_one_file(made, tmp_path, call):
    found = verify(made)
    assert found.problems == ()
    assert found.n_artefacts > 20
    assert found.n_values > 100
    export_run(RunFolder(made), tmp_path / "run.tar")
    assert verify(tmp_path / "run.tar").n_values == found.n_values
    code, out, _ = call("verify", made)
    assert code == 0
    assert out.startswith("verified: ")


def numbers(value, place=()):
    """Where every number of a record stands."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(part, (*place, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


def changed_at(record, place):
    """A copy of a record with one number moved."""
    changed = json.loads(json.dumps(record))
    *way, last = place
    inside = changed
    for key in way:
        inside = inside[key]
    inside[last] += 1 if isinstance(inside[last], int) else 1e-6
    return changed


def sealed(record):
    """The text of a result, its digest as it should be: what somebody writes who wants to deceive."""
    return with_seal(json.dumps({**record, "sha256": ""}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def test_every_number_of_the_result_that_is_changed_is_found_even_under_a_new_digest(copied):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    assert path.read_text() == sealed(record)
    places = list(numbers(record))
    rng = np.random.default_rng(0)
    for which in rng.choice(len(places), 10, replace=False):
        place = "/".join(map(str, places[which]))
        path.write_text(sealed(changed_at(record, places[which])))
        assert any(place in line for line in verify(copied).problems), place
        path.write_text(json.dumps(changed_at(record, places[which])))
        assert "was changed after it was written" in verify(copied).problems[0]


FOLLOWS = ("quality", "quality_plugin", "interval", "p_value", "epsilon", "noise_floor", "advantage", "by_pair",
           "difference", "bounded_interval", "model_log10_p", "resolution", "rank_stability")  # fmt: skip


def test_a_result_alone_is_computed_again_from_the_decisions_it_carries(made, tmp_path, call):
    path = tmp_path / "alone.json"
    path.write_bytes((made / "result.json").read_bytes())
    found = verify(path)
    assert found.problems == ()
    assert found.n_values > 100
    record = json.loads(path.read_text())
    places = [place for place in numbers(record) if any(name in place for name in FOLLOWS) and "strong" not in place
              and "diagnostics" not in place and "metrics" not in place and "spec" not in place]  # fmt: skip
    rng = np.random.default_rng(1)
    for which in rng.choice(len(places), 15, replace=False):
        path.write_text(sealed(changed_at(record, places[which])))
        assert any("/".join(map(str, places[which])) in line for line in verify(path).problems), places[which]
    code, out, _ = call("verify", path)
    assert code == 1
    assert "computed again it is" in out


def test_every_byte_of_a_result_that_is_changed_is_found(made, tmp_path):
    path, content = tmp_path / "alone.json", (made / "result.json").read_bytes()
    rng = np.random.default_rng(2)
    for at in rng.choice(len(content), 40, replace=False):
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :])
        assert verify(path).problems, at


def test_decisions_that_claim_more_than_they_hold_are_not_expanded(made, tmp_path):
    record = json.loads((made / "result.json").read_text())
    path = tmp_path / "alone.json"
    for change in ({"n_points": 10**12}, {"decisions": "AAAA"}, {"decisions": "!"}, {"methods": ["nobody"]}):
        changed = json.loads(json.dumps(record))
        changed["games"][0]["decisions"]["pairs"][0].update(change)
        path.write_text(sealed(changed))
        assert "cannot be judged" in verify(path).problems[0], change


@pytest.mark.parametrize("name", ["run.json", "ledger.jsonl", "report.html"])
def test_every_byte_of_every_other_file_that_is_changed_is_found(copied, name):
    if name == "report.html":
        (copied / name).write_text(render_report(read_result(copied / "result.json")))
    path, rng = copied / name, np.random.default_rng(3)
    content = path.read_bytes()
    for at in [*rng.choice(len(content), 8, replace=False), len(content) - 1]:
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :])
        assert verify(copied).problems, at


def test_every_byte_of_an_export_that_is_changed_is_found(made, tmp_path):
    export_run(RunFolder(made), tmp_path / "run.tar")
    content, rng = (tmp_path / "run.tar").read_bytes(), np.random.default_rng(4)
    for at in [0, *rng.choice(len(content), 25, replace=False), len(content) - 1]:
        changed = content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
        (tmp_path / "x.tar").write_bytes(changed)
        assert verify(tmp_path / "x.tar").problems, at
    (tmp_path / "x.tar").write_bytes(content + b"more")
    assert verify(tmp_path / "x.tar").problems


def test_every_artefact_of_which_a_byte_is_changed_is_found(copied):
    objects = sorted(path for path in (copied / "objects").rglob("*") if path.is_file())
    rng = np.random.default_rng(0)
    for path in [objects[i] for i in rng.choice(len(objects), 15, replace=False)]:
        content = path.read_bytes()
        at = int(rng.integers(len(content)))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert any("missing or damaged" in line for line in verify(copied).problems)
        path.write_bytes(content)
    objects[0].unlink()
    assert any("missing or damaged" in line for line in verify(copied).problems)


def test_a_run_file_that_was_changed_asks_for_other_jobs(copied, call):
    record = json.loads((copied / "run.json").read_text())
    record["games"][0]["alpha"] = 0.3
    (copied / "run.json").write_text(with_seal(json.dumps({**record, "sha256": ""}, indent=1) + "\n"))
    code, out, _ = call("verify", copied)
    assert code == 1
    assert "jobs of which the ledger knows nothing" in out


def test_a_word_that_was_added_is_found_and_broken_json_too(copied):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    path.write_text(sealed({**record, "certified": True}))
    assert "certified" in verify(copied).problems[0]
    path.write_text("{")
    assert "cannot be read" in verify(copied).problems[0]


def test_a_result_that_was_changed_is_neither_reported_nor_judged(copied, call):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    record["games"][0]["methods"]["none"]["quality"] = 0.999
    for text, why in ((json.dumps(record), "was changed after"), (sealed(record), "does not say what its decisions")):
        path.write_text(text)
        code, _, err = call("report", copied)
        assert (code, why in err) == (2, True)
    assert call("report", copied, "--unverified")[0] == 0


def test_what_cannot_be_verified_is_refused(copied, tmp_path):
    record = json.loads((copied / "result.json").read_text())
    for game in record["games"]:
        game["decisions"] = None
    (tmp_path / "old.json").write_text(sealed(record))
    with pytest.raises(UserError, match="carries no decisions"):
        verify(tmp_path / "old.json")
    (copied / "result.json").unlink()
    with pytest.raises(UserError, match="no result yet"):
        verify(copied)
    with pytest.raises(UserError, match="not a run folder"):
        verify(tmp_path)


def test_adversaries_can_be_asked_once_more_by_the_signals(made, copied, call):
    assert verify(made, "signals").problems == ()
    folder = RunFolder(copied)
    jobs, ledger = Campaign.read(folder).jobs, folder.open_ledger()
    key = next(key for key, job in jobs.items() if job.kind == "decide")
    stored = folder.objects.read(key, ledger.state.done[key].receipt.sha256)
    says = stored.arrays["says_forget"].copy()
    says[:3] ^= True
    receipt = folder.objects.write(key, {**stored.arrays, "says_forget": says}, stored.facts)  # a forger's artefact
    ledger.record_done({key: receipt}, 1.0)
    code, out, _ = call("verify", copied, "--from", "signals")
    assert code == 1
    assert "3 of " in out
    assert "decisions are others, asked once more" in out
    assert "asked once more" not in call("verify", copied)[1]


def test_what_has_no_signals_is_not_verified_from_them(made, call):
    code, _, err = call("verify", made / "result.json", "--from", "signals")
    assert (code, "carries decisions alone" in err) == (2, True)
    code, _, err = call("verify", made, "--from", "signal")
    assert (code, "did you mean 'signals'" in err) == (2, True)


def test_a_run_of_which_a_method_failed_is_verified_too(tmp_path):
    def raises(model, retain, forget, context):
        raise ValueError("no")

    name = plugins.unlearners.bind(raises)
    folder = RunFolder(tmp_path / "run")
    tables = {"unlearners": {"retrain": {}, "none": {}, "mine": {"method": name}}}
    play(campaign(**tables), folder, RunOptions(trial=False))
    assert [failure.error for failure in read_result(folder.result).failures]
    assert verify(folder.path).problems == ()
    assert verify(folder.result).problems == ()
    export_run(folder, tmp_path / "run.tar")
    assert verify(tmp_path / "run.tar").problems == ()


def test_a_result_without_its_decisions_passes_no_gate(copied, call):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    record["games"][0]["decisions"] = None
    path.write_text(sealed(record))
    for command in (("report", copied), ("check", path, "--min-q", "0.1"), ("record", path, "--out", copied / "r")):
        code, _, err = call(*command)
        assert (code, "carries no decisions" in err) == (2, True), command


def test_a_number_under_a_new_digest_passes_no_gate(copied, call):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    record["games"][0]["methods"]["none"]["interval"] = [0.99, 1.0]
    path.write_text(sealed(record))
    for command in (
        ("check", path, "--min-q", "0.95"),
        ("compare", path, path),
        ("record", path, "--out", copied / "r", "--method", "none"),
    ):
        code, _, err = call(*command)
        assert (code, "does not say what its decisions say" in err) == (2, True), command


@pytest.mark.parametrize("change", [{"until": [1]}, {"methods": [1]}, {"level": "x"}, {"seed": None}, {"pairs": {}}])
def test_a_strangers_settings_are_a_problem_and_no_traceback(made, tmp_path, change):
    record = json.loads((made / "result.json").read_text())
    record["games"][0]["spec"] |= change
    path = tmp_path / "alone.json"
    path.write_text(sealed(record))
    assert verify(path).problems


def test_more_points_than_a_game_has_are_not_expanded(made, tmp_path):
    record = json.loads((made / "result.json").read_text())
    one = record["games"][0]["decisions"]["pairs"][0]
    n = 40_000_000
    bits = 2 * n * len(one["methods"]) * len(record["games"][0]["decisions"]["adversaries"])
    zeros = base64.b64encode(zlib.compress(bytes(n // 8), 9)).decode()
    one |= {"n_points": n, "in_forget": zeros, "decisions": base64.b64encode(zlib.compress(bytes(bits // 8))).decode()}
    path = tmp_path / "bomb.json"
    path.write_text(sealed(record))
    assert "more points" in verify(path).problems[0]
