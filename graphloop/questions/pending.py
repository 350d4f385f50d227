"""Pending: the approvals and client tool results that a parked run and its children wait for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from ..effects import AskHuman, CallTool, StartRun
from ..errors import ToolDefinitionError, nearest
from ..policy import Approval, Capability, approve, decline, digest, issue, refuse_edit, verify
from ..run import Run
from ..stores import Ask
from ..tools import Toolbox, rejection
from ..tools import parameters_of as compiled
from ..values import Message, ToolSpec

__all__ = [
    "Pending",
    "answer_parameters",
    "ask_key",
    "asked_by_tool",
    "bad_answer",
    "bad_edit",
    "bad_yes",
    "capability_of",
    "needed_answer",
    "pending_of",
    "question_in",
    "question_of",
    "unfit",
    "with_valid_edit",
    "with_valid_token",
]

ELSEWHERE: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "patternProperties"})
"""JSON Schema keywords that may allow properties that `properties` does not list."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for a decision of a person, or for a client tool's result.

    Answer it by its `key` in `resume(approvals={key: …})` or `resume(tool_results={key: …})`.

    Attributes:
        kind: whether the call waits for an approval or for a client tool's result.
        key: the call's key; in a child run `"<key of the agent's call>/<key>"`, at any depth.
        call_id: the provider's id of the call.
        name: the name of the tool.
        arguments: the arguments of the call, as JSON text.
        agents: the names of the agents that lead to the call, outermost first.
        token: identifies the exact call that an approval covers; signed if the run has a secret.
        expires_at: the time in seconds since the epoch from which an approval is too late.
        unknown: whether the call was approved before, and may have run when its process stopped.
        parameters: the JSON Schema text that edited arguments have to fit: the schema of the tool
            or of a node's own question. It is empty if the run does not know the schema.
        in_words: whether a node or a running tool asks, for an answer in words or by a form.
        server: the name of the foreign server that runs the tool; empty for a tool of this process.
        messages: the conversation up to and including the call.
    """

    kind: Literal["approval", "client_tool"]
    key: str
    call_id: str
    name: str
    arguments: str
    agents: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    expires_at: float | None = None
    unknown: bool = False
    parameters: str = field(default="", compare=False, repr=False)
    in_words: bool = False
    server: str = ""
    messages: Sequence[Message] = field(default=(), compare=False, repr=False)

    def approve(
        self, *, edit: Mapping[str, object] | str | None = None, reason: str = ""
    ) -> Approval:
        """Return an approval of exactly this call, with the arguments of `edit` if it is given.

        Raises:
            ConfigError: `edit` cannot be written as JSON, or the call is `unknown`: the arguments
                of an unknown call cannot be edited.
        """
        approval = approve(edit=edit, reason=reason, token=self.token)
        refuse_edit(self.key, approval, unknown=self.unknown)
        return approval

    def decline(self, reason: str = "") -> Approval:
        """Return an `Approval` that declines this call; the model reads the reason."""
        return decline(reason)

    @property
    def ask(self) -> Ask:
        """This pending call in the form that a store keeps (`Ask`)."""
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
            self.server,
        )


def question_of(
    run: Run[Any], effect: AskHuman, key: str, agents: tuple[str, ...], token: str = ""
) -> Pending:
    """Return the `Pending` value of a call that waits for a decision; `key` names the answer."""
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
        next((tool.server for tool in _tools_of_turn(run) if tool.name == call.name), ""),
        messages if reply is None or run.turn.number < 0 else messages.append(reply.message),
    )


def ask_key(effect: AskHuman | CallTool) -> str:
    """Return the key of an answer: the call's key, or a new key if the call is asked about again.

    With a new key, the first approval does not cover a second run of a call that may have run.
    """
    again = isinstance(effect, AskHuman) and (effect.unknown or effect.question is not None)
    return f"{effect.key}#{effect.id}" if again else effect.key


def answer_parameters(run: Run[Any], effect: AskHuman) -> str:
    """Return the JSON Schema text that edited arguments must fit; empty if it is not known."""
    name = effect.call.name
    return effect.takes or next(
        (one.parameters for one in _tools_of_turn(run) if one.name == name), ""
    )


def _tools_of_turn(run: Run[Any]) -> tuple[ToolSpec, ...]:
    """Return the tools of the turn, and then those of the run."""
    return (*run.turn.tools, *run.setup.tools)


def bad_edit(name: str, takes: str, edit: str, toolbox: Toolbox) -> str | None:
    """Return the problem with a person's edited arguments for a call; None if they are valid."""
    if not edit:
        return None
    if takes:
        return unfit(name, takes, edit)
    tool = toolbox.get(name)
    if tool is None:
        return None
    problem = tool.validate(edit)
    return _to_person(problem) if problem else _unknown_arguments(name, tool.spec.parameters, edit)


