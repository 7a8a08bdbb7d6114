"""`audit --requests`: one model, and a deletion that nobody drew at random."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from forgetgauge.auditing import audit_one_model
from forgetgauge.auditing.blind import _predicted
from forgetgauge.errors import UserError
from forgetgauge.game.blind import correlation_floor
from forgetgauge.records import read_record
from forgetgauge.results.one_model import OneModelResult

LIKE_RETRAIN = "not distinguishable from retraining at this resolution"


@pytest.fixture(scope="module")
def digits():
    """Digits in a random order: 300 to be asked for, 300 that no training saw, the rest kept; raw points and labels."""
    points, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(points))
    return points[order], labels[order]


def forest(points, labels, seed=0):
    return RandomForestClassifier(30, random_state=seed, n_jobs=1).fit(points, labels)


def logits_of(model, points):
    """Log-probabilities of all ten classes, with noise in the place of ties, whose exact law takes a second each."""
    shares = np.zeros((len(points), 10))
    shares[:, model.classes_] = model.predict_proba(points)
    noise = np.random.default_rng(len(points)).uniform(0, 1e-3, shares.shape)
    return np.log(np.maximum(shares, 1e-3) + noise).astype(np.float32)


def audit_of(digits, forget, unseen, trained_on, n_features=16, **more):
    """The columns of an audit of a forest that was trained on these points; features are sums over blocks of pixels."""
    points, labels = digits
    both = np.concatenate([forget, unseen])
    blocks = points[both].reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(len(both), 16)
    return {
        "point": both,
        "set": np.repeat(["forget", "unseen"], [len(forget), len(unseen)]),
        "label": labels[both],
        "logits": logits_of(forest(points[trained_on], labels[trained_on]), points[both]),
        **({"features": blocks[:, :n_features]} if n_features else {}),
        **more,
    }


def references_of(digits, both, n_models=3, **more):
    """Forests trained on points that are neither F nor T."""
    points, labels = digits
    rng = np.random.default_rng(5)
    rest = np.setdiff1d(np.arange(len(points)), both)
    models = [rng.choice(rest, len(rest) // 2, replace=False) for _ in range(n_models)]
    said = [logits_of(forest(points[own], labels[own], seed), points[both]) for seed, own in enumerate(models, 1)]
    return {
        "reference_model": np.repeat(np.arange(n_models), len(both)),
        "reference_point": np.tile(both, n_models),
        "reference_logits": np.concatenate(said),
        **more,
    }


FORGET, UNSEEN, REST = np.arange(300), np.arange(300, 600), np.arange(600, 1797)


def audited(tmp_path, columns, **how) -> OneModelResult:
    np.savez(tmp_path / "file.npz", **columns)
    return audit_one_model(tmp_path / "file.npz", requests=True, **how)


def told(tmp_path, call, columns, *options):
    """(first line, all, record) of the command."""
    folder = tmp_path / f"out-{len(list(tmp_path.glob('out-*')))}"
    np.savez(tmp_path / "file.npz", **columns)
    code, out, err = call("audit", tmp_path / "file.npz", "--requests", "--out", folder, *options)
    assert (code, err) == (0, "")
    return out.splitlines()[0], out, read_record(folder / "evidence.json", OneModelResult)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def test_a_deletion_that_was_ignored_is_still_visible(tmp_path, call, digits):
    columns = audit_of(digits, FORGET, UNSEEN, np.concatenate([FORGET, REST]))
    first, out, found = told(tmp_path, call, columns)
    assert first == "model: still visible"
    assert "exchangeable is argued, not drawn, and p is valid only if it is true; no ε is stated" in out
    assert "ε ≥" not in out
    assert (found.origin, found.n_forget, found.n_unseen, found.own_draw) == ("requests", 300, 300, False)
    assert not found.blind.told_apart
    assert found.models["model"].epsilon is None
    best = max(abs(test.advantage) for test in found.models["model"].tests.values())
    assert best > found.blind.missed > 0
    assert f"+{best:.3f}" in out  # the advantage as it is: nothing was subtracted


def test_a_model_that_was_trained_again_is_not_distinguishable_and_the_resolution_is_told(tmp_path, call, digits):
    first, out, found = told(tmp_path, call, audit_of(digits, FORGET, UNSEEN, REST))
    model = found.models["model"]
    assert first.startswith(f"model: {LIKE_RETRAIN} (an advantage of {model.resolution:.3f} would have been seen")
    assert found.blind.missed < model.resolution < 0.5
    assert "no difference was found" in out


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("which", range(2))
def test_ten_points_are_inconclusive_whatever_the_model_says(tmp_path, call, digits, ignored, which):
    """Of the first ten the retrained model's answers are all right, by chance: p = 0.03, and no claim."""
    few = np.arange(5 * which, 5 * which + 5), 300 + np.arange(5 * which, 5 * which + 5)
    columns = audit_of(digits, *few, np.concatenate([few[0], REST]) if ignored else REST)
    first, _, found = told(tmp_path, call, columns)
    assert first.startswith("model: inconclusive (even an adversary who is always right would not")
    assert not found.blind.told_apart


