"""The command line as a user meets it: what it prints, what it returns, how it answers to mistakes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from forgetgauge import cli
from forgetgauge.errors import UserError
from forgetgauge.results.record import read_result
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY_TOML


def forgetgauge(*arguments: object, cwd: Path | None = None, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "forgetgauge", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, **options)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run in a process of its own: its folder, and what it said."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.toml").write_text(TINY_TOML)
    done = forgetgauge("run", "tiny.toml", "--executor", "inline", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture
def finished(printed) -> Path:
    return printed[0]


def test_a_run_prints_the_table_and_writes_result_and_report(printed, call, monkeypatch):
    folder, done = printed
    monkeypatch.chdir(folder)
    _, again, _ = call("run", "tiny.toml", "--executor", "inline")
    qualities = json.loads((folder / "runs/tiny/result.json").read_text())["games"][0]["methods"]
    for out in (done.stdout, again):
        rows = [line.split()[0] for line in out.splitlines()[1:4]]
        assert rows == sorted(qualities, key=lambda name: (-qualities[name]["quality"], name))
        assert "runs/tiny/report.html" in out
    assert "<svg" in (folder / "runs/tiny/report.html").read_text()


def test_a_run_prints_a_format_and_nothing_else(printed, call, monkeypatch):
    monkeypatch.chdir(printed[0])
    code, out, err = call("run", "tiny.toml", "--executor", "inline", "--format", "json")
    assert code == 0
    stored = json.loads((printed[0] / "runs/tiny/result.json").read_text())["games"][0]["methods"]
    assert {row["method"]: row["q"] for row in json.loads(out)} == {name: m["quality"] for name, m in stored.items()}
    assert "runs/tiny/report.html" in err


def test_no_record_is_made_of_a_result_that_does_not_say_what_its_decisions_say(printed, call, tmp_path):
    stored = read_result(printed[0] / "runs/tiny/result.json")
    assert call("record", printed[0] / "runs/tiny", "--out", tmp_path / "record")[0] == 0
    game = stored.games[0]
    better = replace(game, methods=game.methods | {"neg-grad": replace(game.methods["neg-grad"], quality=1.0)})
    replace(stored, games=[better]).save(tmp_path / "better.json")
    code, _, err = call("record", tmp_path / "better.json", "--out", tmp_path / "other")
    assert code == 2
    assert "does not say what its decisions say" in err
    assert not (tmp_path / "other").exists()


def test_progress_is_plain_lines_where_there_is_no_terminal(printed, call, tmp_path):
    folder, done = printed
    assert re.search(r"^\[0:\d\d\] \d+/\d+ models, \d+/\d+ jobs", done.stderr, re.M)
    assert "\x1b" not in done.stderr
    for flag in ("--quiet", "-q"):
        quiet = call("run", folder / "tiny.toml", "--out", tmp_path / flag, "--executor", "inline", flag)
        assert (quiet[0], quiet[2]) == (0, "")
    told = {}
    for flags in ((), ("-v",)):
        where = ("--out", tmp_path / f"run{len(flags)}", "--executor", "inline")
        told[flags] = call("run", folder / "tiny.toml", *where, *flags)[2].splitlines()
    assert len(told[()]) < len(told["-v",])


def test_the_command_line_starts_without_heavy_imports():
    script = (
        "import sys, forgetgauge.cli; print([m for m in ('torch', 'numpy', 'pydantic', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


@pytest.mark.parametrize("command", ["report", "score", "status"])
def test_no_torch_is_loaded_to_report_score_or_look(finished, command):
    arguments = {"report": [], "score": ["--adversary", "entropy"], "status": []}[command]
    script = (
        "import sys; from forgetgauge import cli\n"
        f"sys.argv = ['forgetgauge', '{command}', 'runs/tiny', *{arguments!r}]\n"
        "try: cli.main()\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    out = subprocess.check_output([sys.executable, "-c", script], text=True, cwd=finished)
    assert out.splitlines()[-1] == "0 False"


def test_the_report_is_rebuilt_from_the_result_alone(finished, tmp_path, call):
    (tmp_path / "result.json").write_bytes((finished / "runs/tiny/result.json").read_bytes())
    assert call("report", tmp_path)[0] == 0
    assert (tmp_path / "report.html").read_bytes() == (finished / "runs/tiny/report.html").read_bytes()
    assert call("report", tmp_path, "--to", tmp_path / "elsewhere.html")[0] == 0
    assert (tmp_path / "elsewhere.html").exists()


def test_plan_says_what_would_be_done_and_what_is(finished, call, tmp_path):
    code, out, _ = call("plan", finished / "tiny.toml", "--out", finished / "runs/tiny")
    assert code == 0
    planned, done = re.search(r"^all +(\d+) +(\d+)$", out, re.M).groups()
    assert planned == done
    assert "MiB of outputs" in out
    _, out, _ = call("plan", finished / "tiny.toml", "--out", tmp_path / "new")
    assert re.search(r"^all +\d+ +0$", out, re.M)
    assert not (tmp_path / "new").exists()


def test_status_counts_jobs_and_disk(finished, call):
    code, out, _ = call("status", finished / "runs/tiny")
    assert code == 0
    assert out.startswith("finished: 85 of 85 jobs\n")
    assert re.search(r"^decide +48 +48$", out, re.M)
    assert re.search(r"disk: \d+\.\d MiB", out)
    said = json.loads(call("status", finished / "runs/tiny", "--json")[1])
    assert (said["state"], said["jobs_left"], said["failed"]) == ("finished", 0, [])
    stored = json.loads((finished / "runs/tiny/result.json").read_text())["games"][0]["methods"]
    assert {one["method"]: one["quality"] for one in said["quality"]} == {
        name: method["quality"] for name, method in stored.items()
    }


def test_status_knows_a_run_that_is_running_and_one_that_was_stopped(finished, call, tmp_path):
    shutil.copytree(finished / "runs/tiny", tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        assert call("status", folder.path)[1].startswith("running: 85 of 85 jobs, the last one finished ")
    (tmp_path / "run/result.json").unlink()
    lines = (tmp_path / "run/ledger.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run/ledger.jsonl").write_text("".join(lines[:-4]))
    code, out, _ = call("status", folder.path)
    assert code == 0
    assert re.match(
        r"stopped: \d+ of 85 jobs, the last one finished .* ago; the command that began it continues\n", out
    )
    assert call("run", finished / "tiny.toml", "--out", folder.path, "--executor", "inline", "--quiet")[0] == 0
    assert call("status", folder.path)[1].startswith("finished: 85 of 85 jobs\n")


def test_status_tells_q_of_the_pairs_that_are_finished(finished, call, tmp_path):
    shutil.copytree(finished / "runs/tiny", tmp_path / "run")
    raw = (finished / "tiny.toml").read_text().replace("pairs = 2", "pairs = 3")
    assert "pairs = 3" in raw
    (tmp_path / "more.toml").write_text(raw)
    limited = ["--executor", "inline", "--quiet", "--time-limit", "0.01s"]
    call("run", tmp_path / "more.toml", "--out", tmp_path / "run", *limited)
    said = json.loads(call("status", tmp_path / "run", "--json")[1])
    assert said["state"] == "stopped"
    assert {one["pairs"] for one in said["quality"]} == {2}


def test_plan_knows_the_time_of_what_was_done_before(finished, call, tmp_path):
    _, out, _ = call("plan", finished / "tiny.toml", "--out", finished / "runs/again")
    assert re.search(r"^time: .* of work by the pace of jobs like its own; less on several cores or GPUs$", out, re.M)
    _, out, _ = call("plan", finished / "tiny.toml", "--out", tmp_path / "new")
    assert "time: not known, since nothing like it was done in a run folder beside this one" in out
    _, out, _ = call("plan", finished / "tiny.toml", "--out", finished / "runs/tiny", "--json")
    said = json.loads(out)
    assert said["work"] == {"seconds": 0, "jobs": 0, "other_jobs": 0}
    assert said["jobs"]["decide"] == {"planned": 48, "done": 48}


def test_export_and_import_move_a_run(finished, call, tmp_path):
    assert call("export", finished / "runs/tiny", tmp_path / "run.tar")[0] == 0
    assert call("import", tmp_path / "run.tar", tmp_path / "moved")[0] == 0
    assert call("report", tmp_path / "moved")[0] == 0
    code, _, err = call("run", finished / "tiny.toml", "--out", tmp_path / "moved", "--executor", "inline", "--quiet")
    assert (code, err) == (0, "")
    theirs, ours = (
        json.loads(p.read_text()) for p in (tmp_path / "moved/result.json", finished / "runs/tiny/result.json")
    )
    assert theirs == ours


def test_lists_name_everything_registered(call):
    from forgetgauge.plugins import CATALOGUES

    for what, catalogue in CATALOGUES.items():
        code, out, _ = call("ls", what)
        assert code == 0
        assert [line for line in out.splitlines() if not line.startswith(" ")] == list(catalogue.entries)
        said = json.loads(call("ls", what, "--json")[1])[what]
        assert {name: one["what"] for name, one in said.items()} == {
            name: entry.summary for name, entry in catalogue.entries.items()
        }


def test_everything_is_listed_where_nothing_is_named(call):
    from forgetgauge.plugins import CATALOGUES

    _, out, _ = call("ls")
    for what, catalogue in CATALOGUES.items():
        assert f"\n{what.upper()}\n" in f"\n{out}"
        assert all(re.search(rf"^{name}$", out, re.M) for name in catalogue.entries)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lists_fit_the_terminal(call, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = call("ls")[1].splitlines()
    whole = [line for line in lines if " " in line.strip()]  # a single long word cannot be broken
    assert max(map(len, whole)) <= width


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",)])
def test_help_is_what_a_bare_command_says(call, arguments):
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Usage: forgetgauge [OPTIONS] COMMAND [ARGS]...\n")
    assert "  run " in out.split("Commands:")[1].splitlines()[1]
    assert "..." not in out.split("Commands:")[1].split("  data ")[0]  # nothing is cut off
    assert call("data")[::2] == (0, "")


def test_every_command_is_in_the_help_and_has_one_of_its_own(call):
    from forgetgauge.cli import COMMANDS

    out = call("--help")[1]
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", out, re.M)
        assert call(name, "-h")[::2] == (0, "")


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_that_of_the_package(call, flag):
    from forgetgauge.version import VERSION

    assert call(flag) == (0, f"forgetgauge {VERSION}\n", "")


def test_a_shell_can_complete(call):
    assert "_FORGETGAUGE_COMPLETE=complete_bash" in call("--show-completion", "bash")[1]


def test_validate_counts_games_and_jobs(call, tiny_file):
    assert call("validate", tiny_file)[:2] == (0, f"{tiny_file}: valid; 1 game, 85 jobs\n")
    assert "embedded default: valid" in call("validate")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "absent.toml"], "absent.toml: no such file"),
        (["run", "tiny.toml", "--set", "game.alpha=2"], "tiny.toml: game.alpha = 2"),
        (["run", "tiny.toml", "--set", "game.alhpa=2"], "did you mean 'alpha'?"),
        (["run", "tiny.toml", "--set", "nonsense"], "write key=value"),
        (["run", "tiny.toml", "--set", 'game.pairs="two"'], "game.pairs = 'two'"),
        (["run", "tiny.toml", "--set", "data.fraction=0.001"], "point"),
        (["run", "tiny.toml", "--set", "unlearners.neggrad.lr=1"], "did you mean 'neg-grad'?"),
        (["run", "tiny.toml", "--time-limit", "soon"], "--time-limit soon"),
        (["run", "tiny.toml", "--out", "tiny.toml"], "tiny.toml: cannot make this folder"),
        (["run", "tiny.toml", "--out", ""], "out must name a folder or a file, not ''"),
        (["run", "tiny.toml", "--out="], "out must name a folder or a file, not ''"),
        (["run", "tiny.toml", "--executor", "cloud"], "cloud"),
        (["run", "tiny.toml", "--outt", "x"], "--out"),
        (["rnu"], "Did you mean 'run'?"),
        (["plan", "absent.toml"], "no such file"),
        (["status", "absent"], "absent: no such folder"),
        (["status", "."], "not a run folder"),
        (["score", ".", "--adversary", "confidence"], "not a run folder"),
        (["score", "."], "--adversary"),
        (["report", "."], "no such file"),
        (["report", "absent"], "no such folder"),
        (["export", ".", "x.tar"], "not a run folder"),
        (["import", "absent.tar", "x"], "no such file"),
        (["import", "tiny.toml", "x"], "not a run exported"),
        (["import", ".", "x"], "not a run exported"),
        (["audit", "absent.npz"], "absent.npz"),
        (["ls", "unlearner"], "did you mean 'unlearners'?"),
        (["validate", "absent.toml"], "no such file"),
    ],
)
def test_every_mistake_is_one_line_and_exit_code_2(call, tiny_file, monkeypatch, arguments, words):
    monkeypatch.chdir(tiny_file.parent)
    before = sorted(tiny_file.parent.rglob("*"))
    code, out, err = call(*arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
    assert out == ""
    assert [p for p in sorted(tiny_file.parent.rglob("*")) if p not in before and p.is_file()] == []


@pytest.fixture
def own_folder(tiny_file, monkeypatch):
    """The current folder, with a run file and with modules `mine` that are forgotten afterwards."""
    monkeypatch.chdir(tiny_file.parent)
    monkeypatch.syspath_prepend(str(tiny_file.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tiny_file.parent
    sys.modules.pop("mine", None)


def test_a_folder_in_use_is_refused(finished, call):
    from forgetgauge.store.runfolder import RunFolder

    with RunFolder(finished / "runs/tiny").locked():
        code, _, err = call("run", finished / "tiny.toml", "--out", finished / "runs/tiny")
    assert (code, "another forgetgauge run" in err) == (2, True)


def test_a_failing_method_exits_with_1_and_is_named(call, own_folder, one_worker):
    (own_folder / "mine.py").write_text("def method(model, retain, forget, context):\n    raise OSError('gone')\n")
    code, out, err = call(
        *("run", "tiny.toml", "--set", "unlearners.mine.method=mine:method", "--executor", "processes", "--no-trial")
    )
    assert code == 1
    told = [line for line in (out + err).splitlines() if "gone" in line]
    assert told == ["failed: mine: OSError: gone (4 jobs, the first of them: mine of pair 0 side 0 seed 0)"]
    assert "jobs could not be done; tracebacks: runs/tiny/failures" in err
    assert "Traceback" not in err
    assert "mine of pair" in (own_folder / "runs/tiny/report.html").read_text()
    assert "failed: mine: OSError" in call("status", "runs/tiny")[1]


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_what_a_method_prints_stays_out_of_the_table(own_folder, executor):
    (own_folder / "loud.py").write_text(
        "import copy, os, sys\n\n\n"
        "def method(model, retain, forget, context):\n"
        "    print('hello from a method')\n"
        "    print('and to the error stream', file=sys.stderr)\n"
        "    os.write(1, b'by the number\\n')\n"
        "    return copy.deepcopy(model)\n"
    )
    raw = TINY_TOML + '\n[unlearners.loud]\nmethod = "loud:method"\n'
    (own_folder / "loud.toml").write_text(raw)
    done = forgetgauge("run", "loud.toml", "--executor", executor, "--format", "json", "-q", cwd=own_folder)
    assert done.returncode == 0, done.stderr
    assert {row["method"] for row in json.loads(done.stdout)} >= {"loud", "retrain"}
    kept = own_folder / "runs/loud/output.txt"
    if executor == "inline":
        assert "hello from a method" in done.stderr
        assert not kept.exists()
        return
    assert "hello" not in done.stderr
    assert "printed while it ran: runs/loud/output.txt" in done.stderr
    told = kept.read_text()
    assert re.search(r"^-- loud of pair 0 side 0 seed 0$", told, re.M)
    for line in ("hello from a method", "and to the error stream", "by the number"):
        assert told.count(line) >= 4  # two pairs, two sides, and the trial


def test_an_adversary_that_fails_leaves_a_finished_run_as_it_was(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "copy")
    (tmp_path / "copy/mine.py").write_text(
        "import numpy as np\n"
        "class Bad:\n"
        "    def fit(self, shadows, target):\n"
        "        if len(shadows.labels) > 100:\n"
        "            raise ValueError('no')\n"
        "        return self\n"
        "    def load(self, arrays):\n"
        "        return self\n"
        "    def arrays(self):\n"
        "        return {}\n"
        "    def decide(self, signals):\n"
        "        return np.ones(len(signals), dtype=bool)\n"
    )
    before = (tmp_path / "copy/runs/tiny/result.json").read_bytes()
    done = forgetgauge("score", "runs/tiny", "--adversary", "mine:Bad", cwd=tmp_path / "copy")
    assert done.returncode == 1
    assert "failed: fit mine:Bad: ValueError: no" in done.stderr
    assert (tmp_path / "copy/runs/tiny/result.json").read_bytes() == before
    assert "mine:Bad" not in (tmp_path / "copy/runs/tiny/run.json").read_text()


def test_the_time_limit_stops_a_run_that_then_goes_on(tiny_file, call, monkeypatch):
    monkeypatch.chdir(tiny_file.parent)
    code, out, _ = call("run", "tiny.toml", "--executor", "inline", "--time-limit", "0s")
    assert (code, "the same command continues" in out) == (0, True)
    assert call("run", "tiny.toml", "--executor", "inline", "--time-limit", "10m")[0] == 0


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("8m", 480), ("1.5h", 5400)])
def test_durations_are_read(text, seconds):
    assert cli.seconds_of(text) == seconds


@pytest.mark.slow
def test_ctrl_c_is_one_line_and_the_same_command_continues(finished, tmp_path, call, one_worker):
    # A shell that runs its jobs in the background makes them ignore Ctrl-C, and so their children: undo that first.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{listen}; from forgetgauge.cli import main; main()"
    arguments = ["run", str(finished / "tiny.toml"), "--out", str(tmp_path / "run")]
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "run/ledger.jsonl").exists():  # the workers are still importing then
        time.sleep(0.05)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped; the same command continues"
    assert "Traceback" not in err
    assert call(*arguments)[0] == 0


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_looking_at_a_run_makes_and_downloads_nothing(command, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("a download"))
    assert call(command, "--set", 'adversaries=["confidence"]')[0] == 0
    code, _, err = call(command, "--set", "data.name=mnist")
    assert (code, "'forgetgauge data get mnist' downloads it" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_looking_at_a_run_keeps_no_tokens_and_asks_no_hub(call, tmp_path, monkeypatch):
    from forgetgauge.data.checkpoints import checkpoint_folder
    from forgetgauge.data.folders import read_only
    from forgetgauge.data.text import Words, tokenise_once

    asked = []

    def absent(*_, local_files_only=False):
        asked.append(local_files_only)
        raise FileNotFoundError("not cached")

    errors = SimpleNamespace(LocalEntryNotFoundError=FileNotFoundError)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=absent, errors=errors))
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    sentences = ["a good film", "a bad film"]
    with read_only():
        tokenise_once(Words(sentences, 10, 4), sentences, 4)
        with pytest.raises(UserError, match="checkpoint 'some/model' is not here; a run downloads it"):
            checkpoint_folder("some/model")
    assert (asked, list(tmp_path.iterdir())) == ([True], [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "game.alpha=2"), "alpha"),
        (("--set", "unlearners.mine.method=absent:method"), "cannot be imported"),
        (("--executor", "inlin"), "unknown executor 'inlin'; did you mean 'inline'"),
        (("--set", "unlearners.mine.method=mine:method", "--executor", "inline"), "unlearners.mine: AttributeError"),
        (("--set", "unlearners.mine.method=mine:method", "--executor", "processes"), "mine: AttributeError"),
        (("--device", "cuda:999"), "device 'cuda:999'"),
    ],
)
def test_a_run_that_fails_at_once_leaves_no_folder(call, own_folder, one_worker, arguments, words):
    (own_folder / "mine.py").write_text("def method(model, retain, forget, context):\n    return model.absent\n")
    code, _, err = call("run", own_folder / "tiny.toml", *arguments)
    told = [line for line in err.splitlines() if not line.startswith("importing ")]
    assert (code, words in err, len(told)) == (2, True, 1)
    assert sorted(path.name for path in own_folder.iterdir()) == ["mine.py", "tiny.toml"]


def test_a_further_adversary_is_told_of_beside_the_strongest(finished, call, tmp_path):
    shutil.copytree(finished, tmp_path / "copy")
    code, out, _ = call("score", tmp_path / "copy/runs/tiny", "--adversary", "loss")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("loss ")]
    assert {row[1] for row in rows} == {"retrain", "none", "neg-grad"}
    found = json.loads((tmp_path / "copy/runs/tiny/result.json").read_text())["games"][0]["methods"]
    for _, method, advantage, *_ in rows:
        assert float(advantage.replace("−", "-")) == pytest.approx(
            found[method]["by_adversary"]["loss"]["advantage"], abs=5e-4
        )
    assert call("report", tmp_path / "copy/runs/tiny/result.json")[0] == 0  # by its result as well as by its folder
