"""Output: write reports and pictures to a file or to stdout.

The option value `-` is stdout in the default format, and `-.txt` is stdout in the format of `.txt`.
If a picture goes to stdout, the report goes to stderr, so that stdout can be redirected to a file.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from rich.console import Console
from rich.text import Text

from ..errors import ConfigError
from ..views import LIGHT, Picture, Theme, is_machine, rendered, save_picture
from .errors import tell_error
from .text import safe_json, wrapped

__all__ = [
    "MACHINES",
    "PICTURES",
    "Destination",
    "findings_file",
    "print_file",
    "print_report",
    "refuse_mixed",
]

STYLES: Final[Mapping[str, str]] = {
    r"graph .*: (no problem found|no difference|not weaker)$": "bold green",
    r"graph .*: .*(problems? found|weaker)$": "bold red",
    r" *(error|weaker|- )": "red",
    r" *(warning|unknown|not bounded|~ )": "yellow",
    r" *(proven|stronger|\+ )": "green",
    r" *(fix|witness):": "cyan",
    r" *(written|defined|reason|suppressed)": "dim",
}
"""The colour of a report's line on a terminal, by its beginning; the first match counts."""

COLUMNS: Final = 80
"""The most columns of a picture that is text."""

PICTURES: Final = (".mmd", ".dot", ".txt", ".svg")
"""The file formats of pictures that are text; the first is the default on stdout."""
MACHINES: Final = (".scxml", ".xstate.json")
"""The file formats for a state machine."""


@final
@dataclass(frozen=True)
class Destination:
    """The value of an output option, which is a file or stdout.

    Attributes:
        option: the option's name.
        path: the option's value.
        suffix: the format on stdout, such as `.txt`; None for a file.
    """

    option: str
    path: str
    suffix: str | None

    @classmethod
    def of(cls, option: str, path: str, suffixes: Sequence[str]) -> Destination:
        """Parse the value of an output option; `-` is stdout in the first format of `suffixes`."""
        is_stdout = path == "-" or (path.startswith("-.") and "/" not in path)
        suffix = (path[1:].lower() or suffixes[0]) if is_stdout else None
        if suffix is not None and suffix not in suffixes:
            choice = ", ".join(f"-{known}" for known in suffixes)
            raise ConfigError(
                f"{option}: expected a file, or one of -, {choice} for stdout, found {path!r}. "
                f"Fix: choose one of these, or write ./{path} for a file of that name."
            )
        return cls(option, path, suffix)

    def write(self, text: str) -> bool:
        """Write text to the file or to stdout; return True for a file."""
        if self.suffix is not None:
            print_file(text, self.suffix)
            return False
        try:
            Path(self.path).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        except OSError as error:
            raise self._cannot_write(error) from error
        return True

    def draw(self, picture: Picture, theme: Theme = LIGHT) -> bool:
        """Draw a picture to the file or to stdout; return True for a file."""
        if self.suffix is not None:
            columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else COLUMNS
            return self.write(rendered(picture, self.suffix, theme, min(columns, COLUMNS)))
        try:
            save_picture(picture, self.path, theme)
        except OSError as error:
            raise self._cannot_write(error) from error
        return True

    def _cannot_write(self, error: OSError) -> ConfigError:
        return ConfigError(f"{self.option}: {self.path!r} cannot be written: {error}")


def findings_file(path: str | None) -> Destination | None:
    """Parse the value of `--draw`; refuse state machine formats, which cannot show findings."""
    if path is not None and is_machine(path):
        raise ConfigError(
            f"--draw {path}: expected a picture, found a state machine, which shows no findings. "
            "Fix: choose .svg, .png, .pdf, .mmd, .dot or .txt."
        )
    return None if path is None else Destination.of("--draw", path, PICTURES)


def refuse_mixed(*files: Destination | None, as_json: bool) -> None:
    """Raise an error if more than one option prints to stdout."""
    names = ["--json"] if as_json else []
    names += [file.option for file in files if file is not None and file.suffix is not None]
    if len(names) > 1:
        raise ConfigError(
            f"{' and '.join(names)}: expected one of them on stdout, found both. Fix: name a file "
            "for the other, or leave it out."
        )


def print_file(text: str, suffix: str = "") -> None:
    """Print a file's content to stdout, in UTF-8 unless it is a text picture or for a terminal.

    `?` stands for each character that the encoding of stdout lacks.
    """
    text, out = text.rstrip("\n") + "\n", sys.stdout
    if suffix != ".txt" and hasattr(out, "buffer") and not out.isatty():
        out.flush()
        out.buffer.write(text.encode(errors="replace"))
    else:
        out.write(text)


def print_report(text: str, json: str, *, as_json: bool, beside: Destination | None) -> None:
    """Print a report, or its JSON, to stdout; to stderr if the picture `beside` is on stdout."""
    if as_json:
        print_file(safe_json(json))
    elif beside is not None and beside.suffix is not None:
        tell_error(text)
    else:
        _print_lines(text.split("\n"))


def _print_lines(lines: Iterable[str]) -> None:
    """Print the lines of a report to stdout; on a terminal, in colour and wrapped between words."""
    if not sys.stdout.isatty():
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for line in lines:
        console.print(Text(wrapped(line, sys.stdout), _style_of(line)))


def _style_of(line: str) -> str:
    """Return the colour of a report's line; the words alone say the same."""
    return next((style for pattern, style in STYLES.items() if re.match(pattern, line)), "")
