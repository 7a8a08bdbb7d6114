"""Nodes, worker processes, drivers and heads of a Ray cluster killed at random moments, for `benchmarks/chaos.py`.

The cluster is of this machine: a head that does no work, and four nodes that do one job at a time. Every run loses one
of the four, a quarter of its workers, at a moment drawn at random; another takes its place. Every second run loses a
worker process, its driver (killed, or by Ctrl-C) or the head besides. After a driver or a head the same command is
started again, after a head on a new cluster.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from chaos_runs import SMALL, Remains, broken_in, head, row, started

from forgetgauge.run.cluster.connection import ALONE
from forgetgauge.store.runfolder import RunFolder

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
N_NODES = 4
KINDS = ("node", "worker process", "driver", "driver, by Ctrl-C", "head")
ENDS = {"driver": -signal.SIGKILL, "driver, by Ctrl-C": 130, "head": 2}
"""How a driver ends that is killed, interrupted, or left without a head."""
LONGEST_S = 120.0
"""Within which it must."""


def started_cluster() -> Any:
    """The head and its nodes."""
    os.environ |= ALONE | {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": os.pathsep.join(sys.path)}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    for _ in range(N_NODES):
        cluster.add_node(**NODE)
    return cluster


def worker_processes() -> list[int]:
    """Processes of Ray that do an errand of ours now."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::errand"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


class Storm:
    """One run after another on a cluster that loses parts of itself."""

    def __init__(self, scratch: Path, rng: random.Random) -> None:
        self.scratch, self.rng, self.cluster = scratch, rng, started_cluster()
        self.kills, self.again, self.problems = Counter[str](), Counter[str](), list[str]()

    def driver(self) -> subprocess.Popen[str]:
        """The run, started or started again."""
        settings = ("--address", self.cluster.address, "--device", "cpu")
        return started(self.scratch / "small.toml", self.scratch / "run", "ray", *settings)

    def run_through(self, kinds: list[str], length: float) -> tuple[Counter[str], int]:
        """(kills by kind, exit code) of one run, while these are killed."""
        kills, driver = Counter[str](), self.driver()
        for kind in kinds:
            until = time.monotonic() + self.rng.uniform(0.2, 0.9) * length / len(kinds)
            while time.monotonic() < until and driver.poll() is None:
                time.sleep(0.02)
            if driver.poll() is not None or not self.end(kind, driver):
                continue
            kills[kind] += 1
            if kind in ENDS:
                code = driver.wait(LONGEST_S)
                if code == 0:
                    break  # it was done by then
                self.problems += [] if code == ENDS[kind] else [f"{kind}: the driver ended with {code}"]
                self.again[kind] += 1
                if kind == "head":
                    self.cluster.shutdown()
                    self.cluster = started_cluster()
                driver = self.driver()
        code = driver.wait(LONGEST_S + 10 * length)
        while len(self.cluster.worker_nodes) < N_NODES:
            self.cluster.add_node(**NODE)
        self.kills += kills
        return kills, code

    def end(self, kind: str, driver: subprocess.Popen[str]) -> bool:
        """End one of this kind; False where there is none."""
        match kind:
            case "node":
                nodes = sorted(self.cluster.worker_nodes, key=lambda node: node.node_id)
                self.cluster.remove_node(self.rng.choice(nodes), False)
            case "driver":
                os.killpg(driver.pid, signal.SIGKILL)
            case "driver, by Ctrl-C":
                driver.send_signal(signal.SIGINT)
            case "head":
                self.cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
            case _:
                busy = worker_processes()
                if not busy:
                    return False
                os.kill(self.rng.choice(busy), signal.SIGKILL)
        return True


def cluster(scratch: Path, n_runs: int = 20, seed: int = 0) -> list[str]:
    """Kill parts of a cluster while it works, and compare what comes of it with a run that nobody disturbed."""
    rng = random.Random(seed)
    (scratch / "small.toml").write_text(SMALL.replace("epochs = 1", "epochs = 10"))
    storm, identical, most = Storm(scratch, rng), Counter[str](), 0
    try:
        begun = time.monotonic()
        if storm.run_through([], 0.0)[1]:
            raise SystemExit((scratch / "run.err").read_text())
        length, calm = time.monotonic() - begun, Remains.of(scratch / "run")
        shutil.rmtree(scratch / "run")
        for number in range(n_runs):
            kinds = ["node", *([KINDS[1 + number // 2 % (len(KINDS) - 1)]] if number % 2 else [])]
            rng.shuffle(kinds)
            kills, code = storm.run_through(kinds, length)
            said = (scratch / "run.err").read_text()
            wrong = [f"exit code {code}: {said}"] if code else broken_in(scratch / "run")
            wrong += [] if code else Remains.of(scratch / "run").unlike(calm)
            if not code:
                most = max(most, *RunFolder(scratch / "run").open_ledger().state.n_runs.values())
            storm.problems += [f"run {number} after {dict(kills)}: {one}" for one in wrong]
            identical += kills if not wrong else Counter()
            told = f"{number + 1} runs, {dict(storm.kills)}, identical {dict(identical)}"
            print(told, storm.problems, file=sys.stderr, flush=True)
            shutil.rmtree(scratch / "run", ignore_errors=True)
    finally:
        storm.cluster.shutdown()
    head("killed", "kills", "starts needed again", "identical result and artefacts")
    for kind in KINDS:
        row(kind, storm.kills[kind], storm.again[kind], identical[kind])
    row(f"together, over {n_runs} runs", storm.kills.total(), storm.again.total(), identical.total())
    return storm.problems + ([f"a finished job was done {most} times"] if most > 1 else [])