def test_one_point_is_inconclusive(tmp_path, call, digits):
    first, out, _ = told(tmp_path, call, audit_of(digits, FORGET[:1], UNSEEN, REST))
    assert first.startswith("model: inconclusive")
    assert "too few points to teach a classifier" in out


def test_f_and_t_of_different_populations_are_not_evaluable(tmp_path, call, digits):
    """F is of the first five digits, T of all."""
    labels = digits[1]
    small = np.flatnonzero(labels[:300] < 5)
    for trained_on in (REST, np.concatenate([small, REST])):
        first, out, found = told(tmp_path, call, audit_of(digits, small, UNSEEN, trained_on))
        assert first.startswith("model: not evaluable. F and T can be told apart without the model")
        assert "draw a half at random before the next training" in first
        assert found.blind.told_apart
        assert "It is no evidence here" in out


def test_shifted_features_are_not_evaluable_either(tmp_path, digits):
    columns = audit_of(digits, FORGET, UNSEEN, np.concatenate([FORGET, REST]))
    columns["features"][:300, 5] += columns["features"][:, 5].std()
    found = audited(tmp_path, columns)
    assert found.models["model"].verdict == "not evaluable"


def test_nothing_tested_is_not_evaluable(tmp_path, call, digits):
    first, out, found = told(tmp_path, call, audit_of(digits, FORGET, UNSEEN, np.append(FORGET, REST), n_features=0))
    assert first.startswith("model: not evaluable. The requests were not drawn at random, and nothing in the file")
    assert (found.blind.by, found.blind.log10_p, found.blind.missed) == ([], None, 1.0)
    assert "no features and no reference models in the file" in out


def test_an_advantage_that_the_blind_test_could_have_missed_is_not_claimed(tmp_path, call):
    """The same model, visible by six columns, is not by 3,000, in which a classifier finds nothing."""
    rng = np.random.default_rng(0)
    forget = np.arange(300) < 150
    base = {
        "point": np.arange(300),
        "set": np.where(forget, "forget", "unseen"),
        "score": rng.normal(size=300) + forget,
    }
    few = audited(tmp_path, {**base, "features": rng.normal(size=(300, 6))})
    assert few.models["model"].verdict == "still visible"
    first, _, many = told(tmp_path, call, {**base, "features": rng.normal(size=(300, 3000))})
    assert first.startswith("model: not evaluable. The model tells F from T with an advantage of")
    assert not many.blind.told_apart
    assert many.blind.missed > few.blind.missed
    assert many.models["model"].log10_p == few.models["model"].log10_p < -5


def test_reference_models_alone_serve_as_a_blind_test(tmp_path, call, digits):
    both = np.concatenate([FORGET, UNSEEN])
    references = references_of(digits, both)
    ignored = audit_of(digits, FORGET, UNSEEN, np.concatenate([FORGET, REST]), n_features=0)
    first, out, found = told(tmp_path, call, {**ignored, **references})
    assert first == "model: still visible"
    assert "compared by the outputs of reference models" in out
    assert {"lira-offline", "rmia-offline", "calibrated loss"} <= set(found.models["model"].tests)
    labels = digits[1]
    hard, easy = (FORGET[np.isin(labels[FORGET], (1, 8, 9))], UNSEEN[np.isin(labels[UNSEEN], (0, 6))])
    both = np.concatenate([hard, easy])
    other = {**audit_of(digits, hard, easy, REST, n_features=0), **references_of(digits, both)}
    assert audited(tmp_path, other).models["model"].verdict == "not evaluable"