def bad_answer(effect: AskHuman, approval: Approval, toolbox: Toolbox) -> str | None:
    """Return the problem with what an approval gives a call or a question; None if it is valid.

    The question of a tool has no arguments of its own: an approval of it without an edit is `{}`.
    """
    edit = approval.edit or ("" if effect.question is None else "{}")
    return bad_edit(effect.call.name, effect.takes, edit, toolbox)


def question_in(asked: Pending) -> str | None:
    """Return the question that a node or a tool asks, whose answer is a text or a form.

    None asks for a decision: about a call, or about an answer that an `Approve` node shows.
    """
    if not asked.in_words:
        return None
    return cast("dict[str, str]", json.loads(asked.arguments)).get("question")


def asked_by_tool(ask: Ask) -> bool:
    """Return whether a running tool asks: it does so under a key of its own (`ask_key`)."""
    return bool(ask.takes) and not ask.unknown and "#" in ask.key.rpartition("/")[2]


def needed_answer(ask: Ask) -> str:
    """Return the fields that an answer needs, as `{"size": …}`; empty where a yes is enough.

    The form of a tool's question may need fields; a node that asks for words takes a yes.
    """
    if not asked_by_tool(ask) or unfit(ask.name, ask.takes, "{}") is None:
        return ""
    fields = json.loads(ask.takes).get("required", [])
    return f"{{{', '.join(f'{json.dumps(field)}: …' for field in fields)}}}"


def bad_yes(ask: Ask) -> str | None:
    """Return the problem with a yes and no more to a question; None where a yes is enough."""
    needed = needed_answer(ask)
    if not needed:
        return None
    return (
        f"{ask.key!r}, a question of {ask.name!r}: expected an answer with its fields, found a yes "
        f"alone. Fix: answer by the edit {needed}, or decline."
    )


def with_valid_edit(effect: AskHuman, approval: Approval, toolbox: Toolbox) -> Approval:
    """Return the approval, or a denial if its edited arguments are not valid."""
    if not approval.approved:
        return approval
    problem = bad_answer(effect, approval, toolbox)
    return decline(f"edited arguments: {problem}") if problem else approval


def with_valid_token(
    effect: AskHuman,
    approval: Approval,
    run: Run[Any],
    secret: bytes | None,
    clock: Callable[[], float],
) -> Approval:
    """Return the approval, or a denial if its token is not valid for this call."""
    if not (approval.approved and approval.token):
        return approval
    refusal = verify(approval.token, capability_of(run, effect), secret=secret, now=clock())
    return decline(f"the approval is {refusal}.") if refusal else approval


def unfit(name: str, parameters: str, edit: str) -> str | None:
    """Return the problem if edited arguments do not fit a JSON Schema; None if they fit.

    If the schema itself is not valid, all arguments fit.
    """
    try:
        parse = compiled(json.loads(parameters), name).parse
    except (ValueError, ToolDefinitionError):
        return None
    try:
        parse(edit)
    except Exception as error:  # noqa: BLE001 - whatever a validator raises, it does not fit
        return _to_person(rejection(name, edit, error))
    return _unknown_arguments(name, parameters, edit)


def _unknown_arguments(name: str, parameters: str, edit: str) -> str | None:
    """Return a message about edited arguments that the tool does not have; None if all are known.

    Most validators ignore a misspelt argument, so the tool would run with its default value.
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
    """Reword a message about bad arguments from a model for the person who edits them."""
    found = problem.partition(" Correct the arguments")[0]
    return f"{found} Fix: give every argument that is needed, since an edit replaces all of them."


def capability_of(run: Run[Any], effect: AskHuman) -> Capability:
    """Return the run, call, arguments and deadline that an approval of this call covers."""
    call = effect.call
    return Capability(run.id, ask_key(effect), call.name, digest(call.arguments), effect.expires_at)


def pending_of(
    run: Run[Any],
    children: Mapping[str, Run[Any]],
    secret: bytes | None,
    path: tuple[str, ...] = (),
    agents: tuple[str, ...] = (),
) -> Iterator[Pending]:
    """Yield the approvals and client tool results that a run and its children wait for.

    The order is the order of the requests. Child runs that the run has abandoned are left out.

    Args:
        run: a run with pending effects.
        children: all descendants of the run, by run id.
        secret: the key that signs the approval tokens; None for unsigned tokens.
        path: the keys of the calls that lead from the topmost run to `run`.
        agents: the names of the agents that these calls start.
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
