"""Definition: a tool as an MCP server describes it, and files of pinned definitions.

The fingerprint of a definition covers all that models and graphloop read of the tool. A server that
changes it later gets no call of it: the new text may ask the model for what no person has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec import Struct, field

from ..errors import ConfigError

__all__ = ["Definition", "changes", "pins_of", "pins_text", "read_pins", "write_pins"]

VERSION: Final = 1


class Definition(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool as its MCP server describes it.

    Attributes:
        name: the server's own name of the tool.
        description: the text for models.
        input_schema: the JSON Schema of the arguments.
        output_schema: the JSON Schema of structured results; None without one.
        read_only: the server says that the tool changes nothing.
        idempotent: the server says that a repeated call changes nothing more.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, object] = field(default_factory=dict[str, object])
    output_schema: Mapping[str, object] | None = None
    read_only: bool = False
    idempotent: bool = False

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of all that is read of the tool, in hexadecimal digits."""
        said = [self.read_only, self.idempotent]
        shown = _whole_numbers(
            [self.name, self.description, self.input_schema, self.output_schema, *said]
        )
        return sha256(msgspec.json.encode(shown, order="deterministic")).hexdigest()

    def difference(self, other: Definition) -> str:
        """Return the fields in which the fingerprint of `other` differs, as a text."""
        fields = ("description", "input_schema", "output_schema", "read_only", "idempotent")
        return ", ".join(name for name in fields if getattr(self, name) != getattr(other, name))


class _Pins(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file of pinned definitions."""

    tools: tuple[Definition, ...]
    graphloop_mcp: int = VERSION


def _whole_numbers(value: object) -> object:
    """Return JSON data with 1 in place of 1.0: in JSON, and in a topology file, they are equal."""
    if isinstance(value, Mapping):
        # isinstance does not know the types of what is in it.
        return {
            key: _whole_numbers(item) for key, item in cast("Mapping[str, object]", value).items()
        }
    if isinstance(value, list):
        return [_whole_numbers(item) for item in cast("list[object]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def changes(before: Iterable[Definition], after: Iterable[Definition]) -> str:
    """Return what two lists of tools differ in; empty if they are the same."""
    old, new = ({tool.name: tool for tool in tools} for tools in (before, after))
    found = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [
            f"{name} ({tool.difference(new[name])})"
            for name, tool in old.items()
            if name in new and new[name].fingerprint != tool.fingerprint
        ],
    }
    return "; ".join(f"{what} {', '.join(names)}" for what, names in found.items() if names)


def pins_text(tools: Sequence[Definition]) -> str:
    """Return definitions as JSON, one field a line, so that a review shows each change."""
    return msgspec.json.format(msgspec.json.encode(_Pins(tuple(tools))), indent=2).decode()


def write_pins(tools: Sequence[Definition], path: str | Path) -> None:
    """Write definitions to a file for `read_pins`."""
    Path(path).write_text(f"{pins_text(tools)}\n", encoding="utf-8")


def read_pins(path: str | Path) -> tuple[Definition, ...]:
    """Return the definitions of a file that `write_pins` wrote.

    Raises:
        ConfigError: the file cannot be read, or has another form.
    """
    fix = "Fix: write it again: graphloop mcp pin SERVER -o FILE."
    try:
        return pins_of(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"pinned tools {str(path)!r}: expected a file of MCP definitions, found: {error}. {fix}"
        ) from error


def pins_of(content: bytes | Sequence[object]) -> tuple[Definition, ...]:
    """Return the definitions in the content of a file of pins, or in a list of plain data.

    Raises:
        ValueError: the content has another form; the message says where.
    """
    try:
        if not isinstance(content, bytes):
            return msgspec.convert(content, tuple[Definition, ...])
        pins = msgspec.json.decode(content, type=_Pins)
    except RecursionError as error:
        raise ValueError("values that stand too deep within one another") from error
    if pins.graphloop_mcp != VERSION:
        raise ValueError(f"`graphloop_mcp` is {pins.graphloop_mcp}, and not {VERSION}")
    return pins.tools
