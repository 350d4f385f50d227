"""Problems of a topology's file: all of them at once, each with its line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

from ..errors import ConfigError, GraphError, Problem, nearest
from ..naming import escaped

__all__ = ["Complaints", "Mark", "Misread", "TopologyError"]

PROBLEMS_MAX = 100
"""How many problems are told at most: whoever has more begins with these."""

TEXT_MAX, TEXT_HEAD, TEXT_TAIL = 500, 300, 150
"""How long a text is at most, and what is kept of a longer one."""

NAME_MAX = 100
"""How long a name is for which the nearest is looked for."""


@final
@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; lines and columns are counted from 1."""

    line: int
    column: int


class TopologyError(GraphError):
    """A topology's file is not what it should be; `problems` holds every finding.

    The `place` of a problem is `file:line:column`.
    """

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.graph, self.written = file, ""
        self.problems = tuple(problems)
        lines = "\n".join(f"  {number}. {one}" for number, one in enumerate(self.problems, 1))
        ConfigError.__init__(self, f"{file} has {len(self.problems)} problem(s):\n{lines}")

    def __reduce__(self) -> tuple[type[TopologyError], tuple[object, ...]]:
        """Tell pickle what to build it from."""
        return TopologyError, (self.graph, self.problems)


class Misread(Exception):
    """Something could not be read, and why is among the complaints already."""


@final
@dataclass
class Complaints:
    """What is wrong with one file, so far.

    Args:
        file: the file's name, as the user knows it.
        problems: what was noted; the complaints about several files may share a list.
        spoilt: where nothing more is noted.
    """

    file: str
    problems: list[Problem] = field(default_factory=list[Problem])
    spoilt: set[Mark] = field(default_factory=set[Mark])

    def note(self, mark: Mark, found: str, fix: str) -> None:
        """Note a problem, and go on."""
        if len(self.problems) < PROBLEMS_MAX and mark not in self.spoilt:
            place = f"{escaped(self.file)}:{mark.line}:{mark.column}"
            self.problems.append(Problem(place, _shown(found), _shown(fix)))

    def spoil(self, mark: Mark, found: str, fix: str) -> None:
        """Note a problem, and nothing more about what stands at this place."""
        self.note(mark, found, fix)
        self.spoilt.add(mark)

    def misread(self, mark: Mark, found: str, fix: str) -> Misread:
        """Note a problem, and return what to raise where nothing can be read for it."""
        self.note(mark, found, fix)
        return Misread(found)

    def nearest(self, name: str, names: Iterable[str]) -> str:
        """Return " Did you mean 'x'?", while anybody may still read it.

        To look for the nearest of many names takes its time, and a file can be wrong often.
        """
        if len(self.problems) >= PROBLEMS_MAX or len(name) > NAME_MAX:
            return ""
        return nearest(name, names)

    def refuse(self) -> None:
        """Raise all that was noted.

        Raises:
            TopologyError: something was.
        """
        if self.problems:
            raise TopologyError(escaped(self.file), sorted(self.problems, key=_order))


def _shown(text: str) -> str:
    """Return what a message says: names in it are the file's, and may be of any length."""
    shown = escaped(text)
    return shown if len(shown) <= TEXT_MAX else f"{shown[:TEXT_HEAD]}…{shown[-TEXT_TAIL:]}"


def _order(problem: Problem) -> tuple[str, int, int]:
    file, line, column = problem.place.rsplit(":", 2)
    return file, int(line), int(column)
