"""Assembling the result of a large run: from 10,000 finished jobs on disk to `result.json`.

    python benchmarks/assembly.py [N_JOBS ...]
    python benchmarks/assembly.py wide    # 16, 32 and 63 methods, 19 adversaries, 2 pairs

The run is fabricated through the store (benchmarks/score.py): seven methods, six adversaries, F ∪ T as large as in the
embedded default, as many swap pairs as it takes. Each size is assembled in a process of its own: wall seconds, a job's
share, and the most memory it held.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from score import ONE_THREAD, fabricate, fabricated_game

from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder

METHODS = ["retrain", "none", "neg-grad", "ft-final", "retrain-final", "fisher", "ssd"]
ADVERSARIES = ["correctness", "confidence", "entropy", "modified-entropy", "loss", "shadow"]
POINTS = 598

ASSEMBLE = """
import sys, time
from pathlib import Path
from forgetgauge.results.assembly import assemble
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
start, began = time.perf_counter(), time.process_time()
campaign = Campaign.read(folder)
planned = time.perf_counter()
assemble(campaign.graphs, folder, sweep_key=None, environment={})
end = time.perf_counter()
status = Path("/proc/self/status")  # getrusage would tell the size of the parent that this was forked from
peak = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")] if status.exists() else []
mib = int(peak[0].split()[1]) / 1024 if peak else float("nan")
print(planned - start, end - planned, time.process_time() - began, mib)
"""


def with_jobs(wanted: int) -> Campaign:
    """As many pairs of the seven methods as it takes."""
    one, two = (len(fabricated_game(POINTS, pairs, METHODS, ADVERSARIES).jobs) for pairs in (1, 2))
    return fabricated_game(POINTS, max(2, round(wanted / (two - one))), METHODS, ADVERSARIES)


def wide(n_methods: int) -> Campaign:
    """Many methods and adversaries on two pairs, which are compared over their points."""
    methods = {f"neg-grad-{i}": {"method": "neg-grad", "epochs": i} for i in range(1, n_methods - 1)}
    adversaries = {f"confidence-{i}": {"method": "confidence"} for i in range(19 - len(ADVERSARIES))}
    every = {name: dict[str, Any]() for name in ADVERSARIES} | adversaries
    return fabricated_game(POINTS, 2, {"retrain": {}, "none": {}} | methods, every)


def main() -> None:
    """Measure and print."""
    print("| jobs | planned, s | assembled, s | CPU, s | CPU ms a job | peak memory |\n|---|---|---|---|---|---|")
    asked = sys.argv[1:] or ["1000", "10000"]
    for campaign in map(wide, (16, 32, 63)) if asked == ["wide"] else (with_jobs(int(text)) for text in asked):
        with tempfile.TemporaryDirectory() as scratch:
            folder = RunFolder(Path(scratch) / "run")
            fabricate(campaign, folder, decisions=True)
            command = [sys.executable, "-c", ASSEMBLE, str(folder.path)]
            told = subprocess.run(command, check=True, capture_output=True, text=True, env=ONE_THREAD).stdout.split()
        planned, assembled, cpu, mib = map(float, told)
        n_jobs = len(campaign.jobs)
        a_job = 1000 * cpu / n_jobs
        print(f"| {n_jobs:,} | {planned:.1f} | {assembled:.1f} | {cpu:.1f} | {a_job:.1f} | {mib:.0f} MiB |", flush=True)


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
