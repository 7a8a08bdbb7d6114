"""What may be said of a cluster, and which of its machines are used, without any cluster."""

from __future__ import annotations

import hashlib
import re
import shlex
import socket
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer

from forgetgauge.cli import app
from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import Named
from forgetgauge.run.assignments import Assignment, Sources
from forgetgauge.run.cluster import connection, demand, nodes
from forgetgauge.run.cluster.demand import Asked, Demand
from forgetgauge.run.cluster.nodes import NODE, Nodes
from forgetgauge.run.cluster.sending import Flight, Paused, gathered
from forgetgauge.run.cluster.serving import SOURCE, Received, differences, environment, source_digest
from forgetgauge.run.options import RunOptions
from forgetgauge.store.objects import CorruptArtefact, encode

ONE_CPU = Demand(1, 0, 0)
EXAMPLES, CONSTRAINTS = Path(__file__).parents[2] / "examples", Path(__file__).parents[2] / "constraints.txt"


@pytest.fixture
def with_ray(monkeypatch):
    """As if Ray were installed, whether or not it is."""
    monkeypatch.setattr(demand, "find_spec", lambda name: name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address", "nonsense"], "--address nonsense: write auto, or a host and a port, e.g. 10.0.0.1:6379"),
        (["--address", "ray://here:10001"], "--address ray://here:10001: write auto, or a host and a port"),
        (["--address", "127.0.0.1:1"], "--address 127.0.0.1:1: nothing answers there"),
        (["--resources", "cpus=1"], "unknown resource 'cpus'; did you mean 'cpu'?"),
        (["--resources", "memory=2XB"], "write each once, e.g. cpu=1,gpu=0.25,memory=2GiB"),
        (["--resources", "cpu=1,cpu=2"], "write each once"),
        (["--resources", "cpu=0"], "cpu must be above 0"),
        (["--resources", "gpu=2"], "gpu is 1 or a part of one"),
    ],
)
def test_a_wrong_setting_is_one_line_and_nothing_is_made(with_ray, call, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("run", "--executor", "ray", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--address", "auto"], ["--resources", "cpu=1"], ["--shared-store"]])
def test_settings_of_one_executor_are_refused_by_another(call, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("run", "--executor", "inline", *option)
    assert (code, err) == (2, f"forgetgauge: executor 'inline' takes no {option[0]}\n")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"address": 6379}, "address = 6379 is not a text"),
        ({"resources": {"cpu": 1}}, "resources = {'cpu': 1} is not a text"),
        ({"shared_store": "no"}, "shared_store = 'no' is neither True nor False"),
    ],
)
def test_a_setting_of_another_type_is_one_line_in_python_too(with_ray, settings, said):
    with pytest.raises(UserError, match=said):
        Asked.of(**settings)


def test_settings_have_names():
    with pytest.raises(UserError, match="the settings of executor 'inline' are no mapping"):
        RunOptions(settings=["cpu"])


def test_without_ray_one_line_says_what_to_install(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demand, "find_spec", lambda _: None)
    code, _, err = call("run", "--executor", "ray")
    assert code == 2
    assert err == "forgetgauge: executor 'ray' needs Ray, which is not installed: pip install 'forgetgauge[ray]'\n"


def test_what_a_job_takes_is_read_from_the_command_line(with_ray):
    given = Asked.of("auto", "cpu=0.5, gpu=0.25, memory=2GiB")
    assert given.demand("train", "cuda", 10**9) == Demand(0.5, 0.25, 2**31)
    assert given.demand("decide", "cuda", 10**9) == Demand(0.5, 0, 2**31)


def test_what_nobody_said_comes_from_the_plan(with_ray):
    plain, model = Asked.of(), 10**6
    train, decide = plain.demand("train", "cuda", model), plain.demand("decide", "cuda", model)
    assert (train.cpu, train.gpu, decide.cpu, decide.gpu) == (1, 1, 1, 0)
    assert train.memory - plain.demand("train", "cuda", 0).memory == 4 * 64 * model  # a stack of 64, four times
    assert plain.demand("train", "cpu", model).memory - plain.demand("train", "cpu", 0).memory == 4 * 16 * model
    assert decide.memory < train.memory
    assert train.at_most(1000) == Demand(1, 1, 1000)


