"""Whole runs, small enough for seconds: what is repeated, what is kept, what a result says."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import HEAVY
from forgetgauge.plan.runfile import apply_settings
from forgetgauge.provenance import PROVENANCE
from forgetgauge.results.record import Result, read_result, without_timings
from forgetgauge.run.campaign import Campaign, add_adversaries, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.run.standing import disk_estimate
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import export_run, import_run
from tests.conftest import TINY


def campaign(*settings: str, **tables: Any) -> Campaign:
    return Campaign.plan(resolve(apply_settings({**copy.deepcopy(TINY), **tables}, settings), "tiny"))


def played(folder: Path, *settings: str, **tables: Any) -> tuple[Result, int]:
    """(result, number of jobs done now)."""
    ending, result = play(campaign(*settings, **tables), RunFolder(folder))
    assert result is not None
    return result, ending.n_run


def same(one: Path, other: Path) -> bool:
    first, second = (without_timings(json.loads((path / "result.json").read_text())) for path in (one, other))
    return first == second


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that kept its weights; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    played(folder, "keep=weights")
    return folder


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    import shutil

    return Path(shutil.copytree(finished, tmp_path / "copied"))


def test_a_deterministic_model_has_the_same_bits_whatever_else_is_in_the_run(tmp_path):
    made = []
    for n_pairs in (1, 2):
        folder = RunFolder(tmp_path / str(n_pairs))
        play(campaign(f"game.pairs={n_pairs}", "keep=weights"), folder, RunOptions(deterministic=True))
        made.append({key: done.receipt.sha256 for key, done in folder.open_ledger().state.done.items()})
    one, two = made
    jobs = campaign("game.pairs=1").jobs
    assert {job.kind for job in jobs.values()} >= {"train", "unlearn", "signals"}
    assert one.keys() == jobs.keys() < two.keys()
    assert {jobs[key].kind for key in one if one[key] != two[key]} == set()


def test_a_run_that_was_begun_with_stacks_cannot_go_on_deterministically(finished):
    with pytest.raises(UserError, match="begun without --deterministic, which needs"):
        play(campaign("keep=weights"), RunFolder(finished), RunOptions(deterministic=True))


def test_the_result_has_what_its_readers_need(finished):
    record = json.loads((finished / "result.json").read_text())
    assert record["schema"] == 5
    (game,) = record["games"]
    assert set(game["methods"]) == {"retrain", "none", "neg-grad"}
    for method in game["methods"].values():
        low, high = method["interval"]
        assert 0 <= low <= method["quality_plugin"] <= high <= 1
        assert 0 <= method["quality"] <= 1
        assert method["interval_basis"] == "given these models"
        assert method["n_models"] == 4
        assert method["epsilon"] >= 0
        assert method["adversary"] in method["by_adversary"]
        worst = max(abs(found["advantage"]) for found in method["by_adversary"].values())
        assert method["quality_plugin"] == pytest.approx(1 - worst, abs=1e-12)
        for found in method["by_adversary"].values():
            assert len(found["by_pair"]) == 2
            assert found["advantage"] == pytest.approx(np.mean(found["by_pair"]), abs=1e-12)
        assert set(method["utility"]) == {"retain", "forget", "unseen"}
        assert method["seconds"] >= 0
    assert game["interval_basis"] == "given these models"
    assert record["failures"] == []
    assert record["digests"]["data"] == game["spec"]["data_digest"]
    assert {"python", "torch", "numpy", *PROVENANCE} <= set(record["environment"])


def test_a_result_read_back_is_the_result(finished):
    text = (finished / "result.json").read_text()
    assert read_result(finished / "result.json").to_json() == text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record.update(schema=0), "schema 0"),
        (lambda record: record.update(surprise=1), "surprise"),
        (lambda record: record["games"][0]["methods"]["none"].update(quality="high"), "quality"),
        (lambda record: record["games"][0]["methods"]["none"].update(quality=float("nan")), "quality"),
        (lambda record: record.pop("environment"), "environment"),
    ],
)
def test_a_result_that_is_not_valid_is_refused_in_one_line(finished, tmp_path, change, words):
    record = json.loads((finished / "result.json").read_text())
    change(record)
    (tmp_path / "result.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=words):
        read_result(tmp_path / "result.json", sealed=False)
    with pytest.raises(UserError, match=r"schema|was changed after it was written|quality"):
        read_result(tmp_path / "result.json")


def test_the_qualities_follow_from_the_stored_decisions_by_the_definition(finished):
    """A second derivation: per pair ½(Adv_s + Adv_s') from the decision files, with plain loops."""
    folder = RunFolder(finished)
    plan = Campaign.read(folder)
    (graph,), state = plan.graphs, folder.open_ledger().state
    record = json.loads((finished / "result.json").read_text())["games"][0]
    k = record["spec"]["n_forget"]
    for method, found in record["methods"].items():
        for adversary, numbers in found["by_adversary"].items():
            for pair, advantage in enumerate(numbers["by_pair"]):
                sides = []
                for side in (0, 1):
                    (jobs,) = [
                        jobs
                        for cell, jobs in graph.cells.items()
                        if (cell.method, cell.pair, cell.side) == (method, pair, side)
                    ]
                    key = jobs.decide[adversary]
                    says = folder.objects.read(key, state.done[key].receipt.sha256).arrays["says_forget"]
                    forget, unseen = (says[:k], says[k:]) if side == 0 else (says[k:], says[:k])
                    sides.append(sum(map(bool, forget)) / k - sum(map(bool, unseen)) / k)
                assert advantage == pytest.approx(sum(sides) / 2, abs=1e-12)


def test_running_again_does_nothing_and_gives_the_same_bytes(copied):
    before = (copied / "result.json").read_bytes()
    _, n_run = played(copied, "keep=weights")
    assert n_run == 0
    assert (copied / "result.json").read_bytes() == before


def test_two_runs_agree_to_the_byte_timings_apart(finished, tmp_path):
    played(tmp_path / "again", "keep=weights")
    assert same(finished, tmp_path / "again")


@pytest.mark.slow
def test_worker_processes_give_the_same_bytes_as_this_one(finished, tmp_path):
    folder = RunFolder(tmp_path / "processes")
    play(campaign("keep=weights"), folder, RunOptions("processes"))
    assert same(finished, folder.path)
    ours, theirs = (RunFolder(path).open_ledger().state.done for path in (finished, folder.path))
    assert {key: done.receipt for key, done in ours.items()} == {key: done.receipt for key, done in theirs.items()}


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        (["unlearners.ft-final.epochs=1"], {"unlearn", "signals", "decide"}),
        (["game.pairs=3"], {"train", "unlearn", "signals", "decide"}),
        (["game.seeds=2"], {"train", "unlearn", "signals", "decide"}),
        (["unlearners.the-same-again.method=none"], set()),
        (['game.sensitivity={by_class={"3"=5.0}}'], {"initialise"}),
        (['adversaries=["correctness"]'], set()),
    ],
)
def test_adding_to_a_run_repeats_nothing_that_exists(copied, settings, kinds):
    before = set(RunFolder(copied).open_ledger().state.done)
    played(copied, "keep=weights", *settings)
    state = RunFolder(copied).open_ledger().state
    assert set(state.n_runs.values()) == {1}
    jobs = campaign("keep=weights", *settings).jobs
    assert {jobs[key].kind for key in state.done if key not in before} == kinds


