"""The report on a phone and on paper, as Chromium lays it out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from forgetgauge.report.html import render_report
from forgetgauge.results.record import read_result

ROOT = Path(__file__).parents[2]
STORED = ["certified-digits", "rivals-digits", "reproduce/paper/strengths"]
PROBE = """<script>addEventListener("load", () => {
  const inside = document.documentElement;
  parent.postMessage(`${inside.scrollWidth} of ${inside.clientWidth}`, "*");
})</script></body>"""
FRAME = """<pre id="said"></pre><script>addEventListener("message", event => {
  document.getElementById("said").textContent = `said: ${event.data}.`;
})</script><iframe src="page.html" width="%d" height="900"></iframe>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="platform: Chromium is not installed"),
]


def chromium(folder: Path, *arguments: str) -> str:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run([*command, profile, *arguments], check=True, capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.mark.parametrize("width", [360, 400])
@pytest.mark.parametrize("name", STORED)
def test_the_page_is_as_wide_as_a_phone(tmp_path, name, width):
    page = render_report(read_result(ROOT / "results" / name / "result.json"))
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # which forbids to measure by script
    (tmp_path / "page.html").write_text(page.replace("</body>", PROBE), "utf-8")
    (tmp_path / "frame.html").write_text(FRAME % width, "utf-8")
    shown = chromium(tmp_path, "--virtual-time-budget=4000", "--dump-dom", (tmp_path / "frame.html").as_uri())
    needed, there = map(int, re.search(r"said: (\d+) of (\d+)\.", shown).groups())
    assert 300 < there <= width
    assert needed == there
