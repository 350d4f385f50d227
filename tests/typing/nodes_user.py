"""What a type checker knows about nodes of one's own. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import assert_type

from graphloop import END, Agent, Edges, Graph, NodeContext, RunResult, node
from graphloop.effects import AskModel, AskPerson, RequestAnswer
from graphloop.nodes import Append, Child, PrepareStep
from graphloop.outcomes import Answered, Outcome, Ready
from graphloop.own_nodes import (
    AskFailed,
    Asking,
    ChildResult,
    PersonSaid,
    ask_agent,
    ask_model,
    ask_person,
    fallback,
    retry,
    router,
    sub_graph,
    tell,
)
from graphloop.own_nodes.node_decorator import OwnNode
from graphloop.own_nodes.sub_graphs import StatelessSubGraph, SubGraph
from graphloop.policy.policy import allow
from graphloop.proofs.bounds import bound
from graphloop.spending import budget
from graphloop.topology import with_agents
from graphloop.values import Message, Reply


@dataclass(frozen=True)
class Ticket:
    """A state of the user's."""

    text: str
    team: str = ""


@dataclass(frozen=True)
class Draft:
    """The state of a child."""

    text: str = ""


class Billing(Outcome):
    """A way to leave."""


class Technical(Outcome):
    """Another."""


@dataclass(frozen=True)
class Unclear(Outcome):
    """One that says more."""

    reason: str = ""


class Other(Outcome):
    """One of another node."""


@node
async def route(ticket: Ticket) -> Billing | Technical:
    return Billing() if "invoice" in ticket.text else Technical()


@node
def plain(ticket: Ticket, context: NodeContext) -> Billing | Unclear:
    assert_type(context.messages, Sequence[Message])
    assert_type(context.answer, str)
    assert_type(context.idempotency_key, str)
    return Unclear(context.key) if context.turn > 3 else Billing()


@node
async def assign(ticket: Ticket) -> tuple[Billing | Technical, Ticket]:
    return Billing(), replace(ticket, team="money")


@node(
    name="again",
    kind="check",
    cap={Unclear: 3},
    capped=Billing,
    reads=("text",),
    writes={"team"},
    timeout_s=5,
    raises={TimeoutError: Technical},
)
async def judge(ticket: Ticket) -> tuple[Billing | Technical | Unclear, Ticket]:
    return Unclear("why?"), ticket


@node
def stateless(_: None, context: NodeContext) -> Billing:
    return Billing()


@node(model_calls=2, agents={"helper": 1})
def triage(ticket: Ticket, context: NodeContext) -> Asking[Billing | Technical]:
    reply = yield from ask_model(ticket.text, system="Be brief.", conversation=True)
    assert_type(reply, Reply)
    said = yield from ask_person(f"Is it {reply.message.text}?")
    assert_type(said, PersonSaid)
    text = yield from ask_agent("helper", said.reason)
    assert_type(text, str)
    yield from tell(text)
    try:
        yield from ask_model("again")
    except AskFailed as error:
        assert_type(error.error, str)
    return Billing() if said.approved else Technical()


@node
def revise(ticket: Ticket) -> Asking[tuple[Billing | Technical, Ticket]]:
    reply = yield from twice(ticket.text)
    return Billing(), replace(ticket, text=reply)


@node
def models_only(ticket: Ticket) -> Generator[AskModel, RequestAnswer, Billing | Unclear]:
    reply = yield from ask_model(ticket.text)
    return Unclear() if reply.message.is_blank else Billing()


def twice(text: str) -> Asking[str]:
    """A part of a generator, to be shared by several."""
    first = yield from ask_model(text)
    second = yield from ask_model(first.message.text)
    return second.message.text


assert_type(triage, OwnNode[Ticket, Billing | Technical])
assert_type(revise, OwnNode[Ticket, Billing | Technical])
assert_type(models_only, OwnNode[Ticket, Billing | Unclear])
triage.row({Billing: END, ...: END})
assert_type(route, OwnNode[Ticket, Billing | Technical])
assert_type(plain, OwnNode[Ticket, Billing | Unclear])
assert_type(assign, OwnNode[Ticket, Billing | Technical])
assert_type(judge, OwnNode[Ticket, Billing | Technical | Unclear])
assert_type(stateless, OwnNode[None, Billing])


def ask(ticket: Ticket) -> str:
    return ticket.text


def take(ticket: Ticket, result: ChildResult) -> Ticket:
    assert_type(result.text, str)
    return replace(ticket, text=result.text)


def take_draft(ticket: Ticket, result: ChildResult[str, Draft]) -> Ticket:
    return replace(ticket, text=result.state.text)


def begin(ticket: Ticket) -> Draft:
    return Draft(ticket.text)


@node
def finish(draft: Draft) -> tuple[Other, Draft]:
    return Other(), draft


