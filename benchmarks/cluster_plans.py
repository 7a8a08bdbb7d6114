"""Plans with measured times, for `benchmarks/cluster.py`: job graphs of stored results, and what their jobs took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.plan.game import Game, game_from_json
from forgetgauge.plan.graph import Graph, build_graph
from forgetgauge.plan.jobs import HEAVY, Job, UnlearnJob
from forgetgauge.run.assignments import Assignment
from forgetgauge.run.standing import artefact_bytes

RESULTS = Path(__file__).parents[1] / "results"
PACE = {6: 398_000.0, 10: 414_000.0, 16: 497_780.0, 64: 564_199.0}
"""Images a second of so many ResNet-20s in one stack on an H200 (docs/performance.md). Fewer were not measured,
and are taken to make as many steps a second as six: nothing is sooner for being narrower than that."""
FIT_S, DECIDE_S = 0.7, 0.006
"""Of one job, measured in results/paper-scale (2.9 s for four fits, 1.2 s for 192 decisions)."""


@dataclass(frozen=True)
class Cost:
    """What a job takes, as it was measured."""

    seconds: float
    width: int | None = None
    """Of the stack in which it was measured; None where it is done alone."""


def pace(width: int) -> float:
    """Images a second of a stack, between what was measured."""
    least, most = min(PACE), max(PACE)
    if width < least:
        return PACE[least] * width / least
    return float(np.interp(min(width, most), list(PACE), list(PACE.values())))


@dataclass
class Plan:
    """Jobs, what each takes and how large its artefact is."""

    name: str
    jobs: dict[str, Job]
    costs: dict[str, Cost]
    sizes: dict[str, int]

    @staticmethod
    def joined(name: str, parts: Iterable[Plan]) -> Plan:
        """Several plans as one run; what they share is done once."""
        whole = Plan(name, {}, {}, {})
        for part in parts:
            whole.jobs |= part.jobs
            whole.costs |= part.costs
            whole.sizes |= part.sizes
        return whole

    def seconds(self, assignment: Assignment) -> float:
        """That an assignment takes on one worker."""
        costs = [self.costs[job.key] for job in assignment.jobs]
        if assignment.jobs[0].coupled and costs[0].width is not None:
            n = len(costs)
            return sum(cost.seconds for cost in costs) * pace(costs[0].width) / pace(n)
        return sum(cost.seconds for cost in costs)


@dataclass(frozen=True)
class Stored:
    """A stored result, and what its jobs took.

    A result has the seconds of each method. A training is taken to take what Retrain's does, for as many points as it
    has; what is then left of the seconds of all jobs is that of the signals.
    """

    record: Mapping[str, Any]

    @staticmethod
    def at(name: str, file: str = "result.json") -> Stored:
        """One of results/; or another file there that has what a result says of times."""
        return Stored(json.loads((RESULTS / name / file).read_text()))

    def game(self, number: int) -> Game:
        """As it was played."""
        known = {one.name for one in fields(Game)}
        spec = self.record["games"][number]["spec"]
        return game_from_json({name: value for name, value in spec.items() if name in known})

    @property
    def plans(self) -> list[Plan]:
        """Of all games."""
        return [self.plan(number) for number in range(len(self.record["games"]))]

    def plan(self, number: int, **changed: Any) -> Plan:
        """Of one game, or of one like it that differs in this."""
        graph = build_graph(replace(self.game(number), **changed))
        return Plan("", graph.jobs, self._costs(number, graph, self._signals_s), artefact_bytes(graph))

    @cached_property
    def _signals_s(self) -> float:
        """Of one job that takes signals."""
        graphs = [build_graph(self.game(number)) for number in range(len(self.record["games"]))]
        costs = {key: cost for n, graph in enumerate(graphs) for key, cost in self._costs(n, graph, 0.0).items()}
        n_signals = len({key for graph in graphs for key, job in graph.jobs.items() if job.kind == "signals"})
        return max(0.0, self.record["total_seconds"] - sum(cost.seconds for cost in costs.values())) / n_signals

    def _costs(self, number: int, graph: Graph, signals_s: float) -> dict[str, Cost]:
        game, measured = self.game(number), self.record["games"][number]["methods"]
        seconds = {one.unlearner.name: measured[name]["seconds"] or 0.0 for name, one in game.methods.items()}
        widths = {kind: max(one["width"] for one in self.record["stacks"] if one["kind"] == kind) for kind in HEAVY}
        n_retain, n_forget = game.sizes
        training = seconds["retrain"] * (n_retain + n_forget) / n_retain
        light = {"signals": signals_s, "fit": FIT_S, "decide": DECIDE_S}
        costs = {}
        for key, job in graph.jobs.items():
            if isinstance(job, UnlearnJob):
                costs[key] = Cost(seconds[job.unlearner.name], widths["unlearn"] if job.coupled else None)
            else:
                costs[key] = Cost(training, widths["train"]) if job.kind == "train" else Cost(light.get(job.kind, 0.1))
        return costs


# -- the plans of docs/scale.md ----------------------------------------------------------------------------------------

TABLES = ("paper/table1", "paper/table2", "small/table2", "small/table4a-published", "small/table6", "small/table7")
"""Played on a GPU and stored; what is in Tables 3 and 5 is among the jobs of Table 4."""


def tables() -> Plan:
    """The paper's tables, as they are stored."""
    plans = [plan for name in TABLES for plan in Stored.at(f"reproduce/{name}").plans]
    return Plan.joined("the paper's tables", plans)


def forty_methods(n_methods: int = 40, n_data: int = 5, n_pairs: int = 20) -> Plan:
    """Many methods, each the measured cost of one of the eight, on so many data sets, each as costly as CIFAR-10."""
    stored = Stored.at("reproduce/paper/table1")
    number = len(stored.record["games"]) - 1
    played = stored.game(number).methods
    methods, others = dict(played), [name for name in played if name not in ("retrain", "none")]
    for further in range(n_methods - len(methods)):
        like = played[others[further % len(others)]]
        unlearner = replace(like.unlearner, params={**like.unlearner.params, "variant": further})
        methods[f"method {further}"] = replace(like, unlearner=unlearner)
    data = [f"{which:064d}" for which in range(n_data)]
    plans = [stored.plan(number, methods=methods, pairs=n_pairs, data_digest=digest) for digest in data]
    return Plan.joined(f"{n_methods} methods × {n_data} data sets × {n_pairs} pairs", plans)


def language() -> Plan:
    """The run with a language model that was measured: SST-5, a small BERT from scratch, at small scale."""
    stored = Stored.at("reproduce/small/table7")
    values = [game["value"] for game in stored.record["games"]]
    return Plan.joined("a language model on SST-5", [stored.plan(values.index("SST5"))])
