"""Arguments that somebody typed."""

from __future__ import annotations

import pytest

from graphloop.cli.edits import edited
from graphloop.errors import ConfigError


@pytest.mark.parametrize("text", ["[1]", "5", "{", "", "[" * 100_000])
def test_only_a_json_object_is_an_edit(text: str) -> None:
    """Arguments have names."""
    with pytest.raises(ConfigError, match="expected the arguments as a JSON object"):
        edited(text)
    assert edited('{"a": 1}') == '{"a": 1}'
