"""Write lock/*.txt: the versions of constraints.txt with the SHA-256 of every file the index has of them.

    python tools/lock.py

Run it after changing a version in constraints.txt or a dependency in pyproject.toml. It asks the indexes that pip is
set up with, and works out for Linux, macOS and Windows and for each Python we support which packages each of our extras
needs; it wants `packaging`, which pytest brings. tools/install.py installs from what it writes.

PyTorch has two files: torch.txt is the index's build, with the CUDA libraries it wants on Linux; torch-cpu.txt holds
the builds without CUDA (`+cpu`) that one's own index or folder may have. Their hashes stay as long as the version does,
also where this machine has no such file.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.parser import HeaderParser
from html.parser import HTMLParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "linux": ("Linux", "posix", "x86_64"),
    "darwin": ("Darwin", "posix", "arm64"),
    "win32": ("Windows", "nt", "AMD64"),
}
LOCKS = {
    "base": (None, ()),
    "run": ("base", ("run",)),
    "text": ("run", ("text",)),
    "dp": ("run", ("dp",)),
    "ray": ("run", ("ray",)),
    "dev": ("run", ("text", "dp", "test", "lint", "docs")),
}
"""Each file: the file it begins with, and the extras of pyproject.toml that it is for."""
BACKEND = "setuptools"
"""Builds our package, from the lock too: `pip install --no-build-isolation` then fetches nothing."""

Environment = tuple[str, str]
EVERYWHERE = tuple(itertools.product(SYSTEMS, PYTHONS))
HEADER = "# Written by tools/lock.py from constraints.txt: change that, then `make lock`."
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


@dataclass
class Package:
    """One version of one package: its files' hashes, and what it requires as its wheel states it."""

    name: str
    version: str
    hashes: set[str] = field(default_factory=set)
    cpu_hashes: set[str] = field(default_factory=set)  # of its builds without CUDA, whose version ends in +cpu
    requires: list[Requirement] = field(default_factory=list)


# -- the index -----------------------------------------------------------------------------------------------------


def indexes() -> tuple[list[str], list[str]]:
    """The indexes pip asks, and the pages or folders it looks into for links."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    named: dict[str, list[str]] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        named.setdefault(key.rpartition(".")[2], []).extend(value.strip("'\"").split())
    if not named.get("index-url"):
        from pip._internal.models.index import PyPI

        named["index-url"] = [PyPI.simple_url]
    return named["index-url"][-1:] + named.get("extra-index-url", []), named.get("find-links", [])


class Links(HTMLParser):
    """The addresses a page links to."""

    def __init__(self, page: str, address: str) -> None:
        super().__init__()
        self.address, self.found = address, []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an anchor points to, as an absolute address."""
        if tag == "a" and (target := dict(attrs).get("href")):
            self.found.append(urllib.parse.urljoin(self.address, target))


