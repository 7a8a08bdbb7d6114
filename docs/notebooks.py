"""Runs the notebooks of docs/notebooks and writes what came out into them; makes a page of the site of each.

    python docs/notebooks.py [NAME …]

A cell is run as Python: its last expression is shown by `_repr_html_` or `repr`, unless a semicolon ends it, and so is
every matplotlib figure that it leaves open. Lines for the notebook itself (`%pip …`) are shown and not run. This needs
no kernel, and a test does the same (tests/docs/test_notebooks.py).
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
PIXELS = 90
"""Of an inch in a picture."""
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """A notebook as the file has it."""
    found: Notebook = json.loads(path.read_text("utf-8"))
    return found


def written(notebook: Notebook) -> str:
    """The text of its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def executed(notebook: Notebook, folder: Path = FOLDER) -> Notebook:
    """The same with the outputs of its cells, run one after another in that folder; the first error ends it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    _figures()  # one left open by other code is none of this notebook's
    with contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell = {**cell, "execution_count": count, "outputs": _outputs(source_of(cell), names, count)}
            cells.append(cell)
    return {**notebook, "cells": cells}


def source_of(cell: Notebook) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def is_magic(line: str) -> bool:
    """Whether a line is for the notebook and not Python."""
    return line.startswith(("%", "!"))


def _outputs(source: str, names: dict[str, Any], count: int) -> list[Notebook]:
    code = "\n".join("" if is_magic(line) else line for line in source.splitlines())
    tree = ast.parse(code)
    shows = bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";")
    last = ast.Expression(tree.body.pop().value) if shows else None  # type: ignore[attr-defined]
    printed = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    with contextlib.redirect_stdout(printed["stdout"]), contextlib.redirect_stderr(printed["stderr"]):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - our own notebooks
        value = None if last is None else eval(compile(last, "<cell>", "eval"), names)  # noqa: S307
    found = [
        {"output_type": "stream", "name": name, "text": text.getvalue().splitlines(keepends=True)}
        for name, text in printed.items()
        if text.getvalue()
    ]
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": _shown(value)}
        found.append(shown)
    return [*found, *({"output_type": "display_data", "metadata": {}, "data": data} for data in _figures())]


def _shown(value: Any) -> Notebook:
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    as_html = getattr(value, "_repr_html_", None)
    return data if as_html is None else {"text/html": as_html().splitlines(keepends=True), **data}


def _figures() -> list[Notebook]:
    """Those that are open, which are then closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in pyplot.get_fignums() if pyplot else []:
        figure, picture = pyplot.figure(number), io.BytesIO()
        figure.savefig(picture, format="png", dpi=PIXELS, bbox_inches="tight", metadata={"Software": None})
        pyplot.close(figure)
        plain = f"<Figure with {len(figure.axes)} axes>"
        found.append({"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": [plain]})
    return found


# -- as a page of the site -------------------------------------------------------------------------------------------


def page(notebook: Notebook, name: str) -> str:
    """Markdown: text as it is, code, and below it what came out."""
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(source_of(cell))
        else:
            parts.append(f"```python\n{source_of(cell)}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    parts.insert(1, f'This page is <a href="../{name}.ipynb">a notebook</a> with its outputs; a test runs it.')
    return "\n\n".join(parts) + "\n"


def _output(output: Notebook) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img class="output" alt="plot" src="data:image/png;base64,{data["image/png"]}">'
    if "text/html" in data:
        plain = re.sub(r"<style scoped>.*?</style>", "", "".join(data["text/html"]), flags=re.S)
        lines = plain.replace(' border="1" class="dataframe"', "").splitlines()  # tables as those of the site
        return "\n".join(['<div class="output">', *(line for line in lines if line.strip()), "</div>"])
    text = "".join(output.get("text") or data.get("text/plain", []))
    return f'<pre class="output">{html.escape(text)}</pre>'.replace("\n\n", "\n&nbsp;\n")


def main(names: list[str]) -> None:
    """Run those named, or all."""
    import matplotlib

    matplotlib.use("Agg")
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            path.write_text(written(executed(read(path))), "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1:])
