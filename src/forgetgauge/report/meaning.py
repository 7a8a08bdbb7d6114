"""What a verdict means, in a sentence for somebody who has never heard of the game; and what Q is about, where F is not
drawn from all points one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forgetgauge.results.record import is_run
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
    "allows, by their answers or by their scores.",
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


def forget_set(spec: Mapping[str, Any]) -> str | None:
    """What Q of a game is about, where that is not any point of the data as likely as any other."""
    found = []
    if spec.get("by") == "group":
        shown = (
            "an adversary is shown all points of a group at once and decides by their mean score"
            if spec.get("oracle") == "group"
            else "an adversary is shown one point of a group at a time"
        )
        found.append(
            f"Whole groups are forgotten, {spec.get('n_forget', 0):,} at a time: {shown}. Each group weighs as its mean"
            " point does, and the group is the unit of all intervals and tests."
        )
    share, what = spec.get("hardest", 1.0), "groups" if spec.get("by") == "group" else "points"
    if share < 1:
        found.append(
            f"F and T are drawn from the {100 * share:g} % of the {what} that models memorise most: Q is about these,"
            " and tends to be higher for others."
        )
    if (kind := spec.get("sensitivity", {}).get("kind", "uniform")) != "uniform":
        of_an_audit = kind == "file" and not is_run(spec)
        by = "by the file's column weight" if of_an_audit else "as game.sensitivity states"
        found.append(f"Points are weighed {by}: Q is about those that weigh most.")
    return " ".join(found) or None
