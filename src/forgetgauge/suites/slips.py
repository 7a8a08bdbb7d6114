"""Slips of the paper that a reader who compares should know of; its numbers are taken from its tables, not typed."""

from __future__ import annotations

from forgetgauge.suites.paper import PRINTED, Value, paper_table, table_name
from forgetgauge.wording import plain, signed


def slips() -> list[str]:
    """One paragraph each, in the order of the paper."""
    return [
        _settings_that_meet(),
        _share(),
        _private(),
        _ranking_of_ic(),
        _falls(),
        _within_error(),
        *_PROOFS,
        _sentences(),
    ]


def _at(table: str, method: str, column: str) -> str:
    return plain(paper_table(table).rows[method][column].mean)


def _settings_that_meet() -> str:
    pairs = [
        f"{PRINTED[row]} {_pm(paper_table('table1').rows[row]['1.0'])} and "
        f"{_pm(paper_table('table2').rows[row]['0.1'])}"
        for row in ("fisher", "retrain-final", "ft-final")
    ]
    return (
        "**Tables 1 and 2** meet at η = 1.0 and α = 0.1, which we take for one setting (Table 2 states no η), and "
        f"three of their six methods do not agree there: {', '.join(pairs)}. So no reproduction can match both, and "
        "rankings are the fairer comparison."
    )


def _pm(value: Value) -> str:
    return plain(value.mean) + ("" if value.spread is None else f" ± {plain(value.spread)}")


def _share() -> str:
    return (
        "**Section C.3** says that “only about 30 % of the full dataset remains available for training”. By the "
        "paper’s own definitions it is 45.5 %: half of the data, of which R ∪ F is 1/(1 + α) at α = 0.1. At α = 0.67, "
        "the largest of Table 2, it is 29.9 %; the paper has α = 0.1 unless it says otherwise."
    )


def _private() -> str:
    return (
        "**Section 4.3** takes a model trained with (ε, δ)-differential privacy for one with (ε, δ)-certified removal. "
        "That holds “for any training data point”, one at a time; Definition 3.4 wants it for every set F, and the "
        "games remove thousands of points at once. Nor does Theorem 3.5 say anything at the ε of Table 3: its bound "
        "on Q is negative once e^ε > 3. So Table 3 shows a trend; it does not test Theorem 3.5."
    )


def _ranking_of_ic() -> str:
    first, last = (
        f"{_at('table4a', 'none', column)} and {_at('table4a', 'neg-grad', column)}" for column in ("50", "inf")
    )
    return (
        "**Section 4.4, on the IC score**: “while None is better than NegGrad at ε = 50, this relative ranking is not "
        f"maintained at ε = ∞”. In Table 4 None and NegGrad have {first} at ε = 50 and {last} at ∞: NegGrad is better "
        "at both, and the ranking is maintained."
    )


def _falls() -> str:
    def step(table: str, row: str) -> str:
        return f"{PRINTED[row]} {_at(table, row, '150')} and {_at(table, row, '600')}"

    ic, mia = (
        ", ".join(step(table, row) for row in rows)
        for table, rows in (("table4a", ("retrain-final", "ft-final")), ("table4b", ("neg-grad", "fisher")))
    )
    return (
        "**Section 4.4, on falling scores**: that IC scores are higher at ε = 150 than at 600 "
        f"({ic}), and MIA scores too ({mia}), is given as a failure to correlate negatively with ε. Higher at the "
        "smaller ε is what a score that falls with ε does. The same rows rise from ε = 50 to 150, which makes the "
        f"point, as does the paper’s first example (IC of NegGrad at 50 and 150: {_at('table4a', 'neg-grad', '50')} "
        f"and {_at('table4a', 'neg-grad', '150')})."
    )


_PROOFS = [
    "**Section B.4, proof of Theorem 3.5**: the attack that says the opposite has the errors 1 − α and 1 − β, not “α "
    "and 1 − β”; what follows is right with the former. And β = Pr(m₂ ∈ B) is the probability of accepting H₁ when "
    "H₂ is true, not of “accepting H₂ when H₂ is false”.",
    "**Section B.6, proof of the toy example**: with Y = 1 for points of F the advantage of a split is Pr(Ŷ = 1 | Y = "
    "1) − Pr(Ŷ = 1 | Y = 0). The proof has the opposite sign, which |·| hides; and what a flipped prediction adds 1/3 "
    "to is the numerator, not “the denominator”. The values 0, 1/6 and 1/3 are right (see below).",
]


def _within_error() -> str:
    one, other = (paper_table("table4b").rows[row] for row in ("neg-grad", "fisher"))
    columns = ("50", "150", "600")
    apart = ", ".join(signed(round(one[column].mean - other[column].mean, 3)) for column in columns)
    error = max(rows[column].spread or 0.0 for rows in (one, other) for column in columns)
    return (
        "**Section 4.4, on the MIA score**: NegGrad “outperforms Fisher at ε = 50 and ε = 600”, “performs worse” at "
        f"150, “which is inconsistent”. In Table 4 NegGrad is above Fisher by {apart} at ε = 50, 150 and 600, where "
        f"all that the table says of the standard error of either number is that it is below {error:g}: such an order "
        f"may be chance’s. At ε = ∞ they are apart ({_at('table4b', 'neg-grad', 'inf')} and "
        f"{_at('table4b', 'fisher', 'inf')}), and the order is that of 150."
    )


def _sentences() -> str:
    rows = paper_table("table7").rows
    below = [row for row, cells in rows.items() if cells["SST5"].mean < cells["CIFAR100"].mean]
    each = ", ".join(
        f"{PRINTED[row]} {plain(rows[row]['SST5'].mean)} < {plain(rows[row]['CIFAR100'].mean)}" for row in below
    )
    cifar10 = [(table, paper_table(table).rows, column) for table, column in (("table1", "1.0"), ("table2", "0.1"))]
    against = " and ".join(
        f"{sum(cells['SST5'].mean < theirs[row][column].mean for row, cells in rows.items())} of {len(rows)} rows of "
        f"{table_name(table)}"
        for table, theirs, column in cifar10
    )
    return (
        "**Table 7**: its caption has Q on SST-5 above CIFAR-10; SST-5 lies below it in "
        f"{against} (η = 1.0, α = 0.1). The text has CIFAR-100 below SST-5, as it has SST-5 below MNIST; SST-5 is "
        f"below CIFAR-100 too, in {len(below)} of {len(rows)} rows: {each}."
    )
