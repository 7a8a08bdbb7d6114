"""What the paper says in words, judged by what is stored: it holds here, it does not, or that is open.

*Yes* takes an interval that says so, *no* one that says the opposite; what is between is open, and so is what lacks a
column that the rule names. Numbers at smoke scale, or from the embedded digits, count for none. Each rule is stated
beside its claim; the bars are ours, since the paper gives none.
"""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.suites.agreement import other_experiments
from forgetgauge.suites.claim import Claim
from forgetgauge.suites.findings import Findings
from forgetgauge.suites.level_claims import accuracy_claim, difficulty_claim, grounding_claim, replicates_claim
from forgetgauge.suites.ranking_claims import best_claim, ranking_claim, rival_ranking_claim, small_predicts_large
from forgetgauge.suites.trend_claims import falling_claim, removal_claim, rising_accuracy_claim, rival_claim
from forgetgauge.wording import capital

RANKINGS = {
    "table1": (
        "Methods rank alike at every size of the data",
        "the relative ranking … remains consistent across sizes",
        "sizes of the data",
    ),
    "table2": (
        "Methods rank alike at every α",
        "the relative ranking … remains largely consistent across varying α values",
        "shares to be forgotten",
    ),
    "table3": (
        "Methods rank alike at every ε",
        "maintains a consistent relative ranking … among different ε",
        "ε",
    ),
    "table6": (
        "Methods rank alike in every architecture",
        "stays mostly consistent across different architectures",
        "architectures",
    ),
    "table7": (
        "Methods rank alike on every data set",
        "the consistency we have observed throughout this section",
        "data sets",
    ),
}
RIVALS = {
    "table4a": (
        "The IC score is not lower the larger ε is",
        "the IC test fails to produce a negatively correlated evaluation result with ε",
        "IC score",
    ),
    "table4b": (
        "The MIA score is not lower the larger ε is",
        "MIA AUC also fails to produce a similar trend",
        "MIA score",
    ),
}
RIVAL_RANKINGS = {
    "table4a": (
        "The IC score ranks methods differently at different ε",
        "in terms of consistency w.r.t. ε, we again see that the IC test fails to satisfy this property",
        "ic",
    ),
    "table4b": (
        "The MIA score ranks methods differently at different ε",
        "while NegGrad outperforms Fisher at ε = 50 and ε = 600, it performs worse than Fisher at ε = 150, which is "
        "inconsistent",
        "mia",
    ),
}
ACCURACIES = {
    "none": "With the full dataset, the model achieved an accuracy of 85.34 %",
    "flip-crop": "After incorporating data augmentation, the accuracy further improved to 91.13 %",
}


def claims(found: Findings) -> dict[str, list[Claim]]:
    """Subject -> its claims."""
    table, apart = found.fullest, other_experiments(found)
    return {
        "Q itself": [
            grounding_claim(found),
            replicates_claim(found.replicates),
            difficulty_claim(found),
            removal_claim(table("table8")),
        ],
        "Rankings of methods": [
            *(ranking_claim(name, words, table(key), across) for key, (name, words, across) in RANKINGS.items()),
            small_predicts_large(table("table1")),
            best_claim(found),
        ],
        "Private training, and the metrics that Q is compared with": [
            falling_claim(table("table3"), apart),
            *(rival_claim(*statement, table(key), apart) for key, statement in RIVALS.items()),
            *(rival_ranking_claim(*statement, table(key)) for key, statement in RIVAL_RANKINGS.items()),
            rising_accuracy_claim([table("table5a"), table("table5b")], apart),
        ],
        "Accuracy": [accuracy_claim(kind, words, found.accuracy) for kind, words in ACCURACIES.items()],
    }


def all_of(judged: dict[str, list[Claim]]) -> list[Claim]:
    """Every claim, in the order of the page."""
    return [claim for those in judged.values() for claim in those]


def claim_rows(every: Sequence[Claim]) -> list[list[str]]:
    """Head and one row a claim."""
    rows = [["the paper’s statement", "holds here?", "what we find"]]
    return [*rows, *([c.statement.name, _holds(c), capital(c.finding) or "–"] for c in every)]


def _holds(claim: Claim) -> str:
    """`**yes**, small scale`: of what is not known at the paper's own."""
    return f"**{claim.holds}**{', small scale' if 'small scale' in claim.source else ''}"


def claim_rules(every: Sequence[Claim]) -> list[str]:
    """By which words of the paper, which rule and which of our results each claim is judged."""
    return [
        f"**{c.statement.name}**: “{c.statement.words}”. {capital(c.statement.rule)}."
        f"{f' From: {c.source}.' if c.source else ''}"
        for c in every
    ]
