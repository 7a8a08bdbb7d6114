"""Commands that look and change nothing: validate, plan, status, ls."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetgauge import plugins
from forgetgauge.cli.options import AllowCode, Json, RunFile, Settings, say
from forgetgauge.cli.printing import Folder, Out, existing, mib, run_folder
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plugins.catalogue import Catalogue, CodeNamed, no_code, offered
from forgetgauge.wording import counted

if TYPE_CHECKING:
    from forgetgauge.results.record import Result
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.run.standing import Standing
    from forgetgauge.store.runfolder import RunFolder


def validate(file: RunFile = None, settings: Settings = None, allow_code: AllowCode = False) -> None:
    """Check a run file; nothing is made or downloaded."""
    try:
        campaign = _looked_at(file, settings, allow_code)
    except CodeNamed as error:
        told = f"{str(error)[0].upper()}{str(error)[1:]}"
        say(f"{file}: its keys are valid. {told}. The rest is checked with --allow-code.")
        return
    games = len(campaign.graphs)
    say(f"{file or 'embedded default'}: valid; {games} game{'s' * (games > 1)}, {len(campaign.jobs)} jobs")


def plan(
    file: RunFile = None,
    out: Out = None,
    settings: Settings = None,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Say what a run would do, how long it would take and how much disk it would use; nothing is done, made or
    downloaded. Time is known where jobs like its own were done in a run folder beside its own."""
    from forgetgauge.run.stages import is_open
    from forgetgauge.run.standing import counts, disk_estimate, seconds_needed

    try:
        campaign = _looked_at(file, settings, allow_code)
    except CodeNamed as error:
        raise UserError(f"{file}: {error}; --allow-code does so, if you trust who wrote it") from None
    folder = run_folder(file, out)
    planned = counts(campaign.jobs, folder.open_ledger().state)
    light, weights = disk_estimate(campaign.graphs)
    seconds, n_known, n_unknown = seconds_needed(campaign, folder, _beside(folder))
    more = any(is_open(graph.game) for graph in campaign.graphs)
    if as_json:
        pace = {"seconds": round(seconds, 3), "jobs": n_known, "other_jobs": n_unknown}
        disk = {"outputs_bytes": light, "weights_bytes": weights, "weights_kept": campaign.keep_weights}
        _print_json({"jobs": _as_json(planned), "work": pace, "disk": disk, "more_follows": more})
        return
    say(_counts_table(planned))
    say(_time_line(seconds, n_known, n_unknown))
    kept = "kept" if campaign.keep_weights else "dropped when no longer needed"
    say(f"disk: {mib(light)} of outputs and decisions; {mib(weights)} of weights, {kept}")
    if more:
        say("and what follows when strengths are chosen or pairs counted, which is not known yet")


def _beside(folder: RunFolder) -> list[RunFolder]:
    """Other runs of the folder that it lies in."""
    from forgetgauge.store.runfolder import RunFolder

    runs = sorted(path.parent for path in folder.path.parent.glob("*/run.json") if path.parent != folder.path)
    return [RunFolder.at(path) for path in runs]


def _time_line(seconds: float, n_known: int, n_unknown: int) -> str:
    if not n_known and not n_unknown:
        return "time: none, all is done"
    if not n_known:
        return "time: not known, since nothing like it was done in a run folder beside this one"
    rest = f", and {counted(n_unknown, 'job')} like none of those that were done" if n_unknown else ""
    return f"time: {_long(seconds)} of work by the pace of jobs like its own{rest}; less on several cores or GPUs"


def status(
    folder: Folder,
    as_json: Json = False,
) -> None:
    """Say where a run stands: running, stopped or finished, for how long, what failed, and Q so far."""
    from forgetgauge.report.table import causes
    from forgetgauge.run.standing import result_so_far, standing

    opened = existing(folder)
    found, campaign = standing(opened)
    result = result_so_far(campaign, opened, found.state)
    if as_json:
        _print_json({**_standing_json(found), "quality": [] if result is None else _quality(result)})
        return
    say(_headline(found))
    say(_counts_table(found.jobs))
    say(f"work done: {_long(found.work_s)}; disk: {mib(found.n_bytes)}")
    for line in causes(found.failed):
        say(line)
    if result is not None:
        say(f"\n{_quality_table(result)}")


def _headline(found: Standing) -> str:
    from forgetgauge.run.standing import FINISHED, RUNNING

    done, planned = (sum(pair[place] for pair in found.jobs.values()) for place in (1, 0))
    if found.state == FINISHED:
        return f"finished: {done} of {planned} jobs" + (f", {len(found.failed)} failed" if found.failed else "")
    last = "" if found.idle_s is None else f", the last one finished {_long(found.idle_s)} ago"
    if found.state == RUNNING:
        return f"running: {done} of {planned} jobs{last}"
    return f"stopped: {done} of {planned} jobs{last}; the command that began it continues"


