"""Files: drawn with the programs that are installed; an error says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from graphloop.errors import ConfigError
from graphloop.views import render as module
from graphloop.views.dot import dot_of
from graphloop.views.pdf import pdf_of
from graphloop.views.pictures import picture
from graphloop.views.render import render, save, save_picture
from tests.graphs import agent

POSIX = pytest.mark.skipif(os.name == "nt", reason="the stand-in for `dot` is a POSIX script")
DOT = dot_of(picture(agent()))
WITHOUT_FPDF = """
import sys
sys.modules["fpdf"] = None  # as where the extra is not installed
from graphloop import Agent
from graphloop.errors import ConfigError
from graphloop.testing import ScriptedModel
agent = Agent(ScriptedModel(()))
agent.graph.save("loop.svg")
try:
    agent.graph.save("loop.pdf")
except ConfigError as error:
    print(error)
"""


@pytest.fixture
def no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Empty the path, as where the venv is not activated and Graphviz not installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def drawn() -> tuple[bytes, bytes]:
    return render(DOT, "svg"), render(DOT, "png")


def stand_in(folder: Path, name: str, code: str) -> None:
    """Put a program called `name` into `folder`."""
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF-"), ("a.dot", b"digraph")],
)
@pytest.mark.usefixtures("no_path")
def test_a_graph_is_saved_in_the_format_of_the_suffix(
    tmp_path: Path, name: str, start: bytes
) -> None:
    """Also where the venv is not activated: graphviz-pure is found beside the interpreter."""
    save(agent(), tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["a.gif", "a", ".svg"])
def test_an_unknown_suffix_is_answered_with_the_known_ones(tmp_path: Path, name: str) -> None:
    """Guessing a format would write a file nothing opens."""
    with pytest.raises(ConfigError, match=r"\.svg, .*\.scxml or \.xstate\.json"):
        save(agent(), tmp_path / name)


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    """The caller wants a file in it, under a name that only the caller knows."""
    (tmp_path / "a.svg").mkdir()

    for folder in (tmp_path, tmp_path / "a.svg"):
        with pytest.raises(ConfigError, match=r"found the folder '.*graph\.svg'"):
            save(agent(), folder)


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
    with pytest.raises(ConfigError, match=r"graphviz-pure.*syntax error"):
        render("digraph {", "svg")


@pytest.mark.usefixtures("no_path")
def test_drawing_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout without an end must not hang the caller."""
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.0)

    with pytest.raises(ConfigError, match=r"within 0 s"):
        render(DOT, "svg")


@POSIX
def test_an_installed_graphviz_is_preferred(no_path: Path, tmp_path: Path) -> None:
    """A user who has Graphviz has its fonts and its formats, and expects its pictures."""
    stand_in(no_path, "dot", "print(sys.argv[1], len(sys.stdin.read()))")

    save(agent(), tmp_path / "a.pdf")

    assert (tmp_path / "a.pdf").read_text() == f"-Tpdf {len(DOT)}\n"


@POSIX
def test_a_refusal_of_graphviz_is_told_in_its_words(no_path: Path) -> None:
    """A Graphviz without a plugin for a format says so on its error stream only."""
    stand_in(no_path, "dot", "sys.stdin.read(); sys.exit('Format: \"pdf\" not recognized')")

    with pytest.raises(ConfigError, match=r"pdf: .*dot.*not recognized"):
        render("digraph {}", "pdf")


@pytest.mark.usefixtures("no_path")
def test_only_a_pdf_needs_the_extra(tmp_path: Path) -> None:
    """fpdf2 weighs more than all the rest: pictures without it, and an error that names it."""
    code = [sys.executable, "-c", WITHOUT_FPDF]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "" == done.stderr
    assert "<svg" in (tmp_path / "loop.svg").read_text(encoding="utf-8")
    assert "pip install 'graphloop[pdf]'" in done.stdout
    assert not (tmp_path / "loop.pdf").exists()


def test_latin_text_stays_text_in_a_pdf_and_other_letters_become_the_picture(
    drawn: tuple[bytes, bytes],
) -> None:
    """A reader can search text; but the built-in fonts lack other letters than Latin-1."""
    svg, png = drawn

    page = pdf_of(svg, png)
    other = pdf_of(svg.replace(b"gate", "\u65e5\u672c".encode()), png)

    assert page.startswith(b"%PDF-")
    assert b"/Subtype /Image" not in page
    assert b"/Subtype /Image" in other


@pytest.mark.parametrize("name", ["d.scxml", "d.xstate.json"])
def test_a_picture_is_no_state_machine(name: str, tmp_path: Path) -> None:
    """Marks have no place in one, and the error must not advise to choose it."""
    with pytest.raises(ConfigError, match="state machine") as caught:
        save_picture(picture(agent()), tmp_path / name)

    assert ".scxml" not in str(caught.value).replace(name, "")
    assert not (tmp_path / name).exists()
