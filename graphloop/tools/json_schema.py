"""Make JSON Schemas of types, without titles and with sorted keywords.

This module is loaded when the first schema is made: pydantic's generator takes long to load, and an
agent without tools and output types needs none. `schema` is the way to it.
"""

from __future__ import annotations

from typing import Final

import pydantic
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_json

__all__ = ["generated", "sorted_text"]


class _Untitled(GenerateJsonSchema):
    """A schema generator without titles: a title only repeats a name, and costs tokens."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


_SORTER: Final = _Untitled()  # Shared: costly to make.


def generated(adapter: pydantic.TypeAdapter[object]) -> dict[str, object]:
    """Return the JSON Schema of an adapter's type.

    Raises:
        PydanticUserError: the type has no JSON Schema.
    """
    return adapter.json_schema(schema_generator=_Untitled)


def sorted_text(schema: dict[str, object]) -> str:
    """Return a schema as compact JSON with sorted keywords; properties keep their order."""
    return to_json(_SORTER.sort(schema)).decode("utf-8")
