"""What is shipped for language models, by name: entries of the catalogues in `shipped.py`."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

TASKS: dict[str, Entry] = {
    "causal-lm": Entry(
        "forgetgauge.tasks.causal_lm:CAUSAL_LM",
        "a point is a record of text; mean token loss, geometric mean of token probabilities",
    ),
}
