"""The result as plain text: one row per method, highest Q first, and a line on how to read it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forgetgauge.report.certificates import HEADS, Certificate, certificates, claimed_delta, legend, spent_budget
from forgetgauge.report.meaning import forget_set
from forgetgauge.report.perplexity import EXPLAINED as PERPLEXITY
from forgetgauge.report.perplexity import perplexity_table
from forgetgauge.report.side_by_side import check_rows, on_order, score_rows, sweep_rows
from forgetgauge.report.strengths import price_line
from forgetgauge.results.record import (
    GameResult,
    MethodResult,
    Result,
    WorstPairResult,
    by_quality,
    lacks_pairs,
    pairs_behind,
    rests_on_draw,
)
from forgetgauge.results.silence import silence_lines
from forgetgauge.results.utility import uneven_accuracy
from forgetgauge.results.verdict import losses, no_controls, verdict_lines, warnings_of
from forgetgauge.wording import bound, intervals_are_for, listed

BY_CHANCE = " (in brackets: chance alone stays above this in 95 % of cases)"


def render_table(result: Result) -> str:
    """One table, or one for each value of a sweep."""
    blocks = []
    for game in result.games:
        if result.sweep is not None:
            blocks.append(f"{result.sweep} = {game.value}")
        blocks += [_game_table(game), *_perplexity(game), *_rivals(game)]
    if rows := sweep_rows(result):
        blocks.append("\n".join(filter(None, [f"over {result.sweep}", align(rows), on_order(result)])))
    if claims := certificates(result):
        rows = [list(HEADS), *(_claim_cells(claim) for claim in claims)]
        title = f"claimed (ε, δ)-certified removal, and the advantage measured, {claimed_delta(result)}"
        blocks.append("\n".join([title, align(rows), *legend(result)]))
    if result.failures:
        blocks.append("\n".join(causes([(failure.job, failure.error) for failure in result.failures])))
    return "\n\n".join(blocks)


def causes(failed: Sequence[tuple[str, str]]) -> list[str]:
    """A line for each kind of failure."""
    return [
        f"failed: {what}: {error} ({len(jobs)} jobs, the first of them: {jobs[0]})"
        if len(jobs) > 1
        else f"failed: {jobs[0]}: {error}"
        for what, error, jobs in failed_alike(failed)
    ]


_NUMBERS = re.compile(r"(?<!code )(?<!signal )(?<!Errno )(?<!GPU )\b\d[\d.]*(?: [KMG]iB)?")
"""In the words of an error, but for those that say which error it is."""


def failed_alike(failed: Sequence[tuple[str, str]]) -> list[tuple[str, str, list[str]]]:
    """(job in words, error) of all jobs that failed -> what was done, the first such error, the jobs. Errors are alike
    that differ in numbers alone, as what is said of full memory does."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for job, error in failed:
        what = re.split(r"(?:,| of) (?:pair|shadow|reference|confused) \d| \d+$", job)[0]
        alike.setdefault((what, _NUMBERS.sub("", error)), []).append((job, error))
    return [(what, those[0][1], [job for job, _ in those]) for (what, _), those in alike.items()]


def why_no_quality(method: MethodResult) -> str:
    """Why a method has no Q."""
    return "nothing measured" if method.n_pairs else "no pair completed"


def _game_table(game: GameResult) -> str:
    level = f"{100 * game.spec['level']:g} %"
    shown = [
        name
        for name in ("retain", "forget", "unseen", "test", "outside")
        if any(name in m.utility for m in game.methods.values())
    ]
    short = "acc" if game.utility_name == "accuracy" else game.utility_name
    accuracies = [f"{short} {name}" for name in shown]
    header = ["method", "Q", f"{level} interval", "pairs", "worst pair", "ε ≥", "adversary", *accuracies, "s/model"]
    rows = [[name, *_cells(game, method, shown)] for name, method in by_quality(game.methods)]
    lines = [align([header, *rows])]
    lines += verdict_lines(game)
    lines += [line for line in (price_line(game), forget_set(game.spec)) if line is not None]
    reading = []
    if game.noise_floor is not None:
        reading.append(
            "Q = 1: attackers see nothing. Where there is nothing to see, chance keeps Q above "
            f"{1 - game.noise_floor.q95:.3f} in 95 % of cases."
        )
    if game.interval_basis is not None:
        reading.append(intervals_are_for(game.interval_basis, game.spec.get("interval", "student")))
    lines += [*reading, *silence_lines(game)]
    if worst := [method.worst_pair for method in game.methods.values() if method.worst_pair is not None]:
        known = any(found.noise_floor is not None for found in worst)
        lines.append(
            f"Worst pair: Q of the pair in which an adversary saw most{BY_CHANCE * known}.\n"
            f"ε ≥: with {level} confidence, no certified removal of F can claim less.{rests_on_draw(game.spec)}"
        )
    told = (spent_budget(game), *losses(game), uneven_accuracy(game), *no_controls(game))
    lines += [line for line in told if line is not None]
    lines += [f"warning: {line}" for line in warnings_of(game)]
    lines += [f"not watched for changes: {line}" for line in game.not_covered]
    if any("is stated)" not in line for line in game.not_covered):
        lines.append(
            'If it changes, stored results are still used, unless you give the method version = "…" and raise it.'
        )
    lacking = [name for name, m in game.methods.items() if m.quality is not None and lacks_pairs(game, m)]
    if lacking:
        lines.append(f"No verdict on {listed(lacking)}: pairs are missing.")
    weaker = [name for name, m in game.methods.items() if m.interval_basis not in (None, game.interval_basis)]
    if weaker:
        lines.append(f"Intervals of {listed(weaker)} are for these models only, since pairs are missing.")
    return "\n".join(lines)


def _perplexity(game: GameResult) -> list[str]:
    """Of language models, beside Q."""
    found = perplexity_table(game)
    return [] if found is None else ["\n".join([align([found.heads, *found.rows]), PERPLEXITY])]


def _rivals(game: GameResult) -> list[str]:
    """Q beside other metrics, and what each of them misses."""
    names = [name for name, _ in by_quality(game.methods)]
    return [align(rows) for rows in (score_rows(game, names), check_rows(game)) if rows]


def _cells(game: GameResult, method: MethodResult, accuracies: Sequence[str]) -> list[str]:
    utility = [f"{method.utility[name]:.3f}" if name in method.utility else "–" for name in accuracies]
    if method.quality is None or method.interval is None or method.adversary is None:
        return ["–", why_no_quality(method), pairs_behind(game, method), "–", "–", "–", *utility, _seconds(method)]
    low, high = method.interval
    found = [f"{method.quality:.3f}", f"[{low:.3f}, {high:.3f}]", pairs_behind(game, method)]
    bounds = [worst_pair(method.worst_pair), bound(method.epsilon)]
    return [*found, *bounds, method.adversary, *utility, _seconds(method)]


def worst_pair(found: WorstPairResult | None) -> str:
    """`0.871 (0.902)`: Q of the worst pair, and what chance gives."""
    if found is None:
        return "–"
    return f"{found.quality:.3f}" + ("" if found.noise_floor is None else f" ({1 - found.noise_floor:.3f})")


def _claim_cells(claim: Certificate) -> list[str]:
    """With the remark behind the last cell."""
    *cells, last = claim.cells
    return [*cells, f"{last}; {claim.remark}" if claim.remark else last]


def _seconds(method: MethodResult) -> str:
    return "–" if method.seconds is None else f"{method.seconds:.2f}"


def align(rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, all flush left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
