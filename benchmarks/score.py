"""A new adversary on a finished run: `forgetgauge score`, from start to finish, on saved signals of 100 models.

    python benchmarks/score.py [N_MODELS] [N_POINTS]

The run is fabricated through the store: signals of N_MODELS unlearned models on N_POINTS points of F ∪ T each (100 and
10,000), and of eight shadow models, as training would have left them; nothing is trained. Each line is one command in a
process of its own: wall seconds, CPU seconds (what an idle core would take) and the most memory it held.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.attack.adversary import Role
from forgetgauge.plan.draws import draw_halves
from forgetgauge.plan.game import Game
from forgetgauge.plan.jobs import HEAVY, Job, SignalsJob
from forgetgauge.plan.subjects import Target
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.objects import Receipt
from forgetgauge.store.runfolder import RunFolder

N_CLASSES = 10
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
Choice = list[str] | dict[str, dict[str, Any]]
"""Of methods or adversaries, as a run file makes it."""
RAN = {"device": "cpu", "engine": "stack", "width": 16}


def fabricated_game(n_points: int, pairs: int, methods: Choice, adversaries: Choice) -> Campaign:
    """A game at α = ½ whose F ∪ T has so many points, on data that nobody needs to have."""
    raw = {"game": {"alpha": 0.5, "pairs": pairs}, "unlearners": methods, "adversaries": adversaries}
    resolved = resolve({**raw, "data": {"name": "digits"}, "shadows": {"count": 8}}, "benchmark")
    (game,) = resolved.games
    game = replace(game, n_points=3 * n_points, data_digest="f" * 64, n_classes=N_CLASSES)
    return Campaign.plan(replace(resolved, games=[game]))


def fabricate(campaign: Campaign, folder: RunFolder, *, decisions: bool) -> None:
    """Write what models would have left: signals, with `decisions` the adversaries' too; weights count as dropped."""
    folder.create()
    folder.write_run(campaign.to_json())
    (graph,), ledger = campaign.graphs, folder.open_ledger()
    receipts: dict[str, Receipt] = {}
    for key, job in graph.jobs.items():
        if job.kind in HEAVY:
            receipts[key] = Receipt("0" * 64, 0)
        elif job.kind in ("initialise", "signals") or decisions:
            receipts[key] = folder.objects.write(key, *_made(job, graph.game))
    ledger.record_done(receipts, seconds=0.1 * len(receipts))
    ledger.record_dropped([key for key in receipts if graph.jobs[key].kind in HEAVY])


def _made(job: Job, game: Game) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(int(job.key[:8], 16))
    target, shadow = draw_halves(game.data_digest, game.n_points, game.seed, game.fraction)
    n_pair = 2 * game.sizes[1]
    if job.kind == "initialise":
        return {"target": target, "labels": target % N_CLASSES, "weight": np.full(len(target), 1 / len(target))}, {}
    if job.kind == "decide":
        hard = np.random.default_rng(0).standard_normal(n_pair)  # to all models and adversaries: they agree mostly
        of_model = np.random.default_rng(int(job.inputs["signals"][:8], 16)).standard_normal(n_pair)
        margin = hard + 0.3 * of_model + 0.1 * rng.standard_normal(n_pair)
        return {"says_forget": margin > 0, "margin": margin}, {}
    if job.kind == "fit":
        return {"threshold": np.zeros(1)}, {}
    assert isinstance(job, SignalsJob)
    points = None
    if isinstance(job.subject, Target):
        points = job.subject.swap_pair(len(target)).points
        index, known = target[points], rng.random(n_pair) < 0.5
    else:
        members = job.subject.point_sets(target, shadow, np.arange(game.n_points) % N_CLASSES).training
        index, known = shadow, np.isin(shadow, members)
    labels = index % N_CLASSES
    logits = rng.standard_normal((len(index), N_CLASSES)).astype(np.float32)
    logits[np.arange(len(index)), labels] += 3 + known  # members are known a little better
    arrays = {"logits": logits, "labels": labels}
    if points is None:
        return {**arrays, "role": np.where(known, Role.IN, Role.OUT).astype(np.int8)}, {"ran": RAN}
    accuracy = {"retain": 1.0, "forget": 1.0, "unseen": 0.95}
    return {**arrays, "points": points}, {"ran": RAN, "utility": accuracy, "n_gradients": 1}


def measured(*command: str) -> tuple[float, float, float]:
    """(wall seconds, CPU seconds, peak MiB) of a command in a process of its own, on one thread."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    start = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True, env=ONE_THREAD
    )
    cpu, peak = told.stdout.split()
    return time.perf_counter() - start, float(cpu), int(peak) / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    """Measure and print."""
    n_models, n_points = (int(text) for text in (sys.argv[1:] + ["100", "10000"][len(sys.argv) - 1 :])[:2])
    methods = ["retrain", "none", "neg-grad", "ft-final", "retrain-final"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch) / "run")
        campaign = fabricated_game(n_points, n_models // (2 * len(methods)), methods, ["correctness"])
        fabricate(campaign, folder, decisions=False)
        play(campaign, folder, device="cpu")
        (graph,) = campaign.graphs
        size = f"{len(graph.cells)} models × {2 * graph.game.sizes[1]:,} points"
        print(f"{size}, {folder.objects.n_bytes() / 2**20:.0f} MiB of signals")
        print("| command | wall, s | CPU, s | peak memory |\n|---|---|---|---|")
        cli = (sys.executable, "-m", "forgetgauge")
        for adversary in ("confidence", "modified-entropy", "loss", "shadow"):
            wall, cpu, mib = measured(*cli, "score", str(folder.path), "--adversary", adversary)
            print(f"| score --adversary {adversary} | {wall:.1f} | {cpu:.1f} | {mib:.0f} MiB |", flush=True)
        wall, cpu, mib = measured(*cli, "report", str(folder.path))
        print(f"| report | {wall:.1f} | {cpu:.1f} | {mib:.0f} MiB |")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
