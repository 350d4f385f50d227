"""graphloop schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop.cli.schema import schema
from graphloop.cli.status import Status
from graphloop.errors import ConfigError
from graphloop.topology.registration import Names
from graphloop.topology.schema import schema_of


def test_the_schema_is_printed_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An editor reads a file; a script reads stdout."""
    assert Status.OK == schema(None)
    assert Status.OK == schema(str(tmp_path / "a.json"))

    printed = json.loads(capsys.readouterr().out)
    expected = schema_of(Names(), open_to_others=True)
    assert expected == printed == json.loads((tmp_path / "a.json").read_text())
    assert Status.OK == schema("-.json")
    assert expected == json.loads(capsys.readouterr().out)
    with pytest.raises(ConfigError, match=r"-, -\.json for stdout"):
        schema("-.yaml")
    with pytest.raises(ConfigError, match="cannot be written"):
        schema(str(tmp_path / "none" / "a.json"))


def test_with_what_is_registered_the_schema_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
    """An editor then marks a node that nobody has registered."""
    schema(None, closed=True)

    assert schema_of(Names()) == json.loads(capsys.readouterr().out)
