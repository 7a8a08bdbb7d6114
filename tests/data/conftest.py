from __future__ import annotations

import pytest

from forgetgauge.data.files import KNOWN
from forgetgauge.data.loading import _read, _read_path
from tests.data import layouts, server


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def shop():
    with server.opened() as shop:
        yield shop


@pytest.fixture
def data_home(tmp_path, monkeypatch):
    """FORGETGAUGE_DATA, empty."""
    home = tmp_path / "data"
    monkeypatch.setenv("FORGETGAUGE_DATA", str(home))
    for cache in (_read, _read_path):
        cache.cache_clear()
    yield home
    for cache in (_read, _read_path):
        cache.cache_clear()


@pytest.fixture
def tiny(monkeypatch):
    """Puts tiny versions in the places of the known sets; gives what their server should have."""

    def put(url="http://127.0.0.1:1"):
        served = {}
        for known in layouts.ALL:
            described, content = layouts.describe(known, f"{url}/{known.name}")
            monkeypatch.setitem(KNOWN, known.name, described)
            served |= {f"{known.name}/{name}": body for name, body in content.items()}
        return served

    return put


@pytest.fixture
def lay_out(tiny, data_home):
    """Writes the tiny version of a known set under FORGETGAUGE_DATA and gives its folder."""
    tiny()

    def write(name):
        folder = data_home / KNOWN[name].folders[0]
        folder.mkdir(parents=True)
        for file, content in layouts.contents(KNOWN[name]).items():
            (folder / file).write_bytes(content)
        return folder

    return write
