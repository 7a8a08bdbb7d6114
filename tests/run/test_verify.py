"""`verify`: what was changed after a run is found, and what was not is not complained of."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from forgetgauge.errors import UserError
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


def test_every_number_of_the_result_that_is_changed_is_found(copied):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    places = list(numbers(record))
    rng = np.random.default_rng(0)
    for which in rng.choice(len(places), 25, replace=False):
        changed = json.loads(path.read_text())
        *way, last = places[which]
        inside = changed
        for key in way:
            inside = inside[key]
        inside[last] += 1 if isinstance(inside[last], int) else 1e-6
        (copied / "result.json").write_text(json.dumps(changed))
        (line,) = verify(copied).problems
        assert "/".join(map(str, places[which])) in line
        path.write_text(json.dumps(record))


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
    (copied / "run.json").write_text(json.dumps(record))
    code, out, _ = call("verify", copied)
    assert code == 1
    assert "jobs of which the ledger knows nothing" in out


def test_a_word_that_was_added_is_found_and_broken_json_too(copied):
    path = copied / "result.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "certified": True}))
    assert verify(copied).problems == ("result.json, certified: true, but computed again it is absent",)
    path.write_text("{")
    assert "not valid JSON" in verify(copied).problems[0]


def test_what_cannot_be_verified_is_refused(copied, tmp_path):
    with pytest.raises(UserError, match="a result alone has no decisions"):
        verify(copied / "result.json")
    (copied / "result.json").unlink()
    with pytest.raises(UserError, match="no result yet"):
        verify(copied)
    with pytest.raises(UserError, match="not a run folder"):
        verify(tmp_path)
