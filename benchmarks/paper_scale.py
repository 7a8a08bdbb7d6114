"""A whole SWAP test at the paper's scale: CIFAR-10, ResNet-20, 200 epochs, α = 0.1, three seeds, eight methods.

    python benchmarks/paper_scale.py [RUN_FOLDER]
    python benchmarks/paper_scale.py RUN_FOLDER TABLE SCALE     a table of the paper in its place: table2 small

Two sides of one pair, three seeds each: six originals, six retrained models, four shadow models, and each of the other
methods on the six originals; the paper's four adversaries. Prints the seconds of each stage, from the ledger, and where
the wall time went, cause by cause, that of no job included. An H200 is the machine it is meant for; the goal is 200 s.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from timeline import Timed, causes_of, table

from forgetgauge import plugins
from forgetgauge.plan.runfile import read_run_file
from forgetgauge.run.campaign import Campaign, play, started_ahead
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.invocation import play_suite
from forgetgauge.suites.tables import suite

EXAMPLE = Path(__file__).parents[1] / "examples" / "cifar10-resnet20.toml"
STRENGTHS = {
    "fisher": {"alpha": 3e-8},
    "salun": {"lr": 1e-4},
    "neg-grad": {"lr": 6e-3},
    "ssd": {"importance": "per-sample", "alpha": 2.0},
}
"""Fixed, so that choosing them is not timed."""


def swap_test(folder: Path) -> Campaign:
    """The example with one pair of three seeds and fixed strengths."""
    raw, source = read_run_file(EXAMPLE)
    for name, strength in STRENGTHS.items():
        given = {key: value for key, value in raw["unlearners"][name].items() if key != "strength"}
        raw["unlearners"][name] = {**given, **strength}
    del raw["tuning"]
    raw["game"].update(pairs=1, seeds=3)
    raw["adversaries"] = ["shadow", "correctness", "confidence", "modified-entropy"]
    campaign = Campaign.plan(resolve(raw, source))
    play(campaign, RunFolder(folder), RunOptions("timed"))
    return campaign


def main() -> None:
    """Play, then say where the time went."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/paper-scale")
    plugins.executors.bind(Timed, "timed")
    begin = time.perf_counter()
    with started_ahead(RunOptions("timed")):
        if sys.argv[2:]:
            campaign = play_suite(suite(*sys.argv[2:4]), folder, options=RunOptions("timed"))[0].campaign
        else:
            campaign = swap_test(folder)
    end = time.perf_counter()
    done = RunFolder(folder).open_ledger().state.done
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
    print(f"| all jobs, some of them side by side | {models.total()} | {stages.total():.1f} |\n")
    print(table(causes_of(Timed.spans, begin, end)))


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
