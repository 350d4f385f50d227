"""README.md is printed from the programs."""

from __future__ import annotations

from tests.newcomer.table import PAGE, PROGRAMS, concepts, lines, page

ESCAPES = ("type: ignore", "pyright:", "noqa", "Any", "cast(")


def test_the_page_is_as_the_programs_are() -> None:
    """Figures that are written by hand are wrong after the first change."""
    again = "run `python -m tests.newcomer.table`"

    assert PAGE.read_text(encoding="utf-8") == page(), again


def test_a_line_is_a_line_of_code() -> None:
    """Blank lines, comments and docstrings count for nothing; a table in YAML counts."""
    assert 18 == lines("p12_notebook")
    assert lines("p05_letters") > lines("p12_notebook")


def test_a_concept_is_a_name_of_graphloop() -> None:
    """Names of Python, of other packages and of the program itself are none."""
    used = concepts("p08_chat_server")

    assert {"Agent", "chat", "load_messages", "screen", "store"} <= used
    assert used.isdisjoint({"FastAPI", "CancelledError", "parcel", "user", "media_type", "post"})


def test_no_program_talks_a_type_checker_out_of_an_error() -> None:
    """A newcomer's program is typed by what graphloop says of itself."""
    programs = sorted(PROGRAMS.glob("*.py"))

    assert 14 == len(programs)
    assert [] == [
        f"{path.name}: {escape}"
        for path in programs
        for escape in ESCAPES
        if escape in path.read_text(encoding="utf-8")
    ]
