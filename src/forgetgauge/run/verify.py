"""`verify`: everything that a result says, computed again from what a run left behind, and compared.

Artefacts are checked against the digests that the ledger has of them; then the result is put together anew from the
stored decisions, and every number and word of it is compared with `result.json`. Nothing is trained and no torch is
loaded. What was never written down, such as whether the models were trained as the run file says, cannot be verified.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.results.assembly import assemble
from forgetgauge.run.campaign import Campaign
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import import_run

SHOWN = 10
"""So many differences are named, the others counted."""


@dataclass(frozen=True)
class Verified:
    """What was checked, and what is wrong, in words; nothing where all is as it should be."""

    n_artefacts: int
    n_values: int
    problems: tuple[str, ...]


def verify(path: Path) -> Verified:
    """A run folder, or a file that `export` made."""
    if path.is_dir():
        return _verify_folder(RunFolder(path))
    if path.suffix == ".json":
        raise UserError(
            f"{path}: a result alone has no decisions to compute it from: name its run folder or its export"
        )
    with tempfile.TemporaryDirectory(prefix="forgetgauge-") as scratch:
        folder = RunFolder(Path(scratch) / "run")
        import_run(path, folder)
        return _verify_folder(folder)


def _verify_folder(folder: RunFolder) -> Verified:
    campaign, state = Campaign.read(folder), folder.open_ledger().state
    jobs, problems = campaign.jobs, []
    if not folder.result.exists():
        raise UserError(f"{folder.path}: the run has no result yet: finish it first")
    missing = [job.label for key, job in jobs.items() if key not in state.done and key not in state.failed]
    if missing:
        problems.append(f"run.json asks for {len(missing)} jobs of which the ledger knows nothing: {missing[0]}")
    kept = {key: state.done[key].receipt.sha256 for key in jobs if key in state.done and state.is_available(key)}
    unsound = [jobs[key].label for key, sha256 in kept.items() if not folder.objects.is_sound(key, sha256)]
    problems += [f"the artefact of “{label}” is missing or damaged" for label in unsound[:SHOWN]]
    if len(unsound) > SHOWN:
        problems.append(f"and {len(unsound) - SHOWN} more artefacts")
    if problems:
        return Verified(len(kept), 0, tuple(problems))
    resolved = campaign.resolved
    made = assemble(campaign.graphs, folder, sweep_key=resolved.sweep_key, environment=resolved.environment)
    try:
        stored = dict(_leaves(json.loads(folder.result.read_text("utf-8"))))
    except ValueError as error:
        return Verified(len(kept), 0, (f"result.json is not valid JSON: {error}",))
    found = dict(_leaves(json.loads(made.to_json())))
    places = [place for place in found | stored if not _same(found.get(place, _ABSENT), stored.get(place, _ABSENT))]
    problems = [
        f"result.json, {place}: {_shown(stored.get(place, _ABSENT))}, but computed again it is "
        f"{_shown(found.get(place, _ABSENT))}"
        for place in places[:SHOWN]
    ]
    if len(places) > SHOWN:
        problems.append(f"and {len(places) - SHOWN} more values")
    return Verified(len(kept), len(found), tuple(problems))


_ABSENT = object()


def _same(one: Any, other: Any) -> bool:
    """Equal; of fractions, up to the order in which a processor adds."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)
    return type(one) is type(other) and bool(one == other)


def _shown(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and word, by where it stands; an empty list or table counts as one."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inside:
        yield place, value
    for key, part in inside:
        yield from _leaves(part, f"{place}/{key}" if place else str(key))
