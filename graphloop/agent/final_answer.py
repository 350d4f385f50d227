"""Request, parse and validate the final answer of an agent with an `output_type`.

If the model's server enforces the schema, the answer is the text of the last turn. Otherwise the
answer is the arguments of a call of `final_answer`, a tool that ends the run. In both cases the
`output` check finds mistakes, and sends the answer back a limited number of times.

The schema always describes an object, because tools and servers' JSON modes need an object. A type
that is not an object becomes the property `value` of an object. Answers are parsed as strict JSON.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar, cast, final

import pydantic
from pydantic import PydanticUserError
from pydantic_core import from_json
from typing_extensions import TypedDict, TypeForm

from ..conversation import latest_answer, said_after_calls
from ..errors import ConfigError, OutputInvalid, RunFailed
from ..parts import ObjectView
from ..providers import Service, service_of
from ..run import EndReason, Run
from ..tools import (
    JsonSchema,
    Parameters,
    Tool,
    arguments_parser,
    findings_of,
    parameters_of,
    rejection,
    schema_of,
    schema_text,
    shorten,
)
from ..values import OutputSpec

__all__ = [
    "FINAL_ANSWER",
    "NOT_TAKEN",
    "OUTPUT",
    "FinalAnswer",
    "Output",
    "answers_of",
    "failure_of",
    "json_output",
    "output_from",
]

OutputT = TypeVar("OutputT")

FINAL_ANSWER: Final = "final_answer"
OUTPUT: Final = "output"
"""The name of the final answer's check among the checks of the `Verify` node."""
NOT_TAKEN: Final = "Not taken."


def json_output(schema: Mapping[str, object]) -> TypeForm[Any]:
    """Return a JSON Schema as an `output_type`; the output is then plain JSON values.

        Agent(model, output_type=json_output({"type": "object", "properties": …}))

    The function returns `schema` unchanged; only type checkers see another type.
    """
    return cast("TypeForm[Any]", schema)


@final
class FinalAnswer:
    """Requests and parses the final answer of one agent, by a server's schema or by a tool.

    Args:
        kind: the type or the JSON Schema of the answer; see `Output`.
        mode: `"native"`: the server enforces the schema. `"tool"`: the model calls a tool with the
            answer. `"auto"`: native if all servers can enforce schemas, otherwise tool.
        labels: the labels of all models that the agent may call.
        own_server: whether the caller gives the server's URL, so its abilities are unknown.

    Raises:
        ConfigError: the type has no JSON Schema, or the server does not accept the schema.
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
        self.kind = kind
        self._native = mode == "native" or (mode == "auto" and able)
        self._output = Output(kind, name="" if self._native else FINAL_ANSWER)
        if self._native and not own_server:
            self._fit_servers(kind, mode, [service for service in services if service])

    @property
    def spec(self) -> OutputSpec | None:
        """The schema that the server enforces; None if the model answers through a tool."""
        return self._output.spec if self._native else None

    @property
    def tool(self) -> Tool[..., object] | None:
        """The tool that the model calls with the answer; None if the server enforces the schema."""
        if self._native:
            return None
        spec = self._output.spec
        description = "Give the final answer: call this once, when all the work is done."
        return Tool(
            name=FINAL_ANSWER,
            description=f"{description} {spec.description}".strip(),
            # Not parsed here: the `output` check finds all mistakes, and limits the retries.
            parameters=Parameters.of(spec.schema, str),
            execute=self._take_answer,
            effect="pure",
            ends_run=True,
        )

    def view(self) -> ObjectView:
        """Return a view that parses the partial answer while the model streams its reply."""
        return ObjectView("" if self._native else FINAL_ANSWER, self._output.unwrap)

    def answer(self, run: Run[Any]) -> object:
        """Return the parsed and validated final answer of a run.

        Raises:
            OutputInvalid: the run has no valid answer; the message is for the model.
        """
        arguments = None if self._native else _last_answer(run)
        if arguments is not None:
            return self._output.parse_arguments(arguments)
        if self._native or said_after_calls(run):
            return self._output.parse(latest_answer(run))
        raise OutputInvalid(
            f"Give the final answer by calling the tool {FINAL_ANSWER!r}, not as text.",
            text=run.record.steps[-1].text,
        )

    def said(self, run: Run[Any]) -> str:
        """Return the model's final answer as unparsed text, valid or not."""
        arguments = None if self._native else _last_answer(run)
        return latest_answer(run) if arguments is None else arguments

    def refusal(self, run: Run[Any], told: str) -> OutputInvalid:
        """Return the error of a failed run for its developer; the model was `told` why."""
        said, times = self.said(run), run.counters.rejections.get(OUTPUT, 0)
        fix = "raise `max_output_retries`, or make the type simpler"
        called = "one that does not fit"
        if not self._native and _last_answer(run) is None:
            called = "a text in place of a call of the tool that takes the answer"
            with suppress(OutputInvalid):
                self._output.parse(said)
                fix = "say output_mode='native': the model's text fits the type"
        return OutputInvalid(
            f"`output_type`: expected an answer of form {self._output.title!r}, found {called}, "
            f"{shorten(repr(said), SAID_CHARS_MAX)}, in reply {len(run.record.steps)} after "
            f"{times} correction(s). Fix: {fix}. The model was told: {told}",
            text=said,
        )

    def _fit_servers(
        self, kind: object, mode: Literal["auto", "native", "tool"], services: Sequence[Service]
    ) -> None:
        """Switch from native mode to the tool if a server does not accept the schema."""
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

    def _take_answer(self, arguments: str) -> object:
        """Return the parsed answer as the tool's result, or `NOT_TAKEN` for an invalid answer."""
        try:
            self._output.parse_arguments(arguments)
        except OutputInvalid:
            return NOT_TAKEN
        return self._output.unwrap(from_json(arguments))


