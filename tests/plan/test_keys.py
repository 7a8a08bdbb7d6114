"""Keys name stored models and seed every random stream: a change of how a plan is written must leave all of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from forgetgauge.plan.game import Game, Method, PlannedAdversary
from forgetgauge.plan.graph import build_graph
from forgetgauge.plan.jobs import Named
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
PLANS: dict[str, tuple[list[Game], str]] = {
    "the plain game": ([GAME], "7adefabdf40bf95f"),
    "a sweep over α": ([replace(GAME, alpha=alpha) for alpha in (0.25, 0.5)], "1ddd4fcf405c6e45"),
    "a sweep over ε of DP training": (
        [replace(GAME, learner=Named("dp-sgd", {"target_epsilon": epsilon})) for epsilon in (1.0, "inf")],
        "4779bcbaefcae027",
    ),
    "the IC test": (
        [replace(GAME, metrics={"ic": [0, 1], "mia": True, "distances": True})],
        "f4facc2e57f4d76d",
    ),
    "every need of adversaries": ([replace(GAME, adversaries=EVERY_NEED)], "61292f0ac32e133a"),
    "a method with a learner of its own": (
        [replace(GAME, methods={**GAME.methods, "sisa": SISA})],
        "b7e379a8bc1ff63f",
    ),
    "a method of the user's own": (
        [replace(GAME, methods={**GAME.methods, "own": OWN})],
        "757089627449f5a5",
    ),
    "a retrained model for both sides": (
        [replace(GAME, share_retrain=True, seed=7, fraction=0.5)],
        "bc2dbeb1bcff1807",
    ),
    "sensitivity by class": (
        [replace(GAME, sensitivity={"kind": "by-class", "weights": {"0": 2.0}}, data_digest="e" * 64)],
        "5883c4ff6c2fcce1",
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
        "4489900c4108d0ea",
    ),
}


def test_signals_of_language_models_have_a_version_of_their_own():
    """What was stored of models of other tasks stays."""
    keys = {
        job.kind: [
            {one.key for one in build_graph(replace(GAME, task=task)).jobs.values() if one.kind == job.kind}
            for task in ("regression", "causal-lm")
        ]
        for job in build_graph(GAME).jobs.values()
    }
    assert {kind: one == other for kind, (one, other) in keys.items()} == {
        **dict.fromkeys(("initialise", "train", "unlearn"), True),
        **dict.fromkeys(("signals", "fit", "decide"), False),
    }


def digest_of(games: list[Game]) -> str:
    """Over all jobs in their order, with all that is known of each, and over the stacks they form."""
    jobs = {key: job for game in games for key, job in build_graph(game).jobs.items()}
    written = [[key, job.kind, dict(job.inputs), job.label, job.group, job.coupled] for key, job in jobs.items()]
    stacks = form_stacks(jobs, list(jobs), LedgerState())
    return hashlib.sha256(canonical_json([written, stacks]).encode()).hexdigest()[:16]


@pytest.mark.parametrize("plan", PLANS)
def test_all_keys_are_those_of_older_versions(plan):
    """Recorded when jobs were dictionaries; a digest that differs makes every stored run of that kind worthless."""
    games, recorded = PLANS[plan]
    assert digest_of(games) == recorded
