"""How often the embedded run says what it should: over root seeds 0 to 19, does Retrain's interval hold 1, and does it
lie wholly above None's?

    python benchmarks/root_seeds.py [N_SEEDS] [--set key=value …]

Prints one line per seed and the counts at the end. About half a minute a seed on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from forgetgauge.plan.runfile import apply_settings, read_run_file
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_seeds", nargs="?", type=int, default=20)
    parser.add_argument("--set", dest="settings", action="append", default=[])
    arguments = parser.parse_args()
    raw, source = read_run_file(None)
    n_holds = n_above = 0
    begin = time.monotonic()
    for seed in range(arguments.n_seeds):
        methods = 'unlearners=["retrain", "none"]'
        settings = [methods, *arguments.settings, f"seed={seed}", "keep=signals"]
        campaign = Campaign.plan(resolve(apply_settings(raw, settings), source))
        with tempfile.TemporaryDirectory() as scratch:
            _, result = play(campaign, RunFolder(Path(scratch) / "run"), RunOptions("processes"))
        assert result is not None
        retrain, none = result.methods["retrain"], result.methods["none"]
        assert retrain.interval is not None
        assert none.interval is not None
        holds, above = retrain.interval[1] >= 1, retrain.interval[0] > none.interval[1]
        n_holds, n_above = n_holds + holds, n_above + above
        cells = [
            f"{name} {found.quality:.3f} [{found.interval[0]:.3f}, {found.interval[1]:.3f}]"
            for name, found in result.methods.items()
            if found.interval is not None
        ]
        verdict = f"holds 1: {'yes' if holds else 'no'}, above None: {'yes' if above else 'no'}"
        print(f"seed {seed:2d}: {verdict}; " + "; ".join(cells), flush=True)
    seconds = time.monotonic() - begin
    print(f"Retrain's interval holds 1 in {n_holds} of {arguments.n_seeds} root seeds")
    print(f"Retrain's interval lies wholly above None's in {n_above} of {arguments.n_seeds} root seeds")
    print(f"{seconds / arguments.n_seeds:.1f} s a run")


if __name__ == "__main__":
    main()
