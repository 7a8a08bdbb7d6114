"""The user's own code, for machines that do not have it: its files and nothing else, as Ray's working directory.

What travels is what the digest of the code is taken of: the modules it imports that are no installed packages, and the
files that these and the parameters name. Neither run folders nor data sets are among them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from forgetgauge.code import files_named
from forgetgauge.code.imports import Imports, kind_of, source_file
from forgetgauge.plan.jobs import Named
from forgetgauge.run.assignments import Sources

BESIDE = "beside its module: "


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
    named += [file for one in sources.own_code.values() for file in files_named(one.params)]
    for file in named:
        if not file.is_absolute() and ".." not in file.parts and file.is_file():
            _copy(file, folder / file)
    return any(folder.iterdir())


def _modules(chosen: Iterable[Named]) -> Iterable[str]:
    """Of all that is named `module:attribute`."""
    for named in chosen:
        names = [named.name, named.model, str(named.params.get("task") or "")]
        yield from (name.partition(":")[0] for name in names if ":" in name)


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)
