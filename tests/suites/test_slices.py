"""A table that is finished column by column, on several machines: its result grows, and still verifies."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from forgetgauge.errors import UserError
from forgetgauge.results.made import FailureResult, MadeResult
from forgetgauge.results.record import Result, read_result
from forgetgauge.results.verified import verify_result
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites import slices as keeping
from forgetgauge.suites import tables
from forgetgauge.suites.device_time import spent_on_tables, totals
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.invocation import NOT_ASKED, play_suite, play_together
from forgetgauge.suites.page import render_markdown
from forgetgauge.suites.records import read_comparison
from forgetgauge.suites.slices import OTHER_SETTINGS, Finished, _joined, _made_of, keep_table, missing_columns
from forgetgauge.suites.tables import Suite, suite
from tests.suites.conftest import method, result_of

FEW = ("retrain", "none")
TAKEN = "α = 0.1 is taken from Table 1, which counts its time."


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
    assert TAKEN in " ".join(found.notes)
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
def test_two_tables_together_are_what_they_are_one_after_another_and_trained_in_one_stack(slices, tmp_path, call):
    suites, only = [few("table1"), few("table2")], {"table1": ["0.1"], "table2": ["0.67"]}
    ending = play_together(suites, tmp_path, only=only, command="both")
    assert (ending.failed, ending.out_of_time) == ({}, False)
    assert call("status", tmp_path)[0] == 0  # before either table had a pass of its own
    assert call("export", tmp_path, tmp_path / "moved.tar")[0] == 0
    assert call("import", tmp_path / "moved.tar", tmp_path / "there")[0] == 0
    for made in suites:
        assert play_suite(made, tmp_path / "there", only=only[made.name])[0].ending.n_run == 0
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


@pytest.mark.slow
def test_strengths_that_were_chosen_together_are_on_record(tmp_path):
    """So that `export` finds what was made with them."""
    made = [tuned(few(name)) for name in ("table1", "table2")]
    play_together(made, tmp_path, only={"table1": ["0.1"], "table2": ["0.67"]})
    for game in RunFolder(tmp_path).read_run()["games"]:
        assert game["methods"]["ssd"]["tuning"]["chosen"] is not None
    assert [game["value"] for game in RunFolder(tmp_path).read_run()["games"]] == ["table1: 0.1", "table2: 0.67"]


def tuned(made: Suite) -> Suite:
    """With a method whose strength is chosen in the run, among two."""
    full = {column.label: column.raw for column in suite(made.name, "smoke").columns}
    columns = []
    for column in made.columns:
        raw = full[column.label]
        methods = {**column.raw["unlearners"], "ssd": raw["unlearners"]["ssd"]}
        tuning = {**raw["tuning"], "points": 2, "shadows": 3}
        columns.append(replace(column, raw={**column.raw, "unlearners": methods, "tuning": tuning}))
    return replace(made, columns=tuple(columns))


def test_tables_that_keep_weights_are_not_played_together_with_those_that_do_not(tmp_path):
    """Or those of Table 1 would be dropped, on which `strengths` is played."""
    light = few("table2")
    light = replace(light, columns=tuple(replace(c, raw={**c.raw, "keep": "signals"}) for c in light.columns))
    with pytest.raises(UserError, match="weights are kept of table1, but not of table2: give two commands"):
        play_together([few("table1"), light], tmp_path, only={})
    assert not list(tmp_path.iterdir())


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


def edited(folder: Path, copy: Path, edit: Callable[[Result], Result]) -> Path:
    """A machine's folder of Table 1 whose result is another, and the comparison with it."""
    shutil.copytree(folder / "table1", copy)
    result = edit(read_result(copy / "result.json"))
    comparison = replace(read_comparison(copy / "comparison.json"), digests=result.digests)
    result.save(copy / "result.json")
    (copy / "comparison.json").write_text(comparison.to_json())
    return copy


def of_game(**changed: object) -> Callable[[Result], Result]:
    return lambda result: replace(result, games=[replace(game, **changed) for game in result.games])


@pytest.fixture
def table1(slices, tmp_path) -> Path:
    """What is kept of Table 1: η = 1.0."""
    target = tmp_path / "kept" / "table1"
    keep_table(few("table1"), slices["1.0"] / "table1", target)
    return target


@pytest.fixture
def told(monkeypatch) -> list[str]:
    """What was said; results that are made up here need not verify."""
    monkeypatch.setattr(keeping, "refuse_differing", lambda *_: None)
    return []