def _long(seconds: float) -> str:
    """`40 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _quality(result: Result) -> list[dict[str, Any]]:
    return [
        {
            **({} if result.sweep is None else {result.sweep: game.value}),
            "method": name,
            "quality": method.quality,
            "interval": None if method.interval is None else list(method.interval),
            "pairs": method.n_pairs,
        }
        for game in result.games
        for name, method in game.methods.items()
    ]


def _quality_table(result: Result) -> str:
    from forgetgauge.report.table import align
    from forgetgauge.wording import bracket, plain

    sweep = [] if result.sweep is None else [result.sweep]
    rows = [[*sweep, "method", "Q so far", "interval", "pairs"]]
    for one in _quality(result):
        quality = "–" if one["quality"] is None else plain(one["quality"])
        interval = "–" if one["interval"] is None else bracket(one["interval"])
        rows.append([*(str(one[key]) for key in sweep), one["method"], quality, interval, str(one["pairs"])])
    return align(rows)


def _standing_json(found: Standing) -> dict[str, Any]:
    return {
        "state": found.state,
        "jobs": _as_json(found.jobs),
        "jobs_left": found.n_left,
        "failed": [{"job": job, "error": error} for job, error in found.failed],
        "work_seconds": round(found.work_s, 3),
        "seconds_since_last_job": None if found.idle_s is None else round(found.idle_s, 1),
        "bytes": found.n_bytes,
    }


def _as_json(jobs: Mapping[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
    return {kind: {"planned": planned, "done": done} for kind, (planned, done) in jobs.items()}


def _counts_table(jobs: Mapping[str, tuple[int, int]]) -> str:
    from forgetgauge.report.table import align

    rows = [["jobs", "planned", "done"]]
    rows += [[kind, str(planned), str(done)] for kind, (planned, done) in jobs.items()]
    return align([*rows, ["all", *(str(sum(pair[place] for pair in jobs.values())) for place in (0, 1))]])


def _print_json(content: Any) -> None:
    say(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))


# -- what can be named -------------------------------------------------------------------------------------------------


def ls(
    what: Annotated[str | None, typer.Argument(help=f"{', '.join(plugins.CATALOGUES)}; all without.")] = None,
    as_json: Json = False,
) -> None:
    """List what can be named, in a run file or as --executor: what it is, needs, costs, and whom to cite."""
    if what is not None and what not in plugins.CATALOGUES:
        raise UserError(unknown_name("list", what, plugins.CATALOGUES))
    listed = {name: plugins.CATALOGUES[name] for name in ([what] if what is not None else plugins.CATALOGUES)}
    if as_json:
        _print_json({name: _entries(catalogue) for name, catalogue in listed.items()})
    else:
        blocks = [_catalogue_text(catalogue) for catalogue in listed.values()]
        if what is None:
            blocks = [f"{name.upper()}\n\n{block}" for name, block in zip(listed, blocks, strict=True)]
        say("\n\n".join(blocks))
    for line in dict.fromkeys(line for catalogue in listed.values() for line in offered(catalogue.group)[1]):
        say(line, err=True)


def _entries(catalogue: Catalogue) -> dict[str, dict[str, str]]:
    """Name -> what is known of it; of what another package brings, where it is."""
    fields = ("needs", "cost", "cites")
    known = {
        name: {"what": entry.summary, **{field: text for field in fields if (text := getattr(entry, field))}}
        for name, entry in catalogue.entries.items()
    }
    return {**known, **{name: {"what": f"installed: {target}"} for name, target in catalogue.installed().items()}}


def _catalogue_text(catalogue: Catalogue) -> str:
    """Each name with what is said of it below, as wide as the terminal, a hundred columns at most."""
    width = min(shutil.get_terminal_size().columns, 100)
    lines = []
    for name, said in _entries(catalogue).items():
        further = [f"{field}: {text}" for field, text in said.items() if field != "what"]
        wrapped = [textwrap.fill(text, width, initial_indent="    ", subsequent_indent="      ") for text in further]
        lines += [name, textwrap.fill(said["what"], width, initial_indent="    ", subsequent_indent="    "), *wrapped]
    return "\n".join(lines)


# -- run files ---------------------------------------------------------------------------------------------------------


def campaign_of(file: Path | None, settings: list[str] | None) -> Campaign:
    """The run that a file and settings ask for, planned."""
    from forgetgauge.plan.runfile import apply_settings, read_run_file
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.run.resolve import resolve

    raw, source = read_run_file(file)
    return Campaign.plan(resolve(apply_settings(raw, settings or []), source))


def _looked_at(file: Path | None, settings: list[str] | None, allow_code: bool) -> Campaign:
    """A campaign that is not to be run: data or a checkpoint that are not here are said, not fetched."""
    from forgetgauge.data.folders import read_only

    with read_only(), nullcontext() if allow_code else no_code():
        return campaign_of(file, settings)
