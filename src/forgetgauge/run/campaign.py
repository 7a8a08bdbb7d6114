"""A whole run in one call: plan, do what is missing, assemble the result. The command line and `evaluate` share it.

What a run folder holds is continued or added to, and never replaced without a word.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from forgetgauge import plugins
from forgetgauge.errors import UserError, require_torch
from forgetgauge.files import free_name
from forgetgauge.plan.game import Game, PlannedAdversary, game_to_json
from forgetgauge.plan.graph import Graph, build_graph
from forgetgauge.plan.jobs import HEAVY, RECORDS, USES_TORCH, Job, Named, UnlearnJob
from forgetgauge.plan.subjects import Shadow
from forgetgauge.progress import Progress
from forgetgauge.provenance import PROVENANCE
from forgetgauge.results.assembly import assemble
from forgetgauge.results.record import Result, read_result
from forgetgauge.run.algorithms import own_code_of
from forgetgauge.run.assignments import Failure, Resolved, Sources
from forgetgauge.run.durations import Limits
from forgetgauge.run.executors import Executor
from forgetgauge.run.kept import read_kept
from forgetgauge.run.options import DEFAULTS, RunOptions
from forgetgauge.run.packing import jobs_to_do, stack_width
from forgetgauge.run.resolve import check_reads, resolve_adversary
from forgetgauge.run.scheduler import N_LOSSES, Ending, died_of, execute
from forgetgauge.run.stages import is_open, next_game
from forgetgauge.run.trial import trials_of
from forgetgauge.run.trial_round import try_all
from forgetgauge.store.objects import CorruptArtefact
from forgetgauge.store.runfolder import RunFolder

TOLD_EVERY = 1.0
"""Seconds between two lines on what is being done after the last job."""


@dataclass(frozen=True)
class Campaign:
    """A planned run: its games and their jobs."""

    graphs: list[Graph]
    resolved: Resolved

    @property
    def jobs(self) -> dict[str, Job]:
        """All jobs of all games; those that games share stand once."""
        return {key: job for graph in self.graphs for key, job in graph.jobs.items()}

    @property
    def keep_weights(self) -> bool:
        """Whether weights stay on disk."""
        return self.resolved.keep_weights

    def stack_width(self, device: str, *, deterministic: bool = False) -> int:
        """Most models in one stack on this device."""
        of_records = any(game.task == RECORDS for game in self.resolved.games)
        return stack_width(device, deterministic=deterministic, of_records=of_records)

    def held(self) -> Callable[[Job], bool]:
        """Whether a further plan may need the weights that a job makes, though nothing in this one does any more: all
        trained models and, where an adversary is taught by them, shadow models at strengths that are tried."""
        games = self.resolved.games
        if not any(map(is_open, games)):
            return lambda _: False
        if not any("unlearned" in one.needs for game in games for one in game.adversaries.values()):
            return lambda job: job.kind == "train"
        return lambda job: job.kind == "train" or (isinstance(job, UnlearnJob) and isinstance(job.subject, Shadow))

    def to_json(self) -> dict[str, Any]:
        """What `run.json` keeps: enough to score, assemble and report again."""
        return {
            "games": [game_to_json(game) for game in self.resolved.games],
            "sweep": self.resolved.sweep_key,
            "keep_weights": self.keep_weights,
            "environment": self.resolved.environment,
            "source": self.resolved.source,
            "scored": list(self.resolved.scored),
            "job_seconds": self.resolved.job_seconds,
        }

    @staticmethod
    def plan(resolved: Resolved) -> Campaign:
        """Build the job graphs."""
        return Campaign([build_graph(game) for game in resolved.games], resolved)

    @staticmethod
    def read(folder: RunFolder) -> Campaign:
        """The campaign a run folder was made for."""
        kept, games = read_kept(folder)
        sources = Sources({game.data_digest: game.data for game in games})
        asked = (kept.sweep, kept.keep_weights, sources, kept.environment, kept.source, tuple(kept.scored))
        try:
            return Campaign.plan(Resolved(games, *asked, job_seconds=kept.job_seconds))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"{folder.run_file}: damaged: {type(error).__name__}: {error}") from None


def started_ahead(options: RunOptions) -> AbstractContextManager[None]:
    """Within, a run is planned and played: an executor that can gets ready while it is planned."""
    require_torch()
    start = getattr(options.load_executor(), "started_ahead", None)
    return (
        nullcontext() if start is None else cast(AbstractContextManager[None], start(options.device, **options.given))
    )


def play(
    campaign: Campaign, folder: RunFolder, options: RunOptions = DEFAULTS, *, wants_result: bool = True
) -> tuple[Ending, Result | None]:
    """Do what is missing and assemble the result; None where jobs are missing because the time was up, and where none
    is wanted."""
    deadline = None if options.time_limit_s is None else time.monotonic() + options.time_limit_s
    n_run, losses, given_up = 0, dict[str, int](), dict[str, Failure]()
    result: Result | None = None
    with folder.locked():
        campaign, notes, replaces = _amended(campaign, folder)
        device, described = _chosen_device(campaign, folder, options)
        if described:
            campaign = replace(campaign, resolved=_made_on(campaign.resolved, described))
        workers = _hired(campaign, folder, options, device)
        try:
            if told := died_of(campaign.jobs, folder):
                options.tell(told)
            notes += _try_first(campaign, folder, workers, deadline) if options.trial else []
            notes += keep_former_result(folder) if replaces else []
            while True:
                folder.write_run(campaign.to_json())
                ending = execute(
                    campaign.jobs,
                    folder,
                    workers,
                    keep_weights=campaign.keep_weights,
                    stack_width=campaign.stack_width(device, deterministic=options.deterministic),
                    n_gpus=getattr(workers, "n_gpus", 1),
                    deadline=deadline,
                    job_seconds=campaign.resolved.job_seconds,
                    given_up=given_up,
                    holds=campaign.held(),
                    progress=options.progress,
                )
                n_run += ending.n_run
                given_up.update(ending.failed)
                if ending.out_of_time:
                    folder.write_run(_gone_on(campaign, folder).to_json())
                    break
                try:
                    if not any(is_open(graph.game) for graph in campaign.graphs):
                        if wants_result:
                            result = assembled(campaign, folder, _telling(campaign, folder, options.progress))
                        break
                    games = [next_game(graph, folder) for graph in campaign.graphs]
                    campaign = Campaign.plan(replace(campaign.resolved, games=games))
                except CorruptArtefact as error:
                    _refuse_failed(error.key, campaign, folder, given_up)
                    _record_loss(error.key, campaign, folder, losses)
        finally:
            notes += getattr(workers, "notes", [])
            workers.close()
        ending = replace(ending, n_run=n_run, notes=notes)
        if result is None:
            return ending, None
        folder.drop_checkpoints()
        result = _as_before(result, folder) if n_run == 0 else result
        folder.write_text(folder.result, result.to_json())
    return ending, result


def _hired(campaign: Campaign, folder: RunFolder, options: RunOptions, device: str) -> Executor:
    if options.deterministic and any(len(stack) > 1 for stack in folder.open_ledger().state.stack_of.values()):
        raise UserError(f"{folder.path}: begun without --deterministic, which needs a folder of its own (--out)")
    largest = max(game.model_bytes for game in campaign.resolved.games)
    sources = replace(campaign.resolved.sources, model_bytes=largest)
    hired: Executor = options.load_executor()(folder.objects.folder, sources, device, **options.given)
    return hired


def _gone_on(campaign: Campaign, folder: RunFolder) -> Campaign:
    """With what is already known of games whose plans are done, though the time is up for others."""
    games = []
    for graph in campaign.graphs:
        with suppress(CorruptArtefact):  # made again by the next start
            while is_open(graph.game) and not jobs_to_do(graph.jobs, folder.open_ledger().state):
                graph = build_graph(next_game(graph, folder))
        games.append(graph.game)
    return Campaign.plan(replace(campaign.resolved, games=games))


def assembled(campaign: Campaign, folder: RunFolder, progress: Callable[[str], None] = lambda _: None) -> Result:
    """The result of what a folder holds of a campaign."""
    sweep_key, environment = campaign.resolved.sweep_key, campaign.resolved.environment
    return assemble(campaign.graphs, folder, sweep_key=sweep_key, environment=environment, progress=progress)


def _telling(campaign: Campaign, folder: RunFolder, progress: Callable[[Progress], None]) -> Callable[[str], None]:
    """Shows what is being done after the last job, at most once in TOLD_EVERY seconds."""
    jobs, done = campaign.jobs, folder.open_ledger().state.done
    models = [key in done for key, job in jobs.items() if job.kind in HEAVY]
    now = Progress(sum(key in done for key in jobs), len(jobs), sum(models), len(models), None, "")
    told = time.monotonic()

    def tell(doing: str) -> None:
        nonlocal told
        if time.monotonic() - told >= TOLD_EVERY:
            told = time.monotonic()
            progress(replace(now, doing=doing))

    return tell


def _refuse_failed(key: str, campaign: Campaign, folder: RunFolder, given_up: Mapping[str, Failure]) -> None:
    """UserError of a job that nothing can be said without, and that failed: its artefact was never there."""
    if (failure := given_up.get(key)) is not None:
        raise UserError(f"{folder.path}: “{campaign.jobs[key].label}” failed: {failure.line}") from failure.error


def _record_loss(key: str, campaign: Campaign, folder: RunFolder, losses: dict[str, int]) -> None:
    """An artefact was damaged or deleted since it was made, by the disk or by code of the user's: make it again."""
    losses[key] = losses.get(key, 0) + 1
    if losses[key] >= N_LOSSES:
        raise UserError(
            f"{folder.path}: the artefact of “{campaign.jobs[key].label}” is damaged or deleted again and again: check "
            "the disk, and whether code of your own touches the run folder"
        )
    folder.open_ledger().record_lost(key)


