r"""The patterns of a JSON Schema, which are JavaScript's: searched for, not matched from the start.

Python's `re` reads nearly all of them. What it does not (`\p{L}`, `(?<name>…)`) is left to the
engine that pydantic brings along; what neither reads is no pattern here (JSON Schema 2020-12 §6.4).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

__all__ = ["is_pattern", "matches"]


def is_pattern(text: object) -> bool:
    """Whether this can be searched for; what is no text is for other rules to refuse."""
    if not isinstance(text, str):
        return True
    try:
        _searcher(text)
    except SchemaError:
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether `text` holds what `pattern` describes.

    Raises:
        SchemaError: it is not a pattern.
    """
    return _searcher(pattern)(text)


@lru_cache(maxsize=512)
def _searcher(pattern: str) -> Callable[[str], bool]:
    try:
        search = re.compile(pattern).search
    except (re.error, RecursionError, OverflowError):
        described = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
        return SchemaValidator(described).isinstance_python
    return lambda text: search(text) is not None
