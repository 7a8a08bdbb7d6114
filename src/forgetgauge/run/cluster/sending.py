"""What travels to the machines of a cluster: the user's own code, and artefacts.

The code goes as Ray's working directory, its files and nothing else: what the digest of the code is taken of, the
modules it imports that are no installed packages, and the files that these and the parameters name. Neither run folders
nor data sets are among them. Small artefacts go with a task, others are put into the object store once.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forgetgauge.code import files_named
from forgetgauge.code.imports import Imports, kind_of, source_file
from forgetgauge.plan.jobs import Named
from forgetgauge.run.algorithms import CATALOGUES, code_of_choice
from forgetgauge.run.assignments import Sources
from forgetgauge.store.objects import ObjectStore

BESIDE = "beside its module: "
INLINE_BYTES = 2**15
"""An artefact up to this size travels with the task; a larger one is put into the object store, once."""
STORE_SHARE = 4
"""A quarter of the object store of this machine is kept filled with artefacts that may be read again."""


def gathered(sources: Sources, folder: Path) -> bool:
    """Copy the user's code into a folder, by the names that it is imported by; False where there is none."""
    chosen = [*sources.own_code.values(), *sources.datasets.values()]
    imports = Imports()
    for module in sorted(set(_modules(chosen))):
        if kind_of(module) == "own" and module != "__main__":
            imports.add(module)
    files = {module: Path(path) for module in imports.sources if (path := source_file(module))}
    beside = [name.removeprefix(BESIDE) for name in imports.files if name.startswith(BESIDE)]
    for module, source in files.items():
        to = folder / (module.replace(".", "/") + ("/__init__.py" if source.name == "__init__.py" else ".py"))
        _copy(source, to)
        for name in beside:
            if (source.parent / name).is_file():
                _copy(source.parent / name, to.parent / name)
    named = [Path(name) for name in imports.files if not name.startswith(BESIDE)]
    for key, one in sources.own_code.items():
        named += files_named(one.params)
        if (catalogue := CATALOGUES.get(key.partition(" ")[0])) is not None:
            named += map(Path, code_of_choice(catalogue, one.name, one.params).files)
    for file in named:
        if not file.is_absolute() and ".." not in file.parts and file.is_file():
            _copy(file, folder / file)
    return any(folder.iterdir())


def _modules(chosen: Iterable[Named]) -> Iterable[str]:
    """The modules of everything that is named `module:attribute`."""
    for named in chosen:
        names = [named.name, named.model, str(named.params.get("task") or "")]
        yield from (name.partition(":")[0] for name in names if ":" in name)


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


@dataclass
class References:
    """What of the run's store stands in Ray's; whoever was not used for longest is let go of first."""

    ray: Any
    store: ObjectStore
    room: float
    """Bytes of it."""
    _known: dict[str, tuple[str, list[Any], int]] = field(default_factory=dict)
    _held: int = 0

    def sent(self, key: str, digest: str) -> bytes | list[Any]:
        """An artefact as it travels: itself, or a reference to what every machine fetches once."""
        known = self._known.pop(key, None)
        if known is not None and known[0] == digest:
            self._known[key] = known  # the last in order is the latest used
            return known[1]
        content = self.store.read_bytes(key, digest)
        if len(content) <= INLINE_BYTES:
            return content
        reference = [self.ray.put(content)]
        self._known[key] = (digest, reference, len(content))
        self._held += len(content)
        while self._held > self.room and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        return reference

    def forget(self, key: str) -> None:
        """Read it anew from the store of the run, should it be wanted again."""
        known = self._known.pop(key, None)
        self._held -= known[2] if known else 0
