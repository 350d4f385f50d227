"""Proofs: static checks of a graph before it runs.

Owns `check` (properties GL1 to GL13), `bound`, and the comparison of two graphs.
A property that cannot be decided is reported as unknown, never as proven.
Start with `checking.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .bounds import Called, bound
    from .call_bounds import Bound
    from .checking import check
    from .comparison import Comparison, compare
    from .components import strong_components
    from .dominance import Dominance
    from .endless_cycles import Endless, endless
    from .parameter_changes import Change
    from .proof_graph import ProofGraph
    from .report import (
        PROPERTIES,
        Finding,
        Ignore,
        Report,
        Severity,
        Suppressed,
        Unknown,
        codes,
        result_data,
    )
    from .sarif import to_sarif

__all__ = [
    "PROPERTIES",
    "Bound",
    "Called",
    "Change",
    "Comparison",
    "Dominance",
    "Endless",
    "Finding",
    "Ignore",
    "ProofGraph",
    "Report",
    "Severity",
    "Suppressed",
    "Unknown",
    "bound",
    "check",
    "codes",
    "compare",
    "endless",
    "result_data",
    "strong_components",
    "to_sarif",
]

__getattr__ = front_door(
    __name__,
    {
        ".bounds": (
            "Called",
            "bound",
        ),
        ".call_bounds": ("Bound",),
        ".checking": ("check",),
        ".comparison": (
            "Comparison",
            "compare",
        ),
        ".dominance": ("Dominance",),
        ".endless_cycles": (
            "Endless",
            "endless",
        ),
        ".components": ("strong_components",),
        ".proof_graph": ("ProofGraph",),
        ".report": (
            "Finding",
            "Ignore",
            "PROPERTIES",
            "Report",
            "Severity",
            "Suppressed",
            "Unknown",
            "codes",
            "result_data",
        ),
        ".sarif": ("to_sarif",),
        ".parameter_changes": ("Change",),
    },
)
