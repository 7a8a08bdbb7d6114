"""Files that parameters, defaults and attributes name are found here; nobody can tell which are read, so that all
count."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path, PurePath
from typing import Any

from forgetgauge.code.files import name_from_here, names_weights
from forgetgauge.code.imports import Imports

LARGEST_FILE = 512 * 2**20
"""Bytes of a file that parameters name and whose content counts: to read these takes a second. Weights always do."""
_WRITTEN = re.compile(r"(?:^|_)(?:out|outputs?|logs?|save|saved|write|dump|export|record|store|cache|to)(?:_|$)", re.I)
"""Parameters that name a file to be written: what a method writes must not change its key."""


class ParameterFiles:
    """Collects the files that parameters name among what counts beside the modules."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self.names: set[str] = set()
        """As paths that lead there from here."""

    def take(self, params: Any, folders: Sequence[str], name: str = "", depth: int = 4) -> None:
        """Take in every file that parameters name, in containers too: from the current folder or from the code's."""
        if isinstance(params, dict | list | tuple):
            for key, value in params.items() if isinstance(params, dict) else zip(repeat(name), params, strict=False):
                if depth and key != "checkpoint":
                    self.take(value, folders, str(key), depth - 1)
        elif isinstance(params, str | PurePath) and 0 < len(str(params)) < 1000:
            for place in ("", *folders):
                path = os.path.join(place, os.path.expanduser(params))
                if os.path.isfile(path):
                    self._take_file(name_from_here(Path(path)), str(params), name, beside=bool(place))

    def _take_file(self, path: str, written: str, parameter: str, *, beside: bool) -> None:
        if names_weights(written) and not beside:  # their content counts wherever their name does
            return
        self.names.add(path)
        named, size = f"beside its module: {written}" if beside else path, os.path.getsize(path)
        if _WRITTEN.search(parameter):
            what = f"which the parameter {parameter} names: by that name it is written, not read"
            self._imports.not_covered.add(f"the file {written}, {what}")
        elif size > LARGEST_FILE and not names_weights(written):
            self._imports.files[named] = f"{size} bytes"
            what = f"which a parameter names, beyond its size: only up to {LARGEST_FILE >> 20} MiB are read"
            self._imports.not_covered.add(f"the file {written}, {what}")
        else:
            self._imports.add_file(named, path)
