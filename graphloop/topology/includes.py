"""Includes: find the files that a topology file includes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import Final, final

from .diagnostics import Diagnostics, ParseError
from .document import Document
from .tree import Mark

__all__ = ["FILES_MAX", "SUFFIXES", "IncludePlace"]

FILES_MAX: Final = 64
SUFFIXES: Final = (".yaml", ".yml", ".json")
KEYS: Final[Mapping[str, tuple[str, tuple[str, ...], str, str]]] = {
    "include": ("topology's file", SUFFIXES, "the graph itself (`graph:`)", "make it"),
    "pinned": (
        "file of pinned tools",
        (".json",),
        "the definitions themselves",
        "make it by `graphloop mcp pin`",
    ),
}
"""The keys that name a file: the file's kind, its suffixes, what replaces it, how it is made."""


@final
@dataclass(frozen=True)
class IncludePlace:
    """The file that is being read, and the chain of includes that leads to it.

    Args:
        root: the folder of the first file; None if the topology is a text and not a file.
        path: the file that is being read; None for a text.
        chain: the files from the first one to `path`, each including the next.
        read: the documents of all files read so far, shared by all places; None for a file that
            could not be read or is still being read.
    """

    root: Path | None = None
    path: Path | None = None
    chain: tuple[Path, ...] = ()
    read: dict[Path, Document | None] = field(default_factory=dict[Path, "Document | None"])

    def find(self, name: str, mark: Mark, diagnostics: Diagnostics) -> tuple[Path, IncludePlace]:
        """Return the resolved path of the included file `name`, and its `IncludePlace`.

        Raises:
            ParseError: the file is missing or not allowed, the includes form a cycle, or there are
                too many files. The problem is reported at `mark`.
        """
        error = partial(diagnostics.error, mark)
        path = self.file(name, mark, diagnostics)
        if path in self.chain:
            names = [file.name for file in (*self.chain[self.chain.index(path) :], path)]
            problem = f"includes go round in a circle: {' → '.join(names)}."
            raise error(problem, "take one of them out.")
        if path not in self.read and len(self.read) >= FILES_MAX:
            problem = f"a topology has at most {FILES_MAX} files, found more."
            raise error(problem, "put graphs together (`graph:`).")
        assert self.root is not None, "a text includes no file"
        return path, IncludePlace(self.root, path, (*self.chain, path), self.read)

    def file(self, name: str, mark: Mark, diagnostics: Diagnostics, key: str = "include") -> Path:
        """Return the resolved path of the file `name`, in the folder of the topology or below it.

        Raises:
            ParseError: the file is missing or not allowed; the problem is reported at `mark`.
        """
        error = partial(diagnostics.error, mark)
        root, own, shown = self.root, self.path, f"`{key}`: {name!r:.80}"
        what, suffixes, inline, _ = KEYS[key]
        if root is None or own is None:
            fix = f"write {inline}, or load the topology from its file."
            raise error(f"`{key}`: a text has no folder to include from.", fix)
        windows = PureWindowsPath(name)
        if Path(name).is_absolute() or windows.drive or windows.root or "\\" in name:
            fix = "write it from the folder of this file, with `/`: agents/writer.yaml."
            raise error(f"{shown} is an absolute path, or one of another system.", fix)
        if not name.endswith(suffixes):
            problem = f"{shown} is no {what}, which ends in {', '.join(suffixes)}."
            raise error(problem, "rename the file.")
        try:
            path = (own.parent / name).resolve()
            if not path.is_relative_to(root):
                fix = "keep the files of a topology in one folder, or below it; links, too."
                raise error(f"{shown} leads out of the folder of the topology.", fix)
            if not path.is_file():
                raise _missing_file(name, path, diagnostics, error, key)
        except (OSError, RuntimeError, ValueError) as failed:  # A link loop, a NUL or a long name.
            raise error(f"{shown} cannot be read: {failed}.", "look at its name.") from failed
        return path


def _missing_file(
    name: str,
    path: Path,
    diagnostics: Diagnostics,
    error: Callable[[str, str], ParseError],
    key: str,
) -> ParseError:
    """Return the error for a path that does not name a file."""
    shown = f"`{key}`: {name!r:.80}"
    if path.is_dir():
        return error(f"{shown} is a folder, not a file.", "name a file in it.")
    _, suffixes, _, make = KEYS[key]
    beside = [file for file in path.parent.glob("*") if file.suffix in suffixes]
    hint = diagnostics.nearest(
        name, sorted(str(Path(name).with_name(file.name)) for file in beside)
    )
    fix = f"write its path from the folder of this file, or {make}."
    return error(f"{shown}: there is no such file.{hint}", fix)
