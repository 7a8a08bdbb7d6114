"""Code that the documents show is code that runs; commands and run files that they show are understood."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from forgetgauge import plugins
from forgetgauge.cli import app
from forgetgauge.cli import reproduce as cli_reproduce
from forgetgauge.plan.runfile import apply_settings, read_run_file, sweep_games
from forgetgauge.run.resolve import resolve, resolve_adversary

from .fences import DOCUMENTS, FENCE, ROOT, blocks_of, commands_in, with_blocks

SMALL = {
    "pairs=8": "pairs=2, shadows=2, references=4, fraction=0.2, learner={'epochs': 1}",
    '"epochs": 12}': '"epochs": 2}',
    'Smoothed(), data="digits", alpha=0.5, pairs=4': 'Smoothed(1), data="digits", fraction=0.2, pairs=2, shadows=2',
}
"""What makes examples a matter of seconds."""
EMBEDDED = tuple(name for name, entry in plugins.data.entries.items() if entry.embedded)
QUICK = ("ls", "plan", "validate")  # commands that are run, not only read


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for catalogue in plugins.CATALOGUES.values():
        monkeypatch.setattr(catalogue, "_bound", dict(catalogue._bound))
    yield tmp_path
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


def write_titled(document, folder):
    """Blocks with a title are files; several with one title are parts of one file."""
    for block in blocks_of(document):
        if block.title:
            with (folder / block.title).open("a") as file:
                file.write(f"{block.text}\n\n")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_names_its_language(document):
    for match in FENCE.finditer((ROOT / document).read_text("utf-8")):
        assert match["language"], match["text"]


@pytest.mark.slow
@pytest.mark.parametrize("document", with_blocks("python"))
def test_python_blocks_run_one_after_another(document, folder):
    write_titled(document, folder)
    names: dict[str, object] = {}
    for block in blocks_of(document, "python"):
        code = block.text
        for large, small in SMALL.items():
            code = code.replace(large, small)
        assert "evaluate(" not in code or code != block.text, "an example that is too large for a test"
        exec(compile(code, document, "exec"), names)
    for name, thing in list(names.items()):
        if name.startswith("test_"):
            thing()
    if "result" in names:
        assert all(0 <= method.quality <= 1 for method in names["result"].methods.values())


@pytest.mark.parametrize("document", with_blocks("toml"))
def test_run_files_are_accepted(document, folder):
    write_titled(document, folder)
    for block in blocks_of(document, "toml"):
        raw = tomllib.loads(block.text)
        sweep_games(raw, document)
        if raw.get("data", {}).get("name", "digits") in EMBEDDED:
            resolve(raw, document)


def command_of(words):
    """The command that words of the command line name, its name, and the words that are left for it."""
    command, name, left = typer.main.get_command(app), "", list(words)
    while hasattr(command, "commands"):
        name = left.pop(0)
        assert name in command.commands, name
        command = command.commands[name]
    return command, name, left


def check_call(words, where):
    command, name, left = command_of(words)
    params = command.make_context(name, left).params
    if name in ("run", "plan", "validate"):
        raw, source = read_run_file(where / params["file"] if params["file"] else None)
        sweep_games(apply_settings(raw, params["settings"] or []), source)
    tables = apply_settings({}, params.get("settings") or []).get("adversaries", {})
    for adversary in params.get("adversary") or []:
        resolve_adversary(adversary, tables.get(adversary, {}))
    if name == "reproduce":
        cli_reproduce._chosen(params["names"])
    if name in QUICK or words[:2] in (["reproduce", "list"], ["reproduce", "toy"]):
        outcome = CliRunner().invoke(app, words)
        assert outcome.exit_code == 0, outcome.output


@pytest.mark.parametrize("document", sorted({*with_blocks("bash"), *with_blocks("text")}))
def test_commands_are_understood(document, folder):
    write_titled(document, folder)
    for block in blocks_of(document):
        prompts = "\n".join(re.findall(r"^\$ .*$", block.text, re.M)) if block.language == "text" else block.text
        where = ROOT
        for words in commands_in(prompts) if block.language in ("bash", "text") else []:
            while re.match(r"\w+=", words[0]):
                words.pop(0)
            program = os.path.basename(words[0])
            if program == "cd":
                where = where / words[1]
                assert where.is_dir(), where
            elif program == "forgetgauge":
                check_call(words[1:], where)
            elif program.startswith("python") and words[1].endswith(".py"):
                assert (where / words[1]).is_file(), words[1]
            elif program.startswith("python") and words[1] == "-m":
                file = Path(words[2].replace(".", "/")).with_suffix(".py")
                assert any((where / base / file).is_file() for base in ("src", "tests")) or find_spec(words[2])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_in_the_text_exist_with_their_options(document):
    text = FENCE.sub("", (ROOT / document).read_text("utf-8"))
    for span in re.findall(r"`forgetgauge ([^`]+)`", text):
        command, _, left = command_of(span.split())
        known = {option for param in command.params for option in param.opts}
        assert {word for word in left if word.startswith("--")} <= known, span


def test_the_output_of_start_here_is_the_readmes():
    def table(document):
        (found,) = re.findall(r"^method .*?^Q = 1[^\n]*$", (ROOT / document).read_text("utf-8"), re.M | re.S)
        return [re.sub(r" +[\d.]+$", "", line) for line in found.splitlines()]  # seconds are the machine's

    assert table("docs/start-here.md") == table("README.md")
    assert len(table("README.md")) == 13


def test_the_picture_of_q_has_the_numbers_of_the_table():
    picture = (ROOT / "docs/pictures/quality.svg").read_text("utf-8")
    rows = re.findall(r"^([a-z-]+) +([\d.]+)  (\[[\d., ]+\])", (ROOT / "docs/start-here.md").read_text("utf-8"), re.M)
    assert len(rows) == 8
    for name, quality, interval in rows:
        assert f">{name}</text>" in picture
        assert f">{quality} {interval}</text>" in picture
        assert f'cx="{130 + 2000 * (float(quality) - 0.8):g}"' in picture


def test_generated_pages_are_what_the_catalogues_say(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import generate

    for path, text in generate.pages().items():
        assert path.read_text("utf-8") == text, f"{path.name}: run `python docs/generate.py`"
