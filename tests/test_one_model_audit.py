"""`draw` and `audit --draw`: from a list of points to a verdict on the one model that its owner has."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

import forgetgauge
from forgetgauge.auditing import audit_one_model, make_draw
from forgetgauge.auditing.draw import OWN_SEED, Draw, read_draw
from forgetgauge.auditing.one_model import _OneModelAudit
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.errors import UserError
from forgetgauge.files import with_seal
from forgetgauge.game.one_model import groups_test, half_test, pairs_test, ranks_test
from forgetgauge.records import read_record
from forgetgauge.report.erasure_test import what_was_tested
from forgetgauge.report.meaning import meaning
from forgetgauge.results.one_model import OneModelResult
from forgetgauge.results.resolution import COARSE, resolution_of
from forgetgauge.results.verdict import INCONCLUSIVE, STILL_VISIBLE

N = 240


@pytest.fixture
def listed(tmp_path):
    """A list of points, each of one of 60 persons, and of one of 120 matched pairs."""
    path = tmp_path / "points.csv"
    lines = [f"p{i},person {i % 60},{i // 2}" for i in range(N)]
    path.write_text("\n".join(["point,person,pair", *lines]))
    return path


def make(listed, n_forget=60, **how) -> Draw:
    return make_draw(listed, n_forget, listed.parent / "draw.json", **{"seed": "s", **how})


def outputs(draw: Draw, shift: float, seed: int = 0, **columns) -> dict[str, np.ndarray]:
    """Scores of the drawn points, those of F larger by `shift` deviations."""
    rng = np.random.default_rng(seed)
    names = np.array([*draw.forget, *draw.unseen])
    score = rng.normal(size=len(names)) + shift * np.isin(names, draw.forget)
    order = rng.permutation(len(names))
    return {"point": names[order], "score": score[order], **columns}


def audited(listed, columns, **how) -> OneModelResult:
    np.savez(listed.parent / "file.npz", **columns)
    return audit_one_model(listed.parent / "file.npz", listed.parent / "draw.json", **how)


# -- the draw ----------------------------------------------------------------------------------------------------------


def test_a_draw_can_be_checked_without_this_program(listed):
    found = make(listed, seed="beacon 17", seed_from="a beacon")
    points = [f"p{i}" for i in range(N)]
    ranked = sorted(points, key=lambda p: hashlib.sha256(f"{found.commitment}\nbeacon 17\n{p}".encode()).digest())
    assert (set(found.forget), set(found.unseen)) == (set(ranked[:60]), set(ranked[60:120]))
    assert read_draw(listed.parent / "draw.json") == found


def test_the_commitment_is_what_the_docs_say(listed):
    found = make(listed, 60)
    rows = sorted([f"p{i}", f"p{i}"] for i in range(N))
    spelled = json.dumps({"forget": 60, "kind": "points", "points": rows}, separators=(",", ":"))
    assert found.commitment == hashlib.sha256(spelled.encode()).hexdigest()


@pytest.mark.parametrize("kind", [{}, {"by": "person", "n_forget": 20}, {"pairs": "pair", "n_forget": 60}])
def test_a_part_of_a_draw_that_somebody_chose_afterwards_is_found_by_the_list(listed, kind):
    draw = make(listed, seed_from="a beacon", **kind)
    columns = outputs(draw, 0.0)
    assert audited(listed, columns, points=listed).list_shown
    assert not audited(listed, columns).list_shown
    units = draw.unit_of or {point: point for point in (*draw.forget, *draw.unseen)}
    n = draw.n_forget // 2
    kept = [sorted({units[point] for point in side})[:n] for side in (draw.forget, draw.unseen)]
    sides = [[p for p in side if units[p] in own] for side, own in zip((draw.forget, draw.unseen), kept, strict=True)]
    part = replace(
        draw,
        n_forget=n,
        forget=sides[0],
        unseen=sides[1],
        unit_of=None if draw.unit_of is None else {point: units[point] for side in sides for point in side},
    )
    (listed.parent / "draw.json").write_text(part.to_json())
    assert audited(listed, columns, adversaries=None).n_forget == n  # the file alone does not show it
    with pytest.raises(UserError, match="it is not the list of points that the draw commits to"):
        audited(listed, columns, points=listed)


def test_another_list_and_a_list_without_a_draw_are_refused(listed):
    columns = outputs(make(listed), 0.0)
    other = listed.parent / "other.csv"
    other.write_text(listed.read_text().replace("p7,", "p700,"))
    with pytest.raises(UserError, match="not the list of points"):
        audited(listed, columns, points=other)
    with pytest.raises(UserError, match="belongs to a draw"):
        audit_one_model(listed.parent / "file.npz", requests=True, points=listed)


@pytest.mark.parametrize("seed_from", [None, "", "  "])
def test_a_seed_of_nobody_who_is_named_is_the_testers_own(listed, seed_from):
    assert make(listed, seed_from=seed_from).is_own
    assert not replace(read_draw(listed.parent / "draw.json"), seed_from="a beacon").is_own


@pytest.mark.parametrize("seed_from", [None, "", "  ", f" {OWN_SEED} "])
def test_a_draw_whose_file_names_nobody_is_the_testers_own(listed, seed_from):
    draw = replace(make(listed, seed_from="a beacon"), seed_from=seed_from)
    (listed.parent / "draw.json").write_text(draw.to_json())
    found = audited(listed, outputs(draw, 0.0), points=listed, states=["all"])
    assert found.own_draw
    assert "the tester's own" in found.table()
    assert "the seed of the draw is somebody else's" in what_was_tested(found, None, "here").checks_that("WARNED")


@pytest.mark.parametrize("commits", [True, False])
def test_whether_the_list_was_committed_to_before_the_seed_is_kept_and_said(listed, call, commits):
    asked = ("draw", listed, "--forget", "60", "--out", listed.parent / "draw.json")
    if commits:
        assert call(*asked, "--commit")[0] == 0
    code, out, _ = call(*asked, "--seed", "s", "--seed-from", "a beacon")
    assert (code, "No commitment was made before" in out) == (0, not commits)
    draw = read_draw(listed.parent / "draw.json")
    found = audited(listed, outputs(draw, 0.0), points=listed)
    assert draw.committed_first == found.committed_first == commits
    assert ("committed to before the seed was known is not shown" in found.table()) == (not commits)
    said = what_was_tested(found, None, "here").scope["list committed to before the seed"]
    assert said == ("yes, as the draw says" if commits else "not shown")


def test_what_speaks_against_the_file_is_said(listed):
    draw = make(listed)
    turned = outputs(draw, 3.0)
    turned["score"] = -turned["score"]
    assert any("F looks less familiar than T" in line for line in audited(listed, turned).warnings)
    assert audited(listed, outputs(draw, 3.0)).warnings == []
    rng = np.random.default_rng(0)
    logits = {"point": turned["point"], "logits": rng.normal(size=(120, 10)), "label": rng.integers(0, 10, 120)}
    assert any("no better than by chance" in line for line in audited(listed, logits).warnings)
    logits["logits"][np.arange(120), logits["label"]] += 3
    assert not any("by chance" in line for line in audited(listed, logits).warnings)


def test_a_model_from_before_the_deletion_that_is_not_visible_is_warned_of(listed, tmp_path, call):
    draw = make(listed, 100)

    def two(before: float) -> OneModelResult:
        parts = [outputs(draw, before, seed=1), outputs(draw, 0.0, seed=2)]
        hard = dict(zip(parts[0]["point"].tolist(), 5 * np.random.default_rng(3).normal(size=200), strict=True))
        for part in parts if before else []:  # for both alike
            part["score"] += [hard[point] for point in part["point"].tolist()]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return audited(listed, columns | {"method": np.repeat(["before", "after"], 200)})

    assert two(6.0).warnings == []
    (line,) = two(0.0).warnings
    assert line.startswith("before: the model from before the deletion is not distinguishable from retraining, so")
    assert "the test of after says nothing about a deletion" in line
    asked = ("audit", listed.parent / "file.npz", "--draw", listed.parent / "draw.json", "--out", tmp_path / "out")
    assert call(*asked, "--points", listed, "--states", "all", "--quiet")[0] == 0
    for strict in ([], ["--strict"]):
        assert call("check", tmp_path / "out", "--at-chance", "--margin", "0.45", *strict)[0] == 3


def both(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a model from before the deletion, and of the one after it."""
    columns = {name: np.concatenate([before[name], after[name]]) for name in before}
    return columns | {"method": np.repeat(["before", "after"], len(before["point"]))}


