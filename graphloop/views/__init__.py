"""Views: pictures and texts of graphs and runs.

Owns every drawing; each is made from the table that runs, never by hand.
It changes nothing, and no other room needs it to run.
Start with `pictures.py`; `render.py` makes files of it.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .comparison import changes_picture
    from .dot import dot_of
    from .family import Family, known_family
    from .levels import Level, draw, level_picture
    from .marks import Marks, Tally, Tone
    from .mermaid import mermaid_of
    from .pictures import Picture, picture
    from .proof import proof_marks
    from .render import is_machine, machine, rendered, save, save_picture
    from .sequences import sequence, sequence_mermaid, sequence_text
    from .text import in_signs_of
    from .theme import LIGHT, THEMES, Theme
    from .trace import RunTrace, family_trace, trace_marks

__all__ = [
    "LIGHT",
    "THEMES",
    "Family",
    "Level",
    "Marks",
    "Picture",
    "RunTrace",
    "Tally",
    "Theme",
    "Tone",
    "changes_picture",
    "dot_of",
    "draw",
    "family_trace",
    "in_signs_of",
    "is_machine",
    "known_family",
    "level_picture",
    "machine",
    "mermaid_of",
    "picture",
    "proof_marks",
    "rendered",
    "save",
    "save_picture",
    "sequence",
    "sequence_mermaid",
    "sequence_text",
    "trace_marks",
]

__getattr__ = front_door(
    __name__,
    {
        ".comparison": ("changes_picture",),
        ".dot": ("dot_of",),
        ".family": (
            "Family",
            "known_family",
        ),
        ".levels": (
            "Level",
            "draw",
            "level_picture",
        ),
        ".marks": (
            "Marks",
            "Tally",
            "Tone",
        ),
        ".mermaid": ("mermaid_of",),
        ".pictures": (
            "Picture",
            "picture",
        ),
        ".proof": ("proof_marks",),
        ".render": (
            "is_machine",
            "machine",
            "rendered",
            "save",
            "save_picture",
        ),
        ".sequences": (
            "sequence",
            "sequence_mermaid",
            "sequence_text",
        ),
        ".text": ("in_signs_of",),
        ".theme": (
            "LIGHT",
            "THEMES",
            "Theme",
        ),
        ".trace": (
            "RunTrace",
            "family_trace",
            "trace_marks",
        ),
    },
)
