"""Games on the hardest points: who is chosen, that the draw of F is not known to those who choose, what is played."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError
from forgetgauge.plan.graph import build_graph
from forgetgauge.plan.jobs import DRAW, ModelJob
from forgetgauge.plan.subjects import Hardest, Scorer, Shadow, Target
from forgetgauge.results.record import read_result
from forgetgauge.results.views import GameView, RunView
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.run.verify import verify
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY


def tables(**game: Any) -> dict[str, Any]:
    raw = copy.deepcopy(TINY)
    raw["game"] |= {"hardest": 0.4, "alpha": 0.2, **game}
    raw["learner"] = {"epochs": 4, "batch_size": 32}
    raw["adversaries"] = ["confidence", "shadow", "lira-online", "u-lira", "rmia-offline"]
    raw["shadows"] = {"count": 3, "references": 4, "scorers": 4}
    return raw


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run with a method whose strength is chosen, on shadow models that forget hard points too."""
    folder = RunFolder(tmp_path_factory.mktemp("run") / "run")
    raw = tables() | {"tuning": {"points": 2, "shadows": 3}}
    raw["unlearners"] = {"retrain": {}, "none": {}, "neg-grad": {"strength": "auto"}}
    ending, result = play(Campaign.plan(resolve(raw, "hardest")), folder)
    assert ending.failed == {}
    assert result is not None
    return folder


def view_of(folder: RunFolder) -> GameView:
    return GameView(Campaign.read(folder).graphs[0], RunView(folder))


def test_f_and_t_are_of_the_points_with_the_largest_scores(finished):
    view = view_of(finished)
    first = view.run.read(view.graph.initialise).arrays
    chosen = first["hardest"].astype(bool)
    assert chosen.sum() == round(0.4 * len(chosen))
    assert first["memorisation"][chosen].min() >= first["memorisation"][~chosen].max()
    drawn = [view.pair(which) for which in range(view.game.pairs)]
    assert all(chosen[pair.points].all() for pair in drawn)
    assert not np.array_equal(drawn[0].split.forget, drawn[1].split.forget)
    assert len(drawn[0].split.retain) == len(chosen) - len(drawn[0].points)


def test_whoever_chooses_the_points_knows_no_draw(finished):
    """The first job hangs on scorers alone, these on nothing, and no other model is one of theirs."""
    jobs = view_of(finished).graph.jobs

    def ancestors(key: str) -> set[str]:
        return {key}.union(*(ancestors(read) for read in jobs[key].inputs.values()))

    behind = {key for key in ancestors(view_of(finished).graph.initialise) if isinstance(jobs[key], ModelJob)}
    assert behind
    assert all(isinstance(jobs[key].subject, Scorer) for key in behind)
    others = [key for key, job in jobs.items() if isinstance(job, ModelJob) and not isinstance(job.subject, Scorer)]
    assert not any(jobs[key].inputs.get("model") in behind for key in others)
    for key in (key for key, job in jobs.items() if job.kind == "fit"):
        assert not any({"pair", "side"} & set(jobs[one].params) for one in ancestors(key))


def test_targets_and_shadows_wait_for_the_choice_and_trained_references_do_not(finished):
    for job in view_of(finished).graph.jobs.values():
        if isinstance(job, ModelJob):
            is_told = isinstance(job.subject, Target | Shadow) or getattr(job.subject, "forget", None) is not None
            assert (DRAW in job.inputs) == is_told


def test_a_shadow_model_leaves_out_and_forgets_hard_points_as_a_target_does():
    game = resolve(tables(), "hardest").games[0]
    labels = load_dataset("digits").points.host_labels
    target, shadow = game.halves.draw(game.n_points)
    rng = np.random.default_rng(0)
    hard = Hardest(*(rng.permutation(len(half)) < round(0.4 * len(half)) for half in (target, shadow)))
    n_retain, n_forget = game.sizes
    subject = Shadow(game.halves, n_retain + n_forget, 0, n_forget)
    sets = subject.point_sets(target, shadow, labels, None, hard)
    known = set(shadow[hard.shadow].tolist())
    assert set(sets.unseen.tolist()) < known
    assert set(sets.forget.tolist()) < known
    assert (len(sets.retain), len(sets.forget)) == (n_retain, n_forget)
    assert sorted([*sets.retain, *sets.forget, *sets.unseen]) == sorted(shadow.tolist())
    again = replace(subject, forget=None).point_sets(target, shadow, labels, None, hard)
    np.testing.assert_array_equal(np.sort(again.training), np.sort(sets.training))


def test_every_number_is_there_and_follows_from_the_decisions(finished):
    game = read_result(finished.result).games[0]
    assert set(game.methods["none"].by_adversary) == {"confidence", "shadow", "lira-online", "u-lira", "rmia-offline"}
    assert game.methods["neg-grad"].tuning is not None
    assert verify(finished.path).problems == ()
    assert verify(finished.path, "signals").problems == ()


def test_the_whole_of_d_is_the_game_as_it_always_was():
    plain, whole = (build_graph(resolve(raw, "t").games[0]) for raw in (copy.deepcopy(TINY), tables(hardest=1.0)))
    assert not any(isinstance(getattr(job, "subject", None), Scorer) for job in whole.jobs.values())
    assert all(DRAW not in job.inputs for job in whole.jobs.values())
    assert plain.initialise == whole.initialise


def test_more_than_half_of_the_hardest_cannot_be_forgotten():
    with pytest.raises(UserError, match=r"use game\.alpha of at most 0\.052"):
        resolve(tables(hardest=0.1), "hardest")
    resolve(tables(hardest=0.1, alpha=0.052), "hardest")
    with pytest.raises(UserError, match="weights above 0"):
        resolve(tables(sensitivity={"by_class": {"3": 0.0}}), "hardest")


def test_the_hardest_groups_are_played_by_group(tmp_path):
    raw = tables(by="group", pairs=1)
    raw["data"] |= {"groups": 3, "fraction": 0.5}
    raw |= {"unlearners": ["none"], "adversaries": ["confidence"]}
    folder = RunFolder(tmp_path / "run")
    assert play(Campaign.plan(resolve(raw, "hardest")), folder)[0].failed == {}
    view = view_of(folder)
    first, drawn = view.run.read(view.graph.initialise).arrays, view.pair(0)
    assert len(np.unique(drawn.groups)) == 2 * view.game.sizes[1]
    assert set(drawn.groups) <= set(first["group"][first["hardest"].astype(bool)])
