"""A run on a Ray cluster gives the bytes of a run in this process, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from forgetgauge.plan.runfile import read_run_file
from forgetgauge.results.record import without_timings
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.cluster import sending, serving
from forgetgauge.run.cluster.connection import ALONE
from forgetgauge.run.cluster.executor import Ray
from forgetgauge.run.cluster.sending import References
from forgetgauge.run.options import RunOptions
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY_TOML

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra [ray] is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="platform: several nodes of Ray on one machine need Linux"),
    pytest.mark.filterwarnings("ignore"),  # of Ray's own
]
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
LONGER = TINY_TOML.replace("epochs = 1", "epochs = 10")


@pytest.fixture(scope="module")
def cluster():
    """A head that does no work and a node that does one job at a time; each test adds another."""
    before = dict(os.environ)
    os.environ |= ALONE | {"RAY_AUTH_TOKEN": secrets.token_hex(32), "PYTHONPATH": os.pathsep.join(sys.path)}
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    made.add_node(**NODE)
    yield made
    ray.shutdown()
    made.shutdown()
    os.environ.clear()
    os.environ.update(before)


def options(cluster, **how) -> RunOptions:
    return RunOptions("ray", "cpu", settings={"address": cluster.address, **how.pop("settings", {})}, **how)


def planned(folder: Path, text: str = LONGER) -> Campaign:
    folder.mkdir(exist_ok=True)
    (folder / "tiny.toml").write_text(text)
    return Campaign.plan(resolve(*read_run_file(folder / "tiny.toml")))


def assert_like(stormy: Path, calm: Path) -> None:
    """The same numbers and the same bytes, and no job was done twice."""
    results = [without_timings(json.loads((at / "run/result.json").read_text())) for at in (stormy, calm)]
    assert results[0] == results[1]
    state, before = (RunFolder(at / "run").open_ledger().state for at in (stormy, calm))
    assert {key: done.receipt for key, done in state.done.items()} == {
        key: done.receipt for key, done in before.done.items()
    }
    assert set(state.n_runs.values()) == {1}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The same run in this process."""
    folder = tmp_path_factory.mktemp("calm")
    play(planned(folder), RunFolder(folder / "run"), RunOptions(device="cpu"))
    return folder


def test_neither_a_lost_node_nor_damaged_bytes_change_a_number(cluster, calm, tmp_path, monkeypatch):
    monkeypatch.setattr(sending, "INLINE_BYTES", 0)  # everything goes through the object store
    sent, keep, damaged, shown = References.sent, Ray._keep, [], []

    def damage_one_sent(self, key, digest):
        if "sent" in damaged:
            return sent(self, key, digest)
        damaged.append("sent")
        return b"x" + self.store.read_bytes(key, digest)[1:]

    def damage_one_made(self, flight, made):
        if "made" not in damaged:
            damaged.append("made")
            made = serving.Made(made.key, made.sha256, made.content[:-1] + b"x")
        keep(self, flight, made)

    monkeypatch.setattr(References, "sent", damage_one_sent)
    monkeypatch.setattr(Ray, "_keep", damage_one_made)
    lost = cluster.add_node(**NODE)
    end = threading.Timer(4.0, lambda: cluster.remove_node(lost, allow_graceful=False))
    end.start()
    ending, _ = play(planned(tmp_path), RunFolder(tmp_path / "run"), options(cluster, progress=shown.append))
    end.join()
    assert sorted(damaged) == ["made", "sent"]
    assert (dict(ending.failed), ending.notes) == ({}, [])
    assert_like(tmp_path, calm)
    assert "3 nodes, 2 CPUs, " in shown[0].crew


