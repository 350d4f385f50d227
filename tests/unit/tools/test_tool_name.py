"""A tool's name is one that every wire takes, or it is refused with one that is."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ToolDefinitionError
from graphloop.tools.names import check_name, legal_name


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_a_legal_name_passes(name: str) -> None:
    """Letters, digits, '_' and '-' are taken everywhere (CONTRACT §9 #56)."""
    check_name(name)
    assert name == legal_name(name)


@given(st.text())
@example("")
@example("x" * 65)
@example("name\n")
@example("wetter_für")
def test_the_name_that_is_offered_instead_is_legal(name: str) -> None:
    """A message whose remedy fails would be worse than none."""
    try:
        check_name(name)
    except ToolDefinitionError as error:
        offered = re.search(r"Fix: name it '([^']*)'\.$", str(error))
        assert offered is not None
        check_name(offered[1])
        assert offered[1] == legal_name(name)
    else:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


def test_what_is_no_text_is_no_name() -> None:
    """It would fail on the wire, far from its author."""
    with pytest.raises(ToolDefinitionError, match="name it '5'"):
        check_name(5)