def test_a_run_without_its_weights_trains_originals_again_for_a_new_method_only(tmp_path):
    played(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert not any(path.stat().st_size > 2**16 for path in folder.objects.folder.glob("*/*"))
    jobs = campaign("unlearners.ft-final.epochs=1").jobs
    played(tmp_path / "run", "unlearners.ft-final.epochs=1")
    again = {jobs[key].label for key, n in folder.open_ledger().state.n_runs.items() if n > 1}
    assert again
    assert all(label.startswith("train original") for label in again)


@pytest.mark.parametrize("kind", ["initialise", "train", "unlearn", "signals", "fit", "decide"])
def test_a_flipped_byte_costs_that_job_alone_and_the_result_stays_the_same(copied, finished, kind):
    folder = RunFolder(copied)
    jobs = Campaign.read(folder).jobs
    victim = [key for key, job in jobs.items() if job.kind == kind][-1]
    path = folder.objects.path(victim)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 4]))
    _, n_run = played(copied, "keep=weights")
    assert n_run == 1
    assert path.read_bytes() == content
    assert same(copied, finished)


def test_scoring_a_new_adversary_trains_nothing_and_equals_a_run_that_had_it(finished, tmp_path):
    folder = RunFolder(tmp_path / "run")
    played(folder.path, 'adversaries=["correctness", "confidence"]')
    before = folder.open_ledger().state.n_runs.copy()
    play(add_adversaries(folder, ["entropy", "modified-entropy"]), folder)
    jobs = Campaign.read(folder).jobs
    state = folder.open_ledger().state
    assert {jobs[key].kind for key in state.n_runs if key not in before} == {"fit", "decide"}
    scored, whole = (
        without_timings(json.loads((path / "result.json").read_text())) for path in (folder.path, finished)
    )
    assert scored["games"][0]["methods"] == whole["games"][0]["methods"]


