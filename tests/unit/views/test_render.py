"""Files: drawn with the installed programs; an error names what to install."""

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
from graphloop.views.levels import LEVELS, Level, picture
from graphloop.views.pdf import pdf_of
from graphloop.views.render import render, save, save_picture
from tests.graphs import agent

POSIX = pytest.mark.skipif(os.name == "nt", reason="the stand-in for `dot` is a POSIX script")
DOT = dot_of(picture(agent()))
WITHOUT_FPDF = """
import sys
sys.modules["fpdf"] = None  # the extra is not installed
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
    """Empty the path: the venv is not active, and Graphviz is not installed."""
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
    """graphviz-pure is found beside the interpreter, without an active venv."""
    save(agent(), tmp_path / name)

    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize("suffix", ["svg", "mmd", "txt"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_saved(level: Level, suffix: str, tmp_path: Path) -> None:
    save(agent(), tmp_path / f"a.{suffix}", level=level)

    assert (tmp_path / f"a.{suffix}").stat().st_size > 100


def test_a_state_machine_has_the_level_node_only(tmp_path: Path) -> None:
    save(agent(), tmp_path / "a.scxml")

    assert (tmp_path / "a.scxml").exists()
    with pytest.raises(ConfigError, match="found 'phase'"):
        save(agent(), tmp_path / "a.xstate.json", level="phase")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.gif", r"\.svg, .*\.scxml, \.xstate\.json"),
        ("a", r"\.svg, "),
        (".svg", r"\.svg, "),
        ("no/a.svg", "expected a folder at"),
        ("folder", r"found the folder '.*graph\.svg'"),
    ],
)
def test_a_path_that_is_no_picture_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(ConfigError, match=message):
        save(agent(), tmp_path / name)


@pytest.mark.usefixtures("no_path")
def test_a_missing_program_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:

    def nowhere(*_: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr(sysconfig, "get_path", nowhere)

    with pytest.raises(ConfigError, match=r"pip install graphviz-pure"):
        render("digraph {}", "svg")


@pytest.mark.usefixtures("no_path")
def test_invalid_dot_text_is_refused_with_the_syntax_error() -> None:
    with pytest.raises(ConfigError, match=r"graphviz-pure.*syntax error"):
        render("digraph {", "svg")


@pytest.mark.usefixtures("no_path")
def test_a_layout_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.0)

    with pytest.raises(ConfigError, match=r"within 0 s"):
        render(DOT, "svg")


@POSIX
def test_an_installed_graphviz_is_preferred(no_path: Path, tmp_path: Path) -> None:
    stand_in(no_path, "dot", "print(sys.argv[1], len(sys.stdin.read()))")

    save(agent(), tmp_path / "a.pdf")

    assert (tmp_path / "a.pdf").read_text() == f"-Tpdf {len(DOT)}\n"


@POSIX
def test_an_error_of_graphviz_is_quoted(no_path: Path) -> None:
    stand_in(no_path, "dot", "sys.stdin.read(); sys.exit('Format: \"pdf\" not recognized')")

    with pytest.raises(ConfigError, match=r"dot could not draw pdf: .*not recognized"):
        render("digraph {}", "pdf")


@pytest.mark.usefixtures("no_path")
def test_only_a_pdf_needs_the_extra(tmp_path: Path) -> None:
    code = [sys.executable, "-c", WITHOUT_FPDF]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "" == done.stderr
    assert "<svg" in (tmp_path / "loop.svg").read_text(encoding="utf-8")
    assert "pip install 'graphloop[pdf]'" in done.stdout
    assert not (tmp_path / "loop.pdf").exists()


def test_a_pdf_has_text_for_latin_letters_else_an_image(
    drawn: tuple[bytes, bytes],
) -> None:
    """The built-in fonts of a PDF have Latin-1 letters only."""
    svg, png = drawn

    page = pdf_of(svg, png)
    other = pdf_of(svg.replace(b"gate", "\u65e5\u672c".encode()), png)

    assert page.startswith(b"%PDF-")
    assert b"/Subtype /Image" not in page
    assert b"/Subtype /Image" in other


@pytest.mark.parametrize("name", ["d.scxml", "d.xstate.json"])
def test_a_picture_cannot_be_saved_as_a_state_machine(name: str, tmp_path: Path) -> None:
    """The error does not advise to use the suffix."""
    with pytest.raises(ConfigError, match="expected a picture") as caught:
        save_picture(picture(agent()), tmp_path / name)

    assert ".scxml" not in str(caught.value).replace(name, "")
    assert not (tmp_path / name).exists()