@pytest.mark.parametrize(("shift", "is_known_less"), [(3.0, False), (-3.0, True)])
def test_a_visible_model_beside_one_from_before_that_is_not_names_what_was_exchanged(listed, shift, is_known_less):
    """Where files were exchanged, F is known better; where T was in both trainings, the model that forgot F knows T."""
    draw = make(listed, 100)
    found = audited(listed, both(outputs(draw, 0.0, seed=2), outputs(draw, shift, seed=1)))
    assert [found.models[name].verdict == STILL_VISIBLE for name in ("before", "after")] == [False, True]
    (line,) = [line for line in found.warnings if line.startswith("before: ")]
    assert "though after is still visible: either the outputs were exchanged, or T was in the training as well" in line
    assert any(
        "after: F looks less familiar" in line and "T was in the training" in line for line in found.warnings
    ) == (is_known_less)
    plain = audited(listed, both(outputs(draw, 3.0, seed=2), outputs(draw, 3.0, seed=1)))
    assert not any(line.startswith("before: ") for line in plain.warnings)


def test_a_model_from_before_that_is_only_just_visible_is_warned_of(listed):
    """Another model that remembers F as well as it does would often pass."""
    draw, said = make(listed, 100), "before: it is only just visible (p = 0.0"
    for shift, is_said in ((0.35, True), (1.0, False)):
        for seed in range(40):
            found = audited(listed, both(outputs(draw, shift, seed=seed), outputs(draw, 0.0, seed=99)))
            p = 10 ** found.models["before"].log10_p
            if found.models["after"].verdict != STILL_VISIBLE and (0.005 < p <= 0.05 if is_said else p < 0.005):
                break
        else:
            pytest.fail("no such game")
        assert any(line.startswith(said) for line in found.warnings) == is_said
        assert ("the result carries no warning" in what_was_tested(found, None, "here").checks_that("WARNED")) == any(
            found.warnings
        )
    found = audited(listed, both(outputs(draw, 3.0, seed=1), outputs(draw, 3.0, seed=2)))
    assert found.warnings == []


@pytest.mark.parametrize("origin", ["drawn", "requests"])
def test_a_point_has_one_label_for_all_models(listed, origin):
    draw, rng = make(listed), np.random.default_rng(0)
    names, label = np.array([*draw.forget, *draw.unseen]), rng.integers(0, 4, 120)
    logits = rng.normal(size=(120, 4))
    logits[np.arange(120), label] += 2
    one = {"point": names, "logits": logits, "label": label}
    if origin == "requests":
        one |= {"set": np.repeat(["forget", "unseen"], 60), "features": rng.normal(size=(120, 2))}

    def found(after: np.ndarray) -> OneModelResult:
        np.savez(listed.parent / "file.npz", **both(one, one | {"label": after}))
        drawn = listed.parent / "draw.json" if origin == "drawn" else None
        return audit_one_model(listed.parent / "file.npz", drawn, requests=origin == "requests")

    assert set(found(label).models) == {"before", "after"}
    turned = label.copy()
    turned[7] = (label[7] + 1) % 4
    with pytest.raises(UserError, match=f"point {names[7]} appears with different labels"):
        found(turned)


def test_labels_that_pandas_wrote_as_fractions_are_the_whole_numbers_that_they_are(listed):
    draw, rng = make(listed), np.random.default_rng(0)
    names, label = [*draw.forget, *draw.unseen], rng.integers(0, 2, 120).tolist()
    logits = rng.normal(size=(120, 2)).tolist()
    stored = []
    for end in ("", ".0"):
        rows = [f"{name},{of}{end},{a},{b}" for name, of, (a, b) in zip(names, label, logits, strict=True)]
        (listed.parent / "file.csv").write_text("\n".join(["point,label,logit_0,logit_1", *rows]))
        stored.append(audit_one_model(listed.parent / "file.csv", listed.parent / "draw.json").models)
    assert stored[0] == stored[1]
    (listed.parent / "file.csv").write_text((listed.parent / "file.csv").read_text().replace("1.0,", "1.5,", 1))
    with pytest.raises(UserError, match=r"label = '1\.5' is not a whole number"):
        audit_one_model(listed.parent / "file.csv", listed.parent / "draw.json")


def test_names_of_tests_that_have_a_comma_can_be_told_apart_in_a_list(listed):
    draw = make(listed)
    found = audited(listed, outputs(draw, 0.0))
    assert what_was_tested(found, None, "here").scope["attackers"] == "own score and own score (top 5%)"


def test_attacks_that_were_not_asked_are_named(listed):
    draw, rng = make(listed), np.random.default_rng(0)
    logits, label = rng.normal(size=(120, 4)), rng.integers(0, 4, 120)
    logits[np.arange(120), label] += 2
    columns = {"point": np.array([*draw.forget, *draw.unseen]), "logits": logits, "label": label}
    said = "could have attacked and were not asked (--adversary)"
    (line,) = audited(listed, columns, adversaries=["entropy", "gap"]).warnings
    assert line.startswith(f"loss and modified-entropy {said}")
    assert audited(listed, columns).warnings == []
    assert audited(listed, columns, adversaries=["entropy", "gap", "loss", "modified-entropy"]).warnings == []
    assert audited(listed, outputs(draw, 0.0), adversaries=[]).warnings == []


def test_rows_of_the_tested_model_that_are_mixed_up_beside_a_good_control_are_warned_of(listed):
    draw, rng = make(listed, 100), np.random.default_rng(0)
    names = np.array([*draw.forget, *draw.unseen])
    hard = rng.normal(size=200)
    before = hard + 0.5 * rng.normal(size=200) - 3.0 * np.isin(names, draw.forget)
    for after, is_said in ((hard + 0.5 * rng.normal(size=200), False), (rng.permutation(hard), True)):
        columns = {"point": np.tile(names, 2), "method": np.repeat(["before", "after"], 200)}
        found = audited(listed, columns | {"loss": np.concatenate([before, after])})
        assert [found.models[name].verdict == STILL_VISIBLE for name in ("before", "after")] == [True, False]
        said = [line for line in found.warnings if "after: what it says of T is not shown to go with" in line]
        assert bool(said) == is_said


def test_a_file_without_a_model_from_before_the_deletion_says_so(listed):
    draw, said = make(listed, 100), "No model from before the deletion is in the file"
    quiet, visible = audited(listed, outputs(draw, 0.0)), audited(listed, outputs(draw, 3.0))
    assert [said in found.table() for found in (quiet, visible)] == [True, False]
    assert quiet.warnings == []


