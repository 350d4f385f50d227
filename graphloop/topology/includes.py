"""Includes: files that a topology's file names, and never one outside the folder of the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Final, final

from .diagnostics import Diagnostics
from .document import Document
from .tree import Mark

__all__ = ["FILES_MAX", "SUFFIXES", "IncludeCache", "IncludePlace"]

FILES_MAX: Final = 64
SUFFIXES: Final = (".yaml", ".yml", ".json")


@final
@dataclass
class IncludeCache:
    """The files of one topology by path; all lie in `root`."""

    root: Path | None
    read: dict[Path, Document | None] = field(default_factory=dict[Path, "Document | None"])


@final
@dataclass(frozen=True)
class IncludePlace:
    """The file that is being read, and the chain of includes to it."""

    cache: IncludeCache
    path: Path | None
    chain: tuple[Path, ...] = ()

    def find(self, named: str, mark: Mark, diagnostics: Diagnostics) -> tuple[Path, IncludePlace]:
        """Return the file of this name, which stands at `mark`, and its place.

        Raises:
            ParseError: no file may be named so, or it is being read already.
        """
        try:
            return self._found(named, diagnostics)
        except _Refused as refused:
            raise diagnostics.error(mark, *refused.args) from refused

    def _found(self, named: str, diagnostics: Diagnostics) -> tuple[Path, IncludePlace]:
        root, own, shown = self.cache.root, self.path, f"`include`: {named!r:.80}"
        if root is None or own is None:
            fix = "write the graph itself (`graph:`), or load the topology from its file."
            raise _Refused("`include`: a text has no folder to include from.", fix)
        windows = PureWindowsPath(named)
        if Path(named).is_absolute() or windows.drive or windows.root or "\\" in named:
            fix = "write it from the folder of this file, with `/`: agents/writer.yaml."
            raise _Refused(f"{shown} is an absolute path, or one of another system.", fix)
        if not named.endswith(SUFFIXES):
            found = f"{shown} is no topology's file, which ends in {', '.join(SUFFIXES)}."
            raise _Refused(found, "rename the file.")
        try:
            path = (own.parent / named).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise _Refused(f"{shown} is no path: {error}.", "name a file.") from error
        if not path.is_relative_to(root):
            fix = "keep the files of a topology in one folder, or below it; links, too."
            raise _Refused(f"{shown} leads out of the folder of the topology.", fix)
        _refuse_lacking(named, path, diagnostics)
        if path in self.chain:
            names = [each.name for each in (*self.chain[self.chain.index(path) :], path)]
            found = f"includes go round in a circle: {' → '.join(names)}."
            raise _Refused(found, "take one of them out.")
        if path not in self.cache.read and len(self.cache.read) >= FILES_MAX:
            found = f"a topology has at most {FILES_MAX} files, found more."
            raise _Refused(found, "put graphs together (`graph:`).")
        return path, IncludePlace(self.cache, path, (*self.chain, path))


class _Refused(Exception):
    """The problem of an include, and the fix."""


def _refuse_lacking(named: str, path: Path, diagnostics: Diagnostics) -> None:
    """Refuse a missing file at the place that names it."""
    shown = f"`include`: {named!r:.80}"
    try:
        if path.is_file():
            return
        is_folder, beside = path.is_dir(), list(path.parent.glob("*"))
    except OSError as error:
        found = f"{shown} cannot be read: {error.strerror}."
        raise _Refused(found, "look at its name.") from error
    if is_folder:
        raise _Refused(f"{shown} is a folder, not a file.", "name a file in it.")
    names = [str(Path(named).with_name(each.name)) for each in beside if each.suffix in SUFFIXES]
    hint = diagnostics.nearest(named, sorted(names))
    fix = "write its path from the folder of this file, or make it."
    raise _Refused(f"{shown}: there is no such file.{hint}", fix)
