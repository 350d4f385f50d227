"""`graphloop schema`."""

from __future__ import annotations

import json
from pathlib import Path

from graphloop.topology.registration import registry
from graphloop.topology.schema import topology_schema
from tests.unit.cli.command_line import here, refused


def test_the_schema_is_printed_or_written(desk: Path) -> None:
    """An editor reads a file; a script reads stdout."""
    here("schema", "-o", "a.json")

    expected = topology_schema(registry, open_to_others=True)
    assert expected == json.loads((desk / "a.json").read_text())
    assert expected == json.loads(here("schema").stdout) == json.loads(here("schema", "-o-").stdout)
    assert "-, -.json for stdout" in refused("schema", "-o", "-.yaml")
    assert "cannot be written" in refused("schema", "-o", "none/a.json")


def test_with_registered_names_the_schema_is_closed(desk: Path) -> None:
    """An editor then marks a node that is not registered."""
    (desk / "own.py").write_text("", encoding="utf-8")

    assert topology_schema(registry) == json.loads(here("schema", "--with", "own.py").stdout)