@pytest.mark.parametrize("kind", ["points", "persons", "pairs"])
def test_so_few_points_that_nothing_can_be_seen_claim_no_resolution(kind):
    """By enumeration: where even the one who is always right has p above 0.05, no advantage is said to be seen."""
    for n in (1, 2, 3, 4, 6, 8):
        if kind == "points":
            test = ranks_test(np.arange(2 * n), np.arange(2 * n) >= n)
        elif kind == "persons":
            test = groups_test(np.arange(2 * n) >= n, np.arange(2 * n) >= n, np.arange(2 * n))
        else:
            test = pairs_test(np.arange(2 * n) >= n, np.arange(2 * n) >= n, np.arange(2 * n) % n)
        least = min(1.0, np.exp(test.log_p))
        seen = resolution_of([(test.by, test.told)], n, 0.95)
        assert (seen == np.inf) == (least > 0.05), (kind, n)
        assert seen == np.inf or seen <= 1


def test_of_so_few_points_it_is_said_that_nothing_would_have_been_seen(listed):
    found = audited(listed, outputs(make(listed, 3), 100.0))
    assert found.models["model"].resolution is None
    assert found.verdict == INCONCLUSIVE
    assert "would have been seen with" not in found.table()
    assert "even an adversary who is always right would not have been seen" in found.table()


@pytest.mark.parametrize("origin", ["drawn", "requests"])
@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        ("weight", np.zeros(120), "weight has no use here: every point counts alike"),
        ("weight", np.ones(120), "weight has no use here"),
        ("share_retrain", np.array(True), "share_retrain has no use here: it is said of swap pairs"),
        ("seed", np.arange(120) % 3, "model has rows of 3 seeds, which are models of their own"),
        ("seed", np.zeros(120, int), None),
    ],
)
def test_columns_that_the_test_of_one_model_does_not_read_are_refused(listed, origin, column, values, why):
    draw = make(listed)
    columns = outputs(draw, 0.0) | {column: values}
    how = {}
    if origin == "requests":
        columns["set"] = np.where(np.isin(columns["point"], draw.forget), "forget", "unseen")
        how = {"requests": True}
    np.savez(listed.parent / "file.npz", **columns)
    asked = [listed.parent / "file.npz", *([] if how else [listed.parent / "draw.json"])]
    if why is None:
        assert audit_one_model(*asked, **how).models
        return
    with pytest.raises(UserError, match=why):
        audit_one_model(*asked, **how)


@pytest.mark.parametrize("how", ["draw", "requests"])
@pytest.mark.parametrize("interval", ["bounded", "student"])
def test_an_interval_is_of_swap_pairs(listed, call, how, interval):
    np.savez(listed.parent / "file.npz", **outputs(make(listed), 0.0))
    option = ("--requests",) if how == "requests" else ("--draw", listed.parent / "draw.json")
    code, _, err = call("audit", listed.parent / "file.npz", *option, "--interval", interval)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "--interval belongs to an audit of swap pairs" in err


@pytest.mark.parametrize("spell", ["00{}", "{}.0", "{}.00", " {}"])
def test_ids_that_are_all_spelled_otherwise_are_named(tmp_path, spell):
    (tmp_path / "points.csv").write_text("\n".join(["point", *map(str, range(1, 41))]))
    draw = make_draw(tmp_path / "points.csv", 10, tmp_path / "draw.json", seed="s")
    names = np.array([spell.format(name) for name in (*draw.forget, *draw.unseen)])
    np.savez(tmp_path / "file.npz", point=names, score=np.arange(20.0))
    with pytest.raises(UserError, match=r"of the draw is missing, but there is '.*': write ids alike"):
        audit_one_model(tmp_path / "file.npz", tmp_path / "draw.json")


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema": 3, "commitment": "", "models": {}}', '"draw"'])
def test_a_file_that_is_no_draw_is_told_so(listed, text, call):
    np.savez(listed.parent / "file.npz", **outputs(make(listed), 0.0))
    (listed.parent / "other.json").write_text(text)
    for command in (
        ("audit", listed.parent / "file.npz", "--draw", listed.parent / "other.json"),
        ("draw", listed, "--forget", "60", "--seed", "s", "--out", listed.parent / "other.json"),
    ):
        code, _, err = call(*command)
        assert (code, len(err.splitlines()), "other.json: it is no draw" in err) == (2, 1, True)
    assert (listed.parent / "other.json").read_text() == text


def test_a_draw_of_nobody_says_how_many_are_to_be_given(listed, call):
    for by, what in (((), "points"), (("--by", "person"), "groups")):
        code, _, err = call("draw", listed, *by, "--out", listed.parent / "d.json")
        assert (code, len(err.splitlines())) == (2, 1)
        assert f"give --forget: how many {what} are to be forgotten" in err


def test_one_is_counted_as_one(listed):
    found = audited(listed, outputs(make(listed, 1), 0.0))
    text = found.table()
    assert "F is 1 point drawn" in text
    assert "among 1 test:" in text
    assert "1 points" not in text + repr(found)


def test_groups_stay_together_and_pairs_are_told_apart(listed):
    grouped = make(listed, 20, by="person")
    persons = [{grouped.unit_of[point] for point in side} for side in (grouped.forget, grouped.unseen)]
    assert [len(side) for side in persons] == [20, 20]
    assert not persons[0] & persons[1]
    (listed.parent / "draw.json").unlink()
    paired = make(listed, 0, pairs="pair")
    assert sorted(paired.unit_of[p] for p in paired.forget) == sorted(paired.unit_of[p] for p in paired.unseen)
    assert len(paired.forget) == N // 2


def test_every_point_is_as_likely_to_be_forgotten_as_any_other(listed):
    chosen = np.zeros(N)
    for seed in range(200):
        (listed.parent / "draw.json").unlink(missing_ok=True)
        for point in make(listed, seed=str(seed)).forget:
            chosen[int(point[1:])] += 1
    assert abs(chosen - 50).max() < 5 * np.sqrt(200 * 0.25 * 0.75)


def test_a_list_is_committed_to_before_the_seed_is_known_and_cannot_be_changed_after(listed):
    first = make(listed, seed=None, commit=True)
    assert first.forget is None
    with pytest.raises(UserError, match="nothing is drawn yet"):
        read_draw(listed.parent / "draw.json")
    with pytest.raises(UserError, match="it commits to 60 to forget, not to 50"):
        make(listed, 50)
    points = listed.read_text()
    listed.write_text(points.replace("p7,", "q7,"))
    with pytest.raises(UserError, match="commits to another list"):
        make(listed)
    listed.write_text(points)
    assert make(listed).commitment == first.commitment
    with pytest.raises(UserError, match="a draw was made there already"):
        make(listed)


def test_a_draw_of_ones_own_says_so(listed):
    found = make(listed, seed=None)
    assert found.is_own
    assert found.seed_from == OWN_SEED


