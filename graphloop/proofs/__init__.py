"""Proofs: what holds of a graph before it runs.

Owns `check` (GL1 to GL13), `bound`, and the comparison of two graphs.
Never passes what it could not decide: unknown is a finding.
Start with `check.py`.
"""

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
