"""Asks: what a node's generator may ask for, one after the other, and what it is answered.

An ask is a fact once a driver has found it out by calling the generator: it is journaled, and the
kernel makes the effect of it. What it is answered is fed to the generator when it is run again.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from .values import Reply, SystemMessage, UserMessage

__all__ = [
    "ASKS",
    "Answer",
    "Ask",
    "AskAgent",
    "AskModel",
    "AskPerson",
    "Note",
    "PersonSaid",
    "Tell",
]

Note: TypeAlias = UserMessage | SystemMessage
"""What a node may add to the conversation: it speaks for people, never for the model."""


class AskModel(Struct, frozen=True, tag_field="kind", tag="model", gc=False):
    """Ask a model, which is offered no tools. Answered with its `Reply`.

    `model` is the label of the model; empty for the run's own. The model reads the run's
    conversation before the prompt only if `conversation` says so. `max_tokens` limits the reply
    beside the run's own limit: the stricter of the two holds.
    """

    prompt: str
    system: str = ""
    model: str = ""
    conversation: bool = False
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    kind: ClassVar[Literal["model"]] = "model"


class AskPerson(Struct, frozen=True, tag_field="kind", tag="person", gc=False):
    """Ask a person. Answered with `PersonSaid`; parks where nobody can be asked."""

    question: str
    kind: ClassVar[Literal["person"]] = "person"


class AskAgent(Struct, frozen=True, tag_field="kind", tag="agent", gc=False):
    """Have an agent answer, in a child run. Answered with the text that it ends with."""

    agent: str
    prompt: str
    conversation: bool = False
    kind: ClassVar[Literal["agent"]] = "agent"


class Tell(Struct, frozen=True, tag_field="kind", tag="tell", gc=False):
    """Add a message to the conversation. Answered with nothing, at once."""

    message: Note
    kind: ClassVar[Literal["tell"]] = "tell"


class PersonSaid(Struct, frozen=True, gc=False):
    """What a person said: yes or no, why, and in words if they gave any.

    Attributes:
        approved: whether it was a yes, in time.
        reason: what they gave as the reason.
        answer: the answer in words: `approve(edit={"answer": …})`.
    """

    approved: bool
    reason: str = ""
    answer: str = ""


Ask: TypeAlias = AskModel | AskPerson | AskAgent | Tell
Answer: TypeAlias = Reply | PersonSaid | str | None
"""What asks are answered with; the helpers give each its own type."""

ASKS: Final[frozenset[type[Ask]]] = frozenset({AskModel, AskPerson, AskAgent, Tell})
