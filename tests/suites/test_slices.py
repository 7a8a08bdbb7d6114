"""A table that is finished column by column, on several machines: its result grows, and still verifies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forgetgauge.errors import UserError
from forgetgauge.results.record import read_result
from forgetgauge.results.verified import verify_result
from forgetgauge.suites.invocation import NOT_ASKED, play_suite, play_together
from forgetgauge.suites.records import read_comparison
from forgetgauge.suites.slices import OTHER_SETTINGS, keep_table, missing_columns
from forgetgauge.suites.spent import spent_on_tables, totals
from forgetgauge.suites.tables import Suite, suite

FEW = ("retrain", "none")


def few(name: str, **learner: object) -> Suite:
    """Two methods, nothing to tune; the models of its columns may be given another training."""
    made = suite(name, "smoke")
    cut = []
    for column in made.columns:
        raw = {key: value for key, value in column.raw.items() if key != "tuning"}
        methods = {method: raw["unlearners"][method] for method in FEW}
        cut.append(replace(column, raw={**raw, "unlearners": methods, "learner": raw["learner"] | learner}))
    return replace(made, columns=tuple(cut))


@pytest.fixture(scope="module")
def slices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Column of Table 1 -> a machine's folder of its own, where it was played."""
    folders = {}
    for label in ("0.1", "1.0"):
        folders[label] = tmp_path_factory.mktemp("machine")
        play_suite(few("table1"), folders[label], only=[label], command=f"play {label}")
    return folders


@pytest.mark.slow
def test_columns_of_two_machines_become_one_table_that_verifies(slices, tmp_path):
    target = tmp_path / "smoke" / "table1"
    first = keep_table(few("table1"), slices["1.0"] / "table1", target)
    assert first.not_run == dict.fromkeys(("0.1", "0.4", "0.8"), NOT_ASKED)
    both = keep_table(few("table1"), slices["0.1"] / "table1", target)
    assert set(both.not_run) == {"0.4", "0.8"}
    result = read_result(target / "result.json")
    assert [game.value for game in result.games] == ["0.1", "1.0"]
    parts = [read_result(slices[label] / "table1/result.json") for label in ("0.1", "1.0")]
    assert [game.methods for game in result.games] == [part.games[0].methods for part in parts]
    assert result.total_seconds == pytest.approx(sum(part.total_seconds for part in parts))
    assert sum(stack.models for stack in result.stacks) == sum(s.models for part in parts for s in part.stacks)
    assert [one.command for one in both.invocations] == ["play 1.0", "play 0.1"]
    verified = verify_result(target / "result.json")
    assert verified.problems == ()
    assert verified.n_values > 100
    assert read_comparison(target / "comparison.json") == both

    again = keep_table(few("table1"), slices["0.1"] / "table1", target)  # nothing is counted twice
    assert (again.work_s, again.invocations) == (both.work_s, both.invocations)


@pytest.mark.slow
def test_a_stored_column_of_other_settings_does_not_stand_beside_new_ones(slices, tmp_path):
    target = tmp_path / "smoke" / "table1"
    keep_table(few("table1"), slices["1.0"] / "table1", target)
    other = tmp_path / "other"
    changed = few("table1", epochs=1)
    play_suite(changed, other, only=["0.1"], command="play with one epoch")
    found = keep_table(changed, other / "table1", target)
    assert found.not_run == {"0.4": NOT_ASKED, "0.8": NOT_ASKED, "1.0": OTHER_SETTINGS}
    assert [one.command for one in found.invocations] == ["play with one epoch"]


@pytest.mark.slow
def test_a_column_that_another_table_has_is_taken_from_it(slices, tmp_path):
    keep_table(few("table1"), slices["1.0"] / "table1", tmp_path / "smoke" / "table1")
    machine = tmp_path / "machine"
    play_suite(few("table2"), machine, only=["0.67"], command="play")
    found = keep_table(few("table2"), machine / "table2", tmp_path / "smoke" / "table2")
    assert set(found.not_run) == {"0.25", "0.4"}
    assert any("α = 0.1 is taken from Table 1, which counts its time." in note for note in found.notes)
    assert found.work_s == read_result(machine / "table2/result.json").total_seconds
    result = read_result(tmp_path / "smoke/table2/result.json")
    assert [game.value for game in result.games] == ["0.1", "0.67"]
    assert verify_result(tmp_path / "smoke/table2/result.json").problems == ()