def failure_of(run: Run[Any], final: FinalAnswer | None) -> Exception:
    """Rebuild the exception of a failed run from the failure in its journal."""
    failure = None if run.ending is None else run.ending.failure
    if failure is None:
        return RunFailed("unknown")
    if failure.error != OutputInvalid.__name__:
        return RunFailed(f"{failure.error}: {failure.message}")
    if final is None or not run.record.steps:
        return OutputInvalid(f"`output_type`: {failure.message}")
    return final.refusal(run, failure.message)


def answers_of(final: FinalAnswer | None, run: Run[Any]) -> tuple[Any, ...] | None:
    """Return the typed answer of a run, as `output_from` reads it.

    A run without an `output_type` has None, a run that did not complete an empty tuple, and a
    completed run a tuple of its answer, which may be None itself.
    """
    if final is None:
        return None
    reason = run.ending.reason if run.ended and run.ending else None
    return (final.answer(run),) if reason is EndReason.COMPLETED else ()


def output_from(answers: tuple[OutputT, ...] | None, text: str, reason: EndReason) -> OutputT:
    """Return the output of a run: its typed answer, or its text without an `output_type`.

    Raises:
        OutputInvalid: the run has an `output_type`, and no answer of this type.
    """
    if answers is None:
        return cast("OutputT", text)  # Without an `output_type`, OutputT is str.
    if answers:
        return answers[0]
    raise OutputInvalid(
        f"`output`: expected a run that completed, found one with the end reason {reason.value!r}. "
        "Fix: read `has_output` or `end_reason` first.",
        text=text,
    )


def _last_answer(run: Run[Any]) -> str | None:
    """Return the arguments of the last turn's first `final_answer` call; None without a call."""
    if said_after_calls(run):
        return None
    calls = run.record.steps[-1].tool_calls
    return next((call.arguments for call in calls if call.name == FINAL_ANSWER), None)


VALUE = "value"
PLACE = "output type"
NAME_CHARS_MAX = 64
FINDING_CHARS_MAX = 3_500
SAID_CHARS_MAX = 300


