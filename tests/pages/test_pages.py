"""Each page that teaches works as it stands: its files, its programs, its commands, its output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.page import FENCED, blocks_of, check_imports, run_page

ROOT = Path(__file__).parents[2]
FOLDERS = ("tutorial", "how-to", "concepts", "wires")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md"))
LOOKED_UP = sorted((ROOT / "docs").glob("*.md"))
WHOLE = [ROOT / "docs" / f"{name}.md" for name in ("fuzzing", "proofs", "temporal")]
"""Pages to look things up in, whose blocks are whole programs all the same."""
SENTENCE_END = re.compile(r"(?<=[.:;?!]) |: ")
CODE = re.compile(r"`[^`]*`")
WORDS_MAX = 20
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
LISTED = re.compile(r"(?:code, )+code")
LONG_WORDS_MAX = 25
NOT_PROSE = ("architecture", "contract", "finish-words", "seeds")
"""Pages that are tables of facts: printed from code, or kept for maintainers."""


@pytest.mark.parametrize(
    "page", [*PAGES, *WHOLE], ids=lambda page: f"{page.parent.name}/{page.stem}"
)
def test_a_page_works_as_it_stands(page: Path, tmp_path: Path) -> None:
    """A reader pastes each block, and each block does what the page says."""
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", LOOKED_UP, ids=lambda page: page.stem)
def test_the_python_of_a_reference_page_names_what_there_is(page: Path) -> None:
    """Its blocks may be pieces of programs: they are read, and their imports are looked up."""
    for block in blocks_of(page.read_text("utf-8")):
        if block.language == "python":
            check_imports(block, f"{page}:{block.line}", "graphloop")


def test_every_block_of_python_is_coloured_and_run() -> None:
    """A block without a language would escape the other test."""
    plain = [
        f"{page}:{block.line}"
        for page in PAGES
        for block in blocks_of(page.read_text("utf-8"))
        if not block.language
    ]

    assert [] == plain


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_sentence_has_twenty_words_at_most(page: Path) -> None:
    """A stranger reads each sentence once."""
    prose = FENCED.sub("", page.read_text("utf-8"))
    lines = [
        line.removeprefix("- ")
        for line in prose.splitlines()
        if not line.startswith(("|", "#", "!["))
    ]
    sentences = [each for line in lines for each in SENTENCE_END.split(CODE.sub("code", line))]

    assert [] == [each for each in sentences if len(each.split()) > WORDS_MAX]


@pytest.mark.parametrize(
    "page", [page for page in LOOKED_UP if page.stem not in NOT_PROSE], ids=lambda page: page.stem
)
def test_a_sentence_of_a_reference_page_has_twenty_five_words_at_most(page: Path) -> None:
    """A reader gives up at a sentence of forty words, also in the cell of a table."""
    prose = CODE.sub("code", LINK.sub(r"\1", FENCED.sub("", page.read_text("utf-8"))))
    lines = [
        line for line in prose.splitlines() if not line.startswith(("#", "![", "|---", "<!--"))
    ]
    cells = [cell for line in lines for cell in line.strip("|").split(" | ")]
    sentences = [each for cell in cells for each in re.split(r"(?<=[.?!;]) ", cell)]

    long = [each for each in sentences if len(LISTED.sub("code", each).split()) > LONG_WORDS_MAX]
    assert [] == long
