"""Where CI is set, a test may be skipped for want of a GPU, of data or of a platform alone; for nothing else.

A reason begins with its class: `GPU: …`, `data: …` or `platform: …`. What can be installed with pip belongs to none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

CLASSES = ("GPU: ", "data: ", "platform: ")


def is_ci() -> bool:
    """Whether a machine that must run everything runs this."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def refuse_other_skips(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip of no allowed class into a failure that says why."""
    if not (is_ci() and report.skipped) or hasattr(report, "wasxfail"):
        return
    file, line, said = report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
    reason = said.removeprefix("Skipped: ")
    if not reason.startswith(CLASSES):
        report.outcome = "failed"
        report.longrepr = f"{file}:{line}: skipped in CI, where only GPU:, data: and platform: are reasons: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """A test that is skipped."""
    report = yield
    refuse_other_skips(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """A file that is skipped whole."""
    report = yield
    refuse_other_skips(report)
    return report
