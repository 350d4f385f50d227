"""Proofs about graphs: decided before anything runs, with a shortest witness where they fail."""

from __future__ import annotations

from .check import check
from .report import PROPERTIES, Finding, Report, Severity

__all__ = ["PROPERTIES", "Finding", "Report", "Severity", "check"]
