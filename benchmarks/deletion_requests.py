"""Deletion requests that nobody drew at random: is the verdict on one model right? Prints the table of docs.

    python benchmarks/deletion_requests.py          # 20 games a row, most rows more: a quarter of an hour on one core
    python benchmarks/deletion_requests.py 2        # a quick look

Nothing is trained but the classifiers that compare F with T: a model is what it answers. F and T are of one kind or
differ by a shift, and the model was trained again or ignored the deletion.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from forgetgauge.auditing.one_model import _OneModelAudit, _requested
from forgetgauge.auditing.outputs import AuditFile, Outputs
from forgetgauge.auditing.references import arranged
from forgetgauge.game.blind import best_linear_advantage
from forgetgauge.results.one_model import REQUESTS
from forgetgauge.results.verdict import INCONCLUSIVE, LIKE_RETRAIN, NOT_EVALUABLE, STILL_VISIBLE

TOLD_APART = "not evaluable, because F and T were told apart"
IN_ORDER = (STILL_VISIBLE, LIKE_RETRAIN, INCONCLUSIVE, TOLD_APART, NOT_EVALUABLE)
SHIFTS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""How many deviations F is shifted from T, along one direction of the raw points."""
COMPARED = [(100, 0, "reference models"), (100, 5, "raw points"), (100, 64, "raw points"), (300, 64, "raw points")]
"""Points in F, and in T; columns; what they are compared by."""
REMEMBERED = (1.0, 2.0)
"""How many deviations an ignored deletion raises the model's score at points of F."""


def game(n: int, n_columns: int, shift: float, remembered: float, by: str, rng: np.random.Generator) -> str:
    """The verdict on one model, or that F and T were told apart; its score sees the very direction of the shift."""
    points = rng.normal(size=(2 * n, n_columns))
    forget = np.arange(2 * n) < n
    points[forget, 0] += shift
    score = points[:, 0] + 0.5 * rng.normal(size=2 * n)
    n_reference = 2 * n if by == "reference models" else 0
    file = AuditFile(
        "benchmark",
        "",
        Outputs(
            method=np.full(2 * n, "model"),
            pair=np.zeros(2 * n, dtype=np.int64),
            side=np.zeros(2 * n, dtype=np.int64),
            seed=np.zeros(2 * n, dtype=np.int64),
            point=rng.choice(10**9, 2 * n, replace=False),
            in_forget=forget,
            label=np.zeros(2 * n, dtype=np.int64),
            weight=np.ones(2 * n),
            logits=None,
            scores={"score": score + remembered * forget},
            decision=None,
        ),
        None,
        1,
        weighted=False,
        share_retrain=False,
        features=None if n_reference else points,
    )
    if n_reference:  # one model that saw neither, its own noise
        said = points[:, 0] + 0.5 * rng.normal(size=2 * n)
        columns = {
            "point": file.outputs.point,
            "model": np.zeros(2 * n, dtype=np.int64),
            "member": np.zeros(2 * n, dtype=np.bool_),
            "score": said,
        }
        file = replace(file, references=arranged("benchmark", columns, file.outputs.point, file.outputs.label))
    audit = _OneModelAudit(file, _requested(file), None, 0.95, 0.0, origin=REQUESTS)
    assert audit.blind is not None
    return TOLD_APART if audit.blind.told_apart else audit.judged("model").verdict


def verdicts(n_games: int) -> None:
    """How often each verdict is given."""
    print("\n| F and T | compared by | shift | model | games | still visible | not distinguishable |", end="")
    print(" inconclusive | told apart | too weak |\n|---|---|---|---|---|---|---|---|---|---|")
    for n, n_columns, by in COMPARED:
        rng = np.random.default_rng([3, n, n_columns])
        for shift, remembered in [*((shift, 0.0) for shift in SHIFTS), *((0.0, much) for much in REMEMBERED)]:
            many = 5 if shift == remembered == 0 else 1 if shift >= 1 else 2
            games = n_games * many * (1 if n_columns else 20)  # reference models need no fits
            given = [game(n, max(n_columns, 1), shift, remembered, by, rng) for _ in range(games)]
            shares = [100 * np.mean([verdict == one for verdict in given]) for one in IN_ORDER]
            model = f"ignored, {remembered:g}" if remembered else "retrained"
            columns = f"{n_columns} columns" if n_columns else by
            print(
                f"| {n} | {columns} | {shift:g} | {model} | {games:,} | " + " | ".join(f"{x:.1f} %" for x in shares),
                "|",
                flush=True,
            )


def many_columns(n_games: int) -> None:
    """What is said of retrained models by 512 columns, and what if classifiers had learnt all there is."""
    for what, carried_back in (("", best_linear_advantage), ("out", lambda advantage, *_: advantage)):
        rng = np.random.default_rng(4)
        with patch("forgetgauge.results.one_model.best_linear_advantage", carried_back):
            given = [game(100, 512, 1.25, 0.0, "raw points", rng) for _ in range(n_games)]
        n_visible = given.count(STILL_VISIBLE)
        print(f"512 columns, with{what} the correction for columns: {n_visible} of {n_games} retrained models visible")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    n_games = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    verdicts(n_games)
    many_columns(2 * n_games)
