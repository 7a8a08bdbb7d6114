"""Where a run leaks: ROC, Q by class and by columns that the data brings, and the points that show most."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import forgetgauge
from forgetgauge.data.arrays import read_npz
from forgetgauge.data.digits import load_digits
from forgetgauge.files import with_seal
from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.parts import MOST_PARTS, coded
from forgetgauge.results.points import chance_of, visible_points
from forgetgauge.results.record import read_result
from forgetgauge.results.verified import verify_result
from forgetgauge.results.views import GameView, RunView
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.tasks.classification import CLASSIFICATION
from tests.own_code import TINY

GAME = {**TINY, "pairs": 6, "adversaries": ["confidence", "entropy"]}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(folder, result, the data file) of a run on a file with a further column."""
    folder = tmp_path_factory.mktemp("where")
    points = load_digits().points
    labels = points.whole_labels.numpy()
    region = np.where(np.arange(len(labels)) % 3 == 0, "north", "south")
    file = folder / "mine.npz"
    secret = np.where(np.arange(len(labels)) % 2 == 0, "a secret", "another one")
    more = {"region": region, "serial": np.arange(len(labels)), "text": secret}
    np.savez(file, x=points.whole_inputs.numpy(), y=labels, **more)
    result = forgetgauge.evaluate(unlearner=["retrain", "none"], data=str(file), out=folder / "run", **GAME)
    return folder / "run", result, file


@pytest.fixture(scope="module")
def view(played):
    folder = RunFolder.at(played[0])
    return GameView(Campaign.read(folder).graphs[0], RunView(folder))


def test_every_method_has_the_curve_of_its_strongest_adversary_alone(played):
    for method in played[1].methods.values():
        drawn = {name for name, found in method.by_adversary.items() if found.roc is not None}
        assert drawn == {method.adversary}
        roc = method.by_adversary[method.adversary].roc
        assert roc.fpr == sorted(roc.fpr)
        assert roc.tpr == sorted(roc.tpr)
        assert (roc.fpr[-1], roc.tpr[-1]) == pytest.approx((1, 1))
        assert all(low <= rate <= high for rate, (low, high) in zip(roc.tpr, roc.band, strict=True))


def test_the_customary_rates_are_points_of_the_curve(played):
    for method in played[1].methods.values():
        found = method.by_adversary[method.adversary]
        below = [rate for fpr, rate in zip(found.roc.fpr, found.roc.tpr, strict=True) if fpr <= 0.0100001]
        if below:
            assert found.diagnostics.tpr_at_fpr_1_percent == pytest.approx(max(below))


def test_parts_are_the_classes_and_what_the_data_brings_but_no_column_with_a_value_for_each_point(played):
    for method in played[1].methods.values():
        assert list(method.parts) == ["class", "region"]
        assert [part.part for part in method.parts["region"]] == ["north", "south"]
        assert len(method.parts["class"]) == 10


def test_a_part_is_what_the_stored_decisions_say_of_its_points(played, view):
    _, result, file = played
    region = np.load(file)["region"]
    target = view.run.read(view.graph.initialise).arrays["target"]
    for name, method in result.methods.items():
        which = view.adversaries.index(method.adversary)
        by_pair = []
        for pair, outcome in view.outcomes[name].items():
            own = region[target[view.pair(pair).points]] == "north"
            sides = zip(outcome.decisions[:, 0], (outcome.in_forget, ~outcome.in_forget), strict=True)
            by_pair.append(
                np.mean([signed_advantage(said[own, which], side[own], np.ones(own.sum())) for said, side in sides])
            )
        north = method.parts["region"][0]
        assert north.advantage == pytest.approx(np.mean(by_pair))
        assert north.n_pairs == 6


def test_a_result_with_parts_is_computed_again_from_itself_and_a_changed_part_is_seen(played, tmp_path):
    found = verify_result(played[0] / "result.json")
    assert found.problems == ()
    record = json.loads((played[0] / "result.json").read_text())
    record["games"][0]["methods"]["none"]["parts"]["region"][0]["advantage"] = 0.5
    path = tmp_path / "result.json"
    path.write_text(with_seal(json.dumps({**record, "sha256": ""}, indent=1, sort_keys=True) + "\n"))
    assert any("parts/region/0/advantage" in line for line in verify_result(path).problems)


@pytest.mark.parametrize("change", ["absent", "short", "unnamed"])
def test_columns_that_do_not_fit_are_named_and_not_computed_with(played, tmp_path, change):
    record = json.loads((played[0] / "result.json").read_text())
    decisions = record["games"][0]["decisions"]
    if change == "absent":
        del decisions["pairs"][0]["columns"]["region"]
    elif change == "short":
        decisions["pairs"][0]["columns"]["region"] = decisions["pairs"][0]["columns"]["region"][:-8]
    else:
        decisions["columns"]["region"] = ["north"]
    path = tmp_path / "result.json"
    path.write_text(with_seal(json.dumps({**record, "sha256": ""}, indent=1, sort_keys=True) + "\n"))
    assert any("cannot be judged" in line for line in verify_result(path).problems)


def test_a_column_changes_nothing_but_what_is_shown_by_it(played, tmp_path):
    """Its values are in no key of a model: the same file without it gives the same numbers."""
    bare = tmp_path / "bare.npz"
    with np.load(played[2]) as arrays:
        np.savez(bare, x=arrays["x"], y=arrays["y"])
    again = forgetgauge.evaluate(unlearner=["none"], data=str(bare), **GAME)
    assert again.methods["none"].by_adversary == played[1].methods["none"].by_adversary
    assert list(again.methods["none"].parts) == ["class"]