@pytest.mark.parametrize(
    ("demand", "slots"),
    [(ONE_CPU, 8), (Demand(1, 1, 0), 2), (Demand(1, 0.25, 0), 8), (Demand(1, 0, 2**33), 4), (Demand(3, 0, 0), 2)],
)
def test_the_scarcest_thing_says_how_much_a_node_does_at_once(demand, slots):
    assert demand.slots({"CPU": 8.0, "GPU": 2.0, "memory": 2.0**35}) == slots


class StandIn:
    """A Ray that has these nodes."""

    def __init__(self, **cpus: float) -> None:
        self.cpus = cpus

    def nodes(self):
        return [{"NodeID": which, "Alive": n >= 0, "Resources": {"CPU": float(n)}} for which, n in self.cpus.items()]


def test_a_node_is_avoided_only_where_another_can_do_it():
    found = Nodes(StandIn(a=1, b=1, head=0, dead=-1))
    assert found.selector(set(), ONE_CPU) == {}
    assert found.selector({"a"}, ONE_CPU) == {NODE: "!in(a)"}
    assert found.selector({"a", "b"}, ONE_CPU) == {}  # the head does no work, so somebody must
    found.refuse(("a", "10.0.0.1"), "its clock is wrong", ONE_CPU)
    assert found.selector(set(), ONE_CPU) == {NODE: "!in(a)"}
    assert found.selector({"b"}, ONE_CPU) == {NODE: "!in(a)"}
    assert (found.slots(ONE_CPU), str(found)) == (1, "2 nodes, 1 CPU (1 refused)")


def test_where_all_are_refused_the_run_is_too_and_each_is_named():
    found = Nodes(StandIn(a=1, b=1, head=0))
    found.refuse(("a", "10.0.0.1"), "torch 1 instead of 2", ONE_CPU)
    said = r"can be used: 10.0.0.1 \(node a\): torch 1 instead of 2; 10.0.0.2 \(node b\): numpy 1 instead of 2"
    with pytest.raises(UserError, match=said):
        found.refuse(("b", "10.0.0.2"), "numpy 1 instead of 2", ONE_CPU)


def test_a_run_that_no_machine_can_do_or_has_been_there_for_is_refused(monkeypatch):
    with pytest.raises(UserError, match="has what a job is to be given: 4 CPU, 1 GPU"):
        Nodes(StandIn(a=1)).refuse_if_deserted(Demand(4, 1, 0))
    deserted = Nodes(StandIn(a=-1))
    deserted.refuse_if_deserted(ONE_CPU)
    monkeypatch.setattr(nodes, "PATIENCE_S", -1.0)
    with pytest.raises(UserError, match=r"no machine for .* the same command continues"):
        deserted.refuse_if_deserted(ONE_CPU)