@pytest.mark.parametrize(
    ("text", "how", "why"),
    [
        ("point\na\na\nb", {}, "point 'a' is listed twice"),
        ("point\na\nb", {}, "120, but there are 2 points"),
        ("", {}, "no header"),
        ("0\n1\n2\n", {}, "looks like a point: a .csv needs a header"),
        ("patient 17\npatient 18\n", {}, "looks like a point"),
        ("point\n", {}, "lists no points"),
        ("point,who\na,1\nb,", {"by": "who"}, "row 2: who is blank"),
        ("point\na\nb", {"by": "person"}, "no column 'person'"),
        ("point;who\na;1\nb;2", {}, "separated by semicolons"),
        (",id,person\n0,103,a\n1,101,a", {}, "its first column has no name, as an index has"),
        ('"","id"\n"1","a"\n"2","b"', {}, "row.names=FALSE"),
        ("sep=,\npoint,who\na,1\nb,2", {}, "its first line, sep=,, is for Excel alone"),
        ("sep=;\npoint;who\na;1", {}, "is for Excel alone"),
        ("point\na\x00\nb", {}, "row 1: .* has a control character"),
        ('point,who\na,1\nb,"2\n3"', {"by": "who"}, "row 2: .* has a control character"),
        ("point\twho\na\t1\nb\t2", {"by": "who"}, "separated by tabs"),
        ("point,who\na,1,2\nb,2", {"by": "who"}, "row 1 has 3 cells, but the header has 2"),
        ("point,who,who\na,1,2\nb,2,1", {"by": "who"}, "the column who stands twice"),
        ("point,pair\na,1\nb,1\nc,1", {"pairs": "pair"}, "pair '1' has 3 points"),
        ("point\na\nb", {"by": "x", "pairs": "y"}, "give one of them"),
        ("point\na\nb", {"n_forget": -1}, "not at least 1"),
        ("point\na\nb", {"n_forget": 1, "seed": " "}, "the seed is empty"),
        ("point\na\nb", {"n_forget": 1, "seed": None, "seed_from": "me"}, "no --seed"),
        ("point\na\nb", {"n_forget": 1, "commit": True}, "leave --seed out"),
        ("point\na\nb", {"n_forget": 1, "commit": True, "seed": None, "seed_from": "x"}, "leave --seed-from out"),
    ],
)
def test_what_is_no_list_is_refused_in_one_line(tmp_path, text, how, why):
    (tmp_path / "points.csv").write_text(text)
    with pytest.raises(UserError, match=why):
        make(tmp_path / "points.csv", how.pop("n_forget", 60), **how)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"point,who\na,1\nb,2\n", "its first line is a header, so call it .csv"),
        (b"point\na\nb\n", "its first line is a header"),
        ("a\nb\nc\n".encode("utf-16-le"), "has a control character, as files in UTF-16"),
        (b"a\t1\nb\t2\n", "tables with tabs"),
    ],
)
def test_a_table_that_is_taken_for_a_list_of_lines_is_refused(tmp_path, raw, why):
    (tmp_path / "points.txt").write_bytes(raw)
    with pytest.raises(UserError, match=why):
        make(tmp_path / "points.txt", 1)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "person,id\nA,1\nB,2\nC,3\nD,4", "column person of {}: A, B, C, …"),
        ("a.csv", "person,point\nA,1\nB,2", "column point of {}: 1, 2"),
        ("a.txt", "patient 7\nSmith, J.\n", "lines of {}: patient 7, Smith, J."),
    ],
)
def test_which_column_names_the_points_is_said_with_the_first_of_them(tmp_path, call, name, text, said):
    (tmp_path / name).write_text(text)
    out = call("draw", tmp_path / name, "--forget", "1", "--seed", "s", "--out", tmp_path / "draw.json")[1]
    assert f"The points are named by the {said.format(tmp_path / name)}\n" in out


# -- the audit ---------------------------------------------------------------------------------------------------------


def test_a_model_that_remembers_is_still_visible_and_one_that_forgot_too_much_as_well(listed):
    draw = make(listed)
    for shift in (1.5, -1.5):
        model = audited(listed, outputs(draw, shift)).models["model"]
        assert model.verdict == "still visible"
        assert model.log10_p < -6
        assert model.epsilon > 5
        assert np.sign(model.tests["own score"].advantage) == np.sign(shift)


def test_a_blind_model_cannot_be_told_from_a_retrained_one_and_the_resolution_is_stated(listed):
    draw = make(listed)
    found = [audited(listed, outputs(draw, 0.0, seed)).models["model"] for seed in range(40)]
    assert sum(model.verdict == "still visible" for model in found) <= 6
    assert {model.verdict for model in found} <= {
        "still visible",
        "not distinguishable from retraining at this resolution",
    }
    assert found[0].resolution == pytest.approx(resolution_of([("ranks", 1.0), ("top", 1.0)], 60, 0.95))


def test_ten_points_are_inconclusive(listed):
    draw = make(listed, 5)
    assert audited(listed, outputs(draw, 0.0)).models["model"].verdict == "inconclusive"


def told(kind: str, n: int, advantage: float, rng: np.random.Generator):
    """A test of this kind of n units on each side, which an adversary has this advantage on."""
    forget = np.arange(2 * n) < n
    right = rng.random(2 * n) < (1 + advantage) / 2
    if kind == "answers":
        return half_test(right == forget, forget)
    if kind == "ranks":
        return ranks_test(rng.normal(size=2 * n) + 2**0.5 * ndtri((1 + advantage) / 2) * forget, forget)
    if kind == "pairs":
        return pairs_test(np.append(right[:n], ~right[:n]), forget, np.tile(np.arange(n), 2))
    person = np.repeat(np.arange(2 * n), np.where(np.arange(2 * n) % 3, 1, 5))  # unequal, each answered as a whole
    return groups_test((right == forget)[person], forget[person], person)


@pytest.mark.parametrize("n_tests", [1, 8])
@pytest.mark.parametrize("kind", ["answers", "ranks", "pairs", "groups"])
def test_a_resolution_is_the_advantage_that_is_seen_four_times_of_five(kind, n_tests):
    """By simulation, 600 games of each kind."""
    rng = np.random.default_rng(n_tests)
    n, n_games = (100, 600) if kind in ("answers", "pairs") else (60, 600)
    advantage = resolution_of([(kind, 1.0)] * n_tests, n, 0.95)
    seen = [told(kind, n, advantage, rng).log_p <= np.log(0.05 / n_tests) for _ in range(n_games)]
    assert 0.75 <= np.mean(seen) <= 0.9


@pytest.mark.parametrize("kind", ["answers", "ranks", "pairs", "groups"])
def test_ten_units_are_too_few_to_pass_by_any_kind_of_test(kind):
    assert all(resolution_of([(kind, 1.0)] * n_tests, 10, 0.95) > COARSE for n_tests in (1, 2, 8))


def test_too_little_evidence_is_said_in_the_number_it_is_judged_by():
    """An advantage of ½ over equal halves is three quarters of right answers."""
    assert (0.5 + COARSE / 2, "three quarters" in meaning(INCONCLUSIVE, None)) == (0.75, True)


def test_the_test_that_sees_least_decides_and_that_of_the_top_scores_is_not_asked():
    answers, ranks, pairs, top = ((kind, 1.0) for kind in ("answers", "ranks", "pairs", "top"))
    alone = {kind: resolution_of([kind, kind], 100, 0.95) for kind in (answers, ranks, pairs)}
    assert alone[answers] < alone[ranks] < alone[pairs]
    assert resolution_of([answers, ranks], 100, 0.95) == alone[ranks]
    assert resolution_of([answers, top], 100, 0.95) == alone[answers]


@pytest.mark.parametrize("kind", ["groups", "pairs"])
def test_groups_and_pairs_are_tested_as_they_were_drawn(listed, kind):
    draw = make(listed, 20, by="person") if kind == "groups" else make(listed, 0, pairs="pair")
    found = audited(listed, outputs(draw, 1.5), delta=0.0)
    model = found.models["model"]
    assert (found.kind, model.verdict) == (kind, "still visible")
    assert (model.point_epsilon is not None) == (kind == "pairs")
    if kind == "pairs":
        assert 0 < model.point_epsilon < model.epsilon
        assert audited(listed, outputs(draw, 1.5)).models["model"].point_epsilon is None  # δ > 0: not valid


