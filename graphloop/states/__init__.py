"""States: the user's own data in a run, its type and its fields.

Owns the facts about a state's type, the copies that user functions get, and the results that nodes
write into fields. Refuses a state that cannot be copied, because a journal would miss a change in
place. Start with `state.py`; `fields.py` reads and writes single fields.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .fields import (
    FIELD,
    ItemsOf,
    PromptsOf,
    Reduce,
    ResultsInto,
    field_callback,
    item_text,
    reduce,
    reduced_fields,
    with_result,
)
from .state import (
    changed_fields,
    fields_of,
    is_frozen,
    known_state_type,
    lent,
    same_state,
    state_type_of,
    states_fit,
)

if TYPE_CHECKING:
    from .flaws import field_problems

__all__ = [
    "FIELD",
    "ItemsOf",
    "PromptsOf",
    "Reduce",
    "ResultsInto",
    "changed_fields",
    "field_callback",
    "field_problems",
    "fields_of",
    "is_frozen",
    "item_text",
    "known_state_type",
    "lent",
    "reduce",
    "reduced_fields",
    "same_state",
    "state_type_of",
    "states_fit",
    "with_result",
]

# Imported at first use: most agents have no state of the user's, and imports take time.
__getattr__ = front_door(__name__, {".flaws": ("field_problems",)})