def test_a_head_that_is_gone_for_long_ends_the_run_in_one_line(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Nodes(StandIn(a=1), server.getsockname())
        found.look(at_once=True)
        assert found.slots(ONE_CPU) == 1
    found.look(at_once=True)  # not there: what was known holds for a while
    assert found.slots(ONE_CPU) == 1
    monkeypatch.setattr(nodes, "HEAD_PATIENCE_S", -1.0)
    with pytest.raises(UserError, match=r"the head of the cluster, .* the same command continues"):
        found.look(at_once=True)


def test_an_environment_is_compared_by_versions_and_by_our_own_source(tmp_path):
    ours = environment()
    assert {"forgetgauge", "torch", "numpy", "python", SOURCE} <= set(ours)
    assert ours[SOURCE] == source_digest()
    assert differences(ours, ours) == ""
    assert differences(ours, {**ours, "torch": "1.0"}) == f"torch {ours['torch']} instead of 1.0"
    assert differences({"numpy": "2"}, {"numpy": "2", "torch": "1"}) == "torch missing instead of 1"


def test_what_is_read_is_what_was_sent_or_nothing():
    content = encode({"x": np.arange(3)}, {"n": 3})
    digest = hashlib.sha256(content).hexdigest()

    def lost(_):
        raise TimeoutError

    assert Received({"k": content}).read("k", digest).facts == {"n": 3}
    assert Received({"k": [content]}).read("k", digest).facts == {"n": 3}
    for inputs, fetch in (({"k": content[:-1]}, lost), ({}, lost), ({"k": [content]}, lost)):
        with pytest.raises(CorruptArtefact):
            Received(inputs, fetch=fetch).read("k", digest)


def test_the_code_that_travels_is_the_users_own_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "travelling/inner").mkdir(parents=True)
    (tmp_path / "runs").mkdir()
    for name in ("travelling/__init__.py", "travelling/inner/__init__.py", "runs/big.bin", "unrelated.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "travelling/method.py").write_text("import numpy\nfrom travelling.inner import deep\nimport beside\n")
    (tmp_path / "travelling/inner/deep.py").write_text("X = 1\n")
    (tmp_path / "beside.py").write_text("Y = 1\n")
    folder = tmp_path / "sent"
    folder.mkdir()
    sources = Sources({"d": Named("digits")}, own_code={"m": Named("travelling.method:mine", code="c")})
    assert gathered(sources, folder)
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == [
        "beside.py",
        "travelling/__init__.py",
        "travelling/inner/__init__.py",
        "travelling/inner/deep.py",
        "travelling/method.py",
    ]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not gathered(replace(sources, own_code={}), empty)


def test_a_file_that_a_default_names_travels_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "notes.txt").write_text("1")
    (tmp_path / "sendsnotes.py").write_text("def mine(model, retain, forget, context, path='notes.txt'):\n    pass\n")
    folder = tmp_path / "sent"
    folder.mkdir()
    own_code = {"unlearner sendsnotes:mine c": Named("sendsnotes:mine", code="c")}
    assert gathered(Sources({"d": Named("digits")}, own_code=own_code), folder)
    assert (folder / "notes.txt").read_text() == "1"


def understood(words: list[str]) -> bool:
    """Whether the command line knows all options of a command."""
    command, *arguments = words[1:]
    typer.main.get_command(app).commands[command].make_context(command, arguments)  # type: ignore[attr-defined]
    return words[0] == "forgetgauge"


def test_the_example_for_slurm_is_a_script_whose_command_is_understood():
    script = EXAMPLES / "slurm.sh"
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    (line,) = re.findall(r"exec (forgetgauge run .*)\) &", script.read_text())
    assert understood(shlex.split(line))
    assert "RAY_AUTH_MODE=token" in script.read_text()


def test_the_example_for_kubernetes_asks_for_a_token_and_its_command_is_understood():
    yaml = pytest.importorskip("yaml")
    volume, job = yaml.safe_load_all((EXAMPLES / "kuberay.yaml").read_text())
    spec = job["spec"]["rayClusterSpec"]
    assert understood(shlex.split(job["spec"]["entrypoint"]))
    assert spec["authOptions"] == {"mode": "token"}
    pinned = dict(line.split("==") for line in CONSTRAINTS.read_text().splitlines() if "==" in line)
    assert spec["rayVersion"] == pinned["ray"].split()[0]
    mounted = spec["headGroupSpec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert mounted == volume["metadata"]["name"]


def test_the_folder_of_a_killed_process_is_deleted_and_that_of_a_living_one_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(connection.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(connection, "LONGEST_FOLDER", 10**4)
    used, held = connection._private_folder()
    left, lock = connection._private_folder()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    (left / "ray").mkdir()
    lock.close()  # as by a kill
    strange = tmp_path / "fg-of-somebody"
    strange.mkdir()
    new, other = connection._private_folder()
    assert sorted(tmp_path.iterdir()) == sorted([used, new, strange])
    held.close()
    other.close()


def test_what_waits_to_be_sent_out_again_is_not_being_worked_on():
    """Or the seconds of its pause would count against the job's limit of time."""
    flight = Flight(
        Assignment((), frozenset()), {}, Demand(1.0, 0.0, 0), node=("id", "name"), arrived=1.0, begun=2.0, n_lost=1
    )
    paused = Paused()
    paused.add(flight)
    assert (flight.node, flight.arrived, flight.begun) == (None, None, None)
