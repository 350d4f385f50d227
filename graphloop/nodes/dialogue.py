"""Dialogue: the requests that a node's generator function makes one after another.

The generator object is never stored. A driver runs the function again from its beginning, and
feeds it the earlier answers (`Turn.dialogue`). Each time it reaches one more request, which the
driver journals. This module makes the request's effect, if the node's contract allows it. The
questions of running tools are asked and answered here, too (`about_question`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, assert_never, final

from ..conversation import add_notes, unanswered
from ..effects import (
    IN_WORDS,
    AskAgent,
    AskHuman,
    AskModel,
    AskPerson,
    CallModel,
    CallTool,
    Effect,
    PersonSaid,
    Request,
    RequestAnswer,
    StartRun,
    Tell,
    ToolAnswer,
    ToolQuestion,
)
from ..events import ChildEnded, Decided, EffectFailed, Event, Failure, ModelReplied, ToolAsked
from ..limits import budget_remaining, too_deep
from ..node_protocol import Wait
from ..run import History, Run, evolve
from ..spending import stricter
from ..turn import Dialogue, Exchange
from ..values import Message, ModelRequest, SystemMessage, ToolCall, UserMessage, call_place

__all__ = [
    "REQUESTS_MAX",
    "RequestLimits",
    "about_question",
    "heard_back",
    "over",
    "person_said",
    "requested",
    "with_dialogue",
]

S = TypeVar("S")

REQUESTS_MAX: Final = 1_000
"""The most requests of one visit; a generator that makes more probably never returns."""


@final
@dataclass(frozen=True)
class RequestLimits:
    """The requests that one visit of a node may make.

    Args:
        kinds: the types of requests that are allowed.
        model_calls: the most model requests of one visit; None for any number.
        agents: pairs of an agent's name and the most runs of that agent in one visit.
    """

    kinds: frozenset[type[Request]]
    model_calls: int | None = None
    agents: tuple[tuple[str, int], ...] = ()

    @property
    def models(self) -> int | None:
        """The most model calls of one visit; 0 if models may not be asked, None for any number."""
        return self.model_calls if AskModel in self.kinds else 0

    def refusal(self, ask: Request, exchanges: Sequence[Exchange]) -> Failure | None:
        """Return the reason to refuse a request after these exchanges; None if it may be sent."""
        if type(ask) not in self.kinds and not isinstance(ask, AskAgent):
            words = ", ".join(sorted(one.__name__ for one in self.kinds))
            found = f"it asks with {words}, as its annotation says, and found {type(ask).__name__}"
            return Failure("ConfigError", f"{found}: add it to the annotation")
        if len(exchanges) >= REQUESTS_MAX:
            found = f"one visit has asked {REQUESTS_MAX} times, and would ask again"
            return Failure("CapReached", f"{found}: let its generator return")
        before = [one.ask for one in exchanges]
        match ask:
            case AskModel() if self.model_calls is not None:
                asked = sum(isinstance(one, AskModel) for one in before)
                if asked >= self.model_calls:
                    return Failure(
                        "CapReached",
                        f"one visit asks {self.model_calls} models at most, as it declares, and "
                        f"was to ask one more: it was not sent. Raise `model_calls`",
                    )
            case AskAgent(agent=agent):
                most = dict(self.agents).get(agent)
                if most is None:
                    known = ", ".join(repr(name) for name, _ in self.agents) or "none"
                    found = f"it asks agent {agent!r}, and declares {known}"
                    return Failure("ConfigError", f"{found}: write `agents={{{agent!r}: 1}}`")
                ran = sum(isinstance(one, AskAgent) and one.agent == agent for one in before)
                if ran >= most:
                    return Failure(
                        "CapReached",
                        f"one visit begins {most} runs of agent {agent!r} at most, as it declares, "
                        "and was to begin one more: it was not. Raise its number in `agents`",
                    )
            case _:
                pass
        return None


def with_dialogue(run: Run[S]) -> Run[S]:
    """Return the run with a new dialogue, which has no requests yet."""
    dialogue = Dialogue(run.next_effect, len(run.messages), run.spent.usage)
    return _with_dialogue(run, dialogue)


def over(run: Run[S]) -> Run[S]:
    """Return the run without a dialogue, because its node is being left."""
    return run if run.turn.dialogue is None else _with_dialogue(run, None)


def requested(run: Run[S], ask: Request, node: str) -> tuple[Run[S], Effect | None] | Failure:
    """Return the run with this request in its dialogue, and the effect of the request.

    A `Tell` has no effect and is answered at once. A `Failure` states why no effect can be made.

    Args:
        run: the run, whose turn has a dialogue.
        ask: the request of the generator.
        node: the name of the node that makes the request.
    """
    dialogue = run.turn.dialogue
    assert dialogue is not None, "a node that asks has a dialogue"
    needs_whole = isinstance(ask, Tell) or (not isinstance(ask, AskPerson) and ask.conversation)
    if needs_whole and (why := unanswered(run)):
        return Failure("ConfigError", why)
    waiting = _with_dialogue(run, evolve(dialogue, asked=ask))
    match ask:
        case AskModel():
            return waiting, _call_model(run, ask, node)
        case AskPerson(question=question):
            arguments = json.dumps({"question": question, "answer": ""}, ensure_ascii=False)
            call = ToolCall("", node, arguments)
            key = f"{node}.{run.next_effect}"
            asked = AskHuman(run.next_effect, key, call, _expires_at(run), takes=IN_WORDS)
            return waiting, asked
        case AskAgent(agent=agent):
            if (failure := too_deep(run.setup, [agent])) is not None:
                return failure
            key, messages = f"{node}.{run.next_effect}", _messages_for(run, ask, node)
            return waiting, StartRun(
                run.next_effect, key, agent, "", messages, budget_remaining(run, 0)
            )
        case Tell(message=message):
            if isinstance(message, UserMessage) and not message.origin:
                message = evolve(message, origin=node)
            return _keep_answer(add_notes(waiting, (message,)), None), None
        case _:
            assert_never(ask)


def heard_back(run: Run[S], event: Event, answered: Effect | None) -> Run[S] | None:
    """Return the run with the event's answer to a request; None if it answers no request."""
    match event, answered:
        case ModelReplied(reply=reply), CallModel():
            return _keep_answer(run, reply)
        case Decided(), AskHuman():
            return _keep_answer(run, person_said(event, answered))
        case ChildEnded(), StartRun():
            return _keep_answer(run, _answer_of_child(event, answered))
        case EffectFailed(failure=failure), CallModel() | AskHuman() | StartRun():
            # The journal has the traceback; a run holds only facts that decide how it continues.
            return _keep_answer(run, evolve(failure, traceback=""))
        case _:
            return None


