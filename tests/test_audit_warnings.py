"""Audits that would print a clean wrong number: each is mended and said, refused in one line, or warned of by name."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from forgetgauge.auditing import audit_file, write_audit_file
from forgetgauge.auditing.formats import read_csv, read_npz, write_csv, write_npz
from forgetgauge.errors import UserError
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.verdict import reservations
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

WRITE = {".npz": write_npz, ".csv": write_csv}
N_CLASSES = 3


def scored(*, pairs=6, k=60, memory=0.8, n_shadow=1200, seed=0, methods=("model",)) -> dict[str, np.ndarray]:
    """Scores that are larger where a point was trained on, in the game and on two shadow models."""
    rng = np.random.default_rng(seed)
    blocks = []
    for pair in range(pairs):
        points = rng.permutation(2000)[: 2 * k]
        for method in methods:
            for side in (0, 1):
                forgotten = (np.arange(2 * k) < k) == (side == 0)
                blocks.append(
                    {
                        "method": np.full(2 * k, method),
                        "pair": np.full(2 * k, pair),
                        "side": np.full(2 * k, side),
                        "point": points,
                        "set": np.where(forgotten, "forget", "unseen"),
                        "score": rng.standard_normal(2 * k) + memory * forgotten,
                    }
                )
    member = rng.random(n_shadow) < 0.5
    shadow = {"member": member, "model": np.arange(n_shadow) % 2, "score": rng.standard_normal(n_shadow) + member}
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    return columns | {f"shadow_{name}": column for name, column in shadow.items()}


def with_logits(*, memory=1.5, **how) -> dict[str, np.ndarray]:
    """The same with logits in the place of scores."""
    raw = scored(memory=memory, **how)
    rng = np.random.default_rng(99)
    for prefix, trained in (("", raw["set"] == "forget"), ("shadow_", raw["shadow_member"])):
        label = raw["point"] % N_CLASSES if prefix == "" else rng.integers(0, N_CLASSES, len(trained))
        logits = rng.standard_normal((len(trained), N_CLASSES))
        logits[np.arange(len(trained)), label] += memory * trained
        raw |= {f"{prefix}label": label, f"{prefix}logits": logits}
        del raw[f"{prefix}score"]
    return raw


def audited(raw, tmp_path, suffix=".npz", **how):
    path = tmp_path / f"scores{suffix}"
    WRITE[suffix](path, raw)
    return audit_file(path, **how)


def warned(result) -> str:
    """All warnings; the table and the page show them too."""
    (game,) = result.games
    table, page = render_table(result), render_report(result)
    assert all(f"warning: {line}" in table for line in game.warnings)
    assert page.count("⚠ ") >= len(game.warnings)
    return " ".join(game.warnings)


def refusal(raw, tmp_path, suffix=".npz", **how) -> str:
    with pytest.raises(UserError) as caught:
        audited(raw, tmp_path, suffix, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_plain_file_is_not_warned_of(tmp_path):
    assert audited(scored(), tmp_path).games[0].warnings == []
    assert audited(with_logits(), tmp_path).games[0].warnings == []


def test_a_method_that_lacks_pairs_changes_nothing_for_the_others(tmp_path):
    raw = scored(memory=0.15, methods=("whole", "part"))
    n, keep = len(raw["pair"]), (raw["method"] == "whole") | (raw["pair"] == 0)
    both, alone = (
        audited({name: part[rows] if len(part) == n else part for name, part in raw.items()}, tmp_path)
        for rows in (keep, raw["method"] == "whole")
    )
    assert both.methods["part"].n_pairs == 1
    assert both.methods["part"].noise_floor > both.methods["whole"].noise_floor
    assert both.methods["whole"] == alone.methods["whole"]
    assert both.games[0].noise_floor == alone.games[0].noise_floor


def generalising(*, scale=1.0, seed=0, memory=1.5, kept=1.0, **how) -> dict[str, np.ndarray]:
    """Logits of models that also classify points that they never saw; those of shadow models on another scale, and
    `kept` of the memory left in the models under test."""
    raw = with_logits(seed=seed, memory=0.0, **how)
    for prefix, trained in (("", kept * (raw["set"] == "forget")), ("shadow_", 1.0 * raw["shadow_member"])):
        rows = np.arange(len(trained))
        raw[f"{prefix}logits"][rows, raw[f"{prefix}label"]] += 1.5 + memory * trained
    return raw | {"shadow_logits": scale * raw["shadow_logits"]}


def test_outputs_that_stand_beside_other_labels_are_warned_of(tmp_path):
    raw, rng = generalising(), np.random.default_rng(3)
    assert audited(raw, tmp_path).games[0].warnings == []
    rows = np.arange(len(raw["side"]))
    for side in (0, 1):
        for pair in range(6):
            its = np.flatnonzero((raw["side"] == side) & (raw["pair"] == pair))
            rows[its] = rng.permutation(its)
    text = warned(audited(raw | {"logits": raw["logits"][rows]}, tmp_path))
    assert "of the unseen points 3" in text
    assert "no better than by chance (of those that shadow models never saw 7" in text
    assert "do outputs and labels belong to the points beside them?" in text
    other = {name: (raw[name] + 1) % N_CLASSES for name in ("label", "shadow_label")}
    with pytest.raises(UserError, match="less confident on their training points"):
        audited(raw | other, tmp_path)


@pytest.mark.parametrize("scale", [1 / 10, 1 / 3, 3])
def test_shadow_outputs_on_another_scale_are_warned_of(tmp_path, scale):
    """`correctness`, which no scale touches, sees something all the same: each adversary is looked at by itself."""
    honest, scaled = (audited(generalising(scale=one), tmp_path) for one in (1.0, scale))
    assert scaled.methods["model"].quality > honest.methods["model"].quality + 0.05
    assert scaled.methods["model"].by_adversary["correctness"].advantage > 0.1
    text = warned(scaled)
    assert "thresholds fitted on the shadow models miss" in text
    assert "are their outputs on the same scale?" in text


@pytest.mark.parametrize("memory", [1.5, 3.0])
@pytest.mark.parametrize("kept", [0, 0.25, 0.5, 1])
def test_thresholds_of_honest_files_are_not_warned_of(tmp_path, memory, kept):
    """Six files of each kind; of thirty of each, 240 in all, none was warned of. Methods that leave a quarter of a
    strong memory are found by few thresholds, but of unseen points these say what they say of the shadow models'."""
    for seed in range(6):
        found = audited(generalising(seed=seed, memory=memory, kept=kept), tmp_path)
        assert not [line for line in found.games[0].warnings if "thresholds fitted" in line]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("large", [1e150, 1e200, 1e300, -1.7e308])
