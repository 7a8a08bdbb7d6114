"""Reference models in an audit: LiRA, RMIA and calibrated scores against second derivations, and who may play."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from forgetgauge.auditing import audit_file, audit_one_model, make_draw
from forgetgauge.auditing.adversaries import adversaries_of
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.auditing.reference_scores import UNFITTED_A, reference_scores
from forgetgauge.errors import UserError
from tests.test_audit import made_up

N, M, C = 60, 8, 4


def game_of_points(n=N, models=M, memory=0.0, online=False, seed=0):
    """(columns, forget) of points whose difficulty all models share; the model under audit knows F by `memory`."""
    rng = np.random.default_rng(seed)
    label, forget = rng.integers(0, C, n), rng.permutation(n) < n // 2
    difficulty = 2 * rng.normal(size=n)

    def logits(known):
        said = rng.normal(size=(n, C)) * 0.3
        said[np.arange(n), label] += difficulty + known
        return said

    half = np.argsort(rng.random((models, n)), axis=0) < models // 2  # of the models, at each point
    member = half if online else np.zeros_like(half)
    columns = {
        "point": np.arange(n),
        "label": label,
        "logits": logits(memory * forget),
        "reference_model": np.repeat(np.arange(models), n),
        "reference_point": np.tile(np.arange(n), models),
        "reference_logits": np.concatenate([logits(1.0 * one) for one in member]),
        "reference_member": member.ravel(),
    }
    return columns, forget


def written(path, columns, forget):
    """A file of requests."""
    np.savez(path, **columns, set=np.where(forget, "forget", "unseen"))
    return path


def probability(logits, label):
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (shares / shares.sum(axis=1, keepdims=True))[np.arange(len(label)), label]


def phi(logits, label):
    p = probability(logits, label)
    return np.log(p) - np.log1p(-p)


@pytest.mark.parametrize("online", [False, True])
def test_scores_are_those_of_the_papers(tmp_path, online):
    """Point by point: normal laws about the mean of the models of each side, their spread pooled over points."""
    columns, forget = game_of_points(online=online)
    file = read_audit_file(written(tmp_path / "file.npz", columns, forget), requests=True)
    rows = np.random.default_rng(3).permutation(N)  # in any order
    found = reference_scores(file, rows)
    label = columns["label"]
    said = columns["reference_logits"].reshape(M, N, C).astype(np.float32).astype(float)
    member = columns["reference_member"].reshape(M, N)
    own = columns["logits"].astype(np.float32).astype(float)
    values = np.stack([phi(one, label) for one in said])
    p = np.stack([probability(one, label) for one in said])
    mine, my_p = phi(own, label), probability(own, label)

    def pooled(side):
        squares = [values[side[:, i], i] for i in range(N) if side[:, i].any()]
        return np.sqrt(sum(((s - s.mean()) ** 2).sum() for s in squares) / sum(len(s) - 1 for s in squares))

    expected = {name: np.empty(N) for name in ("lira-offline", "rmia-offline", "calibrated loss")}
    for i in range(N):
        out = ~member[:, i]
        expected["lira-offline"][i] = norm.ppf(norm.cdf(mine[i], values[out, i].mean(), pooled(~member)))
        expected["rmia-offline"][i] = np.log(my_p[i] / (((1 + UNFITTED_A) * p[out, i].mean() + 1 - UNFITTED_A) / 2))
        expected["calibrated loss"][i] = np.log(my_p[i]) - np.log(p[out, i]).mean()
    if online:
        expected |= {name: np.empty(N) for name in ("lira-online", "rmia-online")}
        for i in range(N):
            seen, out = member[:, i], ~member[:, i]
            expected["lira-online"][i] = norm.logpdf(mine[i], values[seen, i].mean(), pooled(member)) - norm.logpdf(
                mine[i], values[out, i].mean(), pooled(~member)
            )
            expected["rmia-online"][i] = np.log(my_p[i] / ((p[seen, i].mean() + p[out, i].mean()) / 2))
    assert found.keys() == expected.keys()
    for name, score in expected.items():
        known = np.isfinite(score[rows])  # Φ rounds far out
        assert known.sum() > 40
        np.testing.assert_allclose(found[name][known], score[rows][known], rtol=1e-4, atol=1e-4, err_msg=name)


def test_rmias_share_of_unseen_points_orders_the_points_as_its_ratio_does(tmp_path):
    columns, forget = game_of_points()
    file = read_audit_file(written(tmp_path / "file.npz", columns, forget), requests=True)
    ratio = reference_scores(file, np.arange(N))["rmia-offline"]
    background = np.random.default_rng(1).normal(size=500) * ratio.std()
    share = np.array([(one >= background).mean() for one in ratio])
    order = np.argsort(ratio)
    assert (np.diff(share[order]) >= 0).all()


def test_reference_models_show_what_difficulty_hides(tmp_path):
    """Points differ far more in difficulty than by having been seen: a plain loss sees nothing, LiRA does."""
    columns, forget = game_of_points(n=200, memory=0.5)
    model = audit_one_model(written(tmp_path / "file.npz", columns, forget), requests=True).models["model"]
    assert model.tests["loss"].log10_p > -3
    assert max(model.tests[name].log10_p for name in ("lira-offline", "calibrated loss")) < -6
    assert model.verdict == "still visible"
    retrained, forget = game_of_points(n=400, memory=0.0, seed=1)
    model = audit_one_model(written(tmp_path / "file.npz", retrained, forget), requests=True).models["model"]
    assert model.verdict == "not distinguishable from retraining at this resolution"


def test_a_draw_has_them_too_and_leaves_out_points_that_were_not_drawn(tmp_path):
    (tmp_path / "points.txt").write_text("\n".join(str(i) for i in range(120)))
    made = make_draw(tmp_path / "points.txt", 40, tmp_path / "draw.json", seed="s")
    columns, _ = game_of_points(n=120)
    drawn = np.isin(np.arange(120).astype(str), made.forget)
    columns["logits"][np.flatnonzero(drawn), columns["label"][drawn]] += 1.0
    np.savez(tmp_path / "file.npz", **columns)
    how = {"adversaries": ["lira-offline", "calibrated loss"]}
    model = audit_one_model(tmp_path / "file.npz", tmp_path / "draw.json", **how).models["model"]
    assert {name.split(",")[0] for name in model.tests} == set(how["adversaries"])
    assert model.verdict == "still visible"
    with pytest.raises(UserError, match="'lira-online' is fitted on shadow models, of which the file has none"):
        audit_one_model(tmp_path / "file.npz", tmp_path / "draw.json", adversaries=["lira-online"])


def swap_file(online=True, models=6, shadows=2):
    """An audit of swap pairs with reference models on its points, and shadow models on points of their own."""
    columns, rng = made_up(pairs=3), np.random.default_rng(4)
    names, first = np.unique(columns["point"], return_index=True)
    label = columns["label"][first]
    member = rng.random((models, len(names))) < (0.5 if online else 0.0)
    logits = rng.normal(size=(models, len(names), 3))
    logits[:, np.arange(len(names)), label] += 2.0 * member
    references = {
        "reference_model": np.repeat(np.arange(models), len(names)),
        "reference_point": np.tile(names, models),
        "reference_logits": logits.reshape(-1, 3),
        "reference_member": member.ravel(),
    }
    own = rng.random((shadows, 30)) < 0.5
    said = rng.normal(size=(shadows, 30, 3))
    said[:, np.arange(30), np.arange(30) % 3] += 2.0 * own
    block = {
        "shadow_model": np.repeat(np.arange(shadows), 30),
        "shadow_label": np.tile(np.arange(30) % 3, shadows),
        "shadow_member": own.ravel(),
        "shadow_logits": said.reshape(-1, 3),
    }
    return {**columns, **references, **block}


def test_swap_audits_have_lira_where_the_file_serves_it(tmp_path):
    columns = swap_file()
    np.savez(tmp_path / "file.npz", **columns)
    result = audit_file(tmp_path / "file.npz")
    assert {"lira-online", "lira-offline", "confidence"} <= set(result.methods["model"].by_adversary)
    assert "rmia-offline" not in result.methods["model"].by_adversary
    file = read_audit_file(tmp_path / "file.npz")
    (online,) = adversaries_of(file, ["lira-online"]).fitted_for("model")
    names = np.unique(columns["point"])
    label = columns["label"][np.unique(columns["point"], return_index=True)[1]]
    values = np.stack([phi(one, label) for one in columns["reference_logits"].reshape(6, len(names), 3)])
    member = columns["reference_member"].reshape(6, len(names))
    mine = phi(columns["logits"], columns["label"])
    at = np.searchsorted(names, columns["point"])
    usable = np.flatnonzero([0 < member[:, i].sum() < 6 for i in at])

    def law(side, i):
        freedom = sum(max(0, side[:, j].sum() - 1) for j in range(len(names)))
        groups = [values[side[:, j], j] for j in range(len(names)) if side[:, j].any()]
        return values[side[:, i], i].mean(), np.sqrt(sum(((g - g.mean()) ** 2).sum() for g in groups) / freedom)

    ratio = [norm.logpdf(mine[r], *law(member, at[r])) - norm.logpdf(mine[r], *law(~member, at[r])) for r in usable]
    np.testing.assert_allclose(online.margin(usable), ratio, rtol=1e-3, atol=1e-3)
    assert (online.decide(usable) == (np.array(ratio) >= 0)).all()


@pytest.mark.parametrize(
    ("columns", "name", "why"),
    [
        (swap_file(online=False), "lira-online", "trained on a point with models that were not"),
        (swap_file(shadows=1), "lira-offline", "a shadow block of two models or more"),
        (swap_file(), "rmia-online", "points outside F and T that it never saw"),
        (swap_file(), "quantile", "points outside F and T that it never saw"),
    ],
)
def test_who_cannot_play_is_told_in_words_what_is_missing(tmp_path, columns, name, why):
    np.savez(tmp_path / "file.npz", **columns)
    with pytest.raises(UserError, match=why):
        audit_file(tmp_path / "file.npz", adversaries=[name])
