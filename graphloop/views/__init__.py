"""Diagrams of graphs: what the engine executes, drawn from the same table."""

from __future__ import annotations

from .dot import dot
from .mermaid import mermaid

__all__ = ["dot", "mermaid"]
