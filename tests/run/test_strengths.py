"""Strengths chosen in a run, and the frontier: whole runs on a fifth of the digits."""

from __future__ import annotations

import json
import math
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forgetgauge import evaluate
from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import TrainJob
from forgetgauge.plan.runfile import value_set
from forgetgauge.plan.strength import Strength
from forgetgauge.progress import Progress
from forgetgauge.report.html import render_report
from forgetgauge.report.strengths import along, frontier_rows, gap_lines
from forgetgauge.results.record import read_result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.frontier import _by_price, _on_command_line, resolve_frontier
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY
from tests.run.test_campaign import same

ROOT = Path(__file__).parents[2]
AUTO = {
    **TINY,
    "unlearners": {"retrain": {}, "none": {}, "neg-grad": {"strength": "auto"}},
    "tuning": {"points": 3, "shadows": 3, "price": 0.3},  # of models that see one epoch: they differ by a lot
}


def planned(**tables):
    return Campaign.plan(resolve({**AUTO, **tables}, "test"))


def files_of(path):
    return sorted(str(file.relative_to(path)) for file in (path / "objects").rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Not to be changed."""
    folder = tmp_path_factory.mktemp("auto") / "run"
    play(planned(keep="weights"), RunFolder(folder))
    return folder


def test_the_strength_is_chosen_by_its_cost_and_the_evidence_kept(finished):
    found = read_result(finished / "result.json").methods["neg-grad"].tuning
    assert found is not None
    assert found.price == 0.3
    assert found.n_models == 3
    holding = [one.value for one in found.tried if one.bound is not None and one.bound <= 0.3]
    assert found.holds is bool(holding)
    assert found.chosen == (max(holding) if holding else min(one.value for one in found.tried))
    spec = read_result(finished / "result.json").games[0].spec
    assert spec["methods"]["neg-grad"]["unlearner"]["params"]["lr"] == found.chosen


def test_what_a_strength_costs_is_judged_on_the_test_set_where_there_is_one():
    """One whose labels are all exchanged: what ruins a model costs nothing there."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 6)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    methods = {"retrain": {}, "none": {}, "neg-grad": {"strength": {"lr": [1e-5, 30.0]}}}
    learner = {"model": "linear", "epochs": 30, "batch_size": 16, "lr": 0.1}
    how = {"unlearner": methods, "learner": learner, "alpha": 0.5, "pairs": 2, "adversaries": ["correctness"]}
    ruinous = {}
    for name, data in {"without": (x, y), "with": {"train": (x, y), "test": (x, 1 - y)}}.items():
        found = evaluate(data=data, strengths=2, tuning_shadows=3, price=0.05, **how).methods["neg-grad"].tuning
        ruinous[name] = next(one for one in found.tried if one.value == 30.0).loss
    assert ruinous["without"] > 0.1
    assert ruinous["with"] < -0.1


def test_a_run_that_is_stopped_again_and_again_chooses_the_same(finished, tmp_path):
    class Stop(Exception):
        pass

    stops = iter(range(2, 400, 3))

    def stopper():
        n_left = next(stops)

        def progress(_: Progress) -> None:
            nonlocal n_left
            n_left -= 1
            if n_left < 0:
                raise Stop

        return progress

    folder, result, n_stops = RunFolder(tmp_path / "run"), None, 0
    while result is None:
        try:
            _, result = play(planned(keep="weights"), folder, RunOptions("inline", "cpu", progress=stopper()))
        except Stop:
            n_stops += 1
    assert n_stops > 3
    assert same(finished, folder.path)


def test_it_is_not_done_again_and_another_price_looks_at_the_same_models(finished, tmp_path):
    import shutil

    shutil.copytree(finished, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    ending, _ = play(planned(keep="weights"), folder)
    assert (ending.n_run, ending.notes) == (0, [])
    ending, result = play(planned(keep="weights", tuning={**AUTO["tuning"], "price": 0.9}), folder)
    assert result.methods["neg-grad"].tuning.price == 0.9
    assert "result-1.json" in ending.notes[0]


def test_no_model_is_trained_twice_though_weights_are_dropped(tmp_path, monkeypatch):
    from forgetgauge.run import model_jobs

    trained = []
    train = model_jobs.train
    monkeypatch.setattr(
        model_jobs, "train", lambda jobs, *rest: trained.extend(j.key for j in jobs) or train(jobs, *rest)
    )
    folder = RunFolder(tmp_path / "run")
    _, result = play(planned(), folder, RunOptions("inline", "cpu"))
    assert result is not None
    assert len(trained) == len(set(trained)) > 0
    jobs = Campaign.read(folder).jobs
    state = folder.open_ledger().state
    assert all(state.done[key].dropped for key, job in jobs.items() if isinstance(job, TrainJob))


def test_a_strength_at_which_models_diverge_is_no_failure(tmp_path):
    unlearners = {"none": {}, "neg-grad": {"strength": {"lr": [1e-3, 1e9]}}}
    ending, result = play(planned(unlearners=unlearners), RunFolder(tmp_path / "run"), RunOptions("inline", "cpu"))
    assert not ending.failed
    found = result.methods["neg-grad"].tuning
    assert found.tried[-1].loss is None
    assert found.chosen < 1e9


def test_no_strength_is_chosen_where_the_models_that_costs_are_counted_from_failed(tmp_path, monkeypatch):
    """Else every strength would seem to cost too much, and the weakest would be played as if it were within reach."""
    from forgetgauge.run import model_jobs

    unlearn, broken = model_jobs.unlearn, [True]

    def fail_for_retrained_shadows(jobs, *rest):
        if broken[0] and any("retrained shadow" in job.label for job in jobs):
            raise RuntimeError("the device went away")
        return unlearn(jobs, *rest)

    monkeypatch.setattr(model_jobs, "unlearn", fail_for_retrained_shadows)
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(UserError) as told:
        play(planned(), folder, RunOptions("inline", "cpu"))
    line = str(told.value)
    assert line.startswith("the strength of 'neg-grad' cannot be chosen: ")
    assert "RuntimeError: the device went away" in line
    assert "\n" not in line
    assert not folder.result.exists()
    broken[0] = False
    ending, result = play(planned(), folder, RunOptions("inline", "cpu"))  # the same command goes on
    assert not ending.failed
    assert any(one.bound is not None for one in result.methods["neg-grad"].tuning.tried)


def test_a_strength_that_could_not_be_tried_is_named_beside_the_choice(tmp_path, monkeypatch):
    from forgetgauge.run import model_jobs

    unlearn = model_jobs.unlearn
    strongest = planned().graphs[0].game.methods["neg-grad"].tuning.tried[-1]

    def fail_at_the_strongest(jobs, *rest):
        if any(job.unlearner.params.get("lr") == strongest for job in jobs):  # of the stack of all strengths, too
            raise RuntimeError("no such strength")
        return unlearn(jobs, *rest)

    monkeypatch.setattr(model_jobs, "unlearn", fail_at_the_strongest)
    ending, result = play(planned(), RunFolder(tmp_path / "run"), RunOptions("inline", "cpu"))
    assert len(ending.failed) == 3
    state = RunFolder(tmp_path / "run").open_ledger().state
    jobs = {key: job for graph in planned().graphs for key, job in graph.jobs.items() if job.kind == "unlearn"}
    for key in set(ending.failed) | {key for key in state.done if key in jobs}:  # each strength is a stack of its own
        assert len({jobs[member].unlearner.params.get("lr") for member in state.stack_of.get(key, (key,))}) == 1
    (said,) = [warning for warning in result.games[0].warnings if "neg-grad" in warning and "chosen" in warning]
    assert f"lr = {strongest:g}" in said
    assert "failed" in said


def test_published_settings_are_one_flag_away():
    game = planned(tuning={"preset": "published"}).graphs[0].game
    method = game.methods["neg-grad"]
    assert (method.tuning, game.price) == (None, None)
    assert (method.unlearner.params["lr"], method.unlearner.params["epochs"]) == (0.01, 10)
    assert "Fan et al. 2024" in method.source
    stated = {"a": {"method": "neg-grad", "strength": "published", "epochs": 1}, "none": {}}
    method = planned(unlearners=stated).graphs[0].game.methods["a"]
    assert (method.unlearner.params["lr"], method.unlearner.params["epochs"]) == (0.01, 1)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"strength": "auto", "lr": 0.1}, "lr is both set and to be chosen"),
        ({"strength": "strong"}, "strength = 'strong' is neither"),
        ({"strength": {"lr": [0.1]}}, "is neither"),
        ({"strength": {"lr": [0.1, 0.2], "epochs": [1, 2]}}, "is neither"),
        ({"strength": {"lr": ["a", 1]}}, "is neither"),
        ({"strength": {"lr": [True, 2]}}, "is neither"),
        ({"strength": {"lr": [0, 1]}}, "two different ends above 0"),
        ({"strength": {"rate": [0.1, 1]}}, "unknown key 'rate'"),
        ({"strength": {"epochs": [0.5, 2.5]}}, "epochs"),
        ({"method": "ft-final", "strength": "auto"}, "'ft-final' declares no strength"),
        ({"method": "ft-final", "strength": "published"}, "no published settings of 'ft-final' are known"),
    ],
)
def test_a_strength_that_is_none_is_one_line(table, said):
    with pytest.raises(UserError) as told:
        planned(unlearners={"none": {}, "neg-grad": table})
    assert str(told.value).startswith("test: unlearners.neg-grad")
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def shrink(model, retain, forget, context, *, by):
    """A method of somebody's own: weights of a copy are shrunk."""
    import copy

    import torch

    model = copy.deepcopy(model)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 1 - by
    return model


