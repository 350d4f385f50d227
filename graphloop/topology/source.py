"""The bytes of a topology's file as text: nothing that is too long, and nothing but UTF-8."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from pathlib import Path
from typing import Final

from ..errors import ConfigError
from .diagnostics import Diagnostics
from .tree import Mark

__all__ = ["SIZE_MAX", "SUFFIXES", "bytes_of", "text_of", "text_or_path"]

SIZE_MAX: Final = 1_000_000
"""How many bytes a file may have."""

SUFFIXES: Final = (".yaml", ".yml", ".json")

NO_PATH: Final = ("\n", "\r", "\0")
"""What no path has: line breaks, which a text has, and what is refused in both."""

_WIDE: Final = (BOM_UTF32_LE, BOM_UTF32_BE, BOM_UTF16_LE, BOM_UTF16_BE)
_TOP: Final = Mark(1, 1)


def bytes_of(path: Path, diagnostics: Diagnostics) -> bytes:
    """Return what stands in a file, of which no more is read than may stand there.

    Raises:
        ParseError: it is no file, cannot be read, or is too long.
    """
    try:
        if not path.is_file():
            found = "is a folder, not a file." if path.is_dir() else "there is no such file."
            raise diagnostics.error(_TOP, found, "name a file that ends in .yaml, .yml or .json.")
        with path.open("rb") as opened:
            return opened.read(SIZE_MAX + 1)
    except OSError as error:
        found = f"cannot be read: {error.strerror}."
        fix = "look at its name, and at the file's permissions."
        raise diagnostics.error(_TOP, found, fix) from error


def text_of(given: bytes | str, diagnostics: Diagnostics) -> str:
    """Return the text; a byte order mark of UTF-8 is left out.

    Raises:
        ParseError: it is too long, empty, not UTF-8, or has characters that no text has.
    """
    try:
        size = len(given if isinstance(given, bytes) else given.encode())
    except UnicodeEncodeError as error:
        found = "half of a surrogate pair stands here, which is no character."
        raise diagnostics.error(
            _mark_of(str(given), error.start), found, "write the character itself."
        ) from error
    if size > SIZE_MAX:
        raise diagnostics.error(
            _TOP,
            f"at most {SIZE_MAX:,} bytes are read, found more.",
            "a topology is a table, not data: move parts into files of their own (`include`).",
        )
    text = given if isinstance(given, str) else _decoded(given, diagnostics)
    text = text.removeprefix("\ufeff")
    nul = text.find("\0")
    if nul >= 0:
        found = "a NUL character stands here."
        raise diagnostics.error(_mark_of(text, nul), found, "remove it; is it a text file?")
    if not text.strip():
        raise diagnostics.error(
            _TOP, "a topology was expected, found nothing.", "begin with `graphloop: 1`."
        )
    return text


def _decoded(given: bytes, diagnostics: Diagnostics) -> str:
    if not given.startswith(BOM_UTF8) and given.startswith(_WIDE):
        found = "UTF-8 was expected, found UTF-16 or UTF-32."
        raise diagnostics.error(_TOP, found, "save the file as UTF-8.")
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        before = given[: error.start].decode()
        found = f"UTF-8 was expected, found the byte 0x{given[error.start]:02x}."
        raise diagnostics.error(
            _mark_of(before, len(before)), found, "save the file as UTF-8."
        ) from error


def _mark_of(text: str, at: int) -> Mark:
    before = text[:at]
    return Mark(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)


def text_or_path(source: str | Path) -> str | Path:
    """Return the text that is given, or the path: a text has line breaks, or begins with a brace.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(source, Path):
        return source
    if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not checked.
        raise ConfigError(
            f"a path or a text is expected; found {type(source).__name__}. Fix: decode bytes "
            "(`.decode()`), and read open files (`.read()`)"
        )
    text = any(end in source for end in NO_PATH) or source.lstrip("\ufeff \t").startswith("{")
    return source if text else Path(source)
