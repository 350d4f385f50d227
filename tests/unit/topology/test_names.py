"""Forms of names."""

from __future__ import annotations

import pytest

from graphloop.topology.forms import Unwritable
from graphloop.topology.names import AgentForm, FunctionForm, PredicateForm, ToolForm
from tests.topology_forms import read, refusal, written


def test_only_what_is_registered_or_declared_may_be_named() -> None:
    """A file cannot reach any other code."""
    assert "over" == read(PredicateForm(), "over")
    assert "helps" == read(FunctionForm(), "helps")
    assert "search" == read(ToolForm(), "search")
    assert "writer" == read(ToolForm(), "writer", "writer") == read(AgentForm(), "writer", "writer")
    assert "Did you mean 'over'?" in refusal(PredicateForm(), "overr")
    assert "Registered are helps" in refusal(FunctionForm(), "os.system")
    assert "no tool is registered" in refusal(ToolForm(), "shell")
    assert "Did you mean 'writer'?" in refusal(AgentForm(), "write", "writer")


def test_a_name_that_nobody_would_know_cannot_be_written() -> None:
    """The file would not be read again."""
    with pytest.raises(Unwritable, match=r"register it with @registry\.predicate"):
        written(PredicateForm(), "unknown")