child = Graph("child", finish, {finish: {...: END}})
assert_type(child, Graph[Draft])
writer = sub_graph(
    Agent("openai:x"), prompt=ask, output=take, gate=allow("*"), budget=budget(usd=1)
)
drafts = sub_graph(child, name="drafts", state=begin, output=take_draft, writes={"text"})
talk = sub_graph(Agent("openai:x"), name="talk")
assert_type(sub_graph(Agent("openai:x"), prompt="Go."), StatelessSubGraph)
assert_type(sub_graph(Agent("openai:x"), prompt="Go.", output=take), SubGraph[Ticket])
assert_type(Graph("talk", talk, {talk: {...: END}}), Graph[None])
assert_type(Graph("talk", talk, {talk: {...: END}}, state_type=Ticket), Graph[Ticket])
assert_type(writer, SubGraph[Ticket])
assert_type(drafts, SubGraph[Ticket])

prepare, append = PrepareStep(), Append()
edges: Edges[Ticket] = {
    route: route.row({Billing: writer, Technical: judge, ...: END}),
    writer: {Answered: append, ...: END},
    append: {...: drafts},
    drafts: {...: END},
    judge: {Unclear: route, ...: END},
}
desk = Graph("desk", route, edges)
assert_type(desk, Graph[Ticket])
assert_type(Graph("none", stateless, {stateless: {...: END}}), Graph[None])
late = Graph("late", prepare, {prepare: {Ready: route, ...: END}, **edges}, state_type=Ticket)
assert_type(late, Graph[Ticket])

again, either = retry(assign, 2), fallback(assign, judge)
assert_type(Graph("again", again, {again: {...: END}}), Graph[Ticket])
assert_type(Graph("either", either, {either: {...: END}}), Graph[Ticket])
tried: Edges[Ticket] = {again: {Billing: either, ...: END}, either: {...: END}}
assert_type(Graph("tried", again, tried), Graph[Ticket])
chooser = router({Billing: "money", Technical: "the rest"})
chosen: Edges[Ticket] = {chooser: {Billing: writer, ...: END}, writer: {...: END}}
assert_type(Graph("chosen", chooser, chosen), Graph[Ticket])
told: Graph[Ticket] = Graph("told", chooser, chosen)
with_agents(told, {})
# mypy needs the name of the state where a library's node comes first and the rows are written here.
named = Graph(
    "named", chooser, {chooser: {Billing: route, ...: END}, route: {...: END}}, state_type=Ticket
)
assert_type(named, Graph[Ticket])
child_again = retry(Child("a"), 2)
assert_type(Graph("bare", child_again, {child_again: {...: END}}), Graph[None])


async def use() -> None:
    result = await desk.run(Ticket("x"), store="runs.db")
    assert_type(result, RunResult[str, Ticket])
    assert_type(result.state.team, str)
    assert_type(bound(desk, budget=budget(tokens=9)).model_calls, int | None)
    desk.check(ignore={("route", "GL6"): "known"})


# What is wrong must be said before it is run.
route.row({Other: append})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
node(name=5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
node(kind="gate")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
node(cap={Ticket: 3})  # type: ignore[dict-item]  # pyright: ignore[reportCallIssue, reportArgumentType]
Graph("mixed", stateless, {stateless: {...: END}, route: {...: END}})  # type: ignore[dict-item]  # pyright: ignore[reportCallIssue, reportArgumentType]
Graph("other", stateless, chosen)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
Graph("late", prepare, chosen, state_type=Draft)  # type: ignore[misc]  # pyright: ignore[reportCallIssue, reportArgumentType]
sub_graph(child, state=begin, output=take)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
sub_graph(Agent("openai:x"), state=begin)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
desk.stream("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@node  # type: ignore[type-var]  # pyright: ignore[reportCallIssue, reportArgumentType, reportUntypedFunctionDecorator]
async def no_outcome(ticket: Ticket) -> str:
    return ""


@node
async def wrong_outcome(ticket: Ticket) -> Billing:
    return Technical()  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


@node
def wrong_return(ticket: Ticket) -> Asking[Billing]:
    yield from ask_model(ticket.text)
    return Technical()  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


@node
def no_from(ticket: Ticket) -> Asking[Billing]:
    yield ask_model(ticket.text)  # type: ignore[misc]  # pyright: ignore[reportReturnType]
    return Billing()


@node
def people_only(ticket: Ticket) -> Generator[AskPerson, RequestAnswer, Billing]:
    yield from ask_model(ticket.text)  # type: ignore[misc]  # pyright: ignore[reportReturnType]
    return Billing()


@node  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType, reportUntypedFunctionDecorator]
def asks_without_outcome(ticket: Ticket) -> Asking[str]:
    yield from ask_model(ticket.text)
    return ""


triage.row({Other: append})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
node(model_calls="2")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
node(cap=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
