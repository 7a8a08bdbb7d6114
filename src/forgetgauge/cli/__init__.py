"""The command line. Every command is a few lines over the library; heavy imports wait until a command needs them."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetgauge.cli import data, experiment, reproduce
from forgetgauge.cli.audit import audit, draw, import_evals
from forgetgauge.cli.check import check, verify
from forgetgauge.cli.frontier import frontier
from forgetgauge.cli.inspecting import campaign_of, ls, plan, status, validate
from forgetgauge.cli.options import (
    Address,
    AllowCode,
    Device,
    Executor,
    Json,
    Quiet,
    Resources,
    RunFile,
    Settings,
    SharedStore,
    TimeLimit,
    Verbose,
    one_by_one,
    say,
    seconds_of,
    settings_of,
)
from forgetgauge.cli.printing import (
    TABLE,
    Folder,
    Form,
    OnlyIfAsked,
    Out,
    asked_for,
    compare,
    existing,
    exit_on_failure,
    mib,
    play_shown,
    print_result,
    report_evidence,
    run_folder,
    seen_by,
    show,
)
from forgetgauge.cli.record import record
from forgetgauge.errors import EXTRA, DoubtfulResult, UserError, needs_extra, unknown_name
from forgetgauge.files import refuse_deleted_folder, refuse_no_folder, refuse_other_kind, write_whole
from forgetgauge.plugins.catalogue import code_announced
from forgetgauge.version import VERSION

if TYPE_CHECKING:
    from forgetgauge.run.campaign import Campaign

app = typer.Typer(
    name="forgetgauge",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Say which version this is.")] = False,
) -> None:
    """After a model was asked to forget some of its training data, how much of it can an attacker still see?"""
    if version:
        say(f"forgetgauge {VERSION}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        say(context.get_help())


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
    verbose: Verbose = False,
    form: Form = TABLE,
    as_json: Json = False,
) -> None:
    """Measure unlearning methods: train, unlearn, attack, report. The same command continues an interrupted run."""
    from forgetgauge.run.options import RunOptions

    form = asked_for(form, as_json)
    cluster = settings_of(address, resources, shared_store)
    options = RunOptions(executor, device, deterministic, seconds_of(time_limit), trial, settings=cluster)
    folder = run_folder(file, out)

    def planned() -> Campaign:
        campaign = campaign_of(file, settings)
        if line := options.without_limit(campaign.resolved.job_seconds):
            say(f"warning: {line}", err=True)
        return campaign

    ending, result = play_shown(planned, folder, options, quiet=quiet, verbose=verbose, form=form)
    if result is not None:
        show(folder, form, failures=False)
    exit_on_failure(ending, folder)


def score(
    folder: Folder,
    adversary: Annotated[
        list[str], typer.Option("--adversary", callback=one_by_one, help="Adversary to add; may be repeated.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Parameter of one: adversaries.NAME.KEY=VALUE; may be repeated."),
    ] = None,
) -> None:
    """Let further adversaries attack the stored outputs of a run; nothing is trained."""
    from forgetgauge.plan.runfile import apply_settings
    from forgetgauge.run.campaign import add_adversaries, play

    opened, tables = existing(folder), _tables_of(adversary, apply_settings({}, settings or []))
    with code_announced(partial(say, err=True)):
        campaign = add_adversaries(opened, adversary, tables)
        before = opened.run_file.read_bytes(), opened.result.read_bytes() if opened.result.exists() else None
        ending, result = play(campaign, opened)
    if ending.failed:  # an adversary that cannot be fitted leaves the run as it was
        opened.write_text(opened.run_file, before[0])
        if before[1] is not None:
            opened.write_text(opened.result, before[1])
        exit_on_failure(ending, opened)
    show(opened)
    if result is not None:
        say(f"\n{seen_by(adversary, result)}")


def _tables_of(adversaries: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """The tables of the adversaries that are asked for; other settings are refused."""
    tables = settings.pop("adversaries", {})
    if settings or not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise UserError("--set: write adversaries.NAME.KEY=VALUE, as in --set adversaries.lira-online.references=8")
    for name in tables:
        if name not in adversaries:
            raise UserError(f"--set adversaries.{name}: " + unknown_name("adversary of --adversary", name, adversaries))
    return tables


def report(
    folder: Folder,
    to: Annotated[
        Path | None, typer.Option(help="Where to write it; report.html in the run folder without it.")
    ] = None,
    unverified: Annotated[
        bool,
        typer.Option("--unverified", help="Also of a result that was changed."),
    ] = False,
    points: Annotated[
        bool,
        typer.Option("--points", help="Also show the points that models show most. They are private data."),
    ] = False,
    allow_code: AllowCode = False,
    form: OnlyIfAsked = None,
    as_json: Json = False,
) -> None:
    """Write the HTML report again, from result.json alone, which is verified first; with --points, from the run too."""
    from forgetgauge.cli.points import shown_points
    from forgetgauge.report.html import render_report
    from forgetgauge.results.reading import at_its_word
    from forgetgauge.results.record import read_result
    from forgetgauge.results.verified import refuse_unverified

    form = asked_for(form or TABLE, as_json) if form or as_json else None
    opened = existing(folder)
    if not points and report_evidence(folder, to, form, unverified=unverified):
        return
    if points and (opened.path / "evidence.json").exists() and not opened.result.exists():
        raise UserError(f"{folder}: evidence of one model has no page of points: leave --points out")
    refuse_other_kind(to, ".html", ".htm")
    target = to or opened.report
    result = read_result(opened.result, sealed=False) if unverified else refuse_unverified(opened.result)
    shown = shown_points(opened, result, allow_code=allow_code) if points else {}
    with at_its_word(opened.result):
        write_whole(target, render_report(result, shown))
        if form is not None:
            print_result(result, form)
    say(f"report: {target}", err=form not in (None, TABLE))


def export(
    folder: Folder,
    file: Annotated[Path, typer.Argument(help="File to write.")],
    weights: Annotated[bool, typer.Option("--weights", help="Take the weights along.")] = False,
) -> None:
    """Pack a run into one file: models' outputs and adversaries' decisions, with --weights the models too."""
    from forgetgauge.plan.jobs import HEAVY
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.store.transfer import export_run

    opened = existing(folder)
    jobs = Campaign.read(opened).jobs
    light = {key for key, job in jobs.items() if job.kind not in HEAVY}
    packed = export_run(opened, file, None if weights else lambda key: key not in light)
    say(f"{file}: {packed} artefacts, {mib(file.stat().st_size)}")


def import_(
    file: Annotated[Path, typer.Argument(help="File written by export.")],
    folder: Annotated[Path, typer.Argument(help="Run folder, new or not.")],
) -> None:
    """Unpack an exported run into a folder."""
    from forgetgauge.store.runfolder import RunFolder
    from forgetgauge.store.transfer import import_run

    taken = import_run(file, RunFolder(folder))
    say(f"{folder}: {taken} artefacts taken")


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "run": (run, "Measure methods: train, unlearn, attack, report."),
    "frontier": (frontier, "Show Q against accuracy along the methods' strength."),
    "audit": (audit, "Judge your own models by their outputs."),
    "draw": (draw, "Draw at random which points will be forgotten."),
    "import-evals": (import_evals, "Make an audit file of open-unlearning's evaluations."),
    "check": (check, "Hold a stored result to conditions."),
    "verify": (verify, "Compute a result again from its decisions."),
    "compare": (compare, "Set stored results side by side."),
    "record": (record, "Make the record of an erasure test, to be filed."),
    "validate": (validate, "Check a run file."),
    "plan": (plan, "Say what a run would do, and what it would take."),
    "status": (status, "Say where a run stands."),
    "score": (score, "Let further adversaries attack a finished run."),
    "report": (report, "Write the HTML report again."),
    "export": (export, "Pack a run into one file."),
    "import": (import_, "Unpack an exported run into a folder."),
    "ls": (ls, "List what can be named in a run file."),
    "reproduce": (reproduce.reproduce, "Run tables of the paper beside its numbers."),
}
"""In the order of their help."""
for _name, (_command, _line) in COMMANDS.items():
    app.command(_name, short_help=_line)(_command)
app.add_typer(data.app)
app.add_typer(experiment.experiments)


INTERRUPTED = 130  # what a shell expects of a program stopped by Ctrl-C


def main() -> None:
    """Run the command line: a user's mistake is one line on standard error and exit code 2."""
    _open_closed_streams()
    warnings.simplefilter("ignore", DoubtfulResult)  # they stand under the table
    threads = set(threading.enumerate())
    try:
        refuse_deleted_folder()
        if "--out=" in sys.argv or ("--out", "") in itertools.pairwise(sys.argv):
            refuse_no_folder("")
        code = app(standalone_mode=False)
    except UserError as error:
        code = max(_complain(line) for line in getattr(error, "reasons", [str(error)]))
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
        if type(error).__name__ == "NoArgsIsHelpError":
            say(error.format_message())
            code = 0
        else:
            code = _complain(error.format_message())
    if code == INTERRUPTED:
        say("stopped; the same command continues", err=True)
    code = code if isinstance(code, int) else 0
    _leave_threads(threads, code)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Lead standard streams that were closed (`>&-`) nowhere: else the next file or pipe that is opened has their
    number, and is written to in their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it has the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


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
