"""What the paper says in words, judged by what is stored: confirmed, not confirmed, undecided, or not run.

A claim is confirmed only where an interval says so, and not confirmed only where an interval says the opposite. What
a rule names must all be there, methods and columns, or the claim is undecided; but one counterexample refutes what is
said of every method. Numbers at smoke scale, or from the embedded digits, count for none. Each claim's rule is stated
beside it; the bars are ours, since the paper gives none. A column of Tables 3 to 5 whose models memorise far less or
more than the paper's is another experiment, and counts as missing; of what is said of Retrain, which such models
flatter, it is left out, and the columns that were judged are named.

Methods at strengths by price come first: a table is judged by these where all its columns have them. Where one strength
for all columns says something else, both figures are given. Rankings at strengths that were not chosen for each column
are undecided: they would compare how methods were tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from forgetgauge.suites.data_claims import difficulty_claim, sentences_claim
from forgetgauge.suites.findings import PRIVATE, Findings, Stored, private_models
from forgetgauge.suites.level_claims import (
    accuracy_claim,
    falling_claim,
    grounding_claim,
    replicates_claim,
    rising_accuracy_claim,
    rival_claim,
)
from forgetgauge.suites.ranking_claims import (
    best_claim,
    ranking_claim,
    rival_ranking_claim,
    small_predicts_large,
)
from forgetgauge.suites.removal_claims import removal_claim
from forgetgauge.suites.verdicts import Claim

RANKINGS = {
    "table1": (
        "Methods rank alike at every size of the data",
        "the relative ranking … remains consistent across sizes",
    ),
    "table2": (
        "Methods rank alike at every α",
        "the relative ranking … remains largely consistent across varying α values",
    ),
    "table3": ("Methods rank alike at every ε", "maintains a consistent relative ranking … among different ε"),
    "table6": ("Methods rank alike in every architecture", "stays mostly consistent across different architectures"),
    "table7": ("Methods rank alike on every data set", "the consistency we have observed throughout this section"),
}
RIVALS = {
    "table4a": (
        "The IC score is not lower the larger ε is",
        "the IC test fails to produce a negatively correlated evaluation result with ε",
    ),
    "table4b": ("The MIA score is not lower the larger ε is", "MIA AUC also fails to produce a similar trend"),
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
BEST = "our metric suggests that SSD significantly outperforms other unlearning methods"
ACCURACIES = {
    "none": "With the full dataset, the model achieved an accuracy of 85.34 %",
    "flip-crop": "After incorporating data augmentation, the accuracy further improved to 91.13 %",
}


def claims(found: Findings) -> list[Claim]:
    """All of them; of a table at several scales that with most columns counts."""
    private = {table: private_models(found, table) for table in PRIVATE}

    def ranked(table: str, statement: tuple[str, str]) -> Claim:
        larger = found.larger(table)
        if table in private:
            return ranking_claim(*statement, table, private[table])
        return _either(found, table, lambda stored: ranking_claim(*statement, table, stored, larger))

    return [
        _either(found, "table1", lambda sizes: grounding_claim([sizes, private["table3"]])),
        replicates_claim(found.replicates),
        *(ranked(table, statement) for table, statement in RANKINGS.items()),
        _either(found, "table1", small_predicts_large),
        best_claim("ssd", BEST, private["table3"]),
        difficulty_claim(
            found.stored.get(("table7", "paper")),
            found.stored.get(("table1", "paper")),
            (found.stored.get(("table7", "small")), found.stored.get(("table2", "small"))),
        ),
        _either(found, "table7", sentences_claim),
        falling_claim(private["table3"]),
        *(rival_claim(*statement, private[table]) for table, statement in RIVALS.items()),
        *(rival_ranking_claim(*statement, table, private[table]) for table, statement in RIVAL_RANKINGS.items()),
        rising_accuracy_claim([private[table] for table in ("table5a", "table5b")]),
        removal_claim(found.fullest("table8")),
        *(accuracy_claim(kind, words, found.accuracy) for kind, words in ACCURACIES.items()),
    ]


def _either(found: Findings, table: str, judge: Callable[[Stored | None], Claim]) -> Claim:
    """By what the table is judged by; where strengths of the other sort lead to another verdict, with their figure."""
    claim = judge(found.fullest(table))
    for other in found.otherwise(table):
        beside = judge(other)
        if beside.verdict != claim.verdict:
            figure = f"{claim.figure}; at {other.strengths}: {beside.verdict}, {beside.figure}"
            return replace(claim, figure=figure)
    return claim


def claim_rows(every: Sequence[Claim]) -> list[list[str]]:
    """Head and one row a claim."""
    rows = [["claim", "the paper", "verdict", "figure", "from"]]
    return [*rows, *([c.name, f"“{c.words}”", c.verdict, c.figure or "–", c.source or "–"] for c in every)]


def claim_rules(every: Sequence[Claim]) -> list[str]:
    """When each counts as confirmed; claims with the same rule in one line."""
    names: dict[str, list[str]] = {}
    for claim in every:
        names.setdefault(claim.rule, []).append(claim.name)
    return [f"{'; '.join(those)}: {rule}." for rule, those in names.items()]
