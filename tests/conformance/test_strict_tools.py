"""A tool that asks its model's server to enforce its parameters, on each wire that can."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from graphloop import tool
from graphloop.providers import SERVICES, resolve
from graphloop.providers.http import HttpProvider
from graphloop.providers.wire_json import is_object
from graphloop.values import ModelRequest, OutputSpec, UserMessage


class Place(BaseModel):
    """A place."""

    city: str


@tool(provider_options={"strict": True})
def look_up(place: Place, days: int) -> str:
    """Look the weather up."""
    return ""


def closed(**properties: object) -> dict[str, Any]:
    """Return the part of a schema by which an object takes these properties and no others."""
    needed = {"required": [*properties], "additionalProperties": False}
    return {"type": "object", "properties": properties, **needed}


def sent(service: str) -> Any:
    """Return the request that offers the tool, and wants a place."""
    provider = resolve(f"{service}:m", environ={SERVICES[service].key_variable: "key-1"})
    assert isinstance(provider, HttpProvider)
    output = OutputSpec("place", json.dumps(Place.model_json_schema()))
    request = ModelRequest((UserMessage("Hi"),), (look_up.spec,), output=output)
    return json.loads(b"".join(provider.wire.encoder().encode(request)))


def without_names(schema: Any) -> Any:
    """Return a schema without titles and descriptions."""
    if not is_object(schema):
        return schema
    words = {"title", "description"}
    return {name: without_names(part) for name, part in schema.items() if name not in words}


@pytest.mark.parametrize("service", ["anthropic", "openai", "openai-responses"])
def test_a_function_as_it_stands_can_be_strict(service: str) -> None:
    """The three servers refuse a strict object that does not forbid further properties."""
    (function,) = sent(service)["tools"]
    function = function.get("function", function)

    assert function["strict"] is True
    parameters = without_names(function.get("input_schema") or function["parameters"])
    place = closed(city={"type": "string"})
    inner = parameters.pop("$defs", {"Place": parameters["properties"]["place"]})
    assert inner == {"Place": place}
    assert parameters["additionalProperties"] is False


@pytest.mark.parametrize("service", ["openai", "openai-responses"])
def test_a_type_as_it_stands_is_enforced(service: str) -> None:
    """Else the schema would be a hint, and `output_mode="native"` would promise too much."""
    body = sent(service)
    form = body["response_format"]["json_schema"] if "messages" in body else body["text"]["format"]

    assert form["strict"] is True
    assert without_names(form["schema"]) == closed(city={"type": "string"})
