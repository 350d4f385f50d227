"""Print README.md: the lines and the concepts of each program, beside those of the report.

Run `python -m tests.newcomer.table` to write the page again.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from io import StringIO, TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Final, cast

__all__ = ["PAGE", "PROGRAMS", "page"]

PROGRAMS: Final = Path(__file__).parent / "programs"
PAGE: Final = Path(__file__).with_name("README.md")
PACKAGE: Final = "graphloop"
PLAIN: Final = frozenset(
    name for kind in (str, bytes, list, dict, set, tuple, Path, TextIOWrapper) for name in dir(kind)
)
"""Names that every Python programmer knows: they count for no concept."""

NO_KEYS: Final = frozenset[str]()
"""The option names of a class that is no mapping of options."""

INTRODUCTION: Final = """\
# Fourteen programs of a newcomer

A newcomer once wrote fourteen programs with graphloop, and reported each wall.
Here the programs are written again, from the README, `docs/`, `examples/` and `help()` alone.
`test_programs.py` runs each one offline; mypy and pyright check each one strictly.

`python -m tests.newcomer.table` prints this page from the programs.
A line is a line of code: no blank line, no comment, no docstring; the model's script counts.
A concept is a name of graphloop that the program uses: imported, as an attribute, or as an option.
It is new if no earlier program uses it; the report counts the names that its author had to learn.
An empty cell says that the report has no figure.

| program | lines | report | concepts | new | report | the wall, and what stands there now |
|---|--:|--:|--:|--:|--:|---|
"""


@dataclass(frozen=True)
class Told:
    """What the report says of a program, and what became of its wall."""

    wall: str
    lines: int = 0
    concepts: int = 0


REPORT: Final = {
    "p01_weather": Told("a tool's bug was invisible: its traceback is logged", 30, 6),
    "p02_contact": Told("`output` was an `object`: `result.output` is a `Contact`", 19, 4),
    "p03_refunds": Told("looking drove the run: `agent.pending` only reads", 52),
    "p04_article": Told("values travelled as Markdown text: `into=` fills typed fields", 85, 25),
    "p05_letters": Told("a mapped agent had a proof or a model of its own: both", 74),
    "p06_firm": Told("too deep a tree failed in silence: it is refused when it is made", 37),
    "p07_request": Told("tools got nothing of the caller's: `deps_type=`, `deps=`"),
    "p08_chat_server": Told("memory and JSON by hand: `agent.chat`, `load_messages`", 51),
    "p09_tested": Told("no recorder, no override, no block: all three", 34),
    "p10_service": Told("no log and no span: `logging` and `otel()`"),
    "p11_own_parts": Told("the protocols were named nowhere: two how-to pages", 41),
    "p12_notebook": Told("notebooks showed addresses: pictures and short texts"),
    "p13_typed": Told("false errors and `object`: every type is inferred"),
    "p14_two_processes": Told("the same run in two processes: refused as `RunBusy`"),
}


def page() -> str:
    """Return the page as the programs are now."""
    rows = [_row(name, told) for name, told in REPORT.items()]
    lists = [
        f"- `{name}`: {', '.join(f'`{each}`' for each in sorted(concepts(name), key=str.lower))}"
        for name in REPORT
    ]
    return "\n".join([INTRODUCTION + "\n".join(rows), "", "## The concepts", "", *lists, ""])


def _row(name: str, told: Told) -> str:
    earlier = [concepts(each) for each in REPORT if each < name]
    new = concepts(name).difference(*earlier)
    figures = (lines(name), told.lines or "", len(concepts(name)), len(new), told.concepts or "")
    return f"| [{name}](programs/{name}.py) | {' | '.join(map(str, figures))} | {told.wall} |"


def lines(name: str) -> int:
    """Count the lines of code of a program, with its YAML."""
    text = (PROGRAMS / f"{name}.py").read_text("utf-8")
    tree = ast.parse(text)
    skip = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    used: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type not in {*skip, tokenize.ENDMARKER}:
            used.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            used.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    table = PROGRAMS / f"{name}.yaml"
    data = table.read_text("utf-8").splitlines() if table.exists() else []
    return len(used) + sum(1 for line in data if line.strip() and not line.startswith("#"))


_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def concepts(name: str) -> frozenset[str]:
    """Return the names of graphloop that a program uses."""
    tree = ast.parse((PROGRAMS / f"{name}.py").read_text("utf-8"))
    ours, others = set[str](), {*dir(builtins)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                target = ours if module.split(".")[0] == PACKAGE else others
                target.update(alias.name for alias in names)
            case ast.Import(names=names):
                others.update(alias.name.split(".")[0] for alias in names)
            case ast.Assign(targets=[ast.Name(id=made)], value=value) if _root(value) in others:
                others.add(made)
            case _:
                pass
    own = _defined(tree)
    used = {each for each in _named(tree, others, own) if each in vocabulary()}
    return frozenset(ours | (used - own - PLAIN))


def _named(tree: ast.Module, others: set[str], own: set[str]) -> Iterator[str]:
    """Yield the attributes and the options, but not those of other packages or of own functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _root(node) not in others:
            yield node.attr
        elif isinstance(node, ast.Call) and _root(node.func) not in others:
            is_own = isinstance(node.func, ast.Name) and node.func.id in own
            yield from (each.arg for each in node.keywords if each.arg is not None and not is_own)


def _root(node: ast.expr) -> str:
    """Return the name that an expression begins with: `agent` of `agent.runs.list()`."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _defined(tree: ast.Module) -> set[str]:
    """Return the names that the program itself gives to fields, functions and parameters."""
    named = set[str]()
    for node in ast.walk(tree):
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name))
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name))
                | ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)])
            ):
                named.add(name)
            case _:
                pass
    return named


@cache
def vocabulary() -> frozenset[str]:
    """Return the public names of graphloop's doors, with their members, options and parameters."""
    rooms = [path.parent.name for path in _package().glob("*/__init__.py")]
    doors = [importlib.import_module(PACKAGE)]
    doors += [importlib.import_module(f"{PACKAGE}.{room}") for room in rooms]
    doors += [
        importlib.import_module(f"{PACKAGE}.{path.stem}")
        for path in _package().glob("*.py")
        if not path.stem.startswith("_")
    ]
    return frozenset(name for door in doors for name in _words(door) if not name.startswith("_"))


def _package() -> Path:
    file = importlib.import_module(PACKAGE).__file__
    assert file is not None, "a package has a file"
    return Path(file).parent


def _words(door: ModuleType) -> Iterator[str]:
    for name in getattr(door, "__all__", ()):
        value: object = getattr(door, name)
        yield name
        if inspect.isclass(value):
            yield from dir(value)
            yield from (
                name for kind in value.__mro__ for name in vars(kind).get("__annotations__", {})
            )
            yield from cast("frozenset[str]", getattr(value, "__optional_keys__", NO_KEYS))
        if callable(value):
            yield from _parameters(value)


def _parameters(function: Callable[..., object]) -> Iterator[str]:
    try:
        yield from inspect.signature(function).parameters
    except (TypeError, ValueError):
        return


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
