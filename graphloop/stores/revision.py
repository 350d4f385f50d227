"""Revision: names the code that drives a run.

A revision is a hash of what a journal depends on: the table, the parameters of nodes, the tools as
a model reads them, and the names of functions. It says nothing of what functions do: whether other
code fits a journal, only the fold of the journal can tell. So each object has a revision, and none
is refused (docs/decisions/2026-11-28-other-code-folds.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from hashlib import sha256
from typing import Any, Final, cast

from msgspec import Struct

from ..graph import NodeGraph
from ..node_protocol import is_node

__all__ = ["revision_of"]

DEPTH_MAX: Final = 60
"""The depth of values within values that a revision reads; deeper ones are alike."""


def revision_of(*parts: object) -> str:
    """Return the SHA-256 of these parts as 64 hexadecimal digits, the same in each process.

    Functions and classes count by their names, and so does an object that is neither a value nor a
    node. Equal values give equal revisions, in whatever order sets and mappings have their members.
    """
    return sha256(_form(parts, ()).encode("utf-8", "surrogatepass")).hexdigest()


def _form(value: object, within: tuple[int, ...]) -> str:
    """Return the text of a value; `within` are the ids of the values that hold it."""
    if value is None or isinstance(value, bool | float | str | bytes):
        return repr(value)
    if isinstance(value, int):
        return f"{value:x}"  # A very long number has no decimal form.
    if isinstance(value, Enum):
        return f"{_name(type(value))}.{value.name}"
    if id(value) in within or len(within) > DEPTH_MAX:
        return "…"
    return _compound(value, (*within, id(value)))


def _compound(value: object, within: tuple[int, ...]) -> str:
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)  # isinstance leaves its types open.
        items = [f"{_form(key, within)}:{_form(one, within)}" for key, one in entries.items()]
        return f"{{{','.join(sorted(items))}}}"
    if isinstance(value, tuple | list | AbstractSet):
        members = [_form(one, within) for one in cast("tuple[object, ...]", value)]
        return f"[{','.join(sorted(members) if isinstance(value, AbstractSet) else members)}]"
    if isinstance(value, partial):
        call = cast("partial[object]", value)
        return f"partial{_form((call.func, call.args, call.keywords), within)}"
    if isinstance(value, NodeGraph):
        graph: NodeGraph[Any] = value  # pyright: ignore[reportUnknownVariableType] - by isinstance
        if graph.form is None:  # The same text in each graph around it, however deep.
            graph.form = _form((graph.name, graph.start, graph.table, graph.nodes), (id(graph),))
        return graph.form
    if callable(value) and hasattr(value, "__qualname__"):
        return _name(value)
    return f"{_name(type(value))}{_form(_parameters(value), within)}"


def _name(value: object) -> str:
    # Without the module, which is `__main__` in the process that runs it as a program.
    return str(getattr(value, "__qualname__", ""))


def _parameters(value: object) -> Mapping[str, object]:
    """Return the fields of a value, or of a node; of another object, nothing."""
    if isinstance(value, Struct):
        names = value.__struct_fields__
    elif is_dataclass(value):
        names = tuple([one.name for one in fields(value)])
    else:
        return dict(vars(value)) if is_node(value) and hasattr(value, "__dict__") else {}
    return {name: getattr(value, name, None) for name in names}
