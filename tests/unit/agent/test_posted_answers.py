"""Answers as a mailbox keeps them: read strictly, and turned into events."""

from __future__ import annotations

import pytest

from graphloop import Approval, Tool, approve, decline
from graphloop.agent.answers import Answers
from graphloop.driver import Ports
from graphloop.effects import AskHuman, CallTool, Effect
from graphloop.errors import ConfigError, StoreError
from graphloop.events import Decided, Event
from graphloop.policy.approvals import issue
from graphloop.questions.pending import capability_of
from graphloop.run import Run, evolve
from graphloop.stores import MemoryStore
from graphloop.tools.outcome import ToolOutcome, ToolReturn
from graphloop.tools.toolbox import Toolbox
from graphloop.values import TextPart, ToolCall
from tests.strategies import call, fresh
from tests.unit.agent.doubles import AMOUNT

PAY = ToolCall("p", "pay", '{"amount": 5}')


QUESTION = AskHuman(1, "c0.0", PAY)


SECRET = b"s"


TOOLBOX = Toolbox(
    [Tool(name="pay", parameters=AMOUNT, execute=dict[str, object], needs_approval=True)]
)


CLIENT = CallTool(2, "c0.1", call("client", "k"), client=True)


def waiting(*effects: Effect, run_id: str = "r") -> Run[None]:
    """Return a run that waits for these."""
    return evolve(
        fresh(), id=run_id, pending={one.id: one for one in effects or (QUESTION, CLIENT)}
    )


def events(
    answers: Answers, run: Run[None] | None = None, secret: bytes | None = None
) -> list[Event]:
    """Return the answers as events, at second 9."""
    ports = Ports[None](
        store=MemoryStore(), models={}, toolbox=TOOLBOX, secret=secret, clock=lambda: 9.0
    )
    return list(answers.events(run or waiting(), TOOLBOX, ports))


def test_an_edit_of_a_call_that_may_have_run_never_runs() -> None:
    again, edited = waiting(AskHuman(7, "c0.0", PAY, unknown=True)), approve(edit={"amount": 5})

    for edit in (edited, Approval(True, "", "{}")):
        with pytest.raises(ConfigError, match=r"approvals\['c0.0#7'\].*may have run already.*deny"):
            Answers({"c0.0#7": edit}).refuse_bad_edits(again, TOOLBOX)
    Answers({"c0.0#7": True}).refuse_bad_edits(again, TOOLBOX)
    Answers({"c0.0#7": Approval(False, "no", "{}")}).refuse_bad_edits(again, TOOLBOX)

    (decided,) = events(Answers({"c0.0#7": edited}), again)
    assert isinstance(decided, Decided)
    assert not decided.approved
    assert "may have run already" in decided.reason


def test_a_posted_edit_that_could_not_run_denies() -> None:
    (event,) = events(Answers({"c0.0": approve(edit="{")}))

    assert isinstance(event, Decided)
    assert not event.approved
    assert event.reason.startswith("the edited arguments fail")


def test_answers_survive_a_mailbox() -> None:
    given = Answers(
        {"a": Approval(True, "ok", {"amount": 1}, "t"), "b": False, "c": decline("no")},
        {"d": {"x": 1}, "e": (TextPart("part"),), "f": OSError("disk"), "g": ToolReturn("3", [1])},
    )

    read = Answers.of_posts(dict(given.posts(5.0)))

    assert {
        "a": Approval(True, "ok", '{"amount":1}', "t"),
        "b": Approval(False),
        "c": Approval(False, "no"),
    } == read.approvals
    assert {
        "d": ToolOutcome('{"x":1}', "ok"),
        "e": ToolOutcome((TextPart("part"),), "ok"),
        "f": ToolOutcome("OSError: disk", "error"),
        "g": ToolOutcome("3", "ok", "[1]"),
    } == read.tool_results
    assert dict.fromkeys("abc", 5.0) == read.given_at
    assert read == Answers.of_posts(dict(read.posts(7.0)))


@pytest.mark.parametrize(("posted_at", "refusal"), [(5.0, ""), (8.0, "the approval is expired.")])
def test_an_approval_that_was_posted_in_time_is_not_late(posted_at: float, refusal: str) -> None:
    question = evolve(QUESTION, expires_at=8.0)
    run = waiting(question)
    yes = Approval(True, token=issue(capability_of(run, question), SECRET))

    posted = Answers.of_posts(dict(Answers({"c0.0": yes}).posts(posted_at)))
    (event,) = events(posted, run, SECRET)

    given_at = None if refusal else posted_at
    assert Decided(9.0, 1, not refusal, refusal, given_at=given_at) == event


def test_an_approval_without_a_token_is_refused_if_signed() -> None:
    Answers({"c0.0": False, "c0.1": decline("no")}).refuse_unsigned()
    Answers({"c0.0": Approval(True, token="forged")}).refuse_unsigned()  # noqa: S106 - no secret
    for yes in (True, Approval(True)):
        with pytest.raises(ConfigError, match=r"approvals\['c0.0'\] has no token.*call.approve"):
            Answers({"c0.0": yes}).refuse_unsigned()


@pytest.mark.parametrize("text", ["{", '{"approved": "yes"}', "[]"])
def test_a_mailbox_that_cannot_be_read_is_the_store_s_error(text: str) -> None:
    with pytest.raises(StoreError, match="the answer to 'k' cannot be read"):
        Answers.of_posts({"k": text})
