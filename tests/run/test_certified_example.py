"""The certified examples as a user runs them, at a size of seconds: claims, bounds and measurements side by side."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["certified-digits.toml", "certified-mnist.toml"]
VALUES = [0.8, 0.6, 0.4, 0.3]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_sweep_the_papers_epsilons_at_its_delta(name):
    raw = tomllib.loads((EXAMPLES / name).read_text())
    assert raw["sweep"] == {"key": "unlearners.certified-removal.epsilon", "values": VALUES}
    assert raw["game"]["delta"] == raw["unlearners"]["certified-removal"]["delta"] == 1e-4


def test_the_embedded_example_shows_each_claim_beside_what_was_measured(call, tmp_path):
    small = ["game.pairs=5", "shadows.count=2", "shadows.references=4"]
    options = [part for setting in small for part in ("--set", setting)]
    command = ["run", EXAMPLES / NAMES[0], "--out", tmp_path, "--quiet", "--executor", "inline"]
    code, said, error = call(*command, *options)
    assert code == 0, error
    games = json.loads((tmp_path / "result.json").read_text())["games"]
    facts = [game["methods"]["certified-removal"]["facts"] for game in games]
    assert [found["claimed_epsilon"] for found in facts] == pytest.approx(VALUES)
    budgets = [found["budget"] for found in facts]
    assert budgets == pytest.approx([3 * epsilon / 4.3854 for epsilon in VALUES], rel=1e-4)
    assert len({found["residual_bound"] for found in facts}) == 1  # one path, cut at each budget
    retrained = [found["retrainings"] for found in facts]
    assert retrained == sorted(retrained)
    assert retrained[0] == 0 < retrained[-1]
    for text in (said, (tmp_path / "report.html").read_text()):
        assert "tight bound" in text
        assert "0.551" in text  # 1 − (1 − 2δ)e^−0.8
        assert "0.760" in text  # the paper's