def test_a_file_s_further_arrays_are_columns_if_they_have_a_word_or_whole_number_for_each_point(tmp_path):
    path = tmp_path / "mine.npz"
    things = {"word": np.array(["a", "b", "a"]), "whole": np.arange(3), "real": np.ones(3), "long": np.arange(4)}
    np.savez(path, x=np.zeros((3, 2)), y=[0, 1, 0], thing=np.array([{}], dtype=object), **things)
    assert set(read_npz(path, CLASSIFICATION).columns) == {"word", "whole"}


def test_values_are_named_in_their_order_and_too_many_are_not_looked_at():
    names, codes = coded(np.array([3, 1, 3, 2]))
    assert (names, codes.tolist()) == (["1", "2", "3"], [2, 0, 2, 1])
    assert coded(np.zeros(5)) is None
    assert coded(np.arange(MOST_PARTS + 1)) is None


# -- points ------------------------------------------------------------------------------------------------------------


def test_the_points_that_show_most_are_counted_model_by_model(played, view):
    result = played[1]
    found = visible_points(view, "none", result.methods["none"])
    target = view.run.read(view.graph.initialise).arrays["target"]
    which, turned = view.adversaries.index(found.adversary), found.turned
    seen, wrong, asked = (dict.fromkeys(target.tolist(), 0) for _ in range(3))
    for pair, outcome in view.outcomes["none"].items():
        for place, point in enumerate(view.pair(pair).points):
            own = int(target[point])
            forgot = 0 if outcome.in_forget[place] else 1
            told = [bool(outcome.decisions[side, 0, place, which]) != turned for side in (forgot, 1 - forgot)]
            asked[own] += 1
            seen[own] += told == [True, False]
            wrong[own] += told == [False, True]
    for point in found.points:
        assert (point.n_seen, point.n_wrong, point.n_asked) == (seen[point.id], wrong[point.id], asked[point.id])
    net = sorted((seen[own] - wrong[own] for own in seen), reverse=True)
    assert [point.n_seen - point.n_wrong for point in found.points] == net[: len(found.points)]
    assert found.n_such == sum(one >= found.least for one in net)


def test_what_a_coin_would_give_is_the_share_of_all_sequences_of_throws():
    for n_told in range(6):
        throws = [bin(one).count("1") for one in range(2**n_told)]
        for least in range(1, 7):
            right = np.mean([2 * heads - n_told >= least for heads in throws])
            assert chance_of(np.array([n_told]), least)[0] == pytest.approx(right)


def test_a_result_carries_no_point(played):
    text = (played[0] / "result.json").read_text()
    assert "margin_forgotten" not in text
    assert "secret" not in text
    assert {field.name for field in dataclasses.fields(read_result(played[0] / "result.json"))}.isdisjoint({"points"})


def test_report_shows_points_only_where_it_is_asked_to(played, call, tmp_path):
    plain, with_points = tmp_path / "plain.html", tmp_path / "points.html"
    assert call("report", played[0], "--to", plain)[0] == 0
    assert call("report", played[0], "--to", with_points, "--points")[0] == 0
    assert "Private data" not in plain.read_text()
    assert "img-src" not in plain.read_text()
    page = with_points.read_text()
    assert "Private data" in page
    assert "a secret" in page
    assert "secret" not in plain.read_text()


def test_points_need_a_run_and_its_data(played, call, tmp_path):
    alone = tmp_path / "result.json"
    alone.write_bytes((played[0] / "result.json").read_bytes())
    code, _, err = call("report", tmp_path, "--points")
    assert (code, "--points needs the folder of a run" in err) == (2, True)
    moved = played[2].rename(played[2].with_suffix(".away"))
    try:
        code, _, err = call("report", played[0], "--points", "--to", tmp_path / "x.html")
    finally:
        moved.rename(played[2])
    assert (code, len(err.splitlines())) == (2, 1)


# -- an audit ----------------------------------------------------------------------------------------------------------


def test_an_audit_with_labels_has_parts_as_its_rows_say(tmp_path):
    rng, rows = np.random.default_rng(0), []
    for pair in range(5):
        order = rng.permutation(60)
        for side in (0, 1):
            forget = (np.arange(60) < 30) == (side == 0)
            said = rng.random(60) < 0.3 + 0.6 * forget * (order % 3 == 2)
            rows += list(zip([pair] * 60, [side] * 60, order, forget, order % 3, said, strict=True))
    pair, side, point, forget, label, said = (np.array(column) for column in zip(*rows, strict=True))
    where = np.where(forget, "forget", "unseen")
    np.savez(tmp_path / "a.npz", pair=pair, side=side, point=point, set=where, label=label, decision=said)
    found = forgetgauge.audit(tmp_path / "a.npz").methods["model"].parts["class"]
    for one in found:
        own = label == int(one.part)
        models = [own & (pair == p) & (side == s) for p in range(5) for s in (0, 1)]
        each = [said[model & forget].mean() - said[model & ~forget].mean() for model in models]
        assert one.advantage == pytest.approx(np.mean(each))
    assert [one.interval[0] > 0 for one in found] == [False, False, True]