@pytest.mark.parametrize("n", [1, 4])
def test_scores_as_large_as_numbers_are_make_no_pairs_alike(tmp_path, large, n):
    raw = scored()
    raw["score"][:n] = large
    assert audited(raw, tmp_path).games[0].warnings == []


# -- direction -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [False, True])
def test_a_score_whose_sign_is_reversed_finds_as_much_and_says_so(tmp_path, labelled):
    raw = scored()
    if labelled:  # classes at scores of their own: one sign for all of them
        raw |= {"label": raw["point"] % 3, "shadow_label": np.arange(1200) % 3}
        raw["score"] = raw["score"] + 5 * raw["label"]
        raw["shadow_score"] = raw["shadow_score"] + 5 * raw["shadow_label"]
    expected = audited(raw, tmp_path).methods["model"]
    turned = raw | {name: -raw[name] for name in ("score", "shadow_score")}
    result = audited(turned, tmp_path)
    assert result.methods["model"] == expected
    assert expected.quality < 0.8
    assert "own score: smaller values were taken for those of training points" in warned(result)


@pytest.mark.parametrize("suffix", WRITE)
def test_a_loss_is_taken_by_that_name_without_a_word(tmp_path, suffix):
    raw = scored()
    expected = audited(raw, tmp_path, suffix).methods["model"]
    raw["loss"], raw["shadow_loss"] = -raw.pop("score"), -raw.pop("shadow_score")
    result = audited(raw, tmp_path, suffix)
    (name, found) = next(iter(result.methods["model"].by_adversary.items()))
    assert (name, found) == ("own loss", expected.by_adversary["own score"])
    assert result.games[0].warnings == []
    back = read_npz(tmp_path / "scores.npz") if suffix == ".npz" else read_csv(tmp_path / "scores.csv")
    assert all(np.array_equal(back[column], raw[column]) for column in ("loss", "shadow_loss"))


