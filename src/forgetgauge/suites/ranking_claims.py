"""Claims about rankings: whether methods stand in the same order everywhere, and which of them is best.

They are judged by settings that were fixed in advance: those that the methods' authors published, which are nearest to
what the paper may have played. Beside it stands what strengths by price show, of the methods that forget without damage
at that price. Strengths that were chosen for another setting than the column's decide nothing: columns would differ by
how methods were tuned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from forgetgauge.results.record import GameResult
from forgetgauge.suites.claim import (
    APPROXIMATE,
    Claim,
    Holds,
    Statement,
    at_scale,
    by_interval,
    lacking,
    named,
    of_paper_scale,
    source_of,
)
from forgetgauge.suites.compare import beyond_price, damage_to, mean_tau_of_columns, over_none
from forgetgauge.suites.findings import Findings, Stored
from forgetgauge.suites.paper import PRINTED, in_column, paper_table
from forgetgauge.suites.rankings import ByMethod, Couples, Tau, bootstrap_tau, every_two
from forgetgauge.suites.strengths import METHOD_OF, PUBLISHED, TUNED
from forgetgauge.wording import counted, listed, tau_text

SAME_ORDER = 0.5
"""τ from which a ranking counts as the same: three of four couples of methods in the same order."""
LEAST_RANKED = 4
"""Methods that a ranking must have: two orders of three agree by chance in one case of six, of four in one of 24."""

_EXCHANGE = "and two methods change places, each order beyond chance"
_FIXED = "with the settings that the methods’ authors published"
_SAME = (
    f"yes where the interval (bootstrap over pairs) of the mean Kendall τ of {{}}, {_FIXED}, lies at {SAME_ORDER} or "
    f"above; no where it lies below {_EXCHANGE}. Strengths that were chosen for another setting leave it open"
)


def ranking_claim(name: str, words: str, stored: Stored | None, across: str) -> Claim:
    """The columns of one table rank the methods alike."""
    statement = Statement(name, f"rankings across {across}", words, _SAME.format("every two columns"))
    if stored is None:
        return statement.not_run
    return _by_tau(statement, stored, quality_columns(stored), every_two, across)


def small_predicts_large(stored: Stored | None) -> Claim:
    """The smaller columns of Table 1 rank the methods as the whole data set does."""
    statement = Statement(
        "Small data predict the ranking on all data",
        "the ranking by small data",
        "small-scale evaluations can reliably approximate large-scale performance",
        _SAME.format("each smaller η with η = 1.0"),
    )
    if stored is None or "1.0" in stored.comparison.not_run:
        return statement.not_run
    return _by_tau(statement, stored, quality_columns(stored), _with_last, "from small data to all")


def rival_ranking_claim(name: str, words: str, metric: str, stored: Stored | None) -> Claim:
    """The columns of a rival metric do not rank the methods alike."""
    statement = Statement(
        name,
        f"{metric.upper()} score",
        words,
        f"yes where the interval of the mean Kendall τ of every two columns, {_FIXED}, lies below {SAME_ORDER} "
        f"{_EXCHANGE}; no where it lies at {SAME_ORDER} or above with all six methods, since the paper’s examples are "
        "of NegGrad too",
    )
    if stored is None:
        return statement.not_run
    columns = score_columns(stored, metric)
    alike = _by_tau(statement, stored, columns, every_two, f"the {metric.upper()} score ranks methods alike at every ε")
    is_whole = all(len(column) == len(APPROXIMATE) for column in columns.values())
    holds = OPPOSITE.get(alike.holds, alike.holds)
    return replace(alike, holds="open" if holds == "no" and not is_whole else holds, short=alike.alike, alike="")


OPPOSITE: dict[Holds, Holds] = {"yes": "no", "no": "yes"}


def quality_columns(stored: Stored) -> dict[str, ByMethod]:
    """Of every column that was run the advantages by pair of the methods that are ranked."""
    rows = ranked_rows(stored)
    return {
        label: {METHOD_OF.get(m, m): stored.columns[label][m] for m in rows if m in stored.columns[label]}
        for label in stored.comparison.columns
        if label in stored.columns
    }


def score_columns(stored: Stored, metric: str) -> dict[str, ByMethod]:
    """Of every column 1 − the score by pair, (pairs, 1): ranked as advantages are, the highest score comes first."""
    rows, games = ranked_rows(stored), stored.games
    return {
        label: {
            METHOD_OF.get(m, m): 1 - np.array(games[label].methods[m].metrics[metric].by_pair)[:, None]
            for m in rows
            if m in games[label].methods and metric in games[label].methods[m].metrics
        }
        for label in stored.comparison.columns
        if label in games
    }


def ranked_rows(stored: Stored) -> list[str]:
    """The rows of a table that have settings of the methods' authors, where it has those; else all approximate ones."""
    if stored.comparison.published or not stored.by_price:
        return list(APPROXIMATE)
    return [PUBLISHED.get(method, method) for method in APPROXIMATE if method in PUBLISHED or method not in TUNED]


