"""Downloads against a server on this machine, in all the ways they go wrong."""

import hashlib
import sys
import urllib.request

import pytest

from forgetgauge.data import download as downloading
from forgetgauge.data.cifar import load_cifar10
from forgetgauge.data.download import fetch, retrieve
from forgetgauge.data.files import KNOWN, Download
from forgetgauge.errors import DiskFull, UserError

BODY = bytes(range(256)) * 300


def silent(*_):
    pass


@pytest.fixture
def download(shop):
    shop.files["a.bin"] = BODY
    return Download(f"{shop.url}/a.bin", len(BODY), hashlib.sha256(BODY).hexdigest())


def test_what_arrives_is_what_was_published_and_nothing_else_is_left(download, tmp_path):
    retrieve(download, tmp_path / "a.bin", silent)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.bin", BODY)]


def test_a_file_that_is_there_already_is_not_asked_for_again(download, shop, tmp_path):
    for _ in range(2):
        retrieve(download, tmp_path / "a.bin", silent)
    assert len(shop.asked) == 1


def test_a_broken_download_keeps_its_part_and_goes_on_from_there(download, shop, tmp_path):
    shop.manner = "breaks"
    kept = []
    for _ in range(3):
        with pytest.raises(UserError, match=r"connection broke after 0\.\d of 0\.1 MiB; the same command continues$"):
            retrieve(download, tmp_path / "a.bin", silent)
        (part,) = tmp_path.iterdir()
        assert part.name == "a.bin.part"
        kept.append(part.stat().st_size)
    assert kept == [len(BODY) // 2, len(BODY) * 3 // 4, len(BODY) * 7 // 8]
    shop.manner = "well"
    retrieve(download, tmp_path / "a.bin", silent)
    assert [asked for _, asked in shop.asked] == [None, *(f"bytes={n}-" for n in kept)]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.bin", BODY)]


def test_a_server_without_ranges_sends_all_of_it_again(download, shop, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(b"x" * 1000)
    shop.manner = "no-ranges"
    retrieve(download, tmp_path / "a.bin", silent)
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_a_part_that_was_whole_needs_no_server(download, shop, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(BODY)
    retrieve(download, tmp_path / "a.bin", silent)
    assert shop.asked == []
    assert (tmp_path / "a.bin").read_bytes() == BODY


@pytest.mark.parametrize("manner", ["truncates", "tampers", "lengthens"])
@pytest.mark.parametrize("begun", [0, 1000, len(BODY) - 10])
def test_a_wrong_file_is_thrown_away_and_said_in_one_line(download, shop, tmp_path, manner, begun):
    if begun:
        (tmp_path / "a.bin.part").write_bytes(BODY[:begun])
    shop.manner = manner
    with pytest.raises(UserError, match=r"is not the published file .* thrown away") as refusal:
        retrieve(download, tmp_path / "a.bin", silent)
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []
    shop.manner = "well"
    retrieve(download, tmp_path / "a.bin", silent)
    assert (tmp_path / "a.bin").read_bytes() == BODY


@pytest.mark.parametrize("n_bytes", [len(BODY) // 3, len(BODY) - 1])
def test_a_part_with_wrong_bytes_is_found_out_at_the_end(download, tmp_path, n_bytes):
    (tmp_path / "a.bin.part").write_bytes(b"x" * n_bytes)
    with pytest.raises(UserError, match="is not the published file"):
        retrieve(download, tmp_path / "a.bin", silent)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_wrong_bytes_is_replaced_only_by_the_right_ones(download, shop, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"wrong")
    shop.manner = "tampers"
    with pytest.raises(UserError):
        retrieve(download, tmp_path / "a.bin", silent)
    assert (tmp_path / "a.bin").read_bytes() == b"wrong"
    shop.manner = "well"
    retrieve(download, tmp_path / "a.bin", silent)
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_no_server_an_unwilling_one_and_a_wrong_address_are_one_line_each(download, shop, tmp_path):
    shop.manner = "fails"
    with pytest.raises(UserError, match="the server answers 503"):
        retrieve(download, tmp_path / "a.bin", silent)
    with pytest.raises(UserError, match="the server answers 404"):
        retrieve(Download(f"{shop.url}/b.bin", 1, "0" * 64), tmp_path / "b.bin", silent)
    with pytest.raises(UserError, match=r"cannot be reached: .*refused"):
        retrieve(Download("http://127.0.0.1:1/a.bin", 1, "0" * 64), tmp_path / "a.bin", silent)
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_up_to_all_bytes_and_a_resumed_one_starts_where_it_was(download, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(BODY[:70_000])
    heard = []
    retrieve(download, tmp_path / "a.bin", lambda *what: heard.append(what))
    assert heard[0][1] > 70_000
    assert heard[-1] == ("a.bin", len(BODY), len(BODY))
    assert heard == sorted(heard)


def test_the_progress_line_is_for_terminals_alone(monkeypatch, capsys):
    downloading.line_on_terminal("a.bin", 5 * 2**19, 5 * 2**20)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    downloading.line_on_terminal("a.bin", 5 * 2**19, 5 * 2**20)
    downloading.line_on_terminal("a.bin", 5 * 2**20, 5 * 2**20)
    assert capsys.readouterr().err == "\ra.bin  50 %  2.5 of 5.0 MiB\ra.bin 100 %  5.0 of 5.0 MiB\n"


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_known_set_is_fetched_whole_and_then_left_alone(name, shop, tiny, tmp_path):
    shop.files = tiny(shop.url)
    known = KNOWN[name]
    folder = fetch(known, tmp_path, silent)
    assert folder == tmp_path / known.folders[0]
    n_asked = len(shop.asked)
    assert fetch(known, tmp_path, silent) == folder
    assert n_asked == len(shop.asked) == len(known.downloads)
    assert [path.name for path in tmp_path.iterdir()] == [known.folders[0]]  # no archive is left
    assert len(list(folder.iterdir())) == len(known.files)


@pytest.mark.parametrize("name", ["cifar10", "mnist"])
def test_only_what_is_damaged_is_fetched_again(name, shop, tiny, tmp_path):
    shop.files = tiny(shop.url)
    folder = fetch(KNOWN[name], tmp_path, silent)
    victim = sorted(folder.iterdir())[0]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    victim.write_bytes(victim.read_bytes()[:-1])
    shop.asked.clear()
    fetch(KNOWN[name], tmp_path, silent)
    assert len(shop.asked) == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_whole_set_in_another_of_its_folders_is_left_alone(shop, tiny, tmp_path):
    shop.files = tiny(shop.url)
    folder = fetch(KNOWN["mnist"], tmp_path, silent)
    (tmp_path / "MNIST").mkdir()
    folder.rename(tmp_path / "MNIST/raw")
    shop.asked.clear()
    assert fetch(KNOWN["mnist"], tmp_path, silent) == tmp_path / "MNIST/raw"
    assert shop.asked == []


def test_a_damaged_plain_file_gives_way_to_the_compressed_one_that_is_fetched(shop, tiny, tmp_path):
    shop.files = tiny(shop.url)
    folder = fetch(KNOWN["mnist"], tmp_path, silent)
    (folder / "train-labels-idx1-ubyte").write_bytes(b"damaged")
    fetch(KNOWN["mnist"], tmp_path, silent)
    assert not (folder / "train-labels-idx1-ubyte").exists()


def test_reading_an_absent_set_fetches_it(shop, tiny, data_home):
    shop.files = tiny(shop.url)
    dataset = load_cifar10()
    assert (len(dataset.points), len(dataset.test)) == (15, 3)
    assert (data_home / "cifar-10-batches-bin/test_batch.bin").is_file()


def test_an_absent_set_that_cannot_be_fetched_is_one_line_that_says_where_it_was_looked_for(tiny, data_home):
    tiny()
    with pytest.raises(UserError, match=f"data 'cifar10' is not under {data_home}; http.*cannot be reached"):
        load_cifar10()


def test_a_folder_that_cannot_be_written_is_one_line(shop, tiny, tmp_path):
    shop.files = tiny(shop.url)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match=r"cannot be written: .*; set FORGETGAUGE_DATA to another folder"):
        fetch(KNOWN["cifar10"], tmp_path / "file", silent)


def test_a_full_disk_is_said_and_the_part_stays(shop, tiny, tmp_path):
    shop.files = tiny(shop.url)

    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskFull, match="the disk is full; the same command continues"):
        fetch(KNOWN["cifar10"], tmp_path, full)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-binary.tar.gz.part"]


def test_no_address_but_those_of_the_known_sets_is_ever_opened():
    assert {known.name for known in KNOWN.values()} == set(KNOWN)
    for known in KNOWN.values():
        for download in known.downloads:
            assert urllib.request.Request(download.url).type in ("http", "https")
            assert len(download.sha256) == 64
