"""Whole games in which groups are forgotten: who is drawn, what adversaries are shown, and that numbers are kept."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forgetgauge
from forgetgauge.auditing.export import write_audit_file
from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError
from forgetgauge.game.advantage import signed_advantage
from forgetgauge.plan.graph import Cell, build_graph
from forgetgauge.plan.jobs import ModelJob
from forgetgauge.results.record import read_result
from forgetgauge.results.views import GameView, RunView
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.point_sets import SubjectPoints
from forgetgauge.run.resolve import resolve
from forgetgauge.run.verify import verify
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

ORACLES = ["point", "group"]


@pytest.fixture(scope="module")
def groups_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the digits' 1,797 images: groups of one to nine, with names."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 10, 800)
    names = np.repeat([f"writer {which}" for which in range(800)], sizes)[:1797]
    path = tmp_path_factory.mktemp("groups") / "writers.npy"
    np.save(path, names)
    return path


def tables(groups: Path, **game: Any) -> dict[str, Any]:
    raw = copy.deepcopy(TINY)
    raw["data"] |= {"groups": str(groups), "fraction": 0.4}
    raw["game"] |= {"by": "group", **game}
    raw["adversaries"] = ["confidence", "shadow", "lira-online", "lira-offline"]
    raw["shadows"] = {"count": 2, "references": 4}
    return raw


@pytest.fixture(scope="module")
def finished(groups_file: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Both ways of asking, the retrained model shared; not to be changed."""
    folder = RunFolder(tmp_path_factory.mktemp("run") / "run")
    raw = tables(groups_file, share_retrain=True) | {"sweep": {"key": "game.oracle", "values": ORACLES}}
    ending, result = play(Campaign.plan(resolve(raw, "groups")), folder)
    assert ending.failed == {}
    assert result is not None
    return folder


def view_of(folder: RunFolder, game: int) -> GameView:
    graphs = Campaign.read(folder).graphs
    return GameView(graphs[game], RunView(folder))


def test_no_model_meets_a_part_of_a_group(groups_file):
    game = resolve(tables(groups_file), "groups").games[0]
    points = load_dataset("digits", {"groups": str(groups_file)}).points
    groups, halves = points.whole_groups, game.halves.draw(1797, points.whole_groups)
    assert not set(groups[halves[0]]) & set(groups[halves[1]])
    subjects = {job.subject for job in build_graph(game).jobs.values() if isinstance(job, ModelJob)}
    assert {subject.role for subject in subjects} == {"target", "shadow", "reference"}
    for subject in subjects:
        met = SubjectPoints.of(subject, points, *halves)
        parts = [set(groups[part].tolist()) for part in (met.sets.retain, met.sets.forget, met.sets.unseen)]
        assert sum(map(len, parts)) == len(set.union(*parts))
        if subject.role == "target":
            assert [len(part) for part in parts] == [game.sizes[0], game.sizes[1], game.sizes[1]]


def test_both_ways_of_asking_are_judged_and_a_shared_retrained_model_shows_nothing(finished):
    point, group = read_result(finished.result).games
    assert [game.spec["oracle"] for game in (point, group)] == ORACLES
    assert point.spec["n_forget"] == group.spec["n_forget"] == view_of(finished, 0).game.sizes[1]
    for game in (point, group):
        assert set(game.methods["none"].by_adversary) == {"confidence", "shadow", "lira-online", "lira-offline"}
        assert all(found.advantage == 0 for found in game.methods["retrain"].by_adversary.values())


def test_both_games_are_of_the_same_models(finished):
    first, second = (build_graph(view_of(finished, which).game).jobs for which in (0, 1))
    same = {key for key, job in first.items() if job.kind not in ("fit", "decide")}
    assert same == {key for key, job in second.items() if job.kind not in ("fit", "decide")}
    assert not {key for key, job in first.items() if job.kind in ("fit", "decide")} & set(second)


