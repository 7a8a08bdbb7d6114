"""The notebooks of the docs run, give what they show, and the first of them is short."""

from __future__ import annotations

import pytest

from .fences import ROOT

NAMES = sorted(path.stem for path in (ROOT / "docs/notebooks").glob("*.ipynb"))


@pytest.fixture
def notebooks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import notebooks

    return notebooks


def kinds(cell):
    """What came out of a cell: streams by name, values by the forms they are shown in."""
    return [output.get("name") or sorted(output["data"]) for output in cell["outputs"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_gives_what_it_shows(name, notebooks):
    pytest.importorskip("matplotlib").use("Agg")
    shown = notebooks.read(notebooks.FOLDER / f"{name}.ipynb")
    again = notebooks.executed(shown)
    for before, after in zip(shown["cells"], again["cells"], strict=True):
        if before["cell_type"] == "code":
            assert kinds(after) == kinds(before), notebooks.source_of(before)
            if shown["metadata"]["forgetgauge"]["same_everywhere"]:
                assert [texts(output) for output in after["outputs"]] == [texts(output) for output in before["outputs"]]


def texts(output):
    """All but pictures, whose bytes depend on fonts."""
    return output.get("text"), {form: text for form, text in output.get("data", {}).items() if form != "image/png"}


def test_from_installation_to_a_table_and_a_plot_of_three_methods_in_under_ten_lines(notebooks):
    cells = [cell for cell in notebooks.read(notebooks.FOLDER / "first-look.ipynb")["cells"] if "outputs" in cell]
    code = [line for cell in cells for line in notebooks.source_of(cell).splitlines() if line.strip()]
    assert len(code) < 10
    assert code[0].startswith("%pip install")
    assert any("image/png" in kind for cell in cells for kind in kinds(cell))
    rows = "".join(cells[2]["outputs"][0]["data"]["text/html"])
    assert rows.count("<tr") == 4  # a head and three methods
    assert "<th>q</th>" in rows


def test_a_page_has_the_code_and_what_came_out_escaped(notebooks):
    cell = {"cell_type": "code", "source": ["print('<b>')\n", "1 + 1"], "outputs": []}
    made = notebooks.executed({"cells": [cell, {"cell_type": "code", "source": ["2;"], "outputs": []}]})
    assert [kinds(one) for one in made["cells"]] == [["stdout", ["text/plain"]], []]
    page = notebooks.page({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *made["cells"]]}, "mine")
    assert "&lt;b&gt;" in page
    assert '<pre class="output">2</pre>' in page
    assert page.startswith('# Title\n\nThis page is <a href="../mine.ipynb">a notebook</a>')


def test_an_error_in_a_cell_is_an_error(notebooks):
    with pytest.raises(ZeroDivisionError):
        notebooks.executed({"cells": [{"cell_type": "code", "source": ["1 / 0"], "outputs": []}]})


def test_a_figure_that_other_code_left_open_is_none_of_a_notebooks(notebooks):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    plt.figure()
    drawn = {"cell_type": "code", "source": ["import matplotlib.pyplot as plt\n", "plt.figure();"], "outputs": []}
    made = notebooks.executed({"cells": [{"cell_type": "code", "source": ["1;"], "outputs": []}, drawn]})
    assert [kinds(cell) for cell in made["cells"]] == [[], [["image/png", "text/plain"]]]
