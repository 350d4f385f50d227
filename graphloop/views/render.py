"""render: DOT text as a picture, and a graph as a file.

A Graphviz `dot` on the path does the work where there is one; else `graphviz-pure`, which pip
installs as a program of its own. Neither ever sees anything but the text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, cast

# The package carries no types; `_by_dot` states the one signature used of it.
import graphviz  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from ..errors import ConfigError
from ..graph import Graph
from .dot import dot_of
from .marks import Marks
from .mermaid import mermaid_of
from .pdf import pdf_of
from .picture import Picture, picture
from .state_machines import scxml, xstate
from .text import text_of
from .theme import LIGHT, Theme

__all__ = ["PictureFormat", "is_machine", "machine", "render", "save", "save_picture", "written"]

S = TypeVar("S")

PictureFormat: TypeAlias = Literal["svg", "png", "pdf"]

XSTATE: Final = ".xstate.json"
"""What a file's name ends in that is an XState machine."""

_PICTURES: Final[frozenset[str]] = frozenset({"svg", "png", "pdf"})
_TEXTS: Final[frozenset[str]] = frozenset({".mmd", ".dot", ".txt", ".svg"})
_PURE: Final = "graphviz-pure"
_PLAIN: Final = Marks()
_TIMEOUT_S: Final = 20.0


def render(dot_text: str, format: PictureFormat) -> bytes:  # noqa: A002 - the word users know
    """Return `dot_text` drawn as a picture.

    Raises:
        ConfigError: no program that draws is installed, or it refuses the text (the message
            quotes it).
    """
    if format not in _PICTURES:
        raise ConfigError(
            f"expected a picture format of {_listed(_PICTURES)}, found {format!r}: choose one."
        )
    if shutil.which("dot") is not None:
        return _by_dot(dot_text, format)
    return _by_pure(dot_text, format)


def save(graph: Graph[S], path: str | os.PathLike[str], marks: Marks = _PLAIN) -> None:
    """Write the diagram of `graph` to `path`, in the format its suffix names, with these marks.

    The suffixes are svg, png, pdf, mmd (Mermaid), dot, txt, scxml and xstate.json; a state machine
    has no marks. A file already there is replaced.

    Raises:
        ConfigError: the suffix is none of these, the folder does not exist, the path is a folder
            itself, or the picture cannot be drawn (see `render`).
    """
    target = Path(path)
    if is_machine(target):
        _placed(target).write_bytes(machine(graph, target).encode())
    else:
        save_picture(picture(graph, marks), target)


def is_machine(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name is that of a state machine: it has no marks, levels or colours."""
    target = Path(path)
    return target.name.lower().endswith(XSTATE) or target.suffix.lower() == ".scxml"


def machine(graph: Graph[S], path: str | os.PathLike[str]) -> str:
    """Return `graph` as the state machine that a file's name asks for: of XState, else SCXML."""
    return xstate(graph) if Path(path).name.lower().endswith(XSTATE) else scxml(graph)


def save_picture(drawn: Picture, path: str | os.PathLike[str], theme: Theme = LIGHT) -> None:
    """Write a picture to `path`, as `save` does; it is no state machine.

    Raises:
        ConfigError: as `save`.
    """
    target = _placed(Path(path))
    target.write_bytes(_content(drawn, target, theme))


def written(drawn: Picture, suffix: str, theme: Theme = LIGHT) -> str:
    """Return a picture in one of the notations that are text: .dot, .txt, .svg, else Mermaid.

    Raises:
        ConfigError: there is an SVG to be drawn, and that cannot be (see `render`).
    """
    match suffix:
        case ".svg":
            return render(dot_of(drawn, theme), "svg").decode()
        case ".dot":
            return dot_of(drawn, theme)
        case ".txt":
            return text_of(drawn)
        case _:
            return mermaid_of(drawn, theme)


def _placed(target: Path) -> Path:
    if target.is_dir():
        raise ConfigError(
            f"expected the name of a file, found the folder {str(target)!r}: "
            f"name a file in it, e.g. {str(target / 'graph.svg')!r}."
        )
    if not target.parent.is_dir():
        raise ConfigError(
            f"expected a folder at {str(target.parent)!r}, found none: create it first."
        )
    return target


def _content(drawn: Picture, target: Path, theme: Theme) -> bytes:
    match target.suffix.lower():
        case ".png":
            return render(dot_of(drawn, theme), "png")
        case ".pdf":
            return render(dot_of(drawn, theme), "pdf")
        case suffix if suffix in _TEXTS:
            return written(drawn, suffix, theme).encode()
        case _ if is_machine(target):
            raise ConfigError(
                f"a state machine holds a graph alone, and nothing of what is drawn here: choose "
                f".svg, .png, .pdf, .mmd, .dot or .txt in place of {str(target)!r}."
            )
        case _:
            raise ConfigError(
                f"expected a file name that ends in .svg, .png, .pdf, .mmd, .dot, .txt, .scxml or "
                f"{XSTATE}, found {str(target)!r}: choose one of these suffixes."
            )


def _by_dot(dot_text: str, picture: PictureFormat) -> bytes:
    try:
        # Untyped, but documented: bytes in, bytes out.
        return bytes(graphviz.pipe("dot", picture, dot_text.encode(), quiet=True))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except subprocess.CalledProcessError as failure:
        raise _refused("dot", picture, cast("bytes", failure.stderr)) from failure


def _by_pure(dot_text: str, picture: PictureFormat) -> bytes:
    """Run graphviz-pure, whose name the graphviz package cannot be told."""
    program = shutil.which(_PURE, path=_pure_path())
    if program is None:
        raise ConfigError(
            f"expected a program that draws, found neither `dot` nor `{_PURE}`: run "
            f"`pip install {_PURE}` (or install Graphviz), or save as .mmd or .dot instead."
        )
    if picture == "pdf":
        # graphviz-pure has no PDF of its own.
        return pdf_of(_by_pure(dot_text, "svg"), _by_pure(dot_text, "png"))
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and no argument comes from the graph
            [program, f"-T{picture}"],
            input=dot_text.encode(),
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.CalledProcessError as failure:
        raise _refused(_PURE, picture, cast("bytes", failure.stderr)) from failure
    except subprocess.TimeoutExpired as expired:
        raise ConfigError(
            f"expected {_PURE} to draw within {_TIMEOUT_S:.0f} s, but it did not: draw the graph "
            f"from further away (`--level phase`), save as .mmd or .txt, which need no layout, or "
            f"save as .dot and draw that elsewhere."
        ) from expired
    return done.stdout


def _pure_path() -> str:
    """Return where to look: beside this interpreter first, for a venv need not be activated."""
    scripts = (
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        os.environ.get("PATH", os.defpath),
    )
    return os.pathsep.join(scripts)


def _refused(program: str, picture: str, stderr: bytes) -> ConfigError:
    said = stderr.decode(errors="replace").strip()
    return ConfigError(
        f"expected {program} to draw {picture}, but it refused: {said!r}. Mend the DOT text, or "
        f"choose another format."
    )


def _listed(words: frozenset[str]) -> str:
    return ", ".join(sorted(words))