def test_a_method_of_ones_own_joins_with_one_line():
    how = {
        "data": "digits",
        "fraction": 0.2,
        "alpha": 0.5,
        "pairs": 1,
        "shadows": 2,
        "tuning_shadows": 3,
        "strengths": 3,
    }
    learner = {"epochs": 1, "batch_size": 64}
    methods = {"none": {}, "own": {"method": shrink, "strength": {"by": [0.001, 0.9]}}}
    result = evaluate(unlearner=methods, learner=learner, adversaries=["confidence"], price=0.05, **how)
    assert result.methods["own"].tuning.price == 0.05
    shrink.strength = Strength("by", 0.001, 0.9)
    try:
        declared = {**methods, "own": {"method": shrink, "strength": "auto"}}
        again = evaluate(unlearner=declared, learner=learner, adversaries=["confidence"], price=0.05, **how)
    finally:
        del shrink.strength
    assert again.methods["own"].tuning == result.methods["own"].tuning


def test_what_the_strength_does_not_change_is_found_once_for_each_shadow_model(tmp_path, monkeypatch):
    from forgetgauge.unlearn import fisher, ssd
    from forgetgauge.unlearn.memory import Memory

    counted = {"fisher": 0, "ssd": 0}

    def counting(name, function):
        def count(*given, **named):
            counted[name] += 1
            return function(*given, **named)

        return count

    monkeypatch.setattr(fisher, "mean_squares", counting("fisher", fisher.mean_squares))
    monkeypatch.setattr(ssd, "mean_squared_batch_gradients", counting("ssd", ssd.mean_squared_batch_gradients))
    methods = {"none": {}, "fisher": {"strength": "auto"}, "ssd": {"strength": "auto"}}
    kept, alone = RunFolder(tmp_path / "kept"), RunFolder(tmp_path / "alone")
    _, result = play(planned(unlearners=methods), kept, RunOptions("inline", "cpu"))
    n_game = 2 * AUTO["game"]["pairs"]
    assert counted == {"fisher": 3 + n_game, "ssd": 2 * (3 + n_game)}  # F and R ∪ F
    assert all(len(result.methods[name].tuning.tried) >= 3 for name in ("fisher", "ssd"))
    monkeypatch.setattr(Memory, "find", lambda self, key, data: None)
    play(planned(unlearners=methods), alone, RunOptions("inline", "cpu"))
    assert counted["ssd"] > 4 * (3 + n_game)
    assert same(kept.path, alone.path)


