"""Audits: a run's exported logits give the run's numbers; what breaks the game is refused in one line."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import forgetgauge
from forgetgauge.attack.threshold import best_threshold
from forgetgauge.auditing import audit_file, write_audit_file
from forgetgauge.auditing.formats import read_csv, read_npz, write_csv, write_npz
from forgetgauge.auditing.outputs import OPTIONAL, REQUIRED, SHADOW
from forgetgauge.errors import DoubtfulResult, UserError
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.record import UNDRAWN, Result, read_result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

FOUR = ["correctness", "confidence", "entropy", "modified-entropy"]
WRITE = {".npz": write_npz, ".csv": write_csv}
K, N_CLASSES = 6, 3


PAGE_CHANGED = "report.html was changed after it was written, or not finished: `report` writes it again\n"


def made_up(*, pairs=2, seeds=1, methods=("model",), seed=0, memory=2.0) -> dict[str, np.ndarray]:
    """The columns of a valid file: what is forgotten keeps a higher true logit; shadows likewise."""
    rng = np.random.default_rng(seed)
    label_of = rng.integers(0, N_CLASSES, 40)
    rows: dict[str, list] = {name: [] for name in ("method", "pair", "side", "seed", "point", "set", "label", "logits")}
    for pair in range(pairs):
        points = rng.permutation(40)[: 2 * K]
        for method in methods:
            for side in (0, 1):
                for training in range(seeds):
                    for position, point in enumerate(points.tolist()):
                        forgotten = (position < K) == (side == 0)
                        logits = rng.standard_normal(N_CLASSES)
                        logits[label_of[point]] += memory * forgotten
                        cells = (method, pair, side, training, point, "forget" if forgotten else "unseen")
                        for name, cell in zip(rows, (*cells, label_of[point], logits), strict=True):
                            rows[name].append(cell)
    member = np.arange(60) % 2 == 0
    label = rng.integers(0, N_CLASSES, 60)
    logits = rng.standard_normal((60, N_CLASSES))
    logits[np.arange(60), label] += memory * member
    shadow = {"label": label, "member": member, "model": np.repeat([0, 1], 30), "logits": logits}
    return {name: np.array(cells) for name, cells in rows.items()} | {f"shadow_{n}": c for n, c in shadow.items()}


def audited(raw, tmp_path, suffix=".npz", **how) -> Result:
    path = tmp_path / f"scores{suffix}"
    WRITE[suffix](path, raw)
    return audit_file(path, **how)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, Result]:
    """A tiny run of two seeds with weights by class."""
    folder = tmp_path_factory.mktemp("run") / "run"
    tables = copy.deepcopy(TINY) | {"adversaries": FOUR}
    tables["game"] |= {"seeds": 2, "sensitivity": {"by_class": {"3": 5.0}}}
    ending, result = play(Campaign.plan(resolve(tables, "tiny")), RunFolder(folder))
    assert ending.n_missing == 0
    return folder, result


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_the_exported_logits_of_a_run_give_its_numbers_to_the_last_bit(run, tmp_path, suffix):
    folder, result = run
    path = tmp_path / f"run{suffix}"
    write_audit_file(folder, path)
    audit = audit_file(path, adversaries=FOUR)
    assert audit.methods.keys() == result.methods.keys() == {"retrain", "none", "neg-grad"}
    for method, expected in result.methods.items():
        found = audit.methods[method]
        single = {name: replace(adversary, strong=[]) for name, adversary in expected.by_adversary.items()}
        assert found.by_adversary == single
        unknown = {"by_adversary", "utility", "utility_by_pair", "n_gradients", "seconds", "facts", "metrics"}
        for name in {field.name for field in fields(expected)} - unknown:  # what no file of outputs can say
            assert getattr(found, name) == getattr(expected, name), name
        for part in ("forget", "unseen"):
            assert found.utility[part] == pytest.approx(expected.utility[part], abs=1e-12)
    (game,), (expected_game,) = audit.games, result.games
    assert game.noise_floor == expected_game.noise_floor
    assert by_names(game.comparisons) == by_names(expected_game.comparisons)
    assert game.spec["n_forget"] == expected_game.spec["n_forget"]


def test_a_shared_retrain_has_one_interval_in_the_run_and_in_the_audit_of_its_export(tmp_path):
    tables = copy.deepcopy(TINY) | {"unlearners": ["retrain", "none"], "adversaries": ["confidence", "correctness"]}
    tables["game"] |= {"share_retrain": True}
    _, result = play(Campaign.plan(resolve(tables, "tiny")), RunFolder(tmp_path / "run"))
    write_audit_file(tmp_path / "run", tmp_path / "run.npz")
    audit = audit_file(tmp_path / "run.npz", adversaries=["confidence", "correctness"])
    for found in (result.methods["retrain"], audit.methods["retrain"]):
        assert found.interval == found.bounded_interval == (1.0, 1.0)
        assert {one.interval for one in found.by_adversary.values()} == {(0.0, 0.0)}
    assert audit.methods["none"].interval == result.methods["none"].interval != (1.0, 1.0)


def by_names(comparisons):
    """Whatever the order of the methods."""
    return {
        tuple(sorted((one.first, one.second))): (pytest.approx(abs(one.difference), abs=1e-12), one.better)
        for one in comparisons
    }


def test_another_root_seed_of_the_run_is_told_for_the_same_p_values(tmp_path):
    raw = made_up()
    assert audited(raw, tmp_path, seed=5).methods["model"].quality == audited(raw, tmp_path).methods["model"].quality


def test_the_numbers_of_numpy_are_numbers_and_half_a_seed_is_none(tmp_path):
    raw = made_up()
    plain = audited(raw, tmp_path, seed=5, level=0.5, delta=0)
    other = audited(raw, tmp_path, seed=np.int64(5), level=np.float32(0.5), delta=np.int64(0))
    assert other.games == plain.games
    assert '"seed": 5,' in other.to_json()
    for seed in (0.5, 5.0, "5", None, True):
        with pytest.raises(UserError, match=r"seed = .* is not a whole number"):
            audited(raw, tmp_path, seed=seed)


def test_the_bounded_interval_can_be_asked_for(tmp_path):
    raw = made_up(pairs=6)
    shown, asked = (audited(raw, tmp_path, interval=kind).methods["model"] for kind in ("student", "bounded"))
    assert asked.interval == asked.bounded_interval == shown.bounded_interval != shown.interval
    with pytest.raises(UserError, match="unknown interval 'normal'"):
        audited(raw, tmp_path, interval="normal")


def test_without_retrain_run_and_audit_have_one_noise_floor(tmp_path):
    """The largest, so as to claim no less."""
    found = audited(made_up(pairs=3, seeds=3, methods=("a", "b", "c")), tmp_path).games[0]
    floors = {name: method.noise_floor for name, method in found.methods.items()}
    assert len(set(floors.values())) > 1
    assert found.noise_floor.method == max(floors, key=floors.get)
    assert found.noise_floor.q95 == max(floors.values())


def test_what_is_written_to_a_folder_is_a_result_with_a_report(run, tmp_path):
    folder, _ = run
    write_audit_file(folder, tmp_path / "run.npz")
    result = audit_file(tmp_path / "run.npz", tmp_path / "out")
    again = read_result(tmp_path / "out/result.json")
    assert again.to_json() == result.to_json()
    assert "neg-grad" in render_table(again)
    assert "neg-grad" in render_report(again)
    assert "torch" not in result.environment


def test_another_audit_in_the_same_folder_does_not_take_the_place_of_the_first(tmp_path, call):
    told = []
    for seed in (0, 0, 1):
        write_npz(tmp_path / "scores.npz", made_up(seed=seed))
        code, _, err = call("audit", tmp_path / "scores.npz", "--out", tmp_path / "out", "-q")
        told.append((code, "held another audit" in err))
    assert told == [(0, False), (0, False), (0, True)]
    names = ["report-1.html", "report.html", "result-1.json", "result.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert call("verify", tmp_path / "out/result-1.json")[0] == 0
    (tmp_path / "out/report.html").write_text("Q = 1")
    assert call("verify", tmp_path / "out")[:2] == (1, PAGE_CHANGED)


def test_a_folder_that_keeps_a_run_is_not_overwritten(run, tmp_path):
    folder, _ = run
    before = (folder / "result.json").read_text()
    write_npz(tmp_path / "scores.npz", made_up())
    with pytest.raises(UserError, match="a run is kept in this folder"):
        audit_file(tmp_path / "scores.npz", folder)
    assert (folder / "result.json").read_text() == before


def test_an_audit_loads_no_torch(tmp_path):
    write_npz(tmp_path / "scores.npz", made_up())
    code = f"""
