"""`verify`: everything that a result says, computed again from what a run left behind, and compared.

Artefacts are checked against the digests that the ledger has of them; then the result is put together anew from the
stored decisions, and every number and word of it is compared with `result.json`; adversaries may be asked once more, by
the stored signals. Nothing is trained and no torch is loaded. What was never written down, such as whether the models
were trained as the run file says, cannot be verified.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError, line_of, unknown_name
from forgetgauge.files import read_json
from forgetgauge.plugins.catalogue import CodeNamed
from forgetgauge.provenance import PROVENANCE
from forgetgauge.report.html import is_unchanged
from forgetgauge.results.record import read_result
from forgetgauge.results.verified import SHOWN, Verified, differences, verify_evidence, verify_result
from forgetgauge.run.campaign import Campaign, assembled
from forgetgauge.run.packing import jobs_to_do
from forgetgauge.run.worker import Worker
from forgetgauge.store.ledger import Ledger
from forgetgauge.store.objects import Artefact, CorruptArtefact
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import import_run

SOURCES = ("decisions", "signals")
"""What a result is computed from again."""
AUDITS = {"result.json": "report.html", "evidence.json": "evidence.html"}
"""What an audit leaves in its folder, and the page of it."""


def verify(path: Path, source: str = "decisions") -> Verified:
    """A run folder, a file that `export` made, a result alone, or evidence from one model.

    From signals, adversaries are fitted and asked once more, and what they decide is compared as well.
    """
    if source not in SOURCES:
        raise UserError(unknown_name("source", source, SOURCES))
    if path.is_dir():
        audit = None if (path / "run.json").exists() else next((one for one in AUDITS if (path / one).exists()), None)
        if audit is None:
            return _verify_folder(RunFolder.at(path), source)
        found = verify(path / audit, source)
        return replace(found, problems=(*found.problems, *_changed_page(path / AUDITS[audit])))
    if path.suffix == ".json":
        if source == "signals":
            raise UserError(f"{path}: a result carries decisions alone; its run folder or export has the signals")
        fields = _fields(path)
        if "commitment" in fields and "n_units" in fields:
            raise UserError(f"{path}: a draw, and no result: `audit --draw` sees whether it is what its seed draws")
        return verify_evidence(path) if "models" in fields else verify_result(path)
    with tempfile.TemporaryDirectory(prefix="forgetgauge-") as scratch:
        folder = RunFolder(Path(scratch) / "run")
        if not path.exists():
            raise UserError(f"{path}: no such file")
        try:
            import_run(path, folder)
        except UserError as error:
            return Verified(0, 0, (str(error),))
        return _verify_folder(folder, source)


def _changed_page(path: Path) -> list[str]:
    if not path.exists() or is_unchanged(path.read_bytes()):
        return []
    return [f"{path.name} was changed after it was written, or not finished: `report` writes it again"]


def _fields(path: Path) -> dict[str, Any]:
    """Of a file of JSON; none of what cannot be read, which the reader of its kind has a line on."""
    try:
        found = read_json(path)
    except UserError:
        return {}
    return found if isinstance(found, dict) else {}


def _verify_folder(folder: RunFolder, source: str) -> Verified:
    if not folder.run_file.exists():
        raise UserError(f"{folder.path}: not a run folder (it has no run.json)")
    if not folder.result.exists():
        raise UserError(f"{folder.path}: the run has no result yet: finish it first")
    try:
        campaign, ledger = Campaign.read(folder), folder.open_ledger()
    except UserError as error:
        return Verified(0, 0, (str(error),))
    kept, problems = _artefacts(campaign, folder, ledger)
    if problems:
        return Verified(kept, 0, tuple(problems))
    try:
        problems += _decided_again(campaign, folder, ledger) if source == "signals" else []
        made = assembled(campaign, folder)
    except CorruptArtefact as error:
        label = campaign.jobs[error.key].label if error.key in campaign.jobs else error.key[:12]
        return Verified(kept, 0, (f"the artefact of “{label}” holds what no job makes",))
    except (CodeNamed, UserError):  # it cannot be verified here, which says nothing of who made it
        raise
    except Exception as error:  # an artefact with a right digest may hold anything
        return Verified(kept, 0, (f"an artefact holds what no job makes: {type(error).__name__}: {error}",))
    alone = verify_result(folder.result)
    problems += _changed_page(folder.report)
    try:
        stored = read_result(folder.result, sealed=False)
    except UserError:
        return Verified(kept, 0, (*alone.problems, *problems))
    n_values, differing = differences(stored, made, [f"environment/{name}" for name in PROVENANCE])
    return Verified(kept, n_values, tuple(dict.fromkeys([*alone.problems, *problems, *differing])))


def _decided_again(campaign: Campaign, folder: RunFolder, ledger: Ledger) -> list[str]:
    """Whose answers are not those that are stored, when adversaries are fitted and asked once more."""
    state, problems = ledger.state, []
    worker, made = Worker(folder.objects.folder, campaign.resolved.sources), dict[str, Artefact]()

    def known(key: str) -> Artefact:
        return made[key] if key in made else folder.objects.read(key, state.done[key].receipt.sha256)

    for kind in ("fit", "decide"):
        for key, job in campaign.jobs.items():
            if job.kind != kind or not state.is_available(key):
                continue
            if lacking := [one for one in job.inputs.values() if one not in made and not state.is_available(one)]:
                problems.append(f"“{job.label}” cannot be done again: {len(lacking)} of its inputs were not kept")
                continue
            given = {one: known(one) for one in job.inputs.values()}
            try:
                again = worker.make(job, given)
            except (CodeNamed, UserError):
                raise
            except Exception as error:  # of the user's own adversary, or of one that is given what no job makes
                problems.append(f"“{job.label}” cannot be asked once more: {line_of(error)}")
                continue
            if kind == "fit":
                made[key] = again
                continue
            stored = known(key).arrays["says_forget"]
            n_other = int((stored != again.arrays["says_forget"]).sum())
            if n_other:
                problems.append(f"“{job.label}”: {n_other} of {len(stored)} decisions are others, asked once more")
    return problems[:SHOWN] + ([f"and {len(problems) - SHOWN} more jobs"] if len(problems) > SHOWN else [])


def _artefacts(campaign: Campaign, folder: RunFolder, ledger: Ledger) -> tuple[int, list[str]]:
    """(artefacts that were looked at, what is wrong with them or with the ledger)."""
    jobs, state, problems = campaign.jobs, ledger.state, []
    if ledger.torn:
        problems.append("the last line of ledger.jsonl is torn: run the command again to finish")
    missing = [jobs[key].label for key in jobs_to_do(jobs, state, hopeless=state.failed)]
    if missing:
        problems.append(f"run.json asks for {len(missing)} jobs of which the ledger knows nothing: {missing[0]}")
    kept = {key: state.done[key].receipt.sha256 for key in jobs if key in state.done and state.is_available(key)}
    unsound = [jobs[key].label for key, sha256 in kept.items() if not folder.objects.is_sound(key, sha256)]
    problems += [f"the artefact of “{label}” is missing or damaged" for label in unsound[:SHOWN]]
    if len(unsound) > SHOWN:
        problems.append(f"and {len(unsound) - SHOWN} more artefacts")
    return len(kept), problems