def _as_before(result: Result, folder: RunFolder) -> Result:
    """With the date and the command of the result that is there, where nothing but these is new."""
    try:
        before = read_result(folder.result)
    except UserError:
        return result
    made = {name: before.environment[name] for name in PROVENANCE if name in before.environment}
    again = replace(result, environment={**result.environment, **made})
    return again if again == before else result


def _amended(campaign: Campaign, folder: RunFolder) -> tuple[Campaign, list[str], bool]:
    """The campaign with what `score` added to the folder, what the user should know of that, and whether a result that
    the folder holds will not be part of the new one."""
    resolved = campaign.resolved
    found = amended(folder, resolved.games, resolved.scored, resolved.source)
    if found.games == resolved.games and tuple(found.scored) == resolved.scored:
        return campaign, found.notes, found.replaces
    sources = replace(resolved.sources, own_code=own_code_of(found.games))
    planned = replace(resolved, games=found.games, scored=tuple(found.scored), sources=sources)
    return Campaign.plan(planned), found.notes, found.replaces


def _try_first(campaign: Campaign, folder: RunFolder, workers: Executor, deadline: float | None) -> list[str]:
    """UserError where code of the user's cannot do the jobs that are open. Else what the user should know: what was not
    tried when the time was up, and which method gives two models where it is given the same twice."""
    to_do = jobs_to_do(campaign.jobs, folder.open_ledger().state, keep_weights=campaign.keep_weights)
    trials = trials_of(campaign.graphs, to_do, campaign.resolved.sources)
    left, warnings = try_all(trials, workers, Limits(deadline, campaign.resolved.job_seconds))
    untried = f"the time was up while code of yours was tried on a few points ({left})"
    return [*([untried] if left else []), *warnings]


