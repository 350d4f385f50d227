"""States: the user's own data in a run, its type and its fields.

Owns the facts about a state's type, and the copies that user functions get.
Refuses a state that cannot be copied, because a journal would miss a change in place.
Start with `state.py`.
"""

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
    "Stateful",
    "changed_fields",
    "fields_of",
    "is_frozen",
    "known_state_type",
    "lent",
    "same_state",
    "state_type_of",
    "states_fit",
]
