"""The collector notices a page that is wrong; else every page would pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.page import blocks_of, run_page

PROGRAM = '```python title="a.py"\nprint("one")\nprint("two")\n```\n'
RUN = "```sh\npython a.py\n```\n"


def text(*lines: str) -> str:
    """Return a block of output."""
    return "\n".join(["```text", *lines, "```\n"])


def tried(page: str, folder: Path) -> None:
    """Run a page of this text."""
    path = folder / "page.md"
    path.write_text(page, encoding="utf-8")
    (folder / "empty").mkdir()
    run_page(path, folder / "empty")


@pytest.mark.parametrize(
    "shown",
    [("one", "two"), ("o…", "…wo"), ("…",), ("one", "…"), ("…", "two"), ("one", "…", "two")],
)
def test_a_right_page_passes(shown: tuple[str, ...], tmp_path: Path) -> None:
    """What a reader would take for the same output is the same."""
    tried(PROGRAM + RUN + text(*shown), tmp_path)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (PROGRAM + RUN + text("one"), "the page shows"),
        (PROGRAM + RUN + text("one", "three"), "the page shows"),
        (PROGRAM + RUN + text("two", "…"), "the page shows"),
        (PROGRAM, "expected a use of a.py"),
        (text("one"), "expected a command before this output"),
        (PROGRAM + "```sh\npython a.py  # exit status 1\n```\n", "one\ntwo"),
        ('```python\nraise SystemExit("no")\n```\n', "no"),
        ("```sh\nrm a.py\n```\n", "expected one of"),
        ("```pascal\nbegin end.\n```\n", "expected a language"),
        (
            '```python title="langgraph_a.py"\nfrom langgraph.graph import Nothing\n```\n',
            "has no such names",
        ),
    ],
)
def test_a_wrong_page_fails(page: str, message: str, tmp_path: Path) -> None:
    """Each way in which a page goes stale is told with its place."""
    if "langgraph" in page:
        pytest.importorskip("langgraph", reason="the extra `bench` is not installed")
    with pytest.raises(AssertionError, match=message):
        tried(page, tmp_path)


def test_a_wrong_yaml_fails(tmp_path: Path) -> None:
    """Also where nothing loads it."""
    with pytest.raises(Exception, match="while parsing"):
        tried("```yaml\na: [b\n```\n", tmp_path)


def test_a_program_that_kills_itself_has_the_status_of_a_shell(tmp_path: Path) -> None:
    """A page about crashes has to crash."""
    killed = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    page = f'```python title="a.py"\n{killed}```\n```sh\npython a.py  # exit status 137\n```\n'

    tried(page, tmp_path)


def test_a_block_in_a_list_loses_its_indent() -> None:
    """Lists have blocks, too."""
    (block,) = blocks_of('- so:\n\n    ```python title="a.py"\n    if 1:\n        x = 1\n    ```\n')

    assert (block.title, block.text, block.line) == ("a.py", "if 1:\n    x = 1\n", 3)
