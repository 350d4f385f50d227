"""The final answer of an agent with an `output_type`: how it is asked for, and how it is read.

If the server takes the form, the answer is the text of the last turn. Otherwise it is the arguments
of a call of `final_answer`, a tool that ends the run. In both cases the `output` check finds
mistakes, and sends the answer back a limited number of times.

The schema is always that of an object: tools and servers' JSON modes demand one. A type that is no
object becomes the property `value`. Answers are read as strict JSON.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, cast, final

import pydantic
from pydantic import PydanticUserError, ValidationError
from pydantic_core import ErrorDetails, from_json
from typing_extensions import TypedDict

from ..conversation import latest_answer, said_after_calls
from ..errors import ConfigError, OutputInvalid, RunFailed
from ..parts import ObjectView
from ..providers import Service, service_of
from ..run import Run
from ..tools import (
    ArgumentsRejected,
    JsonSchema,
    Parameters,
    Tool,
    arguments_parser,
    error_text,
    join_issues,
    not_json,
    parameters_of,
    rejection,
    schema_of,
    schema_text,
    shorten,
)
from ..values import OutputSpec

__all__ = ["FINAL_ANSWER", "NOT_TAKEN", "OUTPUT", "FinalAnswer", "Output", "failure_of"]

FINAL_ANSWER: Final = "final_answer"
OUTPUT: Final = "output"
"""The check of the final answer, among the checks of `Verify`."""
NOT_TAKEN: Final = "Not taken."


@final
class FinalAnswer:
    """How one agent gives its final answer.

    Args:
        kind: the type of the answer, as `Output` takes it.
        mode: whether the server or a tool takes the form.
        labels: the labels of the models that may be asked, for `"auto"`.
        own_server: whether the model is asked at a URL of the caller: its abilities are unknown.

    Raises:
        ConfigError: no schema can be made of the type, or the server does not take the schema.
    """

    def __init__(
        self,
        kind: object,
        mode: Literal["auto", "native", "tool"],
        labels: Collection[str],
        *,
        own_server: bool = False,
    ) -> None:
        services = [service_of(label) for label in labels]
        able = not own_server and all(service and service.keeps_output for service in services)
        self._native = mode == "native" or (mode == "auto" and able)
        self._output = Output(kind, name="" if self._native else FINAL_ANSWER)
        if self._native and not own_server:
            self._fit_servers(kind, mode, [service for service in services if service])

    @property
    def spec(self) -> OutputSpec | None:
        """The form for the server; None where a tool takes the answer."""
        return self._output.spec if self._native else None

    @property
    def tool(self) -> Tool[..., object] | None:
        """The tool that takes the answer; None where the server takes the form."""
        if self._native:
            return None
        spec = self._output.spec
        description = "Give the final answer: call this once, when all the work is done."
        return Tool(
            name=FINAL_ANSWER,
            description=f"{description} {spec.description}".strip(),
            # The `output` check, which has a limit, finds all mistakes.
            parameters=Parameters(spec.schema, str),
            execute=self._take,
            effect="pure",
            ends_run=True,
        )

    def view(self) -> ObjectView:
        """Return the view of the answer while the model writes it."""
        return ObjectView("" if self._native else FINAL_ANSWER, self._output.unwrap)

    def answer(self, run: Run[Any]) -> object:
        """Return the answer of a run.

        Raises:
            OutputInvalid: there is none, or it does not fit; the message is for the model.
        """
        arguments = None if self._native else _arguments(run)
        if arguments is not None:
            return self._output.parse_arguments(arguments)
        if self._native or said_after_calls(run):
            return self._output.parse(latest_answer(run))
        raise OutputInvalid(
            f"Give the final answer by calling the tool {FINAL_ANSWER!r}, not as text.",
            text=run.record.steps[-1].text,
        )

    def said(self, run: Run[Any]) -> str:
        """Return the model's answer as text, whether or not it fits."""
        arguments = None if self._native else _arguments(run)
        return latest_answer(run) if arguments is None else arguments

    def _fit_servers(
        self, kind: object, mode: Literal["auto", "native", "tool"], services: Sequence[Service]
    ) -> None:
        """Let a tool take the answer if a server does not take its form."""
        spec = self._output.spec
        place = f"output {spec.name!r}: schema"
        parts = [service.refused_output(spec.schema, place=place) for service in services]
        refused = next(filter(None, parts), "")
        if refused and mode == "native":
            raise ConfigError(
                f"output_type {spec.name!r} holds {refused} as the form of an answer. Leave "
                "`output_mode` out, or say 'tool': then a tool takes the answer."
            )
        if refused:
            self._native, self._output = False, Output(kind, name=FINAL_ANSWER)

    def _take(self, arguments: str) -> object:
        """Return the answer as the call's result, for an agent that has called this one."""
        try:
            self._output.parse_arguments(arguments)
        except OutputInvalid:
            return NOT_TAKEN
        return self._output.unwrap(from_json(arguments))


