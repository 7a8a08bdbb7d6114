"""The result as one HTML file: it loads nothing, runs nothing, and the same result gives the same bytes.

Sentences are made in `verdict`, positions in `picture`, markup in `report.html.j2`. Every number shown stands in
the result, or is 1 minus one that does. All names are escaped by the template engine, whoever chose them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import jinja2

from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.records import as_stored
from forgetgauge.report.certificates import FACTS_EXPLAINED, HEADS, certificates, claimed_delta, facts_table, legend
from forgetgauge.report.downloads import downloads_of
from forgetgauge.report.leaks import PartView, RocView, StrongView, part_views, played_by_all, roc_view, strong_view
from forgetgauge.report.meaning import forget_set
from forgetgauge.report.perplexity import EXPLAINED as PERPLEXITY_EXPLAINED
from forgetgauge.report.perplexity import PerplexityTable, perplexity_table
from forgetgauge.report.picture import (
    Estimate,
    Overview,
    Scale,
    advantage_scale,
    markers_of,
    overview,
    quality_scale,
)
from forgetgauge.report.settings import ACCURACIES, settings_of
from forgetgauge.report.side_by_side import Check, Metric, checks_of, on_order, reading, shown_metrics, sweep_checks
from forgetgauge.report.strengths import (
    frontier_rows,
    is_frontier,
    map_headline,
    map_legend,
    map_of,
    price_line,
    strength_note,
    without_variants,
)
from forgetgauge.report.table import why_no_quality
from forgetgauge.report.thumbnails import ShownPoints
from forgetgauge.results.record import (
    GameResult,
    MethodResult,
    Result,
    by_quality,
    lacks_pairs,
    pairs_behind,
    rests_on_draw,
    role_of,
)
from forgetgauge.results.utility import lost_accuracy, points
from forgetgauge.results.verdict import Verdict, known_methods, level_of, sweep_verdict, verdict
from forgetgauge.wording import (
    bound,
    bracket,
    count,
    interval_basis,
    listed,
    p_value,
    percent,
    plain,
    seconds,
    setting,
    shortened,
    signed,
    signed_bracket,
)

DIGEST = "\n<!-- SHA-256 of all lines before this one: "
_HEAT_LEVELS = 5
_LEAST_HOT = 0.1  # the strongest tint stands for this advantage at least, so that small ones never look large


def render_report(result: Result, points: Mapping[int, list[ShownPoints]] = MappingProxyType({})) -> str:
    """The whole page; deterministic, self-contained, without a script. Its last line is the digest of the others.

    `points` are those that each game's models show most, by its number: private data, on the page only if given.
    """
    result = as_stored(result)
    frontier, whole = _frontier(result), result
    result = without_variants(result) if frontier is not None else result
    page = template("report.html.j2").render(
        result=result,
        frontier=frontier,
        markers=markers_of(result),
        downloads=downloads_of(whole, result, points),
        points=points,
        has_pictures=any(one.picture for each in points.values() for shown in each for one in shown.thumbnails),
        games=[_view(number, game, result) for number, game in enumerate(result.games)],
        overview=_overview(result),
        sweep_verdict=sweep_verdict(result),
        facts=_facts(result),
        methods=_methods(result),
        shortfalls=[line for game in result.games for line in _shortfalls(game, result.sweep)],
        settings=settings_of(result),
        adversaries=_adversaries(result.games),
        min_pairs=MIN_PAIRS,
        certificates=certificates(result),
        certificate_heads=HEADS,
        certificate_legend=" ".join(legend(result)),
        claimed_delta=claimed_delta(result),
        facts_table=facts_table(result),
        perplexity_explained=PERPLEXITY_EXPLAINED,
        facts_legend=FACTS_EXPLAINED,
        sweep_checks=sweep_checks(result) if result.sweep is not None else [],
        on_order=on_order(result),
        reading=reading,
    )
    return with_digest(page)


def with_digest(page: str) -> str:
    """The page and, as its last line, the digest of the others."""
    return f"{page}{DIGEST}{hashlib.sha256(page.encode()).hexdigest()} -->\n"


def is_unchanged(page: bytes) -> bool:
    """Whether a page is as it was written."""
    before, seal, after = page.rpartition(DIGEST.encode())
    return bool(seal) and after == f"{hashlib.sha256(before).hexdigest()} -->\n".encode()


@cache
def template_of(room: str, name: str, **filters: Callable[..., object]) -> jinja2.Template:
    """A template in the folder of `report` or of `suites`; whatever is put into it is escaped, but in Markdown."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("forgetgauge", room),
        autoescape=not name.endswith(".md.j2"),  # noqa: S701 - HTML is escaped, Markdown is no HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name)