@pytest.mark.slow
def test_a_table_of_which_nothing_is_finished_leaves_what_is_stored(slices, tmp_path):
    target = tmp_path / "smoke" / "table1"
    keep_table(few("table1"), slices["1.0"] / "table1", target)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "comparison.json").write_bytes((slices["0.1"] / "table1/comparison.json").read_bytes())
    keep_table(few("table1"), unfinished, target)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before


@pytest.mark.slow
def test_two_tables_together_are_what_they_are_one_after_another_and_trained_in_one_stack(slices, tmp_path):
    suites, only = [few("table1"), few("table2")], {"table1": ["0.1"], "table2": ["0.67"]}
    ending = play_together(suites, tmp_path, only=only, command="both")
    assert (ending.failed, ending.out_of_time) == ({}, False)
    for made in suites:
        invoked, found = play_suite(made, tmp_path, only=only[made.name], command="one")
        assert invoked.ending.n_run == 0  # all was there
        assert [one.command for one in found.invocations] == ["both"]
        assert found.invocations[0].n_jobs == ending.n_run
    alone = read_result(slices["0.1"] / "table1/result.json").games[0]
    both = read_result(tmp_path / "table1/result.json")
    assert both.games[0].value == alone.value == "0.1"
    assert both.games[0].spec == alone.spec
    widths = [
        max(stack.width for stack in one.stacks) for one in (both, read_result(slices["0.1"] / "table1/result.json"))
    ]
    assert widths[0] > widths[1]
    spent = spent_on_tables(read_comparison(tmp_path / name / "comparison.json") for name in ("table1", "table2"))
    assert sum(totals(spent).values()) == pytest.approx(both_wall(tmp_path), abs=0.2)  # once, not once for each


def both_wall(folder: Path) -> float:
    return read_comparison(folder / "table1/comparison.json").invocations[0].wall_s


@pytest.mark.slow
def test_a_stored_table_that_cannot_be_read_is_not_written_over(slices, tmp_path):
    target = tmp_path / "smoke" / "table1"
    keep_table(few("table1"), slices["1.0"] / "table1", target)
    damaged = (target / "result.json").read_bytes().replace(b'"quality": ', b'"quality":  ', 1)
    (target / "result.json").write_bytes(damaged)
    with pytest.raises(UserError, match="was changed after it was written"):
        keep_table(few("table1"), slices["0.1"] / "table1", target)
    with pytest.raises(UserError, match="was changed after it was written"):
        missing_columns(few("table1"), target)
    assert (target / "result.json").read_bytes() == damaged
    assert missing_columns(few("table2"), target.parent / "table2") == ["0.1", "0.25", "0.4", "0.67"]  # a neighbour's


@pytest.mark.slow
def test_only_what_is_missing_is_asked_for(slices, tmp_path):
    target = tmp_path / "smoke" / "table1"
    assert missing_columns(few("table1"), target) == ["0.1", "0.4", "0.8", "1.0"]
    keep_table(few("table1"), slices["1.0"] / "table1", target)
    assert missing_columns(few("table1"), target) == ["0.1", "0.4", "0.8"]
    assert missing_columns(few("table2"), target.parent / "table2") == ["0.25", "0.4", "0.67"]  # 0.1 is η = 1.0
    assert missing_columns(few("table1", epochs=1), target) == ["0.1", "0.4", "0.8", "1.0"]  # other settings


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("table1", "--missing"), "--missing looks for what --results has"),
        (("table1", "--missing", "--results", "kept", "--column", "0.1"), "and no --column"),
        (("toy", "--missing", "--results", "kept"), "--missing goes with tables: toy has no columns"),
        (("table1", "accuracy", "--together"), "--together goes with tables: accuracy is none"),
    ],
)
def test_what_cannot_be_looked_for_is_one_line(call, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("reproduce", *arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
