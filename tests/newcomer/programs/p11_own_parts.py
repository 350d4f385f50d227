"""A model behind a client of one's own, and journals in a database of one's own."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from graphloop import Agent, tool
from graphloop.errors import StoreError, UnknownRun
from graphloop.events import Event
from graphloop.providers import StreamItem, TextDelta
from graphloop.stores import Codec
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    Reply,
    TextPart,
    ToolCall,
    Usage,
)


@dataclass(frozen=True)
class House:
    """A model that rings a bell once, and then repeats what came of it."""

    label: str = "house:1"

    def session(self) -> "House":
        """Return the session of a run; this model needs no connection of its own."""
        return self

    async def aclose(self) -> None:
        """Close nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the deltas of a turn, and then its reply."""
        results = [message.content for message in request.messages if message.role == "tool"]
        usage = Usage(input_tokens=len(request.messages), output_tokens=1)
        if not results:
            ring = ToolCall("call-1", "ring", '{"times": 2}')
            yield Reply(AssistantMessage((ring,)), FinishReason.TOOL_CALLS, usage)
            return
        yield TextDelta(str(results[0]))
        yield Reply(AssistantMessage((TextPart(str(results[0])),)), FinishReason.STOP, usage)


class Shelf:
    """A store that keeps each run as a list of lines."""

    def __init__(self) -> None:
        self.lines: dict[str, list[bytes]] = {}
        self.codec = Codec(object)

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Save all of the events, or none."""
        kept = self.lines.setdefault(run_id, [])
        if seq != len(kept) + 1:
            raise StoreError(f"{run_id}: expected event {len(kept) + 1}, found {seq}")
        kept.extend(self.codec.encode(seq + place, event) for place, event in enumerate(events))

    async def load(self, run_id: str) -> Sequence[Event]:
        """Return the events of a run."""
        if run_id not in self.lines:
            raise UnknownRun(f"there is no run {run_id!r}")
        return [self.codec.decode(line)[1] for line in self.lines[run_id]]

    async def runs(self) -> Sequence[str]:
        """Return the ids of all runs."""
        return sorted(self.lines)


@tool(needs_approval=True)
async def ring(times: int) -> str:
    """Ring the bell."""
    return "ding " * times


async def main() -> None:
    """Park on the shelf, and go on with another agent that has the same shelf."""
    shelf = Shelf()
    parked = await Agent(House(), tools=[ring], store=shelf).generate("Ring!", run_id="bell")
    print(parked.end_reason, len(shelf.lines["bell"]), "events")

    later = Agent(House(), tools=[ring], store=shelf)
    result = await later.resume("bell", approvals={call.key: True for call in parked.pending})
    print(result.text, result.total_usage.total_tokens if result.total_usage else 0, "tokens")


if __name__ == "__main__":
    asyncio.run(main())
