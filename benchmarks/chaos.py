"""What kills, changed bytes, poisonous methods, memory bombs and lost machines do to a run: a table for each.

    python benchmarks/chaos.py                # all: 200 kills, 1,000 changes, every poison, the bombs
    python benchmarks/chaos.py kills 20       # a part (kills, flips, poison, memory, cluster), and a smaller count
    python benchmarks/chaos.py poison hangs   # one kind of poison alone

Moments and places are drawn by generators with a fixed seed, 0 unless a second number is given. Exit code 1 where a
promise was broken, which is named. `docs/reliability.md` has the figures.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from chaos_cluster import cluster
from chaos_runs import SMALL, Remains, broken_in, head, row, started
from poison import poison

from forgetgauge.auditing import write_audit_file
from forgetgauge.auditing.formats import write_csv
from forgetgauge.files import with_seal
from forgetgauge.plan.runfile import read_run_file
from forgetgauge.report.html import render_report
from forgetgauge.results.record import read_result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.run.verify import verify
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.store.transfer import export_run

# -- kills -------------------------------------------------------------------------------------------------------------

KILLS = ("parent", "busy worker", "idle worker", "whole group")
MOST_BUSY = 2
"""Busy workers killed in one go of a run: a job whose process died three times is set aside, as it should be."""


def workers_of(pid: int) -> list[int]:
    """Worker processes of a run, by their parent; none where it is gone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in children if "spawn_main" in _read(f"/proc/{child}/cmdline")]


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def is_busy(pid: int) -> bool | None:
    """Whether a process computes; None where it is gone."""
    ticks = []
    for _ in range(2):
        parts = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if not parts or parts[0] in "ZX":
            return None
        if parts[0] in "RD":
            return True
        ticks.append(int(parts[11]) + int(parts[12]))
        time.sleep(0.03)
    return ticks[0] != ticks[1]


def victim_of(kind: str, process: subprocess.Popen[str], rng: random.Random) -> int | None:
    """Whom to kill, once there is a worker that computes, or one that does not; None where the run ends first."""
    if kind in ("parent", "whole group"):
        return process.pid
    while process.poll() is None:
        workers = workers_of(process.pid)
        rng.shuffle(workers)
        for worker in workers:
            if is_busy(worker) is (kind == "busy worker"):
                return worker
        time.sleep(0.01)
    return None


def lines_of(folder: Path) -> int:
    """Of the ledger."""
    return _read(str(folder / "ledger.jsonl")).count("\n")


def wait_for_moment(process: subprocess.Popen[str], folder: Path, length: float, rng: random.Random) -> None:
    """Until any moment of a run as long as this, or shortly after it wrote a line or two of its ledger."""
    if rng.random() < 0.5:
        until = time.monotonic() + rng.uniform(0, 0.8 * length)
        while time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
        return
    wanted = lines_of(folder) + rng.randint(0, 2)
    while lines_of(folder) < max(wanted, 1) and process.poll() is None:
        time.sleep(0.02)
    time.sleep(rng.choice([0.0, 0.02, 0.1, 0.3]))


@dataclass
class Storm:
    """One run after another, killed again and again, each started again until it ends."""

    folder: Path
    calm: Remains
    length: float
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    restarts: Counter[str] = field(default_factory=Counter)
    identical: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    since: list[str] = field(default_factory=list)
    """Kinds of the kills that the present run has seen."""
    problems: list[str] = field(default_factory=list)

    def go(self, kinds: list[str]) -> None:
        """One start of the run, with as many of these kills as it lives through; those that were made are removed."""
        process, orphans, n_busy = started(self.file, self.out, "processes"), list[int](), 0
        while kinds:
            kind = kinds[-1]
            if kind == "busy worker" and n_busy == MOST_BUSY:
                break
            wait_for_moment(process, self.out, self.length, self.rng)
            victim = victim_of(kind, process, self.rng)
            if victim is None or process.poll() is not None:
                break
            orphans = workers_of(process.pid)
            (os.killpg if kind == "whole group" else os.kill)(victim, signal.SIGKILL)
            kinds.pop()
            self.kills[kind] += 1
            self.since.append(kind)
            if not kind.endswith("worker"):
                process.wait()
                self.restarts[kind] += 1
                self._wait_for(orphans)
                return
            n_busy += kind == "busy worker"
        self._ended(process.wait())

    @property
    def file(self) -> Path:
        """The run file."""
        return self.folder / "small.toml"

    @property
    def out(self) -> Path:
        """The run folder."""
        return self.folder / "run"

    def _wait_for(self, orphans: list[int]) -> None:
        """A worker whose parent is gone ends when its job does."""
        until = time.monotonic() + 30
        while time.monotonic() < until and any(is_busy(pid) is not None for pid in orphans):
            time.sleep(0.02)
        self.problems += [f"worker {pid} outlived its run" for pid in orphans if is_busy(pid) is not None]

    def _ended(self, code: int) -> None:
        """A run came through: compare it with the calm one, and make room for the next."""
        said = self.out.with_suffix(".err").read_text()
        self.runs += 1
        wrong = [f"exit code {code}: {said}"] if code else broken_in(self.out)
        if not code:
            wrong += Remains.of(self.out).unlike(self.calm)
        if not wrong:
            self.identical.update(self.since)
        self.problems += [f"after {self.since}: {one}" for one in wrong]
        self.since.clear()
        shutil.rmtree(self.out, ignore_errors=True)


