"""A node within another: what is tried again, or what stands in for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from ..node_protocol import Node
from ..outcomes import Outcome
from .forms import Data, Reading, Schema, Writing
from .tree import Value

__all__ = ["PART", "PartForm"]

PART: Final = "part"
"""The name of the schema of such a node."""


@final
@dataclass(frozen=True)
class PartForm:
    """A node within another, written like one but for its name."""

    def read(self, value: Value, to: Reading) -> Node[Any, Outcome]:
        """Return the node."""
        return to.part(value, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return what stands for the node."""
        return to.part(value, to)

    @property
    def schema(self) -> Schema:
        """A reference to the schema of such nodes."""
        return {"$ref": f"#/$defs/{PART}"}
