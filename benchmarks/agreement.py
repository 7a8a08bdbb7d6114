"""Does it matter what trained the models? Two runs of one run file, compared job by job.

    forgetgauge run FILE --device cpu  --out A --set keep=weights
    forgetgauge run FILE --device cuda --out B --set keep=weights
    python benchmarks/agreement.py A B

Keys do not know the device or the engine, so the same jobs are in both: prints the largest difference of any weight,
the share of equal decisions of each adversary, and the accuracies of both (mean over models, and the standard error of
their difference).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder


def artefacts(folder: RunFolder, keys: list[str]) -> dict[str, Any]:
    """Key -> artefact, of those that are there."""
    state = folder.open_ledger().state
    return {k: folder.objects.read(k, state.done[k].receipt.sha256) for k in keys if state.is_available(k)}


def main() -> None:
    """Compare and print."""
    first, second = (RunFolder(Path(path)) for path in sys.argv[1:3])
    jobs = Campaign.read(first).jobs
    both = [artefacts(folder, list(jobs)) for folder in (first, second)]
    shared = [key for key in jobs if key in both[0] and key in both[1]]
    largest: dict[str, float] = defaultdict(float)
    decisions: dict[str, list[float]] = defaultdict(list)
    accuracy: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for key in shared:
        job, a, b = jobs[key], both[0][key], both[1][key]
        if job.kind in ("train", "unlearn"):
            what = job.kind if job.kind == "train" else job.params["unlearner"]["name"]
            off = max(float(np.abs(a.arrays[n].astype(float) - b.arrays[n]).max(initial=0)) for n in a.arrays)
            largest[what] = max(largest[what], off)
        elif job.kind == "decide":
            decisions[job.params["adversary"]["name"]].append(
                float(np.mean(a.arrays["says_forget"] == b.arrays["says_forget"]))
            )
        elif job.kind == "signals" and "utility" in a.facts:
            accuracy["unseen"].append((a.facts["utility"]["unseen"], b.facts["utility"]["unseen"]))
    print(f"{len(shared)} jobs in both")
    for what, off in largest.items():
        print(f"weights and buffers, {what}: largest difference {off:.2e}")
    for name, shares in decisions.items():
        print(f"decisions, {name}: {100 * np.mean(shares):.3f} % equal (worst model {100 * min(shares):.2f} %)")
    for name, rows in accuracy.items():
        x, y = np.array(rows).T
        error = np.std(x - y, ddof=1) / np.sqrt(len(x))
        print(f"accuracy, {name}: {x.mean():.4f} and {y.mean():.4f}, standard error of the difference {error:.4f}")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
