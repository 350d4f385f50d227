"""Answers: what somebody said about a waiting call, read strictly and written down for others."""

from __future__ import annotations

import pytest

from graphloop import Approval, Tool, ToolError, approve, decline
from graphloop.agent.answers import Answers, approval_from, outcome_of
from graphloop.driver.pending import capability_of
from graphloop.effects import AskHuman, CallTool, Effect
from graphloop.errors import ConfigError, StoreError
from graphloop.events import Decided, Event, ToolReturned
from graphloop.policy.approvals import issue
from graphloop.run import Run, evolve
from graphloop.tools.outcome import ToolOutcome
from graphloop.tools.toolbox import Toolbox
from graphloop.values import TextPart, ToolCall
from tests.strategies import call, fresh, wrong

AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
}
PAY = ToolCall("p", "pay", '{"amount": 5}')
QUESTION = AskHuman(1, "c0.0", PAY)
CLIENT = CallTool(2, "c0.1", call("client", "k"), client=True)
TOOLBOX = Toolbox(
    [Tool(name="pay", parameters=AMOUNT, execute=dict[str, object], needs_approval=True)]
)
SECRET = b"s"


def waiting(*effects: Effect, run_id: str = "r") -> Run[None]:
    """Return a run that waits for these."""
    return evolve(
        fresh(), id=run_id, pending={one.id: one for one in effects or (QUESTION, CLIENT)}
    )


def events(
    answers: Answers, run: Run[None] | None = None, secret: bytes | None = None
) -> list[Event]:
    """Return the answers as events, at second 9."""
    return list(answers.events(run or waiting(), TOOLBOX, secret, lambda: 9.0))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (True, Approval(True)),
        (False, Approval(False)),
        (1, Approval(False, "the approver answered 1, neither a yes nor a no.")),
        ("yes", Approval(False, "the approver answered 'yes', neither a yes nor a no.")),
        (None, Approval(False, "the approver answered None, neither a yes nor a no.")),
        (decline("no"), Approval(False, "no")),
        (Approval(wrong(1), "sure", "{}", "t"), Approval(False, "sure")),
        (Approval(True, "ok", {"a": 1}, "t"), Approval(True, "ok", '{"a":1}', "t")),
        (Approval(True, wrong(3), "", wrong(None)), Approval(True, "3", None, "None")),
        (Approval(True, "\ud800", "", "\ud800"), Approval(True, "?", None, "?")),
    ],
)
def test_only_an_approval_approves(answer: object, expected: Approval) -> None:
    """Property 9; and whatever is kept of it can be written down."""
    assert expected == approval_from(answer)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", ToolOutcome("text", "ok")),
        ({"a": 1}, ToolOutcome('{"a":1}', "ok")),
        (None, ToolOutcome("null", "ok")),
        (TextPart("part"), ToolOutcome((TextPart("part"),), "ok")),
        (ToolError("no such file"), ToolOutcome("no such file", "error")),
        (OSError("disk"), ToolOutcome("OSError: disk", "error")),
        (ToolOutcome("late", "timeout"), ToolOutcome("late", "timeout")),
    ],
)
def test_a_client_tool_returns_what_tools_return(value: object, expected: ToolOutcome) -> None:
    """An exception says that it failed."""
    assert expected == outcome_of(value)


def test_answers_become_events_in_the_order_of_the_calls() -> None:
    """Whatever order they are given in; what is not answered stays pending."""
    answers = Answers({"c0.0": approve(reason="fine")}, {"c0.1": [1]})

    assert [
        Decided(9.0, 1, approved=True, reason="fine"),
        ToolReturned(9.0, 2, "[1]"),
    ] == events(answers)
    assert [] == events(Answers())


def test_a_child_s_calls_are_named_by_their_way_from_the_root() -> None:
    """The same key in another run is another call."""
    child = waiting(run_id="r/c1.0/c0.2")
    answers = Answers({"c0.0": True, "c1.0/c0.2/c0.0": False})

    assert [False] == [one.approved for one in events(answers, child) if isinstance(one, Decided)]


def test_a_call_that_is_asked_about_again_is_not_approved_by_the_first_answer() -> None:
    """It may have happened since."""
    again = waiting(AskHuman(7, "c0.0", PAY, unknown=True))

    assert [] == events(Answers({"c0.0": True}), again)
    assert 1 == len(events(Answers({"c0.0#7": True}), again))


def test_an_edit_of_a_call_that_may_have_run_is_refused_and_never_runs() -> None:
    """Whether it ran is what is asked, of the call as it was: other arguments are another call."""
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


def test_nobody_runs_a_client_tool_here() -> None:
    """A tool of this process that is pending has been interrupted; nobody outside answers it."""
    interrupted = waiting(CallTool(2, "c0.1", call()))

    assert [] == events(Answers(tool_results={"c0.1": "x"}), interrupted)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (Answers({"c0.9": True}), r"`approvals` answers 'c0.9'.*waits for c0.0.*mean 'c0.0'"),
        (Answers({"c0.1": True}), "`approvals` answers 'c0.1'"),
        (Answers(tool_results={"c0.0": "x"}), "`tool_results` answers 'c0.0'.*waits for c0.1"),
    ],
)
def test_an_answer_to_nothing_is_refused(answers: Answers, message: str) -> None:
    """A typing error in a key must not look like an approval."""
    with pytest.raises(ConfigError, match=message):
        answers.check({"c0.0": "approval", "c0.1": "client_tool"})


def test_nothing_waits_for_an_answer_to_a_run_that_waits_for_nothing() -> None:
    """The message says so."""
    with pytest.raises(ConfigError, match="nothing of this kind"):
        Answers({"c0.0": True}).check({})


