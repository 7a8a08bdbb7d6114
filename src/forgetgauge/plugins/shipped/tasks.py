"""The tasks we ship: what a data set's labels and a model's outputs mean."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

TASKS: dict[str, Entry] = {
    "classification": Entry(
        "forgetgauge.tasks.classification:CLASSIFICATION",
        "a label is the number of a class; cross-entropy, accuracy",
    ),
    "regression": Entry(
        "forgetgauge.tasks.regression:REGRESSION",
        "a label is a real number; squared error, R²",
    ),
}