@pytest.mark.slow
def test_a_result_of_an_earlier_command_is_not_taken_for_what_this_one_finished(slices, table1, tmp_path, told):
    """The command of today ran out of time: its comparison has no result, and yesterday's still lies beside it."""
    stopped = edited(slices["0.1"], tmp_path / "stopped", lambda result: result)
    comparison = replace(read_comparison(stopped / "comparison.json"), digests={})
    (stopped / "comparison.json").write_text(comparison.to_json())
    before = {path.name: path.read_bytes() for path in table1.iterdir()}
    keep_table(few("table1"), stopped, table1, told.append)
    assert {path.name: path.read_bytes() for path in table1.iterdir()} == before
    assert told == ["table1: no column is finished; what is kept stays as it is"]


@pytest.mark.slow
def test_what_was_played_by_other_settings_is_not_kept(slices, table1, told):
    keep_table(few("table1", epochs=1), slices["0.1"] / "table1", table1, told.append)
    assert told == ["table1: η = 0.1 is not kept: it was played by other settings than the table has today"]
    assert [game.value for game in read_result(table1 / "result.json").games] == ["1.0"]


@pytest.mark.slow
def test_a_column_with_fewer_pairs_does_not_replace_one_with_more(slices, table1, tmp_path, told):
    whole = read_result(table1 / "result.json").games[0]
    halved = {name: replace(method, n_pairs=1) for name, method in whole.methods.items()}
    worse = edited(slices["1.0"], tmp_path / "worse", of_game(methods=halved))
    keep_table(few("table1"), worse, table1, told.append)
    assert told == [
        "table1: η = 1.0 stays as it was kept, with 4 completed pairs of all methods; what was played now has 2"
    ]
    assert read_result(table1 / "result.json").games == [whole]


@pytest.mark.slow
def test_a_column_in_which_all_failed_is_missing(slices, table1, tmp_path, told):
    methods = read_result(table1 / "result.json").games[0].methods
    failed = {name: replace(method, quality=None, n_pairs=0) for name, method in methods.items()}
    keep_table(few("table1"), edited(slices["0.1"], tmp_path / "failed", of_game(methods=failed)), table1)
    assert missing_columns(few("table1"), table1) == ["0.1", "0.4", "0.8"]
    assert "0.1" not in read_comparison(table1 / "comparison.json").not_run  # it shows that nothing came of it


def test_retrain_and_none_alone_are_no_finished_column():
    played = {"retrain": method(1.0, None), "none": method(0.4, None)}
    game = result_of({"1.0": {**played, "neg-grad": method(None, None)}}).games[0]
    finished = Finished(few("table1").columns[0], game, MadeResult({}, [], [], 0.0))
    assert not finished.is_judged
    assert replace(finished, game=replace(game, methods={**game.methods, "ssd": method(0.5, None)})).is_judged
    assert replace(finished, game=replace(game, methods=played)).is_judged  # nothing else was asked for


@pytest.mark.slow
def test_numbers_that_were_computed_anew_replace_those_that_are_kept(slices, table1, tmp_path, told):
    """Same decisions, other numbers: a later version computes them so."""
    keep_table(few("table1"), edited(slices["1.0"], tmp_path / "again", of_game(rank_stability=0.125)), table1)
    assert read_result(table1 / "result.json").games[0].rank_stability == 0.125


@pytest.mark.slow
def test_a_table_that_was_half_written_is_written_again(slices, table1):
    whole = {path.name: path.read_bytes() for path in table1.iterdir()}
    comparison = replace(read_comparison(table1 / "comparison.json"), digests={"decisions": "of another"})
    (table1 / "comparison.json").write_text(comparison.to_json())
    keep_table(few("table1"), slices["1.0"] / "table1", table1)
    assert {path.name: path.read_bytes() for path in table1.iterdir()} == whole


@pytest.mark.slow
def test_a_kept_result_that_does_not_say_what_its_decisions_say_is_not_joined(slices, table1):
    of_game(rank_stability=0.125)(read_result(table1 / "result.json")).save(table1 / "result.json")
    with pytest.raises(UserError, match="does not say what its decisions say"):
        keep_table(few("table1"), slices["0.1"] / "table1", table1)
    with pytest.raises(UserError, match="does not say what its decisions say"):
        missing_columns(few("table1"), table1)
    assert "0.1" in missing_columns(few("table2"), table1.with_name("table2"))  # nor taken for another table


