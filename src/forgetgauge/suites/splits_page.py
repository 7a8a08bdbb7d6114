"""The figure as an SVG file and the page around it: both load nothing, and the same record gives the same bytes."""

from __future__ import annotations

from functools import cache

import jinja2

from forgetgauge.suites.figure import LEFT, RIGHT, STRIP, WIDTH, panels
from forgetgauge.suites.splits_record import SwapVsRandom
from forgetgauge.suites.takeaway import table
from forgetgauge.wording import setting


def render_figure(found: SwapVsRandom) -> str:
    """The figure, black on white; filled dots are swap pairs, hollow ones random splits."""
    placed = panels(found)
    sizes = {"width": WIDTH, "left": LEFT, "right": RIGHT, "strip": STRIP, "height": round(placed[-1].bottom)}
    return _templates().get_template("swap_vs_random.svg.j2").render(found=found, panels=placed, **sizes)


def render_page(found: SwapVsRandom) -> str:
    """The page: takeaway, figure, how to read it, all numbers."""
    page = _templates().get_template("swap_vs_random.html.j2")
    return page.render(found=found, figure=render_figure(found), table=table(found))


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("forgetgauge.suites", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["setting"] = setting
    return environment
