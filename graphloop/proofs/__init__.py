"""Proofs about graphs: decided before anything runs, with a shortest witness where they fail."""

from __future__ import annotations

from .bound import bound
from .check import check
from .most import Bound
from .report import PROPERTIES, Finding, Report, Severity, Suppressed, Unknown
from .sarif import to_sarif
from .suppression import Ignore

__all__ = [
    "PROPERTIES",
    "Bound",
    "Finding",
    "Ignore",
    "Report",
    "Severity",
    "Suppressed",
    "Unknown",
    "bound",
    "check",
    "to_sarif",
]
