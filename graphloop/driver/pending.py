"""Pending: the approvals and results that a parked run and its children wait for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..effects import AskHuman, CallTool, StartRun
from ..errors import ToolDefinitionError, nearest
from ..policy import Approval, Capability, approve, decline, digest, issue, refuse_edit
from ..run import Run
from ..stores import Ask
from ..tools import Toolbox, rejection
from ..tools import parameters_of as compiled
from ..values import Message

__all__ = [
    "Pending",
    "answer_parameters",
    "ask_key",
    "bad_edit",
    "capability_of",
    "pending_of",
    "question_of",
    "unfit",
]

ELSEWHERE: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "patternProperties"})
"""The keywords of a schema that may tell of properties beside its own."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for a decision of a person, or for a client tool's result.

    Answer it by its `key` in `resume(approvals={key: …})` or `resume(tool_results={key: …})`.

    Attributes:
        kind: what is waited for.
        key: the call's key; a child run's is `"<key of the agent's call>/<key>"`, at any depth.
        call_id: the provider's id of the call.
        name: the tool.
        arguments: what it is called with, as JSON text.
        agents: the names of the agents that the call is in, outermost first.
        token: says exactly which call an approval is about; signed where the run has a secret.
        expires_at: from when on an approval comes too late, in seconds since the epoch.
        unknown: whether the call was approved before, and may have run when its process stopped.
        parameters: what an edit has to be, as JSON Schema text: what the tool takes, where the run
            knows it, or what a node's own question takes.
        in_words: whether it is a node's question, which no tool asks, and takes words.
        messages: the conversation that an approval is about, as its run would send it.
    """

    kind: Literal["approval", "client_tool"]
    key: str
    call_id: str
    name: str
    arguments: str
    agents: tuple[str, ...] = ()
    token: str = ""
    expires_at: float | None = None
    unknown: bool = False
    parameters: str = field(default="", compare=False, repr=False)
    in_words: bool = False
    messages: Sequence[Message] = field(default=(), compare=False, repr=False)

    def approve(
        self, *, edit: Mapping[str, object] | str | None = None, reason: str = ""
    ) -> Approval:
        """Return the approval of exactly this call.

        Raises:
            ConfigError: `edit` cannot be written as JSON, or the call is `unknown`: then it runs
                as it was, or not.
        """
        approval = approve(edit=edit, reason=reason, token=self.token)
        refuse_edit(self.key, approval, unknown=self.unknown)
        return approval

    def decline(self, reason: str = "") -> Approval:
        """Return the refusal of this call; the model reads the reason."""
        return decline(reason)

    @property
    def ask(self) -> Ask:
        """The same, as a store keeps it."""
        return Ask(
            self.key,
            self.kind,
            self.name,
            self.arguments,
            self.token,
            self.agents,
            self.expires_at,
            self.unknown,
            self.parameters if self.in_words else "",
        )


def question_of(
    run: Run[Any], effect: AskHuman, key: str, agents: tuple[str, ...], token: str = ""
) -> Pending:
    """Return what a person is told who is asked about a call, by the key that they answer."""
    call, reply, messages = effect.call, run.turn.reply, run.messages
    return Pending(
        "approval",
        key,
        call.id,
        call.name,
        call.arguments,
        agents,
        token,
        effect.expires_at,
        effect.unknown,
        answer_parameters(run, effect),
        bool(effect.takes),
        messages if reply is None or run.turn.number < 0 else messages.append(reply.message),
    )


def ask_key(effect: AskHuman | CallTool) -> str:
    """Return the key that an answer names: the call's, or one of its own where it is asked again.

    What was approved once must not approve what may have happened since.
    """
    again = isinstance(effect, AskHuman) and effect.unknown
    return f"{effect.key}#{effect.id}" if again else effect.key


def answer_parameters(run: Run[Any], effect: AskHuman) -> str:
    """Return what an edit has to be, as JSON Schema text; empty if it is not known."""
    tools = (*run.turn.tools, *run.setup.tools)
    name = effect.call.name
    return effect.takes or next((one.parameters for one in tools if one.name == name), "")


def bad_edit(name: str, takes: str, edit: str, toolbox: Toolbox) -> str | None:
    """Return what is wrong with a person's arguments in place of a call's; None if nothing is."""
    if not edit:
        return None
    if takes:
        return unfit(name, takes, edit)
    tool = toolbox.get(name)
    if tool is None:
        return None
    problem = tool.validate(edit)
    return _to_person(problem) if problem else _unknown(name, tool.spec.parameters, edit)


def unfit(name: str, parameters: str, edit: str) -> str | None:
    """Return what is wrong with a person's arguments, as their schema tells; None if nothing is.

    A schema that is none says nothing.
    """
    try:
        parse = compiled(json.loads(parameters), name).parse
    except (ValueError, ToolDefinitionError):
        return None
    try:
        parse(edit)
    except Exception as error:  # noqa: BLE001 - whatever a validator raises, it does not fit
        return _to_person(rejection(name, edit, error))
    return _unknown(name, parameters, edit)


def _unknown(name: str, parameters: str, edit: str) -> str | None:
    """Return which arguments of an edit a tool does not have; None where all are known.

    Most validators drop an argument that is misspelt, and the tool would run with its default.
    """
    schema: dict[str, Any] = json.loads(parameters)
    if "properties" not in schema or not ELSEWHERE.isdisjoint(schema):
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    known, given = list(schema["properties"]), json.loads(edit.strip() or "{}")
    unknown = [one for one in given if one not in known]
    if not unknown:
        return None
    return (
        f"{name!r}: expected arguments among {', '.join(known) or 'none'}, "
        f"found {', '.join(unknown)}. Fix: name what the tool takes.{nearest(unknown[0], known)}"
    )


def _to_person(problem: str) -> str:
    """Return what a model would be told of arguments, as a person is told of an edit."""
    found = problem.partition(" Correct the arguments")[0]
    return f"{found} An edit replaces all arguments: give each that is needed."


def capability_of(run: Run[Any], effect: AskHuman) -> Capability:
    """Return what an approval of this call is good for."""
    call = effect.call
    return Capability(run.id, ask_key(effect), call.name, digest(call.arguments), effect.expires_at)


def pending_of(
    run: Run[Any],
    children: Mapping[str, Run[Any]],
    secret: bytes | None,
    path: tuple[str, ...] = (),
    agents: tuple[str, ...] = (),
) -> Iterator[Pending]:
    """Yield what a run and its children wait for, in request order.

    An abandoned child waits for no answer.

    Args:
        run: a run that parks.
        children: all runs below it, by their ids.
        secret: signs the tokens.
        path: the keys of the calls that lead to `run`.
        agents: the agents that they call.
    """
    for effect in run.pending.values():
        match effect:
            case AskHuman():
                key = "/".join((*path, ask_key(effect)))
                token = issue(capability_of(run, effect), secret)
                yield question_of(run, effect, key, agents, token)
            case CallTool(client=True, call=call):
                key = "/".join((*path, effect.key))
                yield Pending("client_tool", key, call.id, call.name, call.arguments, agents)
            case StartRun(key=key, agent=agent) if effect.id not in run.abandoned:
                child = children.get(f"{run.id}/{key}")
                if child is not None:
                    below = (*path, key), (*agents, agent)
                    yield from pending_of(child, children, secret, *below)
            case _:
                pass
