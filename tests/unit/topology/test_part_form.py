"""Nodes within others."""

from __future__ import annotations

from graphloop.nodes import Child, ModelCall
from graphloop.topology.part_form import PartForm
from tests.topology_forms import read, written


def test_a_node_within_another_has_its_kinds_name_or_its_own() -> None:
    """It has no key to be named by."""
    assert ModelCall() == read(PartForm(), "{use: model_call}")
    assert {"use": "model_call"} == written(PartForm(), ModelCall())
    assert ModelCall("a") == read(PartForm(), "{use: model_call, name: a}")
    assert {"use": "child", "agent": "a", "name": "b"} == written(PartForm(), Child("a", "b"))
    assert {"$ref": "#/$defs/part"} == PartForm().schema
