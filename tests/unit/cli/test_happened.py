"""What happened, event by event."""

from __future__ import annotations

import pytest

from graphloop.asks import AskPerson
from graphloop.cli.happened import effects_of, happened
from graphloop.effects import AskHuman, CallModel, CallTool, Effect, HandOver, Invoke, StartRun
from graphloop.events import (
    Asked,
    Begun,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    Joined,
    Judged,
    Left,
    ModelReplied,
    Queued,
    Resumed,
    Setup,
    Started,
    Steered,
    ToolReturned,
    Tripped,
)
from graphloop.front.agent import Agent
from graphloop.policy import allow, deny
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    ImagePart,
    ModelRequest,
    Reply,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)

CALL = ToolCall("id", "pay", '{"amount": 5}')
EFFECTS: dict[int, Effect] = {
    1: CallModel(1, "openai:m", ModelRequest((UserMessage("Pay."),))),
    2: AskHuman(2, "c0.0", CALL),
    3: CallTool(3, "c0.0", CALL),
    4: StartRun(4, "c0.1", "payer", "{}", ()),
    5: Invoke(5, "stop_when"),
    6: HandOver(6),
}
REPLY = Reply(
    AssistantMessage((TextPart("I\n  pay."), CALL)), FinishReason.TOOL_CALLS, Usage(1000, 234)
)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (Started(1.0, "r", "g", (), Setup("m")), "g, m"),
        (Started(1.0, "r", "g", (UserMessage("Hi\x1b"),), Setup("m")), "g, m: Hi"),
        (
            Started(1.0, "r", "g", (UserMessage("Hi"),), Setup("m"), None, (UserMessage("Ho"),)),
            "g, m: Ho",
        ),
        (ModelReplied(1.0, 1, REPLY), "I pay. · → pay(amount=5) · tool_calls, 1,234 tokens"),
        (
            CallsChecked(
                1.0,
                1,
                (
                    CallCheck(),
                    CallCheck("no such\ncity"),
                    CallCheck(needs_approval=True, held=(("large",), ())),
                    CallCheck(held=(("large", "late"),)),
                    CallCheck(added=(*deny("pay").rules, *allow("*").rules)),
                ),
            ),
            "well formed, no such city, needs approval and large held, large, late held, deny pay",
        ),
        (ToolReturned(1.0, 3, "5 paid"), "c0.0 pay → 5 paid"),
        (ToolReturned(1.0, 3, "no", "error"), "c0.0 pay (error) → no"),
        (
            ToolReturned(1.0, 9, (TextPart("see "), ImagePart("eA==", "image/png"))),
            "effect 9 → see […]",
        ),
        (Decided(1.0, 2, True), "c0.0 pay approved"),
        (Decided(1.0, 2, True, "ok", '{"a":1}'), 'c0.0 pay approved, with {"a":1}: ok'),
        (Decided(1.0, 2, False, "too much"), "c0.0 pay denied: too much"),
        (CallbackReturned(1.0, 5, Tripped(("late",))), "stop_when → late"),
        (CallbackReturned(1.0, 5, Tripped()), "stop_when → go on"),
        (CallbackReturned(1.0, 5, Changes()), "stop_when → changed nothing"),
        (CallbackReturned(1.0, 5, Changes(model="m")), "stop_when → changed model"),
        (CallbackReturned(1.0, 5, Left("Ready")), "stop_when → left by Ready"),
        (CallbackReturned(1.0, 5, Asked(AskPerson("?"))), "stop_when → asks: person"),
        (CallbackReturned(1.0, 5, Joined("a and b")), "stop_when → a and b"),
        (CallbackReturned(1.0, 5, Judged(True)), "stop_when → accepted"),
        (CallbackReturned(1.0, 5, Judged(False, "shorter")), "stop_when → rejected: shorter"),
        (EffectFailed(1.0, 1, Failure("Overloaded", "busy")), "openai:m failed: Overloaded: busy"),
        (ChildEnded(1.0, 4, "done", end_reason="completed"), "c0.1 payer ended (completed) → done"),
        (ChildEnded(1.0, 4, "no", "error"), "c0.1 payer ended (error) → no"),
        (Resumed(1.0), "a driver took the run up"),
        (Begun(1.0, (3, 9)), "c0.0 pay, effect 9"),
        (Queued(1.0, UserMessage("faster")), "to be read in the next turn: faster"),
        (Queued(1.0, UserMessage("and?"), True), "to be read once the run would end: and?"),
        (Cancelled(1.0), "at once"),
        (Cancelled(1.0, "late", after_step=True), "after this turn: late"),
        (Steered(1.0, 6), "nothing changed"),
        (
            Steered(1.0, 6, (), (UserMessage("x"),), (ToolResult("c", "i", "f", "x"),), Setup()),
            "the conversation replaced, 1 message(s) added, 1 result(s) given, settings changed",
        ),
    ],
)
def test_every_event_is_told_in_one_line(event: Event, told: str) -> None:
    """A journal of a thousand events is read by its shape; what models wrote cannot break it."""
    assert happened(event, EFFECTS) == told


def test_an_event_of_an_unknown_graph_names_the_effect() -> None:
    """Without the graph, only the number is known."""
    assert happened(ToolReturned(1.0, 3, "x" * 1_000), {}).startswith("effect 3 → xxx")
    assert len(happened(ToolReturned(1.0, 3, "x" * 1_000), {})) < 250


def test_all_wishes_of_a_run_are_found_again() -> None:
    """By replaying its journal: nothing is asked."""
    graph = Agent(ScriptedModel(())).graph
    events = (Started(1.0, "r", "agent", (UserMessage("Hi"),), Setup("m")),)

    effects = effects_of(graph, events)

    assert isinstance(effects[1], CallModel)