def read(address: str) -> bytes | None:
    """What is at an address; None where nothing is."""
    asked = urllib.request.Request(
        address, headers={"Accept": "text/html, */*;q=0.1", "User-Agent": "forgetgauge-lock"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    except urllib.error.URLError as error:
        if not isinstance(error.reason, FileNotFoundError):
            raise
    return None


class Remote(io.RawIOBase):
    """A file of the index, of which only what is read is fetched: of a wheel of 500 MB, what it requires."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address, self.place = address, 0
        self.n_bytes = int(self._part(0, 0)[1].rpartition("/")[2])

    def _part(self, first: int, last: int) -> tuple[bytes, str]:
        asked = urllib.request.Request(self.address, headers={"Range": f"bytes={first}-{last}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.read(), answer.headers["Content-Range"]

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def seekable(self) -> bool:
        """The end of a zip file is read first."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, counted from the beginning, from here or from the end."""
        self.place = offset + (0, self.place, self.n_bytes)[whence]
        return self.place

    def readinto(self, buffer: memoryview) -> int:
        """Fetch as much as there is room for."""
        n_wanted = min(len(buffer), self.n_bytes - self.place)
        if n_wanted > 0:
            buffer[:n_wanted] = self._part(self.place, self.place + n_wanted - 1)[0]
            self.place += n_wanted
        return max(n_wanted, 0)


def links(name: str, sources: tuple[list[str], list[str]]) -> Iterator[str]:
    """The addresses of all files that the indexes have of a package."""
    pages = [f"{index.rstrip('/')}/{name}/" for index in sources[0]]
    for source in (*pages, *sources[1]):
        local = _local(source)
        if local and local.is_dir() and not (local / "index.html").exists():
            yield from (file.resolve().as_uri() for file in local.iterdir())
        else:
            address = (local / "index.html").resolve().as_uri() if local else source
            yield from Links((read(address) or b"").decode(), address).found


def _local(address: str) -> Path | None:
    """The file or folder an address of this machine names; None of one elsewhere."""
    scheme = urllib.parse.urlsplit(address).scheme
    if scheme == "file":
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
    return None if scheme in ("http", "https") else Path(address)


def version_of(file: str) -> tuple[str, Version] | None:
    """The package and the version a file's name states; None of other files."""
    try:
        name, version = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return name, version


def look_up(package: Package, sources: tuple[list[str], list[str]]) -> Package:
    """Fill in the hashes of all its files and the requirements its wheel for Linux states."""
    wheels = []
    for address in links(package.name, sources):
        bare, digest = urllib.parse.urldefrag(address)
        file = urllib.parse.unquote(bare.rpartition("/")[2])
        stated = version_of(file)
        if stated not in [(package.name, Version(package.version + local)) for local in ("", "+cpu")]:
            continue
        if not digest.startswith("sha256="):
            digest = f"sha256={hashlib.sha256(read(bare) or b'').hexdigest()}"
        (package.cpu_hashes if stated[1].local else package.hashes).add(digest.replace("=", ":", 1))
        if file.endswith(".whl") and not stated[1].local:
            wheels.append(bare)
    if not wheels:
        raise SystemExit(f"{package.name}=={package.version}: the index has no wheel of it")
    chosen = min(wheels, key=lambda wheel: ("linux" not in wheel, "x86_64" not in wheel, wheel))
    local = _local(chosen)
    with zipfile.ZipFile(local or io.BufferedReader(Remote(chosen), 2**18)) as wheel:
        inside = next(name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        metadata = HeaderParser().parsestr(wheel.read(inside).decode())
    package.requires = [Requirement(text) for text in metadata.get_all("Requires-Dist") or []]
    return package


# -- who needs what --------------------------------------------------------------------------------------------------


def holds(requirement: Requirement, where: Environment, extras: Iterable[str]) -> bool:
    """Whether a requirement applies in an environment, asked for with these extras."""
    system, python = where
    platform, os_name, machine = SYSTEMS[system]
    facts = {"sys_platform": system, "platform_system": platform, "os_name": os_name, "platform_machine": machine}
    facts |= {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_release": "",
        "platform_version": "",
    }
    facts |= {"implementation_name": "cpython", "implementation_version": f"{python}.0"}
    facts["platform_python_implementation"] = "CPython"
    return requirement.marker is None or any(requirement.marker.evaluate({**facts, "extra": e}) for e in (*extras, ""))


def needed(wanted: list[Requirement], packages: dict[str, Package], where: Environment, of_torch: bool) -> set[str]:
    """All that is installed for `wanted`; `of_torch`: with what PyTorch itself wants on Linux alone."""
    found: set[tuple[str, str]] = set()
    todo = [(requirement, "") for requirement in wanted if holds(requirement, where, ())]
    while todo:
        requirement, by = todo.pop()
        name = canonicalize_name(requirement.name)
        if name not in packages:
            raise SystemExit(f"constraints.txt has no {name}, which {by or 'pyproject.toml'} requires: {requirement}")
        if not requirement.specifier.contains(packages[name].version, prereleases=True):
            raise SystemExit(
                f"constraints.txt has {name} {packages[name].version}, but {by or 'we'} require {requirement}"
            )
        for extra in ("", *requirement.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            for further in packages[name].requires:
                if not holds(further, where, (extra,)) or (extra and holds(further, where, ())):
                    continue
                is_cuda = name == "torch" and further.marker is not None and "Linux" in str(further.marker)
                if of_torch or not is_cuda:
                    todo.append((further, name))
    return {name for name, _ in found}


def marker(environments: set[Environment]) -> str:
    """The shortest marker that is true in these environments and false in the others."""
    if environments == set(EVERYWHERE):
        return ""
    systems, pythons = {system for system, _ in environments}, {python for _, python in environments}
    if environments != set(itertools.product(systems, pythons)):
        raise SystemExit(f"no simple marker says {sorted(environments)}")
    said = []
    for variable, chosen, every in (("sys_platform", systems, tuple(SYSTEMS)), ("python_version", pythons, PYTHONS)):
        if chosen != set(every):
            any_of = " or ".join(f'{variable} == "{value}"' for value in every if value in chosen)
            said.append(f"({any_of})" if len(chosen) > 1 else any_of)
    return " ; " + " and ".join(said)


def requirements(project: dict, extras: Iterable[str]) -> list[Requirement]:
    """What pyproject.toml asks for with these extras, those of ours which they name included."""
    listed = [Requirement(text) for text in project["dependencies"]]
    for extra in extras:
        for requirement in map(Requirement, project["optional-dependencies"][extra]):
            ours = requirement.name == project["name"]
            listed += requirements(project, requirement.extras) if ours else [requirement]
    return listed


# -- the files -------------------------------------------------------------------------------------------------------


def pinned(text: str) -> dict[str, Package]:
    """The packages of constraints.txt or of a lock, with the hashes that stand there."""
    packages = {}
    for line in text.replace("\\\n", " ").splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line):
            name = canonicalize_name(match[1])
            packages[name] = Package(name, match[2], set(HASH.findall(line)))
    return packages


def entry(name: str, version: str, marker: str, hashes: set[str]) -> str:
    """A package's lines in a lock."""
    return " \\\n".join([f"{name}=={version}{marker}", *(f"    --hash={digest}" for digest in sorted(hashes))])


def write(path: Path, above: str | None, markers: dict[str, str], known: dict[str, Package]) -> None:
    """One file of the lock, with the packages that `markers` names."""
    lines = [HEADER, *([f"-r {above}.txt"] if above else [])]
    lines += [entry(name, known[name].version, markers[name], known[name].hashes) for name in sorted(markers)]
    path.write_text("\n".join(lines) + "\n")


def write_torch(folder: Path, known: dict[str, Package], besides: set[str]) -> set[str]:
    """PyTorch's two files; gives what the index's build wants besides those packages."""
    torch = known["torch"]
    linux = [needed([Requirement("torch")], known, where, True) for where in EVERYWHERE if where[0] == "linux"]
    if any(each != linux[0] for each in linux):
        raise SystemExit("what PyTorch wants on Linux differs with the version of Python")
    cuda = linux[0] - besides
    write(folder / "torch.txt", None, {"torch": "", **dict.fromkeys(cuda, ' ; sys_platform == "linux"')}, known)
    path = folder / "torch-cpu.txt"
    before = pinned(path.read_text())["torch"] if path.exists() else None
    if before and before.version == f"{torch.version}+cpu":
        torch.cpu_hashes |= before.hashes
    path.write_text(f"{HEADER}\n{entry('torch', f'{torch.version}+cpu', '', torch.cpu_hashes)}\n")
    return cuda


def main(root: Path = ROOT) -> None:
    """Look every package up, then write a file for each of LOCKS and those of PyTorch."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    known, folder, sources = pinned((root / "constraints.txt").read_text()), root / "lock", indexes()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda package: look_up(package, sources), known.values()))
    folder.mkdir(exist_ok=True)
    above_has: dict[str | None, dict[str, str]] = {None: {}}
    for file, (above, extras) in LOCKS.items():
        wanted = [*requirements(project, extras), Requirement(BACKEND)]
        by_place = {where: needed(wanted, known, where, False) for where in EVERYWHERE}
        names = set().union(*by_place.values()) - {"torch"}
        markers = {name: marker({where for where in EVERYWHERE if name in by_place[where]}) for name in names}
        above_has[file] = markers
        new = {name: said for name, said in markers.items() if above_has[above].get(name) != said}
        write(folder / f"{file}.txt", above, new, known)
    cuda = write_torch(folder, known, {*above_has["run"], "torch"})
    idle = set(known) - set(above_has["dev"]) - cuda - {"torch"}
    if idle:
        raise SystemExit(f"constraints.txt has what nothing requires: {', '.join(sorted(idle))}")


if __name__ == "__main__":
    main()
