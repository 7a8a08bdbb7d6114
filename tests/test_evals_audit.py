"""`import-evals`: from the per-sample scores of open-unlearning's evaluations to an audit of one model."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from forgetgauge.auditing import audit_one_model, write_from_evals
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.errors import UserError

N, PER_PERSON = 400, 20


def scores(rng, remembered=0.0, shift=0.0, hard=None):
    """Losses of 400 forget and 400 holdout samples; `hard` is how hard each is, `shift` how much holdout more."""
    hard = rng.gamma(2.0, 0.5, 2 * N) if hard is None else hard
    losses = hard * np.exp(0.1 * rng.normal(size=2 * N))
    losses[:N] -= remembered
    losses[N:] += shift
    return losses


def evaluation(losses, **more):
    """A table as the evaluations leave it: aggregates, texts of samples, and scores by index."""
    samples = [{str(i): {"score": float(loss)} for i, loss in enumerate(part)} for part in (losses[:N], losses[N:])]
    return {
        "forget_quality": {"agg_value": 0.3},
        "forget_Q_A_ROUGE": {"agg_value": 0.4, "value_by_index": {"0": {"rougeL_recall": 0.4, "generation": "Basil"}}},
        "mia_loss": {
            "forget": {"agg_value": float(losses[:N].mean()), "value_by_index": samples[0]},
            "holdout": {"agg_value": float(losses[N:].mean()), "value_by_index": samples[1]},
            "auc": 0.9,
            "agg_value": 0.9,
        },
        "privleak": {"agg_value": -80.0},
        **more,
    }


def write(path, table):
    path.write_text(json.dumps(table))
    return path


@pytest.fixture
def hard():
    return np.random.default_rng(0).gamma(2.0, 0.5, 2 * N)


def test_every_sample_is_a_point_with_its_set_and_its_loss(tmp_path):
    losses = scores(np.random.default_rng(1))
    n = write_from_evals(write(tmp_path / "TOFU_EVAL.json", evaluation(losses)), tmp_path / "out.csv")
    assert n == 2 * N
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["point"] for row in rows[:2]] == ["forget 0", "forget 1"]
    assert [row["set"] for row in rows] == ["forget"] * N + ["unseen"] * N
    assert [float(row["loss"]) for row in rows] == losses.tolist()


def test_without_a_retrained_model_it_is_not_evaluable(tmp_path, call):
    path = write(tmp_path / "TOFU_EVAL.json", evaluation(scores(np.random.default_rng(1), remembered=1.0)))
    code, out, err = call("import-evals", path, "--out", tmp_path / "out.csv")
    assert (code, err) == (0, "")
    assert "800 samples" in out
    code, out, _ = call("audit", tmp_path / "out.csv", "--requests", "--out", tmp_path / "audit")
    assert code == 0
    assert out.startswith(
        "model: not evaluable. The requests were not drawn at random, and nothing in the file can show"
    )


@pytest.mark.parametrize(
    ("remembered", "shift", "verdict"),
    [(0.6, 0.0, "still visible"), (0.0, 0.0, "not distinguishable"), (0.0, 0.5, "not evaluable")],
)
def test_with_retrained_models_it_is_evaluable_where_the_sets_do_not_differ_by_themselves(
    tmp_path, hard, remembered, shift, verdict
):
    rng = np.random.default_rng(2)
    path = write(tmp_path / "unlearned.json", evaluation(scores(rng, remembered, shift, hard)))
    retrained = [write(tmp_path / f"retrained {i}.json", evaluation(scores(rng, 0.0, shift, hard))) for i in range(2)]
    write_from_evals(path, tmp_path / "out.npz", retrained=retrained)
    found = audit_one_model(tmp_path / "out.npz", requests=True)
    assert found.models["model"].verdict.startswith(verdict), found.models["model"]
    assert found.blind.told_apart == (shift > 0)


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_samples_that_follow_each_other_are_of_one_person(tmp_path, hard, suffix):
    rng = np.random.default_rng(3)
    losses, usual = scores(rng, 0.6, 0.0, hard), scores(rng, 0.0, 0.0, hard)
    path, reference = (write(tmp_path / name, evaluation(one)) for name, one in (("a.json", losses), ("b.json", usual)))
    write_from_evals(path, tmp_path / f"out{suffix}", retrained=[reference], per_person=PER_PERSON)
    file = read_audit_file(tmp_path / f"out{suffix}", requests=True)
    assert len(file.outputs) == 2 * N // PER_PERSON
    at = int(np.flatnonzero(file.outputs.point == "holdout 3")[0])
    assert file.outputs.scores["loss"][at] == pytest.approx(losses[N + 60 : N + 80].mean())
    there = int(np.flatnonzero(file.references.points == "holdout 3")[0])
    assert file.references.scores["loss"][0, there] == pytest.approx(usual[N + 60 : N + 80].mean())


def without(table, *path):
    inner = table
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return table


@pytest.mark.parametrize(
    ("change", "how", "why"),
    [
        (lambda table: [table], {}, "no table of metrics"),
        (lambda table: without(table, "mia_loss"), {}, "it has no attack"),
        (lambda table: table, {"metric": "mia_los"}, "unknown attack 'mia_los'; did you mean 'mia_loss'"),
        (lambda table: without(table, "mia_loss", "holdout"), {}, "mia_loss has no holdout.value_by_index"),
        (
            lambda table: without(table, "mia_loss", "forget", "value_by_index"),
            {},
            "the aggregate alone says nothing of samples",
        ),
        (
            lambda table: {
                **table,
                "mia_loss": {**table["mia_loss"], "forget": {"value_by_index": {"7": {"score": None}}}},
            },
            {},
            "mia_loss, forget: sample 7 has no score that is a number",
        ),
        (
            lambda table: {
                **table,
                "mia_loss": {**table["mia_loss"], "forget": {"value_by_index": {"a": {"score": 1}}}},
            },
            {"per_person": 20},
            "sample a of forget has no whole number for an index",
        ),
        (lambda table: table, {"per_person": 0}, "per_person = 0 is not at least 1"),
    ],
)
def test_what_is_no_such_evaluation_is_refused_in_one_line(tmp_path, change, how, why):
    path = write(tmp_path / "TOFU_EVAL.json", change(evaluation(scores(np.random.default_rng(1)))))
    with pytest.raises(UserError, match=why) as refused:
        write_from_evals(path, tmp_path / "out.csv", **how)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out.csv").exists()


def test_persons_are_whole_and_a_retrained_model_is_another_one(tmp_path):
    path = tmp_path / "eval.json"
    write(path, evaluation(scores(np.random.default_rng(0))))
    with pytest.raises(UserError, match="by 21 samples a person, person forget 19 has 1 and others 21"):
        write_from_evals(path, tmp_path / "out.csv", per_person=21)
    with pytest.raises(UserError, match="it is the evaluation that is tested"):
        write_from_evals(path, tmp_path / "out.csv", retrained=[path])
    assert write_from_evals(path, tmp_path / "out.csv", per_person=20) == 2 * N


def test_a_retrained_model_must_have_scored_the_same_samples(tmp_path):
    rng = np.random.default_rng(1)
    path = write(tmp_path / "a.json", evaluation(scores(rng)))
    other = without(evaluation(scores(rng)), "mia_loss", "holdout", "value_by_index", "12")
    with pytest.raises(UserError, match="sample 12 of holdout is in one of the evaluations alone"):
        write_from_evals(path, tmp_path / "out.csv", retrained=[write(tmp_path / "b.json", other)])
    with pytest.raises(UserError, match="an audit file is one of"):
        write_from_evals(path, tmp_path / "out.txt")
    code = (tmp_path / "nan.json").write_text('{"mia_loss": {"forget": NaN}}')
    assert code
    with pytest.raises(UserError, match="not valid JSON"):
        write_from_evals(tmp_path / "nan.json", tmp_path / "out.csv")


@pytest.mark.parametrize("index", ["07", "1" * 5000, "²"])
def test_an_index_is_a_whole_number_written_in_one_way(tmp_path, index):
    """“7” and “07” would be two samples of one person, and Python reads no number of 5,000 digits."""
    table = evaluation(scores(np.random.default_rng(0)))
    samples = table["mia_loss"]["forget"]["value_by_index"]
    samples[index] = samples.pop("7")
    (tmp_path / "e.json").write_text(json.dumps(table))
    with pytest.raises(UserError, match="has no whole number for an index") as refused:
        write_from_evals(tmp_path / "e.json", tmp_path / "out.csv", per_person=1)
    assert len(str(refused.value)) < 300
