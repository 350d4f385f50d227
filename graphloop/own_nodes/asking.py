"""Asking: the requests of a node's generator, each typed by its answer.

    @node(model_calls=2)
    def triage(ticket: Ticket) -> Asking[Billing | Technical]:
        reply = yield from ask_model(f"Is this about money? {ticket.text}")
        if "yes" in reply.message.text.lower():
            return Billing()
        said = yield from ask_person(f"Is this technical? {ticket.text}")
        return Technical() if said.approved else Billing()

Always `yield from`: a bare `yield` would leave the answer without a type.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, TypeAlias, TypeVar

from ..effects import Answer, Ask, AskAgent, AskModel, AskPerson, Note, PersonSaid, Tell
from ..spending import whole_number
from ..values import Reply, UserMessage

__all__ = ["Asking", "ask_agent", "ask_model", "ask_person", "tell"]

R = TypeVar("R")

Asking: TypeAlias = Annotated[
    Generator[Ask, Answer, R], "A node's generator: it asks for anything, and returns `R`."
]
"""The return annotation of a node's generator: it asks for anything, and returns `R`."""


def ask_model(
    prompt: str,
    *,
    system: str = "",
    model: str = "",
    conversation: bool = False,
    max_tokens: int | None = None,
) -> Generator[AskModel, Answer, Reply]:
    """Ask a model without tools; the conversation stays as it is.

    Args:
        prompt: the question.
        system: a system message for this question.
        model: the label of another model that the run knows; by default, the run's own.
        conversation: whether the model reads the run's conversation first.
        max_tokens: the length of its reply, within the run's own limit.

    Raises:
        AskFailed: no model could be asked.
        ConfigError: `max_tokens` is not a whole number of at least 1.
    """
    if max_tokens is not None:
        whole_number("max_tokens", max_tokens)
    answer = yield AskModel(prompt, system, model, conversation, max_tokens)
    assert isinstance(answer, Reply), "the answer of a model is its reply"
    return answer


def ask_person(question: str) -> Generator[AskPerson, Answer, PersonSaid]:
    """Ask a person; the run parks until the answer comes.

    A person answers as for a call: `approve()`, `decline("why")`, or, in words,
    `approve(edit={"answer": "…"})`.

    Raises:
        AskFailed: the approver failed.
    """
    answer = yield AskPerson(question)
    assert isinstance(answer, PersonSaid), "the answer of a person is a PersonSaid"
    return answer


def ask_agent(
    agent: str, prompt: str, *, conversation: bool = False
) -> Generator[AskAgent, Answer, str]:
    """Return an agent's answer, from a child run behind all gates.

    Args:
        agent: the agent's name, declared by `@node(agents={"…": 1})`.
        prompt: the question.
        conversation: whether the agent reads the run's conversation first.

    Raises:
        AskFailed: the agent gave no answer.
    """
    answer = yield AskAgent(agent, prompt, conversation)
    assert isinstance(answer, str), "the answer of an agent is its text"
    return answer


def tell(message: str | Note) -> Generator[Tell, Answer, None]:
    """Add a message to the conversation; a string is a user's message.

    While a turn is in hand, the message comes after the reply and the results of its calls.
    """
    yield Tell(UserMessage(message) if isinstance(message, str) else message)
