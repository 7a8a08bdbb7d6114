"""The executors we ship: who does the work of a run."""

from __future__ import annotations

from forgetgauge.plugins.catalogue import Entry

EXECUTORS: dict[str, Entry] = {
    "inline": Entry("forgetgauge.run.executors:Inline", "everything in this process, one task after another"),
    "processes": Entry("forgetgauge.run.executors:Processes", "one worker process for each core, one thread each"),
}
