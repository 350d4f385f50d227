"""`graphloop schema`."""

from __future__ import annotations

import json
from pathlib import Path

from graphloop.topology.registration import registry
from graphloop.topology.schema import topology_schema
from tests.unit.cli.command_line import refused, shown


def test_the_schema_is_printed_or_written(desk: Path) -> None:
    shown("schema", "-o", "a.json")

    expected = topology_schema(registry, open_to_others=True)
    assert expected == json.loads((desk / "a.json").read_text())
    assert expected == json.loads(shown("schema")) == json.loads(shown("schema", "-o-"))
    assert "-, -.json for stdout" in refused("schema", "-o", "-.yaml")
    assert "cannot be written" in refused("schema", "-o", "none/a.json")


def test_the_schema_of_registered_names_allows_no_others(desk: Path) -> None:
    (desk / "own.py").write_text("", encoding="utf-8")

    closed = json.loads(shown("schema", "--with", "own.py"))

    assert closed == topology_schema(registry)
