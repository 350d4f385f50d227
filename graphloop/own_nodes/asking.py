"""Asks: the requests of a node's generator, each typed by its answer.

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
    """Ask a model; nothing of it comes into the run's conversation. It is offered no tools.

    Args:
        prompt: what it is asked.
        system: instructions of its own.
        model: the label of another model than the run's, which the run knows.
        conversation: whether it reads the run's conversation first.
        max_tokens: how long its reply may be, within the run's own limit.

    Raises:
        AskFailed: no model could be asked.
        ConfigError: `max_tokens` is not a whole number of at least 1.
    """
    if max_tokens is not None:
        whole_number("max_tokens", max_tokens)
    answer = yield AskModel(prompt, system, model, conversation, max_tokens)
    assert isinstance(answer, Reply), "a model is answered for with its reply"
    return answer


def ask_person(question: str) -> Generator[AskPerson, Answer, PersonSaid]:
    """Ask a person; the run parks until the answer comes, for days if need be.

    The question is answered like an approval of a call: `approve()`, `decline("why")`, or, in
    words, `approve(edit={"answer": "…"})`.

    Raises:
        AskFailed: the approver failed.
    """
    answer = yield AskPerson(question)
    assert isinstance(answer, PersonSaid), "a person is answered for with what they said"
    return answer


def ask_agent(
    agent: str, prompt: str, *, conversation: bool = False
) -> Generator[AskAgent, Answer, str]:
    """Have an agent of the run answer, in a child run, behind its own gate and its parents'.

    Args:
        agent: the agent's name, declared by `@node(agents={"…": 1})`.
        prompt: what it is told.
        conversation: whether it reads the run's conversation first.

    Returns:
        The agent's answer.

    Raises:
        AskFailed: it gave none.
    """
    answer = yield AskAgent(agent, prompt, conversation)
    assert isinstance(answer, str), "an agent is answered for with its text"
    return answer


def tell(message: str | Note) -> Generator[Tell, Answer, None]:
    """Add a message to the run's conversation; a string is a user's message.

    While a turn is in hand, it comes after the reply and the results of its calls.
    """
    yield Tell(UserMessage(message) if isinstance(message, str) else message)