def template(name: str) -> jinja2.Template:
    """A page of this folder, with the filters that write numbers and names."""
    return template_of(
        "report", name,
        plain=plain, signed=signed, bracket=bracket, signed_bracket=signed_bracket, p_value=p_value, percent=percent,
        forget_set=forget_set, count=count, seconds=seconds, setting=setting, listed=listed, bound=bound, points=points,
        why_no_quality=why_no_quality, rests_on_draw=rests_on_draw,
        interval_basis=interval_basis, cut=shortened,
    )  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """One method against another: Q of the row minus Q of the column."""

    other: str
    difference: float
    interval: tuple[float, float]
    verdict: str
    """`better`, `worse` or `not settled`, said of the row."""


@dataclass(frozen=True)
class Differences:
    """Every two methods once: an upper triangle, highest Q first."""

    columns: list[str]
    rows: list[tuple[str, list[Difference | None]]]
    """Each row stands against the methods after it; None where the two were not compared."""


@dataclass(frozen=True)
class ShownFrontier:
    """Every method along its strength."""

    headline: str
    axis: str
    picture: Overview | None
    legend: str
    rows: list[list[str]]
    """Head first."""
    price: str | None
    """What the strengths chosen by price came to, where the page has not said so above."""


def _frontier(result: Result) -> ShownFrontier | None:
    """Of a run that played methods along their strengths, which is of one game."""
    game = result.games[0]
    if len(result.games) > 1 or not is_frontier(game):
        return None
    drawn = map_of(game)
    picture, n_left = drawn or (None, 0)
    is_told = price_line(without_variants(result).games[0]) is not None
    price = None if is_told else price_line(game)
    return ShownFrontier(
        map_headline(game), game.utility_name, picture, map_legend(game, n_left), frontier_rows(game), price
    )


@dataclass(frozen=True)
class ShownGame:
    """One game as the template shows it."""

    number: int
    """From 0."""
    title: str
    """`key = value` in a sweep, else empty."""
    game: GameResult
    verdict: Verdict
    rows: list[tuple[str, MethodResult]]
    """Highest Q first."""
    roles: dict[str, str]
    """Method -> `retrain`, `none` or `tested`."""
    lost: dict[str, float]
    """Accuracy that a method cost, if over a point."""
    lacking: dict[str, str]
    """Method -> `1 of 6`, of those that have a Q but not of all pairs."""
    adversaries: list[str]
    accuracies: dict[str, str]
    """Key -> column head, for those that were measured."""
    perplexity: PerplexityTable | None
    """Of language models."""
    quality: Scale
    advantage: Scale
    heat_top: float
    """The |advantage| of the strongest tint."""
    level: str
    differences: Differences | None
    strong: StrongView | None
    has_diagnostics: bool
    rivals: list[Metric]
    """Q and the metrics set beside it; empty where none was asked for."""
    checks: list[Check]
    strengths: dict[str, str]
    """Method -> how its strength was set, where that is to be said."""
    price: str | None
    """How strengths were chosen, where they were."""
    roc: RocView | None
    parts: list[PartView]

    def heat(self, method: MethodResult, advantage: float) -> int:
        """0 where chance alone may give as much, else 1 … 5."""
        if abs(advantage) <= (method.noise_floor or 0.0):
            return 0
        return max(1, min(_HEAT_LEVELS, round(_HEAT_LEVELS * abs(advantage) / self.heat_top)))


def _view(number: int, game: GameResult, result: Result) -> ShownGame:
    return ShownGame(
        number=number,
        title="" if result.sweep is None else f"{result.sweep} = {setting(game.value)}",
        game=game,
        verdict=verdict(game),
        rows=by_quality(game.methods),
        roles={name: role_of(game, name) for name in game.methods},
        lost=lost_accuracy(game),
        lacking={
            name: pairs_behind(game, method)
            for name, method in game.methods.items()
            if method.quality is not None and lacks_pairs(game, method)
        },
        adversaries=_adversaries([game]),
        accuracies={
            key: head for key, head in ACCURACIES.items() if any(key in m.utility for m in game.methods.values())
        },
        perplexity=perplexity_table(game),
        quality=quality_scale(_least(result.games)),
        advantage=advantage_scale(_each_advantage(result.games)),
        heat_top=max([_LEAST_HOT, *(abs(a.advantage) for other in result.games for a in played_by_all(other))]),
        level=level_of(game),
        differences=_differences(game),
        strong=strong_view(game),
        has_diagnostics=any(found.diagnostics for found in played_by_all(game)),
        rivals=shown_metrics([game]),
        checks=checks_of(game),
        strengths={name: strength_note(game, name) for name in game.methods},
        price=price_line(game),
        roc=roc_view(game),
        parts=part_views(game),
    )


