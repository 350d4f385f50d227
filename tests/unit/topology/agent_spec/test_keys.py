"""The keys that are read are those that the library writes."""

from __future__ import annotations

import pytest
from pyagentspec._component_registry import BUILTIN_CLASS_MAP
from pyagentspec.versioning import AgentSpecVersionEnum

from graphloop.topology.agent_spec.keys import KEYS, REFERENCED, VERSION_WRITTEN, VERSIONS

INNER = {"min_agentspec_version", "max_agentspec_version"}


@pytest.mark.parametrize("kind", KEYS)
def test_the_keys_of_a_component_are_known(kind: str) -> None:
    """A key more would be taken for a mistake, a key less would be read over in silence."""
    fields = {*BUILTIN_CLASS_MAP[kind].model_fields} - INNER

    assert {*fields, "component_type", REFERENCED} == {*KEYS[kind]}


def test_the_versions_are_those_of_the_library() -> None:
    """But for those before the first release."""
    known = {one.value for one in AgentSpecVersionEnum} - {"25.3.0", "25.3.1", "25.4.0"}

    assert known == {*VERSIONS}
    assert VERSION_WRITTEN in VERSIONS
