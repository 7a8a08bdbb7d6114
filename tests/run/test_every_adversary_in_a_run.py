"""Whole runs with every registered adversary: what they see, what they may not see, and what more queries give."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forgetgauge import evaluate, plugins
from forgetgauge.errors import UserError
from forgetgauge.game.adaptive import stein_intervals, stein_quality_interval
from forgetgauge.plan.graph import build_graph
from forgetgauge.plan.runfile import apply_settings
from forgetgauge.run.campaign import Campaign, add_adversaries, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.tasks.classification import CLASSIFICATION
from tests.conftest import TINY
from tests.methods import FOR_ALL

EVERY = [
    name
    for name in plugins.adversaries.entries
    if getattr(plugins.adversaries.load(name), "reads", frozenset()) <= set(CLASSIFICATION.signals)
]
"""That can be played on digits: those of language models read other signals."""


def campaign(*settings: str, **tables: Any) -> Campaign:
    raw = {**copy.deepcopy(TINY), "unlearners": ["retrain", "none"], "adversaries": EVERY, **tables}
    raw["shadows"] = {"count": 3, "references": 4}
    return Campaign.plan(resolve(apply_settings(raw, settings), "tiny"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every adversary, with one retrained model for both sides; not to be changed."""
    folder = RunFolder(tmp_path_factory.mktemp("every") / "run")
    ending, result = play(campaign("game.share_retrain=true", "game.seeds=2"), folder)
    assert ending.failed == {}
    assert result is not None
    return folder.path


def test_against_a_shared_retrained_model_every_adversary_gets_exactly_nothing_with_any_number_of_queries(finished):
    retrain = json.loads((finished / "result.json").read_text())["games"][0]["methods"]["retrain"]
    assert set(retrain["by_adversary"]) == set(EVERY)
    for found in retrain["by_adversary"].values():
        assert found["advantage"] == 0.0
        assert found["diagnostics"]["auc"] == pytest.approx(0.5, abs=1e-12)
        assert found["diagnostics"]["ks"] == pytest.approx(0.0, abs=1e-12)
        assert all(strong["advantage"] == 0.0 for strong in found["strong"])


def test_one_query_is_the_weak_adversary(finished):
    none = json.loads((finished / "result.json").read_text())["games"][0]["methods"]["none"]
    for found in none["by_adversary"].values():
        assert [strong["queries"] for strong in found["strong"]] == [1, 4, 16, 64]
        assert found["strong"][0]["advantage"] == pytest.approx(found["advantage"], abs=1e-12)


def test_no_fit_hangs_on_any_swap_pair():
    """Fitting cannot know F from T: no ancestor of a fit is named by a pair or a side."""
    jobs = build_graph(campaign().resolved.games[0]).jobs

    def ancestors(key: str) -> set[str]:
        return {key}.union(*(ancestors(read) for read in jobs[key].inputs.values()))

    fits = [key for key, job in jobs.items() if job.kind == "fit"]
    assert len(fits) > len(EVERY)
    for key in fits:
        for ancestor in ancestors(key):
            assert not {"pair", "side"} & set(jobs[ancestor].params)


def test_adversaries_that_ask_for_much_leave_the_jobs_of_the_others_as_they_were():
    few = campaign('adversaries=["confidence", "shadow"]').jobs
    assert set(few) <= set(campaign().jobs)


def test_a_white_box_adversary_can_be_added_while_the_weights_are_there_and_not_after(tmp_path):
    plain = 'adversaries=["confidence"]'
    kept, dropped = RunFolder(tmp_path / "kept"), RunFolder(tmp_path / "dropped")
    play(campaign(plain, "keep=weights"), kept)
    play(campaign(plain), dropped)
    with pytest.raises(UserError, match="'gradient-norm' needs models or weights that are not there") as caught:
        add_adversaries(dropped, ["gradient-norm"])
    assert "\n" not in str(caught.value)
    before = kept.open_ledger().state.n_runs.copy()
    _, result = play(add_adversaries(kept, ["gradient-norm"]), kept)
    assert result is not None
    assert set(result.methods["none"].by_adversary) == {"confidence", "gradient-norm"}
    after = kept.open_ledger().state.n_runs
    assert {key: after[key] for key in before} == before
    with pytest.raises(UserError, match="'u-lira' needs models"):
        add_adversaries(kept, ["u-lira"])


def test_an_adaptive_run_adds_pairs_until_the_interval_is_narrow_enough_or_the_limit_is_reached(tmp_path):
    settings = ("game.pairs=5", 'adversaries=["confidence", "loss"]', "until.half_width=0.05", "until.max_pairs=7")
    folder = RunFolder(tmp_path / "run")
    first, result = play(campaign(*settings), folder)
    assert result is not None
    assert result.games[0].spec["pairs"] == 7
    assert result.games[0].spec["until"]["pilot_pairs"] == 5
    assert result.methods["none"].n_pairs == 7
    again, same = play(campaign(*settings), folder)
    assert (first.n_run > 0, again.n_run) == (True, 0)
    assert same == result
    wide = ("game.pairs=5", 'adversaries=["confidence", "loss"]', "until.half_width=0.9")
    _, enough = play(campaign(*wide), folder)
    assert enough is not None
    assert enough.games[0].spec["pairs"] == 5