import sys
from pathlib import Path
from forgetgauge.auditing import audit_file
audit_file(Path({str(tmp_path / "scores.npz")!r}), Path({str(tmp_path / "out")!r}))
sys.exit('torch' in sys.modules)"""
    assert (
        subprocess.run([sys.executable, "-W", "error", "-W", "ignore::UserWarning", "-c", code], check=False).returncode
        == 0
    )
    assert json.loads((tmp_path / "out/result.json").read_text())["games"][0]["methods"]["model"]["n_pairs"] == 2


@pytest.mark.parametrize("how", ["plain", "weighted", "decisions", "scores", "by method"])
def test_both_formats_say_the_same(tmp_path, how):
    raw = made_up(seeds=2, methods=("a", "b"))
    if how == "weighted":
        raw["weight"] = 1.0 + raw["point"]
    if how == "decisions":
        raw = {name: column for name, column in raw.items() if "shadow" not in name and name != "logits"}
        raw["decision"] = raw["point"] % 3 == 0
    if how == "scores":
        raw["score"], raw["shadow_score"] = raw.pop("logits")[:, 0], raw.pop("shadow_logits")[:, 0]
    if how == "by method":
        shadow = [name for name in raw if name.startswith("shadow_")]
        raw |= {name: np.concatenate([raw[name], raw[name][::-1]]) for name in shadow}
        raw["shadow_method"] = np.repeat(["a", "b"], 60)
    results = [audited(raw, tmp_path, suffix) for suffix in (".npz", ".csv")]
    assert results[0].methods == results[1].methods
    back = [read(tmp_path / f"scores{suffix}") for suffix, read in ((".npz", read_npz), (".csv", read_csv))]
    for name, column in raw.items():
        assert all(np.array_equal(one[name], column) for one in back), name


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_neither_the_order_of_rows_nor_the_names_of_points_matter(tmp_path, suffix):
    raw = made_up(seeds=2, methods=("a", "b"))
    expected = audited(raw, tmp_path, suffix).methods
    order = np.random.default_rng(3).permutation(len(raw["pair"]))
    shuffled = {name: column if name.startswith("shadow_") else column[order] for name, column in raw.items()}
    shuffled["point"] = np.char.add("photo ", np.char.zfill(shuffled["point"].astype(str), 3))
    shuffled["pair"] = np.array(["first", "second"])[shuffled["pair"]]
    found = audited(shuffled, tmp_path, suffix).methods
    assert {name: found[name] for name in expected} == expected


def test_own_decisions_need_no_shadows_and_are_called_that(tmp_path):
    raw = {name: made_up()[name] for name in ("pair", "side", "point", "set")}
    raw["decision"] = raw["set"] == "forget"
    (method,) = audited(raw, tmp_path).methods.values()
    assert list(method.by_adversary) == ["own decisions"]
    assert method.by_adversary["own decisions"].advantage == 1.0
    assert method.quality_plugin == 0.0
    assert method.utility == {}


def test_own_scores_are_cut_at_the_best_threshold_of_the_shadow_block(tmp_path):
    raw = made_up()
    raw = {name: column for name, column in raw.items() if "logits" not in name and "label" not in name}
    rng = np.random.default_rng(0)
    raw["score"] = rng.standard_normal(len(raw["pair"])) + (raw["set"] == "forget")
    raw["shadow_score"] = rng.standard_normal(60) + raw["shadow_member"]
    threshold = best_threshold(raw["shadow_score"][raw["shadow_member"]], raw["shadow_score"][~raw["shadow_member"]])
    says, forgotten = raw["score"] >= threshold, raw["set"] == "forget"
    by_pair = [
        says[(raw["pair"] == p) & forgotten].mean() - says[(raw["pair"] == p) & ~forgotten].mean() for p in (0, 1)
    ]
    found = audited(raw, tmp_path).methods["model"].by_adversary["own score"]
    assert found.by_pair == pytest.approx(by_pair, abs=1e-12)


def test_own_scores_have_a_threshold_for_each_class_where_labels_are_given(tmp_path):
    raw = made_up()
    del raw["logits"], raw["shadow_logits"]
    raw["score"] = (raw["set"] == "forget") + 10.0 * raw["label"]
    raw["shadow_score"] = raw["shadow_member"] + 10.0 * raw["shadow_label"]
    assert audited(raw, tmp_path).methods["model"].by_adversary["own score"].advantage == 1.0


def test_logits_scores_and_decisions_together_are_one_class_of_adversaries(tmp_path):
    raw = made_up()
    raw["score"], raw["shadow_score"] = raw["logits"][:, 0], raw["shadow_logits"][:, 0]
    raw["decision"] = raw["set"] == "forget"
    (method,) = audited(raw, tmp_path, adversaries=["entropy"]).methods.values()
    assert list(method.by_adversary) == ["entropy", "own score", "own decisions"]
    assert method.adversary == "own decisions"


def test_every_method_is_attacked_with_its_own_shadow_block(tmp_path):
    raw = made_up(methods=("a", "b"))
    shadow = [name for name in raw if name.startswith("shadow_")]
    other = made_up(seed=9, methods=("a", "b"))
    both = raw | {name: np.concatenate([raw[name], other[name]]) for name in shadow}
    both["shadow_method"] = np.repeat(["a", "b"], 60)
    found = audited(both, tmp_path).methods
    assert found["a"] == audited(raw, tmp_path).methods["a"]
    assert found["b"] == audited(raw | {name: other[name] for name in shadow}, tmp_path).methods["b"]


def test_weights_are_the_sensitivity_distribution(tmp_path):
    raw = {name: made_up(pairs=1)[name] for name in ("pair", "side", "point", "set")}
    chosen = raw["point"][0]
    raw["decision"] = (raw["point"] == chosen) & (raw["side"] == 0)
    raw["weight"] = np.where(raw["point"] == chosen, float(K - 1), 1.0)
    assert audited(raw, tmp_path).methods["model"].by_adversary["own decisions"].advantage == pytest.approx(0.25)
    del raw["weight"]
    assert audited(raw, tmp_path).methods["model"].by_adversary["own decisions"].advantage == pytest.approx(0.5 / K)


def test_a_method_may_lack_a_pair_and_is_then_not_compared(tmp_path):
    raw = made_up(pairs=3, methods=("a", "b"))
    keep = ~((raw["method"] == "b") & (raw["pair"] == 1))
    raw = {name: column if name.startswith("shadow_") else column[keep] for name, column in raw.items()}
    result = audited(raw, tmp_path)
    assert [result.methods[name].n_pairs for name in "ab"] == [3, 2]
    assert result.games[0].comparisons == []


def changed(**columns):
    def change(raw):
        for name, column in columns.items():
            raw[name] = column(raw) if callable(column) else column

    return change


def dropped(*names):
    def drop(raw):
        for name in names:
            del raw[name]

    return drop


def without_rows(where):
    def drop(raw):
        keep = ~where(raw)
        raw.update({name: column[keep] for name, column in raw.items() if not name.startswith("shadow_")})

    return drop


def cell(name, row, value):
    def change(raw):
        raw[name] = raw[name].copy()
        raw[name][row] = value

    return change


def at(raw, *, pair, side):
    return np.flatnonzero((raw["pair"] == pair) & (raw["side"] == side))


def one_set_for_both_sides(raw):
    for pair in (0, 1):
        raw["set"][at(raw, pair=pair, side=1)] = raw["set"][at(raw, pair=pair, side=0)]


def same_split_twice(raw):
    for name in ("point", "label"):
        raw[name][raw["pair"] == 1] = raw[name][raw["pair"] == 0]


def a_point_twice(raw):
    first, second = at(raw, pair=1, side=0)[:2]
    for name in ("point", "label"):
        raw[name][second] = raw[name][first]


def a_missing_point(raw):
    raw["point"][at(raw, pair=1, side=1)[0]] = 1000


def another_point_in_a_seed(raw):
    raw["seed"] = np.repeat([0, 1], len(raw["pair"]) // 2)
    raw["pair"][:] = 0


def another_label(raw):
    raw["label"][0] = (raw["label"][0] + 1) % N_CLASSES


def no_weight_in_one_set(raw):
    points = raw["point"][(raw["set"] == "forget") & (raw["side"] == 0) & (raw["pair"] == 0)]
    raw["weight"] = (~np.isin(raw["point"], points)).astype(float)


def decisions_and_shadows(raw):
    del raw["logits"]
    raw["decision"] = raw["point"] > 3


FIRST_POINT = without_rows(lambda raw: np.arange(len(raw["pair"])) == 0)
SECOND_SIDE = without_rows(lambda raw: (raw["side"] == 1) & (raw["pair"] == 1))
LONELY_SEED = changed(seed=lambda raw: np.where((raw["side"] == 1) & (raw["pair"] == 0), 7, 0))
NO_SHADOWS = dropped("shadow_member", "shadow_label", "shadow_model", "shadow_logits")

GAME_BREAKERS = {
    "more unseen than to forget": (FIRST_POINT, "5 points to forget but 6 unseen"),
    "a side is missing": (SECOND_SIDE, "pair 1: side 1 is missing"),
    "not swaps": (one_set_for_both_sides, "not swaps of each other"),
    "a point twice": (a_point_twice, "appears more than once"),
    "a missing point": (a_missing_point, "is missing; both sides show the same points"),
    "another split for a seed": (another_point_in_a_seed, "is missing"),
    "one split under two names": (same_split_twice, "pairs 0 and 1 are the same split"),
    "a seed on one side only": (LONELY_SEED, "side 1 has no seed 0"),
    "two labels of a point": (another_label, "has more than one label"),
    "no weight in F": (no_weight_in_one_set, "no weight at all"),
    "no shadows and no decisions": (NO_SHADOWS, "no shadow block and no decision"),
    "no shadow logits": (dropped("shadow_logits"), "logits needs shadow_logits"),
    "no shadow labels": (dropped("shadow_label"), "shadow_label is missing"),
    "only members": (changed(shadow_member=np.ones(60, dtype=bool)), "has no points outside training"),
    "only others": (changed(shadow_member=np.zeros(60, dtype=bool)), "has no training points"),
    "NaN": (cell("logits", (3, 1), np.nan), "rows, that of point "),
    "infinite": (cell("shadow_logits", (0, 0), np.inf), "rows, number 1 (counted from 1) first"),
    "an unknown column": (changed(lable=lambda raw: raw["label"]), "did you mean 'label'?"),
    "nothing to judge": (dropped("logits"), "needs one of logits, score, loss, decision"),
    "logits without labels": (dropped("label"), "label is missing"),
    "a missing column": (dropped("set"), "the column set is missing"),
    "a negative weight": (changed(weight=lambda raw: -np.ones(len(raw["pair"]))), "must not be negative"),
    "a weight that is no number": (changed(weight=lambda raw: np.full(len(raw["pair"]), np.nan)), "weight: NaN"),
    "two weights of a point": (changed(weight=lambda raw: 1.0 + raw["side"]), "has more than one weight"),
    "a third side": (cell("side", 0, 2), "side must be 0"),
    "another set": (cell("set", 0, "retain"), "set must be forget or unseen, not 'retain'"),
    "a label beyond the logits": (cell("shadow_label", 0, 3), "does not fit logits of 3 classes"),
    "no rows": (without_rows(lambda raw: raw["pair"] >= 0), "at least one pair"),
    "a shadow block for decisions": (decisions_and_shadows, "own decisions are not fitted"),
}


ARRAYS_ONLY = {
    "an unknown column",
    "a missing column",
    "nothing to judge",
    "no shadow logits",
    "a shadow block for decisions",
}
"""What cannot be said in a .csv file."""
CASES = [
    (*case, suffix)
    for suffix in WRITE
    for name, case in GAME_BREAKERS.items()
    if suffix == ".npz" or name not in ARRAYS_ONLY
]


@pytest.mark.parametrize(("change", "words", "suffix"), CASES)
def test_what_breaks_the_game_is_refused_in_one_line(tmp_path, change, words, suffix):
    raw = made_up()
    change(raw)
    with pytest.raises(UserError) as caught:
        audited(raw, tmp_path, suffix)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / f"scores{suffix}"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "column", "words"),
    [
        ("decision", lambda n: np.ones(n), "must be booleans or 0 and 1, not float64"),
        ("decision", lambda n: np.arange(n), "must be booleans or 0 and 1, but one of its values is 2"),
        ("shadow_member", lambda n: 2 * (np.arange(60) % 2), "must be booleans or 0 and 1, but one of its values is 2"),
        ("share_retrain", lambda n: np.arange(n) % 2, "must be the same in all rows"),
        ("share_retrain", lambda n: np.array("yes"), "must be booleans or 0 and 1"),
        ("point", lambda n: np.arange(n) + 0.5, "must be whole numbers or text"),
        ("label", lambda n: np.zeros(n) + 0.5, "must be whole numbers"),
        ("logits", lambda n: np.zeros(n), "has the shape"),
        ("logits", lambda n: np.zeros((n, 1)), "at least two classes"),
        ("logits", lambda n: np.zeros((n, 2)), "2 classes, but shadow_logits have 3"),
        ("logits", lambda n: np.full((n, 3), "a"), "must be numbers"),
        ("pair", lambda n: np.zeros(n - 1, dtype=int), "rows, but"),
        ("pair", lambda n: np.array(0), "has the shape"),
        ("shadow_member", lambda n: np.array(True), "has the shape"),
        ("shadow_person", lambda n: np.zeros(60, dtype=int), "shadow_person has no use here"),
        ("label", lambda n: np.full(n, 10**14), "must be numbers of classes, below 1,000,000"),
        ("label", lambda n: np.full(n, 2**63 + 1, dtype=np.uint64), "must be numbers of classes"),
        ("method", lambda n: np.zeros(n), "must be text"),
    ],
)
def test_arrays_of_the_wrong_kind_are_refused(tmp_path, name, column, words):
    raw = made_up()
    raw[name] = column(len(raw["pair"]))
    with pytest.raises(UserError, match=words):
        audited(raw, tmp_path)


@pytest.mark.parametrize(
    ("cells", "kept"),
    [(["7", "-1", "0"], [7, -1, 0]), (["007", "7", "0"], ["007", "7", "0"]), (["-0", "٣", "1"], ["-0", "٣", "1"])],
)
def test_ids_in_a_csv_are_whole_numbers_only_where_they_are_spelled_so(tmp_path, cells, kept):
    (tmp_path / "x.csv").write_text("\n".join(["point,score", *(f"{cell},1" for cell in cells)]), "utf-8")
    assert read_csv(tmp_path / "x.csv")["point"].tolist() == kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("pair,side,point,set,decision\n", "at least one pair"),
        ("pair,side,point\n0,0,1\n", "column set is missing"),
        ("pair,side,point,set,decision\n0,0,1,forget,maybe\n", "row 1: decision = 'maybe' is not true or false"),
        ("pair,side,point,set,decision\n0,0,1,forget,\n", "row 1: decision is blank"),
        ("pair,side,point,set,score\n0,0,1,forget,much\n", "row 1: score = 'much' is not a number"),
        ("pair,side,point,set,decision\n0,0,1,forget\n", "row 1 has 4 cells"),
        ("pair,side,point,set,logit_1,label\n", "without a gap"),
        ("pair,side,point,set,pair\n", "stands twice"),
        ("pair,side,point,set,desicion\n", "did you mean 'decision'?"),
        ("pair,side,point,set,score\n0,left,1,forget,1\n", "side = 'left' is not a whole number"),
    ],
)
def test_tables_that_cannot_be_read_are_refused_with_the_row(tmp_path, text, words):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        audit_file(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(("argument", "value"), [("out", ""), ("out", True), ("progress", "x")])
@pytest.mark.parametrize("one", [{}, {"requests": True}])
def test_arguments_of_python_of_the_wrong_kind_are_refused(tmp_path, monkeypatch, argument, value, one):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"{argument} must .*, not {value!r}"):
        forgetgauge.audit("scores.npz", **one, **{argument: value})


def test_files_of_another_kind_are_refused(tmp_path):
    for name, content, words in [
        ("absent.npz", None, "no such file"),
        ("scores.json", b"{}", "one of .csv, .npz"),
        ("broken.npz", b"PK\x03\x04 nothing", "not a .npz file"),
        ("text.npz", b"pair,side", "not a .npz file"),
    ]:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(UserError, match=words):
            audit_file(path)
    np.savez(tmp_path / "pickled.npz", pair=np.array([{}], dtype=object))
    with pytest.raises(UserError, match=r"not a \.npz file of plain arrays"):
        audit_file(tmp_path / "pickled.npz")
    np.save(tmp_path / "single.npy", np.zeros(3))
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    with pytest.raises(UserError, match="a single array"):
        audit_file(tmp_path / "single.npz")


def test_adversaries_that_a_shadow_block_cannot_serve_are_refused_by_name(tmp_path):
    for name, why in {
        "lira-online": "cannot play here: it compares models that were trained on a point with models that were not",
        "lira-offline": "cannot play here: it compares the model with others that were not trained on the point",
        "rmia-offline": "also asks the model about points outside F and T that it never saw",
        "shadow-aware": "fitted on models that went through the same unlearning method",
        "gradient-norm": "looks at the weights of the model",
        "zlib-ratio": "reads the signal 'zlib-ratio', which logits of classes do not give",
    }.items():
        with pytest.raises(UserError, match=f"adversary '{name}' .*{why}"):
            audited(made_up(), tmp_path, adversaries=[name])
    with pytest.raises(UserError, match="did you mean 'entropy'"):
        audited(made_up(), tmp_path, adversaries=["entrophy"])
    raw = {name: made_up()[name] for name in ("pair", "side", "point", "set")}
    raw["decision"] = raw["set"] == "forget"
    with pytest.raises(UserError, match="no logits"):
        audited(raw, tmp_path, adversaries=["entropy"])
    with pytest.raises(UserError, match="level"):
        audited(made_up(), tmp_path, level=1.0)
    with pytest.raises(UserError, match=r"delta = 0\.5 is not at least 0 and below 0\.5"):
        audited(made_up(), tmp_path, delta=0.5)


def test_runs_that_cannot_be_exported_are_refused(run, tmp_path):
    folder, _ = run
    with pytest.raises(UserError, match="no game 1"):
        write_audit_file(folder, tmp_path / "run.npz", game=1)
    with pytest.raises(UserError, match=r"one of \.csv, \.npz"):
        write_audit_file(folder, tmp_path / "run.parquet")
    with pytest.raises(UserError, match="not a run folder"):
        write_audit_file(tmp_path, tmp_path / "run.npz")


def test_the_example_finds_the_runs_own_numbers(run, tmp_path):
    folder, _ = run
    script = Path(__file__).parents[1] / "examples/export_logits.py"
    command = [sys.executable, str(script), str(folder), str(tmp_path / "run.npz")]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told.count("as in the run") == 3


def test_the_documents_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[1] / "docs/audit.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict[str, object] = {}
    exec(compile(block, "audit.md", "exec"), names)
    (found,) = names["result"].methods.values()
    assert found.by_adversary["own score"].advantage == pytest.approx(0.2, abs=0.1)  # 2Φ(¼) − 1


def test_every_column_is_documented():
    text = (Path(__file__).parents[1] / "docs/audit.md").read_text()
    assert all(f"`{name}`" in text for name in (*REQUIRED, *OPTIONAL, *SHADOW))


def natural(names, seed=0):
    """A file of six pairs whose F and T of the first side are of two populations; models that know nothing of F."""
    rng = np.random.default_rng(seed)
    columns = {"pair": [], "side": [], "point": [], "set": [], "decision": []}
    for number, pair in enumerate(names):
        kind = np.arange(200) < 100  # the first side's F
        for side in (0, 1):
            says = rng.random(200) < np.where(kind, 0.8, 0.3)
            columns["pair"] += [pair] * 200
            columns["side"] += [side] * 200
            columns["point"] += list(range(200 * number, 200 * number + 200))
            columns["set"] += np.where(kind == (side == 0), "forget", "unseen").tolist()
            columns["decision"] += says.tolist()
    return {name: np.array(values) for name, values in columns.items()}


def test_where_f_was_no_random_half_no_single_model_proves_anything(tmp_path, call):
    np.savez(tmp_path / "natural.npz", **natural(range(6)))
    with pytest.warns(DoubtfulResult, match="differ by themselves"):
        result = audit_file(tmp_path / "natural.npz", tmp_path / "out")
    method = result.methods["model"]
    assert method.quality > 0.9
    assert (method.epsilon, method.n_models) == (0.0, 0)
    assert call("verify", tmp_path / "out")[0] == 0
    for page in (render_table(result), render_report(result)):  # a difference that is not noticed would count
        assert UNDRAWN in page
    assert UNDRAWN not in render_table(
        replace(result, games=[replace(one, spec={**one.spec, "data_digest": "0"}) for one in result.games])
    )


def test_pairs_may_have_names_from_the_file_to_the_verified_result(tmp_path, call):
    columns = natural([f"pair {i}" for i in range(6)])
    rng = np.random.default_rng(1)
    columns["decision"] = rng.random(len(columns["pair"])) < 0.5
    np.savez(tmp_path / "named.npz", **columns)
    code, out, _ = call("audit", tmp_path / "named.npz", "--out", tmp_path / "out")
    assert (code, "model" in out) == (0, True)
    assert call("verify", tmp_path / "out")[0] == 0
    assert call("report", tmp_path / "out")[0] == 0


def test_pairs_may_differ_in_their_number_of_seeds(tmp_path, call):
    columns = natural(range(6))
    rng = np.random.default_rng(1)
    columns["decision"] = rng.random(len(columns["pair"])) < 0.5
    columns["seed"] = np.zeros(len(columns["pair"]), dtype=int)
    twice = columns["pair"] == 0
    more = {name: column[twice] for name, column in columns.items()}
    more["seed"] = more["seed"] + 1
    more["decision"] = rng.random(twice.sum()) < 0.5
    np.savez(tmp_path / "seeds.npz", **{name: np.concatenate([columns[name], more[name]]) for name in columns})
    code, _, _ = call("audit", tmp_path / "seeds.npz", "--out", tmp_path / "out")
    assert code == 0
    assert call("verify", tmp_path / "out")[0] == 0


def test_a_table_takes_little_more_memory_than_its_numbers(tmp_path):
    """Beside one block of cells no cell is a text of its own, which would take ten times what a number does."""
    n_rows, n_logits = 5_000, 20
    header = ",".join(["pair", "side", "point", "set", "label", *(f"logit_{i}" for i in range(n_logits))])
    row = ",".join(["0", "1", "17", "forget", "3", *["-0.25"] * n_logits])
    (tmp_path / "x.csv").write_text("\n".join([header, *[row] * n_rows]))
    tracemalloc.start()
    try:
        raw = read_csv(tmp_path / "x.csv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert raw["logits"].shape == (n_rows, n_logits)
    assert (raw["logits"] == -0.25).all()
    assert raw["point"].tolist() == [17] * n_rows
    declared, block = 8 * n_rows * (n_logits + 5), 100 * 2**16
    assert peak < 4 * declared + block