def test_a_loss_that_is_larger_on_training_points_is_warned_of(tmp_path):
    raw = scored()
    raw["loss"], raw["shadow_loss"] = raw.pop("score"), raw.pop("shadow_score")
    text = warned(audited(raw, tmp_path))
    assert "own loss: larger values were taken" in text
    assert "is shadow_member reversed?" in text


def test_the_sign_of_a_score_is_never_learnt_from_the_game(tmp_path):
    """A method that over-forgets turns the sign in the game: that must be seen, not undone."""
    raw = scored(memory=-0.8)
    result = audited(raw, tmp_path)
    assert result.methods["model"].by_adversary["own score"].advantage < -0.2
    text = warned(result)
    assert "model: the shadow models and the models under test point in opposite directions" in text
    assert "over-forgets" in text
    assert "labels are swapped" in text
    assert "taken for those of training points" not in text


def test_a_score_without_a_direction_is_called_so(tmp_path):
    raw = scored()
    raw["shadow_score"] = np.random.default_rng(1).standard_normal(1200)
    assert "gives the score no direction" in warned(audited(raw, tmp_path))


def test_reversed_members_do_a_score_no_harm_but_are_said(tmp_path):
    raw = scored()
    expected = audited(raw, tmp_path).methods["model"]
    raw["shadow_member"] = ~raw["shadow_member"]
    result = audited(raw, tmp_path)
    assert result.methods["model"].quality == pytest.approx(expected.quality, abs=0.05)
    text = warned(result)
    assert "shadow_member is reversed" in text
    assert "opposite directions" in text


def test_reversed_members_are_refused_where_published_attacks_are_fitted(tmp_path):
    raw = with_logits()
    raw["shadow_member"] = ~raw["shadow_member"]
    assert "is shadow_member reversed?" in refusal(raw, tmp_path)


def test_shadow_models_that_show_nothing_are_named(tmp_path):
    raw = with_logits()
    raw["shadow_logits"] = np.random.default_rng(5).standard_normal(raw["shadow_logits"].shape)
    assert "does not tell training points from others" in warned(audited(raw, tmp_path))


def test_swapped_sets_are_warned_of_by_both_explanations(tmp_path):
    raw = with_logits()
    raw["set"] = np.where(raw["set"] == "forget", "unseen", "forget")
    (line,) = audited(raw, tmp_path).games[0].warnings
    assert line.startswith("model: the shadow models and the models under test point in opposite directions")
    assert "confidence" in line
    assert "over-forgets" in line
    assert "swapped" in line


def test_sets_that_are_swapped_in_half_of_the_pairs_are_warned_of(tmp_path):
    raw = scored(pairs=6)
    turned = raw["pair"] % 2 == 1
    raw["set"] = np.where((raw["set"] == "forget") ^ turned, "forget", "unseen")
    result = audited(raw, tmp_path)
    assert result.methods["model"].quality > 0.9
    text = warned(result)
    assert "model: the pairs contradict each other" in text
    assert "above 0 on pairs 0, 2 and 4 and below 0 on pairs 1, 3 and 5" in text


def test_a_threshold_that_lies_elsewhere_is_said_where_the_score_tells_the_sets_apart(tmp_path):
    raw = scored()
    raw["score"] = raw["score"] - 6  # the models judged are not like the shadow models
    raw["score"][0] = 10
    assert "thresholds fitted on the shadow models miss" in warned(audited(raw, tmp_path))


def test_decisions_that_point_the_wrong_way_are_said(tmp_path):
    raw = scored(memory=-0.8)
    raw["decision"] = raw["score"] > 0
    for name in [name for name in raw if name.startswith("shadow_") or name == "score"]:
        del raw[name]
    text = warned(audited(raw, tmp_path))
    assert "model: the answers point the wrong way. To own decisions" in text
    assert "over-forgets" in text


def test_a_method_of_which_pairs_are_missing_carries_no_verdict(tmp_path):
    raw = scored(methods=("lucky", "retrain"))
    keep = (raw["method"] == "retrain") | (raw["pair"] == 0)
    result = audited({n: c if n.startswith("shadow_") else c[keep] for n, c in raw.items()}, tmp_path)
    assert "1 of 6" in next(line for line in render_table(result).splitlines() if line.startswith("lucky"))
    assert "lucky was tested" not in render_report(result)
    assert "Not judged, since pairs are missing: lucky (1 of 6)." in render_report(result)