def of_references(rng, said, n=300, **more):
    """An ignored deletion, and what reference models say of the same points."""
    forget = np.arange(2 * n) < n
    own = rng.exponential(size=2 * n)
    return {
        "point": np.arange(2 * n),
        "set": np.where(forget, "forget", "unseen"),
        "loss": own * np.where(forget, 0.1, 1.0),
        "reference_point": np.arange(2 * n),
        "reference_loss": said(own),
        **more,
    }


def test_reference_models_that_resemble_nothing_are_no_evidence_that_f_and_t_are_alike(tmp_path, call):
    rng = np.random.default_rng(0)
    noise = of_references(rng, lambda own: rng.exponential(size=len(own)))
    first, _, found = told(tmp_path, call, noise)
    assert first.startswith("model: not evaluable. The reference models are not shown to resemble the model")
    assert found.blind.missed == 1
    assert found.blind.alike < 0.3
    like = of_references(rng, lambda own: own * rng.uniform(0.7, 1.4, size=len(own)))
    first, _, found = told(tmp_path, call, like)
    assert first == "model: still visible"
    assert found.blind.alike > 0.3
    assert found.blind.missed < 0.2


def test_beside_features_references_that_resemble_nothing_leave_what_was_missed_to_the_features(tmp_path):
    rng = np.random.default_rng(1)
    columns = of_references(rng, lambda own: rng.exponential(size=len(own)), features=rng.normal(size=(600, 5)))
    alone = {name: column for name, column in columns.items() if not name.startswith("reference")}
    found = audited(tmp_path, columns).blind
    assert found.missed == audited(tmp_path, alone).blind.missed
    assert found.by == ["raw points", "reference models"]
    like = audited(tmp_path, {**columns, "reference_loss": columns["loss"] ** 2}).blind  # they know F: told apart
    assert like.told_apart


def test_one_model_among_several_that_references_do_not_resemble_is_enough(tmp_path):
    rng = np.random.default_rng(2)
    columns = of_references(rng, lambda own: own * rng.uniform(0.9, 1.1, size=len(own)), 60)
    twice = {name: np.tile(columns[name], 2) for name in ("point", "set", "loss")}
    twice["loss"][120:] = rng.exponential(size=120)
    twice["method"] = np.repeat(["one", "other"], 120)
    assert audited(tmp_path, columns).blind.alike > 0.9
    assert audited(tmp_path, {**columns, **twice}).blind.alike < 0.3


@pytest.mark.parametrize("by", ["features", "references"])
def test_what_follows_from_the_tests_without_the_model_is_computed_again(tmp_path, call, by):
    rng = np.random.default_rng(3)
    columns = of_references(rng, lambda own: own * rng.uniform(0.7, 1.4, size=len(own)), 80)
    if by == "features":
        columns = {name: one for name, one in columns.items() if not name.startswith("reference")}
        columns["features"] = rng.normal(size=(160, 3))
    _, _, found = told(tmp_path, call, columns)
    path = tmp_path / "out-0/evidence.json"
    assert call("verify", path)[0] == 0
    forgeries = {"missed": 0.001, "told_apart": True, "log10_p": -9.0, "by": []}
    for name, value in forgeries.items():
        path.write_text(replace(found, blind=replace(found.blind, **{name: value})).to_json())
        code, out, _ = call("verify", path)
        assert (code, f"blind/{name}: " in out) == (1, True)
        code, _, err = call("record", path, "--out", tmp_path / "record")
        assert (code, len(err.splitlines())) == (2, 1)
    for change in ({"verdict": LIKE_RETRAIN}, {"epsilon": 1.0}, {"resolution": 0.01}, {"reason": "no"}):
        path.write_text(replace(found, models={"model": replace(found.models["model"], **change)}).to_json())
        assert f"models/model/{next(iter(change))}: " in call("verify", path)[1]


