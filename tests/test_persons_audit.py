"""`audit` with a column `person`: several records are of one person, who asks to be forgotten."""

from __future__ import annotations

import csv
import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.auditing import audit_file, audit_one_model, make_draw
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.errors import UserError
from forgetgauge.game.one_model import groups_test, ranks_test

N_PERSONS, N_RECORDS = 80, 6


def records(rng, remembered=(), strength=0.0):
    """(points, persons, losses): each person has a difficulty of their own, those who are remembered lower losses."""
    persons = np.repeat(np.arange(N_PERSONS), N_RECORDS)
    points = np.array([f"{person}-{i % N_RECORDS}" for i, person in enumerate(persons.tolist())])
    losses = rng.exponential(size=len(persons)) + rng.normal(size=N_PERSONS)[persons]
    return points, persons, losses - strength * np.isin(persons, remembered)


def drawn(tmp_path, seed="s"):
    points, persons, _ = records(np.random.default_rng(0))
    with (tmp_path / "points.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["point", "person"], *zip(points, persons, strict=True)])
    return make_draw(tmp_path / "points.csv", 40, tmp_path / "draw.json", by="person", seed=seed)


def save(tmp_path, **columns):
    np.savez(tmp_path / "file.npz", **columns)
    return tmp_path / "file.npz"


# -- drawn -------------------------------------------------------------------------------------------------------------


def of_forty_persons(folder, seed: int, gain: float):
    """25 records of each, easy or hard together, and eight reference models, each trained on a half of the persons."""
    rng = np.random.default_rng(seed)
    lines = [f"r{i},p{i // 25}" for i in range(1000)]
    (folder / "list.csv").write_text("\n".join(["point,person", *lines]))
    (folder / "draw.json").unlink(missing_ok=True)
    made = make_draw(folder / "list.csv", 20, folder / "draw.json", by="person", seed=f"s{seed}")
    names = np.array([*made.forget, *made.unseen])
    person = np.array([int(made.unit_of[name][1:]) for name in names])
    hard = rng.normal(size=40)[person] + 0.5 * rng.normal(size=1000)
    member = np.stack([rng.permutation(40) < 20 for _ in range(8)])[:, person]
    np.savez(
        folder / "file.npz",
        point=names,
        loss=hard + 0.5 * rng.normal(size=1000),
        reference_point=np.tile(names, 8),
        reference_model=np.repeat(np.arange(8), 1000),
        reference_member=member.ravel(),
        reference_loss=(hard + 0.5 * rng.normal(size=(8, 1000)) - gain * member).ravel(),
    )
    return audit_one_model(folder / "file.npz", folder / "draw.json")


def test_reference_models_that_were_trained_on_whole_persons_are_not_taken_for_reversed(tmp_path):
    for seed in range(12):  # by single records, some of these were refused
        assert of_forty_persons(tmp_path, seed, gain=0.05).models
    with pytest.raises(UserError, match=r"is reference_member .* reversed"):
        of_forty_persons(tmp_path, 0, gain=-3.0)


def test_a_draw_of_persons_is_tested_by_records_and_by_the_means_of_persons(tmp_path):
    draw = drawn(tmp_path)
    forgotten = {int(draw.unit_of[point]) for point in draw.forget}
    points, persons, losses = records(np.random.default_rng(1), [*forgotten], 0.5)
    path = save(tmp_path, point=points, person=persons, loss=losses)
    tests = audit_one_model(path, tmp_path / "draw.json").models["model"].tests
    assert list(tests) == ["own loss", "own loss, mean of each person"]
    means = np.array([losses[persons == person].mean() for person in range(N_PERSONS)])
    in_forget = np.isin(np.arange(N_PERSONS), [*forgotten])
    expected = ranks_test(-means, in_forget)
    assert tests["own loss, mean of each person"].advantage == pytest.approx(expected.advantage)
    assert tests["own loss, mean of each person"].log10_p == pytest.approx(expected.log_p / np.log(10))
    order = np.argsort(losses, kind="stable")
    says = np.zeros(len(points), dtype=bool)
    says[order[: len(points) // 2]] = True
    by_record = groups_test(says, np.isin(persons, [*forgotten]), persons)
    assert tests["own loss"].log10_p == pytest.approx(by_record.log_p / np.log(10))


def test_a_person_whose_records_all_speak_a_little_is_seen_by_the_mean(tmp_path):
    """Each record says little; six of them together say it to the person's test and not to that of single records."""
    draw = drawn(tmp_path)
    forgotten = [int(draw.unit_of[point]) for point in draw.forget]
    persons = np.repeat(np.arange(N_PERSONS), N_RECORDS)
    rng = np.random.default_rng(4)
    losses = rng.standard_t(2, size=len(persons)) - 0.8 * np.isin(persons, forgotten)
    points, _, _ = records(rng)
    tests = audit_one_model(save(tmp_path, point=points, loss=losses), tmp_path / "draw.json").models["model"].tests
    assert tests["own loss, mean of each person"].advantage > tests["own loss"].advantage


def test_where_nothing_is_remembered_the_person_test_is_exact(tmp_path):
    """400 draws of one model's outputs: p is at most 0.1 about as often as it says."""
    _, persons, losses = records(np.random.default_rng(7))
    means = np.array([losses[persons == person].mean() for person in range(N_PERSONS)])
    rng = np.random.default_rng(8)
    found = []
    for _ in range(400):
        in_forget = np.zeros(N_PERSONS, dtype=bool)
        in_forget[rng.permutation(N_PERSONS)[:40]] = True
        found.append(ranks_test(means, in_forget).log_p <= np.log(0.1))
    assert np.mean(found) <= 0.1 + 3 * np.sqrt(0.09 / 400)


def test_a_person_column_beside_a_draw_of_points_is_refused(tmp_path):
    points, persons, losses = records(np.random.default_rng(0))
    (tmp_path / "points.csv").write_text("\n".join(["point", *points]))
    make_draw(tmp_path / "points.csv", 60, tmp_path / "draw.json", seed="s")
    with pytest.raises(UserError, match=r"the draw is of points.*draw --by person"):
        audit_one_model(save(tmp_path, point=points, person=persons, loss=losses), tmp_path / "draw.json")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda persons: np.where(persons == 3, 5, persons),
            "person 5 has records of more than one person of the draw",
        ),
        (
            lambda persons: np.where(np.arange(len(persons)) == 0, 999, persons),
            "tells records apart that are of one person of the draw",
        ),
    ],
)
def test_persons_that_are_not_those_of_the_draw_are_refused(tmp_path, change, why):
    drawn(tmp_path)
    points, persons, losses = records(np.random.default_rng(0))
    with pytest.raises(UserError, match=why):
        audit_one_model(save(tmp_path, point=points, person=change(persons), loss=losses), tmp_path / "draw.json")


