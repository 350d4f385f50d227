"""places: the line of a graph's table that a finding is about.

A file of data has told its lines. In a program they are read off the call that made the graph: its
table, or the name that the table was given above, if it stands there as a literal, and nothing else
is done with that name. Where a line is not certain, it is that of the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from linecache import checkcache, getlines
from pathlib import Path
from typing import Final, TypeGuard, TypeVar, final

from ..graph import Graph
from ..outcomes import outcome_name

__all__ = ["Places", "shortened"]

S = TypeVar("S")

MAKERS: Final = ("Graph", "Agent")
"""What the names of classes end in whose call makes a graph; nothing else is told as one."""

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

DECLARED: Final = (ast.Global, ast.Nonlocal)

TABLE: Final = 2
"""Which argument of `Graph` the table is."""


@final
class Places:
    """Where the rows and cells of one graph's table were written; they are looked for once."""

    def __init__(self, graph: Graph[S]) -> None:
        source = graph.source
        self._file = None if source is None else source.file
        self._line = 0 if source is None else source.line
        self._rows: Mapping[tuple[str, str], int] = {}
        if source is not None and source.rows is not None:
            self._rows = source.rows
        elif source is not None:
            module = _module(source.file)
            call = None if module is None else _call(module, source.line)
            # Of what cannot be read, such as what somebody typed in, nobody can look at a line.
            self._file = None if module is None else source.file
            if module is not None and call is not None:
                self._line = call.lineno
                self._rows = dict(_rows(graph, _table(module, call)))

    def at(self, node: str = "", outcome: str = "") -> str | None:
        """Return the `file:line` of a cell, else of its row, else of the graph; None if unknown."""
        if self._file is None:
            return None
        line = self._rows.get((node, outcome), self._rows.get((node, ""), self._line))
        return f"{shortened(Path(self._file))}:{line}"


def shortened(file: Path) -> str:
    """Return a file's name as it is seen from the current directory."""
    try:
        here = Path.cwd()
    except OSError:  # It is there no more.
        return file.as_posix()
    return file.relative_to(here).as_posix() if file.is_relative_to(here) else file.as_posix()


def _module(file: str) -> ast.Module | None:
    checkcache(file)
    text = "".join(getlines(file))
    return _parsed(text) if text else None


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _call(module: ast.Module, line: int) -> ast.Call | None:
    """Return the call that makes a graph at a line of a file, the innermost one."""
    found = [
        one
        for one in ast.walk(module)
        if isinstance(one, ast.Call)
        and one.lineno <= line <= (one.end_lineno or one.lineno)
        and _word(one.func).endswith(MAKERS)
    ]
    return max(found, key=lambda one: (one.lineno, one.col_offset), default=None)


def _word(of: ast.expr | None) -> str:
    """Return the last word of a dotted name."""
    if isinstance(of, ast.Attribute):
        return of.attr
    if isinstance(of, ast.Subscript):
        return _word(of.value)
    return of.id if isinstance(of, ast.Name) else ""


def _table(module: ast.Module, call: ast.Call) -> ast.expr | None:
    """Return the table that a call is given, or that its name was given above, for good."""
    table = _argument(call)
    if not isinstance(table, ast.Name):
        return table
    for scope in _scopes(module, call):
        bound = [one for one in _within(scope) if _binds(one, table.id)]
        if bound:
            only = bound[0] if len(bound) == 1 and not _touched(scope, table.id) else None
            above = only if only is not None and only.lineno < call.lineno else None
            return next((one.value for one in _within(scope) if _gives(one, above)), None)
    return None


def _argument(call: ast.Call) -> ast.expr | None:
    """Return the table that a call is given, as it is written there."""
    named = {one.arg: one.value for one in call.keywords}
    return call.args[TABLE] if len(call.args) > TABLE else named.get("edges")


def _touched(scope: ast.AST, name: str) -> bool:
    """Whether anything but making graphs is done with a name of a scope, there or within it."""
    given: set[ast.AST | None] = set()
    todo = [*ast.iter_child_nodes(scope)]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Call) and _word(one.func).endswith(MAKERS):
            given.add(_argument(one))
        read = isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        if (read and one not in given) or (isinstance(one, DECLARED) and name in one.names):
            return True
        # What a function binds itself is another name; unless it says that it is not.
        own = isinstance(one, FUNCTIONS) and any(_binds(each, name) for each in _within(one))
        if not own or any(isinstance(each, DECLARED) for each in _within(one)):
            todo += ast.iter_child_nodes(one)
    return False


def _scopes(module: ast.Module, call: ast.Call) -> list[ast.AST]:
    """Return what a call stands in whose names it sees: functions, the innermost first."""
    around: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda] = [
        one
        for one in ast.walk(module)
        if isinstance(one, FUNCTIONS) and one.lineno <= call.lineno <= (one.end_lineno or 0)
    ]
    # Whoever stands further down, and holds the call as well, stands within the others.
    around.sort(key=lambda one: one.lineno, reverse=True)
    return [*around, module]


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a scope, but not in those within it."""
    todo = [*ast.iter_child_nodes(scope)]
    while todo:
        one = todo.pop()
        yield one
        if not isinstance(one, (*FUNCTIONS, ast.ClassDef)):
            todo += ast.iter_child_nodes(one)


def _binds(one: ast.AST, name: str) -> TypeGuard[ast.Name | ast.arg]:
    """Whether a name is given something here; a parameter, a loop and a tuple do so, too."""
    if isinstance(one, ast.arg):
        return one.arg == name
    return isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)


def _gives(one: ast.AST, name: ast.Name | ast.arg | None) -> TypeGuard[ast.Assign | ast.AnnAssign]:
    """Whether a statement gives a name one value, and nothing else."""
    if isinstance(one, ast.Assign):
        return any(target is name for target in one.targets)
    return isinstance(one, ast.AnnAssign) and one.target is name


def _rows(graph: Graph[S], table: ast.expr | None) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the line of each row and cell of a literal; rows stand in the order of the graph's."""
    if not isinstance(table, ast.Dict) or None in table.keys or len(table.keys) != len(graph.table):
        return
    for key, value, (node, row) in zip(table.keys, table.values, graph.table.items(), strict=True):
        if key is None:
            return
        yield (node, ""), key.lineno
        if isinstance(value, ast.Dict) and None not in value.keys:
            cells = _cells(value)
            for place, outcome in enumerate(map(outcome_name, row)):
                if (line := cells.get(place, cells.get(...))) is not None:
                    yield (node, outcome), line


def _cells(row: ast.Dict) -> Mapping[object, int]:
    """Return the lines of a row's cells by their place among those named, and that of `...`."""
    keys = [key for key in row.keys if key is not None]
    rest = [key for key in keys if isinstance(key, ast.Constant) and key.value is ...]
    named = [key for key in keys if key not in rest]
    lines: dict[object, int] = {place: key.lineno for place, key in enumerate(named)}
    if rest:
        lines[...] = rest[0].lineno
    return lines