@pytest.fixture(scope="module")
def second_table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Column of Table 2 -> where it was played."""
    folders = {label: tmp_path_factory.mktemp("machine") for label in ("0.25", "0.67")}
    for label, folder in folders.items():
        play_suite(few("table2"), folder, only=[label], command=f"play {label}")
    return folders


@pytest.mark.slow
def test_what_is_taken_from_another_table_says_so_however_often_a_table_grows(slices, second_table, table1):
    target = table1.with_name("table2")
    for label in ("0.67", "0.25"):
        found = keep_table(few("table2"), second_table[label] / "table2", target)
        assert TAKEN in " ".join(found.notes)
    result = read_result(target / "result.json")
    assert [(game.value, game.spec["value"]) for game in result.games] == [(x, x) for x in ("0.1", "0.25", "0.67")]
    parts = [read_result(second_table[label] / "table2/result.json") for label in ("0.25", "0.67")]
    assert result.total_seconds == pytest.approx(sum(part.total_seconds for part in parts))
    assert " and " not in result.environment["commit"]  # one code made all
    commands = result.environment["command"].split(" and ")
    assert len(commands) == len(set(commands))


@pytest.mark.slow
def test_a_copy_gives_way_to_the_column_it_is_a_copy_of_and_stays_where_that_is_gone(
    slices, second_table, table1, tmp_path, told
):
    target = table1.with_name("table2")
    keep_table(few("table2"), second_table["0.67"] / "table2", target)
    keep_table(few("table1"), edited(slices["1.0"], tmp_path / "again", of_game(rank_stability=0.125)), table1)
    keep_table(few("table2"), second_table["0.25"] / "table2", target)
    assert read_result(target / "result.json").games[0].rank_stability == 0.125
    shutil.rmtree(table1)
    found = keep_table(few("table2"), second_table["0.25"] / "table2", target)
    assert "0.1" not in found.not_run
    assert TAKEN in " ".join(found.notes)


@pytest.mark.slow
def test_time_and_failures_are_of_the_columns_that_are_there(slices, table1, tmp_path, told):
    """Two columns of one run, each with a failure; one is replaced, and another table takes the other."""
    keep_table(few("table1"), slices["0.1"] / "table1", table1)
    both = read_result(table1 / "result.json")
    failed = {game.value: FailureResult(f"job at {game.value}", "", "") for game in both.games}
    games = [replace(game, made=replace(game.made, failures=[failed[game.value]])) for game in both.games]
    replace(both, games=games, failures=list(failed.values())).save(table1 / "result.json")

    again = edited(slices["0.1"], tmp_path / "again", lambda result: replace(result, total_seconds=1000.0))
    found = keep_table(few("table1"), again, table1)
    assert found.work_s == pytest.approx(1000.0 + games[1].made.total_seconds)
    assert found.failures == ["job at 1.0: "]


@pytest.mark.slow
def test_games_of_one_run_say_how_each_was_made(slices, tmp_path):
    play_suite(few("table1"), tmp_path / "machine", only=["0.1", "1.0"])
    both = read_result(tmp_path / "machine/table1/result.json")
    made = [game.made for game in both.games]
    assert sum(one.total_seconds for one in made) == pytest.approx(both.total_seconds, abs=0.01)
    assert sum(s.models for one in made for s in one.stacks) == sum(s.models for s in both.stacks)
    target = tmp_path / "kept/table1"
    keep_table(few("table1"), tmp_path / "machine/table1", target)
    found = keep_table(few("table1"), slices["0.1"] / "table1", target)  # one of the two again
    again = read_result(slices["0.1"] / "table1/result.json").total_seconds
    assert found.work_s == pytest.approx(again + made[1].total_seconds, abs=0.01)
    assert verify_result(target / "result.json").problems == ()


def test_columns_of_older_results_share_their_time_and_have_failures_where_pairs_are_missing():
    short = replace(method(0.5, None), n_pairs=3)
    result = result_of({"0.1": {"ssd": method(0.5, None)}, "1.0": {"ssd": short}})
    games = [replace(game, spec={"pairs": 6}) for game in result.games]
    older = replace(result, games=games, failures=[FailureResult("job", "", "")])
    how = [_made_of(older, game, "") for game in games]
    assert [one.failures for one in how] == [[], older.failures]
    made, column = few("table1"), few("table1").columns[0]
    every = [Finished(column, *both) for both in zip(games, how, strict=True)]
    for columns in (every, every[:1]):
        assert _joined(made, columns).total_seconds == older.total_seconds  # never lost


@pytest.mark.slow
def test_columns_of_a_table_of_methods_are_kept_one_by_one(tmp_path):
    made, target, every = suite("table8", "smoke"), tmp_path / "kept" / "table8", tmp_path / "machine"
    play_suite(made, every, only=["0.8", "Retrain"])
    keep_table(made, every / "table8", target)
    assert missing_columns(made, target) == ["0.6", "0.4", "0.3"]
    other = tmp_path / "other"
    play_suite(made, other, only=["0.3"])
    found = keep_table(made, other / "table8", target)
    assert found.not_run == {"0.6": NOT_ASKED, "0.4": NOT_ASKED}
    assert missing_columns(made, target) == ["0.6", "0.4"]


@pytest.mark.slow
def test_only_what_is_missing_is_asked_for(slices, tmp_path):
    target = tmp_path / "smoke" / "table1"
    assert missing_columns(few("table1"), target) == ["0.1", "0.4", "0.8", "1.0"]
    keep_table(few("table1"), slices["1.0"] / "table1", target)
    assert missing_columns(few("table1"), target) == ["0.1", "0.4", "0.8"]
    assert missing_columns(few("table2"), target.parent / "table2") == ["0.25", "0.4", "0.67"]  # 0.1 is η = 1.0
    assert missing_columns(few("table1", epochs=1), target) == ["0.1", "0.4", "0.8", "1.0"]  # other settings


@pytest.mark.slow
def test_a_table_whose_columns_other_tables_have_is_written_from_there(slices, table1, tmp_path, call, monkeypatch):
    """It would be missing from the page, or of yesterday's settings, though nothing is missing."""
    shared = [column for column in few("table2").columns if column.label == "0.1"]
    monkeypatch.setattr(tables, "suite", lambda *_, **__: replace(few("table2"), columns=tuple(shared)))
    results, target = tmp_path / "kept-by-command", tmp_path / "kept-by-command/reproduce/smoke/table2"
    shutil.copytree(table1, target.with_name("table1"))
    yesterday = tmp_path / "yesterday"
    play_suite(few("table2", epochs=1), yesterday, only=["0.1"], command="play with one epoch")
    keep_table(few("table2", epochs=1), yesterday / "table2", target)
    for taken in (": its columns are taken from other tables", ""):
        code, out, err = call("reproduce", "table2", "--missing", "--results", results)
        assert (code, out, err) == (0, f"table2: nothing is missing{taken}\n", "")
        found = read_comparison(target / "comparison.json")
        assert (found.not_run, found.invocations, found.work_s) == ({}, [], 0.0)
        assert TAKEN in " ".join(found.notes)
    (original,), (copy,) = (read_result(one / "result.json").games for one in (table1, target))
    assert copy.methods == original.methods
    assert verify_result(target / "result.json").problems == ()
    assert TAKEN in render_markdown(read_findings(results))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("table1", "--missing"), "--missing looks for what --results has"),
        (("table1", "--missing", "--results", "kept", "--column", "0.1"), "and no --column"),
        (("toy", "--missing", "--results", "kept"), "--missing goes with tables, not with toy"),
        (("table1", "accuracy", "--together"), "--together goes with tables, not with accuracy"),
        (("list", "--missing", "--results", "kept"), "--missing goes with tables, not with list"),
        (("page", "--together"), "--together goes with tables, not with page"),
        (("replicates", "--run", "run", "--together"), "--together goes with tables, not with replicates"),
        (("table1", "table2", "--column", "1.0"), "table2: unknown column '1.0'"),
        (("table1", "accuracy", "--column", "1.0"), "accuracy: unknown column '1.0'"),
        (("page", "--results", ".", "--out", "."), "--out .: a folder: name the Markdown page"),
        (("page", "--results", ".", "--out", ""), "out must name a folder or a file, not ''"),
        (("toy", "--results", "a-file"), "--results a-file: not a folder"),
        (("toy", "--results", "a-file/within"), "--results a-file/within: not a folder"),
        (("page", "--results", "a-file"), "--results a-file: not a folder"),
    ],
)
def test_what_cannot_be_looked_for_is_one_line(call, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    code, out, err = call("reproduce", *arguments)
    assert (code, out) == (2, "")  # nothing was played before
    assert said in err
    assert "Traceback" not in err