def failure_of(run: Run[Any], final: FinalAnswer | None) -> Exception:
    """Return the recorded failure of a run that ended in another process."""
    failure = None if run.ending is None else run.ending.failure
    if failure is None:
        return RunFailed("unknown")
    if failure.error != OutputInvalid.__name__:
        return RunFailed(f"{failure.error}: {failure.message}")
    said = "" if final is None or not run.record.steps else final.said(run)
    times = run.counters.rejections.get(OUTPUT, 0)
    return OutputInvalid(
        f"`output_type`: expected an answer of this type, found none; it was sent back "
        f"{times} time(s). As the model reads it: {failure.message}",
        text=said,
    )


def _arguments(run: Run[Any]) -> str | None:
    """Return the arguments of the first call of `final_answer`; None if there is none."""
    if said_after_calls(run):
        return None
    calls = run.record.steps[-1].tool_calls
    return next((call.arguments for call in calls if call.name == FINAL_ANSWER), None)


VALUE = "value"
PLACE = "output type"
NAME_CHARS_MAX = 64
FINDING_CHARS_MAX = 3_500
FOUND_CHARS_MAX = 80


@final
class Output:
    """The form of a final answer, from a type that pydantic knows or from a JSON Schema.

    A pydantic model class, a dataclass, a TypedDict, `list[str]` or a union gives values of that
    type. A mapping is a JSON Schema, and gives parsed JSON.

        Output(Weather).parse('{"city": "Oslo"}')  # Weather(city='Oslo')

    Attributes:
        spec: the name, the schema and the description for the model; the description is the
            docstring of the type.

    Raises:
        ConfigError: no JSON Schema can be made of the type, or the schema is not valid.
    """

    def __init__(self, kind: object, *, name: str = "") -> None:
        if isinstance(kind, Mapping):
            form, self._wraps, title = _of_schema(cast("Mapping[str, object]", kind))
        else:
            form, self._wraps, title = _of_type(kind)
        self._parse = form.parse
        self.spec = OutputSpec(_legal(name or title), form.schema, _description(form.schema))

    def parse(self, text: str) -> object:
        """Return the answer that a model wrote as text.

        Raises:
            OutputInvalid: it is not JSON, or does not fit; the message is for the model.
        """
        answer = text.strip()
        if not answer:
            raise OutputInvalid(self._refusal("it is empty"), text=text)
        try:
            return self._value(answer)
        except Exception as error:  # A user's validator may raise anything.
            raise OutputInvalid(self._refusal(_finding(answer, error)), text=text) from error

    def parse_arguments(self, text: str) -> object:
        """Return the answer that a model gave as the arguments of a call.

        Raises:
            OutputInvalid: they are not JSON, or do not fit; the message is for the model.
        """
        try:
            return self._value(text)
        except Exception as error:  # A user's validator may raise anything.
            raise OutputInvalid(rejection(self.spec.name, text, error), text=text) from error

    def unwrap(self, value: object) -> object | None:
        """Return the answer in JSON that is still growing, unchecked; None where it is missing."""
        if not self._wraps:
            return value
        return cast("JsonSchema", value).get(VALUE) if isinstance(value, dict) else None

    def _value(self, text: str) -> object:
        value = self._parse(text)
        return cast("JsonSchema", value)[VALUE] if self._wraps else value

    def _refusal(self, finding: str) -> str:
        form = ', {"value": …}' if self._wraps else ""
        return (
            f"The answer does not have the form {self.spec.name!r}: "
            f"{shorten(finding, FINDING_CHARS_MAX).rstrip('.')}. "
            f"Answer again, with nothing but JSON that fits the schema{form}."
        )


