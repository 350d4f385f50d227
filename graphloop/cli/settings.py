"""Settings: the options of a run's model calls, and files of environment variables."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from ..agent import RunOptions
from ..errors import ConfigError
from .options import Text

__all__ = [
    "EnvFile",
    "Headers",
    "MaxTokens",
    "OwnOptions",
    "Temperature",
    "headers_of",
    "load_env_file",
    "run_options",
]

Temperature: TypeAlias = Annotated[
    float | None, typer.Option(metavar="T", help="The sampling temperature of the model.")
]
MaxTokens: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="How many tokens a reply has at most.")
]
OwnOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="A field of the request body, JSON or a word: reasoning_effort=low; repeatable.",
    ),
]
Headers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An HTTP header of each model request, which no store keeps; repeatable.",
    ),
]
EnvFile: TypeAlias = Annotated[
    Text,
    typer.Option(metavar="FILE", help="Read NAME=VALUE lines; set variables keep their values."),
]

EXPORT: Final = "export"
NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of an HTTP header (RFC 9110, section 5.6.2)."""


def run_options(
    instructions: str | None,
    temperature: float | None,
    max_tokens: int | None,
    own: Iterable[str] | None,
) -> RunOptions:
    """Return the run options that the command line gives; the others keep the target's values.

    Raises:
        ConfigError: a value of `--option` is not `NAME=VALUE`, or a name is given twice.
    """
    options: RunOptions = {}
    if instructions is not None:
        options["instructions"] = instructions
    if temperature is not None:
        options["temperature"] = temperature
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    if own:
        options["provider_options"] = _read_fields(own)
    return options


def _read_fields(texts: Iterable[str]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ConfigError(
                f"--option: expected NAME=VALUE, found {text!r}. Fix: write for example "
                "--option reasoning_effort=low"
            )
        if name in fields:
            raise ConfigError(
                f"--option: expected {name!r} once, found it twice. Fix: name it once."
            )
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value  # A word without quotes is text, because shells remove quotes.
    return fields


def headers_of(texts: Iterable[str] | None) -> dict[str, str] | None:
    """Return the headers that the command line gives; None if it gives none.

    An error never quotes a text, because the values of headers are often keys.

    Raises:
        ConfigError: a text is not `NAME=VALUE`, or a name is given twice.
    """
    headers: dict[str, str] = {}
    for number, text in enumerate(texts or (), 1):
        name, equals, value = text.partition("=")
        if not equals or not NAME.fullmatch(name):
            raise ConfigError(
                f"--header (number {number}): expected NAME=VALUE, found another form. Fix: write "
                "for example --header x-team=desk"
            )
        if name.lower() in map(str.lower, headers):
            raise ConfigError(
                f"--header: expected {name!r} once, found it twice. Fix: name it once."
            )
        headers[name] = value
    return headers or None


def load_env_file(path: str | None) -> None:
    """Set the environment variables of a file, except those that are set already.

    An error never quotes the file, because its values are often keys.

    Raises:
        ConfigError: the file cannot be read, or a line is not `NAME=VALUE`.
    """
    if path is None:
        return
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--env-file {path}: expected a readable text file of NAME=VALUE lines, found: {error}"
        ) from error
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # An open quote.
            words = [""]
        words = words[1:] if words[:1] == [EXPORT] else words
        if not words:
            continue
        name, equals, value = words[0].partition("=")
        if len(words) > 1 or not equals or not name.isidentifier():
            raise ConfigError(
                f"--env-file {path}:{number}: expected NAME=VALUE, found another form. Fix: quote "
                "a value that has spaces."
            )
        os.environ.setdefault(name, value)