@pytest.mark.parametrize("oracle", [0, 1], ids=ORACLES)
def test_the_advantage_follows_from_the_stored_answers(finished, oracle):
    """By hand: the mean over groups of the share of a group's points that is called forgotten."""
    view = view_of(finished, oracle)
    found = view.outcomes["none"][0]
    drawn = view.pair(0)
    assert found.k == view.game.sizes[1] == len(np.unique(drawn.groups)) / 2
    sizes = np.bincount(np.unique(drawn.groups, return_inverse=True)[1])
    weight = 1 / sizes[np.unique(drawn.groups, return_inverse=True)[1]]
    for at, adversary in enumerate(view.adversaries):
        says = [
            view.run.read(view.graph.cells[Cell("none", 0, side, 0)].decide[adversary]).arrays["says_forget"]
            for side in (0, 1)
        ]
        expected = (
            signed_advantage(says[0], drawn.in_forget, weight) + signed_advantage(says[1], ~drawn.in_forget, weight)
        ) / 2
        assert found.advantage[at] == pytest.approx(expected)
        if oracle:
            assert all(len(set(one[drawn.groups == name])) == 1 for one in says for name in np.unique(drawn.groups))


def test_the_numbers_follow_from_the_decisions_that_a_result_carries(finished):
    assert verify(finished.path).problems == ()


def test_a_game_by_groups_needs_groups_and_a_group_can_be_shown_only_where_it_is_drawn(groups_file):
    raw = tables(groups_file)
    del raw["data"]["groups"]
    with pytest.raises(UserError, match="data 'digits' has no groups"):
        resolve(raw, "groups")
    with pytest.raises(UserError, match=r'say game\.by = "group"'):
        resolve(tables(groups_file, by="point", oracle="group"), "groups")
    with pytest.raises(UserError, match=r"too few|leaves no group"):
        resolve(tables(groups_file) | {"data": {"name": "digits", "groups": 900}}, "groups")


def test_a_group_weighs_as_its_mean_point_does(groups_file, tmp_path):
    raw = tables(groups_file, sensitivity={"by_class": {"3": 0.0, "4": 3.0}}, pairs=1)
    raw |= {"unlearners": ["none"], "adversaries": ["confidence"]}
    folder = RunFolder(tmp_path / "run")
    assert play(Campaign.plan(resolve(raw, "groups")), folder)[0].failed == {}
    view = view_of(folder, 0)
    first = view.run.read(view.graph.initialise).arrays
    own = np.select([first["labels"] == 3, first["labels"] == 4], [0.0, 3.0], 1.0)
    by_group = [own[first["group"] == name].mean() for name in np.unique(first["group"])]
    found = [first["weight"][first["group"] == name].sum() for name in np.unique(first["group"])]
    np.testing.assert_allclose(found, np.array(by_group) / np.sum(by_group))


def test_evaluate_takes_groups_beside_arrays_and_names():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(240, 4)).astype(np.float32), np.arange(240) % 2
    how: dict[str, Any] = {
        "by": "group",
        "pairs": 1,
        "shadows": 1,
        "unlearner": "none",
        "adversaries": ["confidence"],
        "learner": {"name": "minibatch", "epochs": 1, "model": "mlp"},
    }
    found = forgetgauge.evaluate(data=(x, y), groups=np.repeat(np.arange(60), 4), **how)
    assert found.games[0].spec["n_groups"] == 60
    named = forgetgauge.evaluate(data="digits", groups=np.arange(1797) // 9, fraction=0.2, **how)
    assert named.games[0].spec["n_groups"] == 200
    assert named.games[0].spec["oracle"] == "group"


def test_an_audit_file_is_not_written_of_groups_which_an_audit_would_take_for_points(finished, tmp_path):
    with pytest.raises(UserError, match="this game draws groups"):
        write_audit_file(finished.path, tmp_path / "outputs.npz")