def _of_schema(schema: Mapping[str, object]) -> tuple[Parameters, bool, str]:
    title = schema.get("title")
    wraps = schema.get("type") != "object"
    form = parameters_of(_wrapped(schema) if wraps else schema, PLACE)
    return form, wraps, title if isinstance(title, str) else ""


def _wrapped(schema: Mapping[str, object]) -> JsonSchema:
    """Return the schema as a property; references find its definitions at the top."""
    inner = dict(schema)
    outer = {key: inner.pop(key) for key in ("$schema", "$defs", "definitions") if key in inner}
    return outer | {
        "type": "object",
        "properties": {VALUE: inner},
        "required": [VALUE],
        "additionalProperties": False,
    }


def _of_type(kind: object) -> tuple[Parameters, bool, str]:
    if inspect.isroutine(kind):
        raise ConfigError(f"{PLACE}: expected a type, found {kind!r}. Fix: pass what it returns.")
    try:
        adapter, schema = _adapt(kind)
        wraps = not _is_object(schema)
        if wraps:
            adapter, schema = _adapt(_holder(kind))
    except (PydanticUserError, NameError, TypeError) as error:
        raise ConfigError(
            f"{PLACE}: no JSON Schema can be made of {kind!r}: {str(error).splitlines()[0]}. "
            "Fix: use a pydantic model class or another type that JSON can express."
        ) from error
    parse = arguments_parser(adapter.validator.validate_json)
    title = "" if wraps else str(schema.get("title") or getattr(kind, "__name__", ""))
    return Parameters(schema_text(schema, PLACE), parse), wraps, title


def _adapt(kind: object) -> tuple[pydantic.TypeAdapter[object], JsonSchema]:
    adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(cast("type[object]", kind))
    return adapter, schema_of(adapter)


def _is_object(schema: JsonSchema) -> bool:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        definitions = cast("dict[str, JsonSchema]", schema.get("$defs", {}))
        schema = definitions.get(reference.removeprefix("#/$defs/"), {})
    return schema.get("type") == "object"


def _holder(kind: object) -> type:
    annotations = {"__annotations__": {VALUE: kind}}
    return types.new_class("Answer", (TypedDict,), exec_body=lambda body: body.update(annotations))


def _legal(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:NAME_CHARS_MAX] or "output"


def _description(schema: str) -> str:
    found = cast("JsonSchema", from_json(schema)).get("description")
    return found if isinstance(found, str) else ""


def _finding(text: str, error: Exception) -> str:
    if isinstance(error, ArgumentsRejected):
        return str(error)
    if not isinstance(error, ValidationError):
        return error_text(error)
    details = error.errors(include_url=False, include_context=False)
    if details[0]["type"] in ("json_invalid", "string_unicode"):
        return not_json(text, details[0]["msg"].removeprefix("Invalid JSON: "))
    return join_issues([_issue(detail) for detail in details])


def _issue(detail: ErrorDetails) -> tuple[str, str]:
    path = ".".join(str(step) for step in detail["loc"])
    if detail["type"] == "missing":
        return path, detail["msg"]
    return path, f"{detail['msg']}, found {shorten(repr(detail['input']), FOUND_CHARS_MAX)}"