def test_whom_a_score_calls_forgotten_does_not_depend_on_how_many_points_the_drawn_groups_have(tmp_path):
    """Over every draw of three of six persons with 1 to 40 records p keeps its level, whatever a blind model says."""
    sizes = [1, 2, 3, 5, 30, 40]
    points = [(f"{who}-{i}", str(who)) for who, size in enumerate(sizes) for i in range(size)]
    score = np.random.default_rng(0).normal(size=len(points)) + np.repeat([3.0, 3, 3, 0, 0, 0], sizes)
    np.savez(tmp_path / "file.npz", point=np.array([name for name, _ in points]), score=score)
    made = Draw("groups", "c", 6, 3, "who", "s", "x", unit_of=dict(points))
    said = []
    for some in combinations("012345", 3):
        sides = [[name for name, who in points if (who in some) == chosen] for chosen in (True, False)]
        audit = _OneModelAudit(
            read_audit_file(tmp_path / "file.npz", replace(made, forget=sides[0], unseen=sides[1])), made, None, 0.95, 0
        )
        rows = np.argsort(audit.file.outputs.point.astype(str), kind="stable")
        ((_, says, shown),) = audit._answers("model", rows)
        said.append(audit._says(says, shown).tobytes())
    assert len(set(said)) == 1


@pytest.mark.parametrize("kind", ["points", "groups", "pairs"])
def test_a_draw_whose_sets_are_not_those_of_its_seed_is_refused(listed, kind):
    how = {"points": (60, {}), "groups": (20, {"by": "person"}), "pairs": (0, {"pairs": "pair"})}[kind]
    found = make(listed, how[0], **how[1])
    path = listed.parent / "draw.json"
    assert read_draw(path) == found
    path.write_text(replace(found, forget=found.unseen, unseen=found.forget).to_json())
    with pytest.raises(UserError, match="F and T are not those that the seed draws"):
        read_draw(path)
    path.write_text(replace(found, seed="another").to_json())
    with pytest.raises(UserError, match="F and T are not those that the seed draws"):
        read_draw(path)


@pytest.mark.parametrize("how", [{}, {"by": "person"}, {"pairs": "pair"}], ids=["points", "groups", "pairs"])
def test_a_draw_whose_numbers_or_units_were_changed_is_refused(listed, how):
    """More of them would make a test look sharper than it is, and records of a person look independent."""
    draw, path = make(listed, 20, **how), listed.parent / "draw.json"
    changes = [
        {"n_forget": draw.n_forget * 1000},
        {"n_forget": 0},
        {"n_units": 1},
        {"unseen": []},
        {"unseen": draw.unseen[:1]},
        {"by": "who" if draw.by is None else None},
        {"unit_of": {} if draw.unit_of is None else None},
        *({"kind": kind} for kind in ("points", "groups", "pairs") if kind != draw.kind),
    ]
    for change in changes:
        path.write_text(replace(draw, **change).to_json())
        with pytest.raises(UserError, match="F and T are not those that the seed draws"):
            read_draw(path)


@pytest.mark.parametrize(("n_forget", "how"), [(120, {}), (30, {"by": "person"}), (0, {"pairs": "pair"})])
def test_of_a_list_that_was_drawn_as_a_whole_its_length_is_known(listed, n_forget, how):
    draw, path = make(listed, n_forget, **how), listed.parent / "draw.json"
    assert read_draw(path) == draw
    path.write_text(replace(draw, n_units=100_000).to_json())
    with pytest.raises(UserError, match="the file was changed"):
        read_draw(path)


def test_points_that_are_their_own_groups_are_points(listed):
    with pytest.raises(UserError, match="--by point makes every point a group of its own: leave it out"):
        make(listed, by="point")
    draw, path = make(listed), listed.parent / "draw.json"
    own = {point: point for point in (*draw.forget, *draw.unseen)}
    path.write_text(replace(draw, kind="groups", by="person", unit_of=own).to_json())
    with pytest.raises(UserError, match="the file was changed"):
        read_draw(path)


def test_logits_need_no_shadow_models_and_with_them_adversaries_are_fitted(listed):
    draw = make(listed)
    rng = np.random.default_rng(0)
    columns = outputs(draw, 0.0)
    columns.pop("score")
    seen = np.isin(columns["point"], draw.forget)

    def logits(member):
        z = rng.normal(size=(len(member), 3))
        z[:, 0] += 1 + 2 * member
        return z.astype(np.float32)

    columns |= {"label": np.zeros(len(seen), dtype=np.int64), "logits": logits(seen)}
    alone = audited(listed, columns).models["model"]
    assert "loss" in alone.tests
    assert alone.verdict == "still visible"
    assert alone.utility["forget"] > alone.utility["unseen"]
    member = rng.random(400) < 0.5
    shadows = {"shadow_label": np.zeros(400, dtype=np.int64), "shadow_member": member, "shadow_logits": logits(member)}
    fitted = audited(listed, columns | shadows).models["model"]
    assert {"shadow", "confidence"} <= set(fitted.tests)
    assert fitted.verdict == "still visible"
    with pytest.raises(UserError, match="'shadow' is fitted on shadow models, of which the file has none"):
        audited(listed, columns, adversaries=["shadow"])


def test_a_score_that_is_the_same_for_all_points_measures_nothing(listed):
    columns = outputs(make(listed), 0.0)
    with pytest.raises(UserError, match="model: every score and decision is the same for all points"):
        audited(listed, columns | {"score": np.zeros(120)})
    with pytest.raises(UserError, match="model: every score and decision is the same for all points"):
        audited(listed, {"point": columns["point"], "decision": np.ones(120, dtype=bool)})
    found = audited(listed, columns | {"loss": np.zeros(120)})
    assert list(found.models["model"].tests) == ["own score", "own score, top 5%"]
    assert found.warnings == ["model: own loss says the same of all points, which measures nothing: left out."]


def test_where_a_threshold_tells_nobody_apart_scores_do(listed):
    """Shadow models on another scale: their threshold is below every score of the model."""
    member = np.arange(400) % 2 == 0
    shown = np.random.default_rng(0).normal(size=400) + 3 * member
    columns = outputs(make(listed), 3.0)
    block = {"score": columns["score"] + 1000, "shadow_member": member, "shadow_score": shown}
    found = audited(listed, columns | block)
    assert found.models["model"].tests["own score"].advantage > 0.5
    assert any("answers alike for all points: its scores were tested instead" in line for line in found.warnings)


@pytest.mark.parametrize("shadows", [False, True])
def test_a_table_says_the_same_as_arrays(listed, shadows):
    """Rows of shadow models say that they are; those of the model leave the set to the draw."""
    draw = make(listed)
    columns = outputs(draw, 1.0)
    rng = np.random.default_rng(3)
    member = rng.random(60) < 0.5
    shown = rng.normal(size=60) + member
    block = {"shadow_member": member, "shadow_score": shown} if shadows else {}
    lines = [f"{point},{score!r},," for point, score in zip(columns["point"], columns["score"].tolist(), strict=True)]
    if shadows:
        sets = np.where(member, "shadow-in", "shadow-out")
        lines += [f",{score!r},{where}," for score, where in zip(shown.tolist(), sets, strict=True)]
    header = "point,score,set" if shadows else "point,score"
    table = "\n".join(",".join(line.split(",")[: 3 if shadows else 2]) for line in lines)
    (listed.parent / "file.csv").write_text(f"{header}\n{table}\n")
    found = audit_one_model(listed.parent / "file.csv", listed.parent / "draw.json")
    assert found.models == audited(listed, columns | block).models
    assert found.models["model"].verdict == "still visible"