def _differences(game: GameResult) -> Differences | None:
    compared = {name for found in game.comparisons for name in (found.first, found.second)}
    names = [name for name, _ in by_quality(game.methods) if name in compared]
    if len(names) < 2:
        return None
    rows = [(name, [_difference(game, name, other) for other in names[i + 1 :]]) for i, name in enumerate(names[:-1])]
    return Differences(names[1:], rows)


def _difference(game: GameResult, row: str, column: str) -> Difference | None:
    """The comparison of the two, turned round where it was made the other way."""
    settled = {row: "better", column: "worse", None: "not settled"}
    for found in game.comparisons:
        low, high = found.interval
        if (found.first, found.second) == (row, column):
            return Difference(column, found.difference, (low, high), settled[found.better])
        if (found.first, found.second) == (column, row):
            return Difference(column, -found.difference, (-high, -low), settled[found.better])
    return None


def _adversaries(games: Iterable[GameResult]) -> list[str]:
    """All that were declared or have played, each once."""
    names: dict[str, None] = {}
    for game in games:
        names.update(dict.fromkeys(game.spec.get("adversaries", {})))
        for method in game.methods.values():
            names.update(dict.fromkeys(method.by_adversary))
    return list(names)


def _least(games: Iterable[GameResult]) -> Iterable[float]:
    """The ends that the axis of Q must reach, the same for all games so that they compare."""
    for game in games:
        yield from (end for method in known_methods(game) for end in (method.low, method.quality))
        yield from (method.quality_plugin for method in game.methods.values() if method.quality_plugin is not None)
        if game.noise_floor is not None:
            yield 1 - game.noise_floor.q95


def _each_advantage(games: Iterable[GameResult]) -> list[float]:
    found = [adversary for game in games for adversary in played_by_all(game)]
    return [value for adversary in found for value in (*adversary.by_pair, *adversary.interval, adversary.advantage)]


def _shortfalls(game: GameResult, sweep: str | None) -> list[str]:
    """Methods that completed fewer pairs than the game has."""
    pairs = game.spec.get("pairs")
    place = "" if sweep is None else f"{sweep} = {setting(game.value)}: "
    return [
        f"{place}{name} completed {method.n_pairs} of {pairs} pairs{_weaker(game, method)}."
        for name, method in game.methods.items()
        if pairs is not None and method.n_pairs < pairs
    ]


def _weaker(game: GameResult, method: MethodResult) -> str:
    """One basis is on record for a game, but a method that lost pairs may have fallen to the weaker one."""
    fell = method.interval_basis == "given these models" and game.interval_basis == "over pairs"
    return "; its intervals are for these models only" if fell else ""


def _overview(result: Result) -> Overview | None:
    """Q against the swept value, where the values are different numbers."""
    values = [game.value for game in result.games]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if result.sweep is None or not numbers or len(set(values)) < 2:
        return None
    return overview(values, {name: [_estimate(game, name) for game in result.games] for name in _methods(result)})


def _methods(result: Result) -> list[str]:
    return list(dict.fromkeys(name for game in result.games for name, _ in by_quality(game.methods)))


def _estimate(game: GameResult, name: str) -> Estimate | None:
    return next(((m.quality, m.low, m.high) for m in known_methods(game) if m.name == name), None)


def _facts(result: Result) -> list[str]:
    """The line under the title: what all games have in common."""
    n_adversaries = len(_adversaries(result.games))
    each = [
        {
            "data": game.spec.get("data", {}).get("name", ""),
            "alpha": f"α = {setting(game.spec['alpha'])}" if "alpha" in game.spec else "",
            "pairs": f"swap pairs: {game.spec['pairs']}" if "pairs" in game.spec else "",
        }
        for game in result.games
    ]
    common = [found for key, found in each[0].items() if found and all(other[key] == found for other in each)]
    sweep = [] if result.sweep is None else [f"sweep over {result.sweep}"]
    return [*common, f"adversaries: {n_adversaries}", *sweep]
