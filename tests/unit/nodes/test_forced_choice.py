"""forced_choice: an answer that a program can read, or none."""

from __future__ import annotations

import pytest

from graphloop.nodes.forced_choice import CUT_SHORT, choices, forced_choice
from graphloop.values import FinishReason, Reply, ToolChoice, ToolSpec
from tests.strategies import call, fresh, reply

TOOL = ToolSpec("pick", "Pick one.", "{}")


def test_the_model_reads_everything_and_has_no_other_way_to_answer() -> None:
    """One tool, and it must be called; the prompt says who asks."""
    wish = forced_choice(fresh(), TOOL, "Which?", origin="node")

    request = wish.request
    assert ((TOOL,), ToolChoice("tool", "pick")) == (request.tools, request.tool_choice)
    assert ["go", "Which?"] == [getattr(one, "content", "") for one in request.messages]
    assert ("model", "other") == (
        wish.model,
        forced_choice(fresh(), TOOL, "Which?", origin="node", model="other").model,
    )


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (reply("a"), ()),
        (reply(call("other", arguments="1")), ()),
        (reply(call("pick", arguments='{"a": 1}')), ({"a": 1},)),
        (reply(call("pick", arguments="1"), "so", call("pick", arguments="2")), (1, 2)),
        (reply(call("pick", arguments="{")), (None,)),
        (reply(call("pick", arguments="[" * 100_000)), (None,)),
        *[(reply(call("pick", arguments="1"), finish=one), ()) for one in sorted(CUT_SHORT)],
        (reply(call("pick", arguments="1"), finish=FinishReason.STOP), (1,)),
    ],
)
def test_only_whole_calls_of_the_tool_are_choices(answer: Reply, found: tuple[object, ...]) -> None:
    """Not every server honours a tool choice, and a cut reply says nothing."""
    assert found == choices(answer, TOOL)