def kills(scratch: Path, n_kills: int = 200, seed: int = 0) -> list[str]:
    """Kill processes of runs at random moments, and compare what comes of them with a run that nobody disturbed."""
    rng = random.Random(seed)
    (scratch / "small.toml").write_text(SMALL)
    begun = time.monotonic()
    if code := started(scratch / "small.toml", scratch / "run", "processes").wait():
        raise SystemExit(f"a calm run ends with {code}")
    storm = Storm(scratch, Remains.of(scratch / "run"), time.monotonic() - begun, rng)
    shutil.rmtree(scratch / "run")
    kinds = [KILLS[i % len(KILLS)] for i in range(n_kills)]
    rng.shuffle(kinds)
    while kinds or storm.since:
        storm.go(kinds)
        print(
            f"{storm.runs} runs, {dict(storm.kills)}, identical {dict(storm.identical)}",
            storm.problems,
            file=sys.stderr,
        )
    head("killed (SIGKILL)", "kills", "starts needed again", "identical result and artefacts")
    for kind in KILLS:
        row(kind, storm.kills[kind], storm.restarts[kind], storm.identical[kind])
    totals = (sum(counted.values()) for counted in (storm.kills, storm.restarts, storm.identical))
    row(f"together, over {storm.runs} runs", *totals)
    return storm.problems


# -- changed bytes -----------------------------------------------------------------------------------------------------


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """One bit of it changed."""
    at = int(rng.integers(len(content)))
    return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]