MEMORIES: list[object] = []


def shrink_and_dampen(model, retain, forget, context, *, by):
    """A shipped method, applied to another model at each strength."""
    from forgetgauge.unlearn.ssd import SSD

    MEMORIES.append(context.memory)
    return SSD(alpha=1.5).unlearn(shrink(model, retain, forget, context, by=by), retain, forget, context)


def test_a_method_of_ones_own_is_given_no_memory():
    how = {"data": "digits", "fraction": 0.2, "alpha": 0.5, "pairs": 1, "shadows": 2, "tuning_shadows": 3}
    how |= {"learner": {"epochs": 1, "batch_size": 64}, "adversaries": ["confidence"], "price": 0.05, "strengths": 3}
    methods = {"none": {}, "own": {"method": shrink_and_dampen, "strength": {"by": [0.001, 0.9]}}}
    MEMORIES.clear()
    result = evaluate(unlearner=methods, on_failure="record", **how)  # which tries nothing first
    assert result.failures == []
    assert len(MEMORIES) >= 3 * 3 + 2
    assert set(MEMORIES) == {None}


# -- the frontier ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(finished, tmp_path_factory):
    """(folder of a run, ending of its frontier, its result); not to be changed."""
    import shutil

    folder = tmp_path_factory.mktemp("frontier") / "run"
    shutil.copytree(finished, folder)
    raw = {**AUTO, "keep": "weights", "unlearners": {**AUTO["unlearners"], "ssd": {"alpha": 1.5}}}
    campaign = Campaign.plan(resolve_frontier(raw, "test", [], 3))
    ending, result = play(campaign, RunFolder(folder).part("frontier"), RunOptions("inline", "cpu"))
    return folder, ending, result


