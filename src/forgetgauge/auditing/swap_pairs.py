"""`audit_file`: the arithmetic of the game on a user's own outputs, and the result of it in a folder."""

from __future__ import annotations

import hashlib
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.auditing.adversaries import Adversaries, FittedAdversary, adversaries_of
from forgetgauge.auditing.checks import accuracy_warnings, file_warnings, refuse_copied_sides, unlike_shadows
from forgetgauge.auditing.outputs import AuditFile
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.auditing.rounds import Round, pairs_of, rounds_of, seeds_of, sizes_of
from forgetgauge.errors import DoubtfulResult, UserError, unknown_name
from forgetgauge.files import set_aside
from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.direction import rank_differences
from forgetgauge.game.intervals import IntervalKind
from forgetgauge.game.parts import CLASS, Codes, coded
from forgetgauge.game.roc import ScoredPair
from forgetgauge.plan.spec import PARAMETERS, GameSpec, RunSpec, StatisticsSpec
from forgetgauge.plugins.catalogue import code_behind
from forgetgauge.progress import Watch, steps, unwatched
from forgetgauge.provenance import provenance
from forgetgauge.report.interactive import Result
from forgetgauge.results import record
from forgetgauge.results.assessed import diagnostic_result
from forgetgauge.results.game import judge, rules_of
from forgetgauge.results.margin_warnings import MarginEvidence, margin_warnings, missed_by, told_apart
from forgetgauge.results.record import DiagnosticResult, StrongResult
from forgetgauge.results.roc_and_parts import RocResult, roc_result
from forgetgauge.results.verdict import reservations
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.tasks.classification import predicted
from forgetgauge.version import VERSION


def audit_file(
    path: str | Path,
    out: str | Path | None = None,
    *,
    adversaries: Sequence[str] | None = None,
    level: float = GameSpec.level,
    delta: float = GameSpec.delta,
    seed: int = RunSpec.seed,
    interval: str = StatisticsSpec.interval,
    progress: Watch = unwatched,
) -> Result:
    """Judge the outputs in a `.npz` or `.csv` file; with `out`, write `result.json` there.

    `adversaries` are names of the catalogue to set on the logits: by default those of a run that can be fitted on a
    shadow block alone. `seed` names the relabellings of the noise floor; a run's own seed gives its own p-values.
    `interval` is Student's, or "bounded", which assumes no distribution of pairs.
    """
    level, delta = PARAMETERS["game.level"].number(level, "level"), PARAMETERS["game.delta"].number(delta, "delta")
    seed = PARAMETERS["seed"].number(seed, "seed")
    adversaries = [adversaries] if isinstance(adversaries, str) else adversaries
    if interval not in get_args(IntervalKind):
        raise UserError(unknown_name("interval", interval, get_args(IntervalKind)))
    file = read_audit_file(Path(path))
    rounds = rounds_of(file)
    refuse_copied_sides(file, rounds)
    declared = adversaries_of(file, adversaries)
    tell = steps(progress, 2 * len(rounds) + 3)  # each method is attacked, then judged; `judge` says three things more
    result = Result.of(
        _SwapPairAudit(file, rounds, declared, level, delta, seed, cast(IntervalKind, interval), tell).result()
    )
    tell("done")
    for line in reservations(result.games[0]):
        warnings.warn(line, DoubtfulResult, stacklevel=3)
    if out is not None:
        keep_audit(result, Path(out))
    return result


def keep_audit(result: Result, out: Path) -> Path | None:
    """Write `result.json` to a folder; where another audit's stood there, it stays under the name that is returned."""
    folder = RunFolder(out)
    if folder.run_file.exists():
        raise UserError(f"{out}: a run is kept in this folder; name another one for the audit")
    folder.create()
    text = result.to_json()
    earlier = set_aside(folder.result, text, folder.report)
    folder.write_text(folder.result, text)
    return earlier


