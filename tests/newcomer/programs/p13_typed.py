"""What a type checker knows of one's own program: no cast, and nothing ignored."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_type

from graphloop import END, Agent, Edges, Graph, RunResult, ToolContext, generate_object, tool
from graphloop.nodes import Append, Child
from graphloop.outcomes import Answered
from graphloop.own_nodes import map_over, parallel, sub_graph
from graphloop.parts import Finish, ToolCallPart
from graphloop.testing import ScriptedModel
from graphloop.topology import with_agents


@dataclass(frozen=True)
class City:
    """A typed answer."""

    name: str
    people: int


@dataclass(frozen=True)
class Trip:
    """The state of a graph."""

    wishes: list[str]
    cities: list[City] = field(default_factory=list[City])
    capital: City | None = None


@dataclass
class Atlas:
    """What the tools read."""

    people: Mapping[str, int]


@tool
async def count(city: str, context: ToolContext[Atlas]) -> int:
    """Return how many people live in a city."""
    return context.deps.people[city]


ULM = {"name": "Ulm", "people": 130_000}
ANSWER = {"calls": [{"name": "final_answer", "arguments": ULM}]}
MODEL = ScriptedModel([{"calls": [{"name": "count", "arguments": {"city": "Ulm"}}]}, ANSWER])
atlas = Atlas({"Ulm": 130_000})
geographer = Agent(MODEL, deps_type=Atlas, output_type=City, tools=[count], name="geographer")
guide = Agent(ScriptedModel([ANSWER] * 5), output_type=City, name="guide")

visit = map_over(guide, max_items=4, items="wishes", into="cities")
vote = parallel(guide, name="vote", prompt="Which is the capital?", into={"guide": "capital"})
trip = Graph("trip", visit, {visit: {Answered: vote, ...: END}, vote: {...: END}}, state_type=Trip)
again = sub_graph(guide, into="capital")
alone: Graph[Trip] = Graph("alone", again, {again: {...: END}}, state_type=Trip)
child, append = Child("guide"), Append()
rows: Edges[Trip] = {child: {...: append}, append: {...: END}}
named = Graph("named", child, rows, state_type=Trip)


async def main() -> None:
    """Use every type where the program of a user meets it."""
    assert_type(geographer, Agent[Atlas, City])
    print(await count("Ulm", ToolContext(deps=atlas)))

    result = await geographer.generate("How large is Ulm?", deps=atlas)
    assert_type(result, RunResult[City])
    assert_type(result.output, City)
    print(result.output.name, result.output.people + 1)

    made = await generate_object(ScriptedModel([ANSWER]), City, "Which city?")
    assert_type(made.object, City)
    either = Agent(ScriptedModel(["Ulm"]), output_type=City | str)
    assert_type(either, Agent[None, City | str])

    after = await trip.run(Trip(["a tower", "a river"]))
    assert_type(after.state, Trip)
    print([city.name for city in after.state.cities], after.state.capital)
    known = await with_agents(named, {"guide": guide}).run(Trip([]), prompt="And you?")
    assert_type(known.state, Trip)

    stream = guide.stream("And now?")
    async for part in stream.full_stream:
        match part:
            case ToolCallPart():
                print(part.tool_name.upper())
            case Finish():
                print(part.end_reason)
            case _:
                pass
    assert_type((await stream.result()).output, City)


if __name__ == "__main__":
    asyncio.run(main())
