"""How the knobs of the embedded run were chosen: by utility on the shadow half alone (`forgetgauge.tuning`).

python benchmarks/tune_digits.py
"""

from __future__ import annotations

from forgetgauge.tuning import tune

KNOBS = {
    "neg-grad": ("lr", [0.001, 0.002, 0.005, 0.01, 0.02]),
    "fisher": ("alpha", [1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6]),
    "salun": ("lr", [1e-4, 2e-4, 5e-4, 1e-3, 2e-3]),
    "ssd": ("alpha", [2.0, 1.9, 1.8, 1.7, 1.6, 1.5]),
}


def main() -> None:
    """Measure and print."""
    for name, (knob, values) in KNOBS.items():
        found = tune(name, knob, values, alpha=0.5)
        print(f"{name}: {knob} = {found.chosen}")
        for trial in found.trials:
            print(f"  {trial.value:<8g} mean loss {trial.mean_loss:+.4f}  worst {trial.worst_loss:+.4f}", flush=True)


if __name__ == "__main__":
    main()
