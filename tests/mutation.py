"""Mutation: the faults that can be planted in the functions of a file, by their operators.

| operator | does |
|---|---|
| `negate` | turns a condition round |
| `compare` | swaps `==` and `!=`, `<` and `<=`, `is` and `is not`, `in` and `not in` |
| `and-or` | swaps `and` and `or` |
| `plus-minus` | swaps `+` and `-` |
| `off-by-one` | counts one too many |
| `constant` | swaps `True` and `False` |
| `return` | returns None |
| `drop` | leaves out a statement: a call, an assignment, a `raise` |
| `forget` | leaves a field of `evolve` or `replace` as it was |
| `sql` | swaps `AND` with `OR`, and counts one too many, inside SQL |

Types, docstrings, messages and asserts stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["Mutant", "mutants_of"]

COMPARISONS: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
OPPOSITES: Final = frozenset({ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn})
"""Comparisons whose swap turns the condition round."""
ARITHMETIC: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
CHANGING: Final = frozenset({"evolve", "replace"})
"""Functions that return a changed copy: a keyword that they are not given is forgotten."""
SQL: Final = re.compile(r"\bAND\b|(?<=[=<>+-] )\d+")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: where it is, and which operator plants it."""

    path: str
    function: str
    operator: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.path} {self.function} {self.operator} {self.number} {self.text}"


Change: TypeAlias = tuple[str, ast.expr | ast.stmt, str]
"""An operator, the node that it replaces, and the text that takes its place."""


def mutants_of(path: str, source: str) -> Mapping[Mutant, str]:
    """Return the file with each fault that can be planted in it."""
    lines, sites = source.encode().splitlines(keepends=True), _Sites()
    sites.visit(ast.parse(source))
    seen, faults = Counter[tuple[str, str, str]](), dict[Mutant, str]()
    for function, (operator, node, text) in sites.found:
        line = lines[node.lineno - 1].decode().strip()
        at = (function, operator, line)
        faults[Mutant(path, function, operator, seen[at], line)] = _replaced(lines, node, text)
        seen[at] += 1
    return faults


def _replaced(lines: Sequence[bytes], node: ast.expr | ast.stmt, text: str) -> str:
    """Return the file with another text in place of a node."""
    last, end = node.end_lineno, node.end_col_offset
    assert last is not None
    assert end is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[last - 1][end:] + b"".join(lines[last:])
    return (before + text.encode() + after).decode()


class _Sites(ast.NodeVisitor):
    """The changes that are possible inside the functions of a file, in the order of the file."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Change]] = []
        self._within: list[str] = []
        self._functions = 0
        self._bound = Counter[str]()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within.append(node.name)
        for one in node.body:
            self.visit(one)
        self._within.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at the body alone: a decorator, a default or a type is no step of a run."""
        outer, self._bound = self._bound, _bound(node)
        self._within.append(node.name)
        self._functions += 1
        for one in node.body:
            self.visit(one)
        self._functions -= 1
        self._within.pop()
        self._bound = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name is ast's

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave an error out; what it says is no promise."""
        self._add(("drop", node, "pass"))

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave an assert alone: it states what cannot happen."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave a message alone."""

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in {"isinstance", "cast"}:
            self.visit(node.args[0] if node.func.id == "isinstance" else node.args[1])
            return
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if self._functions:
            for change in _changes(node):
                self._add(change)
            if isinstance(node, ast.stmt) and _can_go(node, self._bound):
                self._add(("drop", node, "pass"))
        super().generic_visit(node)

    def _add(self, change: Change) -> None:
        if self._functions:
            self.found.append((".".join(self._within), change))


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield what may go wrong at one node."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield from _negated(test)
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield from _negated(test)
        case ast.match_case(guard=ast.expr() as guard):
            yield from _negated(guard)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return", node, "return None"
        case ast.expr():
            yield from _other_values(node)
        case _:
            pass


def _other_values(node: ast.expr) -> Iterator[Change]:
    """Yield what an expression may be by mistake."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negate", node, f"bool({ast.unparse(operand)})"
        case ast.Compare(left=left, ops=ops, comparators=right):
            for at, op in enumerate(ops):
                swapped = [*ops[:at], COMPARISONS[type(op)](), *ops[at + 1 :]]
                yield "compare", node, _text(ast.Compare(left, swapped, right))
        case ast.BoolOp(op=op, values=values):
            swapped_op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and-or", node, _text(ast.BoolOp(swapped_op, values))
        case ast.BinOp(left=first, op=op, right=second) if type(op) in ARITHMETIC:
            yield "plus-minus", node, _text(ast.BinOp(first, ARITHMETIC[type(op)](), second))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in CHANGING:
            for at in range(len(keywords)):
                kept = [*keywords[:at], *keywords[at + 1 :]]
                yield "forget", node, _text(ast.Call(node.func, args, kept))
        case ast.Constant(value=value):
            yield from _other_constants(node, value)
        case _:
            pass


def _negated(test: ast.expr) -> Iterator[Change]:
    """Yield a condition turned round, where no other operator does that."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in OPPOSITES:
        return
    yield "negate", test, _text(ast.UnaryOp(ast.Not(), test))


def _other_constants(node: ast.Constant, value: object) -> Iterator[Change]:
    if isinstance(value, bool):
        yield "constant", node, str(not value)
    elif isinstance(value, int | float):
        yield "off-by-one", node, str(value + 1)
    elif isinstance(value, str):
        for found in SQL.finditer(value):
            other = "OR" if found[0] == "AND" else str(int(found[0]) + 1)
            yield "sql", node, repr(value[: found.start()] + other + value[found.end() :])


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _can_go(node: ast.stmt, bound: Mapping[str, int]) -> bool:
    """Whether a statement can be left out without a name that nothing binds."""
    match node:
        case ast.Expr(value=value):
            return not isinstance(value, ast.Constant)
        case ast.Assign(targets=targets):
            names = [
                one.id
                for target in targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            ]
            return all(bound[name] > 1 for name in names)
        case ast.AugAssign() | ast.Delete() | ast.Break() | ast.Continue():
            return True
        case _:
            return False


def _bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Counter[str]:
    """Count how often a function binds each name."""
    bound = Counter[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            bound[node.arg] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
    return bound