def _with_last(n_columns: int) -> Couples:
    return [(i, n_columns - 1) for i in range(n_columns - 1)]


def _by_tau(
    statement: Statement,
    stored: Stored,
    columns: dict[str, ByMethod],
    couples: Callable[[int], Couples],
    across: str,
) -> Claim:
    table, labels = stored.comparison, list(columns)
    missing = [in_column(table.variable, label) for label in table.columns if label not in labels]
    if len(labels) < 2:
        return statement.not_run
    is_fixed = stored.by_price or table.published
    settings = "published settings" if is_fixed else "strengths chosen for another setting"
    source = f"{source_of(stored, settings)}, {in_column(table.variable, listed(labels))}"
    tau = bootstrap_tau(list(columns.values()), couples(len(labels)))
    if tau is None or tau.interval is None:
        return statement.judged("open", f"there are too few pairs or methods to rank{lacking(missing)}", source)
    holds = by_interval(*tau.interval, SAME_ORDER) if is_fixed else "open"
    holds = "open" if missing or (holds == "no" and not tau.exchanged) else holds
    theirs, of_six = (paper_tau(table.name, those, labels, couples) for those in (tau.methods, APPROXIMATE))
    apart = [method for method in APPROXIMATE if method not in tau.methods]
    without = f", {named(apart)} apart" if apart else ""
    six = f" ({tau_text(of_six)} with all six)" if apart else ""
    harmed = harmed_in(stored)
    finding = (
        f"mean τ is {tau_words(tau)} for {counted(len(tau.methods), 'method')} with {settings}{without}, in the paper "
        f"{tau_text(theirs)}{six}{_kept(tau, harmed)}{_change(tau)}{_harm_words(harmed)}{_at_a_price(stored, couples)}"
    )
    alike = f"{across} (τ {tau_text(tau.value)}{at_scale(stored)})" if holds == "yes" else ""
    found = statement.judged(holds, finding + lacking(missing), source)
    return replace(found, alike=alike, harmed=tuple(harmed), only_harmed=_is_of(tau.kept, harmed))


def tau_words(tau: Tau) -> str:
    """`0.55 [0.33, 0.64]`."""
    ends = "" if tau.interval is None else f" [{tau_text(tau.interval[0])}, {tau_text(tau.interval[1])}]"
    return f"{tau_text(tau.value)}{ends}"


def _kept(tau: Tau, harmed: Container[str]) -> str:
    """`; 5 of 10 couples keep their order beyond chance in every column`, and whether that takes ruined models."""
    n = len(tau.methods) * (len(tau.methods) - 1) // 2
    whose = ", all with a method that damages models" if _is_of(tau.kept, harmed) else ""
    return f"; {len(tau.kept)} of {n} couples keep their order beyond chance in every column{whose}"


def _is_of(couples: Sequence[tuple[str, str]], harmed: Container[str]) -> bool:
    return bool(couples) and all(any(PRINTED[method] in harmed for method in couple) for couple in couples)


def _change(tau: Tau) -> str:
    """`; SSD and SalUn change places beyond chance`; of a ranking that holds only where some do."""
    if tau.interval is None or (tau.interval[0] >= SAME_ORDER and not tau.exchanged):
        return ""
    each = [f"{PRINTED[one]} and {PRINTED[other]}" for one, other in tau.exchanged]
    more = f" and {counted(len(each) - 3, 'other couple')}" if len(each) > 3 else ""
    return f"; {', '.join(each[:3]) or 'no two methods'}{more} change places beyond chance"


def harmed_in(stored: Stored) -> dict[str, int]:
    """Of the methods that are ranked, as the paper prints them, those that damage models -> in how many columns."""
    harmed = Counter(row for game in stored.games.values() for row in damage_to(game) if row in ranked_rows(stored))
    return {PRINTED[METHOD_OF.get(row, row)]: n for row, n in harmed.items()}


def _harm_words(harmed: Mapping[str, int]) -> str:
    """`; models are damaged by Fisher in 4 columns`."""
    each = [f"{method} in {counted(n, 'column')}" for method, n in harmed.items()]
    return f"; models are damaged by {listed(each)}" if each else ""


def _at_a_price(stored: Stored, couples: Callable[[int], Couples]) -> str:
    """What strengths by price show of a ranking, for the methods that forget without damage in every column."""
    if not stored.by_price:
        return ""
    counting = [m for m in APPROXIMATE if m not in left_out(stored)]
    if len(counting) < LEAST_RANKED:
        who = (
            f"only {named(counting)} {'forgets' if len(counting) == 1 else 'forget'}"
            if counting
            else "no method forgets"
        )
        return f"; at a price of one point {who} without damage in every column, too few to rank"
    columns = [{m: a for m, a in stored.columns[label].items() if m in counting} for label in stored.columns]
    tau = bootstrap_tau(columns, couples(len(columns)))
    return "" if tau is None else f"; of {named(tau.methods)} at a price of one point {tau_words(tau)}"


