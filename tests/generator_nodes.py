"""One programme of asks, as a node that is a generator and as a chain of nodes that are classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from graphloop import END, Graph, NodeContext, node
from graphloop.contract import Contract
from graphloop.effects import AskHuman, CallModel, Effect
from graphloop.errors import AskFailed
from graphloop.events import Decided, EffectFailed, Event, ModelReplied
from graphloop.node_protocol import Kind, Leave, Reaction, Wait
from graphloop.outcomes import Aborted, Outcome
from graphloop.own_nodes import Asking, ask_model, ask_person, tell
from graphloop.run import History, Run, evolve
from graphloop.values import Message, ModelRequest, ToolCall, UserMessage
from tests.runs import changed

__all__ = ["Finished", "Line", "Programme", "as_chain", "as_generator", "perform"]

Line: TypeAlias = tuple[Literal["model", "aloud", "person", "tell"], str]
"""What is done, and what is said: a model is asked alone, or aloud, with the conversation."""


@dataclass(frozen=True)
class Programme:
    """What is to be asked, and what was answered."""

    lines: tuple[Line, ...]
    log: tuple[str, ...] = ()

    def noted(self, text: str) -> Programme:
        """Return it with one more line in its log."""
        return replace(self, log=(*self.log, text))


class Finished(Outcome):
    """The programme is over."""


class Next(Outcome):
    """One line of it is."""


@node
def perform(programme: Programme, context: NodeContext) -> Asking[tuple[Finished, Programme]]:
    """Go through the programme."""
    done = programme.noted(f"{context.key} {len(context.messages)} {context.usage.total_tokens}")
    for kind, text in programme.lines:
        match kind:
            case "model" | "aloud":
                try:
                    reply = yield from ask_model(text, conversation=kind == "aloud")
                    done = done.noted(reply.message.text)
                except AskFailed as error:
                    done = done.noted(f"failed: {error}")
            case "person":
                said = yield from ask_person(text)
                done = done.noted(f"{said.approved} {said.reason} {said.answer}")
            case "tell":
                yield from tell(text)
    return Finished(), done


def as_generator() -> Graph[Programme]:
    """Return the programme as one node."""
    return Graph("programme", perform, {perform: {...: END}})


@dataclass(frozen=True)
class One:
    """One line of the programme, as a node of the kernel's own protocol."""

    place: int
    line: Line
    kind: Kind = "pure"
    contract = Contract(model_calls=1, asks=True)
    outcomes = frozenset({Next, Aborted})

    @property
    def name(self) -> str:
        return f"line_{self.place}"

    def enter(self, run: Run[Programme], /) -> Reaction[Programme, Next | Aborted]:
        if not self.place:
            first = f"perform.1 {len(run.messages)} {run.spent.usage.total_tokens}"
            run = evolve(run, state=run.state.noted(first))
        kind, text = self.line
        note = UserMessage(text, origin="perform")
        if kind == "tell":
            told = changed(
                run, messages=run.messages.append(note), added=run.record.added.append(note)
            )
            return Leave(told, Next())
        effect: Effect
        if kind == "person":
            arguments = f'{{"question": "{text}", "answer": ""}}'
            effect = AskHuman(run.next_effect, "", ToolCall("", "perform", arguments))
        else:
            before: History[Message] = run.messages if kind == "aloud" else History()
            request = ModelRequest(before.append(note), settings=run.setup.settings)
            effect = CallModel(run.next_effect, run.setup.model, request)
        return Wait(run, (effect,))

    def on(
        self, run: Run[Programme], event: Event, answered: Effect | None, /
    ) -> Reaction[Programme, Next | Aborted]:
        match event:
            case ModelReplied(reply=reply):
                return self._noted(run, reply.message.text)
            case Decided(approved=approved, reason=reason):
                return self._noted(run, f"{approved} {reason} ")
            case EffectFailed(failure=failure):
                return self._noted(run, f"failed: {failure.error}: {failure.message}")
            case _:
                return Leave(run, Aborted())

    def _noted(self, run: Run[Programme], text: str) -> Reaction[Programme, Next | Aborted]:
        return Leave(evolve(run, state=run.state.noted(text)), Next())


def as_chain(lines: tuple[Line, ...]) -> Graph[Programme]:
    """Return the same, line by line: none without any."""
    nodes = [One(place, line) for place, line in enumerate(lines)]
    edges = {
        one: {Next: then, Aborted: END} for one, then in zip(nodes, [*nodes[1:], END], strict=True)
    }
    return Graph("programme", nodes[0], edges, state_type=Programme)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