def test_edited_arguments_that_could_not_run_are_refused_at_once() -> None:
    """Before anything is recorded; what denies anyway is not looked at."""
    run = waiting()

    Answers({"c0.0": approve(edit={"amount": 1})}).refuse_bad_edits(run, TOOLBOX)
    Answers({"c0.0": Approval(False, "", "{")}).refuse_bad_edits(run, TOOLBOX)
    for edit in ({"amount": "much"}, "{", "[]"):
        with pytest.raises(ConfigError, match=r"approvals\['c0.0'\]: the edited arguments fail"):
            Answers({"c0.0": approve(edit=edit)}).refuse_bad_edits(run, TOOLBOX)
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        Answers({"c0.0": Approval(True, "", {"x": object()})}).refuse_bad_edits(run, TOOLBOX)


def test_edited_arguments_from_a_mailbox_that_could_not_run_deny() -> None:
    """They were put there by somebody who has not looked."""
    (event,) = events(Answers({"c0.0": approve(edit="{")}))

    assert isinstance(event, Decided)
    assert not event.approved
    assert event.reason.startswith("the edited arguments fail")


def test_a_tool_that_is_not_here_cannot_be_edited_for() -> None:
    """Resuming has refused such a run before; here, the arguments pass as they are."""
    run = waiting(AskHuman(1, "c0.0", call("gone")))

    (event,) = events(Answers({"c0.0": approve(edit="{")}), run)

    assert Decided(9.0, 1, approved=True, arguments="{") == event


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "the approval is not signed."),
        ("x", "the approval is malformed."),
        (issue(capability_of(waiting(run_id="s"), QUESTION), SECRET), "of another run."),
        (issue(capability_of(waiting(), QUESTION), SECRET), ""),
    ],
)
def test_with_a_secret_only_a_signed_token_approves(token: str, reason: str) -> None:
    """§9 #46; a denial needs none."""
    yes, no = Approval(True, token=token), Approval(False, "no", token=token)

    (approved,) = events(Answers({"c0.0": yes}), secret=SECRET)
    (denied,) = events(Answers({"c0.0": no}), secret=SECRET)

    assert isinstance(approved, Decided)
    assert (reason == "") is approved.approved
    assert approved.reason.endswith(reason)
    assert Decided(9.0, 1, approved=False, reason="no") == denied


def test_answers_survive_a_mailbox() -> None:
    """As text, by their keys: edits, reasons, tokens, and what client tools returned."""
    given = Answers(
        {"a": Approval(True, "ok", {"amount": 1}, "t"), "b": False, "c": decline("no")},
        {"d": {"x": 1}, "e": (TextPart("part"),), "f": OSError("disk")},
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
    } == read.tool_results
    assert dict.fromkeys("abc", 5.0) == read.given_at
    assert read == Answers.of_posts(dict(read.posts(7.0)))


@pytest.mark.parametrize(("posted_at", "refusal"), [(5.0, ""), (8.0, "the approval is expired.")])
def test_an_approval_that_was_posted_in_time_is_not_late(posted_at: float, refusal: str) -> None:
    """Its giver has done all there was to do; when the run is driven again is not theirs to say."""
    question = evolve(QUESTION, expires_at=8.0)
    run = waiting(question)
    yes = Approval(True, token=issue(capability_of(run, question), SECRET))

    posted = Answers.of_posts(dict(Answers({"c0.0": yes}).posts(posted_at)))
    (event,) = events(posted, run, SECRET)

    given_at = None if refusal else posted_at
    assert Decided(9.0, 1, not refusal, refusal, given_at=given_at) == event


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (Answers(wrong([Approval(True)])), "`approvals` is a mapping .*found \\[Approval"),
        (Answers({}, wrong("x")), "`tool_results` is a mapping .*found 'x'"),
        (Answers({"c0.0": "approve"}), r"approvals\['c0.0'\] is True, False or an Approval; fou"),
        (Answers({"c0.0": None}), "found None"),
        (Answers({"c0.0": 1}), "found 1"),
        (Answers({"c0.0": Approval(wrong(1))}), r"found Approval\(approved=1"),
    ],
)
def test_what_is_no_answer_is_refused(answers: Answers, message: str) -> None:
    """It could only deny, and look as if somebody had wanted that."""
    with pytest.raises(ConfigError, match=message):
        answers.refuse_wrong_types()


def test_an_approval_without_a_token_is_refused_where_tokens_are_signed() -> None:
    """It could only deny; the message says how to sign. Denials need no token."""
    Answers({"c0.0": False, "c0.1": decline("no")}).refuse_unsigned()
    Answers({"c0.0": Approval(True, token="forged")}).refuse_unsigned()  # noqa: S106 - no secret
    for yes in (True, Approval(True)):
        with pytest.raises(ConfigError, match=r"approvals\['c0.0'\] has no token.*pending.approve"):
            Answers({"c0.0": yes}).refuse_unsigned()


def test_nothing_given_is_no_answer() -> None:
    """None is nothing; what is something is looked at."""
    assert Answers() == Answers.given(None, None)
    assert Answers({"a": True}, {"b": 1}) == Answers.given({"a": True}, {"b": 1})


@pytest.mark.parametrize("text", ["{", '{"approved": "yes"}', "[]"])
def test_a_mailbox_that_cannot_be_read_is_the_store_s_error(text: str) -> None:
    """It names the answer."""
    with pytest.raises(StoreError, match="the answer to 'k' cannot be read"):
        Answers.of_posts({"k": text})
