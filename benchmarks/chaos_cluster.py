"""Nodes, worker processes and drivers of a Ray cluster killed at random moments, for `benchmarks/chaos.py`.

The cluster is of this machine: a head that does no work, and four nodes that do one job at a time. Every run loses one
of the four, a quarter of its workers, at a moment drawn at random; another takes its place. Every second run loses a
worker process or its driver besides.
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

from forgetgauge.store.runfolder import RunFolder

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
N_NODES = 4
KINDS = ("node", "worker process", "driver")


def started_cluster() -> Any:
    """The head and its nodes."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # nobody but this machine reaches it
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


def end(kind: str, cluster: Any, driver: subprocess.Popen[str], rng: random.Random) -> bool:
    """Kill one of this kind; False where there is none."""
    if kind == "node":
        cluster.remove_node(rng.choice(sorted(cluster.worker_nodes, key=lambda node: node.node_id)), False)
    elif kind == "driver":
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    else:
        busy = worker_processes()
        if not busy:
            return False
        os.kill(rng.choice(busy), signal.SIGKILL)
    return True


def run_through(
    scratch: Path, cluster: Any, kinds: list[str], length: float, rng: random.Random
) -> tuple[Counter[str], int, int]:
    """(kills by kind, starts that were needed again, exit code) of one run, while these are killed."""
    kills, n_again = Counter[str](), 0
    out = scratch / "run"
    driver = started(scratch / "small.toml", out, "ray", "--address", cluster.address, "--device", "cpu")
    for kind in kinds:
        until = time.monotonic() + rng.uniform(0.2, 0.9) * length / len(kinds)
        while time.monotonic() < until and driver.poll() is None:
            time.sleep(0.02)
        if driver.poll() is None and end(kind, cluster, driver, rng):
            kills[kind] += 1
        if kind == "driver" and driver.poll() is not None:
            n_again += 1
            driver = started(scratch / "small.toml", out, "ray", "--address", cluster.address, "--device", "cpu")
    code = driver.wait()
    while len(cluster.worker_nodes) < N_NODES:
        cluster.add_node(**NODE)
    return kills, n_again, code


def cluster(scratch: Path, n_runs: int = 20, seed: int = 0) -> list[str]:
    """Kill parts of a cluster while it works, and compare what comes of it with a run that nobody disturbed."""
    rng, problems = random.Random(seed), list[str]()
    (scratch / "small.toml").write_text(SMALL.replace("epochs = 1", "epochs = 10"))
    made = started_cluster()
    total, again, identical, most = Counter[str](), Counter[str](), Counter[str](), 0
    try:
        begun = time.monotonic()
        if run_through(scratch, made, [], 0.0, rng)[2]:
            raise SystemExit((scratch / "run.err").read_text())
        length, calm = time.monotonic() - begun, Remains.of(scratch / "run")
        shutil.rmtree(scratch / "run")
        for number in range(n_runs):
            kinds = ["node", *([rng.choice(KINDS[1:])] if number % 2 else [])]
            rng.shuffle(kinds)
            kills, n_again, code = run_through(scratch, made, kinds, length, rng)
            wrong = [f"exit code {code}: {(scratch / 'run.err').read_text()}"] if code else broken_in(scratch / "run")
            wrong += [] if code else Remains.of(scratch / "run").unlike(calm)
            if not code:
                most = max(most, *RunFolder(scratch / "run").open_ledger().state.n_runs.values())
            problems += [f"run {number} after {dict(kills)}: {one}" for one in wrong]
            total += kills
            again["driver"] += n_again
            identical += kills if not wrong else Counter()
            print(
                f"{number + 1} runs, {dict(total)}, identical {dict(identical)}", problems, file=sys.stderr, flush=True
            )
            shutil.rmtree(scratch / "run", ignore_errors=True)
    finally:
        made.shutdown()
    head("killed (SIGKILL)", "kills", "starts needed again", "identical result and artefacts")
    for kind in KINDS:
        row(kind, total[kind], again[kind], identical[kind])
    row(f"together, over {n_runs} runs", total.total(), again.total(), identical.total())
    return problems + ([f"a finished job was done {most} times"] if most > 1 else [])