def test_the_protocol_of_the_documentation_runs_command_by_command(tmp_path, monkeypatch, call):
    """docs/deletion-request.md, its blocks in their order, on a list of 400 patients."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs/deletion-request.md").read_text("utf-8")
    (tmp_path / "points.csv").write_text("\n".join(["point", *(f"patient {i}" for i in range(400))]))
    for language, text in re.findall(r"^```(bash|python)\n(.*?)^```", page, re.M | re.S):
        if language == "python":
            exec(compile(text, "deletion-request.md", "exec"), {})
            continue
        for line in text.strip().splitlines():
            code, out, err = call(*shlex.split(line)[1:])
            assert code == 0
            assert "forgetgauge: " not in err
    assert out.startswith("model: ")
    assert {path.name for path in (tmp_path / "record").iterdir()} >= {"record.html", "statement.json"}


def test_what_it_rests_on_is_recorded_and_what_is_not_stated_is_told(listed, call):
    draw = make(listed, seed_from="a colleague")
    np.savez(listed.parent / "file.npz", **outputs(draw, 0.0))
    where = ("audit", listed.parent / "file.npz", "--draw", listed.parent / "draw.json", "--out", listed.parent / "out")
    code, out, _ = call(*where, "--states", "training")
    assert code == 0
    assert "Evidence from one model, not Q" in out
    assert "It rests on what nobody has stated yet: shadow models" in out
    assert "Q =" not in out
    stored = read_record(listed.parent / "out" / "evidence.json", OneModelResult)
    assert stored.stated == {"training": True, "shadows": False, "settings": False, "validation": False}
    assert "nobody has stated" not in call(*where, "--states", "all")[1]
    code, _, err = call(*where, "--states", "trianing")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "did you mean 'training'" in err


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: {k: v[:-1] for k, v in c.items()}, "of the draw is missing"),
        (lambda c: {k: np.append(v, v[:1]) for k, v in c.items()}, "appears more than once"),
        (lambda c: {**c, "side": np.zeros(len(c["point"]), int)}, "side is what the draw says"),
        (lambda c: {"score": c["score"]}, "the column point is missing"),
        (lambda c: {**c, "point": np.char.add("x", c["point"])}, "none of its points is in the draw"),
        (lambda c: {"point": c["point"]}, "nothing to judge"),
    ],
)
def test_a_file_that_does_not_fit_the_draw_is_refused(listed, change, why):
    with pytest.raises(UserError, match=why):
        audited(listed, change(outputs(make(listed), 0.0)))


@pytest.mark.parametrize("kind", ["points", "groups", "pairs"])
def test_a_reference_model_that_knows_f_by_itself_is_refused_by_name(listed, kind):
    """The original model, say: calibrated by it, an honest model's answers would show every point of F."""
    how = {"points": {}, "groups": {"n_forget": 20, "by": "person"}, "pairs": {"n_forget": 0, "pairs": "pair"}}[kind]
    draw = make(listed, **how)
    honest = outputs(draw, 0.0)
    n, in_forget = len(honest["point"]), np.isin(honest["point"], draw.forget)
    said = np.random.default_rng(5).normal(size=(3, n))
    block = {"reference_model": np.repeat(["a", "b", "original"], n), "reference_point": np.tile(honest["point"], 3)}
    found = audited(listed, {**honest, **block, "reference_score": said.ravel()})
    assert found.models["model"].verdict != STILL_VISIBLE
    said[2] += 3.0 * in_forget
    with pytest.raises(UserError, match="reference model original tells points of F from points of T by itself"):
        audited(listed, {**honest, **block, "reference_score": said.ravel()})


def with_references(draw, said, names, **columns) -> dict[str, np.ndarray]:
    """Of losses: the model's own, in the order of the draw, and those of reference models (n_models, n)."""
    points = np.array([*draw.forget, *draw.unseen])
    block = {"reference_model": np.repeat(names, len(points)), "reference_point": np.tile(points, len(names))}
    return {"point": points, "reference_loss": np.concatenate(said), **block, **columns}


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_scores_as_large_as_numbers_are_can_be_compared_with_those_of_reference_models(listed):
    draw, rng = make(listed), np.random.default_rng(3)
    own, said = rng.normal(size=120), rng.normal(size=(2, 120))
    own[:3], said[:, :3] = 1.7e308, -1.7e308
    assert audited(listed, with_references(draw, list(said), ["a", "b"], loss=own)).models


HALF = "\ud800"
"""Of a character: what a byte that is not UTF-8 becomes on a command line."""


@pytest.mark.parametrize("option", ["--seed", "--seed-from", "--by"])
def test_what_is_no_text_is_refused_in_one_line_where_it_would_be_kept(listed, call, option):
    asked = {"--forget": "3", "--seed": "s", "--out": listed.parent / "d.json", option: f"x{HALF}"}
    code, _, err = call("draw", listed, *(part for pair in asked.items() for part in pair))
    assert (code, len(err.splitlines())) == (2, 1)
    if option != "--by":
        assert "no text in UTF-8" in err
        with pytest.raises(UserError, match="no text in UTF-8"):
            make(listed, **{option[2:].replace("-", "_"): HALF})


def test_evidence_may_be_kept_in_a_folder_whose_name_is_no_text(listed, call, tmp_path):
    np.savez(listed.parent / "file.npz", **outputs(make(listed), 0.0))
    folder = tmp_path / "audit\udcff"  # a byte of another alphabet
    asked = ("audit", listed.parent / "file.npz", "--draw", listed.parent / "draw.json", "--quiet")
    assert call(*asked, "--out", folder)[0] == 0
    assert "audit?" in json.loads((folder / "evidence.json").read_text())["environment"]["command"]


@pytest.mark.parametrize("field", ["seed", "seed_from", "commitment", "forget", "unseen"])
def test_half_of_a_character_in_a_draw_is_refused(listed, field):
    draw = make(listed, seed_from="a beacon")
    columns, path = outputs(draw, 0.0), listed.parent / "draw.json"
    held = json.loads(path.read_text())
    held[field] = [HALF, *held[field][1:]] if isinstance(held[field], list) else HALF
    path.write_text(json.dumps(held))
    with pytest.raises(UserError, match="half of a character"):
        audited(listed, columns)
    path.write_text(json.dumps(json.loads(draw.to_json()) | {"seed_from": "\U0001f600"}))  # two halves make one
    assert read_draw(path).seed_from == "\U0001f600"


@pytest.mark.parametrize("column", ["point", "method", "reference_model"])
def test_half_of_a_character_in_an_audit_file_is_refused(listed, column):
    draw = make(listed)
    said = np.random.default_rng(0).normal(size=(2, 120))
    columns = with_references(draw, list(said), ["a", "b"], loss=np.arange(120.0), method=np.full(120, "model"))
    columns[column] = columns[column].astype("U9")
    columns[column][0] = HALF
    with pytest.raises(UserError):
        audited(listed, columns)


def test_commands_that_evidence_of_one_model_has_no_use_for_say_what_has(listed, call, tmp_path):
    np.savez(listed.parent / "file.npz", **outputs(make(listed), 0.0))
    folder = tmp_path / "audit"
    asked = ("audit", listed.parent / "file.npz", "--draw", listed.parent / "draw.json", "--quiet", "--out", folder)
    assert call(*asked)[0] == 0
    margin = np.ceil(1000 * json.loads((folder / "evidence.json").read_text())["models"]["model"]["resolution"]) / 1000
    for command, why in (
        (("check", folder), f"--at-chance is what can be asked, with --margin {margin:g} (less is inconclusive)"),
        (("export", folder, tmp_path / "x"), "it has evidence of one model, which is handed on as it is"),
        (("report", folder, "--points"), "evidence of one model has no page of points"),
        (("check", folder, "--at-chance", "--junit", tmp_path / "nowhere/j.xml"), "No such file"),
    ):
        code, out, err = call(*command)
        assert (code, out, len(err.splitlines()), why in err) == (2, "", 1, True), command
    assert call("check", folder, "--at-chance", "--margin", f"{margin:g}")[0] == 0
    assert "not computed again: how many answers of each attacker were right" in call("verify", folder)[1]


