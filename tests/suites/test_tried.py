"""Where a statement of the paper does not hold or is open, what was tried stands in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetgauge.errors import UserError
from forgetgauge.suites.claims import all_of, claims
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.page import render_markdown, render_page
from forgetgauge.suites.tried import OPEN, read_tried, tried_lines
from tests.suites.test_summary import claim

RESULTS = Path(__file__).parents[2] / "results"


def test_an_entry_is_shown_for_its_open_claims_in_their_order(tmp_path):
    (tmp_path / "tried.md").write_text(
        "# Tried\n\n- **B; C**: This\n  and that.\n- **A**: More pairs.\n- **D**: Nothing.\n"
    )
    judged = [claim("A", "open"), claim("B", "yes"), claim("C", "no"), claim("D", "not run")]
    assert tried_lines(tmp_path, judged) == ["**A**: More pairs.", "**C**: This and that."]
    assert tried_lines(tmp_path / "nowhere", judged) == []


def test_a_bullet_without_names_is_one_line(tmp_path):
    (tmp_path / "tried.md").write_text("- More pairs.\n")
    with pytest.raises(UserError, match=r"tried.md: a bullet does not begin with names of claims in bold"):
        read_tried(tmp_path)


def test_every_open_claim_of_the_stored_results_has_an_entry_and_no_entry_names_another():
    judged = all_of(claims(read_findings(RESULTS)))
    named = [name for names in read_tried(RESULTS) for name in names]
    assert len(named) == len(set(named))
    assert (
        {one.statement.name for one in judged if one.holds in OPEN}
        <= set(named)
        <= {one.statement.name for one in judged}
    )


def test_the_page_shows_it_below_the_claims():
    found = read_findings(RESULTS)
    (first, *_) = tried_lines(RESULTS, all_of(claims(found)))
    page = render_markdown(found)
    assert page.index("### Accuracy") < page.index(f"- {first}") < page.index("## All tables")
    assert "<h3>What was tried where a statement does not hold or is open</h3>" in render_page(found)