# -- requests ----------------------------------------------------------------------------------------------------------


def requested(rng, strength, n_models=2):
    """Of a model and of models that saw nobody: half of the persons asked."""
    points, persons, losses = records(rng, np.arange(40), strength)
    usual = losses + strength * (persons < 40)
    columns = {
        "point": points,
        "person": persons,
        "set": np.where(persons < 40, "forget", "unseen"),
        "loss": losses,
        "reference_point": np.tile(points, n_models),
        "reference_model": np.repeat(np.arange(n_models), len(points)),
        "reference_loss": np.concatenate([usual + 0.1 * rng.normal(size=len(points)) for _ in range(n_models)]),
    }
    order = rng.permutation(len(points))
    return {name: column[order] if len(column) == len(order) else column for name, column in columns.items()}


def test_of_requests_each_person_is_one_point_with_the_mean_of_their_records(tmp_path):
    columns = requested(np.random.default_rng(2), 0.0)
    file = read_audit_file(save(tmp_path, **columns), requests=True)
    assert len(file.outputs) == N_PERSONS
    for person in (0, 17, 79):
        at = int(np.flatnonzero(file.outputs.point == str(person))[0])
        assert file.outputs.scores["loss"][at] == pytest.approx(columns["loss"][columns["person"] == person].mean())
        assert file.outputs.in_forget[at] == (person < 40)
    of_model = columns["reference_loss"][: len(columns["point"])]
    shown = columns["reference_point"][: len(columns["point"])]
    at = int(np.flatnonzero(file.references.points == "17")[0])
    mine = [str(point).startswith("17-") for point in shown]
    assert file.references.scores["loss"][0, at] == pytest.approx(of_model[mine].mean())


