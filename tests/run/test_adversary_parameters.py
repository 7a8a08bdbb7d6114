"""Parameters of adversaries in a run file: what they change, and what is refused in one line."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from forgetgauge import plugins
from forgetgauge.attack.adversary import Need
from forgetgauge.attack.parameters import parameters_of
from forgetgauge.errors import UserError
from forgetgauge.plan.game import game_from_json, game_to_json
from forgetgauge.plan.graph import build_graph
from forgetgauge.plan.jobs import FitJob
from forgetgauge.run.algorithms import make_adversary
from forgetgauge.run.campaign import Campaign, add_adversaries, play
from forgetgauge.run.resolve import resolve, resolve_adversary
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

MINE = """
import forgetgauge


@forgetgauge.adversary
def sharpness(signals, power=2.0):
    return (signals.read("posterior") ** power).sum(axis=1)


@forgetgauge.adversary
def calibrated(signals, others):
    return signals.read("statistic") - others.mean("statistic")


def plain(signals):
    return signals.read("confidence")
"""


def campaign(adversaries) -> Campaign:
    raw = {**copy.deepcopy(TINY), "unlearners": ["retrain", "none"], "adversaries": adversaries}
    raw["shadows"] = {"count": 3, "references": 4}
    return Campaign.plan(resolve(raw, "tiny"))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_score.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [*plugins.adversaries.entries])
def test_an_adversary_with_its_own_defaults_is_the_shipped_one(name):
    shipped, planned = plugins.adversaries.load(name), resolve_adversary(name, {})
    assert make_adversary(planned.adversary) == shipped
    assert planned.adversary.params.keys() == parameters_of(shipped).keys()
    assert all(one.meaning for one in parameters_of(shipped).values())


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        (
            "lira-online",
            {"refrences": 8},
            "online: unknown key 'refrences'; did you mean 'references'",
        ),
        ("lira-online", {"references": 0}, "adversaries.lira-online.references = 0 is not at least 1"),
        ("lira-online", {"references": "8"}, "references = '8' is not a whole number"),
        ("lira-online", {"references": True}, "references = True is not a whole number"),
        ("confidence", {"references": 8}, "adversaries.confidence.references = 8: it uses no reference models"),
        ("confidence", {"threshold": 0.5}, "adversaries.confidence: unknown key 'threshold'"),
        ("lira-online", {"own_spread_from": 1}, "own_spread_from = 1 is not at least 2"),
        ("rmia-offline", {"gamma": 0}, "adversaries.rmia-offline.gamma = 0 is not greater than 0"),
        ("rmia-offline", {"gamma": "1"}, "adversaries.rmia-offline.gamma = '1' is not a number"),
        ("ensemble", {"of": ["loss", "rmia-offline"]}, "adversaries.ensemble: of: 'rmia-offline' cannot be used"),
        ("ensemble", {"of": ["loss", "lire-online"]}, "unknown adversary 'lire-online'; did you mean 'lira-online'"),
        ("ensemble", {"of": "loss"}, "adversaries.ensemble.of = 'loss' is not a list like"),
        ("ensemble", {"of": ["loss", 3]}, "is not a list like"),
    ],
)
def test_what_does_not_fit_is_one_line(name, table, words):
    with pytest.raises(UserError, match=words) as refused:
        resolve_adversary(name, table)
    assert "\n" not in str(refused.value)


def test_each_adversary_is_shown_as_many_reference_models_as_it_asks_for():
    asked = {
        "lira-online": {},
        "few": {"method": "lira-online", "references": 2},
        "many": {"method": "bavaria", "references": 6},
    }
    found = campaign(asked)
    (game,) = found.resolved.games
    assert game_from_json(game_to_json(game)) == game
    jobs = build_graph(game).jobs
    shown = {
        job.label: sum(name.startswith("reference-") for name in job.inputs)
        for job in jobs.values()
        if isinstance(job, FitJob)
    }
    assert shown == {"fit lira-online": 4, "fit few": 2, "fit many": 6}
    trained = [job for job in jobs.values() if job.kind == "train" and job.params["role"] == "reference"]
    assert len(trained) == 6  # the first ones are shared
    assert set(campaign({"lira-online": {}}).jobs) <= set(jobs)


def test_another_parameter_is_another_attack_on_the_same_models(tmp_path):
    folder = RunFolder(tmp_path / "run")
    play(campaign({"rmia-offline": {}, "lira-online": {}}), folder)
    before = {key for key, job in Campaign.read(folder).jobs.items() if job.kind in ("train", "unlearn")}
    names = ["rmia-2", "lira-2", "spread"]
    tables = {
        "rmia-2": {"method": "rmia-offline", "gamma": 2.0},
        "lira-2": {"method": "lira-online", "references": 2},
        "spread": {"method": "lira-online", "own_spread_from": 2},
    }
    _, result = play(add_adversaries(folder, names, tables), folder)
    assert result is not None
    after = {key for key, job in Campaign.read(folder).jobs.items() if job.kind in ("train", "unlearn")}
    assert before == after
    pairs = {name: tuple(found.by_pair) for name, found in result.methods["none"].by_adversary.items()}
    assert len(set(pairs.values())) == len(pairs) == 5
    again, same = play(Campaign.read(folder), folder)
    assert (again.n_run, same) == (0, result)


def test_a_score_function_of_the_users_is_played_with_its_parameters(own_folder):
    table = {"method": "my_score:sharpness"}
    found = campaign({"one": table, "four": {**table, "power": 4.0}})
    _, result = play(found, RunFolder(own_folder / "run"))
    assert result is not None
    by_adversary = result.methods["none"].by_adversary
    assert by_adversary["one"].by_pair != by_adversary["four"].by_pair
    planned = found.resolved.games[0].adversaries["one"].adversary
    assert planned.params == {"power": 2.0}
    assert planned.code


def test_a_score_function_that_compares_is_played_with_as_few_as_two_shadow_models(own_folder):
    raw = {**copy.deepcopy(TINY), "unlearners": ["none"], "adversaries": {"mine": {"method": "my_score:calibrated"}}}
    raw["shadows"] = {"count": 2}
    ending, result = play(Campaign.plan(resolve(raw, "tiny")), RunFolder(own_folder / "run"))
    assert ending.failed == {}
    assert set(result.methods["none"].by_adversary) == {"mine"}


def test_an_edit_of_a_score_function_is_another_key(own_folder):
    table = {"method": "my_score:sharpness"}
    first = resolve_adversary("one", table).adversary.code
    assert first == resolve_adversary("one", {**table, "power": 3.0}).adversary.code
    import sys

    sys.modules.pop("my_score")
    (own_folder / "my_score.py").write_text(MINE.replace("** power)", "** (power + 1))"))
    try:
        assert resolve_adversary("one", table).adversary.code != first
    finally:
        sys.modules.pop("my_score")


def test_a_plain_function_is_told_what_it_lacks(own_folder):
    with pytest.raises(UserError, match="is a plain function: write @forgetgauge"):
        resolve_adversary("mine", {"method": "my_score:plain"})


def test_labels_only_are_asked_beside_the_models_and_retrain_shows_nothing(tmp_path):
    raw = {**copy.deepcopy(TINY), "unlearners": ["retrain", "none"], "adversaries": {"label-only": {}}}
    raw["game"] = {**raw["game"], "share_retrain": True}
    folder = RunFolder(tmp_path / "run")
    _, result = play(Campaign.plan(resolve(raw, "tiny")), folder)
    assert result is not None
    assert result.methods["retrain"].by_adversary["label-only"].by_pair == [0.0] * len(
        result.methods["none"].by_adversary["label-only"].by_pair
    )
    jobs, state = Campaign.read(folder).jobs, folder.open_ledger().state
    column = f"column {Need.AUGMENTED}"
    shares = [
        artefact.arrays[column]
        for key, job in jobs.items()
        if job.kind == "signals" and key in state.done
        for artefact in [folder.objects.read(key, state.done[key].receipt.sha256)]
        if column in artefact.arrays
    ]
    assert shares
    assert all(((share >= 0) & (share <= 1)).all() and len(np.unique(share)) > 3 for share in shares)


def test_altered_copies_of_token_ids_are_refused_before_anything_is_trained(own_folder):
    text = "import torch\n\n\ndef tokens():\n    return torch.arange(600).view(60, 10) % 7, torch.arange(60) % 3\n"
    (own_folder / "my_tokens.py").write_text(text)
    raw = {**copy.deepcopy(TINY), "unlearners": ["none"], "adversaries": ["label-only"]}
    raw["data"] = {"name": "my_tokens:tokens"}
    with pytest.raises(UserError, match="label-only: altered copies can be made of images"):
        resolve(raw, "tiny")
