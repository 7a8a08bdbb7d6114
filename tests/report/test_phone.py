"""The report on a phone and on paper, as Chromium lays it out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forgetgauge.report.comparison import render_comparison
from forgetgauge.report.html import render_report
from forgetgauge.results.record import read_result
from tests.report.test_html import leaking
from tests.report.test_leaks import points

ROOT = Path(__file__).parents[2]
STORED = ["certified-digits", "rivals-digits", "reproduce/paper/strengths"]
PROBE = """<script>addEventListener("load", () => {
  const inside = document.documentElement;
  parent.postMessage(`${inside.scrollWidth} of ${inside.clientWidth}`, "*");
})</script></body>"""
FRAMES = """<pre id="said"></pre><script>addEventListener("message", event => {
  document.getElementById("said").textContent += `said: ${event.data}.`;
})</script>"""
FRAME = '<iframe src="page.html" width="%d" height="900"></iframe>'
WIDTHS = (360, 400)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="platform: Chromium is not installed"),
]


def chromium(folder: Path, *arguments: str) -> str:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run([*command, profile, *arguments], check=True, capture_output=True, text=True, timeout=120)
    return done.stdout


def stored(name: str) -> str:
    return render_report(read_result(ROOT / "results" / name / "result.json"))


PAGES = {
    **{name: partial(stored, name) for name in STORED},
    "leaks": lambda: render_report(leaking(n_parts=40), {0: points(text="a long sentence " * 12)}),
    "comparison": lambda: render_comparison([("runs/a", leaking()), ("runs/another-name", leaking())]),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_as_wide_as_a_phone(tmp_path, name):
    page = PAGES[name]()
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # which forbids to measure by script
    (tmp_path / "page.html").write_text(page.replace("</body>", PROBE), "utf-8")
    (tmp_path / "frame.html").write_text(FRAMES + "".join(FRAME % width for width in WIDTHS), "utf-8")
    shown = chromium(tmp_path, "--virtual-time-budget=4000", "--dump-dom", (tmp_path / "frame.html").as_uri())
    said = [(int(needed), int(there)) for needed, there in re.findall(r"said: (\d+) of (\d+)\.", shown)]
    assert len(said) == len(WIDTHS)
    for (needed, there), width in zip(sorted(said, key=lambda pair: pair[1]), WIDTHS, strict=True):
        assert width - 60 < there <= width
        assert needed == there


class Browser:
    """Chromium, spoken to through a pipe: the page's own policy stays in force."""

    def __init__(self, folder: Path) -> None:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        (theirs_in, self.ours_out), (self.ours_in, theirs_out) = os.pipe(), os.pipe()

        def numbered() -> None:
            """It reads from 3 and writes to 4."""
            high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            preexec_fn=numbered,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.received = b""
        self.number = 0

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.ours_out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            pass
        return answer

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.received:
            read = os.read(self.ours_in, 2**20)
            assert read, "Chromium ended"
            self.received += read
        one, _, self.received = self.received.partition(b"\0")
        return dict(json.loads(one))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        os.close(self.ours_in)
        os.close(self.ours_out)


def test_the_data_behind_a_picture_is_downloaded_by_a_click_under_the_page_s_policy(tmp_path):
    page, kept = tmp_path / "page.html", tmp_path / "kept"
    page.write_text(render_report(leaking()), "utf-8")
    kept.mkdir()
    browser = Browser(tmp_path)
    try:
        browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(kept))
        target = browser.ask("Target.createTarget", url=page.as_uri())["result"]["targetId"]
        session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["result"]["sessionId"]
        asked = {
            "expression": "document.readyState == 'complete' ? document.querySelectorAll('a[download]').length : 0"
        }
        for _ in range(100):
            n_links = browser.ask("Runtime.evaluate", session, **asked)["result"]["result"].get("value", 0)
            if n_links:
                break
            time.sleep(0.1)
        assert n_links >= 4
        for name in ("roc.csv", "q-by-part.csv"):
            click = f"document.querySelector('a[download=\"{name}\"]').click()"
            browser.ask("Runtime.evaluate", session, expression=click, userGesture=True)
            for _ in range(100):
                if (kept / name).exists() and (kept / name).stat().st_size:
                    break
                time.sleep(0.1)
            assert (kept / name).read_text("utf-8").startswith("method,adversary,")
    finally:
        browser.close()