@pytest.mark.parametrize(("strength", "verdict"), [(3.0, "still visible"), (0.0, "inconclusive")])
def test_requests_by_person_are_judged_against_reference_models(tmp_path, call, strength, verdict):
    path = save(tmp_path, **requested(np.random.default_rng(3), strength))
    code, out, err = call("audit", path, "--requests", "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert out.startswith(f"model: {verdict}"), out
    assert "Each of the 80 points is a person" in out
    assert "480 in all" in out


def test_a_table_says_the_same_as_arrays(tmp_path):
    columns = requested(np.random.default_rng(5), 1.0)
    n = len(columns["point"])
    head = ["point", "person", "set", "loss", "model"]
    rows = [[*(columns[name][i] for name in head[:4]), ""] for i in range(n)]
    rows += [
        [
            columns["reference_point"][i],
            "",
            "reference-out",
            columns["reference_loss"][i],
            columns["reference_model"][i],
        ]
        for i in range(len(columns["reference_point"]))
    ]
    with (tmp_path / "file.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    one, other = (audit_one_model(path, requests=True) for path in (save(tmp_path, **columns), tmp_path / "file.csv"))
    assert one.models == other.models
    assert one.blind == other.blind


def two_models():
    """Columns of 480 records under two models, and what two reference models say of them."""
    points, persons, losses = records(np.random.default_rng(0))
    rows = {"point": points, "person": persons, "set": np.where(persons < 40, "forget", "unseen"), "loss": losses}
    shown = {f"reference_{name}": np.tile(rows[name], 2) for name in ("point", "loss")}
    models = {"method": np.repeat(["a", "b"], 480), "reference_model": np.repeat([0, 1], 480)}
    return {name: np.tile(column, 2) for name, column in rows.items()} | shown | models


def test_a_record_is_of_one_person_whatever_the_model(tmp_path):
    raw = two_models()
    others = np.where(raw["person"] < 40, 39 - raw["person"], 119 - raw["person"])
    path = save(tmp_path, **{**raw, "person": np.where(raw["method"] == "b", others, raw["person"])})
    with pytest.raises(UserError, match="point 0-0 is of more than one person"):
        read_audit_file(path, requests=True)


@pytest.mark.parametrize("block", ["", "reference_"])
def test_every_model_shows_all_records_of_a_person(tmp_path, block):
    raw = two_models()
    assert len(read_audit_file(save(tmp_path, **raw), requests=True).outputs) == 2 * N_PERSONS
    others = {name for name in raw if name.startswith("reference_") != bool(block)}
    path = save(tmp_path, **{name: column if name in others else column[1:] for name, column in raw.items()})
    with pytest.raises(UserError, match="a model shows 5 of 6 records of person 0; every model must show all"):
        read_audit_file(path, requests=True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"set": np.where(np.arange(480) % 2, "forget", "unseen")}, "has records with different values of set"),
        ({"point": np.zeros(480, dtype=np.int64)}, "point 0 is of more than one person"),
        ({"point": np.arange(480) // 2}, "point 0 appears more than once"),
        ({"point": np.arange(480.0)}, "point must be whole numbers or text"),
        ({"point": np.zeros((480, 1), dtype=np.int64)}, r"point has the shape \(480, 1\)"),
        ({"person": np.array(3)}, r"person has the shape \(\)"),
        ({"person": np.zeros(3)}, "person has 3 rows, but point has 480"),
        ({"features": np.zeros((3, 2))}, "features has 3 rows, but point has 480"),
        ({"wieght": np.ones(480)}, "unknown column 'wieght'; did you mean 'weight'"),
        (dict.fromkeys(["point", "person", "set", "loss"], np.zeros(0, dtype=np.int64)), "it has no rows"),
        ({"person": np.zeros(480)}, "person must be whole numbers or text"),
        ({"logits": np.zeros((480, 2)), "label": np.zeros(480, dtype=np.int64)}, "leave logits out"),
        ({"loss": np.full(480, "x")}, "loss must be numbers"),
    ],
)
def test_persons_that_make_no_sense_are_refused_in_one_line(tmp_path, change, why):
    points, persons, losses = records(np.random.default_rng(0))
    sets = np.where(persons < 40, "forget", "unseen")
    path = save(tmp_path, **{"point": points, "person": persons, "set": sets, "loss": losses, **change})
    with pytest.raises(UserError, match=why) as refused:
        audit_one_model(path, requests=True)
    assert "\n" not in str(refused.value)


# -- swap pairs --------------------------------------------------------------------------------------------------------


def pairs_of(rng, strength, n_pairs=6, n_persons=40):
    """Losses of both sides' models on a fresh half of persons to forget in each pair, and of a shadow model."""
    rows = {name: [] for name in ("pair", "side", "point", "person", "set", "loss")}
    persons = np.repeat(np.arange(n_persons), N_RECORDS)
    for pair in range(n_pairs):
        first = np.isin(persons, rng.permutation(n_persons)[: n_persons // 2])
        for side, forget in enumerate((first, ~first)):
            rows["pair"].append(np.full(len(persons), pair))
            rows["side"].append(np.full(len(persons), side))
            rows["point"].append(np.arange(len(persons)))
            rows["person"].append(persons)
            rows["set"].append(np.where(forget, "forget", "unseen"))
            rows["loss"].append(rng.exponential(size=len(persons)) + 0.3 - strength * forget)
    member = np.isin(persons, rng.permutation(n_persons)[: n_persons // 2])
    shadow = {
        "shadow_person": persons,
        "shadow_member": member,
        "shadow_loss": rng.exponential(size=len(persons)) + 0.3 - 1.0 * member,
    }
    return {name: np.concatenate(parts) for name, parts in rows.items()} | shadow


def test_in_swap_pairs_each_person_is_one_point_and_sees_more_than_its_records(tmp_path):
    columns = pairs_of(np.random.default_rng(6), 0.7)
    by_person = audit_file(save(tmp_path, **columns)).games[0]
    single = {name: column for name, column in columns.items() if "person" not in name}
    by_record = audit_file(save(tmp_path, **single)).games[0]
    assert by_person.spec["n_forget"] == 20
    assert by_record.spec["n_forget"] == 20 * N_RECORDS
    assert by_person.methods["model"].quality < by_record.methods["model"].quality - 0.15


def test_in_swap_pairs_shadow_models_need_persons_too(tmp_path):
    columns = pairs_of(np.random.default_rng(6), 0.7)
    del columns["shadow_person"]
    with pytest.raises(UserError, match="shadow_person is missing"):
        audit_file(save(tmp_path, **columns))


# -- the documentation -------------------------------------------------------------------------------------------------


def test_the_audit_of_the_documentation_runs_block_by_block(tmp_path, monkeypatch, call):
    """docs/language-models.md, its blocks in their order: the files that have a title are there beforehand."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs/language-models.md").read_text("utf-8")
    said = []
    for language, title, text in re.findall(
        r'^```(bash|python|json)(?: title="([^"]+)")?\n(.*?)^```', page, re.M | re.S
    ):
        if title:
            (tmp_path / title).exists() or (tmp_path / title).write_text(text)  # the draw was made in earnest
        elif language == "python" and "evaluate(" not in text:  # games are played by tests/docs/test_blocks.py
            with redirect_stdout(io.StringIO()):
                exec(compile(text, "language-models.md", "exec"), {})
        elif language == "bash":
            for line in text.strip().splitlines():
                if line.startswith(("forgetgauge draw", "forgetgauge audit", "forgetgauge import-evals")):
                    code, out, err = call(*shlex.split(line)[1:])
                    assert (code, err) == (0, ""), line
                    said.append(out.splitlines()[0])
    assert said[0].startswith("200 groups in the list")
    assert said[1:] == [
        "model: still visible",
        "4 samples: tofu.csv; next: forgetgauge audit tofu.csv --requests",
        said[3],
    ]
    assert said[3].startswith("model: not evaluable")