@pytest.mark.parametrize("cell", ["636_000", "٣", "1_0"])
@pytest.mark.parametrize("column", ["score", "label"])
def test_cells_that_only_python_reads_as_numbers_are_refused(listed, cell, column):
    draw = make(listed, 1)
    points, other = [*draw.forget, *draw.unseen], "label" if column == "score" else "score"
    rows = [f"{point},{cell},1" for point in points]
    path = listed.parent / "file.csv"
    path.write_text("\n".join([f"point,{column},{other}", *rows]), "utf-8")
    with pytest.raises(UserError, match=f"row 1: {column} = '{cell}' is not a"):
        audit_one_model(path, listed.parent / "draw.json")
    path.write_text("\n".join([",point,score", *(f"{i},{point},1" for i, point in enumerate(points))]))
    with pytest.raises(UserError, match="a column has no name, as an index has that pandas or R writes"):
        audit_one_model(path, listed.parent / "draw.json")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"level": "0.9"}, "level = '0.9' is not a number"),
        ({"level": None}, "level = None is not a number"),
        ({"delta": None}, "delta = None is not a number"),
        ({"delta": True}, "delta = True is not a number"),
        ({"states": "trainin"}, "unknown statement 'trainin'; did you mean 'training'"),
    ],
)
def test_arguments_of_another_type_are_refused_in_words(listed, how, why):
    with pytest.raises(UserError, match=re.escape(why)):
        audited(listed, outputs(make(listed), 0.0), **how)


def test_one_name_is_as_good_as_a_list_of_it_and_a_number_of_numpy_as_any(listed):
    columns = outputs(make(listed), 0.0)
    assert json.loads(audited(listed, columns, level=np.float32(0.5), delta=np.int64(0)).to_json())["level"] == 0.5
    assert all(audited(listed, columns, states="all").stated.values())
    assert not any(audited(listed, columns, states=None).stated.values())
    with pytest.raises(UserError, match="'shadow' is fitted on shadow models"):
        audited(listed, columns, adversaries="shadow")


def test_a_reference_model_that_is_the_model_itself_or_another_is_refused_by_name(listed):
    """Compared with itself a model that ignored the request shows rounding alone."""
    draw, rng = make(listed), np.random.default_rng(3)
    own, others = rng.normal(size=120) - 0.4 * (np.arange(120) < 60), rng.normal(size=(2, 120))
    copies = {
        "reference model b is 'model' itself": [others[0], own.astype(np.float32).astype(float)],
        "reference models a and b are one model": [others[0], others[0] + 1e-9],
    }
    for why, said in copies.items():
        with pytest.raises(UserError, match=why):
            audited(listed, with_references(draw, said, ["a", "b"], loss=own))
    audited(listed, with_references(draw, list(others), ["a", "b"], loss=own))
    coarse = np.round(own)  # outputs of few values may agree by chance
    audited(listed, with_references(draw, [coarse, np.roll(coarse, 1)], ["a", "b"], loss=coarse))


def test_members_and_others_of_a_reference_model_must_not_be_exchanged(listed):
    draw, rng = make(listed), np.random.default_rng(4)
    member = rng.permuted(np.arange(120) < 60)
    said = rng.normal(size=120) - 3.0 * member
    audited(listed, with_references(draw, [said], ["a"], loss=rng.normal(size=120), reference_member=member))
    with pytest.raises(UserError, match="to reference model a points that it was trained on are less familiar"):
        audited(listed, with_references(draw, [said], ["a"], loss=rng.normal(size=120), reference_member=~member))


@pytest.mark.parametrize("kind", ["other ids", "no rows"])
def test_reference_models_of_other_points_are_refused_in_one_line(listed, kind):
    columns = with_references(make(listed), np.zeros((1, 120)), ["a"], loss=np.arange(120.0))
    block = [name for name in columns if name.startswith("reference_")]
    if kind == "no rows":
        columns |= {name: columns[name][:0] for name in block}
    else:
        columns["reference_point"] = np.char.add("x", columns["reference_point"])
    with pytest.raises(UserError, match="no row of a reference model is of a point under audit"):
        audited(listed, columns)


def test_a_draw_with_a_mark_of_its_encoding_is_read_and_is_no_result(listed, call):
    draw, path = make(listed), listed.parent / "draw.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_draw(path) == draw
    code, _, err = call("verify", path)
    assert (code, len(err.splitlines()), "a draw, and no result" in err) == (2, 1, True)


def test_the_column_of_points_is_named_where_it_is_called_otherwise(listed, call):
    make(listed)
    (listed.parent / "file.csv").write_text("id,loss\np1,2.0\n")
    code, _, err = call("audit", listed.parent / "file.csv", "--draw", listed.parent / "draw.json")
    assert (code, "the column that names the points is called point, not id" in err) == (2, True)


