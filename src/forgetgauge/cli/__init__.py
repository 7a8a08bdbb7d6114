"""The command line. Every command is a few lines over the library; heavy imports wait until a command needs them."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetgauge import plugins
from forgetgauge.cli import data, reproduce
from forgetgauge.cli.audit import audit, draw
from forgetgauge.cli.check import check, verify
from forgetgauge.cli.frontier import frontier
from forgetgauge.cli.options import (
    Address,
    AllowCode,
    Device,
    Executor,
    Quiet,
    Resources,
    RunFile,
    Settings,
    SharedStore,
    TimeLimit,
    say,
    seconds_of,
    settings_of,
)
from forgetgauge.cli.record import record
from forgetgauge.cli.showing import (
    TABLE,
    Form,
    OnlyIfAsked,
    compare,
    exit_on_failure,
    play_shown,
    print_result,
    report_evidence,
    run_folder,
    seen_by,
    show,
)
from forgetgauge.errors import EXTRA, DoubtfulResult, UserError, needs_extra, unknown_name
from forgetgauge.files import refuse_deleted_folder, write_whole
from forgetgauge.plugins.catalogue import Catalogue, CodeNamed, code_announced, no_code, offered

if TYPE_CHECKING:
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.store.runfolder import RunFolder

app = typer.Typer(
    name="forgetgauge",
    help="After a model was asked to forget some of its training data, how much of it can an attacker still see?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(data.app)
app.add_typer(reproduce.experiments)
app.command()(reproduce.reproduce)
app.command()(audit)
app.command()(draw)
app.command()(check)
app.command()(verify)
app.command()(compare)
app.command()(record)
app.command()(frontier)

Out = Annotated[Path | None, typer.Option("--out", help="Run folder; runs/NAME without it.")]
Folder = Annotated[Path, typer.Argument(help="Run folder.")]


@app.command()
def run(
    file: RunFile = None,
    out: Out = None,
    settings: Settings = None,
    time_limit: TimeLimit = None,
    executor: Executor = "processes",
    address: Address = None,
    resources: Resources = None,
    shared_store: SharedStore = None,
    device: Device = "auto",
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Make every model alone: its bits depend on nothing else. Slower.")
    ] = False,
    trial: Annotated[
        bool, typer.Option("--trial/--no-trial", help="Whether to try code of your own on a few points first.")
    ] = True,
    quiet: Quiet = False,
    form: Form = TABLE,
) -> None:
    """Measure unlearning methods: train, unlearn, attack, report. The same command continues an interrupted run."""
    from forgetgauge.run.options import RunOptions

    cluster = settings_of(address, resources, shared_store)
    options = RunOptions(executor, device, deterministic, seconds_of(time_limit), trial, settings=cluster)
    folder = run_folder(file, out)
    ending, result = play_shown(lambda: _campaign(file, settings), folder, options, quiet=quiet, form=form)
    if result is not None:
        show(folder, form, failures=False)
    exit_on_failure(ending, folder)


@app.command()
def plan(file: RunFile = None, out: Out = None, settings: Settings = None, allow_code: AllowCode = False) -> None:
    """Say what a run would do and how much disk it would use; nothing is done, made or downloaded."""
    from forgetgauge.run.campaign import disk_estimate
    from forgetgauge.run.stages import is_open

    try:
        campaign = _looked_at(file, settings, allow_code)
    except CodeNamed as error:
        raise UserError(f"{file}: {error}; --allow-code does so, if you trust who wrote it") from None
    folder = run_folder(file, out)
    state = folder.open_ledger().state
    _echo_counts(campaign, state)
    light, weights = disk_estimate(campaign)
    kept = "kept" if campaign.keep_weights else "dropped when no longer needed"
    say(f"disk: {mib(light)} of outputs and decisions; {mib(weights)} of weights, {kept}")
    if any(is_open(graph.game) for graph in campaign.graphs):
        say("and what follows when strengths are chosen or pairs counted, which is not known yet")


@app.command()
def status(folder: Folder) -> None:
    """Say where a run stands."""
    from forgetgauge.report.table import causes
    from forgetgauge.run.campaign import Campaign

    opened = _existing(folder)
    campaign = Campaign.read(opened)
    state = opened.open_ledger().state
    _echo_counts(campaign, state)
    seconds = sum(done.seconds for done in state.done.values())
    say(f"disk: {mib(opened.objects.n_bytes())}; work done: {seconds:.1f} s")
    jobs = campaign.jobs
    for line in causes([(jobs[key].label, error) for key, error in state.failed.items() if key in jobs]):
        say(line)


@app.command()
def score(
    folder: Folder,
    adversary: Annotated[list[str], typer.Option("--adversary", help="Adversary to add; may be repeated.")],
) -> None:
    """Let further adversaries attack the stored outputs of a run; nothing is trained."""
    from forgetgauge.run.campaign import add_adversaries, play

    opened = _existing(folder)
    with code_announced(partial(say, err=True)):
        campaign = add_adversaries(opened, adversary)
        before = opened.run_file.read_bytes(), opened.result.read_bytes() if opened.result.exists() else None
        ending, result = play(campaign, opened)
    if ending.failed:  # an adversary that cannot be fitted leaves the run as it was
        opened.write_text(opened.run_file, before[0])
        if before[1] is not None:
            opened.write_text(opened.result, before[1])
        exit_on_failure(ending, opened)
    show(opened)
    if result is not None:
        for name in adversary:
            say(seen_by(name, result))


@app.command()
def report(
    folder: Folder,
    to: Annotated[
        Path | None, typer.Option(help="Where to write it; report.html in the run folder without it.")
    ] = None,
    unverified: Annotated[
        bool,
        typer.Option("--unverified", help="Also of a result that was changed."),
    ] = False,
    form: OnlyIfAsked = None,
) -> None:
    """Write the HTML report again, from result.json alone, which is verified first."""
    from forgetgauge.report.html import render_report
    from forgetgauge.results.reading import at_its_word
    from forgetgauge.results.record import read_result
    from forgetgauge.results.verified import refuse_unverified

    opened = _existing(folder)
    if report_evidence(folder, to, form, unverified=unverified):
        return
    target = to or opened.report
    result = read_result(opened.result, sealed=False) if unverified else refuse_unverified(opened.result)
    with at_its_word(opened.result):
        write_whole(target, render_report(result))
        if form is not None:
            print_result(result, form)
    say(f"report: {target}", err=form not in (None, TABLE))


@app.command()
def export(
    folder: Folder,
    file: Annotated[Path, typer.Argument(help="File to write.")],
    weights: Annotated[bool, typer.Option("--weights", help="Take the weights along.")] = False,
) -> None:
    """Pack a run into one file: models' outputs and adversaries' decisions, with --weights the models too."""
    from forgetgauge.plan.jobs import HEAVY
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.store.transfer import export_run

    opened = _existing(folder)
    jobs = Campaign.read(opened).jobs
    light = {key for key, job in jobs.items() if job.kind not in HEAVY}
    packed = export_run(opened, file, None if weights else lambda key: key not in light)
    say(f"{file}: {packed} artefacts, {mib(file.stat().st_size)}")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="File written by export.")],
    folder: Annotated[Path, typer.Argument(help="Run folder, new or not.")],
) -> None:
    """Unpack an exported run into a folder."""
    from forgetgauge.store.runfolder import RunFolder
    from forgetgauge.store.transfer import import_run

    taken = import_run(file, RunFolder(folder))
    say(f"{folder}: {taken} artefacts taken")


@app.command()
def ls(
    what: Annotated[str | None, typer.Argument(help=f"{', '.join(plugins.CATALOGUES)}; all without.")] = None,
) -> None:
    """List what can be named, in a run file or as --executor: what it is, needs, costs, and whom to cite."""
    if what is not None and what not in plugins.CATALOGUES:
        raise UserError(unknown_name("list", what, plugins.CATALOGUES))
    listed = [what] if what is not None else list(plugins.CATALOGUES)
    blocks = [_catalogue_table(plugins.CATALOGUES[name]) for name in listed]
    if what is None:
        blocks = [f"{name}\n{block}" for name, block in zip(listed, blocks, strict=True)]
    say("\n\n".join(blocks))
    for line in dict.fromkeys(line for name in listed for line in offered(plugins.CATALOGUES[name].group)[1]):
        say(line, err=True)


def _catalogue_table(catalogue: Catalogue) -> str:
    from forgetgauge.report.table import align

    entries = catalogue.entries
    columns = [name for name in ("needs", "cost", "cites") if any(getattr(e, name) for e in entries.values())]
    rows = [["name", "what it is", *columns]]
    rows += [[name, entry.summary, *(getattr(entry, column) for column in columns)] for name, entry in entries.items()]
    rows += [[name, f"installed: {target}", *("" for _ in columns)] for name, target in catalogue.installed().items()]
    return align(rows)


@app.command()
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


def _campaign(file: Path | None, settings: list[str] | None) -> Campaign:
    from forgetgauge.plan.runfile import apply_settings, read_run_file
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.run.resolve import resolve

    raw, source = read_run_file(file)
    return Campaign.plan(resolve(apply_settings(raw, settings or []), source))


def _looked_at(file: Path | None, settings: list[str] | None, allow_code: bool) -> Campaign:
    """A campaign that is not to be run: data or a checkpoint that are not here are said, not fetched."""
    from forgetgauge.data.folders import read_only

    with read_only(), nullcontext() if allow_code else no_code():
        return _campaign(file, settings)


def _existing(path: Path) -> RunFolder:
    """The run folder at a path, which may also be that of its result."""
    from forgetgauge.results.reading import FILES
    from forgetgauge.store.runfolder import RunFolder

    if path.name in FILES and path.is_file():
        path = path.parent
    if not path.is_dir():
        raise UserError(f"{path}: no such folder")
    return RunFolder.at(path)


def _echo_counts(campaign: Campaign, state: Any) -> None:
    from forgetgauge.report.table import align

    jobs = campaign.jobs
    kinds = list(dict.fromkeys(job.kind for job in jobs.values()))
    rows = [["jobs", "planned", "done"]]
    for kind in kinds:
        of_kind = [key for key, job in jobs.items() if job.kind == kind]
        rows.append([kind, str(len(of_kind)), str(sum(key in state.done for key in of_kind))])
    rows.append(["all", str(len(jobs)), str(sum(key in state.done for key in jobs))])
    say(align(rows))


def mib(n_bytes: int) -> str:
    """A number of bytes as people read it: `3.2 MiB`."""
    return f"{n_bytes / 2**20:.1f} MiB"


INTERRUPTED = 130  # what a shell expects of a program stopped by Ctrl-C


def main() -> None:
    """Run the command line: a user's mistake is one line on standard error and exit code 2."""
    warnings.simplefilter("ignore", DoubtfulResult)  # they stand under the table
    threads = set(threading.enumerate())
    try:
        refuse_deleted_folder()
        code = app(standalone_mode=False)
    except UserError as error:
        code = _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        code = _complain(str(needs_extra(error.name)))
    except OSError as error:
        if not isinstance(error.filename, str | bytes | Path):
            raise
        code = _complain(f"{os.fsdecode(error.filename)}: {error.strerror}")
    except Exception as error:
        if not hasattr(error, "format_message"):  # of click, or of the click that newer typers carry inside
            raise
        code = _complain(error.format_message())
    if code == INTERRUPTED:
        say("stopped; the same command continues", err=True)
    code = code if isinstance(code, int) else 0
    _leave_threads(threads, code)
    sys.exit(code)


def _leave_threads(known: set[threading.Thread], code: int) -> None:
    """End where code of the user's left threads that would keep the program from ending, perhaps for ever."""
    left = [thread for thread in threading.enumerate() if thread not in known and not thread.daemon]
    for thread in left:
        thread.join(1 / len(left))
    n_left = sum(thread.is_alive() for thread in left)
    if n_left:
        threads = "1 thread" if n_left == 1 else f"{n_left} threads"
        say(f"note: {threads} that code of yours started still ran when all was done, and ended with it", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _complain(line: str) -> int:
    say(f"forgetgauge: {' '.join(line.split())}", err=True)
    return 2