def test_on_a_shared_disk_nothing_travels_and_another_torch_does_nothing(cluster, calm, tmp_path, monkeypatch):
    monkeypatch.setattr(Ray, "_keep", lambda *_: pytest.fail("nothing comes back but receipts"))
    stub = tmp_path / "odd/torch-9.9.dist-info"
    stub.mkdir(parents=True)
    (stub / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n")
    path = os.pathsep.join([str(stub.parent), os.environ["PYTHONPATH"]])
    odd = cluster.add_node(**NODE | {"num_cpus": 2}, env_vars={"PYTHONPATH": path})
    try:
        shared = options(cluster, settings={"shared_store": True})
        ending, _ = play(planned(tmp_path), RunFolder(tmp_path / "run"), shared)
    finally:
        cluster.remove_node(odd)
    (note,) = ending.notes
    assert note.startswith("not used: ")
    assert f"(node {odd.node_id[:8]}): torch 9.9 instead of " in note
    assert_like(tmp_path, calm)
    assert not list((tmp_path / "run/objects").glob(".shared*"))


METHODS = """
import copy, errno, os, time

def exits(model, retain, forget, context): os._exit(7)

def hangs(model, retain, forget, context): time.sleep(1000)

def fills(model, retain, forget, context):
    if os.environ.get("FULL"):
        raise OSError(errno.ENOSPC, "No space left on device")
    return copy.deepcopy(model)
"""


def test_who_is_to_blame_is_named_and_the_rest_finishes(cluster, tmp_path, monkeypatch):
    """Methods and data of the user's, in a folder that no worker looks into; a full disk is no method's fault."""
    at_work = Ray.seconds_at_work

    def at_work_if_it_hangs(self, assignment):  # however slow this machine is, nothing else is ended
        return at_work(self, assignment) if assignment.jobs[0].label.startswith("hangs") else 0.0

    monkeypatch.setattr(Ray, "seconds_at_work", at_work_if_it_hangs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "cluster_methods.py").write_text(METHODS)
    drawn = np.random.default_rng(0)
    np.savez("points.npz", x=drawn.normal(size=(400, 4)).astype(np.float32), y=np.arange(400) % 2)
    text = TINY_TOML.replace('name = "digits"\nfraction = 0.2', 'name = "points.npz"').replace("pairs = 2", "pairs = 1")
    text = text.replace("[learner]", '[learner]\nmodel = "linear"') + "[limits]\njob_seconds = 3\n"
    text += "".join(f'[unlearners.{name}]\nmethod = "cluster_methods:{name}"\n' for name in ("exits", "hangs", "fills"))
    full = cluster.add_node(**NODE, env_vars={"FULL": "1"})
    try:
        ending, result = play(planned(tmp_path, text), RunFolder(tmp_path / "run"), options(cluster, trial=False))
    finally:
        cluster.remove_node(full)
        sys.modules.pop("cluster_methods", None)
    lines = {failure.job.split()[0]: failure.line for failure in ending.failed.values()}
    assert set(lines) == {"exits", "hangs"}
    assert lines["exits"].startswith("the worker process died on ")
    assert lines["exits"].count("(node ") >= 2  # it was tried on several
    assert "limits.job_seconds = 3" in lines["hangs"]
    assert result is not None
    assert all(result.methods[name].quality is not None for name in ("retrain", "none", "neg-grad", "fills"))
    assert all(f"(node {full.node_id[:8]}): its disk is full" in note for note in ending.notes)


def listening() -> set[str]:
    """Addresses on which somebody listens, as the kernel writes them; those of the loopback are left out."""
    loopback = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
    found = set()
    for file in ("tcp", "tcp6"):
        rows = [line.split() for line in Path(f"/proc/net/{file}").read_text().splitlines()[1:]]
        found |= {row[1] for row in rows if row[3] == "0A" and not row[1].startswith(loopback)}
    return found


def test_a_cluster_of_ones_own_is_nobody_elses_and_a_killed_driver_goes_on(calm, tmp_path):
    planned(tmp_path)
    command = [sys.executable, "-m", "forgetgauge", "run", tmp_path / "tiny.toml", "--out", tmp_path / "run", "--quiet"]
    command += ["--executor", "ray", "--device", "cpu"]
    before = listening()
    alone = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    driver = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, env=alone)
    ledger = tmp_path / "run/ledger.jsonl"
    while driver.poll() is None and (not ledger.exists() or ledger.read_bytes().count(b"\n") < 3):
        time.sleep(0.01)
    assert driver.poll() is None
    assert listening() <= before
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert (done.returncode, done.stderr) == (0, "")
    assert "result: " in done.stdout
    assert "raylet" not in done.stdout
    assert_like(tmp_path, calm)