@dataclass(frozen=True)
class _SwapPairAudit:
    """A checked file and who plays against it."""

    file: AuditFile
    rounds: Mapping[str, list[Round]]
    declared: Adversaries
    level: float
    delta: float
    seed: int
    interval: IntervalKind
    tell: Callable[[str], None]
    """Hears what comes next."""

    def result(self) -> record.Result:
        """Every round is played, and the game is judged as a run is."""
        spec = self._spec()
        rules = replace(rules_of(spec, self.rounds), n_forget=min(sizes_of(self.rounds)))
        of_adversaries = dict.fromkeys(
            line for method in self.rounds for one in self.fitted[method] for line in one.notes
        )
        guesses = accuracy_warnings(self.file, {name: _accuracy(self.file, its) for name, its in self.rounds.items()})
        notes = [*file_warnings(self.file, self.rounds), *guesses, *of_adversaries]
        game = judge(self, rules, spec=spec, notes=notes, progress=self.tell)
        return record.Result(environment(), {"data": self.file.digest, "decisions": _digest(self.decisions)}, [game])

    @property
    def adversaries(self) -> Sequence[str]:
        """Names of those of the catalogue, then of the file's own scores and decisions."""
        return self.declared.names

    @cached_property
    def fitted(self) -> dict[str, list[FittedAdversary]]:
        """Method -> those who play against its models, in the order of the adversaries."""
        found = {}
        for method in self.rounds:
            self.tell(f"adversaries on {method}")
            found[method] = self.declared.fitted_for(method)
        return found

    @cached_property
    def decisions(self) -> dict[str, list[npt.NDArray[np.bool_]]]:
        """Method -> of each round (sides, seeds, points, adversaries)."""
        return {
            method: [_decisions(self.fitted[method], played) for played in rounds]
            for method, rounds in self.rounds.items()
        }

    @cached_property
    def outcomes(self) -> dict[str, dict[int, PairOutcome]]:
        """Method -> pair -> paired differences."""
        return {
            method: {
                played.pair: outcome_of_decisions(says[0], says[1], played.in_forget, played.weight)
                for says, played in zip(self.decisions[method], rounds, strict=True)
            }
            for method, rounds in self.rounds.items()
        }

    def margin_warnings(self, methods: Sequence[str]) -> list[str]:
        """What ranks of margins show, where there are margins."""
        return margin_warnings({method: self._evidence(method) for method in methods})

    def told_apart(self, method: str, level: float) -> list[str]:
        """Whose scores tell F from T, where there are scores."""
        return told_apart(self._evidence(method), level)

    def missed(self, methods: Sequence[str]) -> dict[str, list[str]]:
        """Whose thresholds miss what their scores tell."""
        return missed_by({method: self._evidence(method) for method in methods})

    def _evidence(self, method: str) -> MarginEvidence:
        rounds, fitted, outcomes = self.rounds[method], self.fitted[method], self.outcomes[method]
        of_unseen = self._of_unseen(method)
        compared = [(one.of_others, [says[:, i] for says in of_unseen]) for i, one in enumerate(fitted)]
        return MarginEvidence(
            self.adversaries,
            [played.pair for played in rounds],
            list(outcomes.values()),
            [_ranked(fitted, played, outcomes[played.pair]) for played in rounds],
            [one.shadows for one in fitted],
            unlike=[unlike_shadows(*both) for both in compared],
            surely_unlike=[unlike_shadows(*both, by_model=True) for both in compared],
        )

    def _of_unseen(self, method: str) -> list[npt.NDArray[np.bool_]]:
        """Of each model (points of its T, adversaries) what everyone answers."""
        return [
            says
            for its, played in zip(self.decisions[method], self.rounds[method], strict=True)
            for side in (0, 1)
            for says in its[side][:, played.in_forget == bool(side)]
        ]

    def diagnostics(self, method: str, adversary: str) -> DiagnosticResult | None:
        """Averaged over pairs and seeds; decisions without a score have none."""
        scored = self._scored(method, adversary)
        return None if scored is None else diagnostic_result(scored)

    def roc(self, method: str, adversary: str, level: float) -> RocResult | None:
        """Over all pairs and seeds; decisions without a score have none."""
        return roc_result(self._scored(method, adversary) or [], level)

    def _scored(self, method: str, adversary: str) -> list[ScoredPair] | None:
        margin = self.fitted[method][list(self.adversaries).index(adversary)].margin
        if margin is None:
            return None
        return [
            ScoredPair(
                np.array([[margin(rows) for rows in side] for side in played.rows]), played.in_forget, played.weight
            )
            for played in self.rounds[method]
        ]

    @cached_property
    def _columns(self) -> dict[str, tuple[list[str], Codes]]:
        """Column -> (its different values, which of them each row of the file has)."""
        classes = coded(self.file.outputs.label)
        return {} if classes is None else {CLASS: classes}

    @property
    def columns(self) -> dict[str, list[str]]:
        """The classes, where the file has labels."""
        return {name: values for name, (values, _) in self._columns.items()}

    def codes(self, method: str, pair: Any) -> dict[str, Codes]:
        """The codes of each column, read from the rows of the first model."""
        (rows,) = (played.rows[0, 0] for played in self.rounds[method] if played.pair == pair)
        return {name: codes[rows] for name, (_, codes) in self._columns.items()}

    def strong(self, method: str, adversary: str) -> list[StrongResult]:
        """No file says how many queries an adversary may make."""
        return []

    def details(self, method: str) -> dict[str, Any]:
        """What a method cost is not known here."""
        return {"utility": _accuracy(self.file, self.rounds[method]), "n_gradients": None, "seconds": None}

    def _spec(self) -> dict[str, Any]:
        """What is known of the game; how the models were made is not."""
        code = {name: code_behind([(plugins.adversaries, name)]).digest for name in self.declared.catalogue}
        spec: dict[str, Any] = {
            "data": {"name": f"audit of {Path(self.file.source).name}", "params": {}, "code": ""},
            "n_classes": self.file.n_classes,
            "pairs": len(pairs_of(self.rounds)),
            "seeds": seeds_of(self.rounds),
            "seed": self.seed,
            "level": self.level,
            "delta": self.delta,
            "interval": self.interval,
            "sensitivity": {"kind": "file", "digest": self.file.digest} if self.file.weighted else {"kind": "uniform"},
            "adversaries": {
                name: {
                    "adversary": {"name": name, "params": {}, "code": code.get(name, "")},
                    "needs": [],
                    "columns": [],
                }
                for name in self.declared.names
            },
        }
        if self.file.share_retrain:
            spec["share_retrain"] = True
        sizes = sizes_of(self.rounds)
        if len(sizes) == 1:
            spec["n_forget"] = sizes.pop()
        if self.file.shadows is not None:
            spec["n_shadows"] = len(np.unique(self.file.shadows.model))
        return spec