def test_every_method_is_played_along_its_strength_and_nothing_trained_again(finished, played):
    folder, _, result = played
    curves = along(result.games[0])
    assert list(curves) == ["neg-grad", "ssd"]
    chosen = result.methods["neg-grad"].tuning.chosen
    assert chosen == read_result(finished / "result.json").methods["neg-grad"].tuning.chosen
    remarks = {name: [at.remark for at in curve if at.remark] for name, curve in curves.items()}
    assert remarks["neg-grad"] == ["chosen by price"]
    assert sorted(remarks["ssd"]) == ["as the run file has it", "chosen by price"]
    assert [at.value for at in curves["neg-grad"]] == sorted(at.value for at in curves["neg-grad"])
    assert [at.value for at in curves["ssd"]] == sorted((at.value for at in curves["ssd"]), reverse=True)
    before = {key for key, job in Campaign.read(RunFolder(finished)).jobs.items() if isinstance(job, TrainJob)}
    now = {
        key for key, job in Campaign.read(RunFolder.at(folder / "frontier")).jobs.items() if isinstance(job, TrainJob)
    }
    assert now == before


def test_its_rows_are_those_of_its_methods(played):
    _, _, result = played
    game = result.games[0]
    head, retrain, none, *rows = frontier_rows(game)
    assert (retrain[0], none[0]) == ("retrain", "none")
    assert (retrain[5], none[6]) == ("+0.0", "+0.0")
    for row in rows:
        value = row[1].split(" = ")[1]
        own = game.methods.get(f"{row[0]}@{value}")
        if own is not None and own.quality is not None:
            assert row[2] == f"{own.quality:.3f}"
            lost = 100 * (game.methods["retrain"].utility["unseen"] - own.utility["unseen"])
            assert float(row[5].replace("−", "-")) == pytest.approx(lost, abs=0.051)
    assert head[0] == "method"


def test_what_is_read_from_its_file_is_shown_as_it_was_before(played, tmp_path):
    """A file has its tables in the order of their names, in which 0.001 stands before 1e-06, and 20 before 3."""
    _, _, result = played
    result.save(tmp_path / "result.json")
    read = read_result(tmp_path / "result.json")
    assert list(read.methods) != list(result.methods)
    curves, again = along(result.games[0]), along(read.games[0])
    assert {name: [at.value for at in curve] for name, curve in again.items()} == {
        name: [at.value for at in curve] for name, curve in curves.items()
    }
    assert frontier_rows(read.games[0]) == frontier_rows(result.games[0])
    assert gap_lines(read.games[0]) == gap_lines(result.games[0])
    assert render_report(read) == render_report(result)


def test_a_curve_begins_at_its_weak_end_whatever_its_points_are_called(played):
    _, _, result = played
    game = result.games[0]
    for order in (sorted(game.methods), sorted(game.methods, reverse=True)):
        shuffled = replace(game, methods={name: game.methods[name] for name in order})
        assert [at.value for at in along(shuffled)["ssd"]] == sorted(
            (at.value for at in along(game)["ssd"]), reverse=True
        )
        assert [at.value for at in along(shuffled)["neg-grad"]] == sorted(at.value for at in along(game)["neg-grad"])