# -- nothing measured --------------------------------------------------------------------------------------------------


def constant_scores(raw):
    raw["score"] = np.zeros_like(raw["score"])


def constant_decisions(raw):
    for name in [name for name in raw if name.startswith("shadow_") or name == "score"]:
        del raw[name]
    raw["decision"] = np.ones(len(raw["pair"]), dtype=bool)


@pytest.mark.parametrize("change", [constant_scores, constant_decisions])
def test_an_adversary_that_could_decide_nothing_gives_no_evidence(tmp_path, change):
    raw = scored(methods=("a", "b"))
    change(raw)
    result = audited(raw, tmp_path)
    for method in result.methods.values():
        assert (method.quality, method.interval, method.p_value, method.adversary) == (None, None, None, None)
        assert method.decided_nothing == list(method.by_adversary)
        assert method.n_pairs == 6
    assert result.games[0].comparisons == []
    assert result.games[0].noise_floor is None
    assert "so nothing was measured and there is no Q" in warned(result)
    for shown in (render_table(result), render_report(result)):
        assert "nothing measured" in shown
        assert "no pair completed" not in shown
        assert "No method completed a swap pair" not in shown


def test_where_scores_separate_fully_retrain_has_a_q_and_models_on_another_scale_have_none(tmp_path):
    raw = scored(methods=("retrain", "none", "shifted", "constant"), memory=20.0)
    rng, retrained = np.random.default_rng(0), raw["method"] == "retrain"
    raw["score"][retrained] = rng.standard_normal(retrained.sum())
    raw["score"][raw["method"] == "shifted"] -= 100.0  # remembers everybody
    raw["score"][raw["method"] == "constant"] = -1e6
    raw["shadow_score"] += 19.0 * raw["shadow_member"]
    result = audited(raw, tmp_path)
    quality = {name: method.quality for name, method in result.methods.items()}
    assert quality.pop("none") < 0.01
    assert quality == {"retrain": 1.0, "shifted": None, "constant": None}
    assert result.methods["retrain"].silence_counts == ["own score"]
    assert "shifted and constant: own score gives the same answer" in warned(result)


def test_q_rests_on_the_adversaries_that_decided_something(tmp_path):
    raw = scored()
    expected = audited(raw, tmp_path).methods["model"]
    raw["decision"] = np.zeros(len(raw["pair"]), dtype=bool)
    result = audited(raw, tmp_path)
    assert result.methods["model"].decided_nothing == ["own decisions"]
    assert result.methods["model"].quality == expected.quality
    assert "model: own decisions give the same answer for all points" in warned(result)


# -- what is in the file ---------------------------------------------------------------------------------------------


def copied(raw, *, pairs=None, methods=None):
    """Side 1's outputs replaced by side 0's, row by row: both sides stand in the same order of points."""
    which = np.isin(raw["pair"], pairs if pairs is not None else raw["pair"])
    which &= np.isin(raw["method"], methods if methods is not None else raw["method"])
    for name in ("score", "logits"):
        if name in raw:
            raw[name] = raw[name].copy()
            raw[name][which & (raw["side"] == 1)] = raw[name][which & (raw["side"] == 0)]
    return raw


@pytest.mark.parametrize("made", [scored, with_logits])
@pytest.mark.parametrize("pairs", [None, [3]])
def test_a_side_that_is_a_copy_of_the_other_is_refused(tmp_path, made, pairs):
    message = refusal(copied(made(), pairs=pairs), tmp_path)
    assert f"model, pair {0 if pairs is None else 3}: the outputs of side 1 are a copy" in message


def test_a_side_that_is_a_copy_but_for_a_few_points_is_refused_too(tmp_path):
    raw = copied(with_logits(), pairs=[3])
    raw["logits"][np.flatnonzero((raw["pair"] == 3) & (raw["side"] == 1))[:5]] += 0.01
    assert "model, pair 3: the outputs of side 1 are a copy" in refusal(raw, tmp_path)


def test_a_pair_whose_points_were_all_renamed_is_warned_of(tmp_path):
    raw = scored()
    first, second = (np.flatnonzero(raw["pair"] == pair) for pair in (0, 5))
    raw["score"][second] = raw["score"][first]
    assert "Pairs 0 and 5 have models with the same outputs" in warned(audited(raw, tmp_path))