def test_a_game_that_cannot_begin_says_why_and_blames_no_disk(tmp_path, monkeypatch):
    """Nothing can be assembled without its first job: what is missing there never was, and was not damaged."""

    def fails(*_):
        raise RuntimeError("lost on its way")

    monkeypatch.setattr("forgetgauge.run.worker.initialise", fails)
    with pytest.raises(UserError, match="“initialise the game” failed: RuntimeError: lost on its way") as refused:
        played(tmp_path)
    assert "disk" not in str(refused.value)


def test_scoring_an_unfinished_run_is_refused(tmp_path):
    folder = RunFolder(tmp_path / "run")
    play(campaign(), folder, RunOptions(time_limit_s=0.0))
    with pytest.raises(UserError, match="finish it first"):
        add_adversaries(folder, ["entropy"])
    with pytest.raises(UserError, match="did you mean 'entropy'"):
        add_adversaries(folder, ["entropi"])


def test_a_run_stopped_by_the_clock_goes_on_and_ends_like_any_other(finished, tmp_path):
    folder = RunFolder(tmp_path / "run")
    ending, result = play(campaign("keep=weights"), folder, RunOptions(time_limit_s=0.2))
    assert result is None
    assert ending.out_of_time
    assert not folder.result.exists()
    played(folder.path, "keep=weights")
    assert set(folder.open_ledger().state.n_runs.values()) == {1}
    assert same(folder.path, finished)


def test_versions_that_change_between_a_stop_and_the_next_start_are_kept_with_each_artefact(copied, monkeypatch):
    monkeypatch.setattr("forgetgauge.run.scheduler.versions", lambda: {"torch": "9.9", "python": "9.9"})
    before = RunFolder(copied).open_ledger().state.done
    result, n_run = played(copied, "keep=weights", "game.pairs=3")
    done = RunFolder(copied).open_ledger().state.done
    assert n_run > 0
    assert len(before) > 0
    assert {key: done[key].made_with for key in before} == {key: made.made_with for key, made in before.items()}
    assert {done[key].made_with["torch"] for key in done if key not in before} == {"9.9"}
    first = {made.made_with["torch"] for made in before.values()}.pop()
    assert result.environment["torch"] == f"{first} and 9.9"


def test_what_is_done_after_the_last_job_is_shown(copied, monkeypatch):
    monkeypatch.setattr("forgetgauge.run.campaign.TOLD_EVERY", 0.0)
    shown = []
    play(campaign("keep=weights"), RunFolder(copied), RunOptions(progress=shown.append))
    told = [now.doing for now in shown if now.doing.startswith("the result: ")]
    names = list(campaign().graphs[0].game.methods)
    assert [line for line in told if "adversaries of" in line] == [
        f"the result: adversaries of {name} ({i} of {len(names)})" for i, name in enumerate(names, 1)
    ]
    assert told[-1] == f"the result: comparing {len(names)} methods"
    assert {(now.n_done, now.n_jobs) for now in shown} == {(len(campaign().jobs), len(campaign().jobs))}


