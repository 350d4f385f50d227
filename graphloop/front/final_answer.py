"""The final answer of an agent with an `output_type`: how it is asked for, and how it is read.

Where the server can be told the form, and takes this one, the answer is the text of the last turn;
elsewhere it is the arguments of a call of `final_answer`, a tool that ends the run (CONTRACT §9
#50). Either way what
is wrong with it is found by the `output` check alone, which sends it back a bounded number of
times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, final

from pydantic_core import from_json

from ..errors import ConfigError, OutputInvalid
from ..latest_answer import latest_answer, said_after_calls
from ..output import Output
from ..parameters import Parameters
from ..providers.output_schema import unenforced
from ..run import Run
from ..tools import Tool
from ..values import OutputSpec
from ..views.objects import ObjectView

__all__ = ["FINAL_ANSWER", "NOT_TAKEN", "FinalAnswer"]

FINAL_ANSWER: Final = "final_answer"
NOT_TAKEN: Final = "Not taken."

NATIVE: Final = frozenset({"anthropic", "openai"})
"""The wires with a field for the form of the answer."""


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
        wires = {one.partition(":")[0] for one in labels}
        able = not own_server and wires <= NATIVE
        self._native = mode == "native" or (mode == "auto" and able)
        self._output: Output[object] = Output(kind, name="" if self._native else FINAL_ANSWER)
        if self._native and "anthropic" in wires and not own_server:
            self._fit_anthropic(kind, mode)

    @property
    def facts(self) -> Mapping[str, object]:
        """What it says, for whoever compares it with another; the type is an option of its own."""
        return {"native": self._native, "spec": self._output.spec}

    @property
    def spec(self) -> OutputSpec | None:
        """What the server is told; None where a tool takes the answer."""
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
        """Return what shows the answer while it is being written."""
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
        """Return what the model gave for an answer, of whatever form it is."""
        arguments = None if self._native else _arguments(run)
        return latest_answer(run) if arguments is None else arguments

    def _fit_anthropic(self, kind: object, mode: Literal["auto", "native", "tool"]) -> None:
        """Have a tool take the answer if Anthropic's API does not take its form."""
        name = self._output.spec.name
        refused = unenforced(self._output.spec.schema, place=f"output {name!r}: schema")
        if refused and mode == "native":
            raise ConfigError(
                f"output_type {name!r} holds {refused}, which Anthropic's API does not take as the "
                "form of an answer. Leave `output_mode` out, or say 'tool': then a tool takes the "
                "answer."
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


def _arguments(run: Run[Any]) -> str | None:
    """Return the arguments of the first call that gave the answer, if one did."""
    if said_after_calls(run):
        return None
    calls = run.record.steps[-1].tool_calls
    return next((one.arguments for one in calls if one.name == FINAL_ANSWER), None)
