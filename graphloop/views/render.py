"""render: converts DOT text to an image, and saves diagrams of graphs to files.

If Graphviz's `dot` is on the path, it draws the image. Otherwise `graphviz-pure` does, a program
that pip can install. The only input of either program is the DOT text.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, cast

from .. import views
from ..errors import ConfigError
from ..graph import NodeGraph
from .dot import dot_of
from .drawing import visible
from .levels import Level, picture
from .mermaid import mermaid_of
from .pictures import Picture
from .state_machines import scxml, xstate
from .text import text_of
from .theme import LIGHT, Theme

__all__ = ["PictureFormat", "is_machine", "machine", "render", "rendered", "save", "save_picture"]

S = TypeVar("S")

PictureFormat: TypeAlias = Literal["svg", "png", "pdf"]

_XSTATE: Final = ".xstate.json"
_PURE: Final = "graphviz-pure"
_TIMEOUT_S: Final = 20.0
_TITLE: Final = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_SIDE: Final = re.compile(r":[a-z]+(?=->|$)")
_FIRST_GROUP: Final = re.compile(r"<g\b")


def render(dot_text: str, format: PictureFormat) -> bytes:  # noqa: A002 - the word users know
    """Draw DOT text with an installed program, and return the image as bytes.

    Raises:
        ConfigError: neither `dot` nor `graphviz-pure` is installed, or a PDF needs the extra
            `pdf`; or the program rejects the text or takes longer than 20 seconds.
    """
    if (graphviz := shutil.which("dot")) is not None:
        return _run_program(graphviz, dot_text, format)
    pure = shutil.which(_PURE, path=_program_path())
    if pure is None:
        raise ConfigError(
            f"{format}: expected a program that draws, found neither `dot` nor `{_PURE}`. "
            f"Fix: pip install {_PURE}, install Graphviz, or save as .mmd or .dot."
        )
    if format == "pdf":
        return _make_pdf(_run_program(pure, dot_text, "svg"), _run_program(pure, dot_text, "png"))
    return _run_program(pure, dot_text, format)


def save(graph: NodeGraph[S], path: str | os.PathLike[str], *, level: Level = "node") -> None:
    """Write the diagram of a graph to a file, in the format of its suffix.

    The suffixes are svg, png, pdf, mmd (Mermaid), dot, txt, scxml and xstate.json. An existing
    file is replaced.

    Raises:
        ConfigError: the suffix is unknown, the path is a folder, or its folder does not exist; the
            picture cannot be drawn (see `render`); or the format is a state machine and `level` is
            not `node`.
    """
    target = Path(path)
    if not is_machine(target):
        save_picture(picture(graph, level=level), target)
        return
    if level != "node":
        raise ConfigError(
            f"level: expected 'node' for a state machine, which has all nodes, found {level!r}. "
            "Fix: leave it out."
        )
    _checked_path(target).write_bytes(machine(graph, target).encode())


def is_machine(path: str | os.PathLike[str]) -> bool:
    """Whether a path ends in a suffix of a state machine, .scxml or .xstate.json."""
    return str(path).lower().endswith((".scxml", _XSTATE))


def machine(graph: NodeGraph[S], path: str | os.PathLike[str]) -> str:
    """Return `graph` as XState JSON if the path ends in .xstate.json, else as SCXML."""
    return xstate(graph) if str(path).lower().endswith(_XSTATE) else scxml(graph)


def save_picture(drawn: Picture, path: str | os.PathLike[str], theme: Theme = LIGHT) -> None:
    """Write a picture to a file, in the format of the file's suffix.

    Raises:
        ConfigError: the suffix is unknown or that of a state machine; the path is a folder, or its
            folder does not exist; or the picture cannot be drawn (see `render`).
    """
    target = _checked_path(Path(path))
    target.write_bytes(_picture_bytes(drawn, target, theme))


def rendered(drawn: Picture, suffix: str, theme: Theme = LIGHT, columns: int = 80) -> str:
    """Return a picture as text in the format of `suffix`: .svg, .dot, .txt or .mmd (Mermaid).

    Args:
        drawn: the picture.
        suffix: the format.
        theme: the colours.
        columns: the width of the terminal, for .txt.

    Raises:
        ConfigError: an SVG cannot be drawn (see `render`).
    """
    if suffix == ".txt":
        return text_of(drawn, columns)
    return _picture_bytes(drawn, Path(f"picture{suffix}"), theme).decode()


def _checked_path(target: Path) -> Path:
    """Return the path of a file to write; refuse a folder, and a path in a missing folder."""
    if target.is_dir():
        raise ConfigError(
            f"path: expected the name of a file, found the folder {str(target)!r}. "
            f"Fix: name a file in it, e.g. {str(target / 'graph.svg')!r}."
        )
    if not target.parent.is_dir():
        raise ConfigError(
            f"path: expected a folder at {str(target.parent)!r}, found none. Fix: create it first."
        )
    return target


def _picture_bytes(drawn: Picture, target: Path, theme: Theme) -> bytes:
    match target.suffix.lower():
        case ".svg":
            return _describe_svg(render(dot_of(drawn, theme), "svg").decode(), drawn).encode()
        case ".png" | ".pdf" as suffix:
            return render(dot_of(drawn, theme), cast("PictureFormat", suffix[1:]))
        case ".dot":
            return dot_of(drawn, theme).encode()
        case ".txt":
            return text_of(drawn).encode()
        case ".mmd":
            return mermaid_of(drawn, theme).encode()
        case _:
            also = "" if is_machine(target) else " (or .scxml, .xstate.json for a state machine)"
            raise ConfigError(
                "path: expected a picture, which ends in .svg, .png, .pdf, .mmd, .dot or "
                f".txt{also}, found {str(target)!r}. Fix: choose one of these suffixes."
            )


def _describe_svg(svg: str, drawn: Picture) -> str:
    """Return an SVG whose hover titles and description are words, for mice and screen readers."""
    titles = {"graphloop": drawn.title, "cluster_legend": "legend", **_title_by_id(drawn)}

    def in_words(found: re.Match[str]) -> str:
        # An edge has the side of its node in its title: `n0:w->last`.
        key = _SIDE.sub("", unescape(found[1]))
        return f"<title>{escape(visible(titles.get(key, key.removeprefix('kind_'))))}</title>"

    about = escape(visible(" ".join(_graph_in_words(drawn))))
    head = f'<svg role="img" aria-label="{escape(visible(drawn.title))}"'
    described = _TITLE.sub(in_words, svg.replace("<svg", head, 1))
    return _FIRST_GROUP.sub(lambda found: f"<desc>{about}</desc>\n{found[0]}", described, count=1)


def _title_by_id(drawn: Picture) -> dict[str, str]:
    """Map the id of each shape, note and edge of a picture to its words."""
    names = {shape.id: shape.words[0] for shape in drawn.shapes}
    titles = {f"{drawn.prefix}first": "start", f"cluster_{drawn.prefix}box": drawn.title}
    titles[f"{drawn.prefix}first->{drawn.start}"] = f"start → {names[drawn.start]}"
    for shape in drawn.shapes:
        kind = "" if shape.kind is None else f" ({shape.kind})"
        titles[shape.id] = " ".join((f"{shape.words[0]}{kind}", *shape.words[1:]))
        titles[f"note_{shape.id}"] = titles[f"{shape.id}->note_{shape.id}"] = (
            f"note on {shape.words[0]}"
        )
    for stroke in drawn.strokes:
        words = ", ".join(map(str, stroke.words))
        titles[f"{stroke.source}->{stroke.target}"] = (
            f"{names[stroke.source]}: {words} → {names[stroke.target]}"
        )
    for inner in drawn.inner:
        titles |= _title_by_id(inner.picture)
        titles[f"{inner.owner}->{inner.picture.prefix}first"] = (
            f"{names[inner.owner]} runs {inner.picture.title}"
        )
    return titles


def _graph_in_words(drawn: Picture) -> Iterator[str]:
    """Yield the graph in words: its start, and for each node where its outcomes lead."""
    names = {shape.id: shape.words[0] for shape in drawn.shapes}
    yield f"Graph {drawn.title}. It starts at {names[drawn.start]}."
    for shape in drawn.shapes:
        rows = [
            f"{', '.join(map(str, stroke.words))} → {names[stroke.target]}"
            for stroke in drawn.strokes
            if stroke.source == shape.id
        ]
        if rows:
            yield f"{shape.words[0]}: {'; '.join(rows)}."


def _run_program(program: str, dot_text: str, format: PictureFormat) -> bytes:  # noqa: A002 - as `render`
    name = Path(program).stem
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and no argument comes from the graph
            [program, f"-T{format}"],
            input=dot_text.encode(),
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.CalledProcessError as failure:
        said = cast("bytes", failure.stderr).decode(errors="replace").strip()
        raise ConfigError(
            f"{name} could not draw {format}: {said}. Fix: choose another format."
        ) from failure
    except subprocess.TimeoutExpired as expired:
        raise ConfigError(
            f"{format}: expected {name} to draw within {_TIMEOUT_S:.0f} s, found it still at work. "
            f"Fix: draw less (`--level phase`), or save as .mmd or .txt, which need no layout."
        ) from expired
    return done.stdout


def _make_pdf(svg: bytes, png: bytes) -> bytes:
    """Return a PDF made from the SVG and the PNG that `graphviz-pure` drew."""
    try:
        pdf_of = views.pdf_of
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "pdf: expected Graphviz's `dot` or the extra `pdf`, found neither. "
            "Fix: pip install 'graphloop[pdf]', or save as .svg or .png."
        ) from missing
    return pdf_of(svg, png)


def _program_path() -> str:
    """Return a search path with this interpreter's scripts first, then the `PATH` variable.

    So programs of a virtual environment are found even if it is not activated.
    """
    scripts = (
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        os.environ.get("PATH", os.defpath),
    )
    return os.pathsep.join(scripts)
