"""How the strengths of the embedded run and of the CIFAR-10 examples were chosen: by utility on the shadow half alone.

    python benchmarks/tune.py                                  digits: trains eight shadow models
    python benchmarks/tune.py RUN_FOLDER OUT.json [METHOD…]    CIFAR-10: the shadow models of a run that kept its
                                                               weights; OUT.json keeps what it has of other methods

The run for DP-SGD is that of benchmarks/tune-dp-cifar10.toml: one strength is to suit both ends of Table 3, ε = 50, ∞.

The rule (`forgetgauge.tuning`): the strongest value at which no model loses more than a point of accuracy on shadow
points that it was not trained on. F and T of the game are never looked at. The last line has the chosen options.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from forgetgauge.learn.dp_sgd import DpSgd
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.tuning import Tuner, Tuning

Strengths = dict[str, tuple[str, list[float], dict[str, Any]]]
"""Method -> strength, its values weakest first, other parameters."""

DIGITS: Strengths = {
    "neg-grad": ("lr", [0.001, 0.002, 0.005, 0.01, 0.02], {}),
    "fisher": ("alpha", [1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6], {}),
    "salun": ("lr", [1e-4, 2e-4, 5e-4, 1e-3, 2e-3], {}),
    "ssd": ("alpha", [2.0, 1.9, 1.8, 1.7, 1.6, 1.5], {"importance": "per-sample"}),
}
CIFAR: Strengths = {
    "fisher": ("alpha", [1e-10, 1e-9, 3e-9, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6], {"labels": "sampled"}),
    # Not monotone: most is lost at 1e-3, so weak values must be tried as well as strong ones.
    "salun": ("lr", [3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 8e-3, 0.013, 0.03, 0.1], {}),
    "neg-grad": ("lr", [1e-6, 1e-5, 3e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.5e-3, 3e-3, 6e-3, 0.012, 0.025, 0.05], {}),
    "ssd": ("alpha", [10.0, 5.0, 4.0, 3.0, 2.5, 2.0, 1.75, 1.5], {"importance": "per-sample"}),
}
DP: Strengths = {
    "fisher": ("alpha", [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4], {"labels": "sampled"}),
    "neg-grad": ("lr", [1e-7, 1e-6, 1e-5, 1e-4, 4e-4, 1.5e-3, 6e-3, 0.025], {}),
    "ssd": ("alpha", [9.9, 9.5, 9.0, 8.0, 7.0, 6.0, 5.0, 3.0, 2.0], {"importance": "per-sample"}),
    "salun": ("lr", [1e-6, 1e-5, 1e-4, 1e-3, 0.013, 0.1], {}),
}


def grids(tuner: Tuner) -> Strengths:
    """Those for models like these."""
    match tuner.learners[0]:
        case DpSgd():
            return DP
        case Minibatch(model=model) if model.startswith("resnet"):
            return CIFAR
    return DIGITS


def show(name: str, strength: str, found: Tuning, seconds: float) -> None:
    """A few lines on one method."""
    print(f"{name}: {strength} = {found.chosen}  ({seconds:.0f} s)")
    for trial in found.trials:
        print(f"  {trial.value:<8g} mean loss {trial.mean_loss:+.4f}  worst {trial.worst_loss:+.4f}", flush=True)


def main() -> None:
    """Measure and print."""
    folder, out, *only = [*sys.argv[1:], *[""] * max(0, 3 - len(sys.argv))]
    tuner = Tuner.from_run(folder) if folder else Tuner.train(alpha=0.5)
    strengths = {name: strength for name, strength in grids(tuner).items() if not only or name in only}
    print(f"accuracy on unseen shadow points before: {', '.join(f'{a:.4f}' for a in tuner.before)}", flush=True)
    found_by_method: dict[str, Any] = json.loads(Path(out).read_text()) if out and Path(out).exists() else {}
    found_by_method["before"] = tuner.before.tolist()
    for name, (strength, values, params) in strengths.items():
        start = time.perf_counter()
        found = tuner.tune(name, strength, values, params=params)
        show(name, strength, found, time.perf_counter() - start)
        found_by_method[name] = {"strength": strength, "params": params, **dataclasses.asdict(found)}
        if out:
            Path(out).write_text(json.dumps(found_by_method, indent=1) + "\n")
    chosen = {name: (strength, found_by_method[name]["chosen"]) for name, (strength, _, _) in strengths.items()}
    print(
        " ".join(
            f"--set unlearners.{n}.{strength}={value}" for n, (strength, value) in chosen.items() if value is not None
        )
    )


if __name__ == "__main__":
    main()
