"""What a store notes of how a run was started."""

from __future__ import annotations

import pytest

from graphloop.cli.noted import REPEATED, Noted
from graphloop.cli.place import repeated


@pytest.mark.parametrize("target", ["agent", "my_package.desk:graph", "/a desk/it's.yaml"])
def test_a_note_is_read_as_it_was_written(target: str) -> None:
    """Blanks and quotes in paths, and in reasons, are part of them."""
    options = repeated("http://x", 3, "it's a poll", registers=("/a desk/own.py", "my.desk"))

    noted = Noted.read(str(Noted(target, options)))

    assert Noted(target, options) == noted
    assert ["/a desk/own.py", "my.desk"] == [*noted.values("--with")]
    assert ("it's a poll", "3") == (noted.value("--unbounded"), noted.value("--max-steps"))
    assert {*REPEATED} == {*options[::2]}
    assert Noted(target) == Noted.read(target)
    assert noted.without("--with") == Noted(target, options[:-4])
    assert None is Noted.read(target).value("--base-url")


@pytest.mark.parametrize(
    "text", ["", "/desks --within/agent.py", "/a --with 'x", "/a --with x --model y"]
)
def test_what_is_no_note_of_ours_is_a_target(text: str) -> None:
    """A file may be called as it likes."""
    assert Noted(text) == Noted.read(text)
