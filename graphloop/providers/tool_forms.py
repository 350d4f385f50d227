"""Tool forms: what a wire format takes of a tool, and what it refuses before a request is sent.

A tool that a model's server runs has a definition in the words of one provider. A function may have
fields that only one provider knows. Another provider would refuse them, or would ignore them
without an error. So each wire format says what it takes, and refuses every other tool by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from ..errors import ConfigError, nearest
from ..values import ToolSpec
from .wire_json import JsonObject, is_object, json_text, object_in, object_text

__all__ = ["ToolForms", "run_by_caller"]


def _takes_none(tool: ToolSpec, definition: JsonObject) -> bool:  # noqa: ARG001 - takes no definition
    return False


def _has_no_fault(definition: JsonObject) -> str:  # noqa: ARG001 - takes no definition
    return ""


def run_by_caller(definition: JsonObject) -> str:
    """Return the fault of a definition whose tool the server leaves to its caller to run."""
    return (
        "expected a tool that the model's server runs itself, found one that it leaves to its "
        f"caller: {json_text(definition):.200}. Fix: give a function that does the same."
    )


@final
@dataclass(frozen=True, slots=True)
class ToolForms:
    """The tools of model servers, and the fields of functions, that a wire format takes.

    Args:
        wire: the name of the wire format, as in `Wire.name`.
        title: the wire format's name in errors.
        expected: describes the definitions that the wire format takes; empty if it takes none.
        takes: whether the wire format takes this definition of a tool.
        fault: describes why no run could go on with a definition that the wire format takes, in
            the words of an error; empty if a run can.
        fields: the types of the further fields that a function's definition may have.
    """

    wire: str
    title: str
    expected: str = ""
    takes: Callable[[ToolSpec, JsonObject], bool] = _takes_none
    fault: Callable[[JsonObject], str] = _has_no_fault
    fields: Mapping[str, type[object]] = field(default_factory=dict[str, type[object]])

    def definition(self, tool: ToolSpec) -> str:
        """Return the definition of a tool that the model's server runs, as it is sent.

        Raises:
            ConfigError: the tool belongs to another wire format, this one does not take it, or
                the server does not run it.
        """
        place = f"tool {tool.name!r}"
        if not self.expected:
            raise ConfigError(
                f"{place}: expected a tool that runs here, found one that the model's server runs "
                f"itself; the {self.title} wire has none. Fix: offer it to a model on another "
                "wire, or give a function that does the same."
            )
        if tool.wire not in {"", self.wire}:
            raise ConfigError(
                f"{place}: expected a tool of the wire {self.wire!r}, found one of the wire "
                f"{tool.wire!r}. Fix: offer it to a model on that wire, or give a function that "
                "does the same."
            )
        text = object_text(tool.definition, place=f"{place}: definition")
        definition = object_in(text, place=place)
        self._refuse_faulty(definition, place)
        if not self.takes(tool, definition):
            raise ConfigError(
                f"{place}: expected {self.expected}, as the {self.title} wire takes it, found "
                f"{text:.200}. Fix: copy it from the provider's page, or offer the tool to a model "
                "on its own wire."
            )
        return text

    def of_options(self, definitions: Iterable[object]) -> list[str]:
        """Return the definitions of the tools in the provider options, as they are sent.

        Raises:
            ConfigError: the server does not run such a tool.
        """
        texts: list[str] = []
        for definition in definitions:
            self._refuse_faulty(definition, "Settings.options: tools")
            texts.append(json_text(definition))
        return texts

    def _refuse_faulty(self, definition: object, place: str) -> None:
        if is_object(definition) and (fault := self.fault(definition)):
            raise ConfigError(f"{place}: {fault}")

    def check(self, tool: ToolSpec) -> None:
        """Refuse a tool that no request of this wire format can carry.

        Raises:
            ConfigError: as `definition` and `options`.
        """
        if tool.kind == "provider":
            self.definition(tool)
        else:
            self.options(tool)

    def options(self, tool: ToolSpec) -> JsonObject:
        """Return the further fields of a function's definition (`provider_options`).

        Raises:
            ConfigError: the wire format does not know a field, or the field's value is wrong.
        """
        if not tool.definition:
            return {}
        place = f"tool {tool.name!r}: provider_options"
        options = object_in(tool.definition, place=place)
        for name, value in options.items():
            kind = self.fields.get(name)
            if kind is None:
                known = ", ".join(self.fields) or "none"
                raise ConfigError(
                    f"{place}: expected fields that the {self.title} wire knows ({known}), found "
                    f"{name!r}.{nearest(name, self.fields)} Fix: leave it out for this model."
                )
            if not isinstance(value, kind):
                raise ConfigError(
                    f"{place}: {name}: expected {_KINDS[kind]}, found {value!r:.80}. Fix: give it."
                )
        return options


_KINDS: Final[Mapping[type[object], str]] = {
    bool: "true or false",
    dict: "an object",
    list: "an array",
}
