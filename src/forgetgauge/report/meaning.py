"""What a verdict means, in a sentence for somebody who has never heard of the game."""

from __future__ import annotations

from forgetgauge.results.verdict import (
    INCONCLUSIVE,
    LIKE_RETRAIN,
    NOT_BETTER,
    NOT_EVALUABLE,
    STILL_VISIBLE,
)
from forgetgauge.wording import plain

_MEANINGS = {
    STILL_VISIBLE: "Attackers tell the forgotten points from points that were never trained on more often than chance "
    "allows.",
    NOT_BETTER: "Attackers still tell the forgotten points from points that were never trained on, and it is not shown "
    "that they do so less well than if nothing had been done.",
    LIKE_RETRAIN: "The attackers that were tried tell the forgotten points from points that were never trained on no "
    "better than chance allows.",
    INCONCLUSIVE: "There is too little evidence to say anything: attackers who are right in three quarters of all "
    "answers could have gone unnoticed.",
    NOT_EVALUABLE: "This test cannot say whether the points are forgotten.",
}


def meaning(verdict: str, resolution: float | None) -> str:
    """One sentence, or two where the verdict depends on how small an advantage would have been seen."""
    said = _MEANINGS.get(verdict, "")
    if verdict == LIKE_RETRAIN and resolution is not None:
        said += (
            f" An advantage of {plain(resolution)} would have been seen in four of five such tests; a smaller one "
            "may have been missed."
        )
    return said
