"""The result as plain text: one row per method, best first, and a line on how to read it."""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.report.result import GameResult, MethodResult, Result


def render_table(result: Result) -> str:
    """One table, or one for each value of a sweep."""
    blocks = []
    for game in result.games:
        if result.sweep is not None:
            blocks.append(f"{result.sweep} = {game.value}")
        blocks.append(_game_table(game))
    if result.failures:
        blocks.append("\n".join(f"failed: {failure.job}: {failure.error}" for failure in result.failures))
    return "\n\n".join(blocks)


def by_quality(methods: dict[str, MethodResult]) -> list[tuple[str, MethodResult]]:
    """Best first; methods without a single completed pair last."""
    return sorted(methods.items(), key=lambda item: (item[1].quality is None, -(item[1].quality or 0), item[0]))


def _game_table(game: GameResult) -> str:
    level = f"{100 * game.spec['level']:g} %"
    shown = [
        name
        for name in ("retain", "forget", "unseen", "test")
        if any(name in m.accuracy for m in game.methods.values())
    ]
    header = ["method", "Q", f"{level} interval", "adversary", *(f"acc {name}" for name in shown), "s/model"]
    rows = [[name, *_cells(method, shown)] for name, method in by_quality(game.methods)]
    lines = [align([header, *rows])]
    if game.noise_floor is not None:
        lines.append(
            f"Q = 1: nothing left to see. Chance alone gives Q ≥ {1 - game.noise_floor.q95:.3f} "
            f"(95 % of relabellings, {game.noise_floor.method}). Intervals: {game.interval_basis}."
        )
    return "\n".join(lines)


def _cells(method: MethodResult, accuracies: Sequence[str]) -> list[str]:
    utility = [f"{method.accuracy[name]:.3f}" if name in method.accuracy else "–" for name in accuracies]
    if method.quality is None or method.interval is None or method.adversary is None:
        return ["–", "no pair completed", "–", *utility, f"{method.seconds:.2f}"]
    low, high = method.interval
    return [f"{method.quality:.3f}", f"[{low:.3f}, {high:.3f}]", method.adversary, *utility, f"{method.seconds:.2f}"]


def align(rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart, all flush left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
