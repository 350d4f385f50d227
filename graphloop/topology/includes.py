"""Includes: files that a topology's file names, and never one outside the folder of the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Final, final

from .document import Document
from .forms import Reading, Text
from .source import SUFFIXES
from .tree import Value

__all__ = ["FILES_MAX", "Place", "Shelf"]

FILES_MAX: Final = 64


@final
@dataclass
class Shelf:
    """The files that are read for one topology; each once, however often it is named.

    Args:
        root: the folder that they all lie in; None where no file was named, but a text.
    """

    root: Path | None
    read: dict[Path, Document | None] = field(default_factory=dict[Path, "Document | None"])


@final
@dataclass(frozen=True)
class Place:
    """Where what is being read stands.

    Args:
        shelf: the files.
        path: the file, resolved; None for a text.
        chain: the files that are being read, the first of them first.
    """

    shelf: Shelf
    path: Path | None
    chain: tuple[Path, ...] = ()

    def find(self, value: Value, to: Reading) -> tuple[Path, Place]:
        """Return the file that is named at `value`, and the place that it is.

        Raises:
            Misread: no file may be named so, or it is being read already.
        """
        named = Text(filled=True).read(value, to)
        root, own = self.shelf.root, self.path
        if root is None or own is None:
            fix = "write the graph itself (`graph:`), or load the topology from its file."
            raise to.complaints.misread(value.mark, "a text has no folder to include from.", fix)
        _refuse_odd(named, value, to)
        try:
            path = (own.parent / named).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            found = f"{named!r:.80} is no path: {error}."
            raise to.complaints.misread(value.mark, found, "name a file.") from error
        if not path.is_relative_to(root):
            found = f"{named!r:.80} leads out of the folder of the topology."
            fix = "keep the files of a topology in one folder, or below it; links, too."
            raise to.complaints.misread(value.mark, found, fix)
        _refuse_lacking(named, path, value, to)
        if path in self.chain:
            names = [one.name for one in (*self.chain[self.chain.index(path) :], path)]
            found = f"includes go round in a circle: {' → '.join(names)}."
            raise to.complaints.misread(value.mark, found, "take one of them out.")
        if path not in self.shelf.read and len(self.shelf.read) >= FILES_MAX:
            found = f"a topology has at most {FILES_MAX} files, found more."
            raise to.complaints.misread(value.mark, found, "put graphs together (`graph:`).")
        return path, Place(self.shelf, path, (*self.chain, path))


def _refuse_lacking(named: str, path: Path, value: Value, to: Reading) -> None:
    """Refuse what is no file where it is named: among many files, nobody could tell who does."""
    try:
        if path.is_file():
            return
        folder, beside = path.is_dir(), list(path.parent.glob("*"))
    except OSError as error:
        found = f"{named!r:.80} cannot be read: {error.strerror}."
        raise to.complaints.misread(value.mark, found, "look at its name.") from error
    if folder:
        found = f"{named!r:.80} is a folder, not a file."
        raise to.complaints.misread(value.mark, found, "name a file in it.")
    names = [str(Path(named).with_name(one.name)) for one in beside if one.suffix in SUFFIXES]
    found = f"there is no such file, {named!r:.80}.{to.complaints.nearest(named, sorted(names))}"
    fix = "write its path from the folder of this file, or make it."
    raise to.complaints.misread(value.mark, found, fix)


def _refuse_odd(named: str, value: Value, to: Reading) -> None:
    windows = PureWindowsPath(named)
    if Path(named).is_absolute() or windows.drive or windows.root or "\\" in named:
        found = f"{named!r:.80} is an absolute path, or one of another system."
        fix = "write it from the folder of this file, with `/`: agents/writer.yaml."
        raise to.complaints.misread(value.mark, found, fix)
    if not named.endswith(SUFFIXES):
        found = f"a topology's file ends in {', '.join(SUFFIXES)}; found {named!r:.80}."
        raise to.complaints.misread(value.mark, found, "rename the file.")
