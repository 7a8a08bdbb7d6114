"""Tables played for real, at smoke scale: shared models, slices, moves; three methods, or all where CI wants them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from forgetgauge.data import loading
from forgetgauge.errors import UserError
from forgetgauge.plan.game import PRICE_RULE, Game, game_from_json, game_to_json
from forgetgauge.plan.jobs import HEAVY
from forgetgauge.results.decisions import unpack_decisions
from forgetgauge.results.record import read_result, without_timings
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import decided
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites import invocation
from forgetgauge.suites.availability import is_of
from forgetgauge.suites.invocation import NOT_YET, Invoked, plan_suite, play_suite
from forgetgauge.suites.readings import EXCEEDED
from forgetgauge.suites.records import TableComparison, read_comparison
from forgetgauge.suites.slices import missing_columns
from forgetgauge.suites.tables import Suite, TableColumn, suite

FEW = ("retrain", "none", "neg-grad")


class Table(NamedTuple):
    """What one invocation left of a table."""

    invoked: Invoked
    comparison: TableComparison


def play(*arguments: Any, **how: Any) -> Table:
    return Table(*play_suite(*arguments, **how))


def few_methods(name: str, replicates: int = 1) -> Suite:
    made = suite(name, "smoke", replicates)
    cut = [{**c.raw, "unlearners": {method: c.raw["unlearners"][method] for method in FEW}} for c in made.columns]
    return replace(made, columns=tuple(replace(c, raw=raw) for c, raw in zip(made.columns, cut, strict=True)))


def trained(folder: Path) -> dict[str, int]:
    """Model -> how often it was made."""
    runs = RunFolder(folder).open_ledger().state.n_runs
    jobs = {}
    for name in ("table1", "table2"):
        if (folder / name).exists():
            jobs |= plan_suite(few_methods(name)).campaign.jobs
    return {key: n for key, n in runs.items() if key in jobs and jobs[key].kind in HEAVY}


def result_without_timings(folder: Path, name: str) -> object:
    return without_timings(json.loads((folder / name / "result.json").read_text()))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Table, bytes, Table]:
    """(folder, Table 1 at η = 1, its result as it was then, Table 2 at two α)."""
    folder = tmp_path_factory.mktemp("tables")
    first = play(few_methods("table1"), folder, only=["1.0"], command="one")
    before = (folder / "table1/result.json").read_bytes()
    return folder, first, before, play(few_methods("table2"), folder, only=["0.1", "0.25"], command="two")


@pytest.mark.slow
def test_no_model_is_trained_twice(tables):
    folder, first, _, second = tables
    jobs = second.invoked.campaign.jobs
    new = [key for key, job in jobs.items() if key not in first.invoked.campaign.jobs]
    assert second.invoked.ending.n_run == len(new) < len(jobs)
    made = trained(folder)
    assert len(made) > 0
    assert set(made.values()) == {1}


@pytest.mark.slow
def test_the_second_table_leaves_the_first_as_it_was(tables):
    folder, first, before, _ = tables
    assert (folder / "table1/result.json").read_bytes() == before
    again = play(few_methods("table1"), folder, only=["1.0"])
    assert again.invoked.ending.n_run == 0
    assert again.comparison.invocations == first.comparison.invocations  # one that did nothing does not count
    assert result_without_timings(folder, "table1") == without_timings(json.loads(before))


@pytest.mark.slow
def test_both_tables_show_the_same_numbers_where_they_are_the_same_game(tables):
    _, first, _, second = tables
    for row in FEW:
        assert first.comparison.rows[row]["1.0"].ours == second.comparison.rows[row]["0.1"].ours


@pytest.mark.slow
def test_columns_not_asked_for_are_called_not_run(tables):
    _, _, _, second = tables
    assert second.comparison.not_run == {"0.4": "not asked for", "0.67": "not asked for"}
    assert second.comparison.rows["neg-grad"]["0.4"].ours is None
    assert second.comparison.rows["neg-grad"]["0.25"].ours is not None


@pytest.mark.slow
def test_a_table_leaves_result_report_comparison_and_text(tables):
    folder, *_ = tables
    assert [game.value for game in read_result(folder / "table2/result.json").games] == ["0.1", "0.25"]
    assert read_comparison(folder / "table2/comparison.json").name == "table2"
    assert "<svg" in (folder / "table2/report.html").read_text()
    assert "Inside the paper’s ±: " in (folder / "table2/table.txt").read_text()


@pytest.mark.slow
def test_a_folder_of_tables_moves_as_signals_without_weights(tables, tmp_path, call):
    folder, first, _, second = tables
    code, out, _ = call("export", folder, tmp_path / "moved.tar")
    assert code == 0
    light = {k for table in (first, second) for k, job in table.invoked.campaign.jobs.items() if job.kind not in HEAVY}
    assert f" {len(light)} artefacts" in out
    call("import", tmp_path / "moved.tar", tmp_path / "there")
    for name, only in (("table1", ["1.0"]), ("table2", ["0.1", "0.25"])):
        assert play(few_methods(name), tmp_path / "there", only=only).invoked.ending.n_run == 0
        assert result_without_timings(tmp_path / "there", name) == result_without_timings(folder, name)


@pytest.mark.slow
def test_a_finished_column_is_compared_where_its_data_are_not(tables, tmp_path, monkeypatch):
    folder, first, _, _ = tables
    shutil.copytree(folder, tmp_path / "there")

    def nowhere(raw, source):
        raise UserError(f"{source}: the data are not here")

    monkeypatch.setattr(invocation, "resolve", nowhere)
    again = play(few_methods("table1"), tmp_path / "there", only=["1.0"])
    assert again.invoked.ending.n_run == 0
    assert again.comparison.rows == first.comparison.rows
    with pytest.raises(UserError, match="the data are not here"):  # not another game's: the methods differ
        plan_suite(suite("table1", "smoke"), ["1.0"], tmp_path / "there")


def test_a_game_of_other_strengths_or_adversaries_is_not_the_columns():
    (column,) = [c for c in few_methods("table1").columns if c.label == "1.0"]
    (graph,) = plan_suite(few_methods("table1"), ["1.0"]).campaign.graphs
    game = game_from_json(game_to_json(graph.game))

    def asks(**changed: object) -> bool:
        return is_of(game, replace(column, raw={**column.raw, **changed}))

    methods = column.raw["unlearners"]
    assert asks()
    assert not asks(unlearners={**methods, "neg-grad": {**methods["neg-grad"], "batch_size": 7}})
    assert not asks(unlearners={**methods, "neg-grad": {"epochs": 1, "lr": 0.1}}, tuning={})
    assert not asks(unlearners={**methods, "neg-grad": {**methods["neg-grad"], "method": "salun"}})
    assert not asks(adversaries=column.raw["adversaries"][1:])
    assert not asks(game={**column.raw["game"], "seeds": 3})


OTHERWISE: dict[str, Any] = {
    "by": "group",
    "oracle": "group",
    "hardest": 0.5,
    "sensitivity": {"kind": "by-class", "weights": {"0": 2.0}},
    "share_retrain": True,
    "level": 0.9,
    "delta": 0.1,
    "interval": "bounded",
    "until": {"half_width": 0.1, "max_pairs": 9},
    "n_references": 3,
    "data_digest": "of other data",
    "price": None,
    "queries": (5,),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_game_by_other_rules_is_not_the_columns(name):
    assert name in vars(column_and_game()[1])
    column, game = column_and_game()
    assert is_of(game, column)
    assert not is_of(replace(game, **{name: OTHERWISE[name]}), column)


@pytest.mark.parametrize(("method", "parameter"), [("ssd", "importance"), ("ssd", "dampening"), ("fisher", "power")])
def test_a_game_is_not_the_columns_once_a_default_of_a_method_is_another(method, parameter):
    """Whatever is played by today's default is stored with it; a stored value that differs is yesterday's."""
    column, game = column_and_game()
    before = game.methods[method]
    params = {**before.unlearner.params, parameter: "as it was"}
    changed = replace(before, unlearner=replace(before.unlearner, params=params))
    assert not is_of(replace(game, methods={**game.methods, method: changed}), column)


def test_a_game_is_not_the_columns_once_a_published_value_or_the_learner_is_another():
    column, game = column_and_game()
    published = replace(game.methods["ssd-published"], source="another paper")
    assert not is_of(replace(game, methods={**game.methods, "ssd-published": published}), column)
    assert not is_of(replace(game, learner=replace(game.learner, name="dp-sgd")), column)


def test_strengths_that_were_chosen_in_the_run_leave_it_the_columns_game():
    column, game = column_and_game()
    tuned = {
        n: m if m.tuning is None else m.tuned(replace(m.tuning, chosen=m.tuning.tried[2]))
        for n, m in game.methods.items()
    }
    assert is_of(replace(game, methods=tuned, value="as another table calls it"), column)


def test_where_data_are_absent_all_but_their_digest_is_compared(monkeypatch):
    column, game = column_and_game()
    monkeypatch.setattr(loading, "load_dataset", nowhere)
    assert is_of(replace(game, data_digest="of other data"), column)
    assert not is_of(replace(game, hardest=0.5), column)


def test_a_column_is_known_where_its_checkpoint_is_not(monkeypatch):
    """As it was played elsewhere: by the name of the checkpoint and everything else."""
    monkeypatch.setattr(loading, "load_dataset", nowhere)
    (column,) = [c for c in suite("table7", "small").columns if c.label == "SST5"]
    played = replace(column_and_game()[1], **_as_stored(column))
    assert is_of(played, column)
    assert not is_of(
        replace(played, learner=replace(played.learner, params={**played.learner.params, "lr": 1.0})), column
    )


def _as_stored(column: TableColumn) -> dict[str, Any]:
    fields = decided({**column.raw, "learner": {"preset": "bert", "lr": 5e-5}}, "")
    learner = fields["learner"]
    named = {**learner.params, "model_params": column.raw["learner"]["model_params"]}
    return {**fields, "learner": replace(learner, params=named, code="of the checkpoint")}


def test_adversaries_from_before_they_had_parameters_are_those_of_today():
    column, game = column_and_game()
    shadow = game.adversaries["shadow"]
    before, other = (
        {"shadow": replace(shadow, adversary=replace(shadow.adversary, params=p))} for p in ({}, {"rows_per_class": 1})
    )
    assert is_of(replace(game, adversaries={**game.adversaries, **before}), column)
    assert not is_of(replace(game, adversaries={**game.adversaries, **other}), column)


RESULTS = Path(__file__).parents[2] / "results/reproduce/paper"


def test_what_is_stored_by_price_was_chosen_by_an_earlier_rule_and_is_else_what_the_tables_ask_for():
    missing = {name: missing_columns(suite(name, "paper"), RESULTS / name) for name in ("table1", "table2")}
    assert missing == {"table1": ["0.1", "0.4", "0.8", "1.0"], "table2": ["0.1", "0.25", "0.4", "0.67"]}
    for game in read_result(RESULTS / "table1/result.json").games:
        (column,) = [c for c in suite("table1", "paper").columns if c.label == game.value]
        stored = game_from_json({k: v for k, v in game.spec.items() if k in Game.__dataclass_fields__})
        assert stored.price.rule == 1
        assert is_of(replace(stored, price=replace(stored.price, rule=PRICE_RULE)), column)


def nowhere(*_: Any) -> None:
    raise UserError("the data are not here")


@cache
def column_and_game() -> tuple[TableColumn, Game]:
    (column,) = [c for c in suite("table1", "smoke").columns if c.label == "1.0"]
    (graph,) = plan_suite(suite("table1", "smoke"), ["1.0"]).campaign.graphs
    return column, game_from_json(game_to_json(graph.game))


@pytest.mark.slow
def test_a_table_grows_over_invocations_to_what_it_is_in_one(tables, tmp_path):
    """A first invocation without time for anything, a second for one column, a third for the rest."""
    folder = tmp_path / "slices"
    made, both = few_methods("table2"), ["0.1", "0.25"]
    stopped = play(made, folder, only=both, options=RunOptions(time_limit_s=1e-9))
    assert stopped.invoked.ending.out_of_time
    assert stopped.comparison.not_run["0.1"] == NOT_YET
    assert not (folder / "table2/result.json").exists()
    shutil.rmtree(folder)
    play(made, folder, only=["0.1"])
    partly = play(made, folder, only=both, options=RunOptions(time_limit_s=1e-9))
    assert partly.comparison.not_run["0.25"] == NOT_YET
    assert partly.comparison.rows["neg-grad"]["0.1"].ours is not None
    whole = play(made, folder, only=both)
    assert NOT_YET not in whole.comparison.not_run.values()
    assert len(whole.comparison.invocations) == 2
    reference = tables[3].comparison
    assert set(whole.comparison.rows) == set(reference.rows)
    assert whole.comparison.digests["data"] == reference.digests["data"]
    again = play(made, folder, only=["0.25"])  # what an earlier invocation finished stays in the table
    assert again.invoked.ending.n_run == 0
    assert again.comparison.rows == whole.comparison.rows


@pytest.mark.slow
def test_two_tables_of_the_paper_through_the_command_line(call, tmp_path):
    """All eight methods, as CI plays them."""
    how = ("--scale", "smoke", "--executor", "inline", "--quiet", "--out", tmp_path, "--results", tmp_path / "kept")
    code, out, err = call("reproduce", "table1", *how, "--column", "0.4")
    assert (code, err) == (0, "")
    assert "Embedded digits in place of CIFAR-10." in out
    for name in ("table8", "table8-visible"):
        code, out, _ = call("reproduce", name, *how)
        assert code == 0
        assert "Retrain’s interval contains its ideal value" in out
    shares = read_comparison(tmp_path / "kept/reproduce/smoke/table8-visible/comparison.json").rows[EXCEEDED]
    none, some, every = (shares[label].ours.value for label in ("1.5", "0.95", "0.6"))
    assert none == 0 < some < every == 1
    found = read_comparison(tmp_path / "kept/reproduce/smoke/table1/comparison.json")
    assert {row for row, cells in found.rows.items() if cells["0.4"].ours is not None} == set(found.rows)
    assert found.invocations[0].command.startswith("forgetgauge reproduce table1 --scale smoke")
    assert found.invocations[0].wall_s > 0
    code, _, _ = call("reproduce", "page", "--results", tmp_path / "kept", "--out", tmp_path / "page.md")
    assert code == 0
    assert "| Table 1 | smoke scale, 1 of 4 columns |" in (tmp_path / "page.md").read_text()


def test_three_replicates_are_three_trainings_of_each_side_of_each_split():
    one, three = (plan_suite(suite("table1", "smoke", n), ["1.0"]).campaign for n in (1, 3))
    for method in ("retrain", "none", "ssd-published"):
        made = {cell: keys.signals for cell, keys in three.graphs[0].cells.items() if cell.method == method}
        assert sorted({(cell.pair, cell.side, cell.seed) for cell in made}) == [
            (pair, side, seed) for pair in range(2) for side in range(2) for seed in range(3)
        ]
        assert len(set(made.values())) == len(made)
    shared = [key for key in one.jobs if key in three.jobs]
    assert {one.jobs[key].kind for key in one.jobs if key not in shared} <= {"result"}  # no model is trained anew


@pytest.mark.slow
def test_the_replicates_of_a_split_are_averaged_before_anything_else_as_in_the_paper(tmp_path):
    invoked, comparison = play(few_methods("table1", 3), tmp_path, only=["1.0"])
    folder = tmp_path / "table1-replicates-3"
    assert (comparison.replicates, invoked.invocations) == (3, comparison.invocations)
    assert "2 swap pairs of 3 trainings each, as in the paper." in comparison.notes
    assert read_comparison(folder / "comparison.json") == comparison
    (game,) = read_result(folder / "result.json").games
    for name, pairs in unpack_decisions(game.decisions).items():
        expected = []
        for which, pair in pairs.items():
            assert pair.decisions.shape[:2] == (2, 3)
            sides = zip(pair.decisions, (pair.in_forget, ~pair.in_forget), strict=True)
            gained = np.mean([said[:, f].mean(axis=1) - said[:, ~f].mean(axis=1) for said, f in sides], axis=(0, 1))
            by_pair = [game.methods[name].by_adversary[a].by_pair[which] for a in game.decisions.adversaries]
            assert gained == pytest.approx(by_pair)
            expected.append(1 - np.abs(gained).max())
        assert comparison.rows[name]["1.0"].as_paper.value == pytest.approx(np.mean(expected))