def test_the_answer_does_not_depend_on_the_order_of_the_rows(tmp_path, digits):
    columns = audit_of(digits, FORGET[:60], UNSEEN[:80], REST)
    order = np.random.default_rng(1).permutation(140)
    found = [audited(tmp_path, one) for one in (columns, {name: column[order] for name, column in columns.items()})]
    assert found[0].blind == found[1].blind
    assert found[0].models == found[1].models


def test_a_table_says_the_same_as_arrays(tmp_path, digits):
    columns = audit_of(digits, FORGET[:40], UNSEEN[:50], REST)
    both = np.concatenate([FORGET[:40], UNSEEN[:50]])
    references = references_of(digits, both, 2)
    with (tmp_path / "file.csv").open("w", newline="") as file:
        table = csv.writer(file)
        logits = [f"logit_{i}" for i in range(10)]
        table.writerow(["point", "set", "model", "label", *logits, *(f"feature_{i}" for i in range(16))])
        for i in range(len(both)):
            said = [repr(float(one)) for one in columns["logits"][i]]
            row = [columns["point"][i], columns["set"][i], "", columns["label"][i]]
            table.writerow([*row, *said, *(repr(float(one)) for one in columns["features"][i])])
        for i in range(len(references["reference_point"])):
            said = [repr(float(one)) for one in references["reference_logits"][i]]
            row = [references["reference_point"][i], "reference-out", references["reference_model"][i], ""]
            table.writerow([*row, *said, *[""] * 16])
    found = audit_one_model(tmp_path / "file.csv", requests=True)
    expected = audited(tmp_path, {**columns, **references})
    assert (found.models, found.blind) == (expected.models, expected.blind)


def test_several_models_are_judged_by_one_blind_test(tmp_path, digits):
    both = [audit_of(digits, FORGET[:90], UNSEEN[:90], own) for own in (REST, np.append(FORGET[:90], REST))]
    columns = {name: np.concatenate([one[name] for one in both]) for name in both[0]}
    columns["method"] = np.repeat(["retrain", "ignored"], 180)
    found = audited(tmp_path, columns)
    alone = [audited(tmp_path, one) for one in both]
    assert found.blind == alone[0].blind == alone[1].blind
    assert [*found.models.values()] == [one.models["model"] for one in alone]
    columns["features"] = columns["features"] + (np.arange(360) == 359)[:, None]
    with pytest.raises(UserError, match="appears with different features"):
        audited(tmp_path, columns)


def test_names_that_tell_the_set_do_not_break_ties(tmp_path):
    """Scores and features are rough, so that most points tie; the ids of F come before those of T."""
    rng = np.random.default_rng(0)
    for names in (("a", "b"), ("b", "a")):
        columns = {
            "point": np.array([f"{names[i >= 60]}{i:03}" for i in range(120)]),
            "set": np.repeat(["forget", "unseen"], 60),
            "score": (rng.random(120) < 0.9) * 1.0,
            "features": (rng.random((120, 2)) < 0.9) * 1.0,
        }
        found = audited(tmp_path, columns)
        assert not found.blind.told_apart
        assert found.models["model"].verdict != "still visible"
        assert abs(found.models["model"].tests["own score, top 5%"].advantage) < 0.08  # 0.1 if all six are of one set


def test_an_adversary_that_is_misspelt_or_lacks_its_models_is_told_so(tmp_path, digits):
    columns = audit_of(digits, FORGET[:40], UNSEEN[:50], REST)
    with pytest.raises(UserError, match="did you mean 'lira-offline'"):
        audited(tmp_path, columns, adversaries=["lira-ofline"])
    with pytest.raises(UserError, match="of which the file has none; without them there are loss, entropy, "):
        audited(tmp_path, columns, adversaries=["shadow"])


def test_a_point_that_one_model_lacks_is_named(tmp_path, digits):
    both = [audit_of(digits, FORGET[:40], UNSEEN[:40], REST, n_features=0) for _ in range(2)]
    columns = {name: np.concatenate([one[name] for one in both])[:-1] for name in both[0]}
    columns["method"] = np.repeat(["one", "other"], [80, 79])
    with pytest.raises(UserError, match="other: point 339 is missing, which another model has"):
        audited(tmp_path, columns)


