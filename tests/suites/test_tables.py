"""The tables as games, at every scale."""

from __future__ import annotations

import copy

import pytest

from forgetgauge.data.files import KNOWN, PART_OF
from forgetgauge.data.folders import data_folder, find
from forgetgauge.errors import UserError
from forgetgauge.plan.runfile import parse_spec
from forgetgauge.suites.invocation import plan_suite
from forgetgauge.suites.paper import KEYS, PRINTED, paper_table
from forgetgauge.suites.strengths import CLIP_NORMS, PUBLISHED, PUBLISHED_REMARK
from forgetgauge.suites.tables import LINEAR, OUTLINES, SCALES, suite, swap_game

EVERY = [(name, scale) for name in OUTLINES for scale in SCALES]


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_columns_are_the_papers(name, scale):
    if name in KEYS:
        assert [column.label for column in suite(name, scale).columns] == list(paper_table(name).columns)
    else:
        assert paper_table(name).rows == {}  # ours: nothing is compared with the paper


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_every_game_is_a_valid_run_file(name, scale):
    for column in suite(name, scale).columns:
        while column is not None:
            parse_spec(column.raw, f"{name} {column.label}")
            column = column.instead


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_what_is_not_the_papers_setting_says_so(name, scale):
    notes = " ".join(suite(name, scale).notes)
    assert notes
    if scale == "smoke":
        stand_ins = [column.note for column in suite(name, scale).columns if column.label != "SST5"]
        assert all("Embedded digits in place of" in note for note in stand_ins)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "table2",
            "a tenth of the paper’s epochs at a higher rate, fewer pairs and shadow models than at",
        ),
        ("table5a", "half of the data, 10 of the paper’s 20 epochs at the paper’s rate, fewer shadow models than"),
        ("table6", "half of the data, a tenth of the paper’s epochs at a higher rate, fewer pairs"),
        (
            "table7",
            "half of the data, a tenth of the paper’s epochs at a higher rate (SST-5: as many as at",
        ),
    ],
)
def test_small_scale_says_what_is_less_than_the_papers_in_that_table(name, said):
    made = suite(name, "small")
    assert made.notes[0].startswith(f"Small scale: {said}")
    halved = [column.raw["data"]["fraction"] == 0.5 for column in made.columns]
    assert all(halved) is any(halved) is ("half of the data" in said)
    learners = [column.raw["learner"] for column in made.columns]
    if name == "table5a":
        assert {learner["epochs"] for learner in learners} == {10}
        assert {learner.get("lr", 0.01) for learner in learners} == {0.01}


@pytest.mark.parametrize(("name", "scale"), EVERY)
def test_games_resolve_where_their_data_are(name, scale):
    made = suite(name, scale)
    if any(column.raw["learner"].get("name") == "dp-sgd" for column in made.columns):
        pytest.importorskip("opacus", reason="opacus is not installed (the extra [dp])")
    here = [c for c in made.columns if _is_here(c.raw["data"]["name"]) and c.label != "SST5"]
    if not here:
        pytest.skip(f"data: those of {name} at {scale} scale are not on this machine")
    planned = plan_suite(made, [column.label for column in here])
    assert [graph.game.value for graph in planned.campaign.graphs] == [column.label for column in here]


SEARCHED = [(name, scale) for name, scale in EVERY if OUTLINES[name].layout not in LINEAR]


@pytest.mark.parametrize(("name", "scale"), SEARCHED)
def test_published_settings_alone_are_a_part_of_the_table_and_nothing_is_looked_for(name, scale):
    whole, alone = suite(name, scale), suite(name, scale, published=True)
    assert alone.folder == f"{name}-published"
    assert PUBLISHED_REMARK in alone.notes
    for column, theirs in zip(alone.columns, whole.columns, strict=True):
        while column is not None:
            parse_spec(column.raw, f"{name} {column.label}")
            given = column.raw["unlearners"]
            assert set(given) == {"retrain", "none", "retrain-final", "ft-final", *PUBLISHED}
            assert "tuning" not in column.raw
            for method, row in PUBLISHED.items():
                in_the_table = {key: value for key, value in theirs.raw["unlearners"][row].items() if key != "method"}
                assert given[method] == in_the_table
            column, theirs = column.instead, theirs.instead


