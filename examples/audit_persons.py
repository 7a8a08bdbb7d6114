"""One language model, tested exactly: does it still show the persons whom it was asked to forget?

Persons of the embedded data `people` are drawn to be forgotten or to be kept from training, the tiny language model of
tiny-lm.toml is trained, and its losses on their records are audited: as it was trained, which is what a request that
was ignored leaves, and retrained without the forgotten persons.

    python examples/audit_persons.py persons
    forgetgauge audit persons/both.csv --draw persons/draw.json --points persons/records.csv --states all

The second command judges both models in one piece of evidence, where the first of them shows what the test can see.
"""

import csv
import sys
import tomllib
from pathlib import Path

import numpy as np

from forgetgauge.auditing import audit_one_model, make_draw
from forgetgauge.data.people import load_people
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of
from forgetgauge.streams import Streams

TINY = tomllib.loads((Path(__file__).parent / "tiny-lm.toml").read_text("utf-8"))["learner"]


def main(folder: Path, people: int = 96, n_forget: int = 32, **learner: object) -> None:
    """Draw, train, ask, audit; the files stay in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**TINY, **learner}
    points = load_people(people=people, vocab=settings["model_params"]["vocab"]).points
    assert points.whole_groups is not None
    names, persons = [f"record {i}" for i in range(len(points))], points.whole_groups.tolist()
    write(folder / "records.csv", ["point", "person"], zip(names, persons, strict=True))
    drawn = make_draw(folder / "records.csv", n_forget, folder / "draw.json", by="person", seed="a beacon's value")
    in_forget, in_unseen = np.isin(names, drawn.forget or ()), np.isin(names, drawn.unseen or ())
    both = []
    trainings = {"none": ~in_unseen, "retrain": ~(in_unseen | in_forget)}
    for model, trained_on in trainings.items():
        fitted = Minibatch(**settings).fit(points.subset(np.flatnonzero(trained_on)), Streams({"model": model}))
        losses = points.task.signals["loss"](outputs_of(fitted, points), points.host_labels)
        rows = list(zip(names, persons, losses, strict=True))
        write(folder / f"{model}.csv", ["point", "person", "loss"], rows)
        both += [["before" if model == "none" else model, *row] for row in rows]
        found = audit_one_model(folder / f"{model}.csv", folder / "draw.json", states=["all"]).models["model"]
        print(f"{model}: {found.verdict}; p = 10^{found.log10_p:.1f}, ε ≥ {found.epsilon:.2f}, by {found.best}")
    write(folder / "both.csv", ["method", "point", "person", "loss"], both)


def write(path: Path, head: list[str], rows: object) -> None:
    """A table with a header."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