def test_a_run_moved_without_its_weights_gives_the_same_result_elsewhere(finished, tmp_path):
    folder, elsewhere = RunFolder(finished), RunFolder(tmp_path / "elsewhere")
    jobs = Campaign.read(folder).jobs
    export_run(folder, tmp_path / "run.tar", lambda key: jobs[key].kind in HEAVY)
    import_run(tmp_path / "run.tar", elsewhere)
    assert played(elsewhere.path)[1] == 0
    assert same(finished, elsewhere.path)


def test_one_retrained_model_for_both_sides_grounds_retrain_at_exactly_one(tmp_path):
    result, _ = played(tmp_path / "run", "game.share_retrain=true")
    retrain = result.methods["retrain"]
    assert retrain.quality == 1.0
    assert all(found.advantage == 0.0 for found in retrain.by_adversary.values())
    assert retrain.interval == retrain.bounded_interval == (1.0, 1.0)  # by construction: nothing is left to chance
    assert all(found.interval == (0.0, 0.0) for found in retrain.by_adversary.values())


def test_a_shared_retrained_model_says_nothing_about_chance(tmp_path):
    result, _ = played(tmp_path / "run", "game.share_retrain=true")
    assert result.games[0].noise_floor is not None
    assert result.games[0].noise_floor.method != "retrain"
    assert result.games[0].noise_floor.q95 > 0


def test_a_sweep_gives_one_game_per_value_and_shares_what_can_be_shared(tmp_path):
    sweep = {"key": "unlearners.neg-grad.lr", "values": [0.0, 0.1]}
    result, n_run = played(tmp_path / "run", sweep=sweep)
    assert [game.value for game in result.games] == [0.0, 0.1]
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "methods" not in record
    assert [set(game["methods"]) for game in record["games"]] == [{"retrain", "none", "neg-grad"}] * 2
    assert record["games"][0]["methods"]["neg-grad"]["quality"] == record["games"][0]["methods"]["none"]["quality"]
    assert read_result(tmp_path / "run" / "result.json") == result
    with pytest.raises(AttributeError, match="games"):
        _ = result.methods
    cells = 2 * 2
    assert n_run == len(campaign().jobs) + cells * (1 + 1 + 4)


def crashing(model, retain, forget, context):
    raise RuntimeError("my method is not ready\nsecond line")


def test_a_method_that_crashes_is_named_and_the_others_have_their_numbers(finished, tmp_path):
    name = f"{__name__}:crashing"
    assert __name__ in sys.modules
    ending, result = play(
        campaign(f"unlearners.mine.method={name}"), RunFolder(tmp_path / "run"), RunOptions(trial=False)
    )
    assert ending.n_missing > 0
    assert result is not None
    assert result.methods["mine"].quality is None
    whole = json.loads((finished / "result.json").read_text())
    assert result.methods["none"].quality == whole["games"][0]["methods"]["none"]["quality"]
    assert {failure.error for failure in result.failures} == {"RuntimeError: my method is not ready"}
    assert all(failure.job.startswith("mine of pair") for failure in result.failures)
    for failure in result.failures:
        assert "RuntimeError" in (tmp_path / "run" / failure.traceback).read_text()
    assert read_result(tmp_path / "run" / "result.json") == result


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["unlearners.neggrad.lr=1"], "unknown unlearner 'neggrad'; did you mean 'neg-grad'?"),
        (["unlearners.neg-grad.rl=1"], "unlearners.neg-grad: unknown key 'rl'; did you mean 'lr'?"),
        (["unlearners.x.method=absent_module:f"], "cannot be imported"),
        (["unlearners.x.method=3"], "method = 3 is not a string"),
        (['adversaries=["confidense"]'], "did you mean 'confidence'?"),
        (["learner.name=minibach"], "did you mean 'minibatch'?"),
        (["learner.model=small-cnm"], "did you mean 'small-cnn'?"),
        (["learner.model_params.widht=3"], "did you mean 'width'?"),
        (["learner.epochs=0"], "epochs and batch_size must be at least 1"),
        (["learner.momentum=-1.0"], "must not be negative"),
        (["learner.name=numpy:get_include"], "lacks build, fit, fit_many, n_gradients"),
        (["unlearners.retrain.name=none"], "unknown key 'name'; did you mean 'method'?"),
        (["unlearners.neg-grad.lr=nan"], "lr = nan is not a finite number"),
        (["unlearners.x.method=numpy:pi"], "neither function nor unlearner"),
        (["adversaries.x.method=numpy:get_include"], "is a plain function"),
        (["adversaries.confidence.level=3"], "unknown key 'level'; valid: method, references"),
        (["data.name=digit"], "did you mean 'digits'?"),
        (["data.fraction=0.001"], "point"),
        (["game.alpha=0.001"], "alpha = 0.001"),
        (['game.sensitivity={by_class={"11"=1.0}}'], "no class '11'"),
        (['game.sensitivity={by_class={"1"=-1.0}}'], "not a weight"),
        (['game.sensitivity={file="absent.npy"}'], "no such file"),
        (
            ["game.sensitivity={by_class={" + ",".join(f'"{c}"=0.0' for c in range(10)) + "}}"],
            "sensitivity weights must not all be zero",
        ),
    ],
)
def test_mistakes_in_names_and_values_are_one_line_before_anything_runs(settings, words):
    with pytest.raises(UserError) as caught:
        campaign(*settings)
    assert words in str(caught.value)
    assert str(caught.value).startswith("tiny: ")
    assert "\n" not in str(caught.value)