@pytest.mark.parametrize("suffix", WRITE)
@pytest.mark.parametrize("said", [np.array(True), np.array(1)])
def test_a_shared_retrain_may_be_a_copy_where_the_file_says_so(tmp_path, suffix, said):
    raw = copied(with_logits(pairs=5, k=30, methods=("retrain", "mine")), methods=["retrain"])
    assert "share_retrain" in refusal(raw, tmp_path, suffix)
    raw["share_retrain"] = said
    result = audited(raw, tmp_path, suffix)
    assert result.methods["retrain"].quality == 1
    assert result.methods["retrain"].decided_nothing == []
    assert result.games[0].spec["share_retrain"] is True
    assert result.games[0].noise_floor.method == "mine"  # one model on both sides leaves nothing to chance
    assert "Retrain’s Q is 1 by construction" in render_report(result)
    assert "mine, pair" in refusal(copied(raw), tmp_path, suffix)


def test_the_export_of_a_run_that_shares_retrain_says_so(tmp_path):
    tables = copy.deepcopy(TINY) | {"adversaries": ["confidence", "entropy"]}
    tables["game"] |= {"share_retrain": True}
    _, expected = play(Campaign.plan(resolve(tables, "tiny")), RunFolder(tmp_path / "run"))
    for suffix in WRITE:
        write_audit_file(tmp_path / "run", tmp_path / f"run{suffix}")
        found = audit_file(tmp_path / f"run{suffix}", adversaries=["confidence", "entropy"])
        assert {n: m.quality for n, m in found.methods.items()} == {n: m.quality for n, m in expected.methods.items()}


def test_probabilities_of_each_class_by_itself_are_said(tmp_path):
    raw = with_logits(pairs=2, k=20)
    raw["logits"] = 1 / (1 + np.exp(-raw["logits"]))
    assert "logits all lie in [0, 1], as logits seldom do" in warned(audited(raw, tmp_path))


def test_decisions_that_agree_on_both_sides_everywhere_are_said(tmp_path):
    raw = scored()
    constant_decisions(raw)
    raw["decision"] = raw["point"] % 2 == 0
    result = audited(raw, tmp_path)
    assert result.methods["model"].quality == 1
    assert "both sides have the same outputs on every point of every pair" in warned(result)


@pytest.mark.parametrize("suffix", WRITE)
@pytest.mark.parametrize(("which", "whole"), [("logits", 1), ("shadow_logits", 1), ("logits", 100)])
def test_probabilities_in_the_place_of_logits_are_refused(tmp_path, suffix, which, whole):
    raw = with_logits(pairs=2, k=20)
    exponentials = np.exp(raw[which])
    raw[which] = (whole * exponentials / exponentials.sum(axis=1, keepdims=True)).round(2)
    message = refusal(raw, tmp_path, suffix)
    assert f"{which} are probabilities" in message
    assert "logarithms" in message
    raw[which] = np.log(np.maximum(raw[which], 1e-3))
    assert not [line for line in audited(raw, tmp_path, suffix).games[0].warnings if "probabilities" in line]


@pytest.mark.parametrize("suffix", WRITE)
def test_the_logarithm_of_zero_is_clipped_with_a_note(tmp_path, suffix):
    raw = with_logits(pairs=2, k=20)
    raw["logits"][:5, 0] = -np.inf
    raw["logits"][4, 1] = -1000
    text = warned(audited(raw, tmp_path, suffix))
    assert "logits: −∞ in 5 of 160 rows was taken as -1000.0." in text
    raw["logits"][3] = -np.inf
    assert "NaN or infinite in" in refusal(raw, tmp_path, suffix)


def test_zero_and_one_are_booleans(tmp_path):
    raw = scored(pairs=2)
    raw["decision"] = raw["point"] % 2 == 0
    expected = audited(raw, tmp_path)
    numbers = raw | {name: raw[name].astype(np.int8) for name in ("decision", "shadow_member")}
    for suffix in WRITE:
        assert audited(numbers, tmp_path, suffix).methods == expected.methods


