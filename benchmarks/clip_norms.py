"""Choose the clip norm of DP-SGD for each ε of Table 3 on the shadow half, as the paper tunes its own “individually”.

    python benchmarks/clip_norms.py SCALE [FILE.json]

SCALE is that of `forgetgauge reproduce`: smoke (digits, minutes on a core), small or paper (CIFAR-10, a GPU). Accuracy
on shadow points decides, never F, T or Q (`forgetgauge.learn.dp_tuning`). What is chosen is written into CLIP_NORMS of
`suites/strengths.py` by hand.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from forgetgauge.learn.dp_sgd import DpSgd
from forgetgauge.learn.dp_tuning import tune_clip_norm
from forgetgauge.suites.tables import BUDGETS, SCALES, dp_game

VALUES = [0.1, 0.3, 1.0, 1.2, 3.0, 10.0]
"""1.2 is that of opacus' CIFAR-10 tutorial."""


def main() -> None:
    """Measure, print, and write the file if there is one."""
    scale, *rest = sys.argv[1:]
    found: dict[str, Any] = {"scale": scale}
    for label, epsilon in BUDGETS.items():
        if epsilon is None:
            continue  # nothing is clipped
        game, start = dp_game(SCALES[scale], epsilon), time.perf_counter()
        recipe = DpSgd(**{key: value for key, value in game["learner"].items() if key != "name"})
        setting = {"data": game["data"]["name"], "fraction": game["data"]["fraction"], "alpha": game["game"]["alpha"]}
        tuned = tune_clip_norm(recipe, VALUES, **setting)
        found[label] = dataclasses.asdict(tuned)
        tried = ", ".join(f"{trial.clip_norm:g}: {trial.accuracy:.4f}" for trial in tuned.trials)
        print(f"ε = {label}: {tuned.chosen:g}  ({tried}; {time.perf_counter() - start:.0f} s)", flush=True)
        if rest:
            Path(rest[0]).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