def test_a_file_of_weights_must_fit_the_data(tmp_path):
    for values, words in (
        (np.ones(3), "1797 points"),
        (-np.ones(1797), "not negative"),
        (np.full(1797, np.nan), "finite"),
    ):
        np.save(tmp_path / "w.npy", values)
        with pytest.raises(UserError, match=words):
            campaign(f'game.sensitivity={{file="{tmp_path / "w.npy"}"}}')
    (tmp_path / "w.npy").write_bytes(b"no array")
    with pytest.raises(UserError, match=r"not a \.npy file"):
        campaign(f'game.sensitivity={{file="{tmp_path / "w.npy"}"}}')


def test_uniform_weights_from_a_file_or_by_class_change_no_number(finished, tmp_path):
    np.save(tmp_path / "w.npy", np.full(1797, 3.0))
    uniform = json.loads((finished / "result.json").read_text())["games"][0]["methods"]
    for name, how in (("file", f'{{file="{tmp_path / "w.npy"}"}}'), ("class", '{by_class={"0"=1.0}}')):
        result, _ = played(tmp_path / name, f"game.sensitivity={how}")
        for method, found in result.methods.items():
            assert found.quality == pytest.approx(uniform[method]["quality"], abs=1e-12)


def test_the_disk_estimate_is_near_what_is_used(finished):
    folder = RunFolder(finished)
    light, weights = disk_estimate(Campaign.read(folder).graphs)
    jobs = Campaign.read(folder).jobs
    used = {True: 0, False: 0}
    for key, done in folder.open_ledger().state.done.items():
        used[jobs[key].kind in HEAVY] += done.receipt.n_bytes
    assert weights <= used[True] <= 1.5 * weights
    assert light <= used[False] <= 2 * light


def test_data_that_changed_since_the_plan_is_that_jobs_failure(tmp_path):
    plan = campaign()
    game = replace(plan.graphs[0].game, data_digest="0" * 64)
    changed = Campaign.plan(
        replace(plan.resolved, games=[game], sources=replace(plan.resolved.sources, datasets={"0" * 64: game.data}))
    )
    ending, _ = play(changed, RunFolder(tmp_path / "run"))
    assert all("changed since the run was planned" in failure.line for failure in ending.failed.values())


def test_a_folder_of_another_format_is_refused_and_left_as_it_is(tiny_file, tmp_path, call):
    folder = tmp_path / "run"
    assert call("run", tiny_file, "--out", folder, "--executor", "inline")[0] == 0
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**record, "format": record["format"] - 1}))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for command in (("run", tiny_file, "--out", folder), ("score", folder, "--adversary", "loss"), ("status", folder)):
        code, _, err = call(*command)
        assert code == 2
        assert "but this version of forgetgauge reads" in err
        assert len(err.splitlines()) == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