def numbers(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where every number stands."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from numbers(part, (*place, key))
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield place


def forged(text: str, rng: np.random.Generator) -> str:
    """A result with one number changed, under a digest that fits."""
    record = json.loads(text)
    places = list(numbers(record))
    *way, last = places[int(rng.integers(len(places)))]
    inside = record
    for key in way:
        inside = inside[key]
    inside[last] += 1 if isinstance(inside[last], int) else 1e-6
    return with_seal(json.dumps({**record, "sha256": ""}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def found_in(path: Path, target: Path, change: Callable[[bytes], bytes]) -> bool:
    """Whether verifying `target` finds a change of the file at `path`, which is mended afterwards."""
    before = path.read_bytes()
    path.write_bytes(change(before))
    try:
        return bool(verify(target).problems)
    finally:
        path.write_bytes(before)


def played(scratch: Path) -> RunFolder:
    """The small run, in this process."""
    (scratch / "small.toml").write_text(SMALL)
    folder = RunFolder(scratch / "run")
    play(Campaign.plan(resolve(*read_run_file(scratch / "small.toml"))), folder)
    return folder


def flips(scratch: Path, n_changes: int = 1000, seed: int = 0) -> list[str]:
    """Change a stored run, its export or its result in one place, verify it, and mend it."""
    rng = np.random.default_rng(seed)
    folder = played(scratch)
    folder.report.write_text(render_report(read_result(folder.result)))
    export, alone = scratch / "run.tar", scratch / "alone.json"
    export_run(folder, export)
    shutil.copy(folder.result, alone)
    files = sorted(path for path in folder.path.rglob("*") if path.is_file() and path.stat().st_size)
    lengths = np.array([path.stat().st_size for path in files])
    texts = [path for path in files if path.suffix != ".safetensors"]
    kinds: dict[str, Callable[[], bool]] = {
        "a bit of any file of the run folder": lambda: found_in(
            files[int(rng.choice(len(files), p=lengths / lengths.sum()))], folder.path, lambda c: flipped(c, rng)
        ),
        "a bit of run.json, ledger, result or report": lambda: found_in(
            texts[int(rng.integers(len(texts)))], folder.path, lambda c: flipped(c, rng)
        ),
        "a bit of its export": lambda: found_in(export, export, lambda c: flipped(c, rng)),
        "a bit of a result alone": lambda: found_in(alone, alone, lambda c: flipped(c, rng)),
        "a number of the result, under a new digest": lambda: found_in(
            folder.result, folder.path, lambda c: forged(c.decode(), rng).encode()
        ),
    }
    if wrong := [target for target in (folder.path, export, alone) if verify(target).problems]:
        return [f"{target} is found changed, but was not" for target in wrong]
    head("change", "how many", "found")
    n, total = n_changes // len(kinds), 0
    for name, once in kinds.items():
        n_found = sum(once() for _ in range(n))
        total += n_found
        row(name, n, n_found)
    row("together", n * len(kinds), total)
    return [] if total == n * len(kinds) else [f"{n * len(kinds) - total} changes were not found"]


# -- memory ------------------------------------------------------------------------------------------------------------

MEASURED = """
import atexit, re, runpy, sys
peak = sys.argv.pop(1)
status = lambda: re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]
atexit.register(lambda: open(peak, "w").write(status()))
runpy.run_module("forgetgauge", run_name="__main__")
"""
ALLOWED_MB = 200
"""Beside twice the declared data."""


def peak_of(scratch: Path, *arguments: str) -> tuple[float, int, str]:
    """(the most memory that a command held, in MB, its exit code, its last line)."""
    command = [sys.executable, "-c", MEASURED, str(scratch / "peak"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=scratch)
    last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
    return int((scratch / "peak").read_text()) * 1024 / 1e6, done.returncode, last


def expanding(path: Path, name: str, n_numbers: int) -> None:
    """An archive of four rows, and one column of zeros that are many but take little room."""
    np.savez_compressed(path, pair=np.arange(4))
    header = str({"descr": "<f8", "fortran_order": False, "shape": (n_numbers,)})
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as column,
    ):
        column.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for _ in range(n_numbers // 2**17):
            column.write(bytes(2**20))


def with_long_header(path: Path, n_bytes: int) -> None:
    """An archive with one unknown column, whose header is many spaces that take little room."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("nonsense.npy", "w", force_zip64=True) as column,
    ):
        column.write(b"\x93NUMPY\x02\x00" + n_bytes.to_bytes(4, "little"))
        for _ in range(n_bytes // 2**20):
            column.write(b" " * 2**20)


def table(path: Path, n_rows: int) -> int:
    """A `.csv` file of logits; how many bytes its numbers take."""
    at, logits = np.arange(n_rows), np.random.default_rng(0).normal(size=(n_rows, 10)).round(2)
    raw = {"pair": at % 4, "side": at // 4 % 2, "point": at // 8, "label": at % 10, "logits": logits}
    write_csv(path, {**raw, "set": np.where(at // 8 % 2 == raw["side"], "forget", "unseen")})
    return 8 * 15 * n_rows


def memory(scratch: Path) -> list[str]:
    """The most memory that small files which claim much make a command take, beside that of the same on sound data."""
    with (scratch / "run.json").open("wb") as sparse:
        sparse.truncate(3 * 2**30)
    bundle = scratch / "bundle.tar"
    tar = ["tar", "--sparse", "--blocking-factor=1", "-C", str(scratch), "-cf", str(bundle), "run.json"]
    subprocess.run(tar, check=True)
    expanding(scratch / "refused.npz", "nonsense", 2**28)
    expanding(scratch / "wanted.npz", "score", 2**25)
    with_long_header(scratch / "headed.npz", 2**31)
    in_table = table(scratch / "table.csv", 200_000)
    sound = scratch / "sound.npz"
    write_audit_file(played(scratch).path, sound)
    cases = [
        ("audit of the small run's outputs", sound, sound.stat().st_size),
        ("import of a sparse entry of 3 GiB", bundle, 0),
        ("audit of an unknown column of 2 GiB", scratch / "refused.npz", 0),
        ("audit of a column with a header of 2 GiB", scratch / "headed.npz", 0),
        ("audit of a table of 200,000 rows", scratch / "table.csv", in_table),
        ("audit of a column of 256 MiB", scratch / "wanted.npz", 2**28),
    ]
    problems = []
    head("command", "size of its file", "most memory", "allowed", "exit code", "what it says")
    for name, path, declared in cases:
        into = [str(scratch / "imported")] if path == bundle else []
        peak, code, last = peak_of(scratch, "import" if into else "audit", str(path), *into)
        allowed = 2 * declared / 1e6 + ALLOWED_MB
        row(name, f"{path.stat().st_size / 1e6:.3f} MB", f"{peak:.0f} MB", f"{allowed:.0f} MB", code, last)
        problems += [f"{name}: {peak:.0f} MB"] if peak > allowed or code != 2 * (path != sound) else []
    return problems


def main(part: str = "", *arguments: str) -> None:
    """One part, or all."""
    parts: dict[str, Callable[[Path], list[str]]] = {
        "kills": lambda scratch: kills(scratch, *map(int, arguments)),
        "flips": lambda scratch: flips(scratch, *map(int, arguments)),
        "poison": lambda scratch: poison(arguments, scratch),
        "memory": memory,
        "cluster": lambda scratch: cluster(scratch, *map(int, arguments)),
    }
    problems: list[str] = []
    for name in [part] if part else parts:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            print(f"\n{name}\n", flush=True)
            problems += parts[name](Path(scratch))
    for problem in problems:
        print(f"BROKEN: {problem}")
    raise SystemExit(bool(problems))


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main(*sys.argv[1:])