@final
class Output:
    """The schema and the parser of a final answer, made from a type or from a JSON Schema.

    For a pydantic model class, a dataclass, a TypedDict, `list[str]` or a union, `parse` returns a
    value of that type. A mapping is read as a JSON Schema; then `parse` returns plain JSON values.

        Output(Weather).parse('{"city": "Oslo"}')  # Weather(city='Oslo')

    Attributes:
        spec: the name, the schema and the description for the model; the description is the
            docstring of the type.
        title: the name of the type, for the developer.

    Raises:
        ConfigError: the type has no JSON Schema, or the given schema is not valid.
    """

    def __init__(self, kind: object, *, name: str = "") -> None:
        if isinstance(kind, Mapping):
            form, self._wraps, title = _of_schema(cast("Mapping[str, object]", kind))
        else:
            form, self._wraps, title = _of_type(kind)
        self._parse, self.title = form.parse, title or "output"
        self.spec = OutputSpec(_legal_name(name or title), form.schema, _description(form.schema))

    def parse(self, text: str) -> object:
        """Parse and validate an answer that the model wrote as text.

        Raises:
            OutputInvalid: the text is no JSON, or does not fit the type; the message is for the
                model.
        """
        answer = text.strip()
        if not answer:
            raise OutputInvalid(self._refusal_text("it is empty"), text=text)
        try:
            return self._unwrap(answer)
        except Exception as error:  # A user's validator may raise any error.
            raise OutputInvalid(
                self._refusal_text(findings_of(answer, error)), text=text
            ) from error

    def parse_arguments(self, text: str) -> object:
        """Parse and validate an answer that the model passed as the arguments of a call.

        Raises:
            OutputInvalid: the arguments are no JSON, or do not fit the type; the message is for the
                model.
        """
        try:
            return self._unwrap(text)
        except Exception as error:  # A user's validator may raise any error.
            raise OutputInvalid(rejection(self.spec.name, text, error), text=text) from error

    def unwrap(self, value: object) -> object | None:
        """Return the unvalidated answer inside partial JSON; None if the answer has not begun."""
        if not self._wraps:
            return value
        return cast("JsonSchema", value).get(VALUE) if isinstance(value, dict) else None

    def _unwrap(self, text: str) -> object:
        value = self._parse(text)
        return cast("JsonSchema", value)[VALUE] if self._wraps else value

    def _refusal_text(self, finding: str) -> str:
        form = ', {"value": …}' if self._wraps else ""
        return (
            f"The answer does not have the form {self.spec.name!r}: "
            f"{shorten(finding, FINDING_CHARS_MAX).rstrip('.')}. "
            f"Answer again, with nothing but JSON that fits the schema{form}."
        )


def _of_schema(schema: Mapping[str, object]) -> tuple[Parameters, bool, str]:
    title = schema.get("title")
    wraps = schema.get("type") != "object"
    form = parameters_of(_wrap_schema(schema) if wraps else schema, PLACE)
    return form, wraps, title if isinstance(title, str) else ""


def _wrap_schema(schema: Mapping[str, object]) -> JsonSchema:
    """Return an object schema with `schema` as its property `value`; `$defs` stay at the top."""
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
        adapter, schema = _make_adapter(kind)
        wraps = not _is_object(schema)
        if wraps:
            adapter, schema = _make_adapter(_holder_type(kind))
    except (PydanticUserError, NameError, TypeError) as error:
        raise ConfigError(
            f"{PLACE}: no JSON Schema can be made of {kind!r}: {str(error).splitlines()[0]}. "
            "Fix: use a pydantic model class or another type that JSON can express."
        ) from error
    parse = arguments_parser(adapter.validator.validate_json)
    title = "" if wraps else str(schema.get("title") or getattr(kind, "__name__", ""))
    return Parameters.of(schema_text(schema, PLACE), parse), wraps, title


def _make_adapter(kind: object) -> tuple[pydantic.TypeAdapter[object], JsonSchema]:
    adapter: pydantic.TypeAdapter[object] = pydantic.TypeAdapter(cast("type[object]", kind))
    return adapter, schema_of(adapter)


def _is_object(schema: JsonSchema) -> bool:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        definitions = cast("dict[str, JsonSchema]", schema.get("$defs", {}))
        schema = definitions.get(reference.removeprefix("#/$defs/"), {})
    return schema.get("type") == "object"


def _holder_type(kind: object) -> type:
    annotations = {"__annotations__": {VALUE: kind}}
    return types.new_class("Answer", (TypedDict,), exec_body=lambda body: body.update(annotations))


def _legal_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:NAME_CHARS_MAX] or "output"


def _description(schema: str) -> str:
    found = cast("JsonSchema", from_json(schema)).get("description")
    return found if isinstance(found, str) else ""
