"""A whole SWAP test at the paper's scale: CIFAR-10, ResNet-20, 200 epochs, α = 0.1, three seeds, eight methods.

    python benchmarks/paper_scale.py [RUN_FOLDER]

Two sides of one pair, three seeds each: six originals, six retrained models, four shadow models, and each of the other
methods on the six originals; the paper's four adversaries. Prints the wall time and, from the ledger, the seconds of
each stage. An H200 is the machine it is meant for; the goal is eight minutes.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from forgetgauge.plan.runfile import read_run_file
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder

EXAMPLE = Path(__file__).parents[1] / "examples" / "cifar10-resnet20.toml"


def main() -> None:
    """Play, then say where the time went."""
    folder = RunFolder(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/paper-scale"))
    raw, source = read_run_file(EXAMPLE)
    raw["game"].update(pairs=1, seeds=3)
    raw["adversaries"] = ["shadow", "correctness", "confidence", "modified-entropy"]
    start = time.perf_counter()
    campaign = Campaign.plan(resolve(raw, source))
    play(campaign, folder, executor="processes")
    wall = time.perf_counter() - start
    done = folder.open_ledger().state.done
    stages: Counter[str] = Counter()
    models: Counter[str] = Counter()
    for key, job in campaign.jobs.items():
        if key in done:
            stage = job.kind if job.kind != "unlearn" else f"unlearn: {job.params['unlearner']['name']}"
            stages[stage] += done[key].seconds  # type: ignore[assignment]
            models[stage] += 1
    print("| stage | jobs | seconds |\n|---|---|---|")
    for stage, seconds in stages.most_common():
        print(f"| {stage} | {models[stage]} | {seconds:.1f} |")
    print(f"| wall, from start to result | {len(campaign.jobs)} | {wall:.1f} |")


if __name__ == "__main__":
    main()