def test_labels_with_gaps_are_warned_of(tmp_path):
    raw = scored()
    names = np.array([0, 5, 1000])
    raw |= {"label": names[raw["point"] % 3], "shadow_label": names[np.arange(1200) % 3]}
    assert "the labels are 0, 5, 1000, so 998 of the 1001 classes" in warned(audited(raw, tmp_path))
    few = with_logits(pairs=2, k=10, n_shadow=40)
    rng = np.random.default_rng(0)  # a hundred classes, most of which 80 rows cannot show
    few["logits"], few["shadow_logits"] = (rng.standard_normal((len(few[n]), 100)) for n in ("logits", "shadow_logits"))
    few["label"], few["shadow_label"] = few["point"] % 100, rng.integers(0, 100, 40)
    assert "classes from 0" not in warned(audited(few, tmp_path))


@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("made", [scored, with_logits])
def test_points_that_are_there_several_times_are_warned_of(tmp_path, times, made):
    raw = made()
    model = np.unique(np.stack([raw["pair"], raw["side"]], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    raw |= {name: np.zeros_like(raw[name]) for name in ("label", "shadow_label") if name in raw}
    for name in ("score", "logits"):
        if name in raw:
            for own in range(model.max() + 1):
                rows = np.flatnonzero(model == own)
                rows = rows[np.argsort(raw["point"][rows])]  # neighbours in the order of names are copies
                raw[name][rows] = raw[name][rows[np.arange(len(rows)) // times * times]]
    text = warned(audited(raw, tmp_path))
    assert "120 of 120 points of pair 0 have outputs that another point has, too" in text


@pytest.mark.parametrize("made", [scored, with_logits])
def test_copies_among_the_shadow_models_points_are_warned_of(tmp_path, made):
    raw = made()
    first, second = (np.flatnonzero(raw["shadow_model"] == model) for model in (0, 1))
    if "shadow_label" in raw:
        raw["shadow_label"][second] = raw["shadow_label"][first]  # the same points, in the same order
    for name in ("shadow_score", "shadow_logits", "shadow_label"):
        if name in raw:
            for model in (first, second):
                raw[name][model[300:]] = raw[name][model[:300]]
    assert "600 of 600 points of the shadow models have outputs that another one has" in warned(audited(raw, tmp_path))


@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_coarse_scores_are_not_taken_for_copies(tmp_path, decimals):
    raw = scored()
    raw["score"], raw["shadow_score"] = raw["score"].round(decimals), raw["shadow_score"].round(decimals)
    assert "have outputs that another" not in warned(audited(raw, tmp_path))


@pytest.mark.parametrize("swapped", [False, True])
def test_pairs_that_are_near_copies_are_warned_of(tmp_path, swapped):
    raw = scored(pairs=6)
    first, second = (np.flatnonzero(raw["pair"] == pair) for pair in (1, 4))
    raw["point"][second] = raw["point"][first]
    renamed = raw["point"][second[0]]
    raw["point"][second[raw["point"][second] == renamed]] = 5000
    if swapped:
        raw["set"][second] = np.where(raw["set"][second] == "forget", "unseen", "forget")
    text = warned(audited(raw, tmp_path))
    assert "Near copies: pairs 1 and 4 (119 of 119 common points)" in text


# -- one model evaluated twice ---------------------------------------------------------------------------------------


def evaluated_twice(raw, column, jitter):
    """Side 1 shows the model of side 0, as another evaluation of it gives its outputs."""
    values, rng = raw[column].copy(), np.random.default_rng(5)
    for pair in np.unique(raw["pair"]):
        first, second = (np.flatnonzero((raw["pair"] == pair) & (raw["side"] == side)) for side in (0, 1))
        values[second] = values[first] + jitter * rng.standard_normal(values[first].shape)
    return raw | {column: values}


@pytest.mark.parametrize("jitter", [1e-7, 1e-6, 1e-4])
def test_one_model_on_both_sides_is_seen_through_rounding(tmp_path, jitter):
    for raw, column in ((scored(), "score"), (with_logits(), "logits")):
        line = warned(audited(evaluated_twice(raw, column, jitter), tmp_path))
        assert "model: on pairs 0, 1, 2, 3, 4 and 5, the outputs of both sides are the same up to rounding." in line


@pytest.mark.parametrize("jitter", [1e-7, 1e-6, 1e-4])
def test_a_renamed_pair_is_seen_through_rounding(tmp_path, jitter):
    rng = np.random.default_rng(5)
    for raw, column in ((scored(), "score"), (with_logits(), "logits")):
        values, points = raw[column].copy(), raw["point"].copy()
        first, again = np.flatnonzero(raw["pair"] == 0), np.flatnonzero(raw["pair"] == 3)
        values[again] = values[first] + jitter * rng.standard_normal(values[first].shape)
        points[again] = points[first] + 3000  # of the same class
        assert "Pairs 0 and 3 have models with the same outputs" in warned(
            audited(raw | {column: values, "point": points}, tmp_path)
        )


@pytest.mark.parametrize(("column", "jitter"), [("score", 1e-7), ("score", 1e-6), ("logits", 1e-6), ("logits", 1e-4)])
def test_copies_of_a_point_are_seen_through_rounding(tmp_path, column, jitter):
    raw = scored() if column == "score" else with_logits()
    values, rng = raw[column].copy(), np.random.default_rng(5)
    for pair in range(6):
        rows = [np.flatnonzero((raw["pair"] == pair) & (raw["side"] == side)) for side in (0, 1)]
        for where in rows:
            values[where[1::2]] = values[where[::2]]
    values = values + jitter * rng.standard_normal(values.shape)
    labels = {} if column == "score" else {"label": np.repeat(raw["label"][::2], 2)}
    points = raw["point"] + 2000 * raw["pair"]  # no point is in two pairs, where it would have two labels
    result = audited(raw | {column: values, "point": points, **labels}, tmp_path)
    assert "the same inputs are in the data more than once" in warned(result)


@pytest.mark.parametrize("shape", ["alike", "sure of one class", "sure of two", "loss", "few points", "many points"])
def test_models_of_their_own_are_not_taken_for_one(tmp_path, shape):
    """Two models that think alike of each point, most of which they are sure of."""
    rng = np.random.default_rng(3)
    raw = scored(n_shadow=400, **{"few points": {"pairs": 20, "k": 5}, "many points": {"k": 1000}}.get(shape, {}))

    def seen(raw_score, difficulty):
        z = difficulty + 0.1 * raw_score
        return {
            "sure of one class": 1 / (1 + np.exp(-4 * z - 12)),
            "sure of two": 1 / (1 + np.exp(-12 * (z + 2 * np.sign(z)))),
            "loss": np.log1p(np.exp(-4 * z - 8)),
        }.get(shape, z)

    difficulty = rng.standard_normal(2000)
    raw["score"] = seen(raw["score"], difficulty[raw["point"]])
    raw["shadow_score"] = seen(raw["shadow_score"], rng.standard_normal(400))
    text = " ".join(audited(raw, tmp_path).games[0].warnings)
    assert "rounding" not in text
    assert "same outputs" not in text
    assert "more than once" not in text


# -- spellings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "given", "suffix"),
    [
        ("shadow-in", "shadow_in", ".csv"),
        ("shadow-out", "Shadow Out", ".csv"),
        ("forget", "Forget", ".csv"),
        ("unseen", "UNSEEN", ".csv"),
        ("forget", "Forget", ".npz"),
    ],
)
def test_another_spelling_of_a_set_is_answered_with_the_right_one(tmp_path, written, given, suffix):
    raw = scored()
    if suffix == ".npz":
        assert f"did you mean '{written}'?" in refusal(
            raw | {"set": np.char.replace(raw["set"], written, given)}, tmp_path
        )
        return
    path = tmp_path / "spelled.csv"
    write_csv(path, raw)
    path.write_text(path.read_text().replace(f",{written},", f",{given},"))
    with pytest.raises(UserError, match=rf"row \d+: unknown set '{given}'; did you mean '{written}'\?$"):
        audit_file(path)


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_named(tmp_path, separator, name):
    path = tmp_path / "separated.csv"
    write_csv(path, scored())
    path.write_text(path.read_text().replace(",", separator))
    with pytest.raises(UserError, match=f"its cells are separated by {name}; separate them by commas"):
        audit_file(path)


@pytest.mark.parametrize("suffix", WRITE)
def test_a_suffix_may_be_in_capitals(tmp_path, suffix):
    path = tmp_path / f"scores{suffix.upper()}"
    WRITE[suffix](path, scored())
    assert audit_file(path).methods == audited(scored(), tmp_path, suffix).methods


def test_what_is_no_npz_file_is_refused_without_advice_to_load_a_pickle(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("pair,side,point,set,score\n")
    objects = tmp_path / "objects.npz"
    np.savez(objects, pair=np.array([{}], dtype=object))
    for file, why in ((path, "it is another kind of file"), (objects, "pickled objects are never loaded")):
        with pytest.raises(UserError, match=why) as caught:
            audit_file(file)
        assert "allow_pickle" not in str(caught.value)


def test_a_shared_retrain_under_another_name_is_told_its_name(tmp_path):
    raw = evaluated_twice(scored(methods=("gold",)), "score", 0.0) | {"share_retrain": np.array(True)}
    assert "share_retrain is said of the method called 'retrain'" in refusal(raw, tmp_path)
    for name in ("retrain", "Retrain", "retrained"):
        right = raw | {"method": np.full(len(raw["method"]), name)}
        assert audited(right, tmp_path).methods[name].quality == 1


def as_losses(raw, scale=1.0, shift=0.0) -> dict[str, np.ndarray]:
    """Losses in the place of logits, those of the models under test on another scale."""
    found = dict(raw)
    for prefix in ("", "shadow_"):
        logits, label = found.pop(f"{prefix}logits"), raw[f"{prefix}label"]
        found[f"{prefix}loss"] = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(label)), label]
    return found | {"loss": scale * found["loss"] + shift}


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 0.0), (1.0, 0.2), (8.0, 0.0)])
def test_losses_on_another_scale_are_warned_of_though_the_threshold_finds_a_part(tmp_path, scale, shift):
    honest, other = (audited(as_losses(generalising(), *how), tmp_path) for how in ((1.0, 0.0), (scale, shift)))
    assert honest.games[0].warnings == []
    assert honest.methods["model"].quality + 0.05 < other.methods["model"].quality < 0.95
    assert "are their outputs on the same scale?" in warned(other)


