"""How often honest audit files are warned of because of their shadow models, and how often others are.

    python benchmarks/audit_alarms.py [FILES]

Logits of models that remember their training points more or less, each model a little better or worse than the next;
in honest files the models under test are made as the shadow models are. Counted are warnings of thresholds that miss
what scores tell, and of accuracy far below that of shadow models.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from forgetgauge.auditing import audit_file

Columns = dict[str, np.ndarray]
RULES = {"miss": "thresholds fitted on the shadow models miss", "far below": "do all outputs belong"}
HONEST = (  # pairs, |F|, memory, shadow models, points of each, classes, spread of models
    (5, 60, 1.5, 6, 400, 10, 0.1),
    (5, 60, 0.5, 6, 400, 10, 0.1),
    (8, 20, 1.5, 2, 200, 3, 0.1),
    (5, 100, 3.0, 1, 400, 10, 0.2),
    (6, 40, 1.0, 4, 300, 10, 0.2),
    (2, 30, 1.5, 2, 200, 5, 0.1),
)


def made(
    rng: np.random.Generator,
    pairs: int,
    k: int,
    memory: float,
    shadows: int,
    n_shadow: int,
    classes: int,
    spread: float,
) -> Columns:
    """The columns of a file."""
    n_points = 10 * k
    labels, ease = rng.integers(0, classes, n_points), rng.standard_normal(n_points)

    def model(labels: np.ndarray, ease: np.ndarray, member: np.ndarray) -> np.ndarray:
        logits = rng.standard_normal((len(labels), classes))
        logits[np.arange(len(labels)), labels] += 2.0 + spread * rng.standard_normal() + ease + memory * member
        return logits * np.exp(spread * rng.standard_normal())

    parts: dict[str, list[np.ndarray]] = {}
    for pair in range(pairs):
        points = np.sort(rng.permutation(n_points)[: 2 * k])
        first = rng.permutation(np.repeat([True, False], k))
        for side, forgotten in enumerate((first, ~first)):
            rows = {
                "pair": np.full(2 * k, pair),
                "side": np.full(2 * k, side),
                "point": points,
                "set": np.where(forgotten, "forget", "unseen"),
                "label": labels[points],
                "logits": model(labels[points], ease[points], forgotten),
            }
            for name, column in rows.items():
                parts.setdefault(name, []).append(column)
    shown, how = rng.integers(0, classes, n_shadow), rng.standard_normal(n_shadow)
    for which in range(shadows):
        member = rng.permutation(n_shadow) < n_shadow // 2
        block = {
            "label": shown,
            "member": member,
            "model": np.full(n_shadow, which),
            "logits": model(shown, how, member),
        }
        for name, column in block.items():
            parts.setdefault(f"shadow_{name}", []).append(column)
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def as_loss(raw: Columns) -> Columns:
    """A file with losses in the place of logits."""
    for prefix in ("", "shadow_"):
        logits, label = raw.pop(f"{prefix}logits"), raw[f"{prefix}label"]
        raw[f"{prefix}loss"] = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(label)), label]
    return raw


def half_mixed(raw: Columns) -> Columns:
    """Rows of which the second half of each side lost its order."""
    rng, rows = np.random.default_rng(0), np.arange(len(raw["pair"]))
    for pair in np.unique(raw["pair"]):
        for side in (0, 1):
            its = np.flatnonzero((raw["pair"] == pair) & (raw["side"] == side))
            rows[its[len(its) // 2 :]] = rng.permutation(its[len(its) // 2 :])
    return raw | {"logits": raw["logits"][rows]}


BROKEN: dict[str, Callable[[Columns], Columns]] = {
    "loss × 0.3": lambda raw: (raw := as_loss(raw)) | {"loss": 0.3 * raw["loss"]},
    "loss + 0.4": lambda raw: (raw := as_loss(raw)) | {"loss": 0.4 + raw["loss"]},
    "loss × 6": lambda raw: (raw := as_loss(raw)) | {"loss": 6 * raw["loss"]},
    "logits × 2": lambda raw: raw | {"logits": 2 * raw["logits"]},
    "half of the rows mixed up": half_mixed,
}


def alarms(raw: Columns, folder: Path) -> dict[str, bool]:
    """Which of the rules warn of a file."""
    np.savez(folder / "file.npz", **raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = audit_file(folder / "file.npz").games[0].warnings
    return {rule: any(said in line for line in lines) for rule, said in RULES.items()}


def main(n_files: int) -> None:
    """One row for each kind of file."""
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        kinds = [(f"{how}{what}", how, change) for how in HONEST for what, change in (("", None), (", loss", as_loss))]
        kinds += [(name, HONEST[0], change) for name, change in BROKEN.items()]
        for name, how, change in kinds:
            n = n_files if change in (None, as_loss) else max(1, n_files // 10)
            found = [
                alarms(raw if change is None else change(raw), Path(folder))
                for raw in (made(rng, *how) for _ in range(n))
            ]
            shares = ", ".join(f"{rule} {sum(one[rule] for one in found)}" for rule in RULES)
            print(f"{name}: of {n} files {shares}, any {sum(any(one.values()) for one in found)}", flush=True)


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
