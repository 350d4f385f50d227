"""A JSON Schema from elsewhere is kept, checked, and as binding as one of ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ToolDefinitionError
from graphloop.tools.raw_schema import is_pattern, matches
from graphloop.tools.tool import Tool


def raw(schema: Mapping[str, object]) -> Tool:
    return Tool(name="raw", parameters=schema)


def test_a_raw_schema_is_kept_and_checked() -> None:
    """A schema from elsewhere is as binding as one of ours."""
    schema: dict[str, object] = {
        "type": "object",
        "title": "Gone",
        "properties": {
            "z": {"type": "array", "items": {"$ref": "#/$defs/n"}},
            "a": {"enum": [1, 2]},
        },
        "required": ["z"],
        "$defs": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    made = raw(schema)
    schema["type"] = "string"

    assert list(json.loads(made.spec.parameters)["properties"]) == ["z", "a"]
    assert "Gone" not in made.spec.parameters
    assert made.validate('{"z": [1]}') is None
    assert made.validate('{"z": ["x"], "a": 3}') == (
        "Invalid arguments for tool 'raw': a: 3 is not one of [1, 2]; "
        "z.0: 'x' is not of type 'integer'. Correct the arguments and call the tool again."
    )
    assert "'z' is a required property" in (made.validate("{}") or "")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {}}, "found None"),
        ({"type": "array"}, "found 'array'"),
        ({"type": "object", "required": "a"}, "at required"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "at properties.a.pattern"),
        ({"type": "object", "$schema": "urn:mine"}, "found 'urn:mine'"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "'#/$defs/b'"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://x.test/s"}}},
            "expected definitions in the schema itself",
        ),
        ({"type": "object", "default": object()}, "not a JSON Schema"),
    ],
)
def test_a_raw_schema_that_cannot_work_is_refused(
    schema: Mapping[str, object], expected: str
) -> None:
    """A schema's mistakes belong to its author, not to the model that meets them later."""
    with pytest.raises(ToolDefinitionError) as caught:
        raw(schema)

    assert expected in str(caught.value)
    assert "tool 'raw'" in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_an_endless_schema_refuses_arguments() -> None:
    """Nothing that validation can do may end the run."""
    endless = raw({"type": "object", "allOf": [{"$ref": "#"}]})

    assert "RecursionError" in (endless.validate("{}") or "")


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_an_open_schema_accepts_every_object(value: dict[str, object]) -> None:
    """What the schema does not forbid is allowed."""
    assert raw({"type": "object"}).validate(json.dumps(value)) is None


def test_a_pattern_may_name_classes_of_letters() -> None:
    """Schemas of servers are written for JavaScript's engine, which knows them."""
    named = raw(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": r"^\p{Lu}\p{L}*$"},
                "more": {"$ref": "#"},
            },
        }
    )

    assert named.validate('{"name": "Ærø", "more": {"name": "Å"}}') is None
    assert "'ærø' does not match" in (named.validate('{"name": "ærø"}') or "")
    assert "more.name: 'å' does not match" in (named.validate('{"more": {"name": "å"}}') or "")


@pytest.mark.parametrize("draft", ["2020-12/schema", "draft-07/schema#"])
def test_a_pattern_of_property_names_must_be_searchable(draft: str) -> None:
    """Found when the tool is defined; at a call it would be the model's fault."""
    schemes = {"2020-12/schema": "https", "draft-07/schema#": "http"}
    schema = {
        "$schema": f"{schemes[draft]}://json-schema.org/{'draft/' * (draft[0] == '2')}{draft}",
        "type": "object",
        "properties": {"a": {"patternProperties": {r"^\p{L}$": {"type": "integer"}}}},
    }

    with pytest.raises(ToolDefinitionError, match=r"tool 'raw': .*patternProperties.* Fix: "):
        raw(schema)


def test_patterns_of_property_names_are_kept_and_checked() -> None:
    """Those that can be searched for work as ever."""
    numbered = raw({"type": "object", "patternProperties": {"^n": {"type": "integer"}}})

    assert numbered.validate('{"n1": 1, "x": "y"}') is None
    assert "n1: 'a' is not of type 'integer'" in (numbered.validate('{"n1": "a"}') or "")


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("^a+$", "aa", "ab"),
        ("b", "abc", "ac"),
        (r"^\p{L}+$", "Ærø", "a1"),
        (r"^[\p{Lu}\p{N}]", "É", "é"),
        (r"^(?<year>\d{4})$", "2026", "26"),
        (r"^(?=a)a", "a", "b"),
    ],
)
def test_a_pattern_is_searched_for_in_a_text(pattern: str, fits: str, fails: str) -> None:
    """Whichever engine knows it."""
    assert is_pattern(pattern)
    assert matches(pattern, fits)
    assert not matches(pattern, fails)


def test_what_is_no_text_is_for_others_to_refuse() -> None:
    """A format is a rule for texts only."""
    assert is_pattern(3)


@given(st.text(), st.text())
def test_where_python_knows_a_pattern_python_decides(pattern: str, text: str) -> None:
    """The second engine changes nothing for schemas that worked without it."""
    try:
        expected = re.search(pattern, text) is not None
    except re.error:
        return

    assert is_pattern(pattern)
    assert matches(pattern, text) == expected


def test_importing_tools_does_not_import_jsonschema() -> None:
    """It takes longer to import than everything else here together."""
    code = "import sys, graphloop.tools.tool; sys.exit('jsonschema' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