def left_out(stored: Stored) -> set[str]:
    """Methods that somewhere are not above None beyond chance, damage their models, or kept no price: these change
    places by their strength, which is nobody's claim."""
    games = stored.games.values()
    idle = {
        m for game in games for m, gain in over_none(game).items() if gain.interval is None or gain.interval[0] <= 0
    }
    return idle | {m for game in games for m in (*damage_to(game), *beyond_price(game))}


def paper_tau(
    table: str, methods: Sequence[str], labels: Sequence[str], couples: Callable[[int], Couples] = every_two
) -> float | None:
    """Mean τ of the paper's numbers, which have no pairs, over these methods and columns: those that ours has."""
    rows = paper_table(table).rows
    columns = [{row: rows[row][label].mean for row in methods} for label in labels]
    return mean_tau_of_columns(columns, couples(len(columns)))


BEST = "our metric suggests that SSD significantly outperforms other unlearning methods"


def best_claim(found: Findings) -> Claim:
    """SSD has the highest Q of the approximate methods, in the tables that the paper says it of or shows it in."""
    statement = Statement(
        "SSD is the best method",
        "which method is best",
        BEST,
        f"yes where in every column of Tables 1 to 3, {_FIXED}, the Q of SSD is higher than that of each other method, "
        "by the interval of their difference pair by pair; no where in more than half of the columns another is higher",
    )
    games = list(_with_ssd(found))
    if not games:
        return statement.not_run
    columns = [_against_ssd(stored, game) for stored, game in games]
    n, n_idle = len(columns), sum(column.pop("none", None) != "ssd" for column in columns)
    higher = Counter(method for column in columns for method, better in column.items() if better == method)
    n_played, n_won = (sum(map(count, columns)) for count in (len, lambda column: [*column.values()].count("ssd")))
    n_beaten = sum(any(better == method for method, better in column.items()) for column in columns)
    holds: Holds = "no" if 2 * n_beaten > n else "yes" if n_won == n_played > 0 else "open"
    who = listed([f"{PRINTED[method]} in {k}" for method, k in higher.most_common()]) or "none"
    aside = of_paper_scale([stored.comparison.scale for stored, _ in games])
    finding = (
        f"with published settings SSD is above another method in {n_won} of {counted(n_played, 'comparison')}; of "
        f"{counted(n, 'column')}{aside} above SSD beyond chance are {who}; SSD is not above None beyond chance in "
        f"{n_idle}{_first_at_a_price([game for stored, game in games if stored.by_price])}"
    )
    place = f"beats None beyond chance in no column of {n}"
    place = place if n_idle == n else f"is beaten by another one in {n_beaten} of {n} columns"
    short = f"SSD as published, the paper’s best method, {place}{aside}"
    return statement.judged(holds, finding, "Tables 1 to 3", short)


def _with_ssd(found: Findings) -> Iterator[tuple[Stored, GameResult]]:
    """Every game with published settings, once: one may stand in two tables."""
    seen: set[tuple[tuple[float, ...], ...]] = set()
    for stored in (one for name in ("table1", "table2", "table3") for one in found.every(name)):
        is_fixed = stored.by_price or stored.comparison.published
        for game in stored.games.values() if is_fixed else ():
            ssd = game.methods.get(_published_rows(stored)["ssd"])
            models = tuple(tuple(one.by_pair) for one in ssd.by_adversary.values()) if ssd else ()
            if models and models not in seen:
                seen.add(models)
                yield stored, game


def _published_rows(stored: Stored) -> dict[str, str]:
    """Method -> its row with published settings; None's too."""
    return {METHOD_OF.get(row, row): row for row in (*ranked_rows(stored), "none")}


def _against_ssd(stored: Stored, game: GameResult) -> dict[str, str | None]:
    """Method -> which of it and SSD has the higher Q beyond chance, with published settings."""
    rows = _published_rows(stored)
    names = {row: method for method, row in rows.items()}
    better = {frozenset((one.first, one.second)): one.better for one in game.comparisons}
    pairs = {m: better.get(frozenset((row, rows["ssd"])), "") for m, row in rows.items() if m != "ssd"}
    return {m: won and names[won] for m, won in pairs.items() if won != ""}


def _first_at_a_price(games: Sequence[GameResult]) -> str:
    """In how many games by price SSD has the highest Q, and what that is worth."""

    def quality(game: GameResult, method: str) -> float:
        return (game.methods[method].quality_plugin or 0.0) if method in game.methods else 0.0

    first = [game for game in games if max(APPROXIMATE, key=lambda method: quality(game, method)) == "ssd"]
    harmed = sum("ssd" in damage_to(game) for game in first)
    share = "all" if harmed == len(first) else harmed or "none"
    ranked = f"its Q is the highest in {len(first)} of {counted(len(games), 'column')}"
    return f"; at a price of one point {ranked}, in {share} of which it damages its models" if first else ""
