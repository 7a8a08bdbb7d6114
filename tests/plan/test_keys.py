"""Keys name stored models and seed every random stream: a change of how a plan is written must leave all of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from forgetgauge.plan.graph import Game, Method, PlannedAdversary, build_graph
from forgetgauge.plan.jobs import HEAVY, Named
from forgetgauge.run.packing import form_stacks
from forgetgauge.store.ledger import LedgerState
from forgetgauge.streams import canonical_json
from tests.plan.test_graph import GAME

EVERY_NEED = {
    "plain": PlannedAdversary(Named("plain")),
    "scores": PlannedAdversary(Named("scores"), ("background",)),
    "panels": PlannedAdversary(Named("panels", {"k": 3}), ("outsiders", "references")),
    "aware": PlannedAdversary(Named("aware"), ("references", "unlearned")),
    "white-box": PlannedAdversary(Named("white-box"), ("unlearned", "outsiders", "background"), ("gradient-norm",)),
}
OWN = Method(Named("own", {"a": 1.5}, "c0de", "2"), stacked=True)
SISA = Method(Named("sisa"), learner=Named("sisa", {"n_shards": 2}), stacked=True)
PLANS: dict[str, tuple[list[Game], str, str]] = {
    "the plain game": ([GAME], "478304f84d347bc8", "b29cd9167dbad3ac"),
    "a sweep over α": ([replace(GAME, alpha=alpha) for alpha in (0.25, 0.5)], "59894bbac23fc125", "dacee2eb9113b478"),
    "a sweep over ε of DP training": (
        [replace(GAME, learner=Named("dp-sgd", {"target_epsilon": epsilon})) for epsilon in (1.0, "inf")],
        "b73cfde6a8643c0c",
        "9134a2a70b9b3f1d",
    ),
    "the IC test": (
        [replace(GAME, metrics={"ic": [0, 1], "mia": True, "distances": True})],
        "6e14621b299dab50",
        "8ed0f4ea6f058ce5",
    ),
    "every need of adversaries": ([replace(GAME, adversaries=EVERY_NEED)], "0ea55ba0e99de00d", "3fe148611fd418cc"),
    "a method with a learner of its own": (
        [replace(GAME, methods={**GAME.methods, "sisa": SISA})],
        "366976c9c4c4b203",
        "ff3d1624ada2f83c",
    ),
    "a method of the user's own": (
        [replace(GAME, methods={**GAME.methods, "own": OWN})],
        "795a21059b647fad",
        "3bdca897570520c3",
    ),
    "a retrained model for both sides": (
        [replace(GAME, share_retrain=True, seed=7, fraction=0.5)],
        "c986377a23072377",
        "c126766e2e02c090",
    ),
    "sensitivity by class": (
        [replace(GAME, sensitivity={"kind": "by-class", "weights": {"0": 2.0}}, data_digest="e" * 64)],
        "ecb180e61599a06e",
        "fb4957639fe18e42",
    ),
    "all at once": (
        [
            replace(
                GAME,
                adversaries=EVERY_NEED,
                methods={**GAME.methods, "sisa": SISA, "own": OWN},
                metrics={"ic": [2, 7]},
                share_retrain=True,
            )
        ],
        "fb739680caaf7303",
        "d6e16d5c97d8c246",
    ),
}


def digest_of(games: list[Game]) -> str:
    """Over all jobs in their order, with all that is known of each, and over the stacks they form."""
    jobs = {key: job for game in games for key, job in build_graph(game).jobs.items()}
    written = [[key, job.kind, dict(job.inputs), job.label, job.group, job.coupled] for key, job in jobs.items()]
    stacks = form_stacks(jobs, list(jobs), LedgerState())
    return hashlib.sha256(canonical_json([written, stacks]).encode()).hexdigest()[:16]


def digest_of_models(games: list[Game]) -> str:
    """Over the keys of jobs that make models, which name their random streams."""
    jobs = {key: job for game in games for key, job in build_graph(game).jobs.items()}
    return hashlib.sha256(canonical_json([key for key, job in jobs.items() if job.kind in HEAVY]).encode()).hexdigest()[
        :16
    ]


@pytest.mark.parametrize("plan", PLANS)
def test_all_keys_are_those_of_older_versions(plan):
    """A digest that differs makes every stored run of that kind worthless; that of models would change numbers too.

    Recorded when jobs were dictionaries, and again when stored signals came to be called outputs: the models' stayed.
    """
    games, recorded, of_models = PLANS[plan]
    assert (digest_of(games), digest_of_models(games)) == (recorded, of_models)
