"""docs/architecture.md is printed from the code."""

from __future__ import annotations

from tests.house.architecture import PACKAGE, PAGE, ROOMS, page


def test_the_page_is_as_the_code_is() -> None:
    """A map that is drawn by hand is wrong after the first change."""
    again = "run `python -m tests.house.architecture`"

    assert PAGE.read_text(encoding="utf-8") == page(), again


def test_every_folder_is_on_the_page() -> None:
    """A room that the page leaves out is a room that no stranger finds."""
    folders = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]

    assert sorted(folders) == sorted(ROOMS)
