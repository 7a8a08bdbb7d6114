"""What the paper says in words, judged by what is stored: confirmed, not confirmed, undecided, or not run.

A claim is confirmed only where an interval says so, and not confirmed only where an interval says the opposite. What
a rule names must all be there, methods and columns, or the claim is undecided; but one counterexample refutes what is
said of every method. Numbers at smoke scale, or from the embedded digits, count for none. Each claim's rule is stated
beside it; the bars are ours, since the paper gives none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import special

from forgetgauge.suites.accuracy_record import FullData, paper_accuracy
from forgetgauge.suites.claim import LEVEL, Claim, Verdict, counted, incomplete
from forgetgauge.suites.findings import EMBEDDED, Findings
from forgetgauge.suites.level_claims import difficulty_claim, falling_claim, rival_claim
from forgetgauge.suites.paper import PRINTED, paper_table
from forgetgauge.suites.ranking_claims import ranking_claim, scales_claim, small_predicts_large
from forgetgauge.suites.seeds import LEAST, SeedSpread
from forgetgauge.suites.spread import deviation_interval
from forgetgauge.wording import bracket, plain

NEAR = 0.01
"""How far an accuracy may be from the paper's."""

RANKINGS = {
    "table1": ("Ranking across sizes of the data set", "the relative ranking … remains consistent across sizes"),
    "table2": ("Ranking across α", "the relative ranking … remains largely consistent across varying α values"),
    "table3": ("Ranking across ε", "maintains a consistent relative ranking … among different ε"),
    "table6": ("Ranking across architectures", "stays mostly consistent across different architectures"),
    "table7": ("Ranking across data sets", "the consistency we have observed throughout this section"),
}
RIVALS = {
    "table4a": (
        "IC score does not fall with ε",
        "the IC test fails to produce a negatively correlated evaluation result with ε",
    ),
    "table4b": ("MIA score does not fall with ε", "MIA AUC also fails to produce a similar trend"),
}
ACCURACIES = {
    "none": "With the full dataset, the model achieved an accuracy of 85.34 %",
    "flip-crop": "After incorporating data augmentation, the accuracy further improved to 91.13 %",
}


def claims(found: Findings) -> list[Claim]:
    """All of them; of a table at several scales that with most columns counts."""
    return [
        seed_claim(found.seeds),
        *(ranking_claim(*told, table, found.fullest(table)) for table, told in RANKINGS.items()),
        small_predicts_large(found.fullest("table1")),
        scales_claim(found.stored),
        difficulty_claim(*(found.stored.get((table, "paper")) for table in ("table7", "table1"))),
        falling_claim(found.fullest("table3")),
        *(rival_claim(*told, found.fullest(table)) for table, told in RIVALS.items()),
        *(accuracy_claim(kind, words, found.accuracy) for kind, words in ACCURACIES.items()),
    ]


def seed_claim(found: SeedSpread | None) -> Claim:
    """Q of one split hardly moves when it is trained again."""
    printed = paper_table("table1").rows
    bar = max(cell.spread or 0.0 for row in printed.values() for cell in row.values())
    told = (
        "Robust to the random seed",
        "this test proves robust to changes in random seed",
        f"of every method of the paper’s Table 1 the deviation of Q over seeds is at most {plain(bar)}, the largest ± "
        "there (95 % intervals by χ²)",
    )
    if found is None or found.data in EMBEDDED or found.n_seeds < LEAST:
        return Claim(*told, "not run")
    spreads = {method: deviation_interval(found.deviation(method), found.n_freedom, LEVEL) for method in found.quality}
    worst = max(spreads, key=found.deviation)
    lows, highs = zip(*spreads.values(), strict=True)
    missing = [PRINTED[method] for method in printed if method not in found.quality]
    small = max(highs) <= bar and not missing
    verdict: Verdict = "confirmed" if small else "not confirmed" if max(lows) > bar else "undecided"
    each = ", ".join(f"{PRINTED.get(m, m)} {plain(found.deviation(m))}" for m in found.quality)
    largest = f"{PRINTED.get(worst, worst)} {plain(found.deviation(worst))} {bracket(spreads[worst])}"
    figure = f"largest: {largest}; {each}{incomplete(missing)}"
    source = f"{found.data}, {found.model}, α = {found.alpha}: {counted(found.n_pairs, 'pair')}, {found.n_seeds} seeds"
    return Claim(*told, verdict, figure, source)


def accuracy_claim(kind: str, words: str, found: FullData | None) -> Claim:
    """The paper's accuracy on all of CIFAR-10."""
    name = "Accuracy on all training images" + (", augmented" if kind == "flip-crop" else "")
    rule = f"our mean is within {100 * NEAR:g} point of it (Student’s t over models), trained by the paper’s recipe"
    trained = None if found is None or found.scale == "smoke" else found.kinds.get(kind)
    if found is None or trained is None:
        return Claim(name, words, rule, "not run")
    source = f"{found.data}, {found.scale} scale"
    mean, n = trained.mean, len(trained.accuracies)
    shown = f"{100 * mean:.2f} % over {counted(n, 'model')}"
    if n < 2:
        return Claim(name, words, rule, "undecided", f"{shown}; no interval", source)
    half = float(special.stdtrit(n - 1, (1 + LEVEL) / 2)) * trained.deviation / math.sqrt(n)
    ends = f"[{100 * (mean - half):.2f} %, {100 * (mean + half):.2f} %]"
    figure = f"{shown}, deviation {100 * trained.deviation:.2f} points, mean {ends}"
    if found.scale != "paper":
        return Claim(name, words, rule, "undecided", f"{figure}; another recipe than the paper’s", source)
    off = mean - paper_accuracy(kind)
    inside, outside = abs(off) + half <= NEAR, abs(off) - half > NEAR
    verdict: Verdict = "confirmed" if inside else "not confirmed" if outside else "undecided"
    return Claim(name, words, rule, verdict, figure, source)


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
