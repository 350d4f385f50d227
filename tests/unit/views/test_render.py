"""Pictures: drawn with whatever is installed, and an answer that helps where nothing is."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from graphloop.errors import ConfigError
from graphloop.views import render as module
from graphloop.views.dot import dot
from graphloop.views.mermaid import mermaid
from graphloop.views.picture import picture
from graphloop.views.render import PictureFormat, render, save, save_picture
from tests.graphs import agent

POSIX = pytest.mark.skipif(os.name == "nt", reason="the stand-in for `dot` is a POSIX script")


@pytest.fixture
def no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Empty the path, as where the venv is not activated and Graphviz not installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def stand_in(folder: Path, name: str, code: str) -> None:
    """Put a program called `name` into `folder`."""
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG"), ("a.dot", b"digraph")]
)
@pytest.mark.usefixtures("no_path")
def test_a_graph_is_saved_in_the_format_of_the_suffix(
    tmp_path: Path, name: str, start: bytes
) -> None:
    """Also where the venv is not activated: graphviz-pure is found beside the interpreter."""
    save(agent(), tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(start)


def test_text_formats_are_saved_as_they_are_made(tmp_path: Path) -> None:
    """A saved diagram is compared in reviews: it must not depend on where it was saved."""
    save(agent(), str(tmp_path / "a.mmd"))
    save(agent(), str(tmp_path / "a.dot"))

    assert mermaid(agent()).encode() == (tmp_path / "a.mmd").read_bytes()
    assert dot(agent()).encode() == (tmp_path / "a.dot").read_bytes()


@pytest.mark.parametrize("name", ["a.gif", "a", ".svg"])
def test_an_unknown_suffix_is_answered_with_the_known_ones(tmp_path: Path, name: str) -> None:
    """Guessing a format would write a file nothing opens."""
    with pytest.raises(
        ConfigError, match=r"\.svg, \.png, \.pdf, \.mmd, \.dot, \.txt, \.scxml or \.xstate\.json"
    ):
        save(agent(), tmp_path / name)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The usual cause is a typing error, so no folder is made."""
    with pytest.raises(ConfigError, match=r"'.*nowhere'.*create it first"):
        save(agent(), tmp_path / "nowhere" / "a.dot")


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    """Who names a folder wants a file in it, under a name that only they know."""
    (tmp_path / "a.svg").mkdir()

    for folder in (tmp_path, tmp_path / "a.svg"):
        with pytest.raises(ConfigError, match=r"found the folder '.*graph\.svg'"):
            save(agent(), folder)


def test_an_unknown_format_is_answered_with_the_known_ones() -> None:
    """A word from a command line need not be one the types allow."""
    word: PictureFormat = "gif"  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    with pytest.raises(ConfigError, match=r"pdf, png, svg.*'gif'"):
        render("digraph {}", word)


@pytest.mark.usefixtures("no_path")
def test_without_a_program_that_draws_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first picture is many users' first minute."""

    def nowhere(*_: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr(sysconfig, "get_path", nowhere)

    with pytest.raises(ConfigError, match=r"pip install graphviz-pure"):
        render("digraph {}", "svg")


@pytest.mark.usefixtures("no_path")
def test_text_that_is_no_diagram_is_refused_in_the_words_of_the_program() -> None:
    """The line and the sign it stumbled over are what its author needs."""
    with pytest.raises(ConfigError, match=r"graphviz-pure.*refused.*syntax error"):
        render("digraph {", "svg")


@pytest.mark.usefixtures("no_path")
def test_drawing_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout that takes for ever must not hang whoever asked for it."""
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.0)

    with pytest.raises(ConfigError, match=r"within 0 s"):
        render(dot(agent()), "svg")


@POSIX
def test_an_installed_graphviz_is_preferred(no_path: Path) -> None:
    """Who has Graphviz has its fonts and its formats, and expects its pictures."""
    stand_in(no_path, "dot", "print(sys.argv[1:], sys.stdin.read())")

    assert render("digraph {}", "pdf") == b"['-Kdot', '-Tpdf'] digraph {}\n"


@POSIX
def test_a_pdf_is_saved_where_graphviz_is_installed(no_path: Path, tmp_path: Path) -> None:
    """Its PDF is the real thing; ours is for machines without it."""
    stand_in(no_path, "dot", "print(sys.argv[2], len(sys.stdin.read()))")

    save(agent(), tmp_path / "a.pdf")

    assert (tmp_path / "a.pdf").read_text() == f"-Tpdf {len(dot(agent()))}\n"


@POSIX
def test_what_graphviz_refuses_is_said_in_its_words(no_path: Path) -> None:
    """A Graphviz without a plugin for a format says so on its error stream only."""
    stand_in(no_path, "dot", "sys.stdin.read(); sys.exit('Format: \"pdf\" not recognized')")

    with pytest.raises(ConfigError, match=r"dot to draw pdf.*not recognized"):
        render("digraph {}", "pdf")


@pytest.mark.parametrize("name", ["d.scxml", "d.xstate.json"])
def test_a_picture_is_no_state_machine(name: str, tmp_path: Path) -> None:
    """What is drawn over a graph has no place in one, and nobody is told to choose it."""
    with pytest.raises(ConfigError, match="a state machine holds a graph alone") as caught:
        save_picture(picture(agent()), tmp_path / name)

    assert ".scxml" not in str(caught.value).replace(name, "")
    assert not (tmp_path / name).exists()
