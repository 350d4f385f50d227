"""Views: draws graphs and runs as images, as Mermaid or DOT text, and as plain text.

Owns every drawing. Each drawing is made from the graph's transition table. Running a graph does
not need this package. Start with `levels.py`, which builds a `Picture` of a graph; `render.py`
writes a `Picture` to a file.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .comparison import changes_picture
    from .dot import dot_of
    from .levels import Level, child_graphs, picture
    from .marks import Marks, Tally, Tone
    from .mermaid import mermaid_of
    from .notebook import notebook_bundle, run_bundle
    from .pdf import pdf_of
    from .pictures import Picture
    from .proof import proof_marks
    from .render import is_machine, machine, rendered, save, save_picture
    from .sequences import sequence, sequence_mermaid, sequence_text
    from .theme import LIGHT, THEMES, Theme
    from .trace import RunTrace, run_trace, trace_marks

__all__ = [
    "LIGHT",
    "THEMES",
    "Level",
    "Marks",
    "Picture",
    "RunTrace",
    "Tally",
    "Theme",
    "Tone",
    "changes_picture",
    "child_graphs",
    "dot_of",
    "is_machine",
    "machine",
    "mermaid_of",
    "notebook_bundle",
    "pdf_of",
    "picture",
    "proof_marks",
    "rendered",
    "run_bundle",
    "run_trace",
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
        ".levels": ("Level", "child_graphs", "picture"),
        ".marks": ("Marks", "Tally", "Tone"),
        ".mermaid": ("mermaid_of",),
        ".notebook": ("notebook_bundle", "run_bundle"),
        ".pdf": ("pdf_of",),
        ".pictures": ("Picture",),
        ".proof": ("proof_marks",),
        ".render": ("is_machine", "machine", "rendered", "save", "save_picture"),
        ".sequences": ("sequence", "sequence_mermaid", "sequence_text"),
        ".theme": ("LIGHT", "THEMES", "Theme"),
        ".trace": ("RunTrace", "run_trace", "trace_marks"),
    },
)