def _keep_answer(run: Run[S], answer: RequestAnswer | Failure) -> Run[S]:
    dialogue = run.turn.dialogue
    assert dialogue is not None, "what was asked was asked in a dialogue"
    assert dialogue.asked is not None, "what is answered was asked"
    exchanges = (*dialogue.exchanges, Exchange(dialogue.asked, answer))
    return _with_dialogue(run, evolve(dialogue, exchanges=exchanges, asked=None))


def _with_dialogue(run: Run[S], dialogue: Dialogue | None) -> Run[S]:
    return evolve(run, turn=evolve(run.turn, dialogue=dialogue))


def _call_model(run: Run[S], ask: AskModel, node: str) -> CallModel:
    settings = run.setup.settings
    # Proofs rely on the run's own token limit, so no node may raise it.
    settings = evolve(settings, max_tokens=stricter(settings.max_tokens, ask.max_tokens))
    request = ModelRequest(_messages_for(run, ask, node), settings=settings)
    return CallModel(run.next_effect, ask.model or run.setup.model, request)


def _messages_for(run: Run[S], ask: AskModel | AskAgent, node: str) -> History[Message]:
    """Return the messages that a model or an agent receives with this request."""
    messages: History[Message] = run.messages if ask.conversation else History()
    if isinstance(ask, AskModel) and ask.system:
        messages = messages.append(SystemMessage(ask.system))
    return messages.append(UserMessage(ask.prompt, origin=node))


def _answer_of_child(ended: ChildEnded, started: StartRun) -> str | Failure:
    """Return the answer of an ended child run; a failure if it failed or changed the state."""
    if ended.changed:
        found = f"agent {started.agent!r} changes the state, which a generator cannot take"
        return Failure("ConfigError", f"{found}: use it as a node")
    return ended.content if ended.status == "ok" else Failure("RunFailed", ended.content)


def _expires_at(run: Run[S]) -> float | None:
    """Return the time from which a person's answer to a new question is too late; None for none."""
    ttl_s = run.setup.approval_ttl_s
    return None if ttl_s is None else run.at + ttl_s


def about_question(run: Run[S], event: Event, answered: Effect | None) -> Wait[S] | None:
    """Return the reaction to a running tool's question, or to its answer; None to other events.

    Only an approval in time is an answer. The tool learns of every other end as a refusal. A
    question without a text is for no person, and its tool goes on at once.
    """
    match event, answered:
        case ToolAsked(question=ToolQuestion(text="") as question), CallTool(key=key):
            answer = ToolAnswer(question, approved=True)
        case ToolAsked(question=question), CallTool(key=key, call=call):
            shown = json.dumps({"question": question.text}, ensure_ascii=False)
            told = ToolCall(call.id, call.name, shown)
            asked = AskHuman(
                run.next_effect,
                key,
                told,
                _expires_at(run),
                takes=question.takes,
                question=question,
            )
            return Wait(run, (asked,))
        case Decided(), AskHuman(question=ToolQuestion() as question, key=key):
            said = person_said(event, answered)
            content = event.arguments if said.approved else ""
            answer = ToolAnswer(question, said.approved, content, said.reason)
        case EffectFailed(), AskHuman(question=ToolQuestion() as question, key=key):
            answer = ToolAnswer(question, approved=False, reason="The approver failed.")
        case _:
            return None
    turn, place = run.turn, call_place(key)
    go_on = CallTool(run.next_effect, key, turn.call_at(place), answer=answer)
    return Wait(evolve(run, turn=evolve(turn, again=turn.again | {place})), (go_on,))


def person_said(decided: Decided, asked: AskHuman) -> PersonSaid:
    """Return a person's answer; it is approved only if the approval is explicit and in time."""
    if not decided.approved:
        return PersonSaid(approved=False, reason=decided.reason)
    given_at = decided.at if decided.given_at is None else decided.given_at
    if asked.expires_at is not None and not given_at < asked.expires_at:
        return PersonSaid(approved=False, reason="The approval had expired.")
    if asked.question is not None or decided.arguments in {"", asked.call.arguments}:
        return PersonSaid(approved=True, reason=decided.reason)
    try:
        edited = json.loads(decided.arguments)
    except (ValueError, RecursionError):
        edited = None
    match edited:
        case {"answer": str(answer)} if edited.keys() <= json.loads(asked.call.arguments).keys():
            return PersonSaid(approved=True, reason=decided.reason, answer=answer)
        case _:
            return PersonSaid(approved=False, reason='An answer in words is {"answer": "…"}.')
