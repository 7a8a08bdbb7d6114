"""The rooms of the source and who imports whom, read from the code: a table for docs/architecture.md, and a picture."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "forgetgauge"
ROW, NAMES, REACH = 34, 150, 17
"""Of the picture, in pixels: height of a row, width of the names, how far an arc goes aside for each row it spans."""
INK, LINE = "#1f2933", "#5b7a99"
EVERYWHERE = ("errors", "progress", "records", "streams", "version", "wording")
"""Small modules that any room may import; they are left out of the picture."""


@cache
def rooms() -> dict[str, list[Path]]:
    """Name -> its files: every package, and the modules beside them by their own names."""
    folders = [folder for folder in sorted(SOURCE.iterdir()) if (folder / "__init__.py").exists()]
    found = {folder.name: sorted(folder.rglob("*.py")) for folder in folders}
    for file in sorted(SOURCE.glob("*.py")):
        if not file.stem.startswith("__"):
            found[file.stem] = [file]
    return found


@cache
def imports() -> dict[str, set[str]]:
    """Room -> the rooms it imports when it is loaded or later, but for what only a type checker reads."""
    found: dict[str, set[str]] = {}
    for room, files in rooms().items():
        reached = {name for file in files for name in _imported(ast.parse(file.read_text("utf-8")))}
        found[room] = {name for name in reached if name in rooms() and name != room}
    return found


def _imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        waiting.extend(ast.iter_child_nodes(node))
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        found |= {name.split(".")[1] for name in names if name.startswith("forgetgauge.")}
    return found


def table() -> str:
    """One row a room: what it is for, which rooms it imports."""
    lines = ["| room | what it is for | imports |", "|---|---|---|"]
    reached = imports()
    for room, files in rooms().items():
        first = ast.get_docstring(ast.parse(files[0].read_text("utf-8"))) or ""
        purpose = first.split("\n\n")[0].replace("\n", " ")
        lines.append(f"| `{room}` | {purpose} | {', '.join(sorted(reached[room])) or '–'} |")
    return "\n".join(lines)


def picture() -> str:
    """Rooms from top to bottom, an arc to each that is imported and not reached through another one as well."""
    reached = {room: others - set(EVERYWHERE) for room, others in imports().items() if room not in EVERYWHERE}
    floor = _floors(reached)
    row = {room: place for place, room in enumerate(sorted(reached, key=lambda room: (-floor[room], room)))}
    arcs = [(room, other) for room in row for other in sorted(_direct(room, reached))]
    farthest = max(abs(row[other] - row[room]) for room, other in arcs)
    width, height = NAMES + REACH * farthest + 30, ROW * len(row) + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
            'aria-label="The rooms of the source, and which imports which">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker></defs>',
            *(_arc(row[room], row[other]) for room, other in arcs),
            *(_name(room, place) for room, place in row.items()),
            "</svg>\n",
        ]
    )


def _floors(reached: dict[str, set[str]]) -> dict[str, int]:
    """0 for what imports nothing, else one above the highest room that is imported; rooms of a cycle share theirs."""
    floor = dict.fromkeys(reached, 0)
    for _ in reached:
        for room, others in reached.items():
            below = [floor[other] for other in others if room not in reached[other]]
            floor[room] = max([floor[room], *(level + 1 for level in below)])
    return floor


def _direct(room: str, reached: dict[str, set[str]]) -> set[str]:
    """The rooms it imports that none of its other rooms reaches."""
    through = {far for near in reached[room] for far in _all_below(near, reached, {room})}
    return reached[room] - through


def _all_below(room: str, reached: dict[str, set[str]], seen: set[str]) -> set[str]:
    found: set[str] = set()
    for other in reached[room] - seen:
        found |= {other} | _all_below(other, reached, seen | {room})
    return found


def _arc(start: int, end: int) -> str:
    y1, y2 = ROW * start + 22, ROW * end + 14
    aside = NAMES + REACH * abs(end - start)
    return (
        f'<path d="M{NAMES} {y1} C{aside} {y1} {aside} {y2} {NAMES} {y2}" '
        f'fill="none" stroke="{LINE}" stroke-width="1.3" marker-end="url(#tip)"/>'
    )


def _name(room: str, place: int) -> str:
    return (
        f'<text x="{NAMES - 10}" y="{ROW * place + 23}" text-anchor="end" fill="{INK}" '
        f'font-family="system-ui, sans-serif" font-size="16">{room}</text>'
    )
