"""Forms of names: what a file may only say because it was registered, or declared in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..errors import ConfigError
from .forms import Data, NamedTool, Reading, Schema, Text, Unwritable, Writing
from .registration import FROM_OUTSIDE, Category
from .tree import Value

__all__ = ["AgentForm", "CalledForm", "FunctionForm", "PredicateForm", "ToolForm"]

NAME: Schema = {"type": "string", "minLength": 1}


@final
@dataclass(frozen=True)
class PredicateForm:
    """The name of a registered predicate."""

    def read(self, value: Value, to: Reading) -> str:
        """Return the name."""
        return _registered("predicate", value, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        return _known("predicate", value, to)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return NAME


@final
@dataclass(frozen=True)
class FunctionForm:
    """The name of a registered function."""

    def read(self, value: Value, to: Reading) -> str:
        """Return the name."""
        return _registered("function", value, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        return _known("function", value, to)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return NAME


@final
@dataclass(frozen=True)
class ToolForm:
    """The name of a registered tool, or of an agent of the file."""

    def read(self, value: Value, to: Reading) -> str:
        """Return the name."""
        name = Text(filled=True).read(value, to)
        if name in to.agents:
            return name
        return _registered("tool", value, to)

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        return Text(filled=True).write(value, to)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return NAME


@final
@dataclass(frozen=True)
class CalledForm:
    """The name of a tool that the models of the run itself call, wherever that comes from.

    Args:
        option: what names it.
        filled: whether it has to be some name.
    """

    option: str
    filled: bool = True

    def read(self, value: Value, to: Reading) -> str:
        """Return the name, which is looked up once all tools are known."""
        name = Text(filled=self.filled).read(value, to)
        if name:
            to.ruled.append(NamedTool(name, value.mark, self.option))
        return name

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        return Text(filled=self.filled).write(value, to)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return Text(filled=self.filled).schema


@final
@dataclass(frozen=True)
class AgentForm:
    """The name of an agent that the file declares."""

    def read(self, value: Value, to: Reading) -> str:
        """Return the name."""
        name = Text(filled=True).read(value, to)
        if name not in to.agents:
            hint = to.complaints.nearest(name, to.agents)
            found = f"no agent of this file is named {name!r}.{hint}"
            fix = (
                f"declare it under `agents`: `{name}: {{include: …}}`, or "
                f"`{name}: {{given: true}}` "
                "if it is handed to each run."
            )
            raise to.complaints.misread(value.mark, found, fix)
        return name

    def write(self, value: object, to: Writing) -> Data:
        """Return the name."""
        return Text(filled=True).write(value, to)

    @property
    def schema(self) -> Schema:
        """The JSON Schema of a name."""
        return NAME


def _registered(category: Category, value: Value, to: Reading) -> str:
    name = Text(filled=True).read(value, to)
    try:
        meant = to.names.find(category, name)
    except ConfigError as error:
        fix = "mend the package, or remove it."
        raise to.complaints.misread(value.mark, f"{error}.", fix) from error
    if meant is None:
        hint = to.complaints.nearest(name, to.names.known(category))
        known = ", ".join(to.names.known(category))
        found = f"no {category} is registered as {name!r}.{hint} Registered are {known or 'none'}."
        fix = (
            f"register it in Python with @registry.{category}, before the file is loaded "
            f"({FROM_OUTSIDE})."
        )
        raise to.complaints.misread(value.mark, found, fix)
    return name


def _known(category: Category, value: object, to: Writing) -> Data:
    name = str(value)
    if name not in to.names.known(category):
        raise Unwritable(
            f"no {category} is registered as {name!r}, so no file could name it: register it with "
            f"@registry.{category}"
        )
    return name
