"""What a parked run waits for, at any depth, and what an approval of it is good for."""

from __future__ import annotations

import re

import pytest

from graphloop.effects import IN_WORDS, AskHuman, CallTool, Effect, StartRun
from graphloop.errors import ConfigError
from graphloop.nodes.approve import EDITED
from graphloop.policy.approvals import Approval, issue, verify
from graphloop.questions.pending import Pending, ask_key, bad_edit, capability_of, pending_of, unfit
from graphloop.run import Run, evolve
from graphloop.stores.base import Ask
from graphloop.tools.tool import tool
from graphloop.tools.toolbox import Toolbox
from tests.strategies import call, fresh

PAY = call("pay", "toolu_1", '{"amount": 5}')
QUESTION = AskHuman(1, "c0.0", PAY, 60.0)
AGAIN = AskHuman(7, "c0.0", PAY, unknown=True)
CLIENT = CallTool(2, "c0.1", call("client", "toolu_2"), client=True)


def waiting(run_id: str, *effects: Effect) -> Run[None]:
    """Return a run that waits for these."""
    return evolve(fresh(), id=run_id, pending={one.id: one for one in effects})


def pending(run: Run[None], *below: Run[None], secret: bytes | None = None) -> list[Pending]:
    """Return what a run and those below it wait for."""
    return list(pending_of(run, {one.id: one for one in below}, secret))


def test_what_children_wait_for_is_found_at_any_depth() -> None:
    """By the keys that lead there, and the agents that they run."""
    leaf = waiting("r/c0.1/c2.0", QUESTION)
    child = waiting("r/c0.1", StartRun(1, "c2.0", "leaf", "", ()), CLIENT)
    root = waiting("r", StartRun(1, "c0.1", "kid", "", ()), AskHuman(2, "c0.3", PAY))

    found = pending(root, child, leaf)

    assert ["c0.1/c2.0/c0.0", "c0.1/c0.1", "c0.3"] == [one.key for one in found]
    assert [("kid", "leaf"), ("kid",), ()] == [one.agents for one in found]


def test_a_child_that_nobody_has_seen_waits_for_nothing_that_is_known() -> None:
    """It has not begun, or its journal is not here."""
    assert [] == pending(waiting("r", StartRun(1, "c0.1", "kid", "", ())))


def test_a_log_of_a_question_does_not_let_its_readers_approve_it() -> None:
    """Whoever has the token can answer."""
    (found,) = pending(waiting("r", QUESTION), secret=b"s")

    assert found.token
    assert found.token not in repr(found)
    assert found.token not in repr(found.approve())


def test_a_call_that_may_have_happened_is_another_question() -> None:
    """What approved it the first time must not approve it the second (E15, E19)."""
    run = waiting("r", AGAIN)

    (found,) = pending(run)
    first = issue(capability_of(waiting("r", QUESTION), QUESTION), b"s")

    assert "c0.0#7" == found.key == ask_key(AGAIN)
    assert "c0.0" == ask_key(QUESTION)
    assert "c0.1" == ask_key(CLIENT)
    assert found.unknown
    assert "of another call" == verify(first, capability_of(run, AGAIN), secret=b"s", now=0.0)


def test_a_token_is_good_for_this_run_call_tool_and_arguments_only() -> None:
    """§4.6: a capability, not a word."""
    run = waiting("r", QUESTION)
    (found,) = pending(run, secret=b"secret")

    def refusal(other: Run[None], effect: AskHuman = QUESTION, now: float = 0.0) -> str:
        return verify(found.token, capability_of(other, effect), secret=b"secret", now=now)

    assert "" == refusal(run)
    assert "of another run" == refusal(waiting("s", QUESTION))
    assert "of another call" == refusal(run, evolve(QUESTION, key="c0.1"))
    assert "for other arguments" == refusal(run, evolve(QUESTION, call=call("pay", "", "{}")))
    assert "expired" == refusal(run, now=60.0)


def test_an_answer_carries_its_token() -> None:
    """So nobody has to know that there is one."""
    (found,) = pending(waiting("r", QUESTION), secret=b"secret")

    assert Approval(True, "fine", '{"amount":4}', found.token) == found.approve(
        edit={"amount": 4}, reason="fine"
    )
    assert Approval(False, "too much") == found.decline("too much")


def test_a_call_that_may_have_happened_is_approved_as_it_was() -> None:
    """Its edit would be another call, which no gate has seen: refused where it is made."""
    (found,) = pending(waiting("r", AGAIN))

    with pytest.raises(ConfigError, match=r"c0\.0#7.*may have run already.*approve it as it is"):
        found.approve(edit={"amount": 4})
    assert found.approve().approved


def test_a_store_is_told_the_same() -> None:
    """Whoever lists runs sees what they wait for, without their journals."""
    (found,) = pending(waiting("r", QUESTION))

    assert Ask("c0.0", "approval", "pay", PAY.arguments, found.token, (), 60.0) == found.ask


TAKES = '{"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}'


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("{}", "'amount' is a required property.* Fix: give every argument"),
        ('{"amount": "lots"}', "amount: 'lots' is not of type 'integer'"),
    ],
)
def test_an_edit_that_its_tool_would_refuse_is_refused_at_once(edit: str, message: str) -> None:
    """Its approver is still there; when the run goes on, nobody may be."""
    assert re.search(message, unfit("pay", TAKES, edit) or "")
    assert unfit("pay", TAKES, '{"amount": 4}') is None


@pytest.mark.parametrize(
    "edit", ["{}", '{"answer": 7}', '{"answer": " "}', '{"answer": "a", "b": 1}']
)
def test_an_edit_of_a_node_s_question_is_refused_at_once(edit: str) -> None:
    """What the node would take for a no must not be kept as a yes, whatever the node is called."""
    assert "Invalid arguments" in (unfit("approve the plan!", EDITED, edit) or "")
    assert unfit("approve the plan!", EDITED, '{"answer": "Do it."}') is None
    assert unfit("approve the plan!", IN_WORDS, '{"question": "Well?", "answer": ""}') is None


def refund(order: int, amount: int = 100) -> str:
    """Pay back."""
    return f"{order}: {amount}"


def test_an_edit_names_only_arguments_that_the_tool_has() -> None:
    """One that is misspelt would be dropped, and the default would run."""
    made = tool(refund)
    edit = '{"order": 7, "ammount": 5}'
    said = "found ammount.*Did you mean 'amount'"

    assert re.search(said, bad_edit("refund", "", edit, Toolbox([made])) or "")
    assert re.search(said, unfit("refund", made.spec.parameters, edit) or "")
    assert bad_edit("refund", "", '{"order": 7, "amount": 5}', Toolbox([made])) is None


@pytest.mark.parametrize(
    "more", ['"properties": {}, "additionalProperties": true', '"properties": {}, "allOf": []', ""]
)
def test_an_edit_may_name_anything_where_the_schema_leaves_that_open(more: str) -> None:
    """It says so, tells of properties elsewhere, or of none."""
    schema = f'{{"type": "object"{"," if more else ""} {more}}}'

    assert unfit("pay", schema, '{"other": 1}') is None
    assert unfit("pay", schema.replace("true", "false"), "{}") is None
