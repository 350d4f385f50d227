"""Sheet: a document of Open Agent Spec while it is written, each component once, by its id."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, final

from ..forms import Data
from .findings import Findings
from .keys import REFERENCE, REFERENCED, VERSION_WRITTEN

__all__ = [
    "METADATA",
    "OUTCOME",
    "Sheet",
    "literal",
    "reference",
    "references",
    "text_property",
]

METADATA: Final = "graphloop.topology"
"""The key of `metadata` at which a topology travels along."""

OUTCOME: Final = "outcome"
"""What the tool of a node answers that only graphloop has: the outcome that it is left by."""

_unsafe = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]").sub


@final
class Sheet:
    """Keeps components.

    Attributes:
        findings: takes what became of the parts of the topology.
    """

    def __init__(self) -> None:
        self.findings = Findings()
        self._kept: dict[str, dict[str, Data]] = {}

    def keep(self, kind: str, own: str, name: str, /, **said: Data) -> str:
        """Keep a component, and return its id: the one given, numbered if it is taken."""
        number, id_ = 1, own
        while id_ in self._kept:
            number += 1
            id_ = f"{own}.{number}"
        self._kept[id_] = {"component_type": kind, "id": id_, "name": name, **said}
        return id_

    def once(self, kind: str, own: str, name: str, /, **said: Data) -> str:
        """Keep a component that others may have in common, and return its id."""
        if self._kept.get(own) == {"component_type": kind, "id": own, "name": name, **said}:
            return own
        return self.keep(kind, own, name, **said)

    def of(self, id_: str) -> Mapping[str, Data]:
        """Return a component."""
        return self._kept[id_]

    def json(self, root: str, metadata: Mapping[str, Data]) -> str:
        """Return the document: one component, and all others that it refers to."""
        own = {**self._kept[root], **({"metadata": {**metadata}} if metadata else {})}
        others: dict[str, Data] = {id_: one for id_, one in self._kept.items() if id_ != root}
        own |= {REFERENCED: others} if others else {}
        own["agentspec_version"] = VERSION_WRITTEN
        text = json.dumps(own, indent=1, ensure_ascii=False, allow_nan=False)
        # Some characters are line breaks to one reader and nothing to the other.
        return _unsafe(lambda one: f"\\u{ord(one[0]):04x}", text) + "\n"


def reference(id_: str) -> Data:
    """Return a reference to a component."""
    return {REFERENCE: id_}


def references(ids: Sequence[str]) -> list[Data]:
    """Return references to components."""
    return [reference(one) for one in ids]


def text_property(title: str, description: str = "") -> Data:
    """Return a property that is a text."""
    said: dict[str, Data] = {"description": description} if description else {}
    return {**said, "title": title, "type": "string"}


def literal(text: str) -> str:
    """Return a text without placeholders: there, two braces begin one."""
    return text.replace("{{", "{ {")
