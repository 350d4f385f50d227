"""Requests: what a node's generator can ask for, each with the type of its answer.

    @node(model_calls=2)
    def triage(ticket: Ticket) -> Asking[Billing | Technical]:
        reply = yield from ask_model(f"Is this about money? {ticket.text}")
        if "yes" in reply.message.text.lower():
            return Billing()
        said = yield from ask_person(f"Is this technical? {ticket.text}")
        return Technical() if said.approved else Billing()

Always write `yield from`: type checkers do not know the answer's type of a bare `yield`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, TypeAlias, TypeVar

from ..effects import AskAgent, AskModel, AskPerson, Note, PersonSaid, Request, RequestAnswer, Tell
from ..spending import whole_number
from ..values import Reply, UserMessage

__all__ = ["Asking", "ask_agent", "ask_model", "ask_person", "tell"]

R = TypeVar("R")

Asking: TypeAlias = Annotated[
    Generator[Request, RequestAnswer, R],
    "A node's generator: it asks for anything, and returns `R`.",
]
"""The return annotation of a node's generator that may make any request and returns `R`."""


def ask_model(
    prompt: str,
    *,
    system: str = "",
    model: str = "",
    conversation: bool = False,
    max_tokens: int | None = None,
) -> Generator[AskModel, RequestAnswer, Reply]:
    """Ask a model one question without tools, and return its reply.

    The question and the reply are not added to the run's conversation.

    Args:
        prompt: the question.
        system: a system message for this question.
        model: the label of another model that the run knows; by default, the run's own model.
        conversation: whether the model also gets the run's conversation, before the question.
        max_tokens: the longest reply in tokens; the run's own limit applies as well.

    Raises:
        AskFailed: no model replied.
        ConfigError: `max_tokens` is not a whole number of at least 1.
    """
    if max_tokens is not None:
        whole_number("max_tokens", max_tokens)
    answer = yield AskModel(prompt, system, model, conversation, max_tokens)
    assert isinstance(answer, Reply), "the answer of a model is its reply"
    return answer


def ask_person(question: str) -> Generator[AskPerson, RequestAnswer, PersonSaid]:
    """Ask a person a question, and return the answer; the run parks until the answer comes.

    The person answers as for a tool call, with `approve()` or `decline("why")`. An answer in words
    is `approve(edit={"answer": "…"})`.

    Raises:
        AskFailed: the approver function raised an error.
    """
    answer = yield AskPerson(question)
    assert isinstance(answer, PersonSaid), "the answer of a person is a PersonSaid"
    return answer


def ask_agent(
    agent: str, prompt: str, *, conversation: bool = False
) -> Generator[AskAgent, RequestAnswer, str]:
    """Run an agent in a child run, which all gates of this run apply to, and return its answer.

    Args:
        agent: the agent's name, declared by `@node(agents={"…": 1})`.
        prompt: the question.
        conversation: whether the agent also gets the run's conversation, before the question.

    Raises:
        AskFailed: the child run ended without an answer.
    """
    answer = yield AskAgent(agent, prompt, conversation)
    assert isinstance(answer, str), "the answer of an agent is its text"
    return answer


def tell(message: str | Note) -> Generator[Tell, RequestAnswer, None]:
    """Add a message to the run's conversation; a string becomes a user message.

    During a turn, the message is added after the model's reply and the results of its calls.
    """
    yield Tell(UserMessage(message) if isinstance(message, str) else message)
