"""The final answer of an agent with an `output_type`: how it is asked for, and how it is read.

Where the server takes the form, the answer is the text of the last turn. Elsewhere it is the
arguments of a call of `final_answer`, a tool that ends the run. Either way the `output` check alone
finds mistakes in it, and sends it back a bounded number of times.

The schema is always that of an object: a tool's arguments must be one, and servers' JSON modes ask
for one. A type that is no object becomes the property `value` of one. Answers are read as strict
JSON; an answer that does not fit is `OutputInvalid`, whose message tells the model how to mend it.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, cast, final, overload

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
        kind: the type of the answer: whatever `Output` takes.
        mode: whether the server or a tool sees to the form.
        labels: the labels of the models that may be asked for it, for `"auto"`.
        own_server: whether the model is asked at a URL of the caller's, whose abilities are not
            known.

    Raises:
        ConfigError: the type cannot be described to a model, or not to the server that `mode`
            wants to see to the form.
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
        self._output: Output[object] = Output(kind, name="" if self._native else FINAL_ANSWER)
        if self._native and not own_server:
            self._fit_servers(kind, mode, [service for service in services if service])

    @property
    def facts(self) -> Mapping[str, object]:
        """Its choices as plain values, to be compared; the type is an option of its own."""
        return {"native": self._native, "spec": self._output.spec}

    @property
    def spec(self) -> OutputSpec | None:
        """The form as the server reads it; None where a tool takes the answer."""
        return self._output.spec if self._native else None

    @property
    def tool(self) -> Tool[..., object] | None:
        """The tool that takes the answer; None where the server sees to the form."""
        if self._native:
            return None
        spec = self._output.spec
        description = "Give the final answer: call this once, when all the work is done."
        return Tool(
            name=FINAL_ANSWER,
            description=f"{description} {spec.description}".strip(),
            # It takes anything: the check of the answer is the one judge, with the one bound.
            parameters=Parameters(spec.schema, str),
            execute=self._take,
            effect="pure",
            ends_run=True,
        )

    def view(self) -> ObjectView:
        """Return the view of the answer while the model writes it."""
        return ObjectView("" if self._native else FINAL_ANSWER, self._output.unwrap)

    def answer(self, run: Run[Any]) -> object:
        """Return the answer that a run has come to.

        Raises:
            OutputInvalid: there is none, or it has not the form; the message is for the model.
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
        """Return the model's answer as text, of whatever form it is."""
        arguments = None if self._native else _arguments(run)
        return latest_answer(run) if arguments is None else arguments

    def _fit_servers(
        self, kind: object, mode: Literal["auto", "native", "tool"], services: Sequence[Service]
    ) -> None:
        """Have a tool take the answer if a server does not take its form."""
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
        """Return the answer itself as the call's result, for an agent that has called this one."""
        try:
            self._output.parse_arguments(arguments)
        except OutputInvalid:
            return NOT_TAKEN
        return self._output.unwrap(from_json(arguments))


def failure_of(run: Run[Any], final: FinalAnswer | None) -> Exception:
    """Return the recorded failure of a run that ended in another process.

    Args:
        run: the run.
        final: how its final answer is given, where it has a form.
    """
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
    """Return the arguments of the first call that gave the answer, if one did."""
    if said_after_calls(run):
        return None
    calls = run.record.steps[-1].tool_calls
    return next((one.arguments for one in calls if one.name == FINAL_ANSWER), None)


T = TypeVar("T")

VALUE = "value"
PLACE = "output type"
NAME_CHARS_MAX = 64
FINDING_CHARS_MAX = 3_500
FOUND_CHARS_MAX = 80


@final
class Output(Generic[T]):
    """The form of a final answer, from a type that pydantic knows or from a JSON Schema.

    A pydantic model class, a dataclass, a TypedDict, `list[str]`, a union, … gives values of that
    type. A mapping is taken as JSON Schema, checked by its own draft, and gives parsed JSON.

        Output(Weather).parse('{"city": "Oslo"}')  # Weather(city='Oslo')

    Attributes:
        spec: what the model is told. Its name is made of the type's and legal on every wire; its
            description is the type's docstring unless one is given.

    Raises:
        ConfigError: no JSON Schema can be made of the type, or the schema is not valid.
    """

    @overload
    def __init__(self, kind: type[T], *, name: str = "", description: str = "") -> None: ...
    @overload
    def __init__(
        self: Output[object], kind: object, *, name: str = "", description: str = ""
    ) -> None: ...
    def __init__(self, kind: object, *, name: str = "", description: str = "") -> None:
        if isinstance(kind, Mapping):
            form, self._wraps, title = _of_schema(cast("Mapping[str, object]", kind))
        else:
            form, self._wraps, title = _of_type(kind)
        self._parse = form.parse
        self.spec = OutputSpec(
            _legal(name or title), form.schema, description or _description(form.schema)
        )

    def __repr__(self) -> str:
        return f"Output({self.spec.name!r})"

    def parse(self, text: str) -> T:
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

    def parse_arguments(self, text: str) -> T:
        """Return the answer that a model gave as the arguments of a call.

        Raises:
            OutputInvalid: they are not JSON, or do not fit; the message is for the model.
        """
        try:
            return self._value(text)
        except Exception as error:  # A user's validator may raise anything.
            raise OutputInvalid(rejection(self.spec.name, text, error), text=text) from error

    def unwrap(self, value: object) -> object | None:
        """Return what JSON read so far says of the answer itself; None where it says nothing yet.

        Nothing is checked: this is for the values of `PartialObjects`.
        """
        if not self._wraps:
            return value
        return cast("JsonSchema", value).get(VALUE) if isinstance(value, dict) else None

    def _value(self, text: str) -> T:
        value = self._parse(text)
        if self._wraps:
            value = cast("JsonSchema", value)[VALUE]  # The schema requires it.
        return cast("T", value)  # The parser is the one made of `T`, or T is object.

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
    told = _wrapped(schema) if wraps else schema
    return parameters_of(told, PLACE), wraps, title if isinstance(title, str) else ""


def _wrapped(schema: Mapping[str, object]) -> JsonSchema:
    """Return the schema as a property; its definitions stay at the top, where references look."""
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
    told = cast("JsonSchema", from_json(schema)).get("description")
    return told if isinstance(told, str) else ""


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
