"""`forgetgauge data check` and `data get`."""

import gzip
import sys

import numpy as np
import pytest

from forgetgauge import plugins
from forgetgauge.data.checking import examine
from forgetgauge.data.files import KNOWN
from forgetgauge.data.folders import data_folder
from tests.data.layouts import ALL


@pytest.mark.parametrize("name", [known.name for known in ALL])
def test_a_whole_set_is_present_a_changed_byte_is_damage_and_a_missing_file_absence(name, lay_out):
    folder = lay_out(name)
    found = examine(name)
    assert (found.state, found.where, found.problem) == ("present", str(folder), None)
    path = folder / KNOWN[name].files[-1].name
    content = path.read_bytes()
    if KNOWN[name].files[-1].sha256:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert f"{path}: not the published content" in examine(name).problem
    path.write_bytes(content[: len(content) // 2])
    found = examine(name)
    assert found.state == "damaged"
    assert found.problem.startswith(f"{path}: ")
    assert f"instead of {KNOWN[name].files[-1].n_bytes or 2:,}" in found.problem
    assert found.problem.endswith(f"; 'forgetgauge data get {name}' mends it")
    path.unlink()
    assert examine(name).state == "absent"


def test_without_a_digest_of_the_content_the_compressed_file_is_checked(lay_out, monkeypatch):
    from dataclasses import replace

    folder = lay_out("fashion-mnist")
    known = KNOWN["fashion-mnist"]
    unknown = tuple(replace(file, sha256=None) for file in known.files)
    monkeypatch.setitem(KNOWN, "fashion-mnist", replace(known, files=unknown))
    for path in list(folder.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    assert examine("fashion-mnist").state == "present"
    path = folder / "train-images-idx3-ubyte.gz"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[-1] ^= 1
    path.write_bytes(gzip.compress(bytes(content), mtime=0))
    assert "not the published file" in examine("fashion-mnist").problem
    path.write_bytes(path.read_bytes()[:-30])
    assert "not a whole .gz file" in examine("fashion-mnist").problem


def test_check_lists_every_data_set_of_the_catalogue_and_is_content_with_absence(call, data_home):
    code, out, _ = call("data", "check")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1 : 1 + len(plugins.data.entries)]] == list(
        plugins.data.entries
    )
    assert str(data_home / "cifar-10-batches-bin") in out
    assert "cifar10: 'forgetgauge data get cifar10' downloads it" in out


def test_check_of_names_fails_when_one_of_them_is_not_fine(call, lay_out):
    lay_out("mnist")
    assert call("data", "check", "mnist", "digits")[0] == 0
    code, out, _ = call("data", "check", "mnist", "cifar10")
    assert code == 2
    assert [line.split()[:2] for line in out.splitlines()[1:3]] == [["mnist", "present"], ["cifar10", "absent"]]


def test_check_reads_the_users_own_files(call, tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.zeros((6, 2)), y=[0, 1, 2] * 2, x_test=np.zeros((2, 2)), y_test=[0, 1])
    code, out, _ = call("data", "check", tmp_path / "mine.npz")
    assert (code, out.splitlines()[1].split()[1:5]) == (0, ["present", "6", "2", "3"])
    code, out, _ = call("data", "check", tmp_path / "none.npz")
    assert code == 2
    assert "none.npz: no such file" in out


def test_a_wrong_name_is_one_line(call):
    for command in ("check", "get"):
        code, out, err = call("data", command, "minst")
        assert (code, out, err) == (2, "", "forgetgauge: unknown data set 'minst'; did you mean 'mnist'?\n")


def test_get_downloads_to_the_data_folder_or_to_the_one_named(call, shop, tiny, data_home, tmp_path):
    shop.files = tiny(shop.url)
    assert call("data", "get", "cifar10", "sst5")[:2] == (
        0,
        f"cifar10: {data_home}/cifar-10-batches-bin\nsst5: {data_home}/sst5\n",
    )
    assert call("data", "check", "cifar10", "sst5")[0] == 0
    assert call("data", "get", "digits")[:2] == (0, "digits: embedded, nothing to download\n")
    code, out, _ = call("data", "get", "mnist", "--to", tmp_path / "else")
    assert (code, out.splitlines()[0]) == (0, f"mnist: {tmp_path}/else/mnist")
    assert f"FORGETGAUGE_DATA={tmp_path}/else" in out


@pytest.mark.parametrize("manner", ["breaks", "truncates", "tampers", "fails"])
def test_a_download_that_goes_wrong_is_one_line_and_the_same_command_mends_it(call, shop, tiny, data_home, manner):
    shop.files = tiny(shop.url)
    shop.manner = manner
    code, out, err = call("data", "get", "cifar100")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not (data_home / "cifar-100-binary").exists()
    assert not list(data_home.glob("*.gz"))
    shop.manner = "well"
    assert call("data", "get", "cifar100")[0] == 0
    assert call("data", "check", "cifar100")[0] == 0


def test_without_the_variable_data_lies_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("FORGETGAUGE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    places = {"linux": "", "darwin": "Library/Caches", "win32": "local"}
    for system, place in places.items():
        monkeypatch.setattr(sys, "platform", system)
        assert data_folder() == tmp_path / place / "forgetgauge"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data_folder() == tmp_path / ".cache/forgetgauge"
    monkeypatch.setenv("FORGETGAUGE_DATA", "~/sets")
    assert data_folder() == tmp_path / "sets"


def test_copies_and_gaps_in_ones_own_data_are_said(call, tmp_path):
    inputs = np.random.default_rng(0).standard_normal((30, 4))
    np.savez(tmp_path / "twice.npz", x=np.concatenate([inputs, inputs]), y=np.array([0, 5, 1000] * 20))
    code, out, _ = call("data", "check", tmp_path / "twice.npz")
    assert code == 0
    assert "60 of 60 inputs stand there more than once" in out
    assert "the labels are 0, 5, 1000" in out