def test_the_commands_know_it(finished, tmp_path, call):
    import shutil

    shutil.copytree(finished, tmp_path / "run")
    text = "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in AUTO.items()
        if isinstance(table, dict) and name != "unlearners"
    )
    names = f"keep = 'weights'\nadversaries = {json.dumps(AUTO['adversaries'])}\n"
    methods = "[unlearners]\nretrain = {}\nnone = {}\nneg-grad = { strength = 'auto' }\n"
    (tmp_path / "a.toml").write_text(names + text + methods)
    how = ("--out", tmp_path / "run", "--executor", "inline", "--quiet", "--points", "2")
    code, out, err = call("frontier", tmp_path / "a.toml", *how)
    assert (code, err) == (0, "")
    assert "Q against accuracy (unseen points)" in out
    assert "chosen by price" in out
    page = (tmp_path / "run/frontier/report.html").read_text()
    assert "each method along its strength" in page
    code, out, err = call("frontier", tmp_path / "a.toml", *how, "--format", "csv")
    assert code == 0
    assert out.splitlines()[0].startswith("method,role,strength,strength_parameter,strength_value,price,")
    assert any(line.startswith("neg-grad,tested,lr = ") for line in out.splitlines())
    for command in (("verify", tmp_path / "run/frontier"), ("status", tmp_path / "run/frontier")):
        code, out, err = call(*command)
        assert (code, err) == (0, ""), out
    assert call("verify", tmp_path / "run")[0] == 0  # which the frontier left as it was
    for wrong, said in (
        (("--points", "1"), "--points 1 is not between 2 and 100"),
        (("--methods", "neg-grad,neggrad"), "--methods: unknown method 'neggrad'; did you mean 'neg-grad'?"),
        (("--methods", "none"), "none of its methods has a strength"),
        (
            ("--set", "sweep.key=game.alpha", "--set", "sweep.values=[0.1,0.2]"),
            "choose one: --set game.alpha=0.1 or --set game.alpha=0.2",
        ),
    ):
        code, _, err = call("frontier", tmp_path / "a.toml", "--out", tmp_path / "run", *wrong)
        assert code == 2
        assert said in err


@pytest.mark.parametrize(
    "value",
    ["group", "true", "0.5", "[1]", "", "a b", 'a "b"', 3, 0.1, math.inf, True, [1, "x"], {"lr": 0.1, "a b": []}],
)
def test_a_value_that_a_message_proposes_is_set_to_just_that(value):
    (text,) = shlex.split(_on_command_line(value))
    assert value_set(text) == value
    assert type(value_set(text)) is type(value)


def bump(model, retain, forget, context, *, by):
    """Ruins a model for values in the middle of its range."""
    return shrink(model, retain, forget, context, by=1.0 if 0.003 < by < 0.05 else 0.0)


def test_a_ruined_middle_is_a_gap_that_is_said_and_not_crossed(tmp_path):
    """What the search found beyond it was played as `chosen by price`, joined to the rest by a straight line."""
    methods = {"none": {}, "own": {"method": "tests.run.test_strengths:bump", "strength": {"by": [0.001, 0.9]}}}
    raw = {**AUTO, "unlearners": methods, "adversaries": ["confidence"], "tuning": {"shadows": 3, "price": 0.01}}
    raw["learner"] = {**AUTO["learner"], "epochs": 12}
    campaign = Campaign.plan(resolve_frontier(raw, "test", [], 6))
    _, result = play(campaign, RunFolder(tmp_path / "run"), RunOptions("inline", "cpu"))
    (game,) = result.games
    curve = along(game)["own"]
    assert [at.value for at in curve if at.remark] == [0.00264] == [game.methods["own"].tuning.chosen]
    assert [at.value for at in curve if at.after_gap] == [min(at.value for at in curve if at.value > 0.05)]
    assert not any(0.003 < at.value < 0.05 for at in curve)
    assert len(curve) == 6
    (line,) = gap_lines(game)
    assert line.startswith("own was not played between by = 0.00264 and 0.129")
    (warned,) = [line for line in game.warnings if line.startswith("own: by = 0.9 keeps the price as well")]
    assert "was not taken" in warned


def test_a_frontier_of_published_settings_also_shows_the_price(tmp_path):
    raw = {**AUTO, "tuning": {**AUTO["tuning"], "preset": "published"}}
    (game,) = resolve_frontier(raw, "test", [], 3).games
    assert set(game.methods) == {"retrain", "none", "neg-grad", "neg-grad@price"}
    assert game.methods["neg-grad"].source
    searched = game.methods["neg-grad@price"]
    assert searched.tuning is not None
    assert searched.unlearner.params["epochs"] == 10  # as published, but for the strength
    assert replace(searched.variant, value=None) == searched.variant


