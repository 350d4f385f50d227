"""The kinds of parts as a consumer in another language meets them: as JSON, by their names."""

from __future__ import annotations

import json
from typing import get_args

import msgspec

from graphloop.parts.kinds import (
    BudgetExceeded,
    CompactionPart,
    ErrorPart,
    Finish,
    MessageInjected,
    ObjectDelta,
    Part,
    SubAgent,
    ToolApprovalRequest,
    ToolResultPart,
    ToolState,
    VerifyPart,
)
from graphloop.providers import MediaDelta, ProviderToolDelta
from graphloop.run import EndReason
from graphloop.values import FinishReason, ToolResult, Usage, UserMessage

NEW: tuple[Part, ...] = (
    CompactionPart(0, 9, 3, 4, 2),
    MessageInjected(UserMessage("hi"), "steering"),
    ToolState("c0.0", "read", "error", unknown=True),
    ToolApprovalRequest("c0.0", "a", "read", "{}", 7.5, False, ("one", "two")),
    ToolResultPart(ToolResult("c-1.0", "a", "read", "fine"), "resume"),
    VerifyPart("tone", 1, False, "too rude"),
    ObjectDelta({"a": [1]}),
    BudgetExceeded("budget.usd", 0.5, 0.75),
    ProviderToolDelta(0, "web_search", "running", '{"query": "tides"}'),
    MediaDelta(0, "image/png", "iVBORw0KGgo="),
    Finish(FinishReason.STOP, EndReason.COMPLETED, (), Usage(), 0.75),
)


def test_every_part_is_written_with_its_name() -> None:
    """A consumer tells parts apart by `type` alone, also inside of a child's wrapper."""
    for part in NEW:
        wrapped = json.loads(msgspec.json.encode(SubAgent(("c0.0",), ("one",), part)))

        assert "sub-agent" == wrapped["type"]
        assert part.type == wrapped["part"]["type"]


def test_a_name_in_json_is_the_name_in_python() -> None:
    """One part with two names, or two with one, would be taken for another."""
    assert len(get_args(Part)) == len({kind.type for kind in get_args(Part)})
    for kind in get_args(Part):
        assert kind.type == kind.__struct_config__.tag

    assert "error" == ErrorPart.type