def _decisions(fitted: Sequence[FittedAdversary], played: Round) -> npt.NDArray[np.bool_]:
    """What every adversary decides in a round, (sides, seeds, points, adversaries)."""
    return np.array([[np.stack([one.decide(rows) for one in fitted], axis=1) for rows in side] for side in played.rows])


def _ranked(fitted: Sequence[FittedAdversary], played: Round, decided: PairOutcome) -> PairOutcome:
    """The pair's outcome with ranks of margins in the place of decisions, where there are margins."""
    columns = [
        decided.differences[:, i]
        if (margin := one.margin) is None
        else rank_differences(*(np.stack([margin(rows) for rows in side]) for side in played.rows))
        for i, one in enumerate(fitted)
    ]
    return PairOutcome(np.stack(columns, axis=1), played.in_forget, played.weight)


def _digest(decisions: Mapping[str, Sequence[npt.NDArray[np.bool_]]]) -> str:
    digest = hashlib.sha256()
    for method, rounds in decisions.items():
        digest.update(method.encode())
        for says in rounds:
            digest.update(np.packbits(says).tobytes())
    return digest.hexdigest()


def _accuracy(file: AuditFile, rounds: Sequence[Round]) -> dict[str, float]:
    """Accuracy on all points that the file has: F and T of both sides."""
    if file.outputs.logits is None:
        return {}
    right: npt.NDArray[np.bool_] = predicted(file.outputs.logits) == file.outputs.label
    rows = [played.rows for played in rounds]
    in_forget = [file.outputs.in_forget[its] for its in rows]
    shares = {
        name: [right[its[where]].mean() for its, where in zip(rows, wheres, strict=True)]
        for name, wheres in (("forget", in_forget), ("unseen", [~where for where in in_forget]))
    }
    return {name: float(np.mean(share)) for name, share in shares.items()}


def environment() -> dict[str, str]:
    """Facts about the machine and the program that the audit was done with."""
    return {
        **provenance(),
        "forgetgauge": VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
