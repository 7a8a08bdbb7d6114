"""The simulated cluster of `benchmarks/cluster.py`, where what it must say can be counted by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.made_up import MadeUp

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import cluster
import cluster_plans
from cluster import Cluster, replayed
from cluster_plans import Cost, Plan

sys.path.pop(0)

FREE = Cluster(driver_s=0.0, bytes_per_s=1e18, latency_s=0.0)


def plan(n_chains: int, seconds: float = 10.0, size: int = 0) -> Plan:
    """So many models that take as long, each of which is then asked, which takes a tenth of it."""
    made = [MadeUp("train", {"i": i}, group=f"{i}") for i in range(n_chains)]
    asked = [MadeUp("signals", {"i": i}, inputs={"model": one.key}, group=f"{i}") for i, one in enumerate(made)]
    jobs = {job.key: job for job in [*made, *asked]}
    costs = {key: Cost(seconds if job.kind == "train" else seconds / 10) for key, job in jobs.items()}
    return Plan("made up", jobs, costs, dict.fromkeys(jobs, size))


@pytest.fixture(autouse=True)
def no_start(monkeypatch):
    """Only what is simulated counts."""
    monkeypatch.setattr(cluster, "START_S", 0.0)
    monkeypatch.setattr(cluster, "RESULT_S", 0.0)


@pytest.mark.parametrize("n_workers", [1, 2, 3, 6, 100])
def test_without_waits_a_plan_takes_what_its_rounds_take(n_workers):
    one = replayed(plan(6), n_workers, FREE)
    rounds = -(-6 // n_workers)
    assert 10 * rounds + 1 <= one.wall_s <= 10 * rounds + 6  # what is asked fills the gaps, or comes last
    assert one.tally.gpu_s == pytest.approx(66)
    assert one.bounds["the longest chain of jobs"] == pytest.approx(11)
    assert one.bound == ("the longest chain of jobs" if n_workers > 6 else "work of the GPUs")


def test_a_slow_driver_and_a_slow_link_are_what_bounds_it():
    slow = replayed(plan(50, seconds=0.1), 50, Cluster(driver_s=1.0, bytes_per_s=1e18, latency_s=0.0))
    assert slow.bound == "the driver"
    assert slow.wall_s >= slow.tally.n_assignments * 1.0
    narrow = replayed(plan(50, seconds=0.1, size=100), 50, Cluster(driver_s=0.0, bytes_per_s=10.0, latency_s=0.0))
    assert narrow.bound == "the driver's link"
    assert narrow.tally.n_bytes == 50 * 3 * 100  # each model goes to the driver and back, what is asked comes once
    assert narrow.wall_s >= 1500.0


def test_what_is_lost_is_done_again():
    stormy = Cluster(driver_s=0.0, bytes_per_s=1e18, latency_s=0.0, losses_per_hour=60.0, noticed_s=5.0, replaced_s=7.0)
    one = replayed(plan(200), 4, stormy)
    assert one.tally.gpu_s == pytest.approx(200 * 11)
    assert 15 <= one.tally.n_lost <= 60  # one a minute of work, 2,200 seconds of it
    assert one.wall_s > replayed(plan(200), 4, FREE).wall_s


def test_a_stored_run_took_on_one_worker_what_the_simulation_says(monkeypatch):
    monkeypatch.undo()
    stored = cluster_plans.Stored.at("paper-scale", "timing.json")
    one = replayed(Plan.joined("", stored.plans), 1, Cluster())
    assert one.wall_s == pytest.approx(249, rel=0.02)  # results/paper-scale/README.md