def _chosen_device(campaign: Campaign, folder: RunFolder, options: RunOptions) -> tuple[str, str]:
    """(`cpu` or `cuda:0,cuda:1`, in words); torch is not loaded for `auto` where nothing to be done needs it."""
    name, jobs = options.device, campaign.jobs
    to_do = jobs_to_do(jobs, folder.open_ledger().state, keep_weights=campaign.keep_weights)
    more = any(is_open(graph.game) for graph in campaign.graphs)
    if name == "auto" and not more and not any(jobs[key].kind in USES_TORCH for key in to_do):
        return "cpu", ""
    executor = options.load_executor()
    if hasattr(executor, "chosen_device"):
        return cast(tuple[str, str], executor.chosen_device(name, **options.given))
    from forgetgauge.learn.device import choose_devices, describe

    chosen = choose_devices(name)
    if getattr(executor, "in_this_process", False):
        if "," in name:
            raise UserError(f"device '{name}': the inline executor has one device; --executor processes has several")
        chosen = chosen[:1]
    return ",".join(map(str, chosen)), describe(*chosen)


def _made_on(resolved: Resolved, device: str) -> Resolved:
    return replace(resolved, environment={**resolved.environment, "device": device})


def add_adversaries(folder: RunFolder, names: Sequence[str], tables: Mapping[str, Any] | None = None) -> Campaign:
    """The campaign of a run folder with further adversaries, each by its id and its table, where it has one; refused
    where that would mean training."""
    resolved = Campaign.read(folder).resolved
    if any(is_open(game) for game in resolved.games):
        raise UserError(f"{folder.path}: not all strengths are chosen or pairs counted yet: finish the run first")
    further = {name: resolve_adversary(name, (tables or {}).get(name, {})) for name in names}
    for task in dict.fromkeys(game.task for game in resolved.games):
        for name, adversary in further.items():
            check_reads(name, adversary, plugins.tasks.load(task), f"the task of this run, {task}")
    games = [replace(game, adversaries={**game.adversaries, **further}) for game in resolved.games]
    scored = tuple(dict.fromkeys([*resolved.scored, *further]))
    campaign = Campaign.plan(replace(resolved, games=games, scored=scored))
    jobs = campaign.jobs
    to_do = [jobs[key] for key in jobs_to_do(jobs, folder.open_ledger().state)]
    heavy = [job for job in to_do if job.kind in HEAVY]
    if not heavy:
        return campaign
    asked = ", ".join(f"'{name}'" for name, adversary in further.items() if adversary.needs)
    if asked:
        raise UserError(
            f"{folder.path}: {asked} needs models or weights that are not there ({len(heavy)} would have to be made); "
            'name it in the run file and run that, with keep = "weights" to be spared this'
        )
    raise UserError(f"{folder.path}: {len(to_do)} jobs of the run itself are not done: finish it first")