def test_ids_in_another_spelling_are_named(tmp_path, call):
    (tmp_path / "list.csv").write_text("point\n" + "\n".join(f"{i:03d}" for i in range(1, 91)))
    call("draw", tmp_path / "list.csv", "--forget", 40, "--out", tmp_path / "draw.json")
    drawn = read_draw(tmp_path / "draw.json")
    rows = [f"{int(p)},{i}" if i == 7 else f"{p},{i}" for i, p in enumerate([*drawn.forget, *drawn.unseen])]
    (tmp_path / "file.csv").write_text("\n".join(["point,score", *rows]))
    code, _, err = call("audit", tmp_path / "file.csv", "--draw", tmp_path / "draw.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"point '{drawn.forget[7]}' of the draw is missing, but there is '{int(drawn.forget[7])}'" in err


@pytest.mark.parametrize(
    ("names", "is_told"),
    [(["José", "Jose\u0301"], True), (["Person 3", "person 3"], True), (["007", "7"], True), (["a1", "a2"], False)],
)
def test_names_that_differ_by_their_spelling_alone_are_told_by_the_draw(tmp_path, call, names, is_told):
    rows = [f"{i},{names[i] if i < 2 else f'someone {i}'}" for i in range(10)]
    (tmp_path / "list.csv").write_text("\n".join(["point,person", *rows]))
    code, _, err = call("draw", tmp_path / "list.csv", "--forget", 2, "--by", "person", "--out", tmp_path / "draw.json")
    assert (code, "if they are one, write both alike" in err) == (0, is_told)


def test_reference_models_that_ignore_the_draw_are_seldom_refused(listed):
    draw, refused = make(listed), 0
    for seed in range(300):
        said = np.random.default_rng(seed).normal(size=(4, len(draw.forget) + len(draw.unseen)))
        columns = outputs(draw, 0.0, seed=seed)
        block = {
            "reference_model": np.repeat(np.arange(4), said.shape[1]),
            "reference_point": np.tile(columns["point"], 4),
        }
        try:
            audited(listed, {**columns, **block, "reference_score": said.ravel()})
        except UserError:
            refused += 1
    assert refused <= 3  # 0.3 are expected


def test_points_that_were_not_drawn_are_left_out(listed):
    draw = make(listed)
    columns = outputs(draw, 1.0)
    more = {"point": np.append(columns["point"], "p999"), "score": np.append(columns["score"], 99.0)}
    assert audited(listed, more).models == audited(listed, columns).models


def test_the_commands_draw_and_audit_load_no_torch(listed):
    make(listed)
    np.savez(listed.parent / "file.npz", **outputs(read_draw(listed.parent / "draw.json"), 0.0))
    code = (
        "import sys; from pathlib import Path; from forgetgauge.auditing import audit_one_model; "
        "audit_one_model(Path('file.npz'), Path('draw.json')); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=listed.parent, check=False).returncode == 0


def test_the_command_draws(listed, call):
    out = listed.parent / "d.json"
    code, text, _ = call("draw", listed, "--forget", 10, "--out", out)
    assert code == 0
    assert "10 points to forget, 10 to keep unseen" in text
    assert "have to take your word" in text
    assert json.loads(out.read_text())["kind"] == "points"
    assert call("draw", listed, "--forget", 10, "--out", out)[0] == 2


@pytest.mark.parametrize("by", ["command", "function"])
def test_another_audit_in_the_same_folder_does_not_take_the_place_of_the_first(listed, call, by):
    draw, folder, kept = make(listed), listed.parent / "out", []
    for strength in (1.5, 1.5, 0.0, 0.5):
        np.savez(listed.parent / "file.npz", **outputs(draw, strength))
        if by == "command":
            code, _, err = call(
                "audit", listed.parent / "file.npz", "--draw", listed.parent / "draw.json", "--out", folder
            )
            kept += [line.rpartition("/")[2] for line in err.splitlines() if "held another audit" in line]
            assert code == 0
        else:
            forgetgauge.audit(listed.parent / "file.npz", listed.parent / "draw.json", out=folder, progress=False)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"evidence{number}.{suffix}" for number in ("", "-1", "-2") for suffix in ("html", "json")
    )
    assert kept == (["evidence-1.json", "evidence-2.json"] if by == "command" else [])
    stored = [read_record(folder / f"evidence{n}.json", OneModelResult) for n in ("-1", "-2")]
    assert [model.verdict for found in stored for model in found.models.values()] == [
        "still visible",
        "not distinguishable from retraining at this resolution",
    ]
    assert call("verify", folder / "evidence-1.json")[0] == 0


def test_a_page_of_evidence_that_was_changed_is_found_beside_it(listed, call):
    folder = listed.parent / "out"
    np.savez(listed.parent / "file.npz", **outputs(make(listed), 1.5))
    call("audit", listed.parent / "file.npz", "--draw", listed.parent / "draw.json", "--out", folder)
    assert call("verify", folder)[0] == 0
    page = folder / "evidence.html"
    page.write_text(page.read_text().replace("still visible", "not distinguishable"))
    code, out, _ = call("verify", folder)
    assert (code, out) == (
        1,
        "evidence.html was changed after it was written, or not finished: `report` writes it again\n",
    )
    assert call("report", folder)[0] == 0
    assert call("verify", folder)[0] == 0


def test_evidence_that_was_changed_is_refused_and_verify_says_where(listed, call):
    path = listed.parent / "evidence.json"
    found = audited(listed, outputs(make(listed), 1.5))
    path.write_text(found.to_json())
    code, out, _ = call("verify", path)
    assert (code, out.startswith("verified: 13 values")) == (0, True)
    (name,) = found.models
    better = replace(found.models[name], verdict="not distinguishable from retraining at this resolution", epsilon=0.0)
    forged = replace(found, models={name: better})
    path.write_text(forged.to_json())  # its digest fits
    code, out, _ = call("verify", listed.parent / "evidence.json")
    assert code == 1
    assert f"models/{name}/verdict" in out
    assert f"models/{name}/epsilon" in out
    path.write_text(found.to_json().replace('"seed": "s"', '"seed": "t"'))
    assert "was changed after it was written" in call("verify", path)[1]
    code, _, err = call("record", path, "--out", listed.parent / "record")
    assert (code, "was changed after it was written" in err) == (2, True)


FORGERIES = {
    "resolution": {"resolution": 0.001},
    "verdict": {"verdict": "inconclusive"},
    "best": {"best": "nobody"},
    "log10_p": {"log10_p": -0.1},
    "epsilon": {"epsilon": 0.1},
    "point_epsilon": {"point_epsilon": 0.001},
    "reason": {"reason": "it was raining"},
}


@pytest.mark.parametrize("what", FORGERIES)
@pytest.mark.parametrize("kind", ["points", "pairs"])
def test_numbers_that_do_not_follow_from_the_tests_are_refused_by_every_command(listed, call, kind, what):
    draw = make(listed) if kind == "points" else make(listed, 0, pairs="pair")
    found = audited(listed, outputs(draw, 1.5), delta=0.0)
    folder = listed.parent / "kept"
    folder.mkdir()
    model = found.models["model"]
    (folder / "evidence.json").write_text(found.to_json())
    assert call("verify", folder)[0] == call("report", folder)[0] == 0
    forged = replace(found, models={"model": replace(model, **FORGERIES[what])})
    (folder / "evidence.json").write_text(forged.to_json())
    assert f"models/model/{what}: " in call("verify", folder)[1]
    for command in (("record", folder, "--out", listed.parent / "x"), ("report", folder), ("compare", folder, folder)):
        code, _, err = call(*command)
        assert (code, len(err.splitlines())) == (2, 1)
        assert f"does not say what its tests say: models/model/{what}: " in err
    assert call("report", folder, "--unverified")[0] == 0


@pytest.mark.parametrize("kind", ["points", "pairs"])
def test_what_follows_from_right_answers_alone_is_computed_again(listed, call, kind):
    draw = make(listed) if kind == "points" else make(listed, 0, pairs="pair")
    found = audited(listed, outputs(draw, 1.5))
    name = "own score, top 5%" if kind == "points" else "own score"
    model = found.models["model"]
    for key, value in {"log10_p": -0.1, "advantage": 0.01, "n_right": 0}.items():
        forged = {**model.tests, name: replace(model.tests[name], **{key: value})}
        path = listed.parent / "evidence.json"
        path.write_text(replace(found, models={"model": replace(model, tests=forged)}).to_json())
        code, out, _ = call("verify", path)
        assert (code, f"models/model/tests/{name}/" in out) == (1, True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda e: e["models"]["model"]["tests"]["own score, top 5%"].update(n_right=99),
            "99 of 6 answers cannot be right",
        ),
        (lambda e: e["models"]["model"]["tests"]["own score, top 5%"].update(n_asked=10**12), "cannot be judged"),
        (lambda e: e["models"]["model"].update(verdict="<img src=x>"), "verdict is one of still visible"),
        (lambda e: e["models"]["model"]["tests"]["own score"].update(by="stars"), "by is one of answers"),
        (lambda e: e["models"]["model"].update(tests={}), "without a test there is nothing to judge"),
        (lambda e: e.update(models={}), "without a test there is nothing to judge"),
        (lambda e: e.update(kind="persons"), "kind is one of points"),
        (lambda e: e.update(origin="requests"), "requests have a test without the model"),
        (lambda e: e.update(seed=""), "seed: a draw has one"),
        (lambda e: e.update(level=1.0), "level and delta are shares"),
        (lambda e: e.update(n_forget=0), "both sides have points"),
    ],
)
def test_what_no_audit_writes_is_refused_in_one_line(listed, call, change, why):
    path = listed.parent / "evidence.json"
    fields = json.loads(audited(listed, outputs(make(listed), 1.5)).to_json()) | {"sha256": ""}
    change(fields)
    path.write_text(with_seal(json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False) + "\n"))
    code, out, _ = call("verify", path)
    assert (code, why in out) == (1, True)
    code, _, err = call("record", path, "--out", listed.parent / "record")
    assert (code, len(err.splitlines()), why in err) == (2, 1, True)