def mixed_up(raw, share, methods=None) -> dict[str, np.ndarray]:
    """A share of the rows of each model in another order."""
    rng, rows = np.random.default_rng(3), np.arange(len(raw["side"]))
    for key in dict.fromkeys(zip(raw["method"], raw["pair"], raw["side"], strict=True)):
        if methods is None or key[0] in methods:
            its = np.flatnonzero((raw["method"] == key[0]) & (raw["pair"] == key[1]) & (raw["side"] == key[2]))
            its = rng.permutation(its)[: round(share * len(its))]
            rows[np.sort(its)] = its
    return raw | {"logits": raw["logits"][rows]}


def test_rows_of_which_a_part_is_mixed_up_are_warned_of(tmp_path):
    """Unseen points are classified better than by chance, but far worse than shadow models classify theirs."""
    text = warned(audited(mixed_up(generalising(), 0.7), tmp_path))
    assert "do all outputs belong to the points beside them?" in text
    assert "% of those that shadow models never saw" in text
    assert "no better than by chance" not in text


def test_rows_of_one_side_that_are_mixed_up_are_warned_of(tmp_path):
    raw = generalising()
    rows = np.where(raw["side"] == 1, np.arange(len(raw["side"])), 0)
    mixed = mixed_up(raw, 0.9)["logits"]
    one_side = np.where(rows[:, None] > 0, mixed, raw["logits"])
    assert "do all outputs belong" in warned(audited(raw | {"logits": one_side}, tmp_path))


def test_a_method_beside_a_sound_reference_lost_accuracy_and_is_told_of_as_damaged(tmp_path):
    raw = generalising(methods=("retrain", "x"))
    both = mixed_up(raw, 0.8)
    text = warned(audited(both, tmp_path))
    assert "retrain: of the unseen points" in text
    assert "x: of the unseen points" in text
    alone = audited(mixed_up(raw, 0.8, {"x"}), tmp_path)
    assert "do all outputs belong" not in warned(alone)
    assert any(line.startswith("Less accurate than Retrain: x by") for line in reservations(alone.games[0]))


@pytest.mark.parametrize("seed", range(8))
def test_models_like_the_shadow_models_are_not_warned_of(tmp_path, seed):
    """`benchmarks/audit_alarms.py` has thousands."""
    raw = generalising(seed=seed)
    assert audited(raw, tmp_path).games[0].warnings == []
    assert audited(as_losses(raw), tmp_path).games[0].warnings == []