def test_true_and_false_are_features_too(tmp_path):
    columns = small(reference_model=None, reference_point=None, reference_score=None)
    yes = audited(tmp_path, {**columns, "features": columns["features"] > 0})
    assert yes.blind == audited(tmp_path, {**columns, "features": (columns["features"] > 0) * 1.0}).blind
    assert yes.blind.n_columns == 3


def test_what_was_missed_is_never_less_than_chance_hides(tmp_path):
    """Classifiers that are wrong on the other half, by chance, have not shown that there is nothing to see."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        columns = {
            "point": np.arange(160),
            "set": np.repeat(["forget", "unseen"], 80),
            "score": rng.normal(size=160),
            "features": rng.normal(size=(160, 2)),
        }
        assert audited(tmp_path, columns).blind.missed > 1.645 / np.sqrt(1.5 * 40) * 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "remembered"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 2.0)])
def test_no_retrained_model_is_called_visible_and_most_ignored_deletions_are(tmp_path, shift, remembered):
    """Reference models on F and T that differ by a shift of the very score: `benchmarks/one_model.py` has the rest."""
    rng = np.random.default_rng(11)
    verdicts = []
    for _ in range(150):
        forget = np.arange(160) < 80
        common = rng.normal(size=160) + shift * forget
        columns = {
            "point": np.arange(160),
            "set": np.where(forget, "forget", "unseen"),
            "score": common + 0.5 * rng.normal(size=160) + remembered * forget,
            "reference_point": np.arange(160),
            "reference_score": common + 0.5 * rng.normal(size=160),
        }
        verdicts.append(audited(tmp_path, columns).models["model"].verdict)
    visible = np.mean([verdict == "still visible" for verdict in verdicts])
    assert visible > 0.85 if remembered else visible <= 0.05
    if shift >= 1:
        assert np.mean([verdict == "not evaluable" for verdict in verdicts]) > 0.95


def test_what_requests_rest_on_is_recorded(tmp_path, call, digits):
    columns = audit_of(digits, FORGET[:40], UNSEEN[:50], REST)
    _, out, found = told(tmp_path, call, columns, "--states", "exchangeable")
    assert found.stated["exchangeable"]
    assert not found.stated["training"]
    assert "It rests on what nobody has stated yet: the model was trained on F, and T played no part" in out


# -- hostile input -----------------------------------------------------------------------------------------------------


def small(**changes):
    rng = np.random.default_rng(0)
    columns = {
        "point": np.arange(20),
        "set": np.repeat(["forget", "unseen"], 10),
        "score": rng.normal(size=20),
        "features": rng.normal(size=(20, 3)),
        "reference_model": np.repeat([0, 1], 20),
        "reference_point": np.tile(np.arange(20), 2),
        "reference_score": rng.normal(size=40),
    }
    return {name: column for name, column in {**columns, **changes}.items() if column is not None}


def without(name, row):
    columns = small()
    return {key: np.delete(column, row, axis=0) if key.startswith(name) else column for key, column in columns.items()}


REFUSED = {
    "set is missing": (small(set=None), "the column set is missing"),
    "a set that nobody knows": (
        small(set=np.repeat(["forget", "kept"], 10)),
        "set must be forget or unseen, not 'kept'",
    ),
    "an empty set": (small(set=np.repeat(["forget", ""], [19, 1])), "set must be forget or unseen, not ''"),
    "no unseen points": (small(set=np.repeat(["forget"], 20)), "no point has the set unseen"),
    "no forgotten points": (small(set=np.repeat(["unseen"], 20)), "no point has the set forget"),
    "NaN": (small(features=np.full((20, 3), np.nan)), "features: NaN or infinite in 20 of 20 rows"),
    "text": (small(features=np.full((20, 3), "a")), "features must be numbers"),
    "constant features": (small(features=np.ones((20, 3))), "the features are the same for all points"),
    "too few features": (small(features=np.ones((19, 3))), "features has 19 rows, but point has 20"),
    "a point twice": (
        small(point=np.append(np.arange(19), 18), reference_point=None, reference_score=None, reference_model=None),
        "point 18 appears",
    ),
    "swap pairs": (small(pair=np.zeros(20, int)), "pair is of swap pairs, which --requests has not"),
    "an unknown reference point": (
        small(reference_point=np.append(np.arange(39) % 20, 77)),
        "reference_point has '77', which is no point under audit",
    ),
    "a reference model that lacks a point": (without("reference_", 25), "reference model 1 lacks the point 5"),
    "a reference point twice": (
        small(reference_point=np.append(np.tile(np.arange(20), 2)[:-1], 0)),
        "has more than once|lacks",
    ),
    "references of another output": (
        small(reference_score=None, reference_loss=np.ones(40)),
        "reference_loss has nothing to be compared with: the column loss is missing",
    ),
    "silent references": (small(reference_score=None), "reference models say nothing"),
    "references that say the same of all points": (
        small(reference_score=np.zeros(40)),
        "reference models say the same of all points \\(own score\\)",
    ),
    "references without points": (small(reference_point=None), "needs reference_point"),
    "references that follow F": (
        small(reference_member=np.tile(np.arange(20) < 10, 2)),
        "reference models were trained on points of F more often",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_judged_is_refused_in_one_line(tmp_path, call, what):
    columns, why = REFUSED[what]
    np.savez(tmp_path / "file.npz", **columns)
    code, _, err = call("audit", tmp_path / "file.npz", "--requests", "--out", tmp_path / "out")
    assert (code, len(err.splitlines())) == (2, 1)
    with pytest.raises(UserError, match=why):
        audit_one_model(tmp_path / "file.npz", requests=True)


def test_a_blank_set_in_a_table_is_refused(tmp_path):
    (tmp_path / "file.csv").write_text("point,set,score,feature_a\n1,forget,1,2\n2,,3,4\n")
    with pytest.raises(UserError, match="row 2: set is blank"):
        audit_one_model(tmp_path / "file.csv", requests=True)


def test_features_are_of_requests_alone_and_a_draw_excludes_requests(tmp_path):
    np.savez(tmp_path / "file.npz", **small())
    from forgetgauge.auditing import audit_file

    with pytest.raises(UserError, match="features are read with --requests alone"):
        audit_file(tmp_path / "file.npz")
    with pytest.raises(UserError, match="give either the draw"):
        audit_one_model(tmp_path / "file.npz")
    with pytest.raises(UserError, match="give either the draw"):
        audit_one_model(tmp_path / "file.npz", tmp_path / "draw.json", requests=True)


@pytest.mark.parametrize(("told_by_features", "warned"), [(0.0, True), (1.0, False)])
def test_features_that_tell_nothing_of_what_a_model_finds_hard_are_warned_of(tmp_path, told_by_features, warned):
    """F and T look alike in random columns, whatever the model finds hard: an innocent model whose F is harder was
    called still visible, and one that remembers, hidden by difficulty, was not."""
    rng, n = np.random.default_rng(0), 150
    in_forget = np.arange(2 * n) < n
    hard = rng.normal(size=2 * n)
    columns = rng.normal(size=(2 * n, 5))
    columns[:, 0] += told_by_features * hard
    found = audited(
        tmp_path,
        {
            "point": np.array([f"p{i}" for i in rng.permutation(2 * n)]),
            "set": np.where(in_forget, "forget", "unseen"),
            "loss": hard + 0.5 * rng.normal(size=2 * n),
            "features": columns,
        },
    )
    assert any("not shown to tell anything of which points of T" in line for line in found.warnings) == warned


def test_features_are_seldom_said_to_tell_nothing_where_they_tell_a_little_and_seldom_to_tell_where_they_do_not():
    """Noise is taken to tell something in about one game in seven; a correlation of 0.45 is shown in most."""
    rng, shown = np.random.default_rng(0), {0.0: 0, 0.5: 0}
    for told in shown:
        for _ in range(20):
            hard, half = rng.normal(size=120), rng.random(120) < 0.5
            columns = rng.normal(size=(120, 3))
            columns[:, 0] += told * hard
            floors = [
                correlation_floor(_predicted(columns, hard, half, forest), hard, 0.025) for forest in (False, True)
            ]
            shown[told] += max(floors) > 0
    assert shown[0.0] <= 6
    assert shown[0.5] >= 15