# -- a folder that is used again ---------------------------------------------------------------------------------------

GROWS = frozenset(
    {"methods", "adversaries", "pairs", "queries", "oracle_draws", "until", "metrics", "model_bytes", "columns"}
)
"""What may be added to a game without another result being lost."""


@dataclass(frozen=True)
class Amended:
    """The games to play in a folder, and what the user should know of what it held before."""

    games: list[Game]
    scored: list[str]
    """Adversaries that `score` added, which a run keeps."""
    notes: list[str]
    replaces: bool = False
    """Whether a result that the folder holds will not be part of the new one: it is to be set aside."""


def amended(folder: RunFolder, games: Sequence[Game], scored: Sequence[str], source: str) -> Amended:
    """Compare what is asked for with what the folder holds; UserError where that is the run of another file.

    An earlier result that the new one would not contain is kept beside it.
    """
    if not folder.run_file.exists() or not source:
        return Amended(list(games), list(scored), [])
    run, before = read_kept(folder)
    known = run.source
    recorded = {name: before[0].adversaries[name] for name in run.scored if name in before[0].adversaries}
    named = {name for game in games for name in game.adversaries}  # what the run file says of one goes first
    kept = {name: _resolved_anew(name, adversary) for name, adversary in recorded.items() if name not in named}
    games = [replace(game, adversaries={**game.adversaries, **kept}) for game in games]
    notes = [f"also attacked by {', '.join(kept)}, which score added to this folder"] if kept else []
    replaces = not all(any(_contains(game, old) for game in games) for old in before)
    if not replaces and (edited := _edited(games, before)):
        notes.append(f"changed since: the code of {', '.join(edited)}; what depends on it is made anew, by other draws")
    if replaces and known and known != source:
        raise UserError(f"{folder.path}: holds the run of {known}; give {source} a folder of its own (--out)")
    return Amended(games, list(dict.fromkeys([*kept, *scored])), notes, replaces)


def _resolved_anew(name: str, adversary: PlannedAdversary) -> PlannedAdversary:
    """An adversary with the code that it has now."""
    how = adversary.adversary
    stated = {"version": how.version, "references": adversary.references}
    named = {} if how.name == name else {"method": how.name}
    return resolve_adversary(name, {**how.params, **{key: one for key, one in stated.items() if one}, **named})


def _contains(game: Game, old: Game) -> bool:
    """Whether every number of the old game is one of this game as well, but for edits of the user's own code."""
    game, old = _without_code(game).as_asked, _without_code(old).as_asked
    fixed = [field.name for field in fields(Game) if field.name not in GROWS]
    as_many = game.pairs >= old.pairs or game.until is not None  # whose pairs are counted after the pilot
    chosen = _within(old.methods, game.methods) and _within(old.adversaries, game.adversaries)
    return as_many and chosen and all(getattr(game, name) == getattr(old, name) for name in fixed)


def _edited(games: Sequence[Game], before: Sequence[Game]) -> list[str]:
    """Places of the run file whose code is another than when the folder's run was planned."""
    known = {place: named for game in before for _, place, named in game.choices}
    now = {place: named for game in games for _, place, named in game.choices}
    return [place for place, named in now.items() if place in known and named.code != known[place].code]


def _without_code(game: Game) -> Game:
    def plain(named: Named) -> Named:
        return replace(named, code="", version="", not_covered=())

    methods = {
        name: replace(one, unlearner=plain(one.unlearner), learner=plain(one.learner) if one.learner else None)
        for name, one in game.methods.items()
    }
    adversaries = {name: replace(one, adversary=plain(one.adversary)) for name, one in game.adversaries.items()}
    return replace(game, data=plain(game.data), learner=plain(game.learner), methods=methods, adversaries=adversaries)


def _within(part: Any, whole: Any) -> bool:
    return all(whole.get(name) == value for name, value in part.items())


def keep_former_result(folder: RunFolder) -> list[str]:
    """Copy the result to the first free name, where there is one; what the user should know of it."""
    if not folder.result.exists():
        return []
    kept = free_name(folder.result)
    folder.write_text(kept, folder.result.read_bytes())
    return [f"the settings changed; the result before that is kept as {kept.name}"]
