"""Arguments in place of a call's own."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.effects import IN_WORDS
from graphloop.errors import ConfigError
from graphloop.events import Setup, Started, Steered
from graphloop.front.edits import check_edit, parameters_in
from graphloop.nodes.approve import EDITED
from graphloop.stores.base import Ask
from graphloop.stores.memory import MemoryStore
from graphloop.values import ToolSpec

PAY = '{"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}'


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("{}", "'amount' is a required property.* An edit replaces all arguments"),
        ('{"amount": "lots"}', "amount: 'lots' is not of type 'integer'"),
    ],
)
def test_an_edit_that_its_tool_would_refuse_is_refused_at_once(edit: str, message: str) -> None:
    """Its approver is still there; when the run goes on, nobody may be."""
    with pytest.raises(ConfigError, match=message):
        check_edit("pay", PAY, edit)
    check_edit("pay", PAY, '{"amount": 4}')


@pytest.mark.parametrize("parameters", ["", "{", '{"type": "array"}'])
def test_a_schema_that_says_nothing_refuses_nothing(parameters: str) -> None:
    """The run checks every edit again, with the tool itself."""
    check_edit("pay", parameters, "{}")


def test_what_a_tool_takes_stands_in_the_journal_of_the_run_that_called_it() -> None:
    """A child's tools are its own; a later setup replaces the first."""

    async def found() -> list[str]:
        store = MemoryStore()
        old, new = (Setup(tools=(ToolSpec("pay", "", text),)) for text in ("old", "new"))
        await store.append("r", 1, Started(1.0, "r", "g", (), old))
        await store.append("r/c0.0", 1, Started(1.0, "r/c0.0", "g", (), old))
        await store.append("r/c0.0", 2, Steered(2.0, 1, setup=new))
        asks = [
            Ask("c0.0", "approval", "pay", "{}"),
            Ask("c0.0/c0.0", "approval", "pay", "{}"),
            Ask("c0.0", "approval", "other", "{}"),
            Ask("pay.2", "approval", "pay", "{}", takes=IN_WORDS),
        ]
        return [await parameters_in(store, "r", ask) for ask in asks]

    assert asyncio.run(found()) == ["old", "new", "", IN_WORDS]


@pytest.mark.parametrize(
    "edit", ["{}", '{"answer": 7}', '{"answer": " "}', '{"answer": "a", "b": 1}']
)
def test_an_edit_of_a_node_s_question_is_refused_at_once(edit: str) -> None:
    """What the node would take for a no must not be kept as a yes, whatever the node is called."""
    with pytest.raises(ConfigError, match="Invalid arguments"):
        check_edit("approve the plan!", EDITED, edit)
    check_edit("approve the plan!", EDITED, '{"answer": "Do it."}')
    check_edit("approve the plan!", IN_WORDS, '{"question": "Well?", "answer": ""}')
