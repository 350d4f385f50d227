"""States: the user's own data in a run, its type and its fields.

Owns the facts about a state's type, the copies that user functions get, and the results that nodes
write into fields. Refuses a state that cannot be copied, because a journal would miss a change in
place. Start with `state.py`; `fields.py` reads and writes single fields.
"""

from .fields import (
    FIELD,
    ItemsOf,
    PromptsOf,
    Reduce,
    ResultsInto,
    field_callback,
    item_text,
    list_flaw,
    reduce,
    reduced_fields,
    with_result,
)
from .state import (
    Stateful,
    changed_fields,
    fields_of,
    is_frozen,
    known_state_type,
    lent,
    same_state,
    state_type_of,
    states_fit,
)

__all__ = [
    "FIELD",
    "ItemsOf",
    "PromptsOf",
    "Reduce",
    "ResultsInto",
    "Stateful",
    "changed_fields",
    "field_callback",
    "fields_of",
    "is_frozen",
    "item_text",
    "known_state_type",
    "lent",
    "list_flaw",
    "reduce",
    "reduced_fields",
    "same_state",
    "state_type_of",
    "states_fit",
    "with_result",
]