def test_an_adversary_whose_pilot_pairs_agree_takes_stein_s_interval_from_no_method(tmp_path):
    """N was chosen on the pilot, so the plain interval claims too much; one that decides nothing widens nothing."""
    settings = ("game.pairs=5", "until.half_width=0.05", "until.max_pairs=7")
    adversaries = {"confidence": {}, "constant": {"method": "tests.own_code:Constant"}}
    _, result = play(campaign(*settings, adversaries=adversaries), RunFolder(tmp_path / "run"))
    for method in result.methods.values():
        by_pair = np.array([found.by_pair for found in method.by_adversary.values()]).T
        assert len(by_pair) == 7
        assert not by_pair[:, 1].any()
        expected = stein_quality_interval(by_pair, 5, result.games[0].spec["level"], counted=[0])
        assert method.interval == (expected.low, expected.high)
        each = stein_intervals(by_pair, 5, result.games[0].spec["level"], together=False)
        assert [found.interval for found in method.by_adversary.values()] == [(one.low, one.high) for one in each]


def test_references_know_points_of_the_target_half_and_shadows_do_not(finished):
    folder = RunFolder(finished)
    jobs, state = Campaign.read(folder).jobs, folder.open_ledger().state
    looks = {"reference": [], "shadow": []}
    for key, job in jobs.items():
        if job.kind == "signals" and job.params["look_at"] == "target half" and "forget" not in job.params:
            looks[job.params["role"]].append(folder.objects.read(key, state.done[key].receipt.sha256).arrays["role"])
    assert np.mean(looks["reference"]) == pytest.approx(1 / 3, abs=0.02)  # half of |R ∪ F| = 2/3 of D
    assert not np.any(looks["shadow"])


class Useless:
    """An adversary that cannot be fitted."""

    needs = frozenset()

    def fit(self, shadows, target):
        raise RuntimeError("nothing to learn here")

    def load(self, arrays):
        return self


def test_an_adversary_that_cannot_be_fitted_is_named_and_the_others_keep_their_numbers(tmp_path):
    settings = ['adversaries=["confidence"]', f"adversaries.mine.method={__name__}:Useless"]
    ending, result = play(campaign(*settings), RunFolder(tmp_path / "run"), RunOptions(trial=False))
    assert result is not None
    assert [failure.error for failure in result.failures] == ["RuntimeError: nothing to learn here"]
    assert len(ending.failed) == 1
    assert set(result.methods["none"].by_adversary) == {"confidence"}
    assert result.methods["none"].quality is not None


@pytest.mark.slow
def test_every_method_of_the_catalogue_plays_the_game(tmp_path):
    names = set(FOR_ALL) - {"certified-removal"}  # which tells two classes apart, and no more
    raw = {**copy.deepcopy(TINY), "unlearners": sorted(names)}
    raw["game"]["pairs"] = 1
    ending, result = play(Campaign.plan(resolve(raw, "tiny")), RunFolder(tmp_path / "run"))
    assert ending.failed == {}
    assert result is not None
    assert set(result.methods) == names
    assert all(method.quality is not None for method in result.methods.values())


def test_whoever_compares_shadow_models_with_each_other_is_refused_one_before_anything_is_trained():
    asked = {"pairs": 2, "shadows": 1, "fraction": 0.2, "learner": {"epochs": 1}, "unlearner": "none"}
    for name in ("lira-offline", "rmia-offline", "rmia-online", "quantile"):
        with pytest.raises(UserError, match=rf"shadows.count = 1: adversary '{name}' compares .* two or more"):
            evaluate(adversaries=[name], on_failure="raise", **asked)
    found = evaluate(adversaries=["correctness", "confidence", "shadow", "lira-online"], references=4, **asked)
    assert found.failures == []


@pytest.mark.parametrize(
    ("alpha", "names"),
    [(0.01, ["rmia-offline"]), (0.001, ["lira-offline", "rmia-offline", "ensemble"])],
)
def test_a_small_alpha_is_refused_by_whoever_needs_points_that_two_shadow_models_left_out(alpha, names):
    """Else everything is trained, and then they cannot be fitted."""
    asked = {"pairs": 1, "alpha": alpha, "learner": {"epochs": 1, "model": "linear"}, "unlearner": "none"}
    for name in names:
        with pytest.raises(UserError, match=rf"game.alpha = {alpha:g}: .* adversaries without {name}$") as caught:
            evaluate(adversaries=["correctness", name], **asked)
        assert "\n" not in str(caught.value)
    assert evaluate(adversaries=["correctness", "lira-online"], **asked).failures == []


def test_the_number_of_shadow_models_that_a_small_alpha_is_told_to_use_is_enough():
    asked = {"pairs": 1, "alpha": 0.01, "learner": {"epochs": 1, "model": "linear"}, "unlearner": "none"}
    with pytest.raises(UserError, match=r"shadows.count = \d+ is enough") as caught:
        evaluate(adversaries=["rmia-offline"], **asked)
    (count,) = re.findall(r"shadows.count = (\d+)", str(caught.value))
    assert evaluate(adversaries=["rmia-offline"], shadows=int(count), **asked).failures == []
    with pytest.raises(UserError, match="is enough"):
        evaluate(adversaries=["rmia-offline"], shadows=int(count) - 1, **asked)
