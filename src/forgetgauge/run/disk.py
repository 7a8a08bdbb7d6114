"""How large what a run keeps will be, before anything of it is done."""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.plan.graph import CONFUSED, PAIR, SHADOW_HALF, TARGET_HALF, Graph
from forgetgauge.plan.jobs import HEAVY, UTILITY, SignalsJob

HEADER_BYTES = 250
"""Of an artefact's own description, roughly."""


def artefact_bytes(graph: Graph) -> dict[str, int]:
    """Bytes of what each job makes, beside its header, by its key."""
    game, sizes = graph.game, dict.fromkeys(graph.jobs, 0)
    n_retain, n_forget = (round(size * game.n_points / game.n_drawn) for size in game.sizes)
    half = n_retain + 2 * n_forget
    confused = (n_retain + n_forget) // game.n_classes  # half of two classes, were all equally large
    rows = {PAIR: 2 * n_forget, TARGET_HALF: half, SHADOW_HALF: half, CONFUSED: confused, UTILITY: 0}
    for key, job in graph.jobs.items():
        if job.kind in HEAVY:
            sizes[key] = game.model_bytes
        elif isinstance(job, SignalsJob):
            sizes[key] = rows[job.look_at] * (4 * game.n_classes + 8)  # float32 outputs, a label
        elif job.kind == "decide":
            sizes[key] = 2 * n_forget * (1 + 8)  # a bit and a margin
    return sizes


def disk_estimate(graphs: Sequence[Graph]) -> tuple[int, int]:
    """(bytes of all signals, fits, decisions and headers; bytes of all weights if none were dropped)."""
    sizes: dict[str, int] = {}
    weights: set[str] = set()
    for graph in graphs:  # games of a sweep share jobs
        sizes = artefact_bytes(graph) | sizes
        weights.update(key for key, job in graph.jobs.items() if job.kind in HEAVY)
    heavy = sum(sizes[key] for key in weights)
    return sum(sizes.values()) - heavy + HEADER_BYTES * len(sizes), heavy