@pytest.mark.parametrize("name", ["table1", "table6"])
def test_what_is_made_for_published_settings_alone_is_not_made_again_for_the_table(name):
    whole, alone = (plan_suite(suite(name, "smoke", published=which)).campaign.jobs for which in (False, True))
    assert alone.keys() <= whole.keys()


def test_a_table_without_strengths_has_no_published_settings():
    with pytest.raises(UserError, match="table8-visible has no method with a strength"):
        suite("table8-visible", "paper", published=True)


def _is_here(data: str) -> bool:
    known = KNOWN.get(PART_OF.get(data, data))
    return known is None or find(known, data_folder()) is not None


@pytest.mark.parametrize("scale", SCALES)
def test_the_setting_that_two_tables_share_is_one_game(scale):
    assert suite("table1", scale).columns[-1].raw == suite("table2", scale).columns[0].raw


@pytest.mark.parametrize("scale", SCALES)
def test_swap_against_random_splits_is_the_same_game_with_more_pairs(scale):
    more, table1 = swap_game(SCALES[scale]), copy.deepcopy(suite("table1", scale).columns[-1].raw)
    assert more["game"].pop("pairs") > table1["game"].pop("pairs")
    assert more == table1


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["table3", "table4a", "table4b", "table5a", "table5b"])
def test_the_clip_norm_is_that_of_its_budget_and_the_table_says_how_it_was_chosen(name, scale):
    made = suite(name, scale)
    *private, without = [column.raw["learner"] for column in made.columns]
    chosen = CLIP_NORMS[scale]
    assert [one["clip_norm"] for one in private] == [chosen.get(one["target_epsilon"], 1.2) for one in private]
    assert "clip_norm" not in without  # nothing is clipped
    (said,) = [note for note in made.notes if "clip norm" in note]
    assert all(f"{value:g} at ε = {epsilon:g}" in said for epsilon, value in chosen.items())
    assert ("1.2 at every ε" in said) == (not chosen)
    assert "clip norm" not in " ".join(suite("table1", scale).notes)


@pytest.mark.parametrize("scale", SCALES)
def test_strengths_are_chosen_in_every_column_and_published_settings_stand_beside(scale):
    for name in ("table1", "table2", "table3", "table6", "table7"):
        for column in suite(name, scale).columns:
            methods = parse_spec(column.raw, name).unlearners
            tuned = {method for method, how in methods.items() if how.get("strength") == "auto"}
            assert tuned == {"neg-grad", "fisher", "salun", "ssd"}
            published = {how["method"] for how in methods.values() if how.get("strength") == "published"}
            assert published == {"fisher", "salun", "ssd"}
            assert set(methods) <= set(PRINTED)


def test_the_deepest_network_alone_is_warmed_up():
    warmups = [column.raw["learner"].get("warmup", 0) for column in suite("table6", "paper").columns]
    assert warmups == [0, 0, 1 / 200]


def test_no_scale_but_smoke_stands_in_with_digits_and_smoke_downloads_nothing():
    for name, scale in EVERY:
        names = {column.raw["data"]["name"] for column in suite(name, scale).columns}
        assert (names <= {"digits", "digits-3-8", "sst5"}) == (scale == "smoke")


def test_data_that_are_not_here_are_never_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    with pytest.raises(UserError, match="forgetgauge data get cifar10"):
        plan_suite(suite("table1", "small"))


def test_a_column_whose_data_are_not_here_says_why_and_the_others_are_played(monkeypatch, tmp_path):
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    planned = plan_suite(suite("table7", "smoke"))
    assert [column.label for column in planned.columns] == ["CIFAR100", "MNIST"]
    assert "data get sst5" in planned.not_run["SST5"]


def test_mistaken_names_are_answered_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'table1'"):
        suite("tabel1", "smoke")
    with pytest.raises(UserError, match="did you mean 'paper'"):
        suite("table1", "papper")
    with pytest.raises(UserError, match="unknown column"):
        plan_suite(suite("table2", "smoke"), ["0.3"])