def searched(name, **how):
    (game,) = resolve_frontier({**AUTO, "unlearners": {"none": {}, name: how}}, "test", [], 3).games
    strength = game.methods[f"{name}@price"].tuning.strength
    return strength.weakest, strength.strongest


def test_a_frontier_begins_below_the_strength_that_the_run_file_has():
    """Ranges are those of image classifiers: what AdamW is given for language models was at the weak end of them."""
    assert searched("neg-grad-plus") == searched("neg-grad-plus", lr=1e-3) == (1e-4, 0.1)
    assert searched("neg-grad-plus", lr=1e-4) == (1e-6, 0.1)
    assert searched("neg-grad-plus", lr=2e-5) == (2e-7, 0.1)
    assert searched("neg-grad-plus", lr=0.0) == (1e-4, 0.1)
    assert searched("ssd", alpha=2.0) == (100.0, 1.05)  # the smaller, the stronger
    assert searched("ssd", alpha=300) == (30_000.0, 1.05)


@pytest.mark.parametrize("name", ["lume-smollm2", "tiny-lm"])
def test_the_rates_of_the_examples_of_language_models_are_inside_the_ranges_that_are_searched(name):
    unlearners = tomllib.loads((ROOT / "examples" / f"{name}.toml").read_text("utf-8"))["unlearners"]
    for named, how in _by_price(unlearners, published=False).items():
        own, (weakest, strongest) = unlearners[named.removesuffix("@price")], next(iter(how["strength"].values()))
        assert all(weakest < own[key] < strongest for key in how["strength"] if key in own)


def test_a_frontier_that_trains_again_what_was_dropped_leaves_the_run_verifiable(tmp_path, call):
    raw = {**AUTO, "adversaries": ["confidence"]}
    folder = RunFolder(tmp_path / "run")
    play(Campaign.plan(resolve(raw, "test")), folder, RunOptions("inline", "cpu"))
    play(Campaign.plan(resolve_frontier(raw, "test", [], 2)), folder.part("frontier"), RunOptions("inline", "cpu"))
    for path in (folder.path, folder.path / "frontier"):
        code, out, _ = call("verify", path)
        assert code == 0, out


@pytest.mark.parametrize("name", ["ssd@0.011", "ssd@price"])
def test_a_method_that_is_called_like_a_point_of_another_is_refused(name):
    """It took the place of that point, or the point its own."""
    raw = {**AUTO, "unlearners": {"none": {}, "ssd": {"alpha": 1.5}, name: {"method": "ssd", "alpha": 2.0}}}
    with pytest.raises(UserError, match=f"test: unlearners.{name}: in a frontier such names are those of 'ssd'"):
        resolve_frontier(raw, "test", [], 3)
    assert set(resolve_frontier(raw, "test", ["ssd"], 3).games[0].methods) == {"retrain", "none", "ssd", "ssd@price"}


def test_a_price_that_chooses_nothing_is_refused():
    with pytest.raises(UserError, match="no effect: no unlearner has a strength"):
        planned(unlearners={"none": {}, "ssd": {}})
    for price in (0.05, 0.01):  # the default, given by name, is meant as well
        with pytest.raises(UserError, match="no effect"):
            evaluate(unlearner=["none"], price=price)


def test_published_settings_that_are_changed_say_so():
    how = {"a": {"method": "salun", "strength": "published", "lr": 0.1}, "none": {}}
    assert planned(unlearners=how).graphs[0].game.methods["a"].source.endswith("; but lr = 0.1")


def test_an_edit_of_ones_own_code_is_announced(tmp_path, monkeypatch):
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    how = {**TINY, "unlearners": {"none": {}, "own": {"method": "own_edited:own"}}, "adversaries": ["confidence"]}
    written = "def own(model, retain, forget, context):\n    return model\n"
    notes = []
    for text in (written, written, written + "# a remark\n"):
        (tmp_path / "own_edited.py").write_text(text)
        sys.modules.pop("own_edited", None)
        campaign = Campaign.plan(resolve(how, "test"))
        notes.append(play(campaign, RunFolder(tmp_path / "run"), RunOptions("inline", "cpu"))[0].notes)
    assert notes[:2] == [[], []]
    assert notes[2] == ["changed since: the code of unlearners.own; what depends on it is made anew, by other draws"]
